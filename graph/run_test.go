package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Step multiplies numbers, and fails on one it does not like.
type Step struct {
	By   int `json:"by,omitempty"`
	Hate int `json:"hate,omitempty"`
	In   port.In[int]
	Out  port.Out[int]
}

func (s *Step) Run(context.Context, *worker.Run) error {
	for n, err := range s.In.All() {
		if err != nil {
			return err
		}
		if s.Hate != 0 && n%s.Hate == 0 {
			return fmt.Errorf("%d is not to be borne", n)
		}
		if err := s.Out.Write(n * s.By); err != nil {
			return err
		}
	}
	return nil
}

// Twice is a composite of two steps, with one more inside.
type Twice struct {
	By  int
	In  port.In[int]
	Out port.Out[int]
}

func (c *Twice) Build(g *graph.Graph) {
	first := graph.Add(g, "first", &Once{By: c.By})
	second := graph.Add(g, "second", &Step{By: c.By}, graph.Instances(2))
	graph.BindInput(c.In, first.In)
	graph.Connect(first.Out, second.In)
	graph.BindOutput(second.Out, c.Out)
}

// Once is a composite of one step.
type Once struct {
	By  int
	In  port.In[int]
	Out port.Out[int]
}

func (c *Once) Build(g *graph.Graph) {
	s := graph.Add(g, "step", &Step{By: c.By})
	graph.BindInput(c.In, s.In, graph.Limit(5))
	graph.BindOutput(s.Out, c.Out)
}

// Halve sends even numbers round again, and others out.
type Halve struct {
	In    port.In[int]
	Again port.Out[int]
	Out   port.Out[int]
}

func (h *Halve) Run(context.Context, *worker.Run) error {
	for n, err := range h.In.All() {
		if err == nil && n%2 == 0 {
			err = h.Again.Write(n / 2)
		} else if err == nil {
			err = h.Out.Write(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func start(t *testing.T, g *graph.Graph) (*weirtest.Engine, *client.Handle) {
	t.Helper()
	e := weirtest.New(t, &Step{}, &Halve{}, &Pair{})
	return e, e.Start(g)
}

func wantOut[T comparable](t *testing.T, e *weirtest.Engine, h *client.Handle, out string, want ...T) {
	t.Helper()
	if got := weirtest.Drain[T](e, h, out); !slices.Equal(got, want) {
		t.Errorf("port %s: got %v, want %v", out, got, want)
	}
}

func TestNested(t *testing.T) {
	t.Parallel()
	g := graph.New("nest")
	a := graph.Add(g, "a", &Twice{By: 3})
	b := graph.Add(g, "b", &Once{By: 10}, graph.Instances(2))
	graph.Initial(a.In, 1, 2, 3, 4)
	graph.Connect(a.Out, b.In)
	graph.Export(g, "out", b.Out)
	e, h := start(t, g)
	e.RunUntilIdle()
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("the graph is %s, want completed", s)
	}
	got := weirtest.Drain[int](e, h, "out")
	slices.Sort(got)
	if want := []int{90, 180, 270, 360}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var names []string
	tree, err := h.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	paths := map[job.ID]string{}
	for _, i := range tree {
		paths[i.ID] = strings.TrimPrefix(paths[i.Parent]+"/"+i.Name, "/nest")
		names = append(names, fmt.Sprintf("%s:%s:%s", paths[i.ID], i.Type, i.Status))
	}
	want := ":nest:completed /a:Twice:completed /a/first:Once:completed /a/first/step:Step:completed" +
		" /a/second_1:Step:completed /a/second_2:Step:completed" +
		" /b_1:Once:completed /b_1/step:Step:completed /b_2:Once:completed /b_2/step:Step:completed"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the tree is\n%s\nwant\n%s", got, want)
	}
	if p, _ := e.Info(e.Child(h, "a", "first", "step")).Port(port.Input, "in"); p.Limit != 5 {
		t.Errorf("the limit is %d, want 5", p.Limit)
	}
}

func TestFailurePolicies(t *testing.T) {
	t.Parallel()
	build := func(p job.FailurePolicy) *graph.Graph {
		g := graph.New("g")
		s := graph.Add(g, "s", &Step{By: 1, Hate: 3}, graph.OnFailure(p))
		next := graph.Add(g, "next", &Step{By: 10})
		graph.Initial(s.In, 1, 2, 3, 4, 5, 6, 7)
		graph.Connect(s.Out, next.In)
		graph.Export(g, "out", next.Out)
		if p == job.DeadLetter {
			graph.Connect(graph.Errors(g, s), graph.Add(g, "letters", &Letters{}).In)
		}
		return g
	}
	for policy, want := range map[job.FailurePolicy]struct {
		graph, s statemachine.Status
		out      []int
	}{
		job.FailGraph:  {statemachine.Failed, statemachine.Failed, nil},
		job.Ignore:     {statemachine.Completed, statemachine.Failed, nil},
		job.Restart:    {statemachine.Suspended, statemachine.Scheduled, nil},
		job.DeadLetter: {statemachine.Completed, statemachine.Completed, []int{10, 20, 40, 50, 70}},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			e := weirtest.New(t, &Step{}, &Letters{})
			h := e.Start(build(policy))
			e.RunUntilIdle()
			e.Advance(time.Hour)
			if got := []statemachine.Status{e.Status(h), e.Status(e.Child(h, "s"))}; got[0] != want.graph || got[1] != want.s {
				t.Errorf("graph and job are %s, want %s and %s", got, want.graph, want.s)
			}
			wantOut(t, e, h, "out", want.out...)
			if t.Failed() {
				tree, _ := h.Tree(t.Context())
				for _, i := range tree {
					t.Logf("%+v", i)
				}
			}
			if policy != job.DeadLetter {
				return
			}
			letters := e.Child(h, "letters")
			if got := weirtest.State[[]string](e, letters, "seen"); !slices.Equal(got, []string{"3: 3 is not to be borne", "6: 6 is not to be borne"}) {
				t.Errorf("letters %q", got)
			}
		})
	}
}

