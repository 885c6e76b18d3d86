package layout

import (
	"math"
	"slices"
)

// rounds is how often the rows of all layers are improved.
const rounds = 8

// wish is a row on which an item would have a wire straight, and how much that counts.
type wish struct{ row, weight int }

// run is a number of items of one layer below each other, with nothing to spare between.
type run struct {
	first, last int
	wishes      []wish // for the row of the first item, sorted
	top         int
}

// rows finds rows for all items so that as many wires as possible are straight: each item
// goes to the median of the rows that its wires ask for, as far as its neighbours in the
// layer let it.
func (b *block) rows() {
	for _, layer := range b.layers {
		y := 0
		for i, it := range layer {
			if i > 0 {
				y += b.gap(layer[i-1], it)
			}
			it.y = y
			y += it.h
		}
	}
	best, least := b.saved(), math.MaxInt
	for n := range rounds {
		for i := range b.layers {
			b.settle(b.layers[i], n%4 >= 2, true)
		}
		for i := len(b.layers) - 1; i >= 0; i-- {
			b.settle(b.layers[i], true, n%4 >= 2)
		}
		if c := b.bent(); c < least {
			best, least = b.saved(), c
		}
	}
	top := math.MaxInt
	for i, it := range b.items {
		it.y = best[i]
		top = min(top, it.y)
	}
	for _, it := range b.items {
		it.y -= top
		b.h = max(b.h, it.y+it.h)
	}
}

func (b *block) saved() []int {
	out := make([]int, len(b.items))
	for i, it := range b.items {
		out[i] = it.y
	}
	return out
}

// bent is how far wires go up and down in all, weighted like wishes.
func (b *block) bent() int {
	n := 0
	for _, h := range b.hops {
		d := h.from.row() - h.to.row()
		n += max(d, -d) * h.weight()
	}
	return n
}

// weight is larger for long wires: where they pass layers they had better be straight.
func (h *hop) weight() int {
	switch {
	case !h.through():
		return 1
	case h.from.item.kind == bend && h.to.item.kind == bend:
		return 16
	case h.from.item.kind == bend || h.to.item.kind == bend:
		return 4
	}
	return 6
}

// gap is the number of rows between two neighbours of a layer.
func (b *block) gap(above, below *item) int {
	x, y := above.line(), below.line()
	switch {
	case x && y:
		return b.m.LineGap
	case x || y:
		return b.m.LineGap + 1
	}
	return b.m.NodeGap
}

func (it *item) line() bool { return it.node < 0 }

// settle moves the items of a layer to where the wires on the given sides want them, as
// near as their order allows: neighbours that would overlap become one run (pool of
// adjacent violators).
func (b *block) settle(layer []*item, right, left bool) {
	var runs []run
	offset := make([]int, len(layer)) // rows from the first item of all to this, if nothing is spare
	for i, it := range layer {
		if i > 0 {
			offset[i] = offset[i-1] + layer[i-1].h + b.gap(layer[i-1], it)
		}
		r := run{first: i, last: i, wishes: it.wishes(right, left, -offset[i])}
		r.top = median(r.wishes)
		for len(runs) > 0 && runs[len(runs)-1].top > r.top {
			above := runs[len(runs)-1]
			runs = runs[:len(runs)-1]
			r = run{first: above.first, last: r.last, wishes: merge(above.wishes, r.wishes)}
			r.top = median(r.wishes)
		}
		runs = append(runs, r)
	}
	for _, r := range runs {
		for i := r.first; i <= r.last; i++ {
			layer[i].y = r.top + offset[i]
		}
	}
}

// wishes are the rows that an item's wires want, shifted.
func (it *item) wishes(right, left bool, shift int) []wish {
	var out []wish
	for _, h := range it.ends {
		for _, pair := range [2][2]end{{h.from, h.to}, {h.to, h.from}} {
			own, other := pair[0], pair[1]
			if own.item == it && other.item != it && (own.right && right || !own.right && left) {
				out = append(out, wish{other.row() - own.offset() + shift, h.weight()})
			}
		}
	}
	if len(out) == 0 {
		return []wish{{it.y + shift, 1}}
	}
	slices.SortFunc(out, func(x, y wish) int { return x.row - y.row })
	return out
}

func merge(x, y []wish) []wish {
	out := make([]wish, 0, len(x)+len(y))
	for len(x) > 0 && len(y) > 0 {
		if x[0].row <= y[0].row {
			out, x = append(out, x[0]), x[1:]
		} else {
			out, y = append(out, y[0]), y[1:]
		}
	}
	return append(append(out, x...), y...)
}

// median is the middle of the wishes by weight. Of several rows that are equally good it
// takes the one in their middle. There is at least one wish, and each has a weight.
func median(wishes []wish) int {
	all := 0
	for _, w := range wishes {
		all += w.weight
	}
	i, seen := 0, wishes[0].weight
	for 2*seen < all {
		i++
		seen += wishes[i].weight
	}
	if 2*seen > all {
		return wishes[i].row
	}
	return int(math.Floor(float64(wishes[i].row+wishes[i+1].row) / 2))
}
