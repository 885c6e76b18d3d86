package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
)

// What a Cozy job has that asks for nothing else.
const (
	cozyTries   = 3
	cozyTimeout = time.Minute
	cozyDelay   = time.Second
)

// Limits of what it may ask for.
const (
	cozyNoTime     = time.Millisecond // stands for 0, which is a default elsewhere
	cozyPriorities = 100              // each is cozyPriority of ours
	cozyPriority   = job.MaxPriority / cozyPriorities
	cozyMostTries  = 10_000
	cozyMostTime   = 365 * 24 * 3600 // seconds
)

// cozyObject is an object of a body, of which all keys must be known.
type cozyObject struct {
	at     string // JSON pointer
	fields map[string]json.RawMessage
	known  []string
	wrong  *[]Detail // what is wrong with the body
}

// cozyBody reads a body, which is a bare object or a JSON:API document with a resource of that type, and calls read with its
// attributes. The error tells all that is wrong.
func cozyBody(raw json.RawMessage, typ string, read func(o *cozyObject)) error {
	var wrongs []Detail
	o := (&cozyObject{wrong: &wrongs}).object("", raw)
	if _, ok := o.fields["data"]; ok {
		for _, name := range []string{"jsonapi", "links", "meta"} {
			o.take(name)
		}
		data, _ := o.take("data")
		o.end()
		o = o.object("/data", data)
		if name := o.text("type"); name != "" && name != typ {
			return cozyRefusal(Kind{"usage", http.StatusConflict, 6}, "/data/type", "type %.80q: this is for %s", name, typ)
		}
		if id := o.text("id"); id != "" {
			return cozyRefusal(Kind{"forbidden", http.StatusForbidden, 8}, "/data/id", "id %.80q: the server gives IDs, leave it out", id)
		}
		for _, name := range []string{"relationships", "links", "meta"} {
			o.take(name)
		}
		attributes, _ := o.take("attributes")
		o.end()
		o = o.object("/data/attributes", attributes)
	}
	read(o)
	o.end()
	if len(wrongs) == 0 {
		return nil
	}
	p := wrong("%s", wrongs[0].Message)
	p.Errors = wrongs
	return p
}

// cozyRefusal is a problem with one part of a body.
func cozyRefusal(k Kind, where, format string, args ...any) *Problem {
	p := problem(k, format, args...)
	p.Errors = []Detail{{where, p.Detail}}
	return p
}

// object reads an object, which may be missing.
func (o *cozyObject) object(at string, raw json.RawMessage) *cozyObject {
	in := &cozyObject{at: at, fields: map[string]json.RawMessage{}, wrong: o.wrong}
	if len(raw) > 0 && string(raw) != "null" && (raw[0] != '{' || json.Unmarshal(raw, &in.fields) != nil) {
		if at == "" {
			at = wholeBody
		}
		*o.wrong = append(*o.wrong, Detail{at, fmt.Sprintf("%.40s is not an object: send one, like {\"arguments\": {}}", raw)})
	}
	return in
}

// refuse notes what is wrong with a value.
func (o *cozyObject) refuse(name, format string, args ...any) {
	*o.wrong = append(*o.wrong, Detail{o.at + "/" + pointerWord.Replace(name), name + " " + fmt.Sprintf(format, args...)})
}

// pointerWord writes a key as JSON pointers do.
var pointerWord = strings.NewReplacer("~", "~0", "/", "~1")

// take returns a value, and whether there is one; null is none.
func (o *cozyObject) take(name string) (raw json.RawMessage, ok bool) {
	raw, ok = o.fields[name]
	delete(o.fields, name)
	o.known = append(o.known, name)
	return raw, ok && string(raw) != "null"
}

// end refuses the keys that nobody took: the first few of them.
func (o *cozyObject) end() {
	const most = 10
	for n, name := range slices.Sorted(maps.Keys(o.fields)) {
		if n == most {
			return
		}
		o.refuse(fmt.Sprintf("%.80s", name), "is not known: %s", port.Suggest(name, o.known))
	}
}

func (o *cozyObject) text(name string) (text string) {
	if raw, ok := o.take(name); ok && json.Unmarshal(raw, &text) != nil {
		o.refuse(name, "%.40s: use a string", raw)
	}
	return text
}

// number returns a number within bounds, and whether there is one.
func (o *cozyObject) number(name string, least, most float64, whole bool) (n float64, ok bool) {
	raw, ok := o.take(name)
	if !ok {
		return 0, false
	}
	if json.Unmarshal(raw, &n) != nil || n < least || n > most || whole && n != float64(int(n)) {
		of := map[bool]string{true: "a whole number", false: "a number of seconds"}[whole]
		o.refuse(name, "%.40s: use %s from %s to %.0f", raw, of, strconv.FormatFloat(least, 'f', -1, 64), most)
		return 0, false
	}
	return n, true
}

// cozyWish is what somebody wants of a job.
type cozyWish struct {
	priority  *int
	options   job.RunOptions
	arguments json.RawMessage // nil: none are given
	at        string          // where these are
}

