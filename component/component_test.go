package component_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

// table is what the package documentation says of a component.
func table(d Doc) string {
	var ports, params []string
	for _, dir := range []port.Dir{port.Input, port.Output} {
		var names []string
		for _, p := range d.Ports {
			if p.Dir == dir {
				names = append(names, p.Name)
			}
		}
		if len(names) == 0 {
			names = []string{"-"}
		}
		ports = append(ports, strings.Join(names, " "))
	}
	for _, p := range d.Params {
		params = append(params, p.Name)
	}
	return fmt.Sprintf("%-15s %-17s %s", d.Type, strings.Join(ports, " > "), strings.Join(params, " "))
}

// TestDoc: the table in doc.go is what the components are.
func TestDoc(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, d := range docs {
		fmt.Fprintf(&want, "//\t%s\n", strings.TrimSpace(table(d)))
		if d.Summary == "" || strings.ContainsAny(d.Summary, "\n.") || len(d.Summary) > 80 {
			t.Errorf("%s: summary %q", d.Type, d.Summary)
		}
		for _, p := range d.Params {
			if p.Name == "" || p.Doc == "" || p.Type == "" {
				t.Errorf("%s: parameter %+v", d.Type, p)
			}
		}
	}
	if !strings.Contains(string(text), want.String()) {
		t.Errorf("doc.go must have:\n%s", want.String())
	}
}

// TestPageIsCurrent: docs/components.md is what the components are.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/components.md")
	if err != nil {
		t.Fatalf("%v; run: go generate ./component", err)
	}
	want, err := Markdown()
	if err != nil {
		t.Fatal(err)
	}
	// A checkout may have changed the line ends.
	if strings.ReplaceAll(string(page), "\r\n", "\n") != want {
		t.Error("docs/components.md is out of date; run: go generate ./component")
	}
}

// TestPureComponents: only those that do nothing outside Weir, and read nothing there, say that they are pure.
func TestPureComponents(t *testing.T) {
	t.Parallel()
	docs, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	for _, d := range docs {
		if !d.Pure {
			others = append(others, d.Type)
		}
	}
	if want := []string{"exec", "http_request", "read_file", "write_file"}; !slices.Equal(others, want) {
		t.Errorf("not pure are %v, want %v", others, want)
	}
}

// TestParamsHaveDocs: every parameter that a job can have is in the catalogue.
func TestParamsHaveDocs(t *testing.T) {
	t.Parallel()
	docs, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	e := weirtest.New(t, All(Policy{})...)
	for _, d := range docs {
		_, err := e.Client().Create(t.Context(), job.New{Type: d.Type, Args: map[string]any{"no such": 1}})
		if !errors.Is(err, port.ErrParams) {
			t.Fatalf("%s takes any parameter: %v", d.Type, err)
		}
		_, listed, ok := strings.Cut(err.Error(), "use one of: ")
		if !ok {
			continue // it guesses which one was meant, or there are none
		}
		var names []string
		for _, p := range d.Params {
			names = append(names, p.Name)
		}
		if want := strings.Join(names, ", "); listed != want {
			t.Errorf("%s has %s, the catalogue %s", d.Type, listed, want)
		}
	}
}

