package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// Hooked passes messages on, and calls a function in each run that sees the end of its input.
type Hooked struct {
	In  port.In[Num]
	Out port.Out[Num]
	end func()
}

func (h *Hooked) Run(_ context.Context, run *worker.Run) error {
	for m, err := range h.In.All() {
		if err == nil {
			err = give(run, h.Out, m)
		}
		if err != nil {
			return err
		}
	}
	if h.In.Done() {
		h.end()
	}
	return nil
}

// refeed is a graph in which x and y feed the output side by side, or, rewired, y feeds x. With more
// it has a job that has nothing to do with them.
func refeed(rewired, more bool) *graph.Graph {
	g := graph.New("refeed")
	one, two := graph.Input[Num](g, "one"), graph.Input[Num](g, "two")
	x, y, last := graph.Add(g, "x", &Hooked{}), graph.Add(g, "y", &Calc{Mul: 1}), graph.Add(g, "last", &Calc{Mul: 1})
	graph.Connect(two, y.In)
	graph.Connect(x.Out, last.In)
	graph.Export(g, "out", last.Out)
	if rewired {
		graph.Connect(one, y.In)
		graph.Connect(y.Out, x.In)
	} else {
		graph.Connect(one, x.In)
		graph.Connect(y.Out, last.In)
	}
	if more {
		other := graph.Add(g, "other", &Calc{Mul: 1})
		graph.Connect(two, other.In)
		graph.Export(g, "more", other.Out)
	}
	return g
}

// A job that completed and is fed again by a patch can write, also after another patch that does not concern it.
func TestPatchTwice(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Hooked{end: func() {}}, &Calc{})
	h := e.Start(refeed(false, false))
	e.CloseIn(h, "one")
	e.RunUntilIdle()
	if s := e.Status(e.Child(h, "x")); s != statemachine.Completed {
		t.Fatalf("x is %s", s)
	}
	for _, more := range []bool{false, true} {
		if err := h.Patch(t.Context(), refeed(true, more)); err != nil {
			t.Fatal(err)
		}
	}
	e.Feed(h, "two", Num{Seq: 1, Val: 7})
	e.CloseIn(h, "two")
	e.RunUntilIdle()
	wantEnd(t, e, h, 7)
}

// A run that saw the end of its input while a patch fed its job again is repeated: it closes nothing.
func TestPatchDuringLastRun(t *testing.T) {
	t.Parallel()
	for _, twice := range []bool{false, true} {
		t.Run(fmt.Sprintf("twice %v", twice), func(t *testing.T) {
			t.Parallel()
			var h *client.Handle
			runs := 0
			e := weirtest.New(t, &Calc{}, &Hooked{end: func() {
				if runs++; runs > 1 {
					return
				}
				for _, more := range []bool{false, true}[:map[bool]int{false: 1, true: 2}[twice]] {
					if err := h.Patch(t.Context(), refeed(true, more)); err != nil {
						t.Error(err)
					}
				}
			}})
			h = e.Start(refeed(false, false))
			e.Feed(h, "one", Num{Seq: 1, Val: 1})
			e.CloseIn(h, "one")
			e.RunUntilIdle()
			if s := e.Status(e.Child(h, "x")); s != statemachine.Suspended {
				t.Errorf("x is %s", s)
			}
			e.Feed(h, "two", Num{Seq: 1, Val: 2})
			e.CloseIn(h, "two")
			e.RunUntilIdle()
			wantEnd(t, e, h, 1, 2)
			if runs != 2 {
				t.Errorf("x saw the end of its input %d times", runs)
			}
		})
	}
}

// Drip writes the numbers 1 to N, one a run.
type Drip struct {
	N   int
	Out port.Out[Num]
}

func (d *Drip) Run(_ context.Context, run *worker.Run) error {
	n, err := count(run, "count")
	if err != nil || n > int64(d.N) {
		return err
	}
	return errors.Join(give(run, d.Out, Num{Val: n}), worker.ErrAgain)
}

// Aside never reads.
type Aside struct{ In port.In[Num] }

func (*Aside) Run(context.Context, *worker.Run) error { return worker.ErrSuspend }

