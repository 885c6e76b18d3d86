package layout

// item is what stands in a layer: a node, a port of the frame around the level, the place
// where a wire goes through that frame, or a place where a long wire goes through a layer.
type item struct {
	id          int // in its level, or in its block for a place in a layer
	node        int // -1 if it is none
	kind        kind
	framed      bool
	w, h        int
	left, right []int
	layer, pos  int
	x, y        int
	ends        []*hop // the hops that begin or end here
	ranks       int    // rows of the layer above it, while layers are ordered
}

// kind says in which layers an item may be; the order is from left to right.
type kind int

const (
	entry kind = iota // on the left edge of the frame
	first
	anywhere
	last
	exit // on the right edge of the frame
	bend // a long wire in a layer
)

// end is a pin of an item.
type end struct {
	item  *item
	pin   int
	right bool
}

func (e end) row() int {
	if e.right {
		return e.item.y + e.item.right[e.pin]
	}
	return e.item.y + e.item.left[e.pin]
}

// x is the column where a wire begins or ends at the pin.
func (e end) x() int {
	if e.right {
		return e.item.x + e.item.w
	}
	return e.item.x
}

// link is the part of one or more edges in one level.
type link struct {
	from, to end
	label    int
	feedback bool
	hops     []*hop
}

// level is what is directly in one frame, or in none.
type level struct {
	node    int // the frame, -1 for the outermost level
	items   []*item
	links   []*link
	byEnds  map[[2]end]*link
	members map[int]*item // by node
	ins     []*item       // inner sides of the frame's In ports
	outs    []*item       // inner sides of the frame's Out ports
	entries through       // wires that come in without a port
	exits   through
	minW    int
	x, y    int
	w, h    int
}

// through are the places where wires cross a frame, one for each beginning of wires.
type through struct {
	items []*item
	index map[End]int
}

func (t *through) at(l *level, from End, k kind) int {
	if i, ok := t.index[from]; ok {
		return i
	}
	if t.index == nil {
		t.index = make(map[End]int)
	}
	t.index[from] = len(t.items)
	t.items = append(t.items, l.add(&item{node: -1, kind: k, h: 1, left: []int{0}, right: []int{0}}))
	return len(t.items) - 1
}

func (l *level) add(it *item) *item {
	it.id = len(l.items)
	l.items = append(l.items, it)
	return it
}

func (l *level) connect(from, to end) *link {
	key := [2]end{from, to}
	if k, ok := l.byEnds[key]; ok {
		return k
	}
	k := &link{from: from, to: to}
	l.byEnds[key] = k
	l.links = append(l.links, k)
	return k
}

// wire is the path along a link in the coordinates of the whole.
func (l *level) wire(k *link) []Segment {
	var path []Segment
	for _, h := range k.hops {
		path = join(path, h.path(l.x, l.y))
	}
	return path
}

// part is the piece of an edge in one level.
type part struct {
	level *level
	link  *link
}

type builder struct {
	g      Graph
	m      Metrics
	levels []*level       // the outermost first, then in the order of their frames
	inner  map[int]*level // by frame, -1 for the outermost
	parts  [][]part       // by edge
	nets   int
}

func newBuilder(g Graph, m Metrics) *builder {
	b := &builder{g: g, m: m, inner: make(map[int]*level), parts: make([][]part, len(g.Edges))}
	b.addLevel(-1, 0, &Frame{})
	for i, n := range g.Nodes {
		it := &item{node: i, w: n.W, h: n.H, left: n.Left, right: n.Right, framed: n.Frame != nil}
		it.kind = [...]kind{anywhere, first, last}[n.Rank]
		l := b.inner[n.Parent]
		l.members[i] = l.add(it)
		if n.Frame != nil {
			b.addLevel(i, n.W, n.Frame)
		}
	}
	return b
}

func (b *builder) addLevel(node, minW int, f *Frame) {
	l := &level{node: node, members: make(map[int]*item), byEnds: make(map[[2]end]*link), minW: minW}
	for _, p := range f.Ins {
		it := &item{node: -1, kind: entry, w: p.Width, left: b.rows(p.Pins), right: []int{0}}
		it.h = it.left[len(it.left)-1] + 1
		l.ins = append(l.ins, l.add(it))
	}
	for _, p := range f.Outs {
		it := &item{node: -1, kind: exit, w: p.Width, left: b.rows(p.Pins), right: []int{0}}
		it.h = it.left[len(it.left)-1] + 1
		l.outs = append(l.outs, l.add(it))
	}
	b.inner[node] = l
	b.levels = append(b.levels, l)
}

func (b *builder) rows(pins int) []int {
	rows := make([]int, max(1, pins))
	for i := range rows {
		rows[i] = i * b.m.PinStep
	}
	return rows
}

// home is the level in which an end is.
func (b *builder) home(e End) *level {
	if e.Inside {
		return b.inner[e.Node]
	}
	return b.inner[b.g.Nodes[e.Node].Parent]
}