func newCozyWish() cozyWish {
	return cozyWish{options: job.RunOptions{Tries: cozyTries, Timeout: cozyTimeout, Backoff: cozyDelay, MaxBackoff: cozyDelay}}
}

// read takes what an object says of a job.
func (w *cozyWish) read(o *cozyObject) {
	seconds := func(n float64) time.Duration { return max(time.Duration(n*float64(time.Second)), cozyNoTime) }
	if n, ok := o.number("priority", 1, cozyPriorities, true); ok {
		w.priority = new(int(n) * cozyPriority)
	}
	if n, ok := o.number("timeout", 0.001, cozyMostTime, false); ok {
		w.options.Timeout = seconds(n)
	}
	if n, ok := o.number("retry_delay", 0, cozyMostTime, false); ok {
		w.options.Backoff, w.options.MaxBackoff = seconds(n), seconds(n)
	}
	tries, ok := o.number("retry_max_count", 1, cozyMostTries, true)
	also, renamed := o.number("max_exec_count", 1, cozyMostTries, true)
	if ok && renamed && tries != also {
		o.refuse("max_exec_count", "%v is another name for retry_max_count, which is %v: give one of them", also, tries)
	}
	if ok || renamed {
		w.options.Tries = int(max(tries, also))
	}
	w.takeArguments(o)
}

func (w *cozyWish) takeArguments(o *cozyObject) {
	raw, ok := o.take("arguments")
	if ok && w.arguments != nil {
		o.refuse("arguments", "are given twice: leave them out here")
	}
	if ok {
		w.arguments, w.at = raw, o.at+"/arguments"
	}
}

// empty tells whether no arguments are given.
func (w *cozyWish) empty() bool {
	return w.arguments == nil || slices.Contains([]string{"{}", `""`, "[]"}, string(w.arguments))
}

// cozyJobBody is the body of a request for a job.
type cozyJobBody struct{ json.RawMessage }

// Schema implements huma.SchemaProvider.
func (cozyJobBody) Schema(huma.Registry) *huma.Schema {
	return documented("a bare object, or a JSON:API document whose attributes are such an object", cozyOptionSchema())
}

// cozyLauncherBody is the body of a request for a launcher.
type cozyLauncherBody struct{ json.RawMessage }

// Schema implements huma.SchemaProvider.
func (cozyLauncherBody) Schema(huma.Registry) *huma.Schema {
	text := func(about string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: about} }
	return documented("a bare object, or a JSON:API document whose attributes are such an object", map[string]*huma.Schema{
		"type":      text("@cron, @interval, @at, @in, @event or @webhook"),
		"arguments": text("when: six cron fields, a duration, a time, a channel"),
		"worker":    text("that of the path"),
		"options":   documented("of the jobs that it launches", cozyOptionSchema()),
		"limits":    {Type: huma.TypeObject, Description: "as docs/triggers.md describes them", AdditionalProperties: true},
	})
}

// cozyOptionSchema describes what cozyWish reads.
func cozyOptionSchema() map[string]*huma.Schema {
	number := func(kind, about string) *huma.Schema { return &huma.Schema{Type: kind, Description: about} }
	return map[string]*huma.Schema{
		"priority":        number(huma.TypeInteger, "1 to 100; higher ones run first"),
		"timeout":         number(huma.TypeNumber, "of an execution, in seconds; 60 without it"),
		"retry_max_count": number(huma.TypeInteger, "how often it is executed at most; 3 without it"),
		"max_exec_count":  number(huma.TypeInteger, "another name for retry_max_count"),
		"retry_delay":     number(huma.TypeNumber, "seconds between two executions; 1 without it"),
		"arguments":       {Description: "the message for the worker, any JSON"},
	}
}

func documented(about string, properties map[string]*huma.Schema) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: about, Properties: properties}
}

// cozyLimits reads the limits of a launcher.
func cozyLimits(o *cozyObject) (l trigger.Limits) {
	raw, ok := o.take("limits")
	if !ok {
		return l
	}
	limits := o.object(o.at+"/limits", raw)
	fields := []struct {
		name string
		to   any
	}{
		{"parallel", &l.Parallel}, {"queue", &l.Queue}, {"overflow", &l.Overflow}, {"throttle", &l.Throttle}, {"debounce", &l.Debounce}, {"payload", &l.Payload},
	}
	wrong := len(*o.wrong)
	for _, f := range fields {
		if raw, ok := limits.take(f.name); ok {
			if err := decode(raw, f.to); err != nil {
				limits.refuse(f.name, "%s", strings.TrimPrefix(err.Error(), "it "))
			}
		}
	}
	limits.end()
	d := trigger.Definition{Launch: &trigger.Launch{Type: "any"}, Limits: l}
	err := d.Validate(time.Time{})
	if err == nil || len(*o.wrong) > wrong {
		return l
	}
	_, why, _ := strings.Cut(err.Error(), ": ")
	for one := range strings.SplitSeq(why, "; ") {
		name, rest, _ := strings.Cut(one, " ") // each begins with the field that it is about
		limits.refuse(name, "%s", rest)
	}
	return l
}
