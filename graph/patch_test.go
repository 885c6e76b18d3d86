package graph_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
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
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 10, 20)
	e.Feed(h, "in", 1)
	e.RunUntilIdle()
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
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 700)
	if err := h.Patch(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "in", 1)
	e.CloseIn(h, "in")
	e.RunUntilIdle()
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
	e.RunUntilIdle()
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
	outer := graph.New("outer")
	graph.Nest(outer, "row", row(part{"a", 2}))
	nested := e.Child(e.Start(outer), "row")
	if err := nested.Patch(t.Context(), row(part{"a", 3})); !errors.Is(err, job.ErrStatus) || !strings.Contains(err.Error(), "patch that") {
		t.Errorf("a nested graph: %v", err)
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
	e.RunUntilIdle()
	if err := h.Patch(t.Context(), build(false)); err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "in", 1)
	e.CloseIn(h, "in")
	e.RunUntilIdle()
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

// loop is Halve with its feedback, fed by its Input if wired, else by a constant.
func loop(fed bool, extra ...string) *graph.Graph {
	g := graph.New("loop")
	h := graph.Add(g, "halve", &Halve{})
	back := graph.Add(g, "back", &Step{By: 1})
	graph.Connect(h.Again, back.In)
	graph.Connect(back.Out, h.In, graph.Feedback())
	if fed {
		graph.Connect(graph.Input[int](g, "in"), h.In)
	}
	last := h.Out
	for _, name := range extra {
		s := graph.Add(g, name, &Step{By: 10})
		graph.Connect(last, s.In)
		last = s.Out
	}
	graph.Export(g, "out", last)
	return g
}

// TestPatchFeedback: whoever is fed by feedback still finds its end after a patch, be it that
// the last other source went or that one came.
func TestPatchFeedback(t *testing.T) {
	t.Parallel()
	e, h := start(t, loop(true))
	e.Feed(h, "in", 12)
	e.RunNext()
	if err := h.Patch(t.Context(), loop(true, "ten")); err != nil {
		t.Fatal(err)
	}
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 30)
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("with one more step the graph is %s", s)
	}

	e, h = start(t, loop(true))
	e.Feed(h, "in", 8)
	e.RunNext() // 4 is on its way round
	if err := h.Patch(t.Context(), loop(false)); err != nil {
		t.Fatal(err)
	}
	if p, _ := e.Info(e.Child(h, "halve")).Port(port.Input, "in"); p.Closed {
		t.Error("the port is closed while a message goes round")
	}
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 1)
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("without its source the graph is %s", s)
	}
}

// TestPatchWiresFinishedJobs: who is wired by a patch to a job that has completed, or that is
// in the middle of a run, hears of its end.
func TestPatchWiresFinishedJobs(t *testing.T) {
	t.Parallel()
	build := func(wired bool) *graph.Graph {
		g := graph.New("g")
		a := graph.Add(g, "a", &Step{By: 2})
		b := graph.Add(g, "b", &Step{By: 3})
		graph.Initial(a.In, 1)
		graph.Connect(graph.Input[int](g, "in"), b.In)
		if wired {
			graph.Connect(a.Out, b.In)
		}
		graph.Export(g, "out", b.Out)
		return g
	}
	e, h := start(t, build(false))
	e.RunUntilIdle()
	if s := e.Status(e.Child(h, "a")); s != statemachine.Completed {
		t.Fatalf("a is %s", s)
	}
	if err := h.Patch(t.Context(), build(true)); err != nil {
		t.Fatal(err)
	}
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 6) // what a had written went along the new wire
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("the graph is %s", s)
	}
}

// Busy calls a function in the middle of its run.
type Busy struct {
	In  port.In[int]
	Out port.Out[int]

	during func()
}

func (b *Busy) Run(context.Context, *worker.Run) error {
	for n, err := range b.In.All() {
		if err != nil {
			return err
		}
		b.during()
		if err := b.Out.Write(n); err != nil {
			return err
		}
	}
	return nil
}

// TestPatchDuringRun: a run in progress goes by the wires that it began with; another one
// closes what the patch has wired.
func TestPatchDuringRun(t *testing.T) {
	t.Parallel()
	build := func(wired bool) *graph.Graph {
		g := graph.New("g")
		a := graph.Add(g, "a", &Busy{})
		b := graph.Add(g, "b", &Step{By: 3})
		graph.Initial(a.In, 1)
		graph.Connect(graph.Input[int](g, "in"), b.In)
		if wired {
			graph.Connect(a.Out, b.In)
		}
		graph.Export(g, "out", b.Out)
		return g
	}
	var h *client.Handle
	e := weirtest.New(t, &Step{}, &Busy{during: func() {
		if err := h.Patch(t.Context(), build(true)); err != nil {
			t.Error(err)
		}
	}})
	h = e.Start(build(false))
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 3)
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("the graph is %s", s)
	}
}
