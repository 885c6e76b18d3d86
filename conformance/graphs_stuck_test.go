package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// vals are the values of messages that came out of a job, sorted.
func vals(e *weirtest.Engine, h *client.Handle, out string) []int64 {
	var all []int64
	for _, m := range weirtest.Drain[Num](e, h, out) {
		all = append(all, m.Val)
	}
	slices.Sort(all)
	return all
}

// wantEnd fails the test unless a graph has completed with these values.
func wantEnd(t *testing.T, e *weirtest.Engine, h *client.Handle, want ...int64) {
	t.Helper()
	if s := e.Status(h); s != statemachine.Completed {
		tree, err := h.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range tree {
			t.Logf("%s %s: %s %s", i.ID, i.Name, i.Status, i.Reason)
		}
		t.Errorf("the graph is %s", s)
	}
	if got := vals(e, h, "out"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// wrap puts a graph with the ports in and out into another one.
func wrap(name string, inner *graph.Graph, on ...graph.Option) *graph.Graph {
	g := graph.New(name)
	graph.Nest(g, "inner", inner, on...)
	graph.WireInput(g, "in", "inner.in")
	graph.WireExport(g, "out", "inner.out")
	return g
}

// playLoop starts a graph with feedback, feeds it a number, and closes its input when all is quiet.
func playLoop(t *testing.T, g *graph.Graph, val int64) (*weirtest.Engine, *client.Handle) {
	t.Helper()
	e := weirtest.New(t, &Turn{}, &Calc{}, &Halve{})
	h := e.Start(g)
	e.Feed(h, "in", Num{Seq: 1, Val: val})
	e.RunUntilIdle()
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	return e, h
}

// around is a graph that holds one with feedback, behind another job if fed, that many graphs deep.
func around(own, fed bool, depth int) *graph.Graph {
	inner := round(own)
	for range depth - 1 {
		inner = wrap("around", inner)
	}
	if !fed {
		return wrap("outer", inner)
	}
	g := graph.New("outer")
	graph.Nest(g, "inner", inner)
	first := graph.Add(g, "first", &Calc{Mul: 1})
	graph.Connect(graph.Input[Num](g, "in"), first.In)
	graph.Wire(g, "first.out", "inner.in")
	graph.WireExport(g, "out", "inner.out")
	return g
}

// A nested graph with feedback ends when what feeds it ends, although all its jobs have read
// everything before.
func TestNestedFeedbackEnds(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		for _, fed := range []bool{true, false} {
			for depth := 1; depth <= 3; depth++ {
				t.Run(fmt.Sprintf("own %v fed %v depth %d", own, fed, depth), func(t *testing.T) {
					t.Parallel()
					e, h := playLoop(t, around(own, fed, depth), 3)
					want := int64(3)
					if own {
						want = 33
					}
					wantEnd(t, e, h, want)
				})
			}
		}
	}
}

// The same on each kind of Redis, with engines: the feeder is a job, and reads last.
func TestNestedFeedbackEndsOnEngines(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Turn{}, &Calc{}, &Halve{})
		h := e.Start(around(false, true, 2))
		e.Check(h.Write(e.Ctx, "in", Num{Seq: 1, Val: 6}))
		e.Until("the message has come out", func() bool { return len(enginetest.Outs[Num](e, h, "out")) == 1 })
		e.Until("all jobs sleep", func() bool {
			tree, err := h.Tree(e.Ctx)
			e.Check(err)
			return !slices.ContainsFunc(tree, func(i *job.Info) bool { return i.Status != statemachine.Suspended })
		})
		e.Check(h.Close(e.Ctx, "in"))
		e.reach(h, statemachine.Completed)
	})
}

// A graph with feedback behind another one ends with it: nested ones, side by side.
func TestFeedbackBehindFeedbackEnds(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own %v", own), func(t *testing.T) {
			t.Parallel()
			g := graph.New("outer")
			graph.Nest(g, "first", round(own))
			graph.Nest(g, "second", round(!own))
			graph.WireInput(g, "in", "first.in")
			graph.Wire(g, "first.out", "second.in")
			graph.WireExport(g, "out", "second.out")
			e, h := playLoop(t, g, 1)
			wantEnd(t, e, h, 11)
		})
	}
}

// A graph with feedback that is itself part of a cycle ends after, or with, the outer one.
func TestFeedbackWithinFeedbackEnds(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own %v", own), func(t *testing.T) {
			t.Parallel()
			g := graph.New("outer")
			graph.Nest(g, "inner", round(own))
			graph.Add(g, "split", &Halve{})
			graph.WireInput(g, "in", "inner.in")
			graph.Wire(g, "inner.out", "split.in")
			graph.Wire(g, "split.again", "inner.in", graph.Feedback())
			graph.WireExport(g, "out", "split.out")
			e, h := playLoop(t, g, 1)
			want := int64(1)
			if own {
				want = 11
			}
			wantEnd(t, e, h, want)
		})
	}
}

