package redisstore_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// blocked has n jobs fill the port of one, so that all of them wait for room, and returns it.
func (e *env) blocked(n int) (consumer job.ID) {
	e.Helper()
	nodes := []job.Node{{Type: "C", Ports: ports(limited(fed("in", n), 1))}}
	for i := range n {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("p", i), Type: "P", Ports: ports(out("out", to(0)))})
	}
	consumer = e.create(nodes...)
	for i := range n {
		e.writes(consumer.Nth(i+1), statemachine.Requeue, fmt.Sprint(i))
	}
	return consumer
}

// takesAll takes n messages of the port in from outside.
func (e *env) takesAll(id job.ID, n int) {
	e.Helper()
	e.Check(e.store.Take(e.Context(), id, store.Take{Dir: port.Input, Port: "in", N: n}, "t"+string(id)))
}

// Very many jobs that wait for room in one port go on in pieces.
func TestProducersGoOnInPieces(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	const n = 1500
	consumer := e.blocked(n)
	e.takesAll(consumer, n)
	for i := range n {
		if p := e.info(consumer.Nth(i + 1)); p.Status != statemachine.Queued || p.Blocked {
			t.Fatalf("producer %d is %s, blocked %v", i, p.Status, p.Blocked)
		}
	}
	e.bounded()
}

// Where a process has died that was at it, the sweeper goes on with those that waited then. One that found the port full
// again waits for the next room.
func TestProducersOfTheDeadGoOn(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	const n = 300
	consumer := e.blocked(n)
	e.hinder("chore_run", 1, func() { e.takesAll(consumer, n) })
	first := consumer.Nth(1)
	e.is(statemachine.Queued, first)
	e.is(statemachine.Suspended, consumer.Nth(n))
	e.writes(first, statemachine.Requeue, "1")
	e.is(statemachine.Suspended, first)
	e.Check(e.Redis.ZAdd(t.Context(), e.due(consumer), redis.Z{Score: 1, Member: "!chores"}).Err())
	e.sweep()
	for i := 1; i < n; i++ {
		e.is(statemachine.Queued, consumer.Nth(i+1))
	}
	e.is(statemachine.Suspended, first)
	e.equal("those that wait for room", e.Redis.ZRange(t.Context(), strings.TrimSuffix(e.due(consumer), "due")+"j:"+string(consumer)+":p:in", 0, -1).Val(), []string{string(first)})
}

// crowded is a graph with a job whose port feeds n others, half of them each message and half of them by turns, and one
// more that another job feeds, too.
func crowded(n int) []job.Node {
	nodes := []job.Node{
		{Type: "G", Graph: true},
		{Name: "source", Type: "S", Ports: ports(out("out"))},
		{Name: "other", Type: "S", Ports: ports(out("out", to(3)))},
		{Name: "both", Type: "T", Ports: ports(fed("in", 2))},
	}
	turns := to(3)
	for i := range n {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("t", i), Type: "T", Ports: ports(fed("in", 1))})
		if i%2 == 0 {
			turns = append(turns, to(i+4)...)
		} else {
			nodes[1].Ports[0].Edges = append(nodes[1].Ports[0].Edges, to(i+4))
		}
	}
	nodes[1].Ports[0].Edges = append(nodes[1].Ports[0].Edges, turns)
	return nodes
}

// closings is how many of the first jobs of crowded that a source feeds have got its end.
func (e *env) closings(root job.ID, n int) (closed int) {
	e.Helper()
	for i := range n {
		switch p := e.port(root.Nth(i+4), port.Input, "in"); {
		case p.Closed != (p.Sources == 0):
			e.Fatalf("the port of job %d is %+v", i+4, p)
		case p.Closed:
			closed++
		}
	}
	return closed
}

// The end of a port comes to very many in pieces.
func TestCloseInPieces(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	const n = 499
	root := e.create(crowded(n)...)
	e.Check(e.store.ClosePort(t.Context(), root.Nth(1), port.Output, "out"))
	e.equal("ports that are closed", e.closings(root, n), n)
	e.equal("open sources of a port that has another one", e.port(root.Nth(3), port.Input, "in").Sources, 1)
	e.equal("keys of what is being closed", e.Redis.Exists(t.Context(), strings.TrimSuffix(e.due(root), "due")+"closing:"+string(root)).Val(), int64(0))
	e.bounded()
}

