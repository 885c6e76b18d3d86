package graph_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

// row is a graph of steps, each fed by the one before; the numbers are what they multiply by.
func row(steps ...struct {
	name string
	by   int
},
) *graph.Graph {
	g := graph.New("row")
	from := graph.Input[int](g, "in")
	for _, s := range steps {
		w := graph.Add(g, s.name, &Step{By: s.by})
		graph.Connect(from, w.In)
		from = w.Out
	}
	graph.Export(g, "out", from)
	return g
}

type part = struct {
	name string
	by   int
}

func TestPatch(t *testing.T) {
	t.Parallel()
	e, h := start(t, row(part{"a", 2}, part{"b", 3}))
	before := e.Info(h).Definition
	e.Feed(h, "in", 1, 2)
	e.RunNext() // a has run, b has messages

	// A new step in between, another parameter, one more at the end; the messages on the way
	// to b go on from there.
	next := row(part{"a", 2}, part{"middle", 10}, part{"b", 5}, part{"end", 1})
	if err := h.Patch(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	e.RunUntilQuiet()
	wantOut(t, e, h, "out", 10, 20)
	e.Feed(h, "in", 1)
	e.RunUntilQuiet()
	wantOut(t, e, h, "out", 100)
	if after := e.Info(h).Definition; after == before || after == "" {
		t.Errorf("definitions %q, then %q", before, after)
	}
	if err := h.Patch(t.Context(), next); err != nil {
		t.Errorf("the same once more: %v", err)
	}

	// A job that holds messages cannot go, an empty one can.
	e.Feed(h, "in", 7)
	e.RunNext()
	short := row(part{"a", 2}, part{"b", 3})
	if err := h.Patch(t.Context(), short); !errors.Is(err, job.ErrStatus) || !strings.Contains(err.Error(), "let it finish first") {
		t.Errorf("removing a job with messages: %v", err)
	}
	e.RunUntilQuiet()
	wantOut(t, e, h, "out", 700)
	if err := h.Patch(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "in", 1)
	e.CloseIn(h, "in")
	e.RunUntilQuiet()
	wantOut(t, e, h, "out", 6)
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("the graph is %s", s)
	}
	children, err := h.Children(t.Context())
	if err != nil || len(children) != 2 {
		t.Errorf("%d children, %v", len(children), err)
	}

	// A completed graph that gets an open source goes on, as far as its jobs are fed by it.
	fan := row(part{"a", 2}, part{"b", 3})
	extra := graph.Add(fan, "extra", &Step{By: 100})
	graph.Connect(graph.Input[int](fan, "more"), extra.In)
	graph.Wire(fan, "extra.out", "b.in")
	if err := h.Patch(t.Context(), fan); err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "more", 1)
	e.CloseIn(h, "more")
	e.RunUntilQuiet()
	wantOut(t, e, h, "out", 300)
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("at last the graph is %s", s)
	}
}

func TestPatchRefused(t *testing.T) {
	t.Parallel()
	e, h := start(t, row(part{"a", 2}))
	other := graph.New("other")
	graph.Add(other, "a", &Step{})
	kind := graph.New("row")
	graph.Add(kind, "a", &Halve{})
	for what, p := range map[string]job.Planner{"another graph": other, "another type": kind, "a lone job": job.Single(&Step{}, "")} {
		if err := h.Patch(t.Context(), p); !errors.Is(err, job.ErrStatus) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := h.Patch(t.Context(), graph.New("row")); err == nil {
		t.Error("a graph without jobs was accepted")
	}
	lone := e.Start(job.Single(&Step{}, ""))
	if err := lone.Patch(t.Context(), row(part{"a", 2})); !errors.Is(err, job.ErrStatus) {
		t.Errorf("a lone job: %v", err)
	}
}

// TestPatchNested: jobs of nested graphs come and go, too, and unread output is not lost.
func TestPatchNested(t *testing.T) {
	t.Parallel()
	build := func(once bool) *graph.Graph {
		g := graph.New("g")
		in := graph.Input[int](g, "in")
		if once {
			w := graph.Add(g, "w", &Once{By: 2})
			graph.Connect(in, w.In)
			graph.Export(g, "out", w.Out)
			return g
		}
		w := graph.Add(g, "twice", &Twice{By: 3})
		graph.Connect(in, w.In)
		graph.Export(g, "out", w.Out)
		return g
	}
	e, h := start(t, build(true))
	e.Feed(h, "in", 1)
	e.RunUntilQuiet()
	if err := h.Patch(t.Context(), build(false)); err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "in", 1)
	e.CloseIn(h, "in")
	e.RunUntilQuiet()
	got := weirtest.Drain[int](e, h, "out")
	slices.Sort(got)
	if !slices.Equal(got, []int{2, 9}) {
		t.Errorf("got %v, want [2 9]", got)
	}
	if p, _ := e.Info(h).Port(port.Output, "out"); !p.Closed || e.Status(h) != statemachine.Completed {
		t.Errorf("the graph is %s, its port %+v", e.Status(h), p)
	}
	tree, err := h.Tree(t.Context())
	if err != nil || len(tree) != 6 {
		t.Errorf("%d jobs, %v; want 6", len(tree), err)
	}
}