// A nested graph with feedback ends when the job that feeds it is terminated, or removed by a patch.
func TestNestedFeedbackEndsWithoutItsFeeder(t *testing.T) {
	t.Parallel()
	build := func(own, fed bool) *graph.Graph {
		g := graph.New("outer")
		graph.Nest(g, "inner", round(own))
		if fed {
			first := graph.Add(g, "first", &Calc{Mul: 1})
			graph.Connect(graph.Input[Num](g, "in"), first.In)
			graph.Wire(g, "first.out", "inner.in")
		}
		last := graph.Add(g, "last", &Calc{Mul: 1})
		graph.Initial(last.In, Num{Seq: 1, Val: 5})
		graph.Wire(g, "last.out", "inner.in")
		graph.WireExport(g, "out", "inner.out")
		return g
	}
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("patched own %v", own), func(t *testing.T) {
			t.Parallel()
			e := weirtest.New(t, &Turn{}, &Calc{}, &Halve{})
			h := e.Start(build(own, true))
			e.RunUntilIdle()
			if err := h.Patch(t.Context(), build(own, false)); err != nil {
				t.Fatal(err)
			}
			e.RunUntilIdle()
			wantEnd(t, e, h, map[bool]int64{true: 15, false: 5}[own])
		})
		t.Run(fmt.Sprintf("terminated own %v", own), func(t *testing.T) {
			t.Parallel()
			e := weirtest.New(t, &Turn{}, &Calc{}, &Halve{})
			h := e.Start(build(own, true))
			e.RunUntilIdle()
			if err := e.Child(h, "first").Terminate(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.RunUntilIdle()
			inner := e.Child(h, "inner")
			if s := e.Status(inner); s != statemachine.Completed {
				t.Errorf("the nested graph is %s", s)
			}
		})
	}
}

// Fussy passes numbers on and fails on one that it hates.
type Fussy struct {
	Hate int64
	In   port.In[Num]
	Out  port.Out[Num]
}

func (f *Fussy) Run(context.Context, *worker.Run) error {
	for m, err := range f.In.All() {
		if err != nil {
			return err
		}
		if m.Val == f.Hate {
			return fmt.Errorf("I hate %d", m.Val)
		}
		if err := f.Out.Write(m); err != nil {
			return err
		}
	}
	return nil
}

// A job whose failure is ignored holds nobody up: neither producers that filled its port before
// it failed, nor those that would later, nor writers from outside.
func TestIgnoredBehindALimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 3, 1000} {
		for _, nested := range []bool{false, true} {
			t.Run(fmt.Sprintf("limit %d nested %v", limit, nested), func(t *testing.T) {
				t.Parallel()
				g, on := graph.New("ignoring"), graph.OnFailure(job.Ignore)
				source := graph.Add(g, "source", &Lopsided{N: 10})
				other := graph.Add(g, "other", &Calc{Mul: 1})
				if nested {
					sub := graph.New("sub")
					f := graph.Add(sub, "fussy", &Fussy{Hate: 2})
					graph.Connect(graph.Input[Num](sub, "in"), f.In, graph.Limit(limit))
					graph.Nest(g, "fussy", sub, on)
				} else {
					graph.Add(g, "fussy", &Fussy{Hate: 2}, on)
				}
				graph.Wire(g, "source.a", "fussy.in", graph.Limit(limit))
				graph.Connect(source.A, other.In)
				graph.Export(g, "out", other.Out)
				e := weirtest.New(t, &Lopsided{}, &Fussy{}, &Calc{})
				h := e.Start(g)
				e.Advance(time.Minute)
				wantEnd(t, e, h, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
			})
		}
	}
	t.Run("outside", func(t *testing.T) {
		t.Parallel()
		g := graph.New("ignoring")
		f := graph.Add(g, "fussy", &Fussy{Hate: 2}, graph.OnFailure(job.Ignore))
		other := graph.Add(g, "other", &Calc{Mul: 1})
		in := graph.Input[Num](g, "in")
		graph.Connect(in, f.In, graph.Limit(3))
		graph.Connect(in, other.In)
		graph.Export(g, "out", other.Out)
		e := weirtest.New(t, &Fussy{}, &Calc{})
		h := e.Start(g)
		var want []int64
		for n := range int64(10) {
			e.Feed(h, "in", Num{Seq: n + 1, Val: n + 1})
			e.RunUntilIdle()
			want = append(want, n+1)
		}
		e.CloseIn(h, "in")
		e.RunUntilIdle()
		wantEnd(t, e, h, want...)
	})
}

