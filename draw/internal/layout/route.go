package layout

import "slices"

// net is all that is wired together in one channel.
type net struct {
	id          int
	hops        []*hop
	left, right []int // rows of its pins on either side of the channel
	trunks      []*trunk
	mid         int // the row between two trunks
}

// trunk is a vertical line of a net. A net that is not straight has one, or two where one
// would run into other nets on either side.
type trunk struct {
	net         *net
	left, right []int
	lo, hi      int
	track       int
	x           int
	cost        int // crossings with those that are to be placed, if this is the next one
	blockers    int // those of them that must be left of this
}

func newTrunk(n *net, left, right []int) *trunk {
	t := &trunk{net: n, left: left, right: right}
	all := append(slices.Clone(left), right...)
	t.lo, t.hi = slices.Min(all), slices.Max(all)
	return t
}

// shift moves what a net has in rows of its own.
func (n *net) shift(rows int) { n.mid += rows }

// route finds ways for the wires through all channels, and the columns of everything.
func (b *block) route() {
	channels := make([][]*hop, len(b.layers)+1)
	for _, h := range b.hops {
		c := h.from.channel() + 1
		channels[c] = append(channels[c], h)
	}
	x := 0
	for i, hops := range channels {
		nets := b.connected(hops)
		trunks := b.trunks(nets)
		if i > 0 {
			x += b.align(b.layers[i-1], x)
		}
		tracks, label := 0, 0
		for _, t := range trunks {
			t.x = x + b.m.Lead + t.track*b.m.Track
			tracks = max(tracks, t.track+1)
		}
		for _, h := range hops {
			label = max(label, h.label)
		}
		width := b.m.Lead + max(0, tracks-1)*b.m.Track + min(1, tracks) + label + b.m.Trail
		if i > 0 && i < len(b.layers) {
			x += max(width, b.m.Channel)
		} else if len(hops) > 0 {
			x += width
		}
	}
	b.w = x
}

// align gives the items of a layer that begins at column x their columns, and returns its
// width.
func (b *block) align(layer []*item, x int) int {
	width, box := 0, 0
	for _, it := range layer {
		width = max(width, it.w)
	}
	for _, it := range layer {
		if it.kind == anywhere && !it.framed {
			box = max(box, it.w)
		}
	}
	for _, it := range layer {
		it.x = x
		switch it.kind {
		case bend:
			it.w = width
		case first, exit:
			it.x = x + width - it.w
		case anywhere:
			if !it.framed && box-it.w <= b.m.Stretch {
				it.w = box
			}
			it.x = x + (width-it.w)/2
		default: // entry and last begin where the layer begins
		}
	}
	return width
}

// connected groups the hops of a channel into nets: those that share a pin.
func (b *block) connected(hops []*hop) []*net {
	of := make(map[end]*net)
	var nets []*net
	for _, h := range hops {
		x, y := of[h.from], of[h.to]
		n := x
		switch {
		case x == nil && y == nil:
			n = &net{}
			nets = append(nets, n)
		case x == nil:
			n = y
		case y != nil && x != y:
			for _, moved := range y.hops {
				of[moved.from], of[moved.to] = x, x
			}
			x.hops, y.hops = append(x.hops, y.hops...), nil
		}
		of[h.from], of[h.to] = n, n
		n.hops = append(n.hops, h)
	}
	nets = slices.DeleteFunc(nets, func(n *net) bool { return len(n.hops) == 0 })
	for _, n := range nets {
		*b.nets++
		n.id = *b.nets
		for _, h := range n.hops {
			h.net = n
			for _, e := range [2]end{h.from, h.to} {
				side := &n.right
				if e.right {
					side = &n.left
				}
				*side = append(*side, e.row())
			}
		}
		n.left, n.right = distinct(n.left), distinct(n.right)
	}
	b.netsOf = append(b.netsOf, nets...)
	return nets
}

func distinct(rows []int) []int {
	slices.Sort(rows)
	return slices.Compact(rows)
}

// trunks gives each net that is not straight a track for its vertical line.
func (b *block) trunks(nets []*net) []*trunk {
	var left line
	for _, n := range nets {
		if t := newTrunk(n, n.left, n.right); t.lo < t.hi {
			n.trunks = []*trunk{t}
			left.add(t)
		}
	}
	var placed []*trunk
	for len(left.trunks) > 0 {
		t := left.next()
		if t == nil {
			b.split(&left, nets)
			continue
		}
		left.remove(t)
		for _, p := range placed {
			if t.lo <= p.hi+b.m.TrackGap && p.lo <= t.hi+b.m.TrackGap {
				t.track = max(t.track, p.track+1)
			}
		}
		placed = append(placed, t)
	}
	return placed
}

