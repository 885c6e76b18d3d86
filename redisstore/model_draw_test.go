package redisstore_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// plan draws a tree: workers and graphs, edges that go round, split, merge and pass
// through graphs.
func (c *machine) plan(most int, name string) []job.Node {
	n := rapid.IntRange(1, most).Draw(c.T, "nodes")
	nodes := make([]job.Node, n)
	parents := map[int]bool{}
	for i := range nodes {
		nodes[i] = job.Node{Name: fmt.Sprint("n", i), Type: "A", Queue: c.queue(), Graph: chance(c, 2, "graph")}
		if i > 0 {
			nodes[i].Parent = rapid.IntRange(0, i-1).Draw(c.T, "parent")
			parents[nodes[i].Parent] = true
		}
	}
	nodes[0].Name = name
	for i := range nodes {
		g := &nodes[i]
		g.Graph = g.Graph && parents[i]
		g.Ports = ports(in("in"), out("out"))
		if g.Graph {
			g.Ports[0].Edges = c.edges(i, nodes, port.Input)
			continue
		}
		if chance(c, 2, "type") {
			g.Type = "B"
		}
		if chance(c, 2, "limit") {
			g.Ports[0].Limit = rapid.IntRange(1, 2).Draw(c.T, "limit")
		}
		g.Ports = append(g.Ports, out("free"))
		if chance(c, 4, "any") {
			g.Ports = append(g.Ports, in(port.Any), out(port.Any))
		}
	}
	for i := range nodes {
		nodes[i].Ports[1].Edges = c.edges(i, nodes, port.Output)
	}
	for i := range nodes {
		for p := range nodes[i].Ports {
			for _, e := range nodes[i].Ports[p].Edges {
				for _, t := range e {
					nodes[t.Node].Ports[map[port.Dir]int{port.Input: 0, port.Output: 1}[t.Dir]].Sources++
				}
			}
		}
	}
	for i := range nodes {
		if !nodes[i].Graph && !nodes[i].Wired() && chance(c, 5, "later") {
			nodes[i].At = pick(c, []time.Time{time.Unix(1e8, 0), time.Now().Add(10 * longTime)}, "at")
		}
	}
	return nodes
}

// edges draws the edges of a port of node i: of a graph's In port to later nodes, of an
// Out port to In ports of other nodes and to Out ports of earlier graphs.
func (c *machine) edges(i int, nodes []job.Node, dir port.Dir) []job.Edge {
	var edges []job.Edge
	for range rapid.IntRange(0, 2).Draw(c.T, "edges") {
		var e job.Edge
		for range rapid.IntRange(1, 3).Draw(c.T, "ends") {
			to := rapid.IntRange(0, len(nodes)-1).Draw(c.T, "to")
			switch {
			case dir == port.Output && to < i && nodes[to].Graph:
				e = append(e, job.Target{Node: to, Dir: port.Output, Port: "out"})
			case to > i || dir == port.Output && to != i:
				e = append(e, job.Target{Node: to, Dir: port.Input, Port: "in"})
			}
		}
		if e != nil {
			edges = append(edges, e)
		}
	}
	return edges
}

// message is another one each time, so that none can stand for another.
func (c *machine) message() json.RawMessage {
	c.messages++
	return json.RawMessage(fmt.Sprint(c.messages))
}

func (c *machine) items() []json.RawMessage {
	var all []json.RawMessage
	for range rapid.IntRange(1, 4).Draw(c.T, "messages") {
		all = append(all, c.message())
	}
	return all
}

// delta draws what a run does, sometimes what it must not.
func (c *machine) delta(r *mRun) store.Delta {
	d := store.Delta{Job: r.id, Token: r.token, Reason: pick(c, []string{"", "why"}, "reason")}
	d.Outcome = pick(c, []statemachine.Event{
		statemachine.Complete, statemachine.Suspend, statemachine.Requeue, statemachine.Backoff, statemachine.Fail,
		store.Checkpoint, statemachine.Shutdown, statemachine.Complete, statemachine.Fail,
	}, "outcome")
	switch d.Outcome {
	case store.Checkpoint:
		d.Next, d.Lease = rand.Text(), c.lease()
	case statemachine.Backoff:
		d.Delay = pick(c, []time.Duration{0, shortTime, longTime}, "delay")
		d.Failure = &job.Failure{Error: "x"}
	case statemachine.Requeue:
		d.Delay = pick(c, []time.Duration{0, shortTime, longTime}, "delay")
		d.Handed = chance(c, 3, "handed")
	default:
	}
	for _, t := range r.takes {
		if t.N > 0 {
			t.N = rapid.IntRange(1, t.N).Draw(c.T, "take")
			d.Takes = append(d.Takes, t)
		}
	}
	if chance(c, 2, "state") {
		d.Set = map[string]json.RawMessage{pick(c, []string{"a", "b", "c"}, "key"): c.message()}
		d.Unset = []string{pick(c, []string{"x", "a", "b"}, "unset")}
	}
	if chance(c, 6, "spawn") && len(c.model.jobs) < maxTree {
		nodes := c.plan(3, pick(c, []string{"k1", "k2", "k3"}, "name"))
		base, err := c.e.store.Reserve(c.e.Context(), c.root, len(nodes))
		c.ok(err)
		d.Spawns = []store.Spawn{{Base: base, Plan: &job.Plan{Nodes: nodes}}}
	}
	if chance(c, 4, "several") {
		for range rapid.IntRange(1, 3).Draw(c.T, "before") {
			d.Before = append(d.Before, c.part(&d))
		}
	}
	last := c.part(&d)
	d.Writes, d.Log = last.Writes, last.Log
	if chance(c, 5, "close") {
		d.Closes = []string{pick(c, []string{"out", "out", "free", "new"}, "port")}
	}
	return d
}

// part draws what one of the runs of a delta does.
func (c *machine) part(d *store.Delta) (p store.Part) {
	for range rapid.IntRange(0, 3).Draw(c.T, "writes") {
		p.Writes = append(p.Writes, c.aWrite(d))
	}
	if chance(c, 3, "log") {
		p.Log = []string{string(c.message())}
	}
	return p
}

func (c *machine) aWrite(d *store.Delta) store.Write {
	w := store.Write{Dir: port.Output, Port: pick(c, []string{"out", "out", "out", "free", "free", "new"}, "port"), Items: c.items()}
	if w.Keyed = chance(c, 3, "keyed"); w.Keyed {
		w.Key = rapid.Uint32().Draw(c.T, "key")
	}
	to := []job.ID{""}
	to = append(to, slices.Sorted(maps.Values(c.model.jobs[d.Job].kids))...)
	if d.Spawns != nil {
		to = append(to, d.Job.Nth(d.Spawns[0].Base))
	}
	if chance(c, 3, "input") {
		w.Dir, w.Job = port.Input, pick(c, to, "to")
		w.Port = pick(c, []string{"in", "in", "in", "in", "new"}, "port")
	}
	return w
}
