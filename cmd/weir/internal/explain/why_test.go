package explain_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/cmd/weir/internal/explain"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// line is a graph with a job below it.
func line(i job.Info) []*job.Info {
	i.ID, i.Parent, i.Name = "t.1", "t", "step"
	return []*job.Info{{ID: "t", Type: "line", Graph: true, Status: statemachine.Suspended}, &i}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	in := job.PortInfo{Spec: port.Spec{Name: "in", Dir: port.Input}, Fed: true, Sources: 2, Waiting: 1}
	alone := job.PortInfo{Spec: port.Spec{Name: "in", Dir: port.Input}}
	for _, c := range []struct {
		info job.Info
		want []explain.Because
	}{
		{job.Info{Status: statemachine.Running, Ran: noon.Add(-time.Minute)}, []explain.Because{{Text: "job t/step is running, since 1m"}}},
		{
			job.Info{Status: statemachine.Queued, Queued: noon.Add(-time.Second), Queue: "slow", Type: "Step", Reason: "lock"},
			[]explain.Because{{Text: "job t/step is ready since 1s and waits for an engine that serves queue slow and has type Step (lock)", Command: "weir types"}},
		},
		{job.Info{Status: statemachine.Failed, Reason: "boom\nstack"}, []explain.Because{{Text: "job t/step failed: boom", Command: "weir retry t.1"}}},
		{
			job.Info{Status: statemachine.Scheduled, Next: noon.Add(time.Hour), Tries: 2, Reason: "boom"},
			[]explain.Because{{Text: "job t/step waits for its time, which is in 1h0m0s (2026-11-21T13:00:00Z); it has failed 2 times, last with: boom", Command: "weir run t.1"}},
		},
		{job.Info{Status: statemachine.Terminated}, []explain.Because{{Text: "job t/step is terminated", Command: "weir run t.1 --force"}}},
		{job.Info{Status: statemachine.Terminating}, []explain.Because{{Text: "job t/step is about to end: its Shutdown has not run yet"}}},
		{job.Info{Status: statemachine.Completed}, []explain.Because{{Text: "job t/step is completed: it has worked on all it got"}}},
		{
			job.Info{Status: statemachine.Suspended, Blocked: true, Reason: "port in is full of job t.9"},
			[]explain.Because{{Text: "job t/step rests: port in is full of job t.9", Command: "weir why t.9"}},
		},
		{job.Info{Status: statemachine.Suspended, Ports: []job.PortInfo{in}}, []explain.Because{{Text: "job t/step waits for messages on port in: 2 sources are open, 1 messages wait"}}},
		{
			job.Info{Status: statemachine.Suspended, Ports: []job.PortInfo{alone}, Next: noon.Add(time.Second)},
			[]explain.Because{
				{Text: "job t/step waits for a timer, which is in 1s (2026-11-21T12:00:01Z)"},
				{Text: "job t/step waits for messages on port in, which nobody is wired to", Command: "weir send t.1 in MESSAGE"},
			},
		},
		{job.Info{Status: statemachine.Suspended}, []explain.Because{{Text: "job t/step sleeps until somebody asks for a run", Command: "weir run t.1"}}},
	} {
		if got := explain.NewTree(line(c.info), noon).Why("t.1"); !slices.Equal(got, c.want) {
			t.Errorf("%+v\ngot  %q\nwant %q", c.info, got, c.want)
		}
	}
}

// TestWhyGraph: a graph is explained by the jobs in it, as many as one wants to read of.
func TestWhyGraph(t *testing.T) {
	t.Parallel()
	tree := []*job.Info{{ID: "t", Type: "line", Graph: true, Status: statemachine.Failed}}
	for n := 1; n <= 5; n++ {
		tree = append(tree, &job.Info{ID: job.ID(fmt.Sprint("t.", n)), Parent: "t", Name: fmt.Sprint("step", n), Status: statemachine.Failed, Reason: "boom"})
	}
	all := explain.NewTree(tree, noon)
	if got := all.Why("t"); len(got) != 6 || got[5] != (explain.Because{Text: "  job t/step5 failed: boom", Command: "weir retry t.5"}) {
		t.Errorf("got %q", got)
	}
	few := explain.NewTree(tree, noon)
	few.Most, few.ByType = 2, true
	want := []explain.Because{
		{Text: "job line failed, because of a job in it"},
		{Text: "  job line/step1 failed: boom", Command: "weir retry t.1"},
		{Text: "  job line/step2 failed: boom", Command: "weir retry t.2"},
		{Text: "  and so on for 3 more"},
	}
	if got := few.Why("t"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := all.Why("gone"); got != nil {
		t.Errorf("of a job that is not there: %q", got)
	}
}