// Where a process has died that was at it, the sweeper goes on, or the next patch does: each port gets the end once.
func TestCloseOfTheDead(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(e *env, root job.ID, n int){
		"sweep": func(*env, job.ID, int) {},
		"patch": func(e *env, root job.ID, n int) {
			h, err := client.New(e.store).Find(e.Context(), string(root))
			e.Check(err)
			more := append(crowded(n), job.Node{Name: "more", Type: "T", Ports: ports(in("in"))})
			e.Check(h.Patch(e.Context(), planned(more)))
			e.equal("ports that are closed by the patch", e.closings(root, n), n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := hindered(t)
			const n = 390
			root := e.create(crowded(n)...)
			e.hinder("chore_run", 1, func() {
				e.end(root.Nth(2), statemachine.Suspend)
				d := delta(e.begin(root.Nth(1)), statemachine.Complete)
				d.Closes = []string{"out"}
				e.commit(d)
			})
			if closed := e.closings(root, n); closed == 0 || closed == n {
				t.Fatalf("%d ports are closed with the run", closed)
			}
			goOn(e, root, n)
			e.Check(e.Redis.ZAdd(t.Context(), e.due(root), redis.Z{Score: 1, Member: "!chores"}).Err())
			e.sweep()
			e.equal("ports that are closed", e.closings(root, n), n)
			e.equal("open sources of a port that has another one", e.port(root.Nth(3), port.Input, "in").Sources, 1)
			e.Check(e.store.ClosePort(t.Context(), root.Nth(2), port.Output, "out"))
			e.equal("open sources of it without that", e.port(root.Nth(3), port.Input, "in").Sources, 0)
		})
	}
}

// circling is a graph with n members that one of them feeds, and itself.
func circling(n int) []job.Node {
	back := in("back")
	back.Loops = 1
	nodes := []job.Node{
		{Type: "G", Graph: true, Loop: true, Ports: ports(out("in"))},
		{Name: "round", Type: "R", Loop: true, Ports: ports(fed("in", 1), back, out("out", job.Edge{{Node: 1, Dir: port.Input, Port: "back", Feedback: true}}))},
	}
	nodes[0].Ports[0] = in("in")
	nodes[0].Ports[0].Edges = []job.Edge{to(1)}
	for i := range n {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("t", i), Type: "T", Loop: true, Ports: ports(fed("in", 1))})
		if i%job.MaxFanOut == 0 {
			nodes[1].Ports = append(nodes[1].Ports, out(fmt.Sprint("turns", i), nil))
		}
		turns := &nodes[1].Ports[len(nodes[1].Ports)-1].Edges[0]
		*turns = append(*turns, to(i+2)...)
	}
	return nodes
}

// The members of a graph with feedback, if they are very many, are looked at in pieces.
func TestQuiescenceInPieces(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	root := e.create(circling(900)...)
	e.Check(e.store.ClosePort(t.Context(), root, port.Input, "in"))
	e.end(root.Nth(1), statemachine.Suspend)
	e.Until("the feedback has ended", func() bool { return e.port(root.Nth(1), port.Input, "back").Closed })
	e.is(statemachine.Queued, root.Nth(1))
	e.bounded()
}

// A member that moves while the others are looked at keeps the feedback open, whether it was looked at already or not.
func TestQuiescenceSeesWhoMoves(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]bool{"and is done": true, "and goes on": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := hindered(t)
			const n = 700
			root := e.create(circling(n)...)
			backgroundTasks := strings.TrimSuffix(e.due(root), "due") + "chores"
			goOn := func() {
				e.Helper()
				e.Check(e.Redis.ZAdd(t.Context(), e.due(root), redis.Z{Score: 1, Member: "!chores"}).Err())
				e.sweep()
				e.Until("there are no chores", func() bool { return e.Redis.LLen(t.Context(), backgroundTasks).Val() == 0 })
			}
			e.hinder("chore_run", 1, func() {
				e.Check(e.store.ClosePort(t.Context(), root, port.Input, "in"))
				e.end(root.Nth(1), statemachine.Suspend)
				e.equal("chores", e.Redis.LLen(t.Context(), backgroundTasks).Val(), int64(1))
			})
			for i := range n {
				e.write(root.Nth(i+2), "in", "1")
				if end {
					e.end(root.Nth(i+2), statemachine.Suspend)
				}
			}
			goOn()
			if !end {
				e.equal("the feedback is closed while members move", e.port(root.Nth(1), port.Input, "back").Closed, false)
				for i := range n {
					e.end(root.Nth(i+2), statemachine.Suspend)
				}
				goOn()
			}
			e.Until("the feedback has ended", func() bool { return e.port(root.Nth(1), port.Input, "back").Closed })
		})
	}
}

