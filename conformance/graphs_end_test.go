package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Lopsided writes N messages to A before the first to B.
type Lopsided struct {
	pure
	N    int64
	A, B port.Out[Num]
}

func (l *Lopsided) Run(_ context.Context, run *worker.Run) error {
	for {
		n, err := count(run, "count")
		if err != nil || n > 2*l.N {
			return err
		}
		if n <= l.N {
			err = give(run, l.A, Num{Val: n})
		} else {
			err = give(run, l.B, Num{Val: n - l.N})
		}
		if err == nil {
			err = run.Checkpoint()
		}
		if err != nil {
			return err
		}
	}
}

// Burst reads one number a run, and writes the number below it twice; zeros leave.
type Burst struct {
	pure
	In    port.In[int]
	Again port.Out[int]
	Out   port.Out[int]
}

func (b *Burst) Run(context.Context, *worker.Run) error {
	n, ok, err := b.In.Read()
	switch {
	case err != nil || !ok:
		return err
	case n == 0:
		return b.Out.Write(n)
	}
	if err := b.Again.Write(n - 1); err != nil {
		return err
	}
	return b.Again.Write(n - 1)
}

// Pass passes one number a run on.
type Pass struct {
	pure
	In  port.In[int]
	Out port.Out[int]
}

func (p *Pass) Run(context.Context, *worker.Run) error {
	n, ok, err := p.In.Read()
	if err != nil || !ok {
		return err
	}
	return p.Out.Write(n)
}

// deadlocks is what the logs of a tree say of jobs that waited for each other.
func (e *env) deadlocks(h *client.Handle) (cycles []string) {
	e.Helper()
	tree, err := h.Tree(e.Ctx)
	e.Check(err)
	for _, i := range tree {
		logs, err := e.Store.Logs(e.Ctx, i.ID, 1000)
		e.Check(err)
		for _, l := range logs {
			var note struct{ Deadlock string }
			if err := json.Unmarshal(l.Entry, &note); err == nil && note.Deadlock != "" {
				cycles = append(cycles, note.Deadlock)
			}
		}
	}
	return cycles
}

// A join that waits for its second port while the first is full, and the job that feeds
// both are suspended, get over it by themselves.
func TestGraphsDeadlockInDiamond(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.SharedRedis(t))
	e.serve(&Lopsided{}, &Calc{}, &Zip{})
	const n = 5
	g := graph.New("lopsided")
	source := graph.Add(g, "source", &Lopsided{N: n})
	middle := graph.Add(g, "middle", &Calc{Mul: 100})
	join := graph.Add(g, "join", &Zip{})
	graph.Connect(source.A, join.A, graph.Limit(2))
	graph.Connect(source.B, middle.In)
	graph.Connect(middle.Out, join.B)
	graph.Export(g, "out", join.Out)
	h := e.Start(g)
	e.reach(h, statemachine.Completed, statemachine.Failed)
	var want []int64
	for i := range int64(n) {
		want = append(want, 131*(i+1))
	}
	e.outcome(h, shape{want: map[int64][]int64{0: want}})
	cycles := e.deadlocks(h)
	if len(cycles) != 2 || cycles[0] != "source -> join -> source" || cycles[1] != cycles[0] {
		e.Errorf("the log names %q, want the cycle twice: from 2 to 4 to 8", cycles)
	}
}

// A cycle in which both jobs rest because the other one's port is full gets over it, too.
func TestGraphsDeadlockInCycle(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.SharedRedis(t))
	e.serve(&Burst{}, &Pass{})
	g := graph.New("burst")
	b := graph.Add(g, "burst", &Burst{})
	p := graph.Add(g, "pass", &Pass{})
	graph.Connect(graph.Input[int](g, "in"), b.In)
	graph.Connect(b.Again, p.In, graph.Limit(1))
	graph.Connect(p.Out, b.In, graph.Feedback(), graph.Limit(1))
	graph.Export(g, "out", b.Out)
	h := e.Start(g)
	e.Check(h.Write(e.Ctx, "in", 2))
	e.Check(h.Close(e.Ctx, "in"))
	e.reach(h, statemachine.Completed, statemachine.Failed)
	if got := enginetest.Outs[int](e, h, "out"); !slices.Equal(got, make([]int, 4)) {
		e.Errorf("got %v, want four zeros", got)
	}
	cycles := e.deadlocks(h)
	t.Logf("the log names %q", cycles)
	if len(cycles) == 0 {
		e.Error("there was no deadlock: the test shows nothing")
	}
	for _, c := range cycles {
		if c != "burst -> pass -> burst" && c != "pass -> burst -> pass" {
			e.Errorf("the log names the cycle %q", c)
		}
	}
}

// Sieve lets nothing pass.
type Sieve struct {
	pure
	In  port.In[Num]
	Out port.Out[Num]
}