// A failure that is not ignored goes on holding back who writes: the job may be retried.
func TestFailedBehindALimitHoldsBack(t *testing.T) {
	t.Parallel()
	g := graph.New("strict")
	f := graph.Add(g, "fussy", &Fussy{Hate: 2})
	graph.Connect(graph.Input[Num](g, "in"), f.In, graph.Limit(3))
	e := weirtest.New(t, &Fussy{})
	h := e.Start(g)
	e.Feed(h, "in", Num{Val: 2}, Num{Val: 3}, Num{Val: 4})
	e.RunUntilIdle()
	if err := h.Write(t.Context(), "in", Num{Val: 5}); !errors.Is(err, job.ErrFull) {
		t.Errorf("writing to a failed job's full port: %v", err)
	}
	if s := e.Status(h); s != statemachine.Failed {
		t.Errorf("the graph is %s", s)
	}
}

// hateful is round(false) with a job beside the loop that fails on a number.
func hateful(hate int64, policy job.FailurePolicy) *graph.Graph {
	g := round(false)
	graph.Add(g, "fussy", &Fussy{Hate: hate}, graph.OnFailure(policy))
	graph.Wire(g, "halve.again", "fussy.in")
	graph.WireExport(g, "side", "fussy.out")
	return g
}

// A failure that is ignored does not keep a graph with feedback from its end; one that is not does.
func TestIgnoredInALoop(t *testing.T) {
	t.Parallel()
	for _, nested := range []bool{false, true} {
		for _, quiet := range []bool{false, true} {
			t.Run(fmt.Sprintf("nested %v quiet %v", nested, quiet), func(t *testing.T) {
				t.Parallel()
				g := hateful(2, job.Ignore)
				if nested { // the nested graph's failure is what is ignored
					g = wrap("outer", hateful(2, job.FailGraph), graph.OnFailure(job.Ignore))
				}
				e := weirtest.New(t, &Halve{}, &Fussy{})
				h := e.Start(g)
				e.Feed(h, "in", Num{Val: 4})
				if quiet {
					e.RunUntilIdle()
				}
				e.CloseIn(h, "in")
				e.RunUntilIdle()
				wantEnd(t, e, h, 1)
			})
		}
	}
	t.Run("not ignored", func(t *testing.T) {
		t.Parallel()
		e := weirtest.New(t, &Halve{}, &Fussy{})
		h := e.Start(hateful(2, job.FailGraph))
		e.Feed(h, "in", Num{Val: 4})
		e.CloseIn(h, "in")
		e.RunUntilIdle()
		if s := e.Status(h); s != statemachine.Failed {
			t.Errorf("the graph is %s", s)
		}
		if p, _ := e.Info(e.Child(h, "halve")).Port(port.Input, "in"); p.Closed {
			t.Error("the loop has ended though its failed job may be retried")
		}
	})
}

// Remind asks at its first message for a run in a year, and waits.
type Remind struct {
	In  port.In[Num]
	Out port.Out[Num]
}

func (r *Remind) Run(_ context.Context, run *worker.Run) error {
	if r.In.Len() == 0 {
		return nil
	}
	if _, _, err := r.In.Read(); err != nil {
		return err
	}
	return run.WakeAfter(365 * 24 * time.Hour)
}

