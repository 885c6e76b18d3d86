package draw

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/weirworks/weir/draw/internal/layout"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/statemachine"
)

// Sizes in pixels. A row of the layout is half of a line of text.
const (
	svgRow    = 11
	svgMargin = 24
	svgTitle  = 34 // height of the title of the picture
	svgText   = 13 // font sizes
	svgSmall  = 11
	svgDot    = 4 // radius of a port
	svgBadge  = 17
	svgChip   = 16
	svgLabel  = 230 // longer texts are cut
	svgName   = 150
)

// SVG draws a picture that stands for itself: it needs no other file and no script, and
// follows the reader's choice of a light or dark scheme. It has no IDs, so several may be
// part of one page.
func SVG(w io.Writer, p Picture) error {
	s, err := stage(p)
	if err != nil {
		return err
	}
	d := &svg{scene: s}
	d.placed = s.place(d)
	d.draw()
	_, err = io.WriteString(w, d.out.String())
	return err
}

type svg struct {
	scene  *scene
	placed layout.Result
	out    strings.Builder
}

func (d *svg) metrics() layout.Metrics {
	return layout.Metrics{
		NodeGap: 3, LineGap: 1, PinStep: 2, TrackGap: 2,
		Lead: 20, Track: 14, Trail: 24, Channel: 56, Stretch: 80,
		Side: 20, Head: 4, Foot: 2,
	}
}

// put writes markup. Texts in it must have gone through escape.
func (d *svg) put(format string, args ...any) {
	fmt.Fprintf(&d.out, format, args...)
	d.out.WriteByte('\n')
}

// escape makes any text fit for XML.
func escape(s string) string {
	var b strings.Builder
	// A strings.Builder never fails.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}

// portName is what is written beside a port.
func (d *svg) portName(p Port) string { return fitText(p.name(), svgSmall, svgName) }

// chip is the text of a node's status.
func (d *svg) chip(n *node) string {
	if n.Status == "" {
		return ""
	}
	return fitText(term.Style{}.Status(n.Status), svgSmall, svgName)
}

// second is the width of the line with status and note.
func (d *svg) second(n *node) int {
	w := 0
	if chip := d.chip(n); chip != "" {
		w = textWidth(chip, svgSmall) + 16
	}
	if n.Note != "" {
		w += 6 + textWidth(fitText(n.Note, svgSmall, svgLabel), svgSmall)
	}
	return w
}

func (d *svg) box(n *node) box {
	rows := 3
	inner := textWidth(fitText(n.Label, svgText, svgLabel), svgText) * 107 / 100
	if n.Type != "" {
		inner = max(inner, textWidth(fitText(n.Type, svgSmall, svgLabel), svgSmall))
		rows += 2
	}
	if second := d.second(n); second > 0 {
		inner = max(inner, second)
		rows += 2
	}
	in, out := 0, 0
	for _, p := range n.In {
		in = max(in, textWidth(d.portName(p), svgSmall))
	}
	for _, p := range n.Out {
		out = max(out, textWidth(d.portName(p), svgSmall))
	}
	if in > 0 && out > 0 {
		in += 24
	}
	b := box{w: max(inner, in+out) + 28, first: rows + 1, step: 2}
	b.h = b.first
	if ports := max(total(n.wires), len(n.Out)); ports > 0 {
		b.h += 2 * ports
	}
	return b
}

func (d *svg) terminal(n *node) (w, h int) {
	return textWidth(fitText(n.Label, svgText, svgLabel), svgText) + 32, 3
}

func (d *svg) frame(n *node) int {
	w := textWidth(fitText(n.Label, svgText, svgLabel), svgText)*107/100 + d.second(n) + 60
	if n.Type != "" && n.Type != n.Label {
		w += textWidth(fitText(n.Type, svgSmall, svgLabel), svgSmall)
	}
	return w
}

// port leaves room for the dot; the frame's own edge is Side away.
func (d *svg) port(p Port, out bool) int {
	w := textWidth(d.portName(p), svgSmall)
	if out {
		return max(0, w-2)
	}
	return w + 2
}

func (d *svg) badge(text string) int { return d.badgeWidth(text) + 8 }

func (d *svg) badgeWidth(text string) int { return textWidth(text, svgSmall) + 14 }

func (d *svg) draw() {
	top, inner := svgMargin, d.placed.W
	if d.scene.title != "" {
		top += svgTitle
		inner = max(inner, textWidth(fitText(d.scene.title, 18, 600), 18)*107/100)
	}
	w, h := inner+2*svgMargin, d.placed.H*svgRow+top+svgMargin
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" class="weir" role="img" aria-label="%s" width="%d" height="%d" viewBox="0 0 %d %d">`,
		escape(cmp.Or(d.scene.title, "graph")), w, h, w, h)
	d.put(`<title>%s</title>`, escape(cmp.Or(d.scene.title, "graph")))
	d.put(`<desc>%s</desc>`, escape(d.scene.describe()))
	d.put("<style>%s</style>", svgStyle)
	d.put(`<rect class="page" width="%d" height="%d"/>`, w, h)
	if d.scene.title != "" {
		d.put(`<text class="title" x="%d" y="%d">%s</text>`, svgMargin, svgMargin+14, escape(fitText(d.scene.title, 18, 600)))
	}
	d.put(`<g transform="translate(%d %d)">`, svgMargin, top)
	d.drawAll()
	d.put("</g>\n</svg>")
}

