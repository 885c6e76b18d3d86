package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
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
	for _, h := range []*client.Handle{plain, polite, plain} {
		e.Feed(h, "in", "Ann")
		e.RunUntilIdle()
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
	e.RunUntilIdle()
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

// scribe writes by name what its parameter says.
type scribe struct {
	Raw   string
	Count int
	Out   port.Out[int]
}

func (s *scribe) Run(_ context.Context, run *worker.Run) error {
	w, err := run.Out("out")
	if err != nil {
		return err
	}
	for range max(s.Count, 1) {
		if err := w.Write(json.RawMessage(s.Raw)); err != nil {
			return err
		}
	}
	return nil
}

// What is no message, and too many of them, are refused before anything is kept.
func TestRefusedWrites(t *testing.T) {
	e := weirtest.New(t, &scribe{})
	for _, c := range []struct {
		w    scribe
		want string
	}{
		{scribe{Raw: "{"}, "wrong encoding"},
		{scribe{Raw: "1 2"}, "wrong encoding"},
		{scribe{Raw: ""}, "wrong encoding"},
		{scribe{Raw: "1", Count: worker.MaxWrites + 1}, "more than 16000 messages, log entries and timers in one commit, where each 512 bytes count as one more; call Checkpoint"},
	} {
		h := e.Start(job.Single(&c.w, ""))
		e.RunUntilIdle()
		f := e.Failures(h)
		if len(f) != 1 || !strings.Contains(f[0].Error, c.want) {
			t.Errorf("%.20q %d times: failures %v, want one with %q", c.w.Raw, c.w.Count, f, c.want)
		}
		if got := weirtest.Drain[int](e, h, "out"); len(got) > 0 {
			t.Errorf("%.20q wrote %v", c.w.Raw, got)
		}
	}
}
