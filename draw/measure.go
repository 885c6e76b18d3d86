package draw

import "github.com/weirworks/weir/draw/internal/layout"

// ruler measures for the layout, in the columns and rows of one kind of drawing.
type ruler interface {
	metrics() layout.Metrics
	box(n *node) box             // of a job
	terminal(n *node) (w, h int) // of an input or output
	frame(n *node) int           // least width
	// port is the columns that its name takes inside a frame: that of an Out port has an
	// arrow in front.
	port(p Port, out bool) int
	badge(text string) int // columns for it on a wire
}

// box is the size of a job, with the rows of its ports.
type box struct {
	w, h        int
	first, step int // row of the first port, rows from one to the next
}

// place lays a scene out.
func (s *scene) place(r ruler) layout.Result {
	g := layout.Graph{}
	for _, n := range s.nodes {
		m := layout.Node{Parent: n.parent}
		switch {
		case n.frame():
			m.W = r.frame(n)
			m.Frame = &layout.Frame{Ins: framePorts(r, n.In, n.wires, false), Outs: framePorts(r, n.Out, n.insideTo, true)}
		case n.Kind == Input || n.Kind == Output:
			m.W, m.H = r.terminal(n)
			m.Rank = layout.First
			if n.Kind == Output {
				m.Rank = layout.Last
			}
			middle := m.H / 2
			if n.Kind == Input {
				m.Right = []int{middle}
			}
			for i := range total(n.wires) {
				m.Left = append(m.Left, middle+i*r.metrics().PinStep)
			}
			m.H += max(0, total(n.wires)-1) * r.metrics().PinStep
		default:
			b := r.box(n)
			m.W, m.H = b.w, b.h
			for i := range total(n.wires) {
				m.Left = append(m.Left, b.first+i*b.step)
			}
			for i := range n.Out {
				m.Right = append(m.Right, b.first+i*b.step)
			}
		}
		g.Nodes = append(g.Nodes, m)
	}
	badges := s.badges()
	for _, e := range s.edges {
		le := layout.Edge{From: e.start(), To: e.finish(), Feedback: e.Feedback}
		if b := badges[e]; b != nil && b.text != "" {
			le.Label = r.badge(b.text)
		}
		g.Edges = append(g.Edges, le)
	}
	return layout.Place(g, r.metrics())
}

func framePorts(r ruler, ports []Port, wires []int, out bool) []layout.Port {
	var list []layout.Port
	for i, p := range ports {
		list = append(list, layout.Port{Width: r.port(p, out), Pins: wires[i]})
	}
	return list
}

func (e *edge) start() layout.End {
	return layout.End{Node: e.from.index, Pin: e.fromPort, Inside: e.fromInside}
}

func (e *edge) finish() layout.End {
	wires := e.to.wires
	if e.toInside {
		wires = e.to.insideTo
	}
	return layout.End{Node: e.to.index, Pin: firstPin(wires, e.toPort) + e.pin, Inside: e.toInside}
}
