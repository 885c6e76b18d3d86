package draw_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// pass is a worker that passes numbers on.
type pass struct {
	By  int
	In  port.In[int]
	Out port.Out[int]
}

func (*pass) JobType() string { return "Pass" }

func (p *pass) Run(context.Context, *worker.Run) error {
	for n, err := range p.In.All() {
		if err == nil {
			err = p.Out.Write(n * p.By)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// both is a composite of two.
type both struct {
	In  port.In[int]
	Out port.Out[int]
}

func (*both) JobType() string { return "Both" }

func (b *both) Build(g *graph.Graph) {
	first := graph.Add(g, "first", &pass{By: 1})
	second := graph.Add(g, "second", &pass{By: 1}, graph.Instances(3))
	graph.BindInput(b.In, first.In)
	graph.Connect(first.Out, second.In, graph.Limit(10))
	graph.BindOutput(second.Out, b.Out)
}

func numbers() *graph.Graph {
	g := graph.New("numbers")
	start := graph.Add(g, "start", &pass{By: 2})
	inner := graph.Add(g, "inner", &both{}, graph.Instances(2))
	graph.Connect(graph.Input[int](g, "in"), start.In)
	graph.Connect(start.Out, inner.In)
	graph.Connect(inner.Out, start.In, graph.Feedback())
	graph.Export(g, "out", inner.Out)
	return g
}

// TestJobs: what is drawn of a definition and of running jobs.
func TestJobs(t *testing.T) {
	t.Parallel()
	plan, err := numbers().Plan()
	if err != nil {
		t.Fatal(err)
	}
	drawn(t, "plan_numbers", draw.Plan(plan))
	e := weirtest.New(t, &pass{})
	g := graph.New("line")
	a := graph.Add(g, "a", &pass{By: 1})
	b := graph.Add(g, "b", &pass{By: 1}, graph.Instances(3))
	graph.Initial(a.In, 1, 2, 3, 4)
	graph.Connect(a.Out, b.In, graph.Limit(2))
	graph.Export(g, "out", b.Out)
	h := e.Start(g)
	e.RunNext()
	e.RunNext()
	tree, err := h.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	drawn(t, "jobs_line", draw.Jobs(tree))
	drawn(t, "jobs_none", draw.Jobs(nil))
}

// chain is a graph of workers one behind the other.
func chain(names ...string) *graph.Graph {
	g := graph.New("chain")
	from := graph.Input[int](g, "in")
	for i, name := range names {
		s := graph.Add(g, name, &pass{By: i + 1})
		graph.Connect(from, s.In)
		from = s.Out
	}
	graph.Export(g, "out", from)
	return g
}

// TestNumberedNames: nodes with names like those of instances are boxes of their own; instances are
// one box, however they are called, also after a patch.
func TestNumberedNames(t *testing.T) {
	t.Parallel()
	steps := chain("step_1", "step_2", "step_3")
	plan, err := steps.Plan()
	if err != nil {
		t.Fatal(err)
	}
	drawn(t, "plan_steps", draw.Plan(plan))
	e := weirtest.New(t, &pass{})
	h := e.Start(steps)
	e.Feed(h, "in", 1)
	e.RunUntilIdle()
	tree, err := h.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	drawn(t, "jobs_steps", draw.Jobs(tree))
	boxes := func(g *graph.Graph) (labels []string) {
		t.Helper()
		if err := h.Patch(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		tree, err := h.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range draw.Jobs(tree).Nodes {
			if n.Kind == draw.Job {
				labels = append(labels, n.Label+n.Note)
			}
		}
		return labels
	}
	shared := graph.New("chain")
	s := graph.Add(shared, "step", &pass{By: 7}, graph.Instances(3))
	graph.Connect(graph.Input[int](shared, "in"), s.In)
	graph.Export(shared, "out", s.Out)
	if got := boxes(shared); !slices.Equal(got, []string{"step×3"}) {
		t.Errorf("instances: %q", got)
	}
	if got := boxes(chain("step_1", "step_2", "step_3")); !slices.Equal(got, []string{"step_1", "step_2", "step_3"}) {
		t.Errorf("nodes again: %q", got)
	}
}

func drawn(t *testing.T, name string, p draw.Picture) {
	t.Helper()
	var b bytes.Buffer
	for _, format := range []string{"terminal", "mermaid"} {
		if err := draw.Write(&b, p, format, draw.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, filepath.Join("testdata", name+".txt"), b.Bytes())
}

// picky cannot handle odd numbers.
type picky struct {
	In  port.In[int]
	Out port.Out[int]
}

func (w *picky) Run(context.Context, *worker.Run) error {
	for n, err := range w.In.All() {
		if err == nil && n%2 == 1 {
			err = worker.Permanent(errors.New("it is odd"))
		}
		if err = cmp.Or(err, w.Out.Write(n)); err != nil {
			return err
		}
	}
	return nil
}

// TestDeadLetters: the port for dead letters is drawn if it leads somewhere, or some wait in it, and then with their number.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &picky{})
	g := graph.New("picky")
	lone := graph.Add(g, "lone", &picky{}, graph.OnFailure(job.DeadLetter))
	wired := graph.Add(g, "wired", &picky{}, graph.OnFailure(job.DeadLetter))
	in := graph.Input[int](g, "in")
	graph.Connect(in, lone.In)
	graph.Connect(in, wired.In)
	graph.Export(g, "lone", lone.Out)
	graph.Export(g, "wired", wired.Out)
	graph.Export(g, "errors", graph.Errors(g, wired))
	h := e.Start(g)
	names := func(p draw.Picture) (all []string) {
		for _, n := range p.Nodes {
			if n.Kind == draw.Job {
				for _, q := range n.Out {
					all = append(all, fmt.Sprintf("%s.%s %d", n.Label, q.Name, q.Waiting))
				}
			}
		}
		slices.Sort(all)
		return all
	}
	pictures := func() (all []string) {
		tree, err := h.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return names(draw.Jobs(tree))
	}
	plan, err := g.Plan()
	if err != nil {
		t.Fatal(err)
	}
	quiet := []string{"lone.out 0", "wired.errors 0", "wired.out 0"}
	if got := names(draw.Plan(plan)); !slices.Equal(got, quiet) {
		t.Errorf("the plan: %q", got)
	}
	if got := pictures(); !slices.Equal(got, quiet) {
		t.Errorf("before: %q", got)
	}
	e.Feed(h, "in", 1, 2, 3)
	e.RunUntilIdle()
	if got := pictures(); !slices.Equal(got, []string{"lone.errors 2", "lone.out 0", "wired.errors 0", "wired.out 0"}) {
		t.Errorf("after: %q", got)
	}
}