// A terminated job's timer does not keep a graph with feedback from its end: nobody will run.
func TestTerminatedTimerInALoop(t *testing.T) {
	t.Parallel()
	for _, quiet := range []bool{false, true} {
		t.Run(fmt.Sprintf("quiet %v", quiet), func(t *testing.T) {
			t.Parallel()
			g := round(false)
			r := graph.Add(g, "remind", &Remind{})
			graph.Wire(g, "halve.again", "remind.in")
			graph.Export(g, "side", r.Out)
			e := weirtest.New(t, &Halve{}, &Remind{})
			h := e.Start(g)
			e.Feed(h, "in", Num{Val: 2})
			e.RunUntilIdle()
			if !quiet {
				e.CloseIn(h, "in")
			}
			if err := e.Child(h, "remind").Terminate(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.RunUntilIdle()
			if quiet {
				e.CloseIn(h, "in")
				e.RunUntilIdle()
			}
			if s := e.Status(e.Child(h, "halve")); s != statemachine.Completed {
				t.Errorf("the job in the loop is %s", s)
			}
			if got := vals(e, h, "out"); !slices.Equal(got, []int64{1}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Snooze asks for a run in a year.
type Snooze struct{ In port.In[Num] }

func (*Snooze) Run(_ context.Context, run *worker.Run) error {
	return errors.Join(run.WakeAfter(365*24*time.Hour), worker.ErrSuspend)
}

// Brood spawns a Snooze at its first message.
type Brood struct{ In port.In[Num] }

func (b *Brood) Run(_ context.Context, run *worker.Run) error {
	n := 0
	for _, err := range b.In.All() {
		if err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return nil
	}
	_, err := run.Spawn("kid", job.Single(&Snooze{}, ""))
	return err
}

// A child whose timer keeps a graph with feedback from its end does so until it is disowned.
func TestDisownedChildOfALoop(t *testing.T) {
	t.Parallel()
	for _, depth := range []int{0, 1} {
		t.Run(fmt.Sprint("depth ", depth), func(t *testing.T) {
			t.Parallel()
			g := round(false)
			graph.Add(g, "brood", &Brood{})
			graph.Wire(g, "halve.again", "brood.in")
			if depth > 0 {
				g = wrap("outer", g)
			}
			e := weirtest.New(t, &Halve{}, &Brood{}, &Snooze{})
			h := e.Start(g)
			inner := h
			if depth > 0 {
				inner = e.Child(h, "inner")
			}
			e.Feed(h, "in", Num{Val: 2})
			e.RunUntilIdle()
			e.CloseIn(h, "in")
			e.RunUntilIdle()
			if s := e.Status(h); s != statemachine.Suspended {
				t.Errorf("while a child has a timer the graph is %s", s)
			}
			brood := e.Child(inner, "brood")
			if err := brood.Disown(t.Context(), "kid"); err != nil {
				t.Fatal(err)
			}
			e.RunUntilIdle()
			wantEnd(t, e, h, 1)
		})
	}
}

// lopsided is a graph whose limit is too small: see TestGraphsDeadlockInDiamond. With free the
// join has a port more, which nobody wires.
func lopsided(free bool) *graph.Graph {
	g := graph.New("lopsided")
	graph.Add(g, "source", &Lopsided{N: 5})
	graph.Add(g, "middle", &Calc{Mul: 100})
	if free {
		graph.Add(g, "join", &Join{})
	} else {
		graph.Add(g, "join", &Zip{})
	}
	graph.Wire(g, "source.b", "middle.in")
	graph.Wire(g, "source.a", "join.a", graph.Limit(2))
	graph.Wire(g, "middle.out", "join.b")
	graph.WireExport(g, "out", "join.out")
	return g
}

// Join is Zip with an optional port.
type Join struct {
	A, B    port.In[Num]
	Options port.In[string]
	Out     port.Out[Num]
}

func (j *Join) Run(ctx context.Context, run *worker.Run) error {
	return (&Zip{A: j.A, B: j.B, Out: j.Out}).Run(ctx, run)
}

var joined = []int64{131, 262, 393, 524, 655}

// An In port that nobody wires does not keep limits from being raised.
func TestDeadlockBesideAFreePort(t *testing.T) {
	t.Parallel()
	for _, free := range []bool{false, true} {
		t.Run(fmt.Sprintf("free %v", free), func(t *testing.T) {
			t.Parallel()
			e := weirtest.New(t, &Lopsided{}, &Calc{}, &Zip{}, &Join{})
			h := e.Start(lopsided(free))
			e.Advance(time.Minute)
			wantEnd(t, e, h, joined...)
		})
	}
}

// Parent spawns the lopsided graph and sleeps.
type Parent struct{ Go port.In[string] }

func (p *Parent) Run(_ context.Context, run *worker.Run) error {
	if _, ok, err := p.Go.Read(); err != nil || !ok {
		return err
	}
	_, err := run.Spawn("graph", lopsided(false))
	return err
}

// Limits are raised in a subtree that has been disowned, also beside the tree that it was of,
// and after that was deleted.
func TestDeadlockOfAnOrphan(t *testing.T) {
	t.Parallel()
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted %v", deleted), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, redistest.SharedRedis(t))
			workers := []worker.Worker{&Parent{}, &Lopsided{}, &Calc{}, &Zip{}}
			e.register(workers...)
			h := e.job("Parent", nil)
			eng := e.Serve(e.Config(&Parent{}))
			e.Check(h.Write(e.Ctx, "go", "now"))
			e.settled(h, 1)
			eng.Stop()
			g, err := h.Child(e.Ctx, "graph")
			e.Check(err)
			e.Check(h.Disown(e.Ctx, "graph"))
			if deleted {
				e.Check(h.Terminate(e.Ctx))
				eng = e.Serve(e.Config(&Parent{}))
				e.reach(h, statemachine.Terminated)
				eng.Stop()
				e.Check(h.Delete(e.Ctx))
			}
			e.Serve(e.Config(workers...))
			e.reach(g, statemachine.Completed, statemachine.Failed)
			got := enginetest.Outs[Num](e, g, "out")
			if len(got) != len(joined) {
				e.Errorf("got %v", got)
			}
			if len(e.deadlocks(g)) == 0 {
				e.Error("there was no deadlock: the test shows nothing")
			}
		})
	}
}
