package draw

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Plan is the picture of a graph's definition.
func Plan(p *job.Plan) Picture {
	var s sketch
	for i := range p.Nodes {
		n := &p.Nodes[i]
		b := &actor{key: strconv.Itoa(i), name: n.Name, node: n.InstanceOf, typ: n.Type, graph: n.Graph}
		if i > 0 {
			b.parent = strconv.Itoa(n.Parent)
		}
		for _, q := range n.Ports {
			bp := actorPort{Spec: q.Spec, size: -1, constants: len(q.Initial)}
			if len(q.Initial) > 0 {
				bp.constant = string(q.Initial[0])
			}
			for _, e := range q.Edges {
				for _, t := range e {
					bp.ends = append(bp.ends, actorEnd{strconv.Itoa(t.Node), t.Dir, t.Port, t.Feedback})
				}
			}
			b.ports = append(b.ports, bp)
		}
		s.add(b)
	}
	return s.picture()
}

// Jobs is the picture of running jobs, as Handle.Tree returns them: the first is the root.
func Jobs(tree []*job.Info) Picture {
	p, _ := View{}.Jobs(tree)
	return p
}

// sketchOf is what there is of running jobs, before their names are known.
func sketchOf(tree []*job.Info) *sketch {
	s, names := &sketch{}, term.NamesOf(tree)
	for _, i := range tree {
		b := &actor{
			info: i, key: string(i.ID), parent: string(i.Parent), name: cmp.Or(i.Name, i.Type), node: i.InstanceOf, typ: i.Type,
			graph: i.Graph, status: i.Status, reason: names.Note(i),
		}
		for _, q := range i.Ports {
			if q.Name == port.Any {
				continue
			}
			bp := actorPort{Spec: q.Spec, size: int(q.Waiting), closed: q.Closed}
			for _, e := range q.Edges {
				for _, t := range e {
					bp.ends = append(bp.ends, actorEnd{key: string(t.Job), dir: t.Dir, port: t.Port})
				}
			}
			b.ports = append(b.ports, bp)
		}
		s.add(b)
	}
	return s
}

// sketch is jobs on the way to a picture. Jobs that are instances of one node are one box
// of the picture: their paths are the same.
type sketch struct {
	actors []*actor
	byKey  map[string]*actor
	paths  map[string][]*actor // in the order of actors
	order  []string            // of paths
	view   View
	spawns map[spawning]int // children that runs spawned
}

type actor struct {
	info        *job.Info // nil in a plan
	key, parent string
	name, typ   string
	node        string // of which it is one of several instances
	graph       bool
	status      statemachine.Status
	reason      string
	ports       []actorPort
	path, label string
	hidden      bool // in a folded subgraph
}

type actorPort struct {
	port.Spec
	ends      []actorEnd
	size      int
	closed    bool
	constant  string
	constants int
}

type actorEnd struct {
	key      string
	dir      port.Dir
	port     string
	feedback bool
}

func (s *sketch) add(b *actor) {
	if s.byKey == nil {
		s.byKey = make(map[string]*actor)
	}
	s.actors, s.byKey[b.key] = append(s.actors, b), b
}

func (s *sketch) picture() Picture {
	var p Picture
	if len(s.actors) == 0 {
		return p
	}
	s.name()
	root := s.actors[0]
	p.Title = root.name
	if root.graph {
		p.Nodes = terminals(root)
	}
	for _, path := range s.order {
		if all := s.paths[path]; all[0] != root || !root.graph {
			p.Nodes = append(p.Nodes, s.node(all))
		}
	}
	p.Edges = s.edges(root)
	s.addSpawns(&p)
	return p
}

// name gives each job its path, in which instances of one node have the node's name.
func (s *sketch) name() {
	family := make(map[string]map[string]*actor) // by parent, then by name
	for _, b := range s.actors {
		if family[b.parent] == nil {
			family[b.parent] = make(map[string]*actor)
		}
		family[b.parent][b.name] = b
	}
	s.paths = make(map[string][]*actor)
	for _, b := range s.actors {
		b.label = cmp.Or(s.folded(b), boxName(b, family[b.parent]))
		b.path = b.label
		if up := s.byKey[b.parent]; up != nil {
			b.path = up.path + "/" + b.label
			if up.hidden || up.graph && up != s.actors[0] && s.view.Toggled[up.path] {
				b.path, b.hidden = up.path, true
				continue
			}
		}
		if s.paths[b.path] == nil {
			s.order = append(s.order, b.path)
		}
		s.paths[b.path] = append(s.paths[b.path], b)
	}
}

// boxName is the name of the node that a job is one of several instances of, unless one of its
// siblings is called so, or the job's own name.
func boxName(b *actor, siblings map[string]*actor) string {
	if b.node == "" || siblings[b.node] != nil {
		return b.name
	}
	return b.node
}

// terminals are the inputs and outputs of the drawn graph.
func terminals(root *actor) []Node {
	var nodes []Node
	for _, q := range root.ports {
		if q.Dir == port.Input {
			nodes = append(nodes, Node{ID: "in." + q.Name, Kind: Input, Label: q.Name})
		} else {
			nodes = append(nodes, Node{ID: "out." + q.Name, Kind: Output, Label: q.Name})
		}
	}
	return nodes
}

