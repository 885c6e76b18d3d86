package explain_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// said is what is said of a job, with commands behind $.
func said(t *explain.Tree, id job.ID) string {
	var b strings.Builder
	for _, r := range t.Why(id) {
		indent := strings.Repeat("  ", r.Level)
		fmt.Fprintf(&b, "%s%s\n", indent, r.Text)
		if r.Command != "" {
			fmt.Fprintf(&b, "%s  $ %s\n", indent, r.Command)
		}
	}
	return b.String()
}

func check(t *testing.T, what, got, want string) {
	t.Helper()
	want = strings.TrimPrefix(want, "\n")
	if got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

func in(name string, p job.PortInfo) job.PortInfo {
	p.Name, p.Dir = name, port.Input
	return p
}

func out(name string, to ...job.PortRef) job.PortInfo {
	p := job.PortInfo{Spec: port.Spec{Name: name, Dir: port.Output}}
	for _, end := range to {
		p.Wired = true
		p.Edges = append(p.Edges, []job.PortRef{end})
	}
	return p
}

func to(id job.ID, name string) job.PortRef { return job.PortRef{Job: id, Dir: port.Input, Port: name} }

// hourly is a repetition that has not begun.
func hourly(t *testing.T) *job.Repeats {
	t.Helper()
	r, err := (&job.RepeatRule{Schedule: "every:1h"}).Repeats(noon)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOneJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		info job.Info
		want string
	}{
		{job.Info{Status: statemachine.Running, Ran: noon.Add(-time.Minute)}, "job line/step has been running for 1m\n"},
		{
			job.Info{Status: statemachine.Queued, Queued: noon.Add(-time.Second), Reason: "nobody came\nyet"},
			"job line/step has been ready for 1s and waits for an engine (nobody came …)\n  it must serve queue slow and have type Step\n    $ weir types\n",
		},
		{
			job.Info{Status: statemachine.Queued, Queued: noon, Next: noon.Add(20 * time.Second), Reason: "rate: it ran 3 times this minute"},
			"job line/step is throttled: it ran 3 times this minute, as often as MaxRunsPerMinute of its type allows; it goes on in 20s, at 12:00:20Z\n",
		},
		{
			job.Info{Status: statemachine.Queued, Queued: noon, Next: noon.Add(20 * time.Second), Reason: "rate: it ran 600 times this minute in a row, and read, wrote and spawned nothing"},
			"job line/step is throttled: it ran 600 times this minute in a row, and read, wrote and spawned nothing: its worker should ask for a later run (WakeAfter); it goes on in 20s, at 12:00:20Z\n",
		},
		{ // it has a timer besides
			job.Info{Status: statemachine.Queued, Queued: noon.Add(-time.Second), Next: noon.Add(time.Hour), Reason: "limit: type:Step has no free place"},
			"job line/step has been ready for 1s and waits for a place of limit type:Step:\n  $ weir limits\n",
		},
		{job.Info{Status: statemachine.Failed, Ran: noon.Add(-time.Hour), Reason: "boom\nstack", Tries: 1}, "job line/step failed 1h ago: boom …\n  $ weir retry t.1\n"},
		{
			job.Info{Status: statemachine.Failed, Ran: noon.Add(-time.Hour), Reason: "boom", Tries: 22},
			"job line/step failed 1h ago, for the 22nd time in a row: boom\n  $ weir retry t.1\n",
		},
		{
			job.Info{Status: statemachine.Scheduled, Next: noon.Add(time.Hour), Ran: noon.Add(-time.Second), Tries: 11, Reason: "boom"},
			"job line/step failed 1s ago, for the 11th time in a row: boom; its next try is in 1h0m, at 13:00:00Z; to run it now:\n  $ weir run t.1\n",
		},
		{
			job.Info{Status: statemachine.Scheduled, Next: noon.Add(50 * time.Hour)},
			"job line/step waits for its time, which is in 2d2h, at 2026-11-23T14:00:00Z; to run it now:\n  $ weir run t.1\n",
		},
		{
			job.Info{Status: statemachine.Scheduled, Next: noon.Add(time.Hour), Repeat: hourly(t), Ports: []job.PortInfo{in("in", job.PortInfo{Closed: true}), in("more", job.PortInfo{})}},
			"job line/step waits for its time, which is in 1h0m, at 13:00:00Z; to run it now:\n  $ weir run t.1\n" +
				"port in was closed: the runs to come read what waits in it, and get no more messages\nit repeats (every:1h)\n",
		},
		{
			job.Info{Status: statemachine.Running, Created: noon.Add(-time.Minute), Ran: noon.Add(-time.Minute), Repeat: hourly(t)},
			"job line/step has been running for 1m\nit repeats (every:1h): the run after this one is due in 59m0s, at 12:59:00Z\n",
		},
		{
			job.Info{Status: statemachine.Failed, Ran: noon.Add(-time.Minute), Reason: "boom", Repeat: hourly(t)},
			"job line/step failed 1m ago, and repeats no more until it is retried: boom\n  $ weir retry t.1\nit repeats (every:1h) when it has been retried and completed\n",
		},
		{job.Info{Status: statemachine.Waiting, SequentialKey: "k"}, "job line/step begins when its tree does, which waits until the tree that holds the sequential key k is over\n"},
		{
			job.Info{Status: statemachine.Running, Ran: noon.Add(-2 * time.Second), Crashes: 5},
			"job line/step has been running for 2s; its last 5 runs ended without a word: their processes died, or were cut off; look at what they printed\n",
		},
		{
			job.Info{Status: statemachine.Queued, Queued: noon, Reason: `no worker of type "Step" in the engine that took it last`},
			"job line/step has been ready for 0s and waits for an engine that has type Step\n" +
				"  it must serve queue slow and have type Step\n    $ weir types\n",
		},
		{
			job.Info{Status: statemachine.Suspended, Ran: noon.Add(-time.Minute), Ports: []job.PortInfo{in("in", job.PortInfo{Fed: true, Closed: true})}},
			"job line/step sleeps, since its last run 1m ago, though all its inputs have ended: its last run asked to (worker.ErrSuspend); " +
				"a run that returns nil completes it; to run it again:\n  $ weir run t.1\n",
		},
		{
			job.Info{Status: statemachine.Completed, Ports: []job.PortInfo{in("in", job.PortInfo{Waiting: 2, Closed: true})}},
			"job line/step is completed: its last run returned, and left 2 messages unread in its port in\n",
		},
		{job.Info{Status: statemachine.Terminated}, "job line/step is terminated; to make it run again:\n  $ weir run t.1 --force\n"},
		{
			job.Info{Status: statemachine.Terminating},
			"job line/step is about to end: its Shutdown has not run yet\n  it must serve queue slow and have type Step\n    $ weir types\n",
		},
		{
			job.Info{Status: statemachine.Completed, Ports: []job.PortInfo{in("in", job.PortInfo{}), {Spec: port.Spec{Name: "out", Dir: port.Output}, Waiting: 1}}},
			`
job line/step is completed: it has worked on all it got
a message to its port in would wake it:
  $ weir send t.1 in MESSAGE
1 message waits in its port out for somebody to read:
  $ weir read t.1 out --all
`,
		},
		{
			job.Info{Status: statemachine.Suspended, Ran: noon.Add(-time.Minute), Next: noon.Add(time.Second), Ports: []job.PortInfo{
				in("alone", job.PortInfo{}), in("closed", job.PortInfo{Closed: true}), in("*", job.PortInfo{}), in("set", job.PortInfo{Spec: port.Spec{Default: json.RawMessage("1")}}),
				in("heard", job.PortInfo{Spec: port.Spec{Channels: []string{"/orders"}}}),
			}},
			`
job line/step waits for a timer, which is in 1s, at 12:00:01Z; to run it now:
  $ weir run t.1
job line/step waits, since its last run 1m ago, for messages on port alone, which nobody is wired to:
  $ weir send t.1 alone MESSAGE
or, if nothing more is to come:
  $ weir send t.1 alone --close
job line/step waits, since its last run 1m ago, for messages on port heard, which come from channel /orders
`,
		},
		{
			job.Info{Status: statemachine.Suspended, Ran: noon.Add(-time.Minute), Ports: []job.PortInfo{in("in", job.PortInfo{Fed: true, Closed: true, Waiting: 3})}},
			"job line/step sleeps, since its last run 1m ago, while 3 messages wait unread in its port in, which is closed; to run it now:\n  $ weir run t.1\n",
		},
		{job.Info{Status: statemachine.Suspended}, "job line/step sleeps until somebody asks for a run\n  $ weir run t.1\n"},
		{job.Info{Status: statemachine.Suspended, Blocked: true, Reason: "full: port in of job t.9"}, "job line/step is suspended because of this: full: port in of job t.9\n"},
	} {
		c.info.ID, c.info.Parent, c.info.Name, c.info.Type, c.info.Queue = "t.1", "t", "step", "Step", "slow"
		tree := []*job.Info{{ID: "t", Type: "line", Graph: true, Status: statemachine.Suspended}, &c.info}
		check(t, string(c.info.Status), said(explain.NewTree(tree, noon), "t.1"), c.want)
	}
}

