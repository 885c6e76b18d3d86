package draw

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/weirworks/weir/draw/internal/layout"
	"github.com/weirworks/weir/internal/term"
)

// The directions in which a line leaves a cell.
const (
	armLeft = 1 << iota
	armRight
	armUp
	armDown
)

// arrows has a character for each arm on which something comes.
func arrows(left, right, up, down rune) [16]rune {
	return [16]rune{armLeft: left, armRight: right, armUp: up, armDown: down}
}

// chars are what drawings are made of.
type chars struct {
	line                  [16]rune // by arms
	corners, frameCorners [4]rune  // from the left top on, with the clock
	dashH, dashV          rune     // wires that are closed
	frameH, frameV        rune
	arrow, closedArrow    [16]rune // by the arm on which it comes
	terminal, closed      string
}

var boxChars = chars{
	line: [16]rune{
		' ', '╴', '╶', '─', '╵', '╯', '╰', '┴',
		'╷', '╮', '╭', '┬', '│', '┤', '├', '┼',
	},
	corners: [4]rune{'╭', '╮', '╯', '╰'}, frameCorners: [4]rune{'╭', '╮', '╯', '╰'},
	dashH: '╌', dashV: '╎', frameH: '┄', frameV: '┆',
	arrow: arrows('▶', '◀', '▼', '▲'), closedArrow: arrows('▷', '◁', '▽', '△'),
	terminal: "◇", closed: " ∎",
}

var asciiChars = chars{
	line: [16]rune{
		' ', '-', '-', '-', '|', '+', '+', '+',
		'|', '+', '+', '+', '|', '+', '+', '+',
	},
	corners: [4]rune{'+', '+', '+', '+'}, frameCorners: [4]rune{'.', '.', '.', '.'},
	dashH: '~', dashV: '|', frameH: '.', frameV: ':',
	arrow: arrows('>', '<', 'v', '^'), closedArrow: arrows('>', '<', 'v', '^'),
	terminal: "*", closed: " (end)",
}

// paint is how something is shown.
type paint int

const (
	plain paint = iota
	bold
	faint
	yellow
	red
)

func (p paint) apply(s term.Style, text string) string {
	if !s.Color || text == "" {
		return text
	}
	switch p {
	case bold:
		return s.Bold(text)
	case faint:
		return s.Faint(text)
	case yellow:
		return ansi.NewStyle().ForegroundColor(ansi.Yellow).Styled(text)
	case red:
		return ansi.NewStyle().Bold().ForegroundColor(ansi.Red).Styled(text)
	default:
		return text
	}
}

// span is a text within a line. If it is shown in several colours, shown is what to write.
type span struct {
	x     int
	text  string
	shown string
	paint paint
}

// stroke is what one net draws in a cell.
type stroke struct {
	net, arms int
	solid     bool
}

// cell is a place for one character: a part of a box, or lines of at most two nets.
type cell struct {
	char    rune
	paint   paint
	strokes []stroke
}

// canvas is a grid of cells with texts on it. Texts may take any number of columns for
// each of their characters.
type canvas struct {
	chars *chars
	cells [][]cell
	spans [][]span
}

func newCanvas(w, h int, ch *chars) *canvas {
	c := &canvas{chars: ch, cells: make([][]cell, h), spans: make([][]span, h)}
	for y := range c.cells {
		c.cells[y] = make([]cell, w)
	}
	return c
}

func (c *canvas) set(x, y int, char rune, p paint) { c.cells[y][x] = cell{char: char, paint: p} }

func (c *canvas) corners(r layout.Rect, corners [4]rune, p paint) {
	c.set(r.X, r.Y, corners[0], p)
	c.set(r.X+r.W-1, r.Y, corners[1], p)
	c.set(r.X+r.W-1, r.Y+r.H-1, corners[2], p)
	c.set(r.X, r.Y+r.H-1, corners[3], p)
}

func (c *canvas) text(x, y int, s span) {
	if s.text != "" {
		s.x = x
		c.spans[y] = append(c.spans[y], s)
	}
}