// A producer that waits for room at a port goes on when a patch wires it to another one, or takes that port away.
func TestPatchAwayFromFullPort(t *testing.T) {
	t.Parallel()
	build := func(away bool) *graph.Graph {
		g := graph.New("away")
		drip, aside, last := graph.Add(g, "drip", &Drip{N: 9}), graph.Add(g, "aside", &Aside{}), graph.Add(g, "last", &Hooked{})
		other := graph.Input[Num](g, "other")
		if away {
			graph.Connect(drip.Out, last.In, graph.Limit(2))
			graph.Connect(other, aside.In, graph.Limit(2))
		} else {
			graph.Connect(drip.Out, aside.In, graph.Limit(2))
			graph.Connect(other, last.In)
		}
		graph.Export(g, "out", last.Out)
		return g
	}
	e := weirtest.New(t, &Drip{}, &Aside{}, &Hooked{end: func() {}})
	h := e.Start(build(false))
	e.RunUntilIdle()
	if i := e.Info(e.Child(h, "drip")); !i.Blocked {
		t.Fatalf("the producer is %s", i.Status)
	}
	if err := h.Patch(t.Context(), build(true)); err != nil {
		t.Fatal(err)
	}
	e.RunUntilIdle()
	if s := e.Status(e.Child(h, "drip")); s != statemachine.Completed {
		t.Errorf("the producer is %s", s)
	}
	if got := vals(e, h, "out"); !slices.Equal(got, []int64{3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("behind the patch came %v", got)
	}
}

// One that is still wired to a full port writes at most one run's messages more.
func TestPatchKeepsBackpressure(t *testing.T) {
	t.Parallel()
	build := func(by int) *graph.Graph {
		g := graph.New("full")
		drip, aside := graph.Add(g, "drip", &Drip{N: 9}), graph.Add(g, "aside", &Aside{})
		graph.Connect(drip.Out, aside.In, graph.Limit(2))
		graph.Add(g, "other", &Drip{N: by})
		return g
	}
	e := weirtest.New(t, &Drip{}, &Aside{})
	h := e.Start(build(0))
	for by := range 3 {
		e.RunUntilIdle()
		p, _ := e.Info(e.Child(h, "aside")).Port(port.Input, "in")
		if i := e.Info(e.Child(h, "drip")); !i.Blocked || p.Waiting != int64(2+by) {
			t.Errorf("after %d patches the producer is %s, blocked %v, and has written %d messages", by, i.Status, i.Blocked, p.Waiting)
		}
		if err := h.Patch(t.Context(), build(by+1)); err != nil {
			t.Fatal(err)
		}
	}
}

// Ear reads a channel, Ear2 another one; both are of one type to Weir, as two versions of a program are.
type Ear struct {
	In    port.In[Num] `port:"in,channel=/one"`
	Times port.In[int]
	Args  []string
}

func (*Ear) JobType() string                        { return "Ear" }
func (*Ear) Run(context.Context, *worker.Run) error { return worker.ErrSuspend }

type Ear2 struct {
	In    port.In[Num] `port:"in,channel=/two"`
	More  port.In[Num] `port:"more,channel=/one"`
	Times port.In[int]
	Args  []string
}

func (*Ear2) JobType() string                        { return "Ear" }
func (*Ear2) Run(context.Context, *worker.Run) error { return worker.ErrSuspend }

// All of a new definition holds: what jobs subscribe to, how their failures count, their defaults and parameters. A
// default that was set meanwhile stays, if the definition does not change it.
func TestPatchChangesAllOfAJob(t *testing.T) {
	each(t, func(e *env) {
		first, second := graph.New("g"), graph.New("g")
		graph.Add(first, "ear", &Ear{Args: []string{"a"}}, graph.OnFailure(job.Ignore))
		graph.WireDefault(first, "ear.times", json.RawMessage("10"))
		graph.Add(first, "set", &Ear{})
		graph.WireDefault(first, "set.times", json.RawMessage("10"))
		graph.Add(first, "bare", &Ear{})
		graph.WireDefault(first, "bare.times", json.RawMessage("10"))
		graph.Add(second, "ear", &Ear2{})
		graph.WireDefault(second, "ear.times", json.RawMessage("20"))
		graph.Add(second, "set", &Ear{})
		graph.WireDefault(second, "set.times", json.RawMessage("10"))
		graph.Add(second, "bare", &Ear{})
		h, err := e.Client.Start(e.Ctx, first, job.EnginesLater())
		e.Check(err)
		child := func(name string) *client.Handle {
			c, err := h.Child(e.Ctx, name)
			e.Check(err)
			return c
		}
		e.Check(child("set").SetDefault(e.Ctx, port.Input, "times", 30))
		e.Check(h.Patch(e.Ctx, second))
		for name, want := range map[string]string{"ear": "20", "set": "30", "bare": ""} {
			p, _ := e.Info(child(name)).Port(port.Input, "times")
			if string(p.Default) != want {
				e.Errorf("the default of %s is %s, want %s", name, p.Default, want)
			}
		}
		subscription := child("ear")
		if i := e.Info(subscription); i.Policy == job.Ignore || strings.Contains(string(i.Args), "a\"") {
			e.Errorf("it has the policy %q and the parameters %s", i.Policy, i.Args)
		}
		for in, want := range map[string]int64{"in": 2, "more": 1} {
			e.Until(fmt.Sprintf("only messages %d come to port %s", want, in), func() bool { // orders to the hub take a while
				e.Check(e.Client.Publish(e.Ctx, "/one", Num{Val: 1}))
				e.Check(e.Client.Publish(e.Ctx, "/two", Num{Val: 2}))
				got, err := subscription.Drain(e.Ctx, port.Input, in)
				e.Check(err)
				return len(got) > 0 && !slices.ContainsFunc(got, func(m json.RawMessage) bool {
					return !strings.Contains(string(m), fmt.Sprintf(`"val":%d`, want))
				})
			})
		}
	})
}
