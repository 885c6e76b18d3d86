package weirtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Busy runs again at once, for as long as it is let.
type Busy struct {
	Out port.Out[int]
}

func (*Busy) WorkerOptions() worker.Options { return worker.Options{MaxRunsPerMinute: 3} }

func (b *Busy) Run(_ context.Context, run *worker.Run) error {
	var n int
	if _, err := run.State().Get("n", &n); err != nil {
		return err
	}
	if err := run.State().Set("n", n+1); err != nil {
		return err
	}
	return b.Out.Write(n)
}

// Jobs can be created by the name of their type, and one that runs too often is throttled
// until the next minute.
func TestCreateByTypeAndRunsAMinute(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Busy{})
	h, err := e.Client().Create(t.Context(), job.New{Type: "Busy"})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := h.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.RunUntilIdle()
	}
	info := e.Info(h)
	if got := weirtest.Drain[int](e, h, "out"); len(got) != 3 || info.Reason != "rate: it ran 3 times this minute" {
		t.Errorf("%d runs, reason %q", len(got), info.Reason)
	}
	e.Advance(time.Minute)
	info = e.Info(h)
	if got := weirtest.Drain[int](e, h, "out"); len(got) != 1 || info.Reason != "" {
		t.Errorf("%d runs in the next minute, reason %q", len(got), info.Reason)
	}
}