// An engine is missing in several ways.
func TestEngines(t *testing.T) {
	t.Parallel()
	tree := []*job.Info{{ID: "t", Type: "map", Queue: "slow", Status: statemachine.Queued, Queued: noon}}
	const head = "job map has been ready for 0s and waits for an engine\n"
	known := []job.TypeInfo{{Type: "map", Queue: "slow"}}
	for _, c := range []struct {
		engines    int
		types      []job.TypeInfo
		components []string
		want       string
	}{
		{0, nil, nil, "  no engine has ever registered type map for queue slow: start the program that has it, or store its code with weir handler set map\n    $ weir types\n"},
		{1, nil, []string{"map"}, "  no engine has ever registered type map for queue slow: start one, or store its code with weir handler set map\n    $ weir worker --queue slow\n"},
		{0, known, nil, "  no engine serves queue slow now: start the program that has it\n"},
		{0, known, []string{"map"}, "  no engine serves queue slow now: start one\n    $ weir worker --queue slow\n"},
		{1, known, nil, "  1 engine serves queue slow: it takes the job when it has a slot free, if it has type map\n"},
		{2, known, nil, "  2 engines serve queue slow: one with type map takes the job when it has a slot free\n"},
	} {
		e := explain.NewTree(tree, noon)
		e.Engines, e.Types, e.Components = map[string]int{"slow": c.engines}, c.types, c.components
		check(t, fmt.Sprintf("%+v", c), said(e, "t"), head+c.want)
	}
}

