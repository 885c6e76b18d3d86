package weirtest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Outsider counts its messages, one a run, and has a bug: it looks from outside, by a client, for what its
// last run left. While runs share a commit that is not there yet.
type Outsider struct {
	In  port.In[int]
	Out port.Out[int]

	client *client.Client
}

// Run implements worker.Worker.
func (w *Outsider) Run(ctx context.Context, run *worker.Run) error {
	if _, ok, err := w.In.Read(); err != nil || !ok {
		return err
	}
	h, err := w.client.Find(ctx, string(run.ID()))
	if err != nil {
		return err
	}
	state, err := h.State(ctx)
	if err != nil {
		return err
	}
	var n int
	if raw, ok := state["n"]; ok {
		if err := port.Decode(raw, &n); err != nil {
			return err
		}
	}
	return errors.Join(run.State().Set("n", n+1), w.Out.Write(n+1))
}

// Step by step this worker seems to be right; RunUntilIdle shows what it does in production.
func TestBatchingShowsWhoLooksFromOutside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run   func(e *weirtest.Engine)
		right bool
	}{
		"RunNext": {func(e *weirtest.Engine) {
			for more := true; more; more = e.RunNext() {
			}
		}, true},
		"RunUntilQuiet": {(*weirtest.Engine).RunUntilIdle, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &Outsider{}
			e := weirtest.New(t, w)
			h := e.StartWorker(&Outsider{})
			w.client = e.Client() // of the process: runs get a copy
			e.Feed(h, "in", 1, 2, 3, 4, 5)
			c.run(e)
			got := weirtest.Drain[int](e, h, "out")
			if slices.Equal(got, []int{1, 2, 3, 4, 5}) != c.right || e.Info(h).Steps != 5 {
				t.Errorf("it counted %v in %d runs", got, e.Info(h).Steps)
			}
		})
	}
}

// Letter sends each message, and has a bug: it says that it is pure.
type Letter struct {
	In port.In[int]

	sent *[]int
}

// WorkerOptions implements worker.Configured.
func (*Letter) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run implements worker.Worker.
func (w *Letter) Run(_ context.Context, run *worker.Run) error {
	n, ok, err := w.In.Read()
	if err != nil || !ok {
		return err
	}
	*w.sent = append(*w.sent, n)
	return run.Checkpoint()
}

// What is not pure and says so is run on messages that are not committed yet, and then again.
func TestChainingShowsWhoIsNotPure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run  func(e *weirtest.Engine)
		want []int
	}{
		"RunNext": {func(e *weirtest.Engine) {
			for more := true; more; more = e.RunNext() {
			}
		}, []int{2}},
		"RunUntilQuiet": {(*weirtest.Engine).RunUntilIdle, []int{2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []int
			e := weirtest.New(t, &Times{}, &Letter{sent: &sent})
			g := graph.New("mail")
			times, letter := graph.Add(g, "times", &Times{By: 2}), graph.Add(g, "letter", &Letter{})
			graph.Connect(graph.Input[int](g, "in"), times.In)
			graph.Connect(times.Out, letter.In)
			h := e.Start(g)
			e.Feed(h, "in", 1)
			c.run(e)
			if !slices.Equal(sent, c.want) {
				t.Errorf("sent %v, want %v", sent, c.want)
			}
		})
	}
}

// Runs are counted one by one, however many share a commit.
func TestMaxRunsCountsRuns(t *testing.T) {
	t.Parallel()
	got := failing(t, func(tb *stub) {
		w := &Outsider{}
		e := weirtest.New(tb, w)
		w.client, e.MaxRuns = e.Client(), 10
		h := e.StartWorker(&Outsider{})
		for n := range 30 {
			e.Feed(h, "in", n)
		}
		e.RunUntilIdle()
	})
	if want := "weirtest: jobs are still ready after 11 runs (see Engine.MaxRuns): Outsider ran 11 times"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
