package layout_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/draw/internal/layout"
)

// The metrics of a terminal, and some like those of SVG.
var (
	narrow = layout.Metrics{NodeGap: 1, PinStep: 1, Lead: 1, Track: 2, Trail: 1, Channel: 4, Stretch: 12, Side: 2, Head: 1, Foot: 1}
	roomy  = layout.Metrics{NodeGap: 3, LineGap: 1, PinStep: 2, TrackGap: 2, Lead: 20, Track: 14, Trail: 24, Channel: 56, Stretch: 80, Side: 20, Head: 5, Foot: 2}
)

// drawGraph makes a random graph of boxes in frames in frames. As package draw does, it
// lets those edges end at one pin that are the only ones of their beginnings.
func drawGraph(t *rapid.T, m layout.Metrics) layout.Graph {
	var g layout.Graph
	frames := []int{-1}
	inside := make(map[int]bool) // frames with members
	for i := range rapid.IntRange(0, 14).Draw(t, "nodes") {
		n := layout.Node{Parent: rapid.SampledFrom(frames).Draw(t, "parent")}
		inside[n.Parent] = true
		switch k := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case k < 2:
			n.Frame, n.W = &layout.Frame{}, 6
			for range rapid.IntRange(1, 3).Draw(t, "ports") {
				n.Frame.Ins = append(n.Frame.Ins, layout.Port{Width: 3})
				n.Frame.Outs = append(n.Frame.Outs, layout.Port{Width: 4})
			}
			frames = append(frames, i)
		case k == 2:
			n.Rank = layout.First
		case k == 3:
			n.Rank = layout.Last
		}
		if n.Frame == nil {
			n.W = rapid.IntRange(3, 20).Draw(t, "width")
		}
		g.Nodes = append(g.Nodes, n)
	}
	if len(g.Nodes) > 0 {
		for range rapid.IntRange(0, 30).Draw(t, "edges") {
			addEdge(t, &g)
		}
	}
	givePins(&g, m)
	return g
}

func contains(g *layout.Graph, frame, node int) bool {
	for node >= 0 {
		if node = g.Nodes[node].Parent; node == frame {
			return true
		}
	}
	return false
}

func addEdge(t *rapid.T, g *layout.Graph) {
	from, to := rapid.IntRange(0, len(g.Nodes)-1).Draw(t, "from"), rapid.IntRange(0, len(g.Nodes)-1).Draw(t, "to")
	e := layout.Edge{
		From:     layout.End{Node: from, Pin: rapid.IntRange(0, 2).Draw(t, "out")},
		To:       layout.End{Node: to, Pin: rapid.IntRange(0, 2).Draw(t, "in")},
		Label:    rapid.IntRange(0, 6).Draw(t, "label"),
		Feedback: rapid.Bool().Draw(t, "feedback"),
	}
	if from == to && g.Nodes[from].Frame != nil {
		e.From.Inside = rapid.Bool().Draw(t, "through")
		e.To.Inside = e.From.Inside
	} else {
		e.From.Inside = g.Nodes[from].Frame != nil && contains(g, from, to)
		e.To.Inside = g.Nodes[to].Frame != nil && contains(g, to, from)
	}
	if f := g.Nodes[from].Frame; f != nil {
		e.From.Pin %= len(f.Ins)
	}
	if f := g.Nodes[to].Frame; f != nil {
		e.To.Pin %= len(f.Ins)
	}
	g.Edges = append(g.Edges, e)
}

// givePins counts the pins of each port, and makes boxes high enough for theirs.
func givePins(g *layout.Graph, m layout.Metrics) {
	fed := make(map[layout.End]int)
	for _, e := range g.Edges {
		fed[e.From]++
	}
	pins := make(map[layout.End]int)   // by port
	joined := make(map[layout.End]int) // pin of those that join, plus one
	for i := range g.Edges {
		e := &g.Edges[i]
		port := e.To
		switch alone := fed[e.From] == 1; {
		case alone && joined[port] > 0:
			e.To.Pin = joined[port] - 1
		case alone:
			e.To.Pin = pins[port]
			pins[port]++
			joined[port] = pins[port]
		default:
			e.To.Pin = pins[port]
			pins[port]++
		}
		e.To.Pin = e.To.Pin*3 + port.Pin // made right below
	}
	first := func(node, port int, inside bool) int {
		n := 0
		for p := range port {
			n += max(1, pins[layout.End{Node: node, Pin: p, Inside: inside}])
		}
		return n
	}
	for i := range g.Edges {
		to := &g.Edges[i].To
		to.Pin = first(to.Node, to.Pin%3, to.Inside) + to.Pin/3
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Frame != nil {
			for p := range n.Frame.Ins {
				n.Frame.Ins[p].Pins = pins[layout.End{Node: i, Pin: p}]
				n.Frame.Outs[p].Pins = pins[layout.End{Node: i, Pin: p, Inside: true}]
			}
			continue
		}
		for p := range first(i, 3, false) {
			n.Left = append(n.Left, 2+p*m.PinStep)
		}
		n.Right = []int{2, 2 + m.PinStep, 2 + 2*m.PinStep}
		n.H = 2 + m.PinStep*len(n.Left) + 1
	}
}

