package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// whole returns what is wrong with the graph though no single call is.
func (g *Graph) whole() []problem {
	if len(g.nodes) == 0 {
		return []problem{{path: g.root.path(), err: ErrEmpty}}
	}
	return slices.Concat(g.jobNames(), g.deadEnds(), g.unfed(), g.cycles())
}

// jobNames reports names that numbering makes too long or not unique.
func (g *Graph) jobNames() []problem {
	var problems []problem
	owners := make(map[string]*node)
	for _, n := range g.nodes {
		if g.names[n.name] != n {
			continue // reported by Add
		}
		for i := range min(n.instances, job.MaxNodes) {
			name := n.jobName(i)
			err := job.CheckName("job name", name)
			if owner := owners[name]; owner != nil && err == nil {
				err = fmt.Errorf("%w: %s gets the job name %q, too: give one of them another name", job.ErrExists, owner.path(), name)
			}
			if err != nil {
				problems = append(problems, problem{path: n.path(), err: err})
				break
			}
			owners[name] = n
		}
	}
	return problems
}

// deadEnds reports In ports of the graph in which messages would stay indefinitely.
func (g *Graph) deadEnds() []problem {
	led := make(map[string]bool)
	for _, w := range g.wires {
		led[w.from.path()] = true
	}
	for _, p := range g.problems {
		led[p.path] = true // a Connect that failed
	}
	var problems []problem
	for _, s := range g.root.ports {
		path := end{g.root, s.Name}.path()
		if s.Dir == port.Input && !led[path] {
			problems = append(problems, problem{path: path, err: unfed("this Input leads nowhere: Connect it to a job, or remove it")})
		}
	}
	return problems
}

// unfed reports ports that must be fed and are not.
func (g *Graph) unfed() []problem {
	fed := make(map[end]bool)
	for _, w := range g.wires {
		fed[w.to] = true
	}
	told := make(map[string]bool)
	for _, p := range g.problems {
		told[p.path] = true // a Connect that failed
	}
	var problems []problem
	for _, n := range g.nodes {
		for _, s := range n.ports {
			e := end{n, s.Name}
			if s.Required && !fed[e] && n.constants[s.Name] == nil && !told[e.path()] {
				problems = append(problems, problem{path: e.path(), err: unfed("this port must be fed: connect it, or give it a value")})
			}
		}
	}
	if g.root.worker == nil && len(g.within) > 0 {
		problems = append(problems, g.emptyOutlets(fed)...)
	}
	return problems
}

// emptyOutlets reports Out ports of a composite that nothing inside leads to.
func (g *Graph) emptyOutlets(fed map[end]bool) []problem {
	var problems []problem
	for _, s := range g.root.ports {
		if e := (end{g.root, s.Name}); s.Dir == port.Output && !fed[e] {
			problems = append(problems, problem{path: e.path(), err: unfed("nothing inside leads to this port: use graph.BindOutput from a worker, or remove it")})
		}
	}
	return problems
}

// cycles reports, for every wire that leads back, the cycle it closes.
func (g *Graph) cycles() []problem {
	w := walk{next: make(map[*node][]*node), state: make(map[*node]state)}
	for _, wire := range g.wires {
		from, to := wire.from.node, wire.to.node
		if from != g.root && to != g.root && !wire.feedback && !slices.Contains(w.next[from], to) {
			w.next[from] = append(w.next[from], to)
		}
	}
	for _, n := range g.nodes {
		if w.state[n] == unseen {
			w.visit(n)
		}
	}
	var problems []problem
	for _, cycle := range w.cycles {
		var names []string
		for _, n := range append(cycle, cycle[0]) {
			names = append(names, show(n.name))
		}
		problems = append(problems, problem{path: cycle[0].path(), err: fmt.Errorf(
			"the cycle %s would feed its own input: remove one of these wires, or declare the one that leads back as feedback", strings.Join(names, " -> "))})
	}
	return problems
}

// walk is a depth-first search for cycles.
type walk struct {
	next   map[*node][]*node
	state  map[*node]state
	trail  []*node // from where the search began to where it is
	cycles [][]*node
}

type state byte

const (
	unseen state = iota
	onTrail
	seen
)

func (w *walk) visit(n *node) {
	w.state[n] = onTrail
	w.trail = append(w.trail, n)
	for _, next := range w.next[n] {
		switch w.state[next] {
		case unseen:
			w.visit(next)
		case seen: // and leads to no cycle that is not known
		case onTrail:
			w.cycles = append(w.cycles, slices.Clone(w.trail[slices.Index(w.trail, next):]))
		}
	}
	w.trail = w.trail[:len(w.trail)-1]
	w.state[n] = seen
}
