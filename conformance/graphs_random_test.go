package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Hop is a message that is passed on that many times more.
type Hop struct{ Left, Val int }

// Piece is a job of a random graph: it passes on what it reads.
type Piece struct {
	One   bool `json:",omitempty"` // it reads one message a run
	Pair  bool `json:",omitempty"` // it reads as many of A as of B, until one of them ends
	Hates int  `json:",omitempty"` // it fails on values that are multiples
	Slips int  `json:",omitempty"` // that many tries fail, then one does not

	A, B port.In[Hop]
	Free port.In[string] // nobody wires it
	Out  port.Out[Hop]
	Odd  port.Out[Hop] // what has an odd number of hops left
}

func (*Piece) WorkerOptions() worker.Options {
	return worker.Options{Tries: 3, Backoff: worker.ExponentialBackoff(time.Second, time.Hour)}
}

func (p *Piece) Run(_ context.Context, run *worker.Run) error {
	a, b := p.A.Len(), p.B.Len()
	if p.Pair && !p.A.Done() && !p.B.Done() {
		a, b = min(a, b), min(a, b)
	}
	if p.One {
		a, b = min(a, 1), min(b, 1)
	}
	if a+b > 0 && run.Info().Tries < p.Slips {
		return errors.New("slipped")
	}
	return errors.Join(p.pass(p.A, a), p.pass(p.B, b))
}

func (p *Piece) pass(in port.In[Hop], n int) error {
	for range n {
		m, _, err := in.Read()
		switch {
		case err != nil:
			return err
		case p.Hates > 0 && m.Val%p.Hates == 0:
			return fmt.Errorf("%d is a multiple of %d", m.Val, p.Hates)
		case m.Left == 0:
			continue
		}
		m.Left--
		out := p.Out
		if m.Left%2 == 1 {
			out = p.Odd
		}
		if err := out.Write(m); err != nil {
			return err
		}
	}
	return nil
}

// chance draws what a random graph is like, and what is done to it.
type chance struct{ *rapid.T }

// upTo is a number from 0 to n.
func (c chance) upTo(n int, what string) int { return rapid.IntRange(0, n).Draw(c.T, what) }

// one is true once in n times, about.
func (c chance) one(n int, what string) bool { return c.upTo(n-1, what) == n-1 }

// box is a node of a random graph, by its ports as graph.Wire knows them.
type box struct{ ins, outs []string }

// piece draws a worker.
func (c chance) piece() (*Piece, []graph.Option) {
	p := &Piece{One: c.one(2, "one")}
	policy := rapid.SampledFrom(job.Policies).Draw(c.T, "policy")
	if c.one(2, "hates") {
		p.Hates = 2 + c.upTo(4, "hated")
	}
	if c.one(4, "slips") {
		p.Slips = 1 + c.upTo(1, "tries")
	}
	options := []graph.Option{graph.OnFailure(policy)}
	if c.one(5, "twins") {
		options = append(options, graph.Instances(2))
	}
	return p, options
}

// wire draws the options of a wire.
func (c chance) wire(opts ...graph.WireOption) []graph.WireOption {
	if c.one(2, "limited") {
		opts = append(opts, graph.Limit(1+c.upTo(2, "limit")))
	}
	return opts
}

// graph draws a graph: a chain with branches, joins, feedback, and graphs within, and its inputs.
func (c chance) graph(name string, depth int) (g *graph.Graph, ins []string) {
	g = graph.New(name)
	ins = []string{"x", "y"}[:1+c.upTo(1, "inputs")]
	var boxes []box
	var outs []string
	led := map[string]bool{} // inputs that are wired, and wires
	feed := func(to string) {
		if from := c.upTo(len(outs)+len(ins)-1, "from"); from < len(ins) {
			graph.WireInput(g, ins[from], to, c.wire()...)
			led[ins[from]] = true
		} else {
			graph.Wire(g, outs[from-len(ins)], to, c.wire()...)
			led[outs[from-len(ins)]+to] = true
		}
	}
	for i := range 1 + c.upTo(3, "nodes") {
		at := fmt.Sprint("n", i)
		var b box
		if depth > 0 && c.one(3, "nested") {
			inner, inputs := c.graph("inner", depth-1)
			policy := []job.FailurePolicy{job.FailGraph, job.Ignore}[c.upTo(1, "policy")]
			graph.Nest(g, at, inner, graph.OnFailure(policy))
			for _, in := range inputs {
				b.ins = append(b.ins, at+"."+in)
			}
			b.outs = []string{at + ".out"}
		} else {
			w, options := c.piece()
			b = box{[]string{at + ".a"}, []string{at + ".out", at + ".odd"}}
			if c.one(2, "second") {
				b.ins = append(b.ins, at+".b")
				w.Pair = c.one(2, "pair")
			}
			graph.Add(g, at, w, options...)
		}
		for _, in := range b.ins {
			feed(in)
		}
		boxes, outs = append(boxes, b), append(outs, b.outs...)
	}
	for _, in := range ins { // none may lead nowhere
		if !led[in] {
			graph.WireInput(g, in, boxes[0].ins[0])
		}
	}
	for range c.upTo(2, "feedback") {
		from, to := boxes[c.upTo(len(boxes)-1, "from")], boxes[c.upTo(len(boxes)-1, "to")]
		out, in := from.outs[len(from.outs)-1], to.ins[c.upTo(len(to.ins)-1, "port")]
		if !led[out+in] {
			graph.Wire(g, out, in, c.wire(graph.Feedback())...)
		}
		led[out+in] = true
	}
	graph.WireExport(g, "out", outs[len(outs)-1])
	return g, ins
}

