package draw

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"

	"github.com/weirworks/weir/draw/internal/layout"
)

// point is a place on a wire: a column and a row.
type point struct{ x, y int }

// joints are the points where wires part or merge, with the number of the net that they are of.
type joints map[point]int

func (j joints) sorted() []point {
	return slices.SortedFunc(maps.Keys(j), func(a, b point) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) })
}

// jointsOf finds the points from which lines of one net lead in three directions or four.
func jointsOf(wires [][]layout.Segment) joints {
	nets := make(map[int][]layout.Segment)
	for _, path := range wires {
		for _, s := range path {
			nets[s.Net] = append(nets[s.Net], s)
		}
	}
	found := make(joints)
	for _, segments := range nets {
		for _, s := range segments {
			for _, p := range [2]point{{s.X1, s.Y1}, {s.X2, s.Y2}} {
				arms := 0
				for _, other := range segments {
					arms |= armsAt(other, p)
				}
				if bits.OnesCount(uint(arms)) > 2 {
					found[p] = s.Net
				}
			}
		}
	}
	return found
}

// armsAt tells in which directions a segment leads from a point.
func armsAt(s layout.Segment, p point) int {
	arms := 0
	if s.Y1 == s.Y2 && p.y == s.Y1 && min(s.X1, s.X2) <= p.x && p.x <= max(s.X1, s.X2) {
		if p.x > min(s.X1, s.X2) {
			arms |= armLeft
		}
		if p.x < max(s.X1, s.X2) {
			arms |= armRight
		}
	}
	if s.X1 == s.X2 && p.x == s.X1 && min(s.Y1, s.Y2) <= p.y && p.y <= max(s.Y1, s.Y2) {
		if p.y > min(s.Y1, s.Y2) {
			arms |= armUp
		}
		if p.y < max(s.Y1, s.Y2) {
			arms |= armDown
		}
	}
	return arms
}

// arrival is the side from which a segment reaches the points on it.
func arrival(s layout.Segment) int {
	switch {
	case s.X1 < s.X2:
		return armLeft
	case s.X1 > s.X2:
		return armRight
	case s.Y1 < s.Y2:
		return armUp
	}
	return armDown
}

// approach is one of the lines on which wires reach a point where they merge. An arrow on
// each tells which way the messages go.
type approach struct {
	at     point
	side   int              // of the point, from which the line comes
	path   []layout.Segment // of one of the wires, up to the segment that reaches the point
	closed bool             // nothing will pass any more, on any of the wires
}

// last is the segment that reaches the point.
func (a *approach) last() layout.Segment { return a.path[len(a.path)-1] }

// approaches finds the lines on which wires reach the points where they merge. Where wires
// only part there are none: all lines but one lead away, to an arrowhead each.
func (s *scene) approaches(wires [][]layout.Segment, j joints) []*approach {
	of := make(map[int][]point)
	for at, net := range j {
		of[net] = append(of[net], at)
	}
	reaching := make(map[point][]*approach)
	for i, path := range wires {
		for k, segment := range path {
			side := arrival(segment)
			for _, at := range of[segment.Net] {
				if armsAt(segment, at)&side != 0 {
					reaching[at] = addApproach(reaching[at], &approach{at, side, path[:k+1], s.edges[i].Closed})
				}
			}
		}
	}
	var found []*approach
	for _, at := range j.sorted() {
		if len(reaching[at]) > 1 {
			found = append(found, reaching[at]...)
		}
	}
	return found
}

// addApproach adds a line, unless another wire came on it already.
func addApproach(known []*approach, a *approach) []*approach {
	i := slices.IndexFunc(known, func(k *approach) bool { return k.side == a.side })
	if i < 0 {
		return append(known, a)
	}
	known[i].closed = known[i].closed && a.closed
	return known
}