// A nested graph whose failure does not matter goes on with what is left of it, and who is
// fed by it hears of its end.
func TestIgnoredGraph(t *testing.T) {
	t.Parallel()
	inner := graph.New("inner")
	for _, name := range []string{"bad", "good"} {
		s := graph.Add(inner, name, &Step{By: 1})
		if name == "bad" {
			s.Hate = 1
		}
		graph.Connect(graph.Input[int](inner, name), s.In)
		graph.Export(inner, "out_"+name, s.Out)
	}
	g := graph.New("g")
	graph.Nest(g, "inner", inner, graph.OnFailure(job.Ignore))
	for _, name := range []string{"bad", "good"} {
		graph.WireInput(g, name, "inner."+name)
		next := graph.Add(g, "next_"+name, &Step{By: 10})
		graph.Wire(g, "inner.out_"+name, "next_"+name+".in")
		graph.Export(g, "out_"+name, next.Out)
	}
	e, h := start(t, g)
	e.Feed(h, "bad", 1)
	e.CloseIn(h, "bad")
	e.RunUntilIdle()
	e.Advance(24 * time.Hour)
	if s := e.Status(e.Child(h, "next_bad")); s != statemachine.Completed {
		t.Errorf("behind the job that failed: %s", s)
	}
	if s := e.Status(e.Child(h, "inner")); s != statemachine.Suspended {
		t.Errorf("with a job that goes on the nested graph is %s", s)
	}
	e.Feed(h, "good", 1)
	e.CloseIn(h, "good")
	e.RunUntilIdle()
	wantOut(t, e, h, "out_good", 10)
	wantOut[int](t, e, h, "out_bad")
	if got := []statemachine.Status{e.Status(h), e.Status(e.Child(h, "inner"))}; got[0] != statemachine.Completed || got[1] != statemachine.Failed {
		t.Errorf("outer and nested graph are %s", got)
	}
}

// Couple needs two messages at once, and hates some.
type Couple struct {
	Hate int `json:"hate,omitempty"`
	In   port.In[int]
	Out  port.Out[int]
}

func (c *Couple) Run(context.Context, *worker.Run) error {
	for c.In.Len() >= 2 {
		a, _, err := c.In.Read()
		if err != nil {
			return err
		}
		b, _, err := c.In.Read()
		if err != nil {
			return err
		}
		if a == c.Hate || b == c.Hate {
			return fmt.Errorf("%d and %d do not go together", a, b)
		}
		if err := c.Out.Write(a + b); err != nil {
			return err
		}
	}
	return nil
}