// touch is an edge in a cell, with the directions in which it goes on.
type touch struct {
	edge       int
	horizontal bool
	vertical   bool
}

func check(t *rapid.T, g layout.Graph, r layout.Result) {
	for i, a := range r.Nodes {
		if a.X < 0 || a.Y < 0 || a.X+a.W > r.W || a.Y+a.H > r.H {
			t.Fatalf("node %d is at %+v, outside of %d×%d", i, a, r.W, r.H)
		}
		for j, b := range r.Nodes[:i] {
			overlap := a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
			within := a.X > b.X && a.Y > b.Y && a.X+a.W < b.X+b.W && a.Y+a.H < b.Y+b.H
			switch {
			case contains(&g, j, i) && !within:
				t.Fatalf("node %d at %+v is not within its frame %d at %+v", i, a, j, b)
			case !contains(&g, j, i) && overlap:
				t.Fatalf("node %d at %+v overlaps %d at %+v", i, a, j, b)
			}
		}
	}
	cells := make(map[[2]int][]touch)
	for i, path := range r.Wires {
		checkPath(t, g, r, i, path)
		for cell, at := range trace(i, path) {
			cells[cell] = append(cells[cell], at)
		}
	}
	for cell, all := range cells {
		for i, a := range all {
			for _, b := range all[:i] {
				x, y := g.Edges[a.edge], g.Edges[b.edge]
				crossing := a.horizontal != a.vertical && b.horizontal != b.vertical && a.horizontal != b.horizontal
				if x.From != y.From && x.To != y.To && !crossing {
					t.Fatalf("edges %d and %d share cell %v", a.edge, b.edge, cell)
				}
			}
		}
	}
}

// trace lists the cells of a path.
func trace(edge int, path []layout.Segment) map[[2]int]touch {
	cells := make(map[[2]int]touch)
	for _, s := range path {
		for x := min(s.X1, s.X2); x <= max(s.X1, s.X2); x++ {
			for y := min(s.Y1, s.Y2); y <= max(s.Y1, s.Y2); y++ {
				at := cells[[2]int{x, y}]
				at.edge = edge
				at.horizontal = at.horizontal || s.Y1 == s.Y2
				at.vertical = at.vertical || s.X1 == s.X2
				cells[[2]int{x, y}] = at
			}
		}
	}
	return cells
}

func checkPath(t *rapid.T, g layout.Graph, r layout.Result, i int, path []layout.Segment) {
	e := g.Edges[i]
	if len(path) == 0 {
		t.Fatalf("edge %d has no wire", i)
	}
	first, last := path[0], path[len(path)-1]
	from, to := r.Nodes[e.From.Node], r.Nodes[e.To.Node]
	if !e.From.Inside && (first.X1 != from.X+from.W || first.Y1 != from.Right[e.From.Pin]) {
		t.Fatalf("edge %d begins at %+v, not at its pin of %+v", i, first, from)
	}
	if !e.To.Inside && (last.X2 != to.X || last.Y2 != to.Left[e.To.Pin]) {
		t.Fatalf("edge %d ends at %+v, not at its pin of %+v", i, last, to)
	}
	checkInside(t, g, r, i, first, last)
	for n, s := range path {
		if min(s.X1, s.X2, s.Y1, s.Y2) < 0 || max(s.X1, s.X2) >= r.W || max(s.Y1, s.Y2) >= r.H {
			t.Fatalf("edge %d: segment %+v is outside of %d×%d", i, s, r.W, r.H)
		}
		if (s.X1 == s.X2) == (s.Y1 == s.Y2) {
			t.Fatalf("edge %d: segment %+v is not straight", i, s)
		}
		if n > 0 && (path[n-1].X2 != s.X1 || path[n-1].Y2 != s.Y1) {
			t.Fatalf("edge %d: %+v does not go on from %+v", i, s, path[n-1])
		}
	}
	end := [2]int{last.X2, last.Y2}
	for j, n := range r.Nodes {
		// A wire may be in a frame only if it begins or ends there.
		if g.Nodes[j].Frame != nil && (contains(&g, j, e.From.Node) || contains(&g, j, e.To.Node) || e.From == (layout.End{Node: j, Pin: e.From.Pin, Inside: true}) || e.To == (layout.End{Node: j, Pin: e.To.Pin, Inside: true})) {
			continue
		}
		for cell := range trace(i, path) {
			if cell != end && cell[0] >= n.X && cell[0] < n.X+n.W && cell[1] >= n.Y && cell[1] < n.Y+n.H {
				t.Fatalf("edge %d goes through node %d, %+v, at %v", i, j, n, cell)
			}
		}
	}
}

