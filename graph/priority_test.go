package graph_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Urgent has a priority of its own.
type Urgent struct{ In port.In[int] }

func (*Urgent) RunPriority() int { return 900 }

func (u *Urgent) Run(context.Context, *worker.Run) error {
	for _, err := range u.In.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// The priority of a job is that of its node, else that of its type, else that of its tree.
func TestPriorities(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	in := graph.Input[int](g, "in")
	graph.Connect(in, graph.Add(g, "plain", &Urgent{}).In)
	graph.Connect(in, graph.Add(g, "node", &Urgent{}, graph.Priority(0)).In)
	graph.Connect(in, graph.Add(g, "tree", &Step{}).In)
	e := weirtest.New(t, &Urgent{}, &Step{})
	h, err := e.Client().Start(t.Context(), g, job.WithPriority(100))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"plain": 900, "node": 0, "tree": 100} {
		if got := e.Info(e.Child(h, name)).Priority; got == nil || *got != want {
			t.Errorf("priority of %s: %v, want %d", name, got, want)
		}
	}
	if got := e.Info(e.Start(job.Single(&Step{}, ""))).Priority; got != nil {
		t.Errorf("priority without any: %d", *got)
	}
	if err := h.SetPriority(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if got := e.Info(e.Child(h, "node")).Priority; got == nil || *got != 7 {
		t.Errorf("priority after it was set for the tree: %v", got)
	}
	if err := h.SetPriority(t.Context(), 1001); !errors.Is(err, job.ErrValue) || !strings.Contains(err.Error(), "use 0 (last) to 1000 (first)") {
		t.Errorf("priority 1001: %v", err)
	}
	bad := graph.New("bad")
	graph.Connect(graph.Input[int](bad, "in"), graph.Add(bad, "a", &Step{}, graph.Priority(-1)).In)
	if _, err := bad.Plan(); err == nil || !strings.Contains(err.Error(), `priority -1: use 0 (last)`) {
		t.Errorf("a graph with priority -1: %v", err)
	}
}

// Jobs that have no priority of their node or type have that of the nearest graph that has one.
func TestPrioritiesOfGraphs(t *testing.T) {
	t.Parallel()
	inner := func(priority int) *graph.Graph {
		g := graph.New("inner")
		in := graph.Input[int](g, "in")
		graph.Connect(in, graph.Add(g, "step", &Step{}).In)
		graph.Connect(in, graph.Add(g, "urgent", &Urgent{}).In)
		if priority > 0 {
			g.Priority(priority)
		}
		return g
	}
	g := graph.New("g")
	g.Priority(100)
	graph.Nest(g, "none", inner(0))
	graph.Nest(g, "own", inner(200))
	graph.Nest(g, "node", inner(200), graph.Priority(300))
	in := graph.Input[int](g, "in")
	graph.Connect(in, graph.Add(g, "step", &Step{}).In)
	for _, name := range []string{"none.in", "own.in", "node.in"} {
		graph.WireInput(g, "in", name)
	}
	e := weirtest.New(t, &Urgent{}, &Step{})
	h, err := e.Client().Start(t.Context(), g, job.WithPriority(400))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		graph, name string
		want        int
	}{{"none", "step", 100}, {"own", "step", 200}, {"node", "step", 300}, {"node", "urgent", 900}, {"", "step", 100}} {
		at := h
		if c.graph != "" {
			at = e.Child(h, c.graph)
		}
		if got := e.Info(e.Child(at, c.name)).Priority; got == nil || *got != c.want {
			t.Errorf("priority of %s in %q: %v, want %d", c.name, c.graph, got, c.want)
		}
	}
	bad := inner(2000)
	if _, err := bad.Plan(); err == nil || !strings.Contains(err.Error(), `priority 2000: use 0 (last)`) {
		t.Errorf("a graph with priority 2000: %v", err)
	}
}