// way lists the levels from the outermost to l.
func (b *builder) way(l *level) []*level {
	if l.node < 0 {
		return []*level{l}
	}
	return append(b.way(b.inner[b.g.Nodes[l.node].Parent]), l)
}

// addEdge cuts an edge into links, one for each level that it is in: out of the frames
// around its beginning, then into those around its end.
func (b *builder) addEdge(i int) {
	e := b.g.Edges[i]
	up, down := b.way(b.home(e.From)), b.way(b.home(e.To))
	shared := 0
	for shared < min(len(up), len(down)) && up[shared] == down[shared] {
		shared++
	}
	at := b.start(e.From)
	for n := len(up) - 1; n >= shared; n-- {
		l := up[n]
		place := l.exits.at(l, e.From, exit)
		b.addPart(i, l, at, end{item: l.exits.items[place]})
		at = end{up[n-1].members[l.node], len(l.outs) + place, true}
	}
	for n := shared; n < len(down); n++ {
		l := down[n]
		place := l.entries.at(l, e.From, entry)
		b.addPart(i, down[n-1], at, end{item: down[n-1].members[l.node], pin: pinsOf(l.ins) + place})
		at = end{item: l.entries.items[place], right: true}
	}
	k := b.addPart(i, down[len(down)-1], at, b.finish(e.To))
	k.label = max(k.label, e.Label)
}

func (b *builder) addPart(edge int, l *level, from, to end) *link {
	k := l.connect(from, to)
	k.feedback = k.feedback || b.g.Edges[edge].Feedback
	b.parts[edge] = append(b.parts[edge], part{l, k})
	return k
}

func (b *builder) start(e End) end {
	if e.Inside {
		return end{b.inner[e.Node].ins[e.Pin], 0, true}
	}
	return end{b.home(e).members[e.Node], e.Pin, true}
}

func (b *builder) finish(e End) end {
	if !e.Inside {
		return end{item: b.home(e).members[e.Node], pin: e.Pin}
	}
	for _, port := range b.inner[e.Node].outs {
		if e.Pin < len(port.left) {
			return end{item: port, pin: e.Pin}
		}
		e.Pin -= len(port.left)
	}
	return end{}
}

func pinsOf(ports []*item) int {
	n := 0
	for _, p := range ports {
		n += len(p.left)
	}
	return n
}

// frame gives the item of a frame its size and the rows of its pins, once what is inside
// is placed.
func (b *builder) frame(it *item) {
	l := b.inner[it.node]
	it.w, it.h = l.w+2*b.m.Side, b.m.Head+l.h+b.m.Foot
	it.left, it.right = nil, nil
	for _, p := range append(append([]*item{}, l.ins...), l.entries.items...) {
		it.left = append(it.left, shifted(p.left, p.y+b.m.Head)...)
	}
	for _, p := range append(append([]*item{}, l.outs...), l.exits.items...) {
		it.right = append(it.right, p.y+b.m.Head)
	}
}

// solve places what is in a level: parts that are not connected below each other.
func (b *builder) solve(l *level) {
	for _, it := range l.items {
		if it.node >= 0 && b.g.Nodes[it.node].Frame != nil {
			b.frame(it)
		}
	}
	l.w = max(0, l.minW-2*b.m.Side)
	for _, k := range l.blocks(b.m, &b.nets) {
		k.place()
		if l.h > 0 && k.h > 0 {
			l.h += b.m.NodeGap
		}
		for _, it := range k.items {
			it.y += l.h
		}
		for _, n := range k.netsOf {
			n.shift(l.h)
		}
		l.h += k.h
		l.w = max(l.w, k.w)
	}
	for _, it := range l.items {
		if it.kind == exit {
			it.x = l.w - it.w
		}
	}
}

// blocks are the connected parts of a level. What is connected to nothing is spread over
// the columns of one more.
func (l *level) blocks(m Metrics, nets *int) []*block {
	root := make([]int, len(l.items))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for _, k := range l.links {
		a, b := find(k.from.item.id), find(k.to.item.id)
		root[max(a, b)] = min(a, b)
	}
	size := make([]int, len(l.items))
	for i := range l.items {
		size[find(i)]++
	}
	var all []*block
	of := make(map[int]*block)
	for i, it := range l.items {
		r := find(i)
		if size[r] == 1 && !l.loops(it) {
			r = -1
		}
		if of[r] == nil {
			of[r] = &block{m: m, nets: nets, loose: r == -1}
			all = append(all, of[r])
		}
		of[r].items = append(of[r].items, it)
	}
	for _, k := range l.links {
		of[find(k.from.item.id)].links = append(of[find(k.from.item.id)].links, k)
	}
	return looseLast(all)
}

// loops tells whether a wire leads from an item to itself.
func (l *level) loops(it *item) bool {
	for _, k := range l.links {
		if k.from.item == it {
			return true
		}
	}
	return false
}

func looseLast(all []*block) []*block {
	var out, loose []*block
	for _, k := range all {
		if k.loose {
			loose = append(loose, k)
		} else {
			out = append(out, k)
		}
	}
	return append(out, loose...)
}
