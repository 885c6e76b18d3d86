package bedrock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirworks/weir/internal/strict"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
)

// refusal is an answer that says what is wrong.
type refusal struct {
	status int
	text   string
}

// Error implements error.
func (r *refusal) Error() string { return fmt.Sprintf("%d %s", r.status, r.text) }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

var (
	errNoJob    = refuse(404, "No job found")
	errNoNumber = refuse(404, "No job with this jobID")
	errEnd      = refuse(405, "Can only retry/finish RUNNING and RUNQUEUED jobs")
	errFail     = refuse(405, "Can only fail RUNNING or RUNQUEUED jobs")
)

// number is the jobID.
func (q *Request) number() (int64, error) {
	text, ok := q.Params["jobid"]
	if !ok || text == "" {
		return 0, refuse(402, "Missing jobID")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, refuse(402, "Malformed jobID")
	}
	return n, nil
}

// readable tells whether a name can be shown: it is text without control characters, and not too long.
func readable(name string) bool {
	return len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// createParams are those of CreateJob.
const createParams = "name data firstRun repeat sequentialKey jobPriority parentJobID retryAfter unique overwrite mockRequest"

// commonParams are what any request may have: headers of Bedrock's clients and of HTTP that mean nothing here, or the same for all.
const commonParams = "connection timeout writeConsistency priority commitCount idempotent processTimeout requestID lastIP logParam " +
	"authorization content-length content-type host user-agent accept accept-encoding traceparent tracestate"

// known refuses parameters that the command does not have. Headers of HTTP may be any.
func (q *Request) known(params string) error {
	all := strings.Fields(params)
	for _, name := range slices.Sorted(maps.Keys(q.Params)) {
		has := func(one string) bool { return strings.EqualFold(one, name) }
		if slices.ContainsFunc(all, has) && q.twice[name] {
			return refuse(402, "Parameter %.40q is given twice", name)
		}
		if slices.ContainsFunc(all, has) || slices.ContainsFunc(strings.Fields(commonParams), has) || q.HTTP && !q.given[name] {
			continue
		}
		return refuse(402, "Unknown parameter %.40q: %s", name, port.Suggest(name, all))
	}
	return nil
}

// name is the name of a job; empty if it is not given and may be missing.
func (q *Request) name(required bool) (string, error) {
	name := q.Params["name"]
	switch {
	case name == "" && required:
		return "", refuse(402, "Missing name")
	case !readable(name):
		return "", refuse(402, "Malformed name")
	}
	return name, nil
}

// data is a JSON object, without blanks; nil if it is not given.
func (q *Request) data() (json.RawMessage, error) {
	text, ok := q.Params["data"]
	if !ok || text == "" {
		return nil, nil
	}
	raw := []byte(text)
	var object map[string]json.RawMessage
	if strict.Check(raw) != nil || json.Unmarshal(raw, &object) != nil || object == nil {
		return nil, refuse(402, "Data is not a valid JSON Object")
	}
	if len(raw) > job.MaxMessage {
		return nil, refuse(402, "Data has more than %d bytes", job.MaxMessage)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return nil, refuse(402, "Data is not a valid JSON Object")
	}
	return b.Bytes(), nil
}

// priority is one of those that Bedrock has; nil if it is not given.
func (q *Request) priority() (*int, error) {
	text, ok := q.Params["jobpriority"]
	if !ok || text == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil, n != 0 && n != 250 && n != 500 && n != 750 && n != 850 && n != 1000:
		return nil, refuse(402, "Invalid priority value")
	}
	return &n, nil
}

// flag is one that is true or false.
func (q *Request) flag(name string, otherwise bool) (bool, error) {
	switch strings.ToLower(q.Params[strings.ToLower(name)]) {
	case "":
		return otherwise, nil
	case "true", "1", "yes":
		return true, nil
	case "false", "0", "no":
		return false, nil
	}
	return false, refuse(402, "Malformed %s", name)
}

// layouts are how times are written, in UTC.
var layouts = []string{time.DateTime, time.DateOnly}

// at is a time; zero if it is not given.
func (q *Request) at(name string) (time.Time, error) {
	text := q.Params[strings.ToLower(name)]
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, refuse(402, "Malformed %s", name)
}

// whole is a number of no less than least and no more than most; ok tells whether it is given.
func (q *Request) whole(name string, least, most int64) (n int64, ok bool, err error) {
	text := q.Params[strings.ToLower(name)]
	if text == "" {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, false, refuse(402, "Malformed %s: use %d to %d", name, least, most)
	}
	return n, true, nil
}

// repeatOf is when a job runs again that is described so.
func repeatOf(text string, now time.Time) (*job.Repeats, error) {
	r := job.RepeatRule{Schedule: text}
	if tag, _, ok := strings.Cut(text, ":"); ok && schedule.Kind(tag) != schedule.Repeat {
		return nil, refuse(402, "Malformed repeat")
	}
	all, err := r.Repeats(now)
	if err != nil {
		return nil, refuse(402, "Malformed repeat")
	}
	return all, nil
}

// repeat is that of a request; nil if it is not given.
func (q *Request) repeat(now time.Time) (*job.Repeats, error) {
	if q.Params["repeat"] == "" {
		return nil, nil
	}
	return repeatOf(q.Params["repeat"], now)
}

// spanOf reads a time such as +5 SECONDS.
func spanOf(text string) (time.Duration, error) {
	words := strings.Fields(text)
	if len(words) == 3 && words[0] == "+" {
		words = []string{"+" + words[1], words[2]}
	}
	units := map[string]time.Duration{"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour, "DAY": 24 * time.Hour}
	if len(words) == 2 && strings.HasPrefix(words[0], "+") {
		unit := units[strings.TrimSuffix(strings.ToUpper(words[1]), "S")]
		n, err := strconv.ParseUint(words[0][1:], 10, 20)
		if err == nil && n > 0 && unit > 0 {
			return time.Duration(n) * unit, nil //nolint:gosec // 20 bits
		}
	}
	return 0, refuse(402, "Malformed retryAfter")
}

// retryAfter is how long a client may have the job before another one gets it, as it is written; empty if it is not given.
func (q *Request) retryAfter() (string, error) {
	text := q.Params["retryafter"]
	if text == "" {
		return "", nil
	}
	_, err := spanOf(text)
	return text, err
}

// waits tells whether the client waits for a job.
func (q *Request) waits() bool { return strings.EqualFold(q.Params["connection"], "wait") }

// Subject is which job the request is about, for people: the jobID, or the name of one that is to be created.
func (q *Request) Subject() string {
	text := cmp.Or(q.Params["jobid"], q.Params["name"])
	return strings.ToValidUTF8(text[:min(len(text), maxName)], "")
}