// drawAll draws from back to front: frames, wires, boxes, and what is written on wires.
func (d *svg) drawAll() {
	for i, n := range d.scene.nodes {
		if n.frame() {
			d.drawFrame(n, d.placed.Nodes[i])
		}
	}
	joints := jointsOf(d.placed.Wires)
	badges := d.scene.badges()
	for i, e := range d.scene.edges {
		d.drawWire(d.placed.Wires[i], e, joints, badges[e] != nil)
	}
	for _, a := range d.scene.approaches(d.placed.Wires, joints) {
		d.drawApproach(a)
	}
	for _, j := range joints.sorted() {
		d.put(`<circle class="joint" cx="%d" cy="%d" r="2.5"/>`, j.x, middle(j.y))
	}
	for i, n := range d.scene.nodes {
		switch {
		case n.frame():
			d.drawPorts(n, d.placed.Nodes[i])
		case n.Kind == Input || n.Kind == Output:
			d.drawTerminal(n, d.placed.Nodes[i])
		default:
			d.drawBox(n, d.placed.Nodes[i])
		}
	}
	for i, e := range d.scene.edges {
		if b := badges[e]; b != nil && b.text != "" {
			d.drawBadge(d.placed.Wires[i], b)
		}
	}
}

// middle is where a row's line is.
func middle(row int) int { return row*svgRow + svgRow/2 }

func (d *svg) drawFrame(n *node, r layout.Rect) {
	d.put(`<rect class="frame" x="%d" y="%d" width="%d" height="%d" rx="14"/>`, r.X, r.Y*svgRow, r.W, r.H*svgRow)
	label := fitText(n.Label, svgText, svgLabel)
	x, y := r.X+16, r.Y*svgRow+22
	d.put(`<text class="label" x="%d" y="%d">%s</text>`, x, y, escape(label))
	x += textWidth(label, svgText)*107/100 + 8
	if n.Type != "" && n.Type != n.Label {
		kind := fitText(n.Type, svgSmall, svgLabel)
		d.put(`<text class="type" x="%d" y="%d">%s</text>`, x, y, escape(kind))
		x += textWidth(kind, svgSmall) + 10
	}
	d.drawSecond(n, x, y)
}

// drawSecond writes the status and the note of a node.
func (d *svg) drawSecond(n *node, x, baseline int) {
	if chip := d.chip(n); chip != "" {
		w := textWidth(chip, svgSmall) + 16
		d.put(`<g class="%s"><rect class="chip" x="%d" y="%d" width="%d" height="%d" rx="%d"/><text class="state" x="%d" y="%d">%s</text></g>`,
			tone(n.Status), x, baseline-12, w, svgChip, svgChip/2, x+8, baseline, escape(chip))
		x += w + 6
	}
	if n.Note != "" {
		d.put(`<text class="note" x="%d" y="%d">%s</text>`, x, baseline, escape(fitText(n.Note, svgSmall, svgLabel)))
	}
}

// tone is the class of a status: the colours are those of package term.
func tone(s statemachine.Status) string {
	switch s {
	case statemachine.Running:
		return "running"
	case statemachine.Completed:
		return "completed"
	case statemachine.Failed:
		return "failed"
	case statemachine.Suspended:
		return "suspended"
	case statemachine.Terminating, statemachine.Terminated:
		return "ended"
	default:
		return "waiting"
	}
}

