package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Stubborn always fails: at once, or when its context ends.
type Stubborn struct {
	Waits bool `json:"waits,omitempty"`
	In    port.In[int]
}

func (*Stubborn) WorkerOptions() worker.Options {
	return worker.Options{Tries: 2, Backoff: worker.ConstantBackoff(time.Minute)}
}

func (s *Stubborn) Run(ctx context.Context, _ *worker.Run) error {
	if _, _, err := s.In.Read(); err != nil {
		return err
	}
	if s.Waits {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return errors.New("no")
}

// stubborn starts a graph of one such worker, with a message to read.
func stubborn(t *testing.T, e *weirtest.Engine, w *Stubborn, opts ...graph.Option) *client.Handle {
	t.Helper()
	g := graph.New("g")
	graph.Connect(graph.Input[int](g, "in"), graph.Add(g, "w", w, opts...).In)
	h := e.Start(g)
	e.Feed(h, "in", 1)
	return e.Child(h, "w")
}

// The options of a node are in place of those of its type; what they leave out is the type's.
func TestNodeOptions(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Stubborn{})
	for _, c := range []struct {
		name  string
		opts  []graph.Option
		after []time.Duration // from one try to the next
	}{
		{"type", nil, []time.Duration{time.Minute}},
		{"tries", []graph.Option{graph.Tries(3)}, []time.Duration{time.Minute, time.Minute}},
		{"backoff", []graph.Option{graph.Backoff(2*time.Second, 3*time.Second), graph.Tries(4)}, []time.Duration{2 * time.Second, 3 * time.Second, 3 * time.Second}},
		{"one try", []graph.Option{graph.Tries(1)}, nil},
	} {
		h := stubborn(t, e, &Stubborn{}, c.opts...)
		e.RunUntilIdle()
		for n, d := range c.after {
			if got := e.Info(h); got.Status != statemachine.Scheduled || got.Tries != n+1 {
				t.Errorf("%s: after %d tries it is %s, with %d", c.name, n+1, got.Status, got.Tries)
			}
			if e.Advance(d - time.Millisecond); e.Info(h).Tries != n+1 {
				t.Errorf("%s: try %d comes before %s", c.name, n+2, d)
			}
			e.Advance(time.Millisecond)
		}
		if got := e.Info(h); got.Status != statemachine.Failed || got.Tries != len(c.after)+1 {
			t.Errorf("%s: in the end it is %s after %d tries", c.name, got.Status, got.Tries)
		}
	}
	h := stubborn(t, e, &Stubborn{Waits: true}, graph.Timeout(10*time.Millisecond), graph.Tries(1))
	e.RunUntilIdle()
	if got := e.Info(h); got.Status != statemachine.Failed || !strings.Contains(got.Reason, "timeout of 10ms") {
		t.Errorf("with a timeout it is %s: %s", got.Status, got.Reason)
	}
}

// A patch changes the options of jobs that stay.
func TestNodeOptionsArePatched(t *testing.T) {
	t.Parallel()
	build := func(opts ...graph.Option) *graph.Graph {
		g := graph.New("g")
		graph.Connect(graph.Input[int](g, "in"), graph.Add(g, "w", &Stubborn{}, opts...).In)
		return g
	}
	e := weirtest.New(t, &Stubborn{})
	h := e.Start(build())
	for _, c := range []struct {
		opts []graph.Option
		want *job.RunOptions
	}{
		{[]graph.Option{graph.Tries(5), graph.Timeout(time.Second)}, &job.RunOptions{Tries: 5, Timeout: time.Second}},
		{[]graph.Option{graph.Backoff(time.Second, time.Minute)}, &job.RunOptions{Backoff: time.Second, MaxBackoff: time.Minute}},
		{nil, nil},
	} {
		if err := h.Patch(t.Context(), build(c.opts...)); err != nil {
			t.Fatal(err)
		}
		got := e.Info(e.Child(h, "w")).Options
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("options %+v, want %+v", got, c.want)
		}
	}
}

func TestBadNodeOptions(t *testing.T) {
	t.Parallel()
	for want, opt := range map[string]graph.Option{
		"-1 tries: use at least 1": graph.Tries(-1),
		"a timeout of -1s":         graph.Timeout(-time.Second),
		"a backoff of 1ns":         graph.Backoff(1, 0),
		"without a first one":      graph.Backoff(0, time.Second),
		"below the first one of":   graph.Backoff(time.Minute, time.Second),
	} {
		g := graph.New("g")
		graph.Connect(graph.Input[int](g, "in"), graph.Add(g, "w", &Stubborn{}, opt).In)
		if _, err := g.Plan(); !errors.Is(err, job.ErrValue) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	g, sub := graph.New("g"), graph.New("sub")
	graph.Connect(graph.Input[int](sub, "in"), graph.Add(sub, "w", &Stubborn{}).In)
	graph.Nest(g, "sub", sub, graph.Tries(2))
	if _, err := g.Plan(); err == nil || !strings.Contains(err.Error(), "set them for the workers in it") {
		t.Errorf("a nested graph with tries: %v", err)
	}
}