// Of engines that live it is said which have the type.
func TestLivingEngines(t *testing.T) {
	t.Parallel()
	tree := []*job.Info{{ID: "t", Type: "map", Queue: "slow", Status: statemachine.Queued, Queued: noon}}
	slow := map[string]int{"slow": 1}
	for _, c := range []struct {
		living []store.EngineInfo
		want   string
	}{
		{
			[]store.EngineInfo{{Host: "a", PID: 1, Concurrency: 1, Queues: slow, Types: []string{"map"}}, {Host: "a", PID: 2, Concurrency: 1, Queues: slow}, {Host: "b", PID: 3, Types: []string{"map"}}},
			"1 engine with type map for queue slow: process 1 on a; it is run when it has a slot free",
		},
		{
			[]store.EngineInfo{{Host: "a", PID: 2, Concurrency: 1, Queues: slow}, {Queues: slow, Types: []string{"map"}, Stopping: true}},
			"of 2 engines that serve queue slow now, none has type map: start the program that has it",
		},
	} {
		e := explain.NewTree(tree, noon)
		e.Engines, e.Living, e.Types = map[string]int{"slow": 2}, c.living, []job.TypeInfo{{Type: "map", Queue: "slow"}}
		check(t, c.want, said(e, "t"), "job map has been ready for 0s and waits for an engine\n  "+c.want+"\n")
	}
	e := explain.NewTree(tree, noon)
	e.Engines, e.Living, e.Types = map[string]int{"slow": 1}, []store.EngineInfo{{Host: "a", PID: 2, Concurrency: 1, Queues: slow}}, []job.TypeInfo{{Type: "map", Queue: "slow"}}
	if got := said(e, "t"); !strings.Contains(got, "of 1 engine that serves queue slow now, none has type map") {
		t.Errorf("of one engine: %s", got)
	}
}

