package graph

import (
	"fmt"
	"slices"

	"github.com/weirworks/weir/job"
)

// Plan returns the jobs that the graph is made of: its own job first, then those
// of its workers in the order of Add, all of them children of the first. The
// error has a line for each thing that is wrong with the graph; it wraps
// [job.ErrName], [job.ErrExists] or [job.ErrTooLarge] where one of these fits.
func (g *Graph) Plan() (*job.Plan, error) {
	kinds, problems := g.kinds()
	if err := g.join(slices.Concat(g.problems, problems, g.whole())); err != nil {
		return nil, err
	}
	first, total := map[*node]int{g.root: 0}, 1
	for _, n := range g.nodes {
		first[n] = total
		total += n.instances
	}
	w := g.wiring(first)
	nodes := make([]job.Node, 0, total)
	nodes = append(nodes, job.Node{Name: g.root.name, Type: g.root.name, Graph: true, Ports: w.ports(g.root)})
	for i, n := range g.nodes {
		for k := range n.instances {
			made := kinds[i]
			made.Name, made.Ports = n.jobName(k), w.ports(n)
			nodes = append(nodes, made)
		}
	}
	return &job.Plan{Nodes: nodes}, nil
}

// kinds describes a job of each worker, or reports why it cannot.
func (g *Graph) kinds() ([]job.Node, []problem) {
	kinds := make([]job.Node, len(g.nodes))
	var problems []problem
	for i, n := range g.nodes {
		if n.unfit {
			continue // reported by Add
		}
		kind, err := job.NodeOf(n.worker, n.name, n.queue)
		if err != nil {
			problems = append(problems, problem{path: n.path(), err: err})
		}
		kinds[i] = kind
	}
	return kinds, problems
}

// jobName is the name of the i-th job of n, counted from 0.
func (n *node) jobName(i int) string {
	if n.instances == 1 {
		return n.name
	}
	return fmt.Sprintf("%s_%d", n.name, i+1)
}

// wiring is the wires in the terms of a plan.
type wiring struct {
	edges   map[end][]job.Edge // of each job, by where they lead from
	sources map[end]int        // of each job, by where they lead to
}

// wiring translates the wires, given the number of each node's first job.
func (g *Graph) wiring(first map[*node]int) wiring {
	w := wiring{make(map[end][]job.Edge), make(map[end]int)}
	for _, wire := range g.wires {
		to := wire.to.node
		edge := make(job.Edge, to.instances)
		for i := range edge {
			edge[i] = job.Target{Node: first[to] + i, Dir: to.receives(), Port: wire.to.port}
		}
		w.edges[wire.from] = append(w.edges[wire.from], edge)
		w.sources[wire.to] += wire.from.node.instances
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
			p.Sources = w.sources[at]
		}
		ports[i] = p
	}
	return ports
}