// TestCreatedByName: jobs created by the name of their type get the ports that their
// parameters name on demand.
func TestCreatedByName(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, All(Policy{})...)
	h, err := e.Client().Create(t.Context(), job.New{Type: "route", Args: map[string]any{
		"cases": []map[string]string{{"when": "it > 1", "to": "big"}}, "default": "small",
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "in", 1, 2)
	e.RunUntilIdle()
	if got := outputs(t, h, "big", "small"); !same(got, stream{"big": list("2"), "small": list("1")}) {
		t.Errorf("got %v", got)
	}
	z, err := e.Client().Create(t.Context(), job.New{Type: "zip", Args: map[string]any{"from": []string{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	e.Feed(z, "b", 1, 2)
	e.Feed(z, "a", 3)
	e.RunUntilIdle()
	if got := outputs(t, z, "out"); !same(got, stream{"out": list("[3,1]")}) || e.Status(z) != statemachine.Suspended {
		t.Errorf("got %v, the job is %s", got, e.Status(z))
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, All(Policy{})...)
	for _, c := range []struct {
		c    Component
		says string
	}{
		{&Map{}, "expr: the expression is missing"},
		{&Map{Expr: "it +", OnError: "explode"}, `on_error "explode": use fail, skip, err`},
		{&Map{Expr: "it.x +"}, `expression "it.x +": unexpected token EOF (line 1, column 6)`},
		{&Map{Expr: "it + acc"}, "unknown name acc (line 1, column 6)"},
		{&Map{Expr: strings.Repeat("1+", 20_000) + "1"}, "the expression has 40001 bytes"},
		{&Map{Expr: strings.Repeat("1+", 2000) + "1"}, "exceeds"},
		{&Filter{Expr: "\nit ? "}, "(line 2, column"},
		{&FlatMap{Expr: "("}, "expr: expression"},
		{&Route{}, "cases is missing"},
		{&Route{Cases: []Case{{"it >", "a b"}}, Default: "err"}, "when of case 1: "},
		{&Route{Cases: []Case{{"it >", "a b"}}, Default: "err"}, `to and default: invalid port name "a b"`},
		{&Route{Cases: []Case{{"true", "a"}}, Default: "err"}, `port "err" has another use`},
		{&Tee{}, "to: name at least 1 ports"},
		{&Tee{To: []string{"a", "a"}}, `port "a" is named twice`},
		{&Merge{From: []string{"in"}}, `port "in" has another use`},
		{&MergeOrdered{}, "from: name at least 1"},
		{&MergePriority{}, "from: name at least 1"},
		{&MergeSorted{From: []string{"a"}, By: "it."}, "by: expression"},
		{&Zip{From: []string{"a"}, Rest: "keep"}, `rest "keep": use drop, fail, pad`},
		{&Join{Kind: "cross", MaxRows: -1}, "left_key: the expression is missing; right_key: the expression is missing; kind \"cross\": use inner, left, right, outer; max_rows -1 is negative"},
		{&Batch{Size: -1, MaxWait: Duration(time.Microsecond)}, "size -1 is negative; max_wait 1µs: use a positive number of whole milliseconds"},
		{&Collect{MaxItems: -1}, "max_items -1 is negative"},
		{&Window{}, "give either every or count"},
		{&Window{Every: Duration(time.Second), Count: 1}, "give either every or count"},
		{&Window{Count: 2, Step: 3}, "step 3 is more than count"},
		{&Window{Every: Duration(time.Second), Slide: Duration(time.Minute)}, "slide 1m0s is longer than every"},
		{&Reduce{Expr: "acc", Seed: json.RawMessage("{"), Emit: "never"}, "seed: wrong encoding"},
		{&Dedupe{Key: "it.", Capacity: -1}, "capacity -1 is negative"},
		{&Throttle{}, "rate 0: let at least 1 message pass"},
		{&Delay{}, "by is missing"},
		{&Ticker{Missed: "no"}, "every is missing"},
		{&Every{Missed: "no"}, `every is missing; missed "no": use one, skip, all or a number from 1 to 10000`},
		{&Every{Every: Duration(1500 * time.Millisecond)}, `every "1.5s": 1.5s is not a whole number of seconds`},
		{&Cron{Count: -1}, "schedule is missing; count -1 is negative"},
		{&Cron{Schedule: "0 0 30 2 *"}, `schedule: cron "0 0 30 2 *": day of month: day 30 never comes in February`},
		{&Cron{Schedule: "repeat:FINISHED, +1 DAY"}, "repeat counts from the runs of a job that repeats"},
		{&Cron{Schedule: "natural:evry day", Missed: "0"}, `"evry" is not understood`},
		{&Cron{Schedule: "* * * * *", Zone: "Mars"}, `"Mars" is not a time zone`},
		{&Debounce{Keep: "some"}, `wait is missing; keep "some": use last, first, all`},
		{&Debounce{Wait: Duration(time.Minute), MaxWait: Duration(time.Second)}, "max_wait 1s is shorter than wait"},
		{&Emit{Items: []json.RawMessage{json.RawMessage("1"), json.RawMessage("x")}}, "items[1]: wrong encoding"},
		{&ReadFile{Format: "xml", Comma: "ab"}, `format "xml": use lines, csv, jsonl; comma "ab": use one character`},
		{&WriteFile{Path: "a.gz"}, "compressed files cannot be written"},
		{&WriteFile{Mode: "x", Columns: []string{"a", "a"}}, `path is missing; mode "x": use create, append, truncate; columns: "a" is named twice`},
		{&HTTPRequest{URL: "x", Method: "a b", MaxBody: 2 << 20, MaxRedirects: -2}, `url: url "x": use http://host/`},
		{&HTTPRequest{Headers: map[string]string{"Content-Length": "5"}}, "header Content-Length follows from the request"},
		{&Exec{Input: "xml", Env: map[string]string{"A=B": ""}}, `program is missing; input "xml": use json, text; env: "A=B" cannot`},
		{&Each{Parallel: 1000, Queue: "a b"}, "type is missing; invalid name: queue"},
		{&Each{Type: "x", Input: "a b"}, `input: invalid port name "a b"`},
	} {
		err := c.c.Validate()
		if !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.c.JobType(), err, c.says)
		}
		if _, is := c.c.(*Each); is {
			continue // it would not get so far
		}
		plan, err := job.Single(c.c, "").Plan()
		if err != nil || plan.Validate() != nil {
			continue // refused before it is created
		}
		h := e.StartWorker(c.c)
		e.RunUntilIdle()
		if fs := e.Failures(h); len(fs) != 1 || !strings.Contains(fs[0].Error, c.says) {
			t.Errorf("%s: the first run fails with %v, want %q", c.c.JobType(), fs, c.says)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	var d Duration
	if err := json.Unmarshal([]byte(`"1.5s"`), &d); err != nil || d != Duration(1500*time.Millisecond) {
		t.Errorf("got %v, %v", d, err)
	}
	if raw, err := json.Marshal(d); err != nil || string(raw) != `"1.5s"` {
		t.Errorf("got %s, %v", raw, err)
	}
	if err := json.Unmarshal([]byte(`"fast"`), &d); err == nil || !strings.Contains(err.Error(), `write it like "1.5s"`) {
		t.Errorf("got %v", err)
	}
}

// TestJoinGoesOn: pairing one message takes several commits, and fails in between.
func TestJoinGoesOn(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Join{})
	h := e.StartWorker(&Join{LeftKey: "1", RightKey: "1"})
	var rows, want []string
	for i := range 1500 {
		rows = append(rows, fmt.Sprint(i))
		want = append(want, fmt.Sprintf(`{"key":1,"left":%d,"right":"r"}`, i))
	}
	e.Feed(h, "left", raws(rows)...)
	e.RunUntilIdle()
	row := weirtest.State[json.RawMessage](e, h, "row.1200")
	if err := h.UnsetState(t.Context(), "row.1200"); err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "right", "r")
	e.RunUntilIdle()
	if fs := e.Failures(h); len(fs) != 1 || fs[0].Error != `the state has lost "row.1200": somebody removed it` {
		t.Fatalf("got %v", fs)
	}
	got := outputs(t, h, "out")["out"]
	if len(got) == 0 {
		t.Fatal("nothing was committed before the failure")
	}
	if err := h.SetState(t.Context(), map[string]any{"row.1200": row}); err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "left", 1500) // it is paired too: it comes before the message that is half done
	want = append(want, `{"key":1,"left":1500,"right":"r"}`)
	if err := h.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.RunUntilIdle()
	if got = append(got, outputs(t, h, "out")["out"]...); !slices.Equal(got, want) {
		t.Errorf("got %d pairs, want %d in order; the last is %v", len(got), len(want), got[len(got)-1])
	}
	e.Feed(h, "right", "s")
	e.RunUntilIdle()
	if got := outputs(t, h, "out")["out"]; len(got) != len(want) {
		t.Errorf("the next message has %d partners, want %d", len(got), len(want))
	}
}

// TestManyKeys: states of more keys than travel with a run, results of more than a commit.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	const n = 2300
	var in, reduced, deduped []string
	for i := range n {
		in = append(in, fmt.Sprint(i%(n-100)))
	}
	for i := range n - 100 {
		count := 1
		if i < 100 {
			count = 2
		}
		reduced = append(reduced, fmt.Sprintf(`{"key":%d,"value":%d}`, i, count))
		deduped = append(deduped, fmt.Sprint(i))
	}
	for _, c := range []struct {
		c    Component
		want []string
	}{{&Reduce{Expr: "acc + 1", Seed: json.RawMessage("0"), Key: "it"}, reduced}, {&Dedupe{}, deduped}} {
		got, failure := play(t, c.c, stream{"in": in})
		if failure != "" || !slices.Equal(got["out"], c.want) {
			t.Errorf("%s: got %d results, want %d; %s", c.c.JobType(), len(got["out"]), len(c.want), failure)
		}
	}
}