// Of engines that cannot decode what a job holds it is said why.
func TestEnginesThatCannotDecode(t *testing.T) {
	t.Parallel()
	needs := job.ParseNeeds("map@2!old", "")
	tree := []*job.Info{{ID: "t", Type: "map", Needs: &needs, Queue: "slow", Status: statemachine.Queued, Queued: noon, Reason: "it waits"}}
	slow := map[string]int{"slow": 1}
	one, two := []string{"map"}, map[string]int{"map": 2}
	first, refused := store.EngineInfo{Host: "a", PID: 1, Concurrency: 1, Queues: slow, Types: one}, store.EngineInfo{Host: "a", PID: 2, Concurrency: 1, Queues: slow, Types: one, Versions: two, Build: "old"}
	for want, living := range map[string][]store.EngineInfo{
		"of 2 engines that serve queue slow now, none can run the job, which needs type map (version 2) (process 1 on a has version 1 and process 2 on a could not): start a program that can, such as a newer one, or one with other settings": {first, refused},
		"1 engine with type map for queue slow: process 3 on a; it is run when it has a slot free": {first, {Host: "a", PID: 3, Concurrency: 1, Queues: slow, Types: one, Versions: two, Build: "new"}},
	} {
		e := explain.NewTree(tree, noon)
		e.Engines, e.Living, e.Types = map[string]int{"slow": 2}, living, []job.TypeInfo{{Type: "map", Queue: "slow"}}
		check(t, want, said(e, "t"), "job map has been ready for 0s and waits for an engine (it waits)\n  "+want+"\n")
	}
}

// A graph does not run again.
func TestTerminatedGraphs(t *testing.T) {
	t.Parallel()
	tree := []*job.Info{
		{ID: "t", Type: "line", Graph: true, Status: statemachine.Terminated},
		{ID: "t.1", Parent: "t", Name: "part", Graph: true, Status: statemachine.Terminated},
	}
	check(t, "root", said(explain.NewTree(tree, noon), "t"), "job line is terminated; a graph does not run again: start it anew, and remove this one:\n  $ weir delete t\n")
	check(t, "part", said(explain.NewTree(tree, noon), "t.1"), "job line/part is terminated; a graph does not run again: it goes with the graph that it is in\n")
	tree = append(tree, &job.Info{ID: "t.2", Parent: "t.1", Name: "a", Type: "map", Status: statemachine.Terminating, Token: "x", Ran: noon.Add(-20 * time.Second)})
	check(t, "ending", said(explain.NewTree(tree, noon), "t"), "job line is terminated, but jobs below it have not come to their end yet:\n"+
		"  job line/part/a is about to end: a run of it, which has lasted for 20s, finishes first\n")
}

// A job in a cycle waits for the end of its feedback when what else feeds it has ended.
func TestFeedback(t *testing.T) {
	t.Parallel()
	tree := []*job.Info{
		{ID: "t", Type: "line", Graph: true, Status: statemachine.Suspended},
		{ID: "t.1", Parent: "t", Name: "try", Status: statemachine.Suspended, Ran: noon.Add(-time.Minute), Ports: []job.PortInfo{
			in("in", job.PortInfo{Fed: true}), out("out", to("t.2", "in")),
		}},
		{ID: "t.2", Parent: "t", Name: "test", Status: statemachine.Running, Ran: noon.Add(-time.Minute), Ports: []job.PortInfo{
			in("in", job.PortInfo{Fed: true, Sources: 1}), out("again", to("t.1", "in")),
		}},
	}
	check(t, "feedback", said(explain.NewTree(tree, noon), "t.1"), `
job line/try waits, since its last run 1m ago, for messages on port in or the end of its feedback, which come from line/test
  job line/test has been running for 1m
`)
}

