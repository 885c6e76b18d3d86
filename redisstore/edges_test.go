package redisstore_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// fan is a graph of a source, number 1, whose port "out" has the given edges, and of n
// consumers, numbers 2 to n+1.
func (e *env) fan(n int, edges ...job.Edge) job.ID {
	e.Helper()
	nodes := []job.Node{{Type: "g", Graph: true}, {Name: "source", Type: "S", Ports: ports(out("out", edges...))}}
	for i := range n {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("c", i), Type: "C", Ports: ports(fed("in", 1))})
	}
	return e.create(nodes...)
}

// emit runs a job that writes to its port "out".
func (e *env) emit(id job.ID, outcome statemachine.Event, items []json.RawMessage) {
	e.Helper()
	if e.info(id).Status != statemachine.Queued {
		e.Check(e.store.Apply(e.Context(), id, statemachine.Run))
	}
	d := delta(e.begin(id), outcome)
	d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: items}}
	e.commit(d)
}

func TestFanOutCopies(t *testing.T) {
	each(t, func(e *env) {
		g := e.fan(3, to(2), to(3))
		e.emit(g.Nth(1), statemachine.Requeue, numbers(1, 3))
		e.emit(g.Nth(1), statemachine.Requeue, numbers(4, 5))
		for _, n := range []int{2, 3} {
			e.holds(g.Nth(n), port.Input, "in", "1", "2", "3", "4", "5")
			e.is(statemachine.Queued, g.Nth(n))
		}
		e.is(statemachine.Suspended, g.Nth(4))
		p := e.port(g.Nth(1), port.Output, "out")
		e.equal("a wired port keeps nothing and counts", []int64{p.Waiting, p.Total}, []int64{0, 5})
		e.holds(g.Nth(1), port.Output, "out")
		// From outside the messages go the same way.
		e.Check(e.store.Write(e.Context(), g.Nth(1), store.Write{Dir: port.Output, Port: "out", Items: raws("6")}))
		e.holds(g.Nth(2), port.Input, "in", "1", "2", "3", "4", "5", "6")
	})
}

func TestInTurn(t *testing.T) {
	each(t, func(e *env) {
		g := e.fan(3, to(2, 3, 4))
		next := 1
		for _, n := range []int{1, 1, 5, 2, 3} { // the turn goes on from commit to commit
			e.emit(g.Nth(1), statemachine.Requeue, numbers(next, next+n-1))
			next += n
		}
		e.holds(g.Nth(2), port.Input, "in", "1", "4", "7", "10")
		e.holds(g.Nth(3), port.Input, "in", "2", "5", "8", "11")
		e.holds(g.Nth(4), port.Input, "in", "3", "6", "9", "12")
	})
}

func TestKeyedGoesToOneConsumer(t *testing.T) {
	each(t, func(e *env) {
		g := e.fan(4, to(2, 3, 4), to(5))
		want := map[int][]string{}
		for round := range 3 {
			for _, key := range []string{"a", "b", "c", "d", "e", ""} {
				d := delta(e.begin(g.Nth(1)), statemachine.Requeue)
				msg := fmt.Sprintf(`"%s%d"`, key, round)
				d.Writes = []store.Write{{Dir: port.Output, Port: "out", Keyed: true, Key: job.Hash(key), Items: raws(msg)}}
				e.commit(d)
				n := 2 + int(job.Hash(key)%3)
				want[n] = append(want[n], msg)
				want[5] = append(want[5], msg)
			}
		}
		if len(want) < 3 {
			e.Fatalf("the keys test nothing: %v", want)
		}
		for n, items := range want {
			e.holds(g.Nth(n), port.Input, "in", items...)
		}
	})
}

func TestFanInKeepsTheOrderOfEachEdge(t *testing.T) {
	each(t, func(e *env) {
		g := e.create(
			job.Node{Type: "g", Graph: true},
			job.Node{Name: "a", Type: "S", Ports: ports(out("out", to(3)))},
			job.Node{Name: "b", Type: "S", Ports: ports(out("out", to(3)))},
			job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 2))})
		a, b := e.begin(g.Nth(1)), e.begin(g.Nth(2))
		for i, s := range []*store.Snapshot{b, a} { // merged in the order of the commits
			d := delta(s, statemachine.Requeue)
			d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(10*i, 10*i+1)}}
			e.commit(d)
		}
		e.emit(g.Nth(2), statemachine.Requeue, numbers(2, 3))
		e.holds(g.Nth(3), port.Input, "in", "0", "1", "10", "11", "2", "3")
	})
}