func (s *Sieve) Run(context.Context, *worker.Run) error {
	for _, err := range s.In.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// Census tells at its end how many messages came.
type Census struct {
	pure
	In  port.In[Num]
	Out port.Out[int]
}

func (c *Census) Run(_ context.Context, run *worker.Run) error {
	var n int
	if _, err := run.State().Get("n", &n); err != nil {
		return err
	}
	n += c.In.Len()
	for _, err := range c.In.All() {
		if err != nil {
			return err
		}
	}
	if c.In.Done() {
		return c.Out.Write(n)
	}
	return run.State().Set("n", n)
}

// The end of a stream without messages arrives as any other.
func TestGraphsEmptyBranch(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Count{}, &Sieve{}, &Census{})
		for _, n := range []int{0, 5} {
			g := graph.New("empty")
			c := graph.Add(g, "count", &Count{N: n})
			sieve := graph.Add(g, "sieve", &Sieve{}, graph.Instances(2))
			none := graph.Add(g, "none", &Census{})
			all := graph.Add(g, "all", &Census{})
			graph.Connect(c.Out, sieve.In)
			graph.Connect(sieve.Out, none.In)
			graph.Connect(c.Out, all.In)
			graph.Export(g, "none", none.Out)
			graph.Export(g, "all", all.Out)
			h := e.Start(g)
			e.reach(h, statemachine.Completed)
			if none, all := enginetest.Outs[int](e, h, "none"), enginetest.Outs[int](e, h, "all"); !slices.Equal(none, []int{0}) || !slices.Equal(all, []int{n}) {
				e.Errorf("%d messages: behind the sieve %v, beside it %v", n, none, all)
			}
		}
	})
}

// A graph with nothing to do, to which more may come, sleeps; so do its jobs. When nothing
// can come any more it is completed.
func TestGraphsIdle(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Calc{}, &Census{})
		g := graph.New("idle")
		c := graph.Add(g, "calc", &Calc{Mul: 1})
		all := graph.Add(g, "all", &Census{})
		graph.Connect(graph.Input[Num](g, "in"), c.In)
		graph.Connect(c.Out, all.In)
		graph.Export(g, "all", all.Out)
		h := e.Start(g)
		tree, err := h.Tree(e.Ctx)
		e.Check(err)
		for _, i := range tree {
			if i.Status != statemachine.Suspended || i.Steps != 0 {
				e.Errorf("before any message %s is %s after %d steps", i.Name, i.Status, i.Steps)
			}
		}
		e.Check(h.Write(e.Ctx, "in", Num{Seq: 1, Val: 1}, Num{Seq: 2, Val: 2}))
		last, err := h.Child(e.Ctx, "all")
		e.Check(err)
		e.Until("both messages have arrived", func() bool {
			p, _ := e.Info(last).Port(port.Input, "in")
			return p.Total == 2 && p.Waiting == 0
		})
		e.reach(last, statemachine.Suspended)
		if i := e.reach(h, statemachine.Suspended); strings.Contains(i.Reason, "fail") {
			e.Errorf("the graph sleeps because %s", i.Reason)
		}
		e.Check(h.Close(e.Ctx, "in"))
		e.reach(h, statemachine.Completed)
		if got := enginetest.Outs[int](e, h, "all"); !slices.Equal(got, []int{2}) {
			e.Errorf("got %v", got)
		}
	})
}

// A loop ends when nothing in it moves and nothing can come into its graph any more: not
// while the graph is idle, however the loop is fed.
func TestGraphsEndOfLoop(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		for _, quiet := range []bool{true, false} {
			for _, busy := range []bool{true, false} {
				t.Run(fmt.Sprintf("own %v quiet %v busy %v", own, quiet, busy), func(t *testing.T) {
					t.Parallel()
					e := weirtest.New(t, &Turn{}, &Calc{}, &Halve{})
					h := e.Start(round(own))
					if quiet {
						e.RunUntilIdle()
					}
					e.Feed(h, "in", Num{Seq: 1, Val: 3}, Num{Seq: 2, Val: 6})
					if !busy {
						e.RunUntilIdle()
						if s := e.Status(h); s != statemachine.Suspended {
							t.Errorf("before its end the graph is %s", s)
						}
					}
					e.CloseIn(h, "in")
					e.RunUntilIdle()
					var vals []int64
					for _, m := range weirtest.Drain[Num](e, h, "out") {
						vals = append(vals, m.Val)
					}
					if s := e.Status(h); s != statemachine.Completed || len(vals) != 2 {
						t.Errorf("the graph is %s, got %v", s, vals)
					}
				})
			}
		}
	}
}

// Halve sends even values round again, into the port that they came from.
type Halve struct {
	pure
	In    port.In[Num]
	Again port.Out[Num]
	Out   port.Out[Num]
}

func (h *Halve) Run(context.Context, *worker.Run) error {
	for m, err := range h.In.All() {
		if err == nil && m.Val%2 == 0 {
			err = h.Again.Write(Num{Val: m.Val / 2})
		} else if err == nil {
			err = h.Out.Write(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// round is a graph with a loop: into a port of its own, or into that of the input.
func round(own bool) *graph.Graph {
	g := graph.New("round")
	in := graph.Input[Num](g, "in")
	if !own {
		h := graph.Add(g, "halve", &Halve{})
		graph.Connect(in, h.In)
		graph.Connect(h.Again, h.In, graph.Feedback())
		graph.Export(g, "out", h.Out)
		return g
	}
	turn := graph.Add(g, "turn", &Turn{})
	pass := graph.Add(g, "pass", &Calc{Mul: 1, Add: 10})
	graph.Connect(in, turn.In)
	graph.Connect(turn.Again, pass.In)
	graph.Connect(pass.Out, turn.Back, graph.Feedback())
	graph.Export(g, "out", turn.Out)
	return g
}
