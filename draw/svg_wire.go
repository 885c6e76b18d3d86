package draw

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/weirworks/weir/draw/internal/layout"
)

// Sizes of what is drawn on wires, in pixels.
const (
	svgCurve = 7 // radius of a corner
	svgJoint = 2 // of a point where wires part or merge
	svgWay   = 8 // length and width of an arrow where they merge
)

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

// drawApproach draws an arrow in front of a point where wires merge.
func (d *svg) drawApproach(a *approach) {
	last := a.last()
	dx, dy := cmp.Compare(last.X2, last.X1), cmp.Compare(last.Y2, last.Y1)
	x, y := a.at.x-dx*svgJoint, middle(a.at.y)-dy*svgJoint
	bx, by := x-dx*svgWay, y-dy*svgWay // the middle of the arrow's back
	d.put(`<path class="way" d="M%d %dL%d %dL%d %dz"/>`, x, y, bx-dy*svgWay/2, by-dx*svgWay/2, bx+dy*svgWay/2, by+dx*svgWay/2)
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
		if i == len(points)-1 || j[at] > 0 {
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
