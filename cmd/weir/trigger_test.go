package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/worker"
)

// serving runs the components of the CLI on a Redis until the test ends.
func serving(t *testing.T, url string) {
	t.Helper()
	s := enginetest.Open(t, redisstore.Config{URL: url})
	e, err := worker.New(worker.Config{Store: s, Workers: (&graphFlags{}).workers(), Logger: slog.New(slog.DiscardHandler)})
	enginetest.Check(t, err)
	enginetest.Check(t, e.Register(t.Context()))
	enginetest.Run(t, e.Run)
}

// triggerOf reads a trigger as JSON, which the schema allows.
func triggerOf(t *testing.T, url, name string) (s trigger.Status) {
	t.Helper()
	text := weir(t, url, "trigger", "show", name, "-o", "json")
	enginetest.Check(t, json.Unmarshal([]byte(text), &s))
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = schemaOf(t)("trigger").Validate(v)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	return s
}

// TestTrigger: a trigger is made, shown, paused, changed, fired and deleted.
func TestTrigger(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	serving(t, url)
	file := filepath.Join(t.TempDir(), "sum.yaml")
	text, err := os.ReadFile("testdata/sum.yaml")
	if err == nil {
		err = os.WriteFile(file, append(text, "\nunique: {for: 30s}\n"...), 0o600)
	}
	enginetest.Check(t, err)
	weir(t, url, "trigger", "add", "every day at 9am", "--zone", "Europe/Berlin", "--type", "map", "--args", `{"expr":"it.n"}`, "--alias", "daily", "--parallel", "2")
	weir(t, url, "trigger", "add", "--graph", file, "--alias", "sums", "--throttle", "10ms")
	weir(t, url, "trigger", "add", "in 1s", "--type", "map", "--args", `{"expr":"it.n"}`, "--alias", "once")

	if u := triggerOf(t, url, "sums").Definition.Launch.Unique; u == nil || u.Key != "" || time.Duration(u.For) != 30*time.Second {
		t.Errorf("the file says that trees are unique, the trigger %+v", u)
	}
	s := triggerOf(t, url, "daily")
	if len(s.Next) != 5 || s.Kind != trigger.Scheduled || s.Understood == "" || s.Definition.Limits.Parallel != 2 || s.Definition.Schedule != "natural:every day at 9am" {
		t.Errorf("the trigger is %+v", s)
	}
	for _, c := range []struct {
		line string
		ok   func(s trigger.Status) bool
	}{
		{"pause daily", func(s trigger.Status) bool { return s.Paused && len(s.Next) == 0 }},
		{"fire daily --payload {\"n\":7}", func(s trigger.Status) bool { return s.Firings == 1 && s.Launches == 1 && s.Last != nil }},
		{"resume daily", func(s trigger.Status) bool { return !s.Paused && len(s.Next) == 5 }},
		{"change daily @hourly --zone= --parallel 0 --missed skip", func(s trigger.Status) bool {
			return s.Definition.Missed == "skip" && s.Definition.Limits.Parallel == 0 && s.Definition.Launch.Type == "map" && s.Definition.Zone == ""
		}},
		{"change daily --unique-key k --unique-for 1h", func(s trigger.Status) bool {
			u := s.Definition.Launch.Unique
			return u != nil && u.Key == "k" && time.Duration(u.For) == time.Hour
		}},
	} {
		weir(t, url, append([]string{"trigger"}, strings.Fields(c.line)...)...)
		enginetest.Until(t, c.line, func() bool { return c.ok(triggerOf(t, url, "daily")) })
		if why := weir(t, url, "why", "daily"); strings.HasPrefix(c.line, "pause") && !strings.Contains(why, "$ weir trigger resume daily") {
			t.Errorf("weir why of a paused trigger:\n%s", why)
		}
	}
	for _, spec := range []string{"every:1h", "every:2h", "every:2h"} { // what is declared is changed where it is another one
		weir(t, url, "trigger", "add", spec, "--type", "map", "--args", `{"expr":"it.n"}`, "--alias", "declared", "--patch")
		enginetest.Until(t, "the trigger is as declared", func() bool {
			s := triggerOf(t, url, "declared")
			return s.Pending == 0 && s.Definition.Schedule == spec
		})
	}
	for _, same := range [][]string{{"trigger", "change", "daily"}, {"trigger", "change", "daily", "--missed", "skip"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"--redis", url}, same...), &stderr, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "is so already: give it") {
			t.Errorf("%v: exit code %d, %s", same, code, stderr.String())
		}
	}
	enginetest.Until(t, "the one fires once, and completes", func() bool {
		s := triggerOf(t, url, "once")
		return s.Firings == 1 && s.Status.Settled()
	})
	for _, command := range []string{"tree", "why"} {
		if got := weir(t, url, command, "daily"); !strings.Contains(got, map[string]string{"tree": "next run in ", "why": "waits for its time, which is in "}[command]) {
			t.Errorf("weir %s:\n%s", command, got)
		}
	}
	list := weir(t, url, "trigger", "list")
	if !strings.Contains(list, "daily") || !strings.Contains(list, "webhook") || strings.Contains(list, "once") {
		t.Errorf("the list:\n%s", list)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"list"}, `(?m)^daily +cron:@hourly +in (1h0m|(\d+m)?\d+s) +`},
		{[]string{"list", "--time", "iso"}, `(?m)^daily +cron:@hourly +\d{4}-\d\d-\d\dT\d\d:00:00Z +`},
		{[]string{"list", "-o", "json"}, `"\d{4}-\d\d-\d\dT\d\d:00:00Z"`},
		{[]string{"show", "daily"}, `(?m)^next +\d{4}-\d\d-\d\dT\d\d:00:00Z, in (1h0m|(\d+m)?\d+s)$`},
		{[]string{"show", "daily", "--time", "iso"}, `(?m)^next +\d{4}-\d\d-\d\dT\d\d:00:00Z$`},
	} {
		if text := weir(t, url, append([]string{"trigger"}, c.args...)...); !regexp.MustCompile(c.want).MatchString(text) {
			t.Errorf("weir trigger %v does not match %s:\n%s", c.args, c.want, text)
		}
	}
	if all := weir(t, url, "trigger", "list", "--all"); !strings.Contains(all, "once") {
		t.Errorf("the list of all:\n%s", all)
	}
	if shown := weir(t, url, "trigger", "show", "daily"); !strings.Contains(shown, "once, 1 tree launched") || !strings.Contains(shown, "next") {
		t.Errorf("shown:\n%s", shown)
	}
	weir(t, url, "trigger", "delete", "daily")
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--redis", url, "trigger", "show", "daily"}, &stderr, &stderr); code != exitNotFound {
		t.Errorf("showing one that is deleted: exit code %d, %s", code, stderr.String())
	}
}

