package draw

import (
	"cmp"
	"fmt"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// SpawnPort is what both ends of a wire are called that leads from a job to children that its runs spawned. No port of
// a job can have that name.
const SpawnPort = "\u2937"

// View says what of a tree a picture shows. The zero value draws each job, and no wires to spawned children.
type View struct {
	// Spawned is how many children of one type that runs of a job spawned are drawn as a box each: more of them are one
	// box. Zero: any number.
	Spawned int
	// Toggled are paths of subgraphs that are drawn as one box, and of boxes of spawned children that are drawn as a box
	// each though they are more than Spawned.
	Toggled map[string]bool
	// Spawns draws a wire from each job to the children that its runs spawned.
	Spawns bool
}

// Jobs is the picture of running jobs, and which jobs each node stands for, by the ID of the node: of a folded subgraph
// the graph is the first.
func (v View) Jobs(tree []*job.Info) (Picture, map[string][]*job.Info) {
	s := sketchOf(tree)
	s.view = v
	p := s.picture()
	members := make(map[string][]*job.Info, len(s.paths))
	for path, all := range s.paths {
		for _, b := range all {
			members[path] = append(members[path], b.info)
		}
	}
	for _, b := range s.actors {
		if b.hidden {
			members[b.path] = append(members[b.path], b.info)
		}
	}
	return p, members
}

// Stand is the status and the note of a node that stands for some jobs, as Jobs returns them: of a folded subgraph those of the
// graph. Of a node that stands for none it is empty.
func Stand(all []*job.Info) (statemachine.Status, string) {
	if len(all) == 0 {
		return "", ""
	}
	within := make(map[job.ID]bool, len(all))
	for _, i := range all {
		within[i.ID] = true
	}
	actors, names := make([]*actor, 0, len(all)), term.NamesOf(all)
	for _, i := range all {
		if !within[i.Parent] {
			actors = append(actors, &actor{status: i.Status, reason: names.Note(i)})
		}
	}
	return status(actors), note(actors)
}

// spawning is a job and a type of children that its runs spawned.
type spawning struct{ parent, typ string }

// spawned tells whether a run spawned a job: it is a child of one that is no graph.
func (s *sketch) spawned(b *actor) bool {
	up := s.byKey[b.parent]
	return up != nil && !up.graph && b.node == ""
}

// folded is the name of the box of several spawned children that a job belongs to, or empty.
func (s *sketch) folded(b *actor) string {
	if s.view.Spawned == 0 || !s.spawned(b) {
		return ""
	}
	if s.spawns == nil {
		s.spawns = make(map[spawning]int)
		for _, other := range s.actors {
			if s.spawned(other) {
				s.spawns[spawning{other.parent, other.typ}]++
			}
		}
	}
	if s.spawns[spawning{b.parent, b.typ}] <= s.view.Spawned {
		return ""
	}
	label := b.typ + " \u00d7"
	if s.view.Toggled[s.byKey[b.parent].path+"/"+label] {
		return ""
	}
	return label
}

// addSpawns draws the wires to children that runs spawned.
func (s *sketch) addSpawns(p *Picture) {
	if !s.view.Spawns {
		return
	}
	at := make(map[string]int, len(p.Nodes))
	for i := range p.Nodes {
		at[p.Nodes[i].ID] = i
	}
	leaving := make(map[string]bool)
	for _, path := range s.order {
		b := s.paths[path][0]
		up := s.byKey[b.parent]
		if b.hidden || !s.spawned(b) {
			continue
		}
		from, okFrom := at[up.path]
		to, okTo := at[path]
		if !okFrom || !okTo {
			continue
		}
		if !leaving[up.path] {
			leaving[up.path] = true
			p.Nodes[from].Out = append(p.Nodes[from].Out, Port{Name: SpawnPort})
		}
		p.Nodes[to].In = append(p.Nodes[to].In, Port{Name: SpawnPort})
		p.Nodes[to].Group = p.Nodes[from].Group
		p.Edges = append(p.Edges, Edge{From: up.path, FromPort: SpawnPort, To: path, ToPort: SpawnPort, Size: -1})
	}
}

// Rect is where something is drawn: in pixels, or on a terminal in columns and lines.
type Rect struct{ X, Y, W, H int }

// Pin is where a port is drawn, and on which side of its node.
type Pin struct {
	Port
	Dir  port.Dir
	X, Y int
}

// PlacedNode is a node with its place. A group that has members is a frame around them.
type PlacedNode struct {
	Node
	Rect
	Frame bool
	Pins  []Pin
}

// PlacedEdge is an edge with the points that it turns at, from its beginning to its end.
type PlacedEdge struct {
	Edge
	Points [][2]int
}

// Placed is a picture with places, for programs that draw it themselves: those of SVG. Groups come before their members,
// and edges are in the order of the picture.
type Placed struct {
	W, H  int
	Nodes []PlacedNode
	Edges []PlacedEdge
}

// Place lays a picture out as SVG does.
func Place(p Picture) (*Placed, error) {
	s, err := stage(p)
	if err != nil {
		return nil, fmt.Errorf("placing: %w", err)
	}
	d := &svg{scene: s}
	d.placed = s.place(d)
	out := &Placed{W: d.placed.W, H: d.placed.H * svgRow, Nodes: make([]PlacedNode, len(s.nodes)), Edges: make([]PlacedEdge, len(s.edges))}
	for i, n := range s.nodes {
		out.Nodes[i] = d.placedNode(n, i)
	}
	for i, e := range s.edges {
		path := d.placed.Wires[i]
		last := path[len(path)-1]
		points := corners(path, last.X2)
		at := make([][2]int, len(points))
		for k, q := range points {
			at[k] = [2]int{q.x, middle(q.y)}
		}
		out.Edges[i] = PlacedEdge{Edge: e.Edge, Points: at}
	}
	return out, nil
}

func (d *svg) placedNode(n *node, i int) PlacedNode {
	r := d.placed.Nodes[i]
	out := PlacedNode{Node: n.Node, Rect: Rect{r.X, r.Y * svgRow, r.W, r.H * svgRow}, Frame: n.frame()}
	pin := 0
	for k, p := range n.In {
		if pin < len(r.Left) {
			out.Pins = append(out.Pins, Pin{p, port.Input, r.X, middle(r.Left[pin])})
		}
		pin += cmp.Or(n.wires[k], 1)
	}
	for k, p := range n.Out {
		if k < len(r.Right) {
			out.Pins = append(out.Pins, Pin{p, port.Output, r.X + r.W, middle(r.Right[k])})
		}
	}
	return out
}