// nested is a graph whose ports are wired through a graph inside it to a worker and out again.
func (e *env) nested() job.ID {
	through := func(dir port.Dir, name string, sources int, to ...job.Target) job.Port {
		p := job.Port{Spec: port.Spec{Name: name, Dir: dir}, Sources: sources}
		for _, t := range to {
			p.Edges = append(p.Edges, job.Edge{t})
		}
		return p
	}
	i, o := port.Input, port.Output
	return e.create(
		job.Node{Type: "g", Graph: true, Ports: ports(
			through(i, "in", 0, job.Target{Node: 1, Dir: i, Port: "in"}), through(o, "out", 1))},
		job.Node{Name: "sub", Type: "s", Graph: true, Ports: ports(
			through(i, "in", 1, job.Target{Node: 2, Dir: i, Port: "in"}), through(o, "out", 1, job.Target{Node: 0, Dir: o, Port: "out"}))},
		job.Node{Name: "work", Parent: 1, Type: "W", Ports: ports(
			through(i, "in", 1), through(o, "out", 0, job.Target{Node: 1, Dir: o, Port: "out"}))},
	)
}

func TestNestedGraphsPassOn(t *testing.T) {
	each(t, func(e *env) {
		g := e.nested()
		w := g.Nth(2)
		e.write(g, "in", "1", "2")
		e.holds(w, port.Input, "in", "1", "2")
		e.holds(g, port.Input, "in")
		e.is(statemachine.Queued, w)
		e.emit(w, statemachine.Suspend, raws("3"))
		e.holds(g, port.Output, "out", "3")

		e.Check(e.store.ClosePort(e.Context(), g, port.Input, "in"))
		for n := range 3 {
			e.equal("in closed", e.port(g.Nth(n), port.Input, "in").Closed, true)
			e.equal("out closed", e.port(g.Nth(n), port.Output, "out").Closed, false)
		}
		e.is(statemachine.Queued, w)
		d := delta(e.begin(w), statemachine.Complete)
		d.Closes = []string{"out"}
		e.commit(d)
		for n := range 3 {
			e.equal("out closed", e.port(g.Nth(n), port.Output, "out").Closed, true)
		}
		e.is(statemachine.Completed, g, g.Nth(1), w)
	})
}

func TestCloseNeedsAllSources(t *testing.T) {
	each(t, func(e *env) {
		g := e.create(
			job.Node{Type: "g", Graph: true},
			job.Node{Name: "a", Type: "S", Ports: ports(out("out", to(3)))},
			job.Node{Name: "b", Type: "S", Ports: ports(out("out", to(3), to(3)))}, // feeds it twice
			job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 3))})
		sources := func(want int, closed bool) {
			e.Helper()
			p := e.port(g.Nth(3), port.Input, "in")
			e.equal("open sources, fed, closed", []any{p.Sources, p.Fed, p.Closed}, []any{want, true, closed})
		}
		d := delta(e.begin(g.Nth(1)), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
		d.Closes = []string{"out", "out"} // twice is once
		e.commit(d)
		sources(2, false)
		e.unchanged("closing a closed port", func() { e.Check(e.store.ClosePort(e.Context(), g.Nth(1), port.Output, "out")) })
		e.fails(e.store.Write(e.Context(), g.Nth(1), store.Write{Dir: port.Output, Port: "out", Items: raws("2")}), job.ErrClosed)

		e.fails(job.ErrClosed, job.ErrPort)

		// The consumer reads all there is and sleeps; the last close wakes it.
		c := delta(e.begin(g.Nth(3)), statemachine.Suspend)
		c.Takes = []store.Take{{Dir: port.Input, Port: "in", N: 1}}
		e.commit(c)
		e.is(statemachine.Suspended, g.Nth(3))
		d = delta(e.begin(g.Nth(2)), statemachine.Complete)
		d.Closes = []string{"out"}
		e.commit(d)
		sources(0, true)
		e.is(statemachine.Queued, g.Nth(3))
		snap := e.begin(g.Nth(3))
		p, _ := snap.Info.Port(port.Input, "in")
		e.equal("closed in the snapshot", p.Closed, true)
		e.equal("messages in the snapshot", len(snap.In), 0)
		e.fails(e.store.Write(e.Context(), g.Nth(3), store.Write{Dir: port.Input, Port: "in", Items: raws("2")}), job.ErrClosed)

		// A close during a run makes another run.
		id := e.single()
		snap = e.begin(id)
		e.Check(e.store.ClosePort(e.Context(), id, port.Input, "in"))
		e.equal("again", e.commit(delta(snap, statemachine.Complete)).Again, true)
		e.fails(e.store.ClosePort(e.Context(), id, port.Input, "nope"), job.ErrPort)
		e.fails(e.store.ClosePort(e.Context(), newID(e), port.Input, "in"), job.ErrNotFound)
	})
}