// TestWhyOfFullTrigger: why names the limit that keeps a trigger from firing, and goes on to the tree that holds its place.
func TestWhyOfFullTrigger(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	serving(t, url)
	file := filepath.Join(t.TempDir(), "stuck.yaml")
	enginetest.Check(t, os.WriteFile(file, []byte("weir: 1\nnodes: {list: {type: collect, queue: nobody}}\ninputs: {in: list.in}\noutputs: {out: list.out}\n"), 0o600))
	weir(t, url, "trigger", "add", "--graph", file, "--alias", "hook", "--parallel", "1")
	weir(t, url, "send", "hook", "in", "1", "2", "3")
	enginetest.Until(t, "it has launched a tree, whose job no engine runs", func() bool { return len(triggerOf(t, url, "hook").Running) == 1 })
	running := string(triggerOf(t, url, "hook").Running[0])
	enginetest.Until(t, "why names the tree", func() bool {
		var why []explain.Because
		enginetest.Check(t, json.Unmarshal([]byte(weir(t, url, "why", "hook", "-o", "json")), &why))
		return len(why) > 1 && strings.Contains(why[0].Text, "2 firings wait, as 1 of 1 trees") && strings.Contains(why[0].Text, running) &&
			string(why[1].Job) == running && why[1].Level == 1
	})
}

