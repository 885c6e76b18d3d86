package draw

import (
	"cmp"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/weirworks/weir/draw/internal/layout"
	"github.com/weirworks/weir/internal/term"
)

// TerminalOptions say how to draw on a terminal. The zero value draws as wide as it gets,
// without colours.
type TerminalOptions struct {
	// Width is the number of columns there are. A picture that needs more is written as a
	// list of its nodes, in words. Zero means that any width will do.
	Width int
	// Color allows colours and other attributes.
	Color bool
	// ASCII draws with ASCII characters only, and writes others as \u escapes.
	ASCII bool
}

// Columns at which texts are cut.
const (
	maxText = 36
	maxPort = 24
)

// Terminal draws a picture with box-drawing characters.
func Terminal(w io.Writer, p Picture, o TerminalOptions) error {
	d, err := newTerminal(p, o)
	if err != nil {
		return err
	}
	text := ""
	switch {
	case len(d.scene.nodes) == 0:
		text = d.style.Faint(d.fit("(no jobs)")) + "\n"
	case o.Width > 0 && d.placed.W > o.Width:
		text = d.list()
	default:
		text = d.draw()
	}
	if d.scene.title != "" {
		text = d.style.Bold(d.fit(d.clean(d.scene.title))) + "\n" + text
	}
	_, err = io.WriteString(w, text)
	return err
}

// Sheet is a picture that was drawn for a terminal.
type Sheet struct {
	Lines []string        // not all of the same width
	Boxes map[string]Rect // where the nodes are, by their IDs, in columns and lines
}

// TerminalSheet draws a picture as Terminal does, without its title and however wide it gets, and tells where its boxes
// are: for programs that show a part of it.
func TerminalSheet(p Picture, o TerminalOptions) (*Sheet, error) {
	o.Width = 0
	d, err := newTerminal(p, o)
	if err != nil {
		return nil, err
	}
	s := &Sheet{Boxes: make(map[string]Rect, len(d.scene.nodes))}
	if len(d.scene.nodes) == 0 {
		return s, nil
	}
	s.Lines = strings.Split(strings.TrimSuffix(d.draw(), "\n"), "\n")
	for i, n := range d.scene.nodes {
		r := d.placed.Nodes[i]
		s.Boxes[n.ID] = Rect{r.X, r.Y, r.W, r.H}
	}
	return s, nil
}

// newTerminal places a picture.
func newTerminal(p Picture, o TerminalOptions) (*terminal, error) {
	s, err := stage(p)
	if err != nil {
		return nil, err
	}
	d := &terminal{scene: s, options: o, style: term.Style{Color: o.Color, ASCII: o.ASCII}, chars: &boxChars}
	if o.ASCII {
		d.chars = &asciiChars
	}
	d.placed = s.place(d)
	return d, nil
}

type terminal struct {
	scene   *scene
	options TerminalOptions
	style   term.Style
	chars   *chars
	placed  layout.Result
	canvas  *canvas
}

// fit cuts a text at the width of the terminal, if there is one.
func (d *terminal) fit(s string) string {
	if d.options.Width > 0 {
		return d.style.Fit(s, d.options.Width)
	}
	return s
}

// clean makes a foreign text one that can be shown.
func (d *terminal) clean(s string) string { return d.style.Text(term.Clean(s)) }

// text is a foreign text that takes that many columns at most.
func (d *terminal) text(s string, columns int) string { return d.style.Fit(term.Clean(s), columns) }

func (d *terminal) metrics() layout.Metrics {
	return layout.Metrics{
		NodeGap: 1, LineGap: 0, PinStep: 1,
		Lead: 1, Track: 2, Trail: 1, Channel: 4, Stretch: 12,
		Side: 2, Head: 1, Foot: 1,
	}
}

// head are the lines of a box above its ports.
func (d *terminal) head(n *node) []span {
	lines := []span{{text: d.text(n.Label, maxText), paint: bold}}
	if n.Type != "" {
		lines = append(lines, span{text: d.text(n.Type, maxText), paint: faint})
	}
	if status := d.status(n); status.text != "" {
		lines = append(lines, status)
	}
	return lines
}

// status is a line with a node's status and note.
func (d *terminal) status(n *node) span {
	note := d.text(n.Note, maxText)
	if n.Status == "" {
		return span{text: note}
	}
	plain := term.Style{ASCII: d.options.ASCII}.Status(n.Status)
	shown := d.style.Status(n.Status)
	return span{text: join(plain, note), shown: join(shown, note)}
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "  " + b
}

func (d *terminal) portName(p Port) string {
	name := d.text(p.name(), maxPort)
	if p.Closed {
		name += d.chars.closed
	}
	return name
}

func (d *terminal) box(n *node) box {
	head := d.head(n)
	b := box{first: 1 + len(head), step: 1}
	inner, in, out := 0, 0, 0
	for _, line := range head {
		inner = max(inner, ansi.StringWidth(line.text))
	}
	for _, p := range n.In {
		in = max(in, ansi.StringWidth(d.portName(p)))
	}
	for _, p := range n.Out {
		out = max(out, ansi.StringWidth(d.portName(p)))
	}
	if in > 0 && out > 0 {
		in += 3
	}
	b.w = max(inner, in+out) + 4
	b.h = b.first + max(total(n.wires), len(n.Out)) + 1
	return b
}

// terminal leaves a column for an arrow in front of an output, and one that is blank
// between the text and the wire.
func (d *terminal) terminal(n *node) (w, h int) {
	w = ansi.StringWidth(d.terminalText(n)) + 1
	if n.Kind == Output {
		w++
	}
	return w, 1
}

