package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Plan returns the jobs that the graph is made of: its own job first, then those
// of its workers in the order of Add, all of them children of the first, those of a nested
// graph behind its own. The error has a line for each thing that is wrong with the graph; it
// wraps [job.ErrName], [job.ErrExists] or [job.ErrTooLarge] where one of these fits.
func (g *Graph) Plan() (*job.Plan, error) {
	e := emitter{made: make(map[*node]job.Node)}
	problems := g.all(e.made)
	if g.jobs() > job.MaxNodes {
		problems = append(problems, problem{path: g.root.path(), err: fmt.Errorf(
			"%w: the graph has %d jobs, its own among them, at most %d are allowed: use fewer graph.Instances, or let a job spawn the rest",
			job.ErrTooLarge, g.jobs(), job.MaxNodes)})
	}
	if err := g.join(problems); err != nil {
		return nil, err
	}
	e.nodes = append(e.nodes, job.Node{Name: g.root.name, Type: g.root.name, Graph: true})
	e.emit(g, 0, g.loops(), g.priority)
	for i := range e.nodes {
		for p := range e.nodes[i].Ports {
			e.settle(&e.nodes[i].Ports[p])
		}
	}
	plan := &job.Plan{Nodes: e.nodes, Retain: g.retain, SequentialKey: g.sequential, Unique: g.unique}
	if err := plan.Validate(); err != nil { // a port that feeds too many, which shows only now
		return nil, g.join([]problem{{path: g.root.path(), err: err}})
	}
	return plan, nil
}

// all returns everything that is wrong with the graph and those nested in it, and describes
// the job of each worker in made.
func (g *Graph) all(made map[*node]job.Node) []problem {
	problems := slices.Concat(g.problems, g.unfit(made), g.whole())
	for _, n := range g.nodes {
		if n.sub != nil {
			problems = append(problems, n.sub.all(made)...)
		}
	}
	return problems
}

// unfit describes the job of each worker in made, and reports workers of which no jobs can be made.
func (g *Graph) unfit(made map[*node]job.Node) []problem {
	var problems []problem
	for _, n := range g.nodes {
		if n.unfit || n.worker == nil {
			continue // reported by Add
		}
		var err error
		if made[n], err = job.NodeOf(n.worker, n.name, n.queue); err != nil {
			problems = append(problems, problem{path: n.path(), err: err})
		}
	}
	return problems
}

// loops tells whether the graph has feedback.
func (g *Graph) loops() bool {
	return slices.ContainsFunc(g.wires, func(w wire) bool { return w.feedback })
}

// jobName is the name of the i-th job of n, counted from 0.
func (n *node) jobName(i int) string {
	if n.instances == 1 {
		return n.name
	}
	return fmt.Sprintf("%s_%d", n.name, i+1)
}

// emitter makes the jobs of a plan.
type emitter struct {
	made  map[*node]job.Node // of each worker, without what the graph adds
	nodes []job.Node
}

// emit appends the jobs of a graph whose own job is there already, and wires all of them. Those that name no priority get the given one.
func (e *emitter) emit(g *Graph, own int, loop bool, priority *int) {
	at := map[*node][]int{g.root: {own}}
	next := len(e.nodes)
	for _, n := range g.nodes {
		for range n.instances {
			at[n] = append(at[n], next)
			next += n.jobs()
		}
	}
	w := g.wiring(at)
	e.merge(own, w.ports(g.root))
	for _, n := range g.nodes {
		for k := range n.instances {
			made := e.plan(n, k)
			made.Parent, made.Ports, made.Loop = own, w.ports(n), loop
			made.Priority = cmp.Or(made.Priority, priority)
			e.nodes = append(e.nodes, made)
			if n.sub != nil {
				e.emit(n.sub, len(e.nodes)-1, loop || n.sub.loops(), cmp.Or(n.priority, n.sub.priority, priority))
			}
		}
	}
}

// merge adds to a graph's job what is known of its ports from the inside.
func (e *emitter) merge(own int, inside []job.Port) {
	node := &e.nodes[own]
	if node.Ports == nil {
		node.Ports = inside
		return
	}
	for i := range node.Ports {
		p := &node.Ports[i]
		for _, q := range inside {
			if q.Dir == p.Dir && q.Name == p.Name {
				p.Edges = append(p.Edges, q.Edges...)
				p.Sources += q.Sources
				p.Loops += q.Loops
			}
		}
	}
}