// A worker that needs several messages at once does not stand still when they are to be tried
// one by one: it fails with those that it cannot handle, and the others are not lost.
func TestDeadLettersOfSeveral(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	c := graph.Add(g, "c", &Couple{Hate: 3}, graph.OnFailure(job.DeadLetter))
	graph.Connect(graph.Input[int](g, "in"), c.In)
	graph.Export(g, "out", c.Out)
	e := weirtest.New(t, &Couple{})
	h := e.Start(g)
	e.Feed(h, "in", 1, 2, 3, 4)
	e.RunUntilIdle()
	e.Advance(24 * time.Hour)
	if s := e.Status(h); s != statemachine.Failed {
		t.Errorf("the graph is %s", s)
	}
	if p, _ := e.Info(e.Child(h, "c")).Port(port.Input, "in"); p.Waiting != 4 {
		t.Errorf("%d messages wait, want 4", p.Waiting)
	}
}

// Letters remembers the letters that it gets.
type Letters struct {
	In port.In[job.Letter]
}

func (l *Letters) Run(_ context.Context, run *worker.Run) error {
	var seen []string
	if _, err := run.State().Get("seen", &seen); err != nil {
		return err
	}
	for letter, err := range l.In.All() {
		if err != nil {
			return err
		}
		seen = append(seen, fmt.Sprintf("%s: %s", letter.Messages["in"], letter.Error))
	}
	return run.State().Set("seen", seen)
}

// Messages that go round come out in the end, and so does the end of the stream.
func TestFeedback(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	h := graph.Add(g, "h", &Halve{})
	pass := graph.Add(g, "pass", &Step{By: 1})
	after := graph.Add(g, "after", &Step{By: 1})
	graph.Connect(graph.Input[int](g, "in"), h.In)
	graph.Connect(h.Again, pass.In)
	graph.Connect(pass.Out, h.In, graph.Feedback())
	graph.Connect(h.Out, after.In)
	graph.Export(g, "out", after.Out)
	e, root := start(t, g)
	e.Feed(root, "in", 12, 7, 32)
	e.RunUntilIdle()
	if s := e.Status(root); s != statemachine.Suspended {
		t.Errorf("before its end the graph is %s", s)
	}
	e.Feed(root, "in", 40)
	e.CloseIn(root, "in")
	e.RunUntilIdle()
	wantOut(t, e, root, "out", 7, 3, 1, 5)
	if s := e.Status(root); s != statemachine.Completed {
		t.Errorf("the graph is %s, want completed", s)
	}
}

// Pair joins the messages of two ports one by one.
type Pair struct {
	A, B port.In[int]
	Out  port.Out[int]
}

func (p *Pair) Run(context.Context, *worker.Run) error {
	for p.A.Len() > 0 && p.B.Len() > 0 {
		a, _, err := p.A.Read()
		if err != nil {
			return err
		}
		b, _, err := p.B.Read()
		if err != nil {
			return err
		}
		if err := p.Out.Write(a - b); err != nil {
			return err
		}
	}
	if p.A.Done() && p.B.Done() {
		return nil
	}
	return worker.ErrSuspend
}

func TestWireByName(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	sub := graph.New("sub")
	graph.AddWorker(sub, "s", &Step{By: 2})
	graph.WireInput(sub, "in", "s.in")
	graph.WireExport(sub, "out", "s.out")
	graph.Nest(g, "twice", sub, graph.Instances(1))
	graph.AddWorker(g, "pair", &Pair{})
	graph.Wire(g, "twice.out", "pair.a", graph.Limit(3))
	graph.WireInput(g, "in", "twice.in")
	graph.WireInput(g, "in", "pair.b")
	graph.WireExport(g, "out", "pair.out")
	e, h := start(t, g)
	e.Feed(h, "in", 5, 6)
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 5, 6)
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("the graph is %s, want completed", s)
	}
}