// pipeline is read -> (part: work) -> join, with a graph inside.
func pipeline() []*job.Info {
	fed := job.PortInfo{Fed: true, Sources: 1}
	full := fed
	full.Waiting, full.Limit = 2, 2
	return []*job.Info{
		{ID: "t", Name: "line", Type: "line", Graph: true, Status: statemachine.Suspended, Ports: []job.PortInfo{in("more", job.PortInfo{})}},
		{ID: "t.1", Parent: "t", Name: "read", Status: statemachine.Suspended, Ran: noon.Add(-time.Minute), Blocked: true, Ports: []job.PortInfo{out("out", to("t.2", "in"))}},
		{ID: "t.2", Parent: "t", Name: "part", Graph: true, Status: statemachine.Suspended, Ports: []job.PortInfo{
			{Spec: port.Spec{Name: "in", Dir: port.Input}, Wired: true, Fed: true, Edges: [][]job.PortRef{{to("t.3", "in")}}},
			{Spec: port.Spec{Name: "out", Dir: port.Output}, Wired: true, Edges: [][]job.PortRef{{to("t.4", "left")}}},
		}},
		{ID: "t.3", Parent: "t.2", Name: "work", Status: statemachine.Failed, Ran: noon.Add(-time.Hour), Reason: "boom", Ports: []job.PortInfo{
			in("in", full), out("out", job.PortRef{Job: "t.2", Dir: port.Output, Port: "out"}),
		}},
		{ID: "t.4", Parent: "t", Name: "join", Status: statemachine.Suspended, Ports: []job.PortInfo{
			in("left", fed), in("right", job.PortInfo{Fed: true, Sources: 1, Waiting: 3}), in("outside", fed),
		}},
	}
}

// What a job waits for is followed to where it begins: through full and empty ports, into and
// out of graphs.
func TestCauses(t *testing.T) {
	t.Parallel()
	tree := pipeline()
	tree[0].Ports = []job.PortInfo{{Spec: port.Spec{Name: "more", Dir: port.Input}, Wired: true, Edges: [][]job.PortRef{{to("t.4", "outside")}}}}
	e := explain.NewTree(tree, noon)
	e.Called = map[job.ID]string{"t": "album"}
	check(t, "blocked", said(e, "t.1"), `
job line/read is suspended, since its last run 1m ago, because port in of job line/part/work is full: 2 messages wait there, the limit is 2
  job line/part/work failed 1h ago: boom
    $ weir retry album/part/work
`)
	check(t, "hungry", said(e, "t.4"), `
job line/join waits for messages on port left, which come from line/part/work
  job line/part/work failed 1h ago: boom
    $ weir retry album/part/work
job line/join waits for more messages than the 3 on its port right
job line/join waits for messages on port outside, which come from input more of line
  that input is open: it waits for messages from outside,
    $ weir send album more MESSAGE
  or, if nothing more is to come:
    $ weir send album more --close
`)
	check(t, "graph", said(e, "t"), `
job line is not completed, because of jobs in it:
  job line/read is suspended, since its last run 1m ago, because port in of job line/part/work is full: 2 messages wait there, the limit is 2
    job line/part/work failed 1h ago: boom
      $ weir retry album/part/work
`)
	check(t, "gone", said(e, "t.9"), "")
	e.Alias = "album"
	check(t, "alias", said(e, "t.4")[:len("job album/join waits")], "job album/join waits")
}