// TestTriggerDocs: the commands of docs/triggers.md do what they say, one after the other.
func TestTriggerDocs(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	url := redistest.Start(t).URL()
	serving(t, url)
	page, err := os.ReadFile("docs/triggers.md")
	enginetest.Check(t, err)
	n := 0
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[2]) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "weir ")
			if block[1] != "sh" || !ok {
				continue
			}
			weir(t, url, wordsOf(command)...)
			n++
		}
	}
	if n < 15 {
		t.Errorf("it has %d commands", n)
	}
	for _, name := range []string{"import", "deploy", "report"} {
		enginetest.Until(t, name+" has fired", func() bool { return triggerOf(t, url, name).Launches == 1 })
	}
	if s := triggerOf(t, url, "words"); string(s.Definition.Launch.Params["top"]) != "4" || s.Definition.Limits.Overflow != trigger.Drop {
		t.Errorf("%+v", s.Definition)
	}
	for name, want := range map[string]string{"words": "launches graph words top=4\n", "deploy": `launches map {"expr":"it"}` + "\n"} {
		if got := weir(t, url, "trigger", "show", name); !strings.Contains(got, want) {
			t.Errorf("shown:\n%s\nwant %s", got, want)
		}
	}
	for line, want := range map[string]string{
		"trigger add --type map --alias deploy --args {\"expr\":\"it.x\"}": "weir trigger change deploy",
		"trigger add --type map --alias other --args {\"expr\":\"it+\"}":   "expr",
		"trigger add --type map --args {\"expr\":\"it\"} --priority 2000":  "priority 2000: use 0",
		"priority deploy 2000": "invalid value: priority 2000: use 0",
		"publish /files/new":   "nothing to publish",
		"publish files 1":      "channel",
	} {
		var stderr bytes.Buffer
		code := run(t.Context(), append([]string{"--redis", url}, strings.Fields(line)...), &stderr, &stderr)
		if said := stderr.String(); code == 0 || !strings.Contains(said, want) || strings.Contains(said, "job.") || strings.Contains(said, "invalid name: priority") {
			t.Errorf("weir %s: exit code %d, %s", line, code, said)
		}
	}
}

// TestTriggerRefused: what is wrong with a trigger is said at once, with exit code 2.
func TestTriggerRefused(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	for line, want := range map[string]string{
		"add":                                   "--type or --graph",
		"add 61:00 --type map":                  "",
		"add @hourly --channel /a --type map":   "one of them",
		"add --type map --graph x.yaml":         "use one of them",
		"add --type map --args {":               "not valid JSON",
		"add @hourly --type map --missed never": "missed",
		"add --type map --waiting 3":            "parallel",
		"add --type map --filter it+":           "filter",
		"fire one --payload {":                  "not valid JSON",
		"show one --next -1":                    "--next -1",
	} {
		var stderr bytes.Buffer
		args := append([]string{"--redis", url, "trigger"}, strings.Fields(line)...)
		if code := run(t.Context(), args, &stderr, &stderr); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("weir trigger %s: exit code %d, %s", line, code, stderr.String())
		}
	}
}

// TestTriggerWithoutEngine: a trigger that nobody could end says so at once, and one of a schedule refuses what is sent to it.
func TestTriggerWithoutEngine(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	store := enginetest.Open(t, redisstore.Config{URL: url})
	enginetest.Check(t, store.Register(t.Context(), []job.TypeInfo{{Type: "T", Queue: job.DefaultQueue}}))
	weir(t, url, "trigger", "add", "@daily", "--type", "T", "--alias", "daily")
	weir(t, url, "trigger", "add", "--channel", "/files", "--type", "T", "--alias", "import")
	weir(t, url, "trigger", "add", "--type", "T", "--alias", "hook")
	weir(t, url, "send", "hook", "in", "1")
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"send daily in 1", "fires at the times of its schedule, not for messages that are sent to it; to have it fire now use fire: weir trigger fire", exitUsage},
		{"send import in 1", "fires for what is published to /files", exitUsage},
		{"trigger change hook @daily", "it is a webhook", exitUsage},
		{"trigger delete daily", " fires no more, but is not deleted yet: no engine runs that could end it: start one, as with weir worker, and delete it again\n", exitRefused},
	} {
		var out bytes.Buffer
		began := time.Now()
		if code := run(t.Context(), append([]string{"--redis", url}, strings.Fields(c.args)...), &out, &out); code != c.code || !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), "not possible") {
			t.Errorf("weir %s: exit code %d, %s", c.args, code, &out)
		}
		if took := time.Since(began); took > deletion/2 {
			t.Errorf("weir %s took %s", c.args, took)
		}
	}
}