// fate is what random graphs come to.
type fate struct {
	chance
	e    *weirtest.Engine
	h    *client.Handle
	jobs map[job.ID]*job.Info
}

// look reads the tree.
func (f *fate) look() []*job.Info {
	tree, err := f.h.Tree(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.jobs = map[job.ID]*job.Info{}
	for _, i := range tree {
		f.jobs[i.ID] = i
	}
	return tree
}

// ignored tells whether a failure of a job does not matter to the whole.
func (f *fate) ignored(i *job.Info) bool {
	for ; i != nil; i = f.jobs[i.Parent] {
		if i.Policy == job.Ignore {
			return true
		}
	}
	return false
}

// excused are the jobs for which a graph waits as their policies say: the failed ones, and those that try again.
func (f *fate) excused() (failed, trying []*job.Info) {
	for _, i := range f.look() {
		switch {
		case i.Graph:
		case i.Status == statemachine.Failed && !f.ignored(i):
			failed = append(failed, i)
		case i.Status == statemachine.Scheduled && i.Policy == job.Restart:
			trying = append(trying, i)
		}
	}
	return failed, trying
}

// disturb does one of the things that may happen to a running graph.
func (f *fate) disturb(ins []string) {
	switch f.upTo(5, "what happens") {
	case 0, 1:
		for range 1 + f.upTo(4, "messages") {
			m := Hop{f.upTo(5, "hops"), 1 + f.upTo(20, "value")}
			err := f.h.Write(context.Background(), rapid.SampledFrom(ins).Draw(f.T, "input"), m)
			if err != nil && !errors.Is(err, job.ErrFull) && !errors.Is(err, job.ErrClosed) {
				f.Fatal(err)
			}
		}
	case 2:
		for range f.upTo(10, "runs") {
			f.e.RunNext()
		}
	case 3:
		f.e.Advance(time.Duration(f.upTo(3, "seconds")) * time.Second)
	case 4:
		f.e.CloseIn(f.h, rapid.SampledFrom(ins).Draw(f.T, "closed"))
	case 5:
		tree := f.look()
		if i := tree[f.upTo(len(tree)-1, "job")]; i.Parent != "" && f.one(3, "terminate") {
			f.terminate(i)
		}
	}
}

// busy tells whether a job waits for another try.
func (f *fate) busy() bool {
	return slices.ContainsFunc(f.look(), func(i *job.Info) bool { return i.Status == statemachine.Scheduled })
}

func (f *fate) terminate(i *job.Info) {
	h, err := f.e.Client().Find(context.Background(), string(i.ID))
	if err == nil {
		err = h.Terminate(context.Background())
	}
	if err != nil {
		f.Fatal(err)
	}
}

// waits complains of whatever a tree waits for that has no excuse.
func (f *fate) waits() {
	bad := false
	for _, i := range f.look() {
		ended := i.Status == statemachine.Completed || i.Status == statemachine.Terminated
		if !ended && (i.Status != statemachine.Failed || !f.ignored(i)) {
			bad = true
			f.Errorf("%s %s is %s: %s", i.ID, i.Name, i.Status, i.Reason)
		}
		for _, p := range i.Ports {
			if p.Dir == port.Input && i.Status == statemachine.Completed && (p.Waiting > 0 || p.Fed && !p.Closed) {
				bad = true
				f.Errorf("port %s of %s %s holds %d messages, closed: %v", p.Name, i.ID, i.Name, p.Waiting, p.Closed)
			}
		}
	}
	if bad {
		for _, i := range f.look() {
			f.Logf("%s %s of %s %s: %s %s", i.ID, i.Name, i.Parent, i.Status, i.Policy, i.Reason)
			for _, p := range i.Ports {
				f.Logf("    %c.%s waiting %d limit %d open %d fed %v closed %v edges %v", p.Dir, p.Name, p.Waiting, p.Limit, p.Sources, p.Fed, p.Closed, p.Edges)
			}
		}
		f.FailNow()
	}
}

// Whatever a graph is made of, and whatever happens to it, it comes to an end once its inputs are closed: unless a
// job failed and is not ignored, or tries again and again; then it does when these jobs are terminated.
func TestRandomGraphsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := &fate{chance: chance{rt}}
		g, ins := f.graph("random", 2)
		f.e = weirtest.New(rt, &Piece{})
		f.h = f.e.Start(g)
		for range f.upTo(8, "disturbances") {
			f.disturb(ins)
		}
		for _, in := range ins {
			f.e.CloseIn(f.h, in)
		}
		for range 20 {
			f.e.Advance(2 * time.Minute)
			failed, trying := f.excused()
			if len(failed) > 0 && f.e.Status(f.h) != statemachine.Failed {
				rt.Errorf("the graph is %s though %s failed", f.e.Status(f.h), failed[0].Name)
			}
			if len(failed)+len(trying) == 0 && !f.busy() {
				break
			}
			for _, i := range slices.Concat(failed, trying) {
				f.terminate(i)
			}
		}
		f.waits()
	})
}