// checkInside checks ends at the inner side of a frame: beside the name of their port, in
// the row where the port is on the frame.
func checkInside(t *rapid.T, g layout.Graph, r layout.Result, i int, first, last layout.Segment) {
	e := g.Edges[i]
	side := narrow.Side
	if e.From.Inside {
		f, pin := g.Nodes[e.From.Node].Frame, 0
		for _, p := range f.Ins[:e.From.Pin] {
			pin += max(1, p.Pins)
		}
		at := r.Nodes[e.From.Node]
		if x := first.X1 - at.X - f.Ins[e.From.Pin].Width; x != side && x != roomy.Side || first.Y1 != at.Left[pin] {
			t.Fatalf("edge %d begins at %+v, not at its port of %+v", i, first, at)
		}
	}
	if e.To.Inside {
		f, pin, port := g.Nodes[e.To.Node].Frame, e.To.Pin, 0
		for pin >= max(1, f.Outs[port].Pins) {
			pin -= max(1, f.Outs[port].Pins)
			port++
		}
		at := r.Nodes[e.To.Node]
		if x := at.X + at.W - f.Outs[port].Width - last.X2; x != side && x != roomy.Side || pin == 0 && last.Y2 != at.Right[port] {
			t.Fatalf("edge %d ends at %+v, not at its port of %+v", i, last, at)
		}
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]layout.Metrics{"narrow": narrow, "roomy": roomy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				g := drawGraph(t, m)
				r := layout.Place(g, m)
				check(t, g, r)
				if again := layout.Place(g, m); !reflect.DeepEqual(r, again) {
					t.Fatal("placed again, it looks different")
				}
			})
		})
	}
}

// Wires between two pairs of ports in opposite order are the hardest for tracks.
func TestSwap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const pins = 8
		rows := make([]int, pins)
		for i := range rows {
			rows[i] = i + 1
		}
		g := layout.Graph{Nodes: []layout.Node{
			{Parent: -1, W: 5, H: pins + 2, Right: rows, Left: rows},
			{Parent: -1, W: 5, H: pins + 2, Right: rows, Left: rows},
		}}
		for from, to := range rapid.Permutation(rows).Draw(t, "order") {
			g.Edges = append(g.Edges, layout.Edge{From: layout.End{Node: 0, Pin: from}, To: layout.End{Node: 1, Pin: to - 1}})
		}
		check(t, g, layout.Place(g, narrow))
	})
}

func BenchmarkPlace(b *testing.B) {
	for _, size := range []int{30, 300} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			g := bigGraph(size)
			for b.Loop() {
				layout.Place(g, narrow)
			}
		})
	}
}

// bigGraph has two edges for each node, most to near nodes, one in twenty back.
func bigGraph(nodes int) layout.Graph {
	random := rand.New(rand.NewPCG(1, 2))
	var g layout.Graph
	for range nodes {
		g.Nodes = append(g.Nodes, layout.Node{Parent: -1, W: 10, H: 6, Left: []int{2, 3, 4}, Right: []int{2, 3, 4}})
	}
	for i := range 2 * nodes {
		from := i / 2
		to := min(nodes-1, from+1+random.IntN(20))
		if i%20 == 0 {
			to = max(0, from-random.IntN(20))
		}
		g.Edges = append(g.Edges, layout.Edge{
			From: layout.End{Node: from, Pin: random.IntN(3)}, To: layout.End{Node: to, Pin: random.IntN(3)}, Label: 4,
		})
	}
	return g
}