// The ports of a trigger are not for people.
func TestTrigger(t *testing.T) {
	t.Parallel()
	i := job.Info{ID: "t", Type: "trigger", Name: "nightly", Status: statemachine.Suspended, Ports: []job.PortInfo{in("control", job.PortInfo{}), in("ended", job.PortInfo{})}}
	check(t, "webhook", said(explain.NewTree([]*job.Info{&i}, noon), "t"),
		"trigger nightly waits for what fires it; what it does, and whether it is paused:\n  $ weir trigger show t\n")
	i.Next = noon.Add(time.Minute)
	check(t, "schedule", said(explain.NewTree([]*job.Info{&i}, noon), "t"),
		"trigger nightly waits for its time, which is in 1m0s, at 12:01:00Z; what it does, and whether it is paused:\n  $ weir trigger show t\n")
}

// What keeps a trigger from firing is said, and why the tree that holds its place has not ended.
func TestTriggerHeldBack(t *testing.T) {
	t.Parallel()
	i := job.Info{ID: "t", Type: "trigger", Name: "hook", Status: statemachine.Suspended}
	s := trigger.Status{Definition: trigger.Definition{Limits: trigger.Limits{Parallel: 1}}, Running: []job.ID{"u"}, Waiting: 49}
	e := explain.NewTree([]*job.Info{&i}, noon)
	e.Trigger = func(*job.Info) (*trigger.Status, bool) { return &s, true }
	const held = "trigger hook: 49 firings wait, as 1 of 1 trees that may be unfinished at a time (limits.parallel) has not ended: u\n  $ weir trigger show t\n"
	check(t, "full", said(e, "t"), held+"  to see what that one does:\n    $ weir why u\n")
	e.Other = func(id job.ID) []explain.Because {
		return []explain.Because{{Job: id, Text: "job u failed"}, {Job: id, Level: 1, Text: "boom"}}
	}
	check(t, "full, and why", said(e, "t"), held+"  job u failed\n    boom\n")
	s.Waiting = 0
	s.Definition.Limits.Overflow = trigger.Drop
	check(t, "dropping", strings.SplitAfter(said(e, "t"), "\n")[0],
		"trigger hook: what fires it is dropped, as 1 of 1 trees that may be unfinished at a time (limits.parallel) has not ended: u\n")
	s = trigger.Status{Paused: true}
	check(t, "paused", said(e, "t"), "trigger hook is paused, and drops what would fire it; to let it fire again:\n  $ weir trigger resume t\n")
	s.Paused = false
	check(t, "idle", said(e, "t"), "trigger hook waits for what fires it; what it does:\n  $ weir trigger show t\n")
}

// Of an engine whose heartbeat is overdue is said when it was last seen: it may be dead.
func TestEngineNotSeen(t *testing.T) {
	t.Parallel()
	i := job.Info{ID: "t", Type: "map", Name: "m", Queue: "slow", Status: statemachine.Queued, Queued: noon}
	e := explain.NewTree([]*job.Info{&i}, noon)
	engine := func(pid int, seen time.Duration) store.EngineInfo {
		return store.EngineInfo{Host: "a", PID: pid, Concurrency: 1, Queues: map[string]int{"slow": 1}, Types: []string{"map"}, Seen: noon.Add(-seen)}
	}
	e.Engines, e.Types = map[string]int{"slow": 2}, []job.TypeInfo{{Type: "map", Queue: "slow"}}
	for _, c := range []struct {
		living []store.EngineInfo
		want   string
	}{
		{[]store.EngineInfo{engine(1, time.Second)}, "1 engine with type map for queue slow: process 1 on a; it is run when it has a slot free"},
		{
			[]store.EngineInfo{engine(1, time.Second), engine(2, 4*time.Second)},
			"2 engines with type map for queue slow: process 1 on a and process 2 on a (last seen 4s ago); it is run when one of them has a slot free",
		},
		{
			[]store.EngineInfo{engine(2, 4*time.Second)},
			"1 engine with type map for queue slow: process 2 on a (last seen 4s ago); each engine that lives tells of itself once a second: if none does again, start the program that has it",
		},
	} {
		e.Living = c.living
		check(t, "why", said(e, "t"), "job m has been ready for 0s and waits for an engine\n  "+c.want+"\n")
	}
}

