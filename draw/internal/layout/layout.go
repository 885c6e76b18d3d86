// Package layout places the boxes of a graph in layers from left to right and routes the
// wires between their pins: the method of Sugiyama, with pins at fixed places of a box,
// wires at right angles, and frames around groups of boxes.
//
// It measures in columns and rows, whatever these are: a box has a size, pins have a row.
// All it does follows from what it is given alone.
package layout

// Graph is what to lay out. Frames come before the nodes in them.
type Graph struct {
	Nodes []Node
	Edges []Edge
}

// Rank says where a node may stand.
type Rank int

// The ranks.
const (
	Anywhere Rank = iota
	First         // left of all that is anywhere
	Last          // right of all that is anywhere
)

// Node is a box, or a frame around other nodes.
type Node struct {
	Parent      int   // the frame around it, -1 if there is none
	W, H        int   // size of a box, least width of a frame
	Left, Right []int // of a box: the row of each pin, counted from its top
	Rank        Rank
	Frame       *Frame // nil for a box
}

// Frame is what a node has that holds others. Its ports are on its border and have an
// outer and an inner side.
type Frame struct {
	Ins, Outs []Port
}

// Port is a port of a frame.
type Port struct {
	Width int // columns that its name takes inside the frame
	Pins  int // wires that end at it each have a row of their own: outside for Ins, inside for Outs
}

// End is where an edge begins or ends: at a pin of a box, or at a port of a frame. At a
// frame, edges begin at a port and end at a pin; pins are counted through all ports.
type End struct {
	Node, Pin int
	Inside    bool // at the inner side of a frame
}

// Edge is a wire. Wires that begin at one end, or end at one end, are drawn as one where
// they can be.
type Edge struct {
	From, To End
	Label    int // columns to keep free in front of its end
	Feedback bool
}

// Metrics are the distances to keep.
type Metrics struct {
	NodeGap  int // rows between two boxes
	LineGap  int // rows between two lines; one more between a line and a box
	PinStep  int // rows between two pins of a frame's port
	Lead     int // columns in front of the first vertical line between two layers
	Track    int // columns from one vertical line to the next
	Trail    int // columns behind the last
	Channel  int // least columns between two layers
	Stretch  int // boxes of a layer become as wide as the widest, if that is at most so much wider
	Side     int // columns from a frame's edge to what is in it
	Head     int // rows from a frame's top to what is in it
	Foot     int // rows from what is in a frame to its bottom
	TrackGap int // rows between two vertical lines above each other
}

// Rect is where a node was placed.
type Rect struct {
	X, Y, W, H  int
	Left, Right []int // the row of each pin
}

// Segment is a straight part of a wire. Segments of one net belong together; segments of
// different nets meet only where they cross.
type Segment struct {
	X1, Y1, X2, Y2 int
	Net            int
}

// Result is a layout. Wires[i] leads along Edges[i] from its beginning, the column right
// of the box it leaves, to its end, the first column of the box it reaches.
type Result struct {
	W, H  int
	Nodes []Rect
	Wires [][]Segment
}

// Place lays a graph out.
func Place(g Graph, m Metrics) Result {
	b := newBuilder(g, m)
	for i := range g.Edges {
		b.addEdge(i)
	}
	r := Result{Nodes: make([]Rect, len(g.Nodes)), Wires: make([][]Segment, len(g.Edges))}
	// Frames come before their members, so what is inside is solved first.
	for i := len(b.levels) - 1; i >= 0; i-- {
		b.solve(b.levels[i])
	}
	root := b.levels[0]
	r.W, r.H = root.w, root.h
	for _, l := range b.levels {
		b.locate(l, &r)
	}
	for i, parts := range b.parts {
		for _, p := range parts {
			r.Wires[i] = join(r.Wires[i], p.level.wire(p.link))
		}
	}
	return r
}

// locate writes where the nodes of a level are. The level around it comes first.
func (b *builder) locate(l *level, r *Result) {
	if l.node >= 0 {
		f := r.Nodes[l.node]
		l.x, l.y = f.X+b.m.Side, f.Y+b.m.Head
	}
	for _, it := range l.items {
		if it.node < 0 {
			continue
		}
		rect := Rect{X: l.x + it.x, Y: l.y + it.y, W: it.w, H: it.h}
		rect.Left = shifted(it.left, rect.Y)
		rect.Right = shifted(it.right, rect.Y)
		r.Nodes[it.node] = rect
	}
}

func shifted(rows []int, by int) []int {
	out := make([]int, len(rows))
	for i, row := range rows {
		out[i] = row + by
	}
	return out
}

// join appends one path to another, with the line that leads from one to the other.
func join(path, next []Segment) []Segment {
	if len(path) > 0 && len(next) > 0 {
		last, first := path[len(path)-1], next[0]
		path = extend(path, last.X2, last.Y2, first.X1, last.Net)
	}
	for _, s := range next {
		if n := len(path); n > 0 && s.Y1 == s.Y2 && path[n-1].Y1 == path[n-1].Y2 && path[n-1].Net == s.Net {
			path[n-1].X2 = s.X2
			continue
		}
		path = append(path, s)
	}
	return path
}

// extend appends a horizontal line, if it has a length.
func extend(path []Segment, x, y, to, net int) []Segment {
	if x == to {
		return path
	}
	return append(path, Segment{x, y, to, y, net})
}