// wire draws a path. The first cell has a line from its left, where the wire begins.
func (c *canvas) wire(path []layout.Segment, closed bool) {
	for i, s := range path {
		if i == 0 {
			c.stroke(s.X1, s.Y1, s.Net, armLeft, closed)
		}
		for x := min(s.X1, s.X2); x < max(s.X1, s.X2); x++ {
			c.stroke(x, s.Y1, s.Net, armRight, closed)
			c.stroke(x+1, s.Y1, s.Net, armLeft, closed)
		}
		for y := min(s.Y1, s.Y2); y < max(s.Y1, s.Y2); y++ {
			c.stroke(s.X1, y, s.Net, armDown, closed)
			c.stroke(s.X1, y+1, s.Net, armUp, closed)
		}
	}
}

func (c *canvas) stroke(x, y, net, arms int, closed bool) {
	cl := &c.cells[y][x]
	cl.char = 0
	for i := range cl.strokes {
		if s := &cl.strokes[i]; s.net == net {
			s.arms |= arms
			s.solid = s.solid || !closed
			return
		}
	}
	cl.strokes = append(cl.strokes, stroke{net, arms, !closed})
}

// approach draws an arrow on a line in front of a point where wires merge: on the next
// straight place that no other wire crosses. There is none if the line is shorter than
// that. The point in front of this one, or the port that the line leaves, tells its way then.
func (c *canvas) approach(a *approach) {
	at := a.at
	for i := len(a.path) - 1; i >= 0; i-- {
		s := a.path[i]
		dx, dy := cmp.Compare(s.X1, s.X2), cmp.Compare(s.Y1, s.Y2)
		for at != (point{s.X1, s.Y1}) {
			at = point{at.x + dx, at.y + dy}
			strokes := c.cells[at.y][at.x].strokes
			if len(strokes) > 1 {
				continue
			}
			switch arms := strokes[0].arms; {
			case bits.OnesCount(uint(arms)) > 2:
				return
			case arms == armLeft|armRight || arms == armUp|armDown:
				c.arrow(at.x, at.y, arrival(s), a.closed)
				return
			}
		}
	}
}

// arrow draws an arrowhead of a wire that comes on an arm.
func (c *canvas) arrow(x, y, arm int, closed bool) {
	char := c.chars.arrow[arm]
	if closed {
		char = c.chars.closedArrow[arm]
	}
	c.set(x, y, char, plain)
}

// look is the character of a cell. Where nets cross, the vertical line is drawn.
func (c *canvas) look(cl *cell) (rune, paint) {
	if len(cl.strokes) == 0 {
		if cl.char == 0 {
			return ' ', plain
		}
		return cl.char, cl.paint
	}
	arms, solid := 0, false
	for _, s := range cl.strokes {
		if s.arms == armUp|armDown && len(cl.strokes) > 1 {
			arms, solid = s.arms, s.solid
			break
		}
		arms, solid = arms|s.arms, solid || s.solid
	}
	switch {
	case solid:
		return c.chars.line[arms], plain
	case arms&^(armLeft|armRight) == 0:
		return c.chars.dashH, faint
	case arms&^(armUp|armDown) == 0:
		return c.chars.dashV, faint
	}
	return c.chars.line[arms], faint
}

func (c *canvas) render(s term.Style) string {
	var out strings.Builder
	for y := range c.cells {
		out.WriteString(c.line(y, s) + "\n")
	}
	return out.String()
}

func (c *canvas) line(y int, style term.Style) string {
	spans := c.spans[y]
	slices.SortStableFunc(spans, func(a, b span) int { return a.x - b.x })
	var line, run strings.Builder
	now := plain
	flush := func() {
		line.WriteString(now.apply(style, run.String()))
		run.Reset()
	}
	end := c.end(y)
	for x := 0; x < end; {
		if len(spans) > 0 && spans[0].x <= x {
			flush()
			s := spans[0]
			spans = spans[1:]
			if s.shown != "" && style.Color {
				line.WriteString(s.shown)
			} else {
				line.WriteString(s.paint.apply(style, s.text))
			}
			x += ansi.StringWidth(s.text)
			continue
		}
		char, p := c.look(&c.cells[y][x])
		if p != now {
			flush()
			now = p
		}
		run.WriteRune(char)
		x++
	}
	flush()
	return strings.TrimRight(line.String(), " ")
}

// end is the column behind the last that is not blank.
func (c *canvas) end(y int) int {
	end := 0
	for x := range c.cells[y] {
		if char, _ := c.look(&c.cells[y][x]); char != ' ' {
			end = x + 1
		}
	}
	for _, s := range c.spans[y] {
		end = max(end, s.x+ansi.StringWidth(s.text))
	}
	return end
}
