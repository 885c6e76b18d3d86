package layout

import (
	"cmp"
	"slices"
)

// sweeps is how often the layers are ordered by their neighbours, to the right and back.
const sweeps = 12

// hop is the part of a link in the channel between two layers: from a pin on one side to
// a pin on the other, or, where a wire turns back, on the same side.
type hop struct {
	from, to end
	label    int
	net      *net
}

// channel is the number of the channel in which a pin is: that of layer n lies behind it.
func (e end) channel() int {
	if e.right {
		return e.item.layer
	}
	return e.item.layer - 1
}

// through tells whether a hop leads from one side of its channel to the other.
func (h *hop) through() bool { return h.from.right != h.to.right }

// far is the end that is not at the given item's side.
func (h *hop) far(it *item, right bool) (own, other end) {
	if h.from.item == it && h.from.right == right {
		return h.from, h.to
	}
	return h.to, h.from
}

// chain cuts links into hops, with a bend in each layer that they pass. Links with one
// beginning share bends. A link that leads back turns behind its beginning and in front
// of its end.
func (b *block) chain() {
	type bendKey struct {
		from  end
		back  bool
		layer int
	}
	bends := make(map[bendKey]*item)
	known := make(map[[2]end]*hop)
	for _, k := range b.links {
		at := k.from
		step := func(to end) {
			key := [2]end{at, to}
			if known[key] == nil {
				known[key] = &hop{from: at, to: to}
				b.hops = append(b.hops, known[key])
			}
			k.hops = append(k.hops, known[key])
		}
		through := func(layer int, back bool) {
			key := bendKey{k.from, back, layer}
			it := bends[key]
			if it == nil {
				it = &item{id: len(b.items), node: -1, kind: bend, h: 1, left: []int{0}, right: []int{0}, layer: layer}
				bends[key] = it
				b.items = append(b.items, it)
			}
			step(end{it, 0, back})
			at = end{it, 0, !back}
		}
		from, to := k.from.item.layer, k.to.item.layer
		if to > from {
			for l := from + 1; l < to; l++ {
				through(l, false)
			}
		} else {
			for l := from; l >= to; l-- {
				through(l, true)
			}
		}
		step(k.to)
		end := k.hops[len(k.hops)-1]
		end.label = max(end.label, k.label)
	}
	for i, it := range b.items {
		it.id = i
	}
	for _, h := range b.hops {
		h.from.item.ends = append(h.from.item.ends, h)
		h.to.item.ends = append(h.to.item.ends, h)
	}
}

// order arranges each layer so that few wires cross: items go to the mean height of the
// pins they are wired to, layer by layer to the right and back, and the best is kept.
func (b *block) order() {
	b.first()
	best, least := b.positions(), b.crossings()
	for n := 0; n < sweeps && least > 0; n++ {
		right := n%2 == 0
		for i := range b.layers {
			if right {
				b.sortLayer(i, false)
			} else {
				b.sortLayer(len(b.layers)-1-i, true)
			}
		}
		b.transpose()
		if c := b.crossings(); c < least {
			best, least = b.positions(), c
		}
	}
	for _, layer := range b.layers {
		slices.SortFunc(layer, func(x, y *item) int { return cmp.Compare(best[x.id], best[y.id]) })
	}
	b.number()
}

// first fills the layers in the order of a walk along the wires.
func (b *block) first() {
	seen := make([]bool, len(b.items))
	var visit func(it *item)
	visit = func(it *item) {
		if seen[it.id] {
			return
		}
		seen[it.id] = true
		b.layers[it.layer] = append(b.layers[it.layer], it)
		for _, h := range it.ends {
			if h.from.item == it {
				visit(h.to.item)
			} else {
				visit(h.from.item)
			}
		}
	}
	for _, it := range b.items {
		visit(it)
	}
	b.number()
}

func (b *block) number() {
	for _, layer := range b.layers {
		b.numberLayer(layer)
	}
}

func (b *block) numberLayer(layer []*item) {
	rows := 0
	for i, it := range layer {
		it.pos, it.ranks = i, rows
		rows += it.h + 1
	}
}

func (b *block) positions() []int {
	out := make([]int, len(b.items))
	for _, it := range b.items {
		out[it.id] = it.pos
	}
	return out
}

// height is where a pin is in its layer, from 0 to 1.
func (b *block) height(e end) float64 {
	layer := b.layers[e.item.layer]
	bottom := layer[len(layer)-1]
	return float64(e.item.ranks+e.offset()) / float64(bottom.ranks+bottom.h)
}