// Dead letters of a job, or of those in a graph, are named: nobody would look for them in a graph that waits, or has completed.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	errs := func(n int64) []job.PortInfo {
		return []job.PortInfo{{Spec: port.Spec{Name: job.ErrorsPort, Dir: port.Output}, Waiting: n}}
	}
	tree := []*job.Info{
		{ID: "t", Type: "line", Graph: true, Status: statemachine.Completed},
		{ID: "t.1", Parent: "t", Name: "one", Policy: job.DeadLetter, Status: statemachine.Completed, Ports: errs(1)},
		{ID: "t.2", Parent: "t", Name: "two", Policy: job.DeadLetter, Status: statemachine.Completed, Ports: append(errs(2000), in("in", job.PortInfo{}))},
		{ID: "t.3", Parent: "t", Name: "own", Status: statemachine.Completed, Ports: errs(7)},
		{ID: "t.4", Parent: "t", Name: "last", Policy: job.DeadLetter, Status: statemachine.Completed, Ports: errs(4)},
	}
	e := explain.NewTree(tree, noon)
	e.Most = 2
	check(t, "graph", said(e, "t"), `
job line is completed: it has worked on all it got
job line/one could not handle some messages: 1 dead letter lies in its port errors:
  $ weir dead list t.1
  its inputs have ended, so it gets no more messages: start the job or graph anew, and requeue them to the JOB there:
    $ weir dead requeue t.1 --to JOB
  or discard them:
    $ weir dead discard t.1
job line/two could not handle some messages: 2,000 dead letters lie in its port errors. Requeue or discard them before its inputs end:
  $ weir dead list t.2
and 4 more of other jobs in it:
  $ weir dead list t
`)
	check(t, "own port", said(e, "t.3"), `
job line/own is completed: it has worked on all it got
7 messages wait in its port errors for somebody to read:
  $ weir read t.3 errors --all
`)
}

// A graph in which nothing moves says what is open; one that failed, which jobs did.
func TestGraphs(t *testing.T) {
	t.Parallel()
	tree := pipeline()[:1]
	tree[0].Reason = "idle: its input more is open"
	check(t, "idle", said(explain.NewTree(tree, noon), "t"), `
job line is idle: its input more is open
to give it more to do:
  $ weir send t more MESSAGE
or, if nothing more is to come:
  $ weir send t more --close
`)
	tree = []*job.Info{
		{ID: "t", Type: "line", Graph: true, Status: statemachine.Suspended, Reason: "idle: as it may be"},
		{ID: "t.1", Parent: "t", Name: "step", Status: statemachine.Suspended, Ports: []job.PortInfo{in("in", job.PortInfo{Closed: true, Waiting: 1})}},
	}
	check(t, "closed", said(explain.NewTree(tree, noon), "t"), `
job line is idle: as it may be
  job line/step sleeps while 1 message waits unread in its port in, which is closed; to run it now:
    $ weir run t.1
`)
	tree = []*job.Info{{ID: "t", Type: "line", Graph: true, Status: statemachine.Failed}}
	for n := 1; n <= 5; n++ {
		tree = append(tree, &job.Info{ID: job.ID(fmt.Sprint("t.", n)), Parent: "t", Name: fmt.Sprint("step", n), Status: statemachine.Failed, Ran: noon, Reason: "boom"})
	}
	e := explain.NewTree(tree, noon)
	e.Most, e.ISO = 2, true
	check(t, "failed", said(e, "t"), `
job line failed, because of a job in it:
  job line/step1 failed at 2026-11-21T12:00:00Z: boom
    $ weir retry t.1
  job line/step2 failed at 2026-11-21T12:00:00Z: boom
    $ weir retry t.2
  and 3 more jobs that are failed:
    $ weir tree t
`)
	child := []*job.Info{
		{ID: "t", Type: "parent", Status: statemachine.Suspended},
		{ID: "t.1", Parent: "t", Name: "kid", Status: statemachine.Failed, Ran: noon, Reason: "boom"},
		{ID: "t.2", Parent: "t", Name: "done", Status: statemachine.Completed},
	}
	check(t, "child", said(explain.NewTree(child, noon), "t"), `
job parent may wait for its child kid, which is failed
  job parent/kid failed 0s ago: boom
    $ weir retry t.1
`)
}