func TestWrongNames(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	graph.AddWorker(g, "a", &Step{})
	graph.AddWorker(g, "list", &ListDir{})
	graph.AddWorker(g, "bad", Step{})
	graph.Wire(g, "a.out", "b.in")
	graph.Wire(g, "a.ouch", "a.in")
	graph.Wire(g, "a", "a.in")
	graph.Wire(g, "a.in", "a.out")
	graph.Wire(g, "list.files", "a.in")
	graph.Wire(g, "a.out", "a.in", graph.Limit(0), graph.Feedback())
	graph.WireExport(g, "x", "a.out")
	graph.WireExport(g, "x", "list.files")
	graph.WireExport(g, "y", "a.in")
	graph.WireConst(g, "a.in", []byte(`"text"`))
	graph.Nest(g, "self", g)
	_, err := g.Plan()
	if !errors.Is(err, job.ErrPort) {
		t.Errorf("got %v", err)
	}
	want := strings.Split(strings.TrimSpace(`
g/bad: got a graph_test.Step: pass a pointer to a worker
g/b: the graph has no such worker: did you mean "a"?
g/a.ouch: port: there is no such out port: use one of: out
g: "a" names no port: write it as "worker.port"
g/a.in: port: there is no such out port: it is an in port
g/a.out: port: there is no such in port: it is an out port
g/list.files: its messages are of type github.com/weirworks/weir/graph_test.Image, those of g/a.in of type int: put a worker that converts them in between
g/a.in: graph.Limit(0): use at least 1, or no Limit
g/list.files: its messages are of type github.com/weirworks/weir/graph_test.Image, those of g.x of type int: put a worker that converts them in between
g.y: port: g/a.in is an In port, and cannot be exported: give the graph an input that leads to it (inputs in a file, graph.Input in Go)
g/a.in: the constant does not fit: decoding message "text" as int: wrong encoding: json: cannot unmarshal string into Go value of type int
g/self: a graph cannot contain itself or nothing: pass another graph`), "\n")
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("line %d:\n got %q\nwant %q", i, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
}

// Strict needs its input.
type Strict struct {
	In  port.In[int] `port:"in,required"`
	Out port.Out[int]
}

func (*Strict) Run(context.Context, *worker.Run) error { return nil }

func TestRequired(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	graph.Add(g, "a", &Strict{})
	b := graph.Add(g, "b", &Strict{})
	graph.Initial(b.In, 1)
	if _, err := g.Plan(); err == nil || err.Error() != "g/a.in: this port must be fed: connect it, or give it a value" {
		t.Errorf("got %v", err)
	}
}

// TestRoots: instances of a graph are listed in the order of their creation, page by page,
// and each tells which version of the graph it is of.
func TestRoots(t *testing.T) {
	t.Parallel()
	build := func(by int) *graph.Graph {
		g := graph.New("line")
		s := graph.Add(g, "s", &Step{By: by})
		graph.Connect(graph.Input[int](g, "in"), s.In)
		return g
	}
	e := weirtest.New(t, &Step{})
	e.Start(job.Single(&Step{}, ""))
	var want []job.ID
	versions := map[string]int{}
	for i := range 250 {
		h := e.Start(build(i % 2))
		want = append(want, h.ID())
		if i == 249 {
			e.CloseIn(h, "in")
		}
	}
	e.RunUntilIdle()
	list := func(f job.Filter) (ids []job.ID) {
		f.Order = job.Oldest
		for info, err := range e.Client().Jobs(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, info.ID)
			versions[info.Definition]++
		}
		return ids
	}
	if got := list(job.Filter{Type: "line"}); !slices.Equal(got, want) {
		t.Errorf("got %d instances, want %d in their order", len(got), len(want))
	}
	if len(versions) != 2 || versions[""] != 0 {
		t.Errorf("versions %v, want two", versions)
	}
	if got := list(job.Filter{Type: "line", Status: []statemachine.Status{statemachine.Completed}}); !slices.Equal(got, want[249:]) {
		t.Errorf("completed are %v", got)
	}
	if got := list(job.Filter{After: want[247]}); !slices.Equal(got, want[248:]) {
		t.Errorf("the last are %v", got)
	}
}

// TestIdle: a graph in which nothing moves says that it is open.
func TestIdle(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	s := graph.Add(g, "s", &Step{By: 1})
	graph.Connect(graph.Input[int](g, "in"), s.In)
	e, h := start(t, g)
	reason := func() string {
		tree, err := h.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return tree[0].Reason
	}
	if got := reason(); got != "idle: its input in is open" {
		t.Errorf("reason %q", got)
	}
	e.Feed(h, "in", 1)
	if got := reason(); got != "" {
		t.Errorf("with work to do: reason %q", got)
	}
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	if got := reason(); got != "" || e.Status(h) != statemachine.Completed {
		t.Errorf("at the end: reason %q, %s", got, e.Status(h))
	}
}

// letterReader reads dead letters.
type letterReader struct {
	In port.In[job.Letter]
}

func (*letterReader) Run(context.Context, *worker.Run) error { return nil }

// A port for dead letters is of the type of dead letters, also for a wire that names it as text.
func TestDeadLettersWiredByName(t *testing.T) {
	t.Parallel()
	g := graph.New("g")
	graph.Add(g, "a", &letterReader{}, graph.OnFailure(job.DeadLetter))
	graph.Add(g, "b", &letterReader{})
	graph.Wire(g, "a."+job.ErrorsPort, "b.in")
	if _, err := g.Plan(); err != nil {
		t.Error(err)
	}
}
