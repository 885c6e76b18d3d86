package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// TestBacklog: a worker that passes on all that waits does so in several runs when it is more than one commit may hold,
// whatever it is too much of; one that reads on by itself, and fails with it, gets the messages one by one.
func TestBacklog(t *testing.T) {
	large := func(n int) (out []any) {
		for range n {
			out = append(out, strings.Repeat("x", job.MaxMessage-10))
		}
		return out
	}
	all := func(_ context.Context, _ *worker.Run, w *Call) error {
		for text, err := range w.Text.All() {
			if err != nil {
				return err
			}
			if err := w.More.Write(text); err != nil {
				return err
			}
		}
		return nil
	}
	each := func(_ context.Context, _ *worker.Run, w *Call) error {
		for {
			text, ok, err := w.Text.Read()
			if err != nil || !ok {
				return err
			}
			if err := w.More.Write(text); err != nil {
				return err
			}
		}
	}
	many := func(n int) (out []any) {
		for i := range n {
			out = append(out, fmt.Sprint(i))
		}
		return out
	}
	for name, c := range map[string]struct {
		code      code
		messages  []any
		consumers int   // of each message
		most      int64 // runs
	}{
		"messages": {all, many(job.MaxWrites + 5000), 1, 3},
		"messages, then asleep": {func(ctx context.Context, run *worker.Run, w *Call) error {
			return errors.Join(all(ctx, run, w), worker.ErrSuspend)
		}, many(job.MaxWrites + 5000), 1, 3},
		"bytes":                      {all, large(12), 1, 4},
		"many consumers":             {all, many(4000), 6, 4},
		"bytes, one by one":          {each, large(10), 1, 11},
		"many consumers, one by one": {each, many(100), 250, 101},
	} {
		t.Run(name, func(t *testing.T) {
			b := onRedis(t)
			g := graph.New("g")
			w := graph.Add(g, "w", call(t, c.code))
			graph.Connect(graph.Input[string](g, "in"), w.Text)
			idle := call(t, func(context.Context, *worker.Run, *Call) error { return nil })
			for i := range c.consumers {
				graph.Connect(w.More, graph.Add(g, fmt.Sprint("idle", i), &Call{Key: idle.Key}).Text)
			}
			h := b.Start(g)
			for some := range slices.Chunk(c.messages, min(len(c.messages), 5000)/2) {
				b.Check(h.Write(b.Ctx, "in", some...))
			}
			b.serve()
			node, err := h.Child(b.Ctx, "w")
			b.Check(err)
			b.Until("all is passed on", func() bool { return b.Waiting(node, "text") == 0 })
			info := b.Info(node)
			if info.Steps > c.most || info.Status == statemachine.Failed {
				b.Errorf("the job is %s (%s) after %d runs, want at most %d", info.Status, info.Reason, info.Steps, c.most)
			}
			last, err := h.Child(b.Ctx, fmt.Sprint("idle", c.consumers-1))
			b.Check(err)
			if got := b.Waiting(last, "text"); got != int64(len(c.messages)) {
				b.Errorf("%d of %d messages came", got, len(c.messages))
			}
		})
	}
}

// TestTimerOfCompletedJob: who writes when a timer fires, after a run has completed the job, is told how to wait for it.
func TestTimerOfCompletedJob(t *testing.T) {
	b := onRedis(t)
	b.serve()
	g := graph.New("g")
	numbers := graph.Add(g, "numbers", &Count{To: 3})
	w := graph.Add(g, "w", call(t, func(_ context.Context, run *worker.Run, w *Call) error {
		got := 0
		for _, err := range w.In.All() {
			if err != nil {
				return err
			}
			got++
		}
		if got > 0 || !w.In.Done() {
			return run.WakeAfter(50 * time.Millisecond)
		}
		return w.Out.Write(1)
	}))
	graph.Connect(numbers.Out, w.In)
	graph.Export(g, "out", w.Out)
	h := b.Start(g)
	node, err := h.Child(b.Ctx, "w")
	b.Check(err)
	if f := b.Failure(node); !strings.Contains(f.Error, "closed: if an earlier run returned nil") || !strings.Contains(f.Error, "worker.ErrSuspend") {
		b.Errorf("it says %q", f.Error)
	}
}
