package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// greeter has a parameter and something that no job can have.
type greeter struct {
	Greeting string `json:"greeting,omitempty"`
	In       port.In[string]
	Out      port.Out[string]
	suffix   func() string
}

func (g *greeter) Run(_ context.Context, _ *worker.Run) error {
	for name, err := range g.In.All() {
		if err != nil {
			return err
		}
		if err := g.Out.Write(g.Greeting + " " + name + g.suffix()); err != nil {
			return err
		}
		g.Greeting = "spoilt" // of this run's copy only
	}
	return nil
}

// TestRegisteredValueIsCopied: runs share what the registered value has behind unexported
// fields, and its parameters are defaults.
func TestRegisteredValueIsCopied(t *testing.T) {
	e := weirtest.New(t, &greeter{Greeting: "hello", suffix: func() string { return "!" }})
	plain := e.Start(job.Single(&greeter{}, ""))
	polite := e.Start(job.Single(&greeter{Greeting: "good day"}, ""))
	for _, h := range []*job.Handle{plain, polite, plain} {
		e.Feed(h, "in", "Ann")
		e.RunUntilQuiet()
	}
	if got := weirtest.Drain[string](e, plain, "out"); len(got) != 2 || got[0] != "hello Ann!" || got[1] != "hello Ann!" {
		t.Errorf("the job without a greeting wrote %q", got)
	}
	if got := weirtest.Drain[string](e, polite, "out"); len(got) != 1 || got[0] != "good day Ann!" {
		t.Errorf("the job with a greeting wrote %q", got)
	}
}

// reminder writes the time, and again after each of its delays.
type reminder struct {
	In  port.In[int]
	Out port.Out[time.Time]
}

func (r *reminder) Run(_ context.Context, run *worker.Run) error {
	for seconds, err := range r.In.All() {
		if err != nil {
			return err
		}
		if err := run.WakeAfter(time.Duration(seconds) * time.Second); err != nil {
			return err
		}
	}
	if err := r.Out.Write(run.Now()); err != nil {
		return err
	}
	return worker.ErrSuspend
}

func TestWakeAfter(t *testing.T) {
	e := weirtest.New(t, &reminder{})
	h := e.Start(job.Single(&reminder{}, ""))
	e.RunUntilQuiet()
	start := weirtest.Drain[time.Time](e, h, "out")
	e.Feed(h, "in", 60, 5)
	e.Advance(time.Hour)
	got := weirtest.Drain[time.Time](e, h, "out")
	if len(start) != 1 || len(got) != 3 {
		t.Fatalf("runs at %v, then %v; want one, then three", start, got)
	}
	for i, want := range []time.Duration{0, 5 * time.Second, time.Minute} {
		if d := got[i].Sub(start[0]); d != want {
			t.Errorf("run %d was %s after the first, want %s", i, d, want)
		}
	}
}
