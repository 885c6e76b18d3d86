package draw

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/weirworks/weir/draw/internal/layout"
)

// svgCurve is the radius of a wire's corners.
const svgCurve = 7

// point is a place on a wire: a column and a row.
type point struct{ x, y int }

// joints are the places where wires part or join.
type joints map[point]bool

func (j joints) sorted() []point {
	var out []point
	for p := range j {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b point) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) })
	return out
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
					found[p] = true
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

// drawWire draws a wire, and its arrowhead unless another has drawn it.
func (d *svg) drawWire(path []layout.Segment, e *edge, j joints, head bool) {
	class := "wire"
	if e.Closed {
		class = "wire closed"
	}
	last := path[len(path)-1]
	tip := last.X2
	if !e.toInside {
		tip -= svgDot + 1 // in front of the port's dot
	}
	d.put(`<path class="%s" d="%s"/>`, class, curve(corners(path, tip-5), j))
	if head {
		y := middle(last.Y2)
		d.put(`<path class="head" d="M%d %dl-8 -4.5v9z"/>`, tip, y)
	}
}

// corners are the points of a path where it turns, and its ends.
func corners(path []layout.Segment, end int) []point {
	points := []point{{path[0].X1, path[0].Y1}}
	for i, s := range path {
		at := point{s.X2, s.Y2}
		if i == len(path)-1 {
			at.x = end
		} else if next := path[i+1]; (next.Y1 == next.Y2) == (s.Y1 == s.Y2) {
			continue
		}
		points = append(points, at)
	}
	return points
}

// curve is the path through some points, with round corners where nothing joins.
func curve(points []point, j joints) string {
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", points[0].x, middle(points[0].y))
	for i := 1; i < len(points); i++ {
		at := points[i]
		x, y := at.x, middle(at.y)
		if i == len(points)-1 || j[at] {
			fmt.Fprintf(&b, "L%d %d", x, y)
			continue
		}
		before, after := points[i-1], points[i+1]
		r := min(svgCurve, length(before, at)/2, length(at, after)/2)
		dx, dy := toward(at, before, r)
		fmt.Fprintf(&b, "L%d %d", x+dx, y+dy)
		dx, dy = toward(at, after, r)
		fmt.Fprintf(&b, "Q%d %d %d %d", x, y, x+dx, y+dy)
	}
	return b.String()
}

func length(a, b point) int {
	dx, dy := b.x-a.x, middle(b.y)-middle(a.y)
	return max(dx, -dx) + max(dy, -dy)
}

// toward is the way of length r from a point to another one.
func toward(from, to point, r int) (dx, dy int) {
	return r * cmp.Compare(to.x, from.x), r * cmp.Compare(to.y, from.y)
}