func (e end) offset() int {
	if e.right {
		return e.item.right[e.pin]
	}
	return e.item.left[e.pin]
}

// sortLayer sorts a layer by the pins that its items are wired to on one side.
func (b *block) sortLayer(n int, right bool) {
	layer := b.layers[n]
	mean := make(map[*item]float64, len(layer))
	for _, it := range layer {
		sum, count := 0.0, 0
		for _, h := range it.ends {
			own, other := h.far(it, right)
			if own.item == it && own.right == right {
				sum += b.height(other)
				count++
			}
		}
		if count == 0 {
			bottom := layer[len(layer)-1]
			sum, count = float64(it.ranks)/float64(bottom.ranks+bottom.h), 1
		}
		mean[it] = sum / float64(count)
	}
	slices.SortStableFunc(layer, func(x, y *item) int { return cmp.Compare(mean[x], mean[y]) })
	b.numberLayer(layer)
}

// transpose swaps neighbours as long as that saves crossings.
func (b *block) transpose() {
	for better, n := true, 0; better && n < 4; n++ {
		better = false
		for _, layer := range b.layers {
			for i := 0; i+1 < len(layer); i++ {
				x, y := layer[i], layer[i+1]
				if crossed(x, y) > crossed(y, x) {
					layer[i], layer[i+1] = y, x
					x.pos, y.pos = i+1, i
					better = true
				}
			}
			b.numberLayer(layer)
		}
	}
}

// crossed counts the crossings of wires of x with wires of y, if x stands above y.
func crossed(x, y *item) int {
	n := 0
	for _, hx := range x.ends {
		if !hx.through() {
			continue
		}
		ox, fx := hx.far(x, hx.from.item == x && hx.from.right)
		for _, hy := range y.ends {
			oy, fy := hy.far(y, hy.from.item == y && hy.from.right)
			if hy.through() && ox.right == oy.right && fx.key() > fy.key() {
				n++
			}
		}
	}
	return n
}

// key orders the pins on one side of a channel from top to bottom.
func (e end) key() int { return e.item.pos<<20 + e.pin }

// crossings counts, over all channels, how often wires cross.
func (b *block) crossings() int {
	channels := make([][]*hop, len(b.layers)+1)
	for _, h := range b.hops {
		c := h.from.channel() + 1
		channels[c] = append(channels[c], h)
	}
	n := 0
	for _, hops := range channels {
		n += crossingsOf(hops)
	}
	return n
}

func crossingsOf(hops []*hop) int {
	sides := map[bool][]int{}
	type pair struct{ left, right int }
	var pairs []pair
	for _, h := range hops {
		sides[h.from.right] = append(sides[h.from.right], h.from.key())
		sides[h.to.right] = append(sides[h.to.right], h.to.key())
		if h.from.right && !h.to.right {
			pairs = append(pairs, pair{h.from.key(), h.to.key()})
		} else if h.through() {
			pairs = append(pairs, pair{h.to.key(), h.from.key()})
		}
	}
	slices.Sort(sides[true])
	slices.Sort(sides[false])
	n := 0
	for _, h := range hops {
		if h.through() {
			continue
		}
		// A wire that turns back crosses what begins or ends between its two pins.
		keys := sides[h.from.right]
		lo, hi := min(h.from.key(), h.to.key()), max(h.from.key(), h.to.key())
		from, _ := slices.BinarySearch(keys, lo+1)
		to, _ := slices.BinarySearch(keys, hi)
		n += max(0, to-from)
	}
	slices.SortFunc(pairs, func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.left, y.left), cmp.Compare(x.right, y.right))
	})
	return n + inversions(len(pairs), sides[false], func(i int) int { return pairs[i].right })
}

// inversions counts the pairs of n values that are in the wrong order, with a tree of
// counters over the places of the values in keys, which is sorted.
func inversions(n int, keys []int, value func(i int) int) int {
	count := make([]int, len(keys)+1)
	total := 0
	for i := range n {
		at, _ := slices.BinarySearch(keys, value(i))
		notAbove := 0
		for j := at + 1; j > 0; j -= j & -j {
			notAbove += count[j]
		}
		total += i - notAbove
		for j := at + 1; j < len(count); j += j & -j {
			count[j]++
		}
	}
	return total
}