func (d *svg) drawBox(n *node, r layout.Rect) {
	x, y, h := r.X, r.Y*svgRow, r.H*svgRow
	class := "card"
	if n.Status != "" {
		class += " edge-" + tone(n.Status)
	}
	d.put(`<g><title>%s</title>`, escape(n.words()))
	d.put(`<rect class="shadow" x="%d" y="%d" width="%d" height="%d" rx="10"/>`, x, y+2, r.W, h)
	if n.Kind == Group {
		d.put(`<rect class="card" x="%d" y="%d" width="%d" height="%d" rx="10"/>`, x+4, y+4, r.W, h)
	}
	d.put(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="10"/>`, class, x, y, r.W, h)
	y += 24
	d.put(`<text class="label" x="%d" y="%d">%s</text>`, x+14, y, escape(fitText(n.Label, svgText, svgLabel)))
	if n.Type != "" {
		y += 18
		d.put(`<text class="type" x="%d" y="%d">%s</text>`, x+14, y, escape(fitText(n.Type, svgSmall, svgLabel)))
	}
	if d.second(n) > 0 {
		d.drawSecond(n, x+14, y+20)
	}
	d.drawPorts(n, r)
	d.put("</g>")
}

func (d *svg) drawPorts(n *node, r layout.Rect) {
	pin := 0
	for i, p := range n.In {
		d.put(`<text class="%s" x="%d" y="%d">%s</text>`, portClass(p), r.X+14, middle(r.Left[pin])+4, escape(d.portName(p)))
		for range n.wires[i] {
			d.drawDot(p, r.X, r.Left[pin])
			pin++
		}
	}
	for i, p := range n.Out {
		d.put(`<text class="%s out" x="%d" y="%d">%s</text>`, portClass(p), r.X+r.W-14, middle(r.Right[i])+4, escape(d.portName(p)))
		d.drawDot(p, r.X+r.W, r.Right[i])
	}
}

func portClass(p Port) string {
	if p.Closed {
		return "port closed"
	}
	return "port"
}

func (d *svg) drawDot(p Port, x, row int) {
	class := "dot"
	if p.Closed {
		class = "dot closed"
	} else if p.Constant != "" {
		class = "dot constant"
	}
	d.put(`<circle class="%s" cx="%d" cy="%d" r="%d"/>`, class, x, middle(row), svgDot)
}

func (d *svg) drawTerminal(n *node, r layout.Rect) {
	d.put(`<g><title>%s</title>`, escape(n.words()))
	d.put(`<rect class="terminal" x="%d" y="%d" width="%d" height="%d" rx="13"/>`, r.X, r.Y*svgRow+2, r.W, r.H*svgRow-4)
	d.put(`<text class="end" x="%d" y="%d">%s</text>`, r.X+r.W/2, r.Y*svgRow+r.H*svgRow/2+4, escape(fitText(n.Label, svgText, svgLabel)))
	for _, row := range r.Left {
		d.drawDot(n.In[0], r.X, row)
	}
	for _, row := range r.Right {
		d.drawDot(n.Out[0], r.X+r.W, row)
	}
	d.put("</g>")
}

// drawBadge writes what waits in front of the end of a wire, with a bar that shows how
// much of the limit that is.
func (d *svg) drawBadge(path []layout.Segment, b *badge) {
	last := path[len(path)-1]
	w := d.badgeWidth(b.text)
	x, y := last.X2-svgDot-12-w, middle(last.Y2)-svgBadge/2
	class := [...]string{"unknown", "empty", "some", "half", "full"}[b.fill]
	d.put(`<g class="queue %s"><rect class="badge" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, class, x, y, w, svgBadge)
	text := y + 12
	if b.share >= 0 {
		text = y + 11
		d.put(`<rect class="track" x="%d" y="%d" width="%d" height="2" rx="1"/>`, x+5, y+svgBadge-3, w-10)
		if bar := int(b.share*float64(w-10) + 0.5); bar > 0 {
			d.put(`<rect class="bar" x="%d" y="%d" width="%d" height="2" rx="1"/>`, x+5, y+svgBadge-3, bar)
		}
	}
	d.put(`<text x="%d" y="%d">%s</text></g>`, x+w/2, text, escape(b.text))
}

// words is what there is to say about a node in one text.
func (n *node) words() string {
	var words []string
	for _, word := range []string{n.Label, n.Type, n.Status.String(), n.Note} {
		if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// describe says in words what the picture shows.
func (s *scene) describe() string {
	var b strings.Builder
	for _, n := range s.nodes {
		b.WriteString(n.words() + ". ")
	}
	for _, e := range s.edges {
		fmt.Fprintf(&b, "%s.%s to %s.%s", e.from.Label, cmp.Or(e.FromPort, e.from.Label), e.to.Label, cmp.Or(e.ToPort, e.to.Label))
		if q := e.queue(); q != "" {
			b.WriteString(" (" + q + ")")
		}
		b.WriteString(". ")
	}
	return strings.TrimSpace(b.String())
}
