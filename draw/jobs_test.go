package draw_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/golden"
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
	graph.Enter(b.In, first.In)
	graph.Connect(first.Out, second.In, graph.Limit(10))
	graph.Leave(second.Out, b.Out)
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

// TestJobs: what is drawn of a definition and of jobs at work.
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
	graph.Const(a.In, 1, 2, 3, 4)
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