// terminalText is how an input or output is written.
func (d *terminal) terminalText(n *node) string {
	label := join(d.text(n.Label, maxText), d.status(n).text)
	if n.Kind == Input {
		return d.chars.terminal + " " + label
	}
	return label + " " + d.chars.terminal
}

func (d *terminal) frame(n *node) int { return ansi.StringWidth(d.frameTitle(n).text) + 6 }

func (d *terminal) frameTitle(n *node) span {
	title, kind, status := d.text(n.Label, maxText), d.text(n.Type, maxText), d.status(n)
	if kind == n.Label {
		kind = ""
	}
	return span{
		text:  join(join(title, kind), status.text),
		shown: join(join(d.style.Bold(title), d.style.Faint(kind)), cmp.Or(status.shown, status.text)),
	}
}

func (d *terminal) port(p Port, out bool) int {
	if out {
		return ansi.StringWidth(d.portName(p)) + 2
	}
	return ansi.StringWidth(d.portName(p)) + 1
}

// badge takes a column more than its text, so that a line shows behind it.
func (d *terminal) badge(s string) int { return ansi.StringWidth(d.style.Text(s)) + 2 }

func (d *terminal) draw() string {
	d.canvas = newCanvas(d.placed.W, d.placed.H, d.chars)
	for i, n := range d.scene.nodes {
		if n.frame() {
			d.drawFrame(n, d.placed.Nodes[i])
		}
	}
	badges := d.scene.badges()
	for i, e := range d.scene.edges {
		d.canvas.wire(d.placed.Wires[i], e.Closed)
	}
	for i, n := range d.scene.nodes {
		r := d.placed.Nodes[i]
		switch {
		case n.frame():
			d.drawPorts(n, r)
		case n.Kind == Input || n.Kind == Output:
			d.drawTerminal(n, r)
		default:
			d.drawBox(n, r)
		}
	}
	for _, a := range d.scene.approaches(d.placed.Wires, jointsOf(d.placed.Wires)) {
		d.canvas.approach(a)
	}
	for i, e := range d.scene.edges {
		if b := badges[e]; b != nil {
			d.drawEnd(d.placed.Wires[i], b)
		}
	}
	return d.canvas.render(d.style)
}

func (d *terminal) drawFrame(n *node, r layout.Rect) {
	c, ch := d.canvas, d.chars
	for x := r.X; x < r.X+r.W; x++ {
		c.set(x, r.Y, ch.frameH, faint)
		c.set(x, r.Y+r.H-1, ch.frameH, faint)
	}
	for y := r.Y; y < r.Y+r.H; y++ {
		c.set(r.X, y, ch.frameV, faint)
		c.set(r.X+r.W-1, y, ch.frameV, faint)
	}
	c.corners(r, ch.frameCorners, faint)
	title := d.frameTitle(n)
	title.text = " " + title.text + " "
	title.shown = " " + title.shown + " "
	c.text(r.X+2, r.Y, title)
}

func (d *terminal) drawBox(n *node, r layout.Rect) {
	c, ch := d.canvas, d.chars
	for x := r.X; x < r.X+r.W; x++ {
		c.set(x, r.Y, ch.line[armLeft|armRight], plain)
		c.set(x, r.Y+r.H-1, ch.line[armLeft|armRight], plain)
	}
	for y := r.Y; y < r.Y+r.H; y++ {
		c.set(r.X, y, ch.line[armUp|armDown], plain)
		c.set(r.X+r.W-1, y, ch.line[armUp|armDown], plain)
	}
	c.corners(r, ch.corners, plain)
	for i, line := range d.head(n) {
		c.text(r.X+2, r.Y+1+i, line)
	}
	d.drawPorts(n, r)
}

// drawPorts writes the names of a box's or frame's ports inside of it.
func (d *terminal) drawPorts(n *node, r layout.Rect) {
	for i, p := range n.In {
		y := r.Left[firstPin(n.wires, i)]
		d.canvas.set(r.X, y, d.chars.line[armUp|armDown|armLeft], d.border(n))
		d.canvas.text(r.X+2, y, span{text: d.portName(p), paint: d.portPaint(p)})
	}
	for i, p := range n.Out {
		name := d.portName(p)
		d.canvas.set(r.X+r.W-1, r.Right[i], d.chars.line[armUp|armDown|armRight], d.border(n))
		d.canvas.text(r.X+r.W-2-ansi.StringWidth(name), r.Right[i], span{text: name, paint: d.portPaint(p)})
	}
}

func (d *terminal) border(n *node) paint {
	if n.frame() {
		return faint
	}
	return plain
}

func (d *terminal) portPaint(p Port) paint {
	if p.Closed {
		return faint
	}
	return plain
}

func (d *terminal) drawTerminal(n *node, r layout.Rect) {
	x := r.X
	if n.Kind == Output {
		x += 2
	}
	d.canvas.text(x, r.Y, span{text: d.terminalText(n), paint: bold})
}

// drawEnd draws an arrowhead and in front of it what waits.
func (d *terminal) drawEnd(path []layout.Segment, b *badge) {
	last := path[len(path)-1]
	d.canvas.arrow(last.X2, last.Y2, armLeft, b.closed)
	if b.text != "" {
		badge := d.style.Text(b.text)
		d.canvas.text(last.X2-1-ansi.StringWidth(badge), last.Y2, span{text: badge, paint: paintOf(b.fill)})
	}
}

func paintOf(f fill) paint {
	switch f {
	case unknown, empty:
		return faint
	case half:
		return yellow
	case full:
		return red
	default:
		return plain
	}
}