// What is the same of several jobs is said once, with how many more there are.
func TestTheSameIsSaidOnce(t *testing.T) {
	t.Parallel()
	graph := []*job.Info{{ID: "t", Type: "line", Graph: true, Status: statemachine.Suspended}}
	for n := 1; n <= 7; n++ {
		c := &job.Info{ID: job.ID(fmt.Sprint("t.", n)), Parent: "t", Name: fmt.Sprint("step", n), Type: "Step", Queue: "default", Status: statemachine.Queued, Queued: noon.Add(-time.Duration(n) * time.Minute)}
		if n == 2 {
			c.Reason = "nobody came"
		}
		graph = append(graph, c)
	}
	e := explain.NewTree(graph, noon)
	check(t, "all", said(e, "t"), `
job line is not completed, because of jobs in it:
  job line/step1 has been ready for 1m and waits for an engine
    it must serve queue default and have type Step
      $ weir types
  the same is true of 5 more jobs: line/step3, line/step4, line/step5, line/step6 and line/step7
  job line/step2 has been ready for 2m and waits for an engine (nobody came)
    it must serve queue default and have type Step
      $ weir types
`)
	e.Most = 5
	check(t, "some", said(e, "t"), `
job line is not completed, because of jobs in it:
  job line/step1 has been ready for 1m and waits for an engine
    it must serve queue default and have type Step
      $ weir types
  the same is true of 3 more jobs: line/step3, line/step4 and line/step5
  job line/step2 has been ready for 2m and waits for an engine (nobody came)
    it must serve queue default and have type Step
      $ weir types
  and 2 more jobs that are queued:
    $ weir tree t
`)
	graph[0].Graph = false // a worker that waits for its children
	if got := said(e, "t"); !strings.Contains(got, "the same is true of 3 more jobs: line/step3, line/step4 and line/step5\n") || strings.Count(got, "may wait for") != 2 {
		t.Errorf("children:\n%s", got)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	name := func(id job.ID) string { return "job" + fmt.Sprint(id.Number()) }
	run := &job.RunEntry{
		Job: "t.1", By: "weir",
		Read:   []job.Movement{{Job: "t.1", Port: "in", N: 1, Data: []json.RawMessage{json.RawMessage(`"a"`)}}, {Job: "t.2", Port: "out", N: 2}},
		Write:  []job.Movement{{Port: "out", N: 3}},
		Groups: []job.RunEntry{{Read: []job.Movement{{Job: "t.1", Port: "in", N: 1}}}},
		Error:  "boom\nstack",
	}
	if got, want := explain.Run(run, name), `by weir; read 1 of in "a"; read 2 of job2.out; wrote 3 of out; (read 1 of in (too large to log)); failed: boom …`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := explain.Run(&job.RunEntry{}, name); got != "ran" {
		t.Errorf("got %s", got)
	}
}

// TestOutcome: a job of a handler has completed although its payload failed, which is said.
func TestOutcome(t *testing.T) {
	t.Parallel()
	e := explain.NewTree([]*job.Info{{ID: "t", Type: "pay", Status: statemachine.Completed}}, noon)
	e.Outcome = func(*job.Info) (explain.Outcome, bool) {
		return explain.Outcome{Code: handler.Failed, Status: 404, Error: "no such\norder"}, true
	}
	check(t, "failed", said(e, "t"), `
job pay is completed: it has worked on all it got
its last payload failed, with code 404: no such order; a payload that failed is not tried again. Its result:
  $ weir state get t result
`)
	e.Outcome = func(*job.Info) (explain.Outcome, bool) { return explain.Outcome{Code: handler.OK, Status: 200}, true }
	check(t, "ok", said(e, "t"), "job pay is completed: it has worked on all it got\n")
}