func TestPortsOnDemand(t *testing.T) {
	each(t, func(e *env) {
		star := in(port.Any)
		star.Limit = 5
		id := e.create(job.Node{Type: "T", Ports: ports(star, out(port.Any))})
		e.unchanged("looking at a port", func() { e.holds(id, port.Input, "x") })
		e.write(id, "x", "1")
		e.write(id, "y", "2")
		e.equal("options", e.port(id, port.Input, "x").Limit, 5)
		snap := e.begin(id)
		e.equal("snapshot", []int{len(snap.In), snap.In.Of("x").Len, snap.In.Of("y").Len}, []int{2, 1, 1})
		d := delta(snap, statemachine.Complete)
		d.Takes = []store.Take{{Dir: port.Input, Port: "x", N: 1}}
		d.Writes = []store.Write{{Dir: port.Output, Port: "z", Items: raws("3")}}
		d.Closes = []string{"w"}
		e.commit(d)
		e.holds(id, port.Output, "z", "3")
		e.holds(id, port.Input, "x")
		e.equal("total", e.port(id, port.Input, "x").Total, int64(1))
		e.equal("closed unused", e.port(id, port.Output, "w").Closed, true)
		e.Check(e.store.ClosePort(e.Context(), id, port.Input, "v"))
		e.equal("closed from outside", e.port(id, port.Input, "v").Closed, true)

		only := e.single()
		e.fails(e.store.Write(e.Context(), only, store.Write{Dir: port.Input, Port: "x", Items: raws("1")}), job.ErrPort)
		e.fails(e.store.Write(e.Context(), only, store.Write{Dir: port.Input, Port: "out", Items: raws("1")}), job.ErrPort)
		e.fails(e.store.Write(e.Context(), newID(e), store.Write{Dir: port.Input, Port: "in", Items: raws("1")}), job.ErrNotFound)
		_, _, err := e.store.Peek(e.Context(), only, port.Input, "x", 1)
		e.fails(err, job.ErrPort)
		_, _, err = e.store.Peek(e.Context(), newID(e), port.Input, "x", 1)
		e.fails(err, job.ErrNotFound)
	})
}

func TestTake(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		e.write(id, "in", "1", "2", "3")
		take := func(head int64, n int, token string) error {
			return e.store.Take(e.Context(), id, store.Take{Dir: port.Input, Port: "in", Head: head, N: n}, token)
		}
		e.Check(take(0, 2, "a"))
		e.unchanged("the same take again", func() { e.Check(take(0, 2, "a")) })
		e.unchanged("a late take", func() {
			e.fails(take(0, 1, "b"), job.ErrMoved)
			e.fails(take(3, 1, "b"), job.ErrMoved)
			e.fails(take(2, 2, "b"), job.ErrMoved)
		})
		items, head, err := e.store.Peek(e.Context(), id, port.Input, "in", 5)
		e.Check(err)
		e.equal("left", []any{texts(items), head}, []any{[]string{"3"}, int64(2)})
		e.Check(take(2, 1, "a")) // one token may take several times, from other heads
		e.holds(id, port.Input, "in")
		p := e.port(id, port.Input, "in")
		e.equal("waiting, total", []int64{p.Waiting, p.Total}, []int64{0, 3})
		e.fails(e.store.Take(e.Context(), newID(e), store.Take{Dir: port.Input, Port: "in", N: 1}, "c"), job.ErrNotFound)
	})
}