// node is the picture of the jobs of one path.
func (s *sketch) node(all []*actor) Node {
	b := all[0]
	n := Node{ID: b.path, Label: b.label, Type: b.typ, Status: status(all), Note: note(all)}
	if b.graph {
		n.Kind = Group
	}
	if up := s.byKey[b.parent]; up != nil && up.graph && up != s.actors[0] {
		n.Group = up.path
	}
	for _, q := range b.ports {
		if !b.graph && q.idle(all) {
			continue
		}
		p := Port{Name: q.Name, Closed: everywhere(all, q), Waiting: q.unread(all)}
		switch {
		case q.constants > 1:
			p.Constant = fmt.Sprintf("%s … (%d)", q.constant, q.constants)
		case q.constants == 1:
			p.Constant = q.constant
		}
		if q.Dir == port.Input {
			n.In = append(n.In, p)
		} else {
			n.Out = append(n.Out, p)
		}
	}
	return n
}

// Idle tells whether a port is left out of pictures of jobs: it is one for errors that leads nowhere and holds none.
func Idle(q *job.PortInfo) bool { return job.ForErrors(&q.Spec) && len(q.Edges) == 0 && q.Waiting == 0 }

// idle is Idle for a port of some jobs that are drawn as one.
func (q *actorPort) idle(all []*actor) bool {
	if !job.ForErrors(&q.Spec) {
		return false
	}
	for _, b := range all {
		if p := b.port(q.Dir, q.Name); p != nil && (len(p.ends) > 0 || p.size > 0) {
			return false
		}
	}
	return true
}

// unread is what waits in an Out port of some jobs if it leads nowhere.
func (q *actorPort) unread(all []*actor) (n int) {
	for _, b := range all {
		if p := b.port(q.Dir, q.Name); p != nil && q.Dir == port.Output && !b.graph && len(p.ends) == 0 {
			n += max(p.size, 0)
		}
	}
	return n
}

func (b *actor) port(dir port.Dir, name string) *actorPort {
	for i := range b.ports {
		if b.ports[i].Dir == dir && b.ports[i].Name == name {
			return &b.ports[i]
		}
	}
	return nil
}

func everywhere(all []*actor, want actorPort) bool {
	for _, b := range all {
		for _, q := range b.ports {
			if q.Dir == want.Dir && q.Name == want.Name && !q.closed {
				return false
			}
		}
	}
	return true
}

// urgency is the order in which statuses stand for jobs that are drawn as one.
var urgency = []statemachine.Status{
	statemachine.Failed, statemachine.Terminating, statemachine.Running, statemachine.Queued, statemachine.Scheduled,
	statemachine.Waiting, statemachine.Suspended, statemachine.Terminated, statemachine.Completed,
}

func status(all []*actor) statemachine.Status {
	for _, s := range urgency {
		if slices.ContainsFunc(all, func(b *actor) bool { return b.status == s }) {
			return s
		}
	}
	return ""
}

// note is how many jobs a box stands for, or why the one is as it is.
func note(all []*actor) string {
	if len(all) == 1 {
		return all[0].reason
	}
	counts := make(map[statemachine.Status]int)
	for _, b := range all {
		counts[b.status]++
	}
	if len(counts) == 1 {
		return fmt.Sprintf("×%d", len(all))
	}
	var parts []string
	for _, s := range slices.SortedFunc(maps.Keys(counts), func(a, b statemachine.Status) int {
		return slices.Index(urgency, a) - slices.Index(urgency, b)
	}) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
	}
	return fmt.Sprintf("×%d: %s", len(all), strings.Join(parts, ", "))
}

// edges are the wires between boxes; those between instances of the same nodes are one.
func (s *sketch) edges(root *actor) []Edge {
	type wire struct{ from, fromPort, to, toPort string }
	var edges []Edge
	at := make(map[wire]int)
	counted := make(map[wire]map[string]bool) // ports whose messages are in the edge's size
	for _, b := range s.actors {
		for _, q := range b.ports {
			for _, e := range q.ends {
				to := s.byKey[e.key]
				if to == nil || b.hidden || to.hidden {
					continue
				}
				w := wire{to: to.path, toPort: e.port}
				w.from, w.fromPort = b.path, q.Name
				if b == root && root.graph {
					w.from, w.fromPort = "in."+q.Name, ""
				}
				if to == root && root.graph {
					w.to, w.toPort = "out."+e.port, ""
				}
				i, known := at[w]
				if !known {
					i = len(edges)
					at[w], counted[w] = i, make(map[string]bool)
					edges = append(edges, Edge{
						From: w.from, FromPort: w.fromPort, To: w.to, ToPort: w.toPort, Size: -1, Feedback: e.feedback, Closed: true,
					})
				}
				edges[i].Closed = edges[i].Closed && q.closed
				if !counted[w][e.key] {
					counted[w][e.key] = true
					edges[i].count(to, e)
				}
			}
		}
	}
	return edges
}

// count adds what waits at an end of the edge.
func (e *Edge) count(to *actor, end actorEnd) {
	for _, q := range to.ports {
		if q.Dir != end.dir || q.Name != end.port {
			continue
		}
		e.Limit += q.Limit
		if q.size >= 0 && (len(q.ends) == 0) {
			e.Size = max(e.Size, 0) + q.size
		}
	}
}