// before tells whether x must be left of y: because a wire of x comes from the left in a
// row in which one of y goes on to the right.
func before(x, y *trunk) bool {
	if x.net == y.net {
		return slices.Contains(x.right, x.net.mid) && slices.Contains(y.left, x.net.mid)
	}
	return slices.ContainsFunc(x.left, func(row int) bool { return within(y.right, row, row) > 0 })
}

// line are the trunks that are still to be placed, from left to right.
type line struct{ trunks []*trunk }

func (l *line) add(t *trunk) {
	for _, other := range l.trunks {
		count(t, other, 1)
		count(other, t, 1)
	}
	l.trunks = append(l.trunks, t)
}

func (l *line) remove(t *trunk) {
	i := slices.Index(l.trunks, t)
	l.trunks = slices.Delete(l.trunks, i, i+1)
	for _, other := range l.trunks {
		count(other, t, -1)
	}
}

// count changes what is known of t by what another trunk does to it.
func count(t, other *trunk, by int) {
	t.cost += by * (meets(t, other) - meets(other, t))
	if before(other, t) {
		t.blockers += by
	}
}

// next returns the trunk to place next: one that none of the others must precede, and of
// those one that has few crossings with the others. It returns nil if there is none.
func (l *line) next() *trunk {
	var best *trunk
	for _, t := range l.trunks {
		if t.blockers == 0 && (best == nil || t.cost < best.cost) {
			best = t
		}
	}
	return best
}

// meets counts the crossings of two trunks' wires if x is left of y.
func meets(x, y *trunk) int {
	return within(y.left, x.lo, x.hi) + within(x.right, y.lo, y.hi)
}

// within counts the rows from lo to hi. Rows are sorted.
func within(rows []int, lo, hi int) int {
	from, _ := slices.BinarySearch(rows, lo)
	to, _ := slices.BinarySearch(rows, hi+1)
	return to - from
}

// split resolves a circle of trunks that must precede each other: the first net of which
// others must be left gets two trunks and a free row to go from one to the other.
func (b *block) split(l *line, nets []*net) {
	i := slices.IndexFunc(l.trunks, func(t *trunk) bool { return len(t.net.trunks) == 1 })
	t := l.trunks[i]
	n := t.net
	l.remove(t)
	n.mid = b.freeRow(t, nets)
	n.trunks = []*trunk{newTrunk(n, n.left, []int{n.mid}), newTrunk(n, []int{n.mid}, n.right)}
	l.add(n.trunks[0])
	l.add(n.trunks[1])
}

// freeRow finds a row without pins, near the middle of a trunk.
func (b *block) freeRow(t *trunk, nets []*net) int {
	used := make(map[int]bool)
	for _, n := range nets {
		for _, row := range append(slices.Clone(n.left), n.right...) {
			used[row] = true
		}
		if len(n.trunks) == 2 {
			used[n.mid] = true
		}
	}
	middle := (t.lo + t.hi) / 2
	for d := 0; ; d++ {
		for _, row := range [2]int{middle + d, middle - d} {
			if row >= 0 && !used[row] {
				b.h = max(b.h, row+1)
				return row
			}
		}
	}
}

// path is the way of a hop, moved to where its level is.
func (h *hop) path(dx, dy int) []Segment {
	p := pen{net: h.net.id, x: h.from.x() + dx, y: h.from.row() + dy}
	trunks := h.net.trunks
	if !h.from.right {
		trunks = slices.Clone(trunks)
		slices.Reverse(trunks)
	}
	if !h.through() && len(trunks) > 1 {
		trunks = trunks[:1]
	}
	for i, t := range trunks {
		to := h.to.row()
		if i+1 < len(trunks) {
			to = h.net.mid
		}
		if to+dy != p.y {
			p.across(t.x + dx)
			p.down(to + dy)
		}
	}
	p.across(h.to.x() + dx)
	return p.path
}

// pen draws a path.
type pen struct {
	net, x, y int
	path      []Segment
}

func (p *pen) across(x int) {
	if x != p.x {
		p.path = append(p.path, Segment{p.x, p.y, x, p.y, p.net})
		p.x = x
	}
}

func (p *pen) down(y int) {
	p.path = append(p.path, Segment{p.x, p.y, p.x, y, p.net})
	p.y = y
}
