package redisstore_test

import (
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// pair is a graph of two workers, numbers 1 and 2, in a graph, the root.
func (e *env) pair() (g, a, b job.ID) {
	e.Helper()
	g = e.create(
		job.Node{Type: "g", Graph: true},
		job.Node{Name: "a", Type: "T", Ports: ports(in("in"))},
		job.Node{Name: "b", Type: "T", Ports: ports(in("in"))})
	return g, g.Nth(1), g.Nth(2)
}

func TestGraphFollowsItsChildren(t *testing.T) {
	each(t, func(e *env) {
		g, a, b := e.pair()
		e.is(statemachine.Suspended, g)
		e.end(a, statemachine.Complete)
		e.is(statemachine.Suspended, g)
		e.end(b, statemachine.Complete)
		e.is(statemachine.Completed, g)

		e.write(a, "in", "1") // a child wakes: the graph is open again
		e.is(statemachine.Suspended, g)
		e.end(a, statemachine.Suspend)
		e.is(statemachine.Suspended, g)
		e.Check(e.store.Apply(e.Context(), a, statemachine.Run))
		e.end(a, statemachine.Fail)
		e.is(statemachine.Failed, g)
		e.Check(e.store.Apply(e.Context(), b, statemachine.Run))
		e.end(b, statemachine.Fail)
		e.Check(e.store.Apply(e.Context(), a, statemachine.Retry))
		e.is(statemachine.Failed, g) // b still failed
		e.Check(e.store.Apply(e.Context(), b, statemachine.Retry))
		e.is(statemachine.Suspended, g)
		e.end(a, statemachine.Complete)

		// A terminated child is settled, until it is forced.
		e.Check(e.store.Apply(e.Context(), b, statemachine.Terminate))
		e.is(statemachine.Suspended, g)
		e.end(b, statemachine.Shutdown)
		e.is(statemachine.Completed, g)
		e.Check(e.store.Apply(e.Context(), b, statemachine.Force))
		e.is(statemachine.Suspended, g)
	})
}

func TestNestedGraphsFollow(t *testing.T) {
	each(t, func(e *env) {
		g := e.nested()
		sub, w := g.Nth(1), g.Nth(2)
		e.write(g, "in", "1")
		e.end(w, statemachine.Fail)
		e.is(statemachine.Failed, g, sub, w)
		e.Check(e.store.Apply(e.Context(), w, statemachine.Retry))
		e.is(statemachine.Suspended, g, sub)
		e.end(w, statemachine.Complete)
		e.is(statemachine.Completed, g, sub, w)
		e.write(g, "in", "2")
		e.is(statemachine.Suspended, g, sub)
		e.is(statemachine.Queued, w)
	})
}

func TestGraphHasNoRuns(t *testing.T) {
	each(t, func(e *env) {
		g, a, b := e.pair()
		for _, event := range []statemachine.Event{statemachine.Run, statemachine.Retry, statemachine.Force} {
			e.unchanged(string(event)+" of a graph", func() {
				e.fails(e.store.Apply(e.Context(), g, event), job.ErrStatus)
			})
		}
		_, err := e.store.Begin(e.Context(), g, beginning())
		e.fails(err, job.ErrStatus)

		// Nothing has to be released: it ends at once, and for good.
		e.Check(e.store.Apply(e.Context(), g, statemachine.Terminate))
		e.is(statemachine.Terminated, g)
		e.end(a, statemachine.Fail)
		e.end(b, statemachine.Complete)
		e.is(statemachine.Terminated, g)
	})
}

// family is a worker with two children: a worker and a graph of one worker.
func (e *env) family() (top, kid, sub, leaf job.ID) {
	e.Helper()
	exported := out("out")
	exported.Sources = 1
	id := e.create(
		job.Node{Type: "Top"},
		job.Node{Name: "kid", Type: "K", Ports: ports(in("in"), out("out"))},
		job.Node{Name: "sub", Type: "s", Graph: true, Ports: ports(exported)},
		job.Node{Name: "leaf", Parent: 2, Type: "L", Ports: ports(in("in"), out("out", job.Edge{{Node: 2, Dir: port.Output, Port: "out"}}))})
	e.end(id, statemachine.Suspend)
	return id, id.Nth(1), id.Nth(2), id.Nth(3)
}

func TestParentWakes(t *testing.T) {
	each(t, func(e *env) {
		top, kid, sub, leaf := e.family()
		woken := func(why string, want bool) {
			e.Helper()
			status := e.info(top).Status
			e.equal(why, status, map[bool]statemachine.Status{true: statemachine.Queued, false: statemachine.Suspended}[want])
			if want {
				e.end(top, statemachine.Suspend)
			}
		}
		for _, outcome := range []statemachine.Event{
			statemachine.Suspend, statemachine.Complete, statemachine.Requeue, statemachine.Backoff, statemachine.Fail,
		} {
			if s := e.info(kid).Status; s != statemachine.Queued {
				e.Check(e.store.Apply(e.Context(), kid, statemachine.Force))
			}
			woken("from outside", false)
			d := delta(e.begin(kid), outcome)
			d.Delay = time.Hour
			e.commit(d)
			woken("run of a child that ends in "+string(outcome), true)
		}
		e.Check(e.store.Apply(e.Context(), kid, statemachine.Force))
		d := delta(e.begin(kid), statemachine.Requeue)
		d.Handed = true
		e.commit(d)
		woken("a run handed back", false)
		d = delta(e.begin(kid), store.Checkpoint)
		d.Next, d.Lease = "next", time.Hour
		e.commit(d)
		woken("a checkpoint without output", false)
		d = store.Delta{Job: kid, Token: "next", Outcome: store.Checkpoint, Next: "last", Lease: time.Hour}
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
		e.commit(d)
		woken("output that is wired to nobody", true)
		e.Check(e.store.Write(e.Context(), kid, store.Write{Dir: port.Output, Port: "out", Items: raws("1")}))
		woken("output from outside", true)

		// Of a graph the parent hears of changes of its status and of its output.
		e.end(leaf, statemachine.Requeue)
		woken("run of a grandchild", false)
		e.emit(leaf, statemachine.Requeue, raws("1"))
		woken("output through a graph", true)
		e.holds(sub, port.Output, "out", "1")
		e.end(leaf, statemachine.Complete)
		woken("a graph completes", true)
		e.write(leaf, "in", "1")
		woken("a graph is open again", true)
		e.end(leaf, statemachine.Fail)
		woken("a graph fails", true)

		// A parent that runs is queued again when its run ends.
		e.Check(e.store.Apply(e.Context(), top, statemachine.Run))
		snap := e.begin(top)
		e.Check(e.store.Apply(e.Context(), leaf, statemachine.Retry))
		e.equal("again", e.commit(delta(snap, statemachine.Suspend)).Again, true)
	})
}

func TestParentReadsAChildsOutput(t *testing.T) {
	each(t, func(e *env) {
		top, kid, _, _ := e.family()
		e.emit(kid, statemachine.Complete, numbers(1, 3))
		snap := e.begin(top)
		items, head, err := e.store.Page(e.Context(), kid, port.Output, "out", 0, 2, 100)
		e.Check(err)
		e.equal("page", items, numbers(1, 2))
		d := delta(snap, statemachine.Suspend)
		d.Takes = []store.Take{{Job: kid, Dir: port.Output, Port: "out", Head: head, N: 2}}
		d.Writes = []store.Write{{Job: kid, Dir: port.Input, Port: "in", Items: raws("4")}}
		e.commit(d)
		e.holds(kid, port.Output, "out", "3")
		e.holds(kid, port.Input, "in", "4")
		e.is(statemachine.Queued, kid)

		// Somebody outside was faster.
		e.Check(e.store.Apply(e.Context(), top, statemachine.Run))
		snap = e.begin(top)
		e.Check(e.store.Take(e.Context(), kid, store.Take{Dir: port.Output, Port: "out", Head: 2, N: 1}, "x"))
		d = delta(snap, statemachine.Suspend)
		d.Takes = []store.Take{{Job: kid, Dir: port.Output, Port: "out", Head: 2, N: 1}}
		e.fails(e.try(d).Refused, job.ErrMoved)
	})
}
