package layout

import "slices"

// arc is a wire between two items, or several: to must be right of from.
type arc struct{ from, to, weight int }

// mostSteps is how many items and arcs all steps look at, together: some 0.3 s. A thousand items are done long before it.
const mostSteps = 20_000_000

// shortest puts n items in layers, from 0 on, so that each arc leads to the right, and the sum of the lengths of all arcs,
// each times its weight, is as small as it can be: the network simplex of Gansner, Koutsofios, North and Vo, "A Technique for
// Drawing Directed Graphs". order lists the items so that arcs lead forward. Whatever is not connected stands as far to the
// left as it can.
func shortest(n int, arcs []arc, order []int) []int {
	s := &simplex{arcs: arcs, layer: make([]int, n), out: make([][]int, n), in: make([][]int, n), pull: make([]int, n)}
	for a, arc := range arcs {
		s.out[arc.from], s.in[arc.to] = append(s.out[arc.from], a), append(s.in[arc.to], a)
		s.pull[arc.from] += arc.weight
		s.pull[arc.to] -= arc.weight
	}
	for _, i := range order {
		s.layer[i] = s.leftmost(i)
	}
	s.span()
	// No step makes wires longer, so that it may end after any; those that change nothing could go on indefinitely.
	for left := mostSteps / (n + len(arcs)); left > 0 && s.step(); left-- {
	}
	lowest := slices.Min(s.layer) // steps move items to the left, too
	for i := range s.layer {
		s.layer[i] -= lowest
	}
	for _, i := range order { // what is pulled equally to both sides
		if s.pull[i] == 0 {
			s.layer[i] = s.leftmost(i)
		}
	}
	return s.layer
}

type simplex struct {
	arcs    []arc
	out, in [][]int // arcs of each item
	layer   []int
	pull    []int  // of each item: the weight of what leads out less that of what leads in
	inTree  []bool // of arcs
	up      []int  // the arc of the tree that leads to an item's parent; -1 for roots
	walk    []int  // all items, parents first
}

// leftmost is the first layer in which an item may stand.
func (s *simplex) leftmost(i int) (layer int) {
	for _, a := range s.in[i] {
		layer = max(layer, s.layer[s.arcs[a].from]+1)
	}
	return layer
}

func (s *simplex) slack(a int) int { return s.layer[s.arcs[a].to] - s.layer[s.arcs[a].from] - 1 }

// other is the end of an arc that is not i.
func (s *simplex) other(a, i int) int { return s.arcs[a].from + s.arcs[a].to - i }

// span makes a tree of arcs of length 1 for each connected part.
func (s *simplex) span() {
	s.inTree = make([]bool, len(s.arcs))
	seen := make([]bool, len(s.layer))
	for root := range s.layer {
		if seen[root] {
			continue
		}
		part := s.grow([]int{root}, seen)
		for {
			a, left := s.nearest(part, seen)
			if a < 0 {
				break
			}
			d := s.slack(a)
			if !left { // the part is where the arc begins
				d = -d
			}
			for _, i := range part {
				s.layer[i] -= d
			}
			s.inTree[a] = true
			next := s.arcs[a].from
			if seen[next] {
				next = s.arcs[a].to
			}
			part = append(part, s.grow([]int{next}, seen)...)
		}
	}
}

// grow adds to a part all that arcs of length 1 lead to.
func (s *simplex) grow(part []int, seen []bool) []int {
	seen[part[0]] = true
	for n := 0; n < len(part); n++ {
		for _, arcs := range [][]int{s.out[part[n]], s.in[part[n]]} {
			for _, a := range arcs {
				if to := s.other(a, part[n]); !seen[to] && s.slack(a) == 0 {
					seen[to], s.inTree[a] = true, true
					part = append(part, to)
				}
			}
		}
	}
	return part
}

// nearest is the shortest arc between a part and the rest; left tells whether it leads into the part. Without any it is -1.
func (s *simplex) nearest(part []int, seen []bool) (nearest int, left bool) {
	nearest = -1
	for _, i := range part {
		for side, arcs := range [][]int{s.out[i], s.in[i]} {
			for _, a := range arcs {
				if !seen[s.other(a, i)] && (nearest < 0 || s.slack(a) < s.slack(nearest)) {
					nearest, left = a, side == 1
				}
			}
		}
	}
	return nearest, left
}

// step replaces an arc of the tree that would better be longer; false: there is none.
func (s *simplex) step() bool {
	s.hang()
	sum := make([]int, len(s.layer)) // of the pulls below an item
	worst, below := 0, -1
	for n := len(s.walk) - 1; n >= 0; n-- {
		i := s.walk[n]
		sum[i] += s.pull[i]
		a := s.up[i]
		if a < 0 {
			continue
		}
		sum[s.other(a, i)] += sum[i]
		cut := sum[i] // what the sum of lengths grows by if the arc does
		if s.arcs[a].to == i {
			cut = -cut
		}
		if cut < worst {
			worst, below = cut, i
		}
	}
	if below < 0 {
		return false
	}
	s.exchange(below)
	return true
}

// hang finds the way up in the tree of each item.
func (s *simplex) hang() {
	s.up, s.walk = make([]int, len(s.layer)), s.walk[:0]
	seen := make([]bool, len(s.layer))
	for root := range s.layer {
		if seen[root] {
			continue
		}
		seen[root], s.up[root] = true, -1
		s.walk = append(s.walk, root)
		for n := len(s.walk) - 1; n < len(s.walk); n++ {
			i := s.walk[n]
			for _, arcs := range [][]int{s.out[i], s.in[i]} {
				for _, a := range arcs {
					if to := s.other(a, i); s.inTree[a] && !seen[to] {
						seen[to], s.up[to] = true, a
						s.walk = append(s.walk, to)
					}
				}
			}
		}
	}
}

// exchange moves an item and all below it so far that another arc becomes one of the tree in place of its way up.
func (s *simplex) exchange(below int) {
	inside := make([]bool, len(s.layer))
	for _, i := range s.walk {
		inside[i] = i == below || s.up[i] >= 0 && inside[s.other(s.up[i], i)]
	}
	leaving := s.up[below]
	begins := s.arcs[leaving].from == below // so that what is below moves to the left
	entering := -1
	for a, arc := range s.arcs {
		if inside[arc.from] != inside[arc.to] && inside[arc.to] == begins && (entering < 0 || s.slack(a) < s.slack(entering)) {
			entering = a
		}
	}
	if entering < 0 { // nothing holds it: it cannot be, as the arcs of an item that is pulled lead there
		return
	}
	d := s.slack(entering)
	if begins {
		d = -d
	}
	for i := range s.layer {
		if inside[i] {
			s.layer[i] += d
		}
	}
	s.inTree[leaving], s.inTree[entering] = false, true
}