// A graph with feedback and very many members waits for one within it, whose members are looked at in pieces, too, and for what
// its end brings about.
func TestNestedQuiescenceInPieces(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	const n = 700
	round := func(parent, self int) job.Node {
		back := in("back")
		back.Loops = 1
		out := out("out", job.Edge{{Node: self, Dir: port.Input, Port: "back", Feedback: true}})
		return job.Node{Name: "round", Type: "R", Loop: true, Parent: parent, Ports: ports(fed("in", 1), back, out)}
	}
	outer := job.Node{Type: "G", Graph: true, Loop: true, Ports: ports(in("in"))}
	outer.Ports[0].Edges = []job.Edge{to(1), to(2)}
	inner := job.Node{Name: "inner", Type: "G", Graph: true, Loop: true, Ports: ports(fed("in", 1))}
	inner.Ports[0].Edges = []job.Edge{to(3)}
	nodes := []job.Node{outer, round(0, 1), inner, round(2, 3)}
	for i := range 2 * n {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("t", i), Type: "T", Loop: true, Parent: i % 2 * 2, Ports: ports(in("in"))})
	}
	root := e.create(nodes...)
	for i := range 2 * n {
		e.end(root.Nth(i+4), statemachine.Suspend)
	}
	e.Check(e.store.ClosePort(t.Context(), root, port.Input, "in"))
	e.hinder("chore_run", 1, func() {
		e.end(root.Nth(3), statemachine.Suspend)
		e.end(root.Nth(1), statemachine.Suspend)
	})
	e.Check(e.Redis.ZAdd(t.Context(), e.due(root), redis.Z{Score: 1, Member: "!chores"}).Err())
	e.sweep()
	e.Until("the inner feedback has ended", func() bool { return e.port(root.Nth(3), port.Input, "back").Closed })
	e.equal("the outer feedback is closed while the inner one ends", e.port(root.Nth(1), port.Input, "back").Closed, false)
	e.end(root.Nth(3), statemachine.Complete)
	e.Until("the outer feedback has ended", func() bool { return e.port(root.Nth(1), port.Input, "back").Closed })
	e.is(statemachine.Queued, root.Nth(1))
}

// A run gets that many bytes of messages of each port, twice as many in all, and of each port one message at least; what it
// does not get is not read.
func TestLargeMessagesAreReadOnce(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	const inputs, messages = 4, 40
	node := job.Node{Type: "T"}
	for i := range inputs {
		node.Ports = append(node.Ports, in(fmt.Sprint("in", i)))
	}
	id := e.create(node)
	large := raws(`"` + strings.Repeat("x", 1<<18) + `"`)
	for _, p := range node.Ports {
		for range messages / 10 {
			e.Check(e.store.Write(t.Context(), id, store.Write{Dir: port.Input, Port: p.Name, Items: slices.Repeat(large, 10)}))
		}
	}
	b := beginning()
	b.Bytes = 2 << 20
	snap, err := e.store.Begin(t.Context(), id, b)
	e.Check(err)
	got := map[string][]int64{}
	for _, box := range snap.In {
		got[box.Port] = []int64{int64(len(box.Items)), int64(box.Len)}
	}
	sum := int64(0)
	for _, p := range node.Ports {
		n := got[p.Name]
		if len(n) != 2 || n[0] < 1 || n[1] != messages {
			t.Fatalf("of port %s it got %v, of %d", p.Name, n, messages)
		}
		sum += n[0]
	}
	e.equal("messages in all", sum, int64(8+8+1+1))
	items, _, err := e.store.Peek(t.Context(), id, port.Input, "in0", messages)
	e.Check(err)
	e.equal("messages of a port", len(items), job.MaxPeek>>18)
	e.bounded()
}

// A large state, and jobs that are large together, are read in pieces.
func TestLargeJobsInPieces(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	const jobs, keys = 20, 3000
	large := `"` + strings.Repeat("x", 1<<18) + `"`
	nodes := []job.Node{{Type: "T"}}
	for i := range jobs {
		p := in("in")
		p.Default = json.RawMessage(large)
		nodes = append(nodes, job.Node{Name: fmt.Sprint("t", i), Type: "T", Args: json.RawMessage(large), Ports: ports(p)})
	}
	root := e.create(nodes...)
	tree, err := e.store.Tree(t.Context(), root)
	e.Check(err)
	e.equal("jobs of the tree", len(tree), jobs+1)
	listed := 0
	for i, err := range e.store.Jobs(t.Context(), job.Filter{All: true}) {
		e.Check(err)
		if p, _ := i.Port(port.Input, "in"); i.ID.Tree() == root && string(p.Default) == large {
			listed++
		}
	}
	e.equal("jobs of the list", listed, jobs)
	state := map[string]json.RawMessage{}
	for i := range keys {
		state[fmt.Sprint("key", i)] = json.RawMessage(fmt.Sprint(i))
	}
	e.Check(e.store.SetState(t.Context(), root, state, nil))
	got, err := e.store.State(t.Context(), root)
	e.Check(err)
	e.equal("state", textMap(got), textMap(state))
	e.bounded()
}