// settle moves the constants of a graph's port on to where they are kept, and closes ports
// that nothing else feeds.
func (e *emitter) settle(p *job.Port) {
	initial := p.Initial
	if len(initial) == 0 || len(p.Edges) == 0 {
		p.Closed = p.Closed || len(initial) > 0 && p.Sources == 0 && p.Loops == 0
		return
	}
	p.Initial = nil
	for _, edge := range p.Edges {
		for i, m := range initial {
			to := e.port(edge[i%len(edge)])
			to.Initial = append(slices.Clip(to.Initial), m)
		}
	}
	if p.Sources == 0 && p.Loops == 0 {
		e.close(p)
	}
	for _, edge := range p.Edges {
		for _, t := range edge {
			e.settle(e.port(t))
		}
	}
}

// close closes a port, and those behind it that nothing else feeds.
func (e *emitter) close(p *job.Port) {
	p.Closed = true
	for _, edge := range p.Edges {
		for _, t := range edge {
			to := e.port(t)
			if to.Sources--; to.Sources == 0 && to.Loops == 0 {
				e.close(to)
			}
		}
	}
}

func (e *emitter) port(t job.Target) *job.Port {
	ports := e.nodes[t.Node].Ports
	return &ports[slices.IndexFunc(ports, func(p job.Port) bool { return p.Dir == t.Dir && p.Name == t.Port })]
}

// plan describes the k-th job of n without ports.
func (e *emitter) plan(n *node, k int) job.Node {
	made := e.made[n]
	if n.worker == nil {
		made = job.Node{Type: n.sub.root.name, Queue: n.queue}
	}
	if n.priority != nil {
		made.Priority = n.priority
	}
	made.Options = n.options
	made.Name, made.OnFailure, made.Graph, made.Labels = n.jobName(k), n.policy, n.sub != nil, n.labels
	if n.instances > 1 {
		made.InstanceOf = n.name
	}
	return made
}

// jobs is how many jobs one instance of n is.
func (n *node) jobs() int {
	if n.sub == nil {
		return 1
	}
	return n.sub.jobs()
}

// jobs is how many jobs the graph is, its own among them.
func (g *Graph) jobs() int {
	total := 1
	for _, n := range g.nodes {
		each := n.jobs() // once: each level would double it
		if n.instances > (math.MaxInt-total)/each {
			return math.MaxInt
		}
		total += n.instances * each
	}
	return total
}

// wiring is the wires in the terms of a plan.
type wiring struct {
	edges   map[end][]job.Edge // of each job, by where they lead from
	sources map[end]int        // of each job, by where they lead to
	loops   map[end]int        // those of sources that are feedback
	limits  map[end]int
}

// wiring translates the wires, given the number of each node's jobs.
func (g *Graph) wiring(at map[*node][]int) wiring {
	w := wiring{make(map[end][]job.Edge), make(map[end]int), make(map[end]int), make(map[end]int)}
	for _, wire := range g.wires {
		to := wire.to.node
		edge := make(job.Edge, len(at[to]))
		for i := range edge {
			edge[i] = job.Target{Node: at[to][i], Dir: to.receives(), Port: wire.to.port, Feedback: wire.feedback}
		}
		w.edges[wire.from] = append(w.edges[wire.from], edge)
		if wire.feedback {
			w.loops[wire.to] += len(at[wire.from.node])
		} else {
			w.sources[wire.to] += len(at[wire.from.node])
		}
		if wire.limited && (w.limits[wire.to] == 0 || wire.limit < w.limits[wire.to]) {
			w.limits[wire.to] = wire.limit
		}
	}
	return w
}

// ports returns the ports of one job of n. All jobs of n share the edges
// themselves: copies would take instances times instances.
func (w wiring) ports(n *node) []job.Port {
	ports := make([]job.Port, len(n.ports))
	for i, s := range n.ports {
		p := job.Port{Spec: s}
		if at := (end{n, s.Name}); s.Dir == n.sends() {
			p.Edges = slices.Clone(w.edges[at])
		} else {
			p.Sources, p.Loops = w.sources[at], w.loops[at]
			if limit := w.limits[at]; limit > 0 && (p.Limit == 0 || limit < p.Limit) {
				p.Limit = limit
			}
		}
		if s.Dir == port.Input {
			p.Initial = n.constants[s.Name]
		}
		ports[i] = p
	}
	return ports
}
