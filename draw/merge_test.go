package draw_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/draw"
)

// way is a direction on a terminal.
type way struct{ dx, dy int }

func (w way) back() way { return way{-w.dx, -w.dy} }

var (
	left, right = way{-1, 0}, way{1, 0}
	up, down    = way{0, -1}, way{0, 1}
)

// lines has the ways on which a line leaves each character that wires are drawn with.
var lines = map[rune][]way{
	'─': {left, right}, '│': {up, down}, '╌': {left, right}, '╎': {up, down},
	'╭': {right, down}, '╮': {left, down}, '╯': {left, up}, '╰': {right, up},
	'┴': {left, right, up}, '┬': {left, right, down}, '┤': {left, up, down}, '├': {right, up, down}, '┼': {left, right, up, down},
}

var arrows = map[rune]way{'▶': right, '◀': left, '▼': down, '▲': up, '▷': right, '◁': left, '▽': down, '△': up}

// reader follows wires through a picture as readers do, by nothing but its characters.
type reader struct {
	t    interface{ Fatalf(string, ...any) }
	text string
	rows [][]rune
}

func newReader(t interface{ Fatalf(string, ...any) }, text string) *reader {
	r := &reader{t: t, text: text}
	for line := range strings.Lines(text) {
		r.rows = append(r.rows, []rune(strings.TrimSuffix(line, "\n")))
	}
	return r
}

// spot is a place in a picture, and the way on which a reader comes to it.
type spot struct {
	x, y int
	way
}

func (s spot) next(w way) spot { return spot{s.x + w.dx, s.y + w.dy, w} }

func (r *reader) at(x, y int) rune {
	if y < 0 || y >= len(r.rows) || x < 0 || x >= len(r.rows[y]) {
		return ' '
	}
	return r.rows[y][x]
}

// end tells whether an arrowhead in front of a port is here.
func (r *reader) end(s spot) bool {
	return arrows[r.at(s.x, s.y)] == right && r.at(s.x+1, s.y) == ' '
}

// exits are the ways on from a place of a wire: one, more where lines part or join, none at
// its ends. Wires that are crossed are followed straight on.
func (r *reader) exits(s spot) []way {
	char := r.at(s.x, s.y)
	if _, ok := arrows[char]; ok {
		if r.end(s) {
			return nil
		}
		return []way{s.way}
	}
	if char == '├' && s.way == left && r.at(s.x-1, s.y) == ' ' && unicode.IsDigit(r.at(s.x-2, s.y)) {
		return nil // the port that the wire leaves
	}
	ways := lines[char]
	switch {
	case len(ways) == 0:
		r.t.Fatalf("nothing goes on at %d,%d (%q):\n%s", s.x, s.y, char, r.text)
	case !slices.Contains(ways, s.back()):
		return []way{s.way}
	}
	return slices.DeleteFunc(slices.Clone(ways), func(w way) bool { return w == s.back() })
}

// comes tells whether messages come to a junction on one of its lines: by the next arrow on
// it, if there is one in front of the next junction. A line without room for one comes from
// where all others come from.
func (r *reader) comes(junction spot, w way) bool {
	room := false
	for s := junction.next(w); ; {
		char := r.at(s.x, s.y)
		if towards, ok := arrows[char]; ok {
			return towards == s.back()
		}
		exits := r.exits(s)
		if len(exits) == 0 {
			return !room
		}
		if len(exits) > 1 {
			return !room && !slices.ContainsFunc(exits, func(w way) bool { return !r.comes(s, w) })
		}
		room = room || exits[0] == s.way && slices.Contains(lines[char], s.way)
		s = s.next(exits[0])
	}
}

// follow lists the ports to which a wire leads.
func (r *reader) follow(s spot) []string {
	for range 10_000 {
		if r.end(s) {
			return []string{r.port(s)}
		}
		exits := r.exits(s)
		if len(exits) > 1 {
			exits = slices.DeleteFunc(exits, func(w way) bool { return r.comes(s, w) })
			var ports []string
			for _, w := range exits {
				ports = append(ports, r.follow(s.next(w))...)
			}
			return ports
		}
		if len(exits) == 0 {
			return []string{fmt.Sprintf("back to an Out port at %d,%d", s.x, s.y)}
		}
		if towards, ok := arrows[r.at(s.x, s.y)]; ok && towards != s.way {
			return []string{fmt.Sprintf("against an arrow at %d,%d", s.x, s.y)}
		}
		s = s.next(exits[0])
	}
	return []string{"round and round"}
}

// port is the name beside an arrowhead, or that of the port to which its row belongs.
func (r *reader) port(s spot) string {
	for y := s.y; y >= 0; y-- {
		if name, _, _ := strings.Cut(string(r.rows[y][s.x+2:]), " "); name != "" {
			return name
		}
	}
	return ""
}

// leaving finds where the wire of an Out port begins.
func (r *reader) leaving(port string) spot {
	for y, row := range r.rows {
		before, _, found := strings.Cut(string(row), " "+port+" ├")
		if found {
			return spot{len([]rune(before)) + len([]rune(port)) + 3, y, right}
		}
	}
	r.t.Fatalf("no port %s in:\n%s", port, r.text)
	return spot{}
}

// readable fails unless a reader finds the edges of a picture in its drawing.
func readable(t interface {
	Fatalf(string, ...any)
	Fatal(...any)
}, p draw.Picture,
) {
	text := render(t, p, "terminal", draw.TerminalOptions{})
	r := newReader(t, text)
	edges := make(map[string][]string)
	for _, e := range p.Edges {
		edges[e.FromPort] = append(edges[e.FromPort], e.ToPort)
	}
	for from, want := range edges {
		got := r.follow(r.leaving(from))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(slices.Compact(got), slices.Compact(want)) {
			t.Fatalf("%s seems to lead to %q, but leads to %q:\n%s", from, got, want, text)
		}
	}
	ascii := strings.NewReplacer("╭┄", "..", "┄╮", "..", "┄╯", "..", "╰┄", "..", "┄", ".", "┆", ":", "▶", ">", "◀", "<", "▼", "v", "▲", "^", "▷", ">", "◁", "<", "▽", "v", "△", "^",
		"─", "-", "│", "|", "╌", "~", "╎", "|", "╭", "+", "╮", "+", "╯", "+", "╰", "+", "┴", "+", "┬", "+", "┤", "+", "├", "+", "┼", "+").Replace(text)
	if got := render(t, p, "terminal", draw.TerminalOptions{ASCII: true}); got != ascii {
		t.Fatalf("in ASCII:\n%s\nis not:\n%s", got, ascii)
	}
}

func TestMergingWiresShowTheirDirection(t *testing.T) {
	t.Parallel()
	t.Run("any graph", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) { readable(t, wired(t)) })
	})
	for name, p := range map[string]struct {
		picture draw.Picture
		ways    int // arrows of wires that merge
	}{
		"fan-in of two":      {sketch("", "a.o1 c.i1", "b.o2 c.i1"), 2},
		"fan-in of three":    {sketch("", "a.o1 d.i1", "b.o2 d.i1", "c.o3 d.i1"), 3},
		"fan-out":            {sketch("", "a.o1 b.i1", "a.o1 c.i2", "a.o1 d.i3"), 0},
		"feedback":           {sketch("", "a.o1 b.i1", "b.o2 c.i2", "c.o3 b.i1 back"), 2},
		"of a job to itself": {sketch("", "a.o1 b.i1", "b.o2 b.i1 back"), 2},
		"ports of one job":   {sketch("", "a.o1 b.i1", "a.o2 b.i1", "a.o3 b.i1"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readable(t, p.picture)
			if svg := render(t, p.picture, "svg", draw.TerminalOptions{}); strings.Count(svg, `class="way"`) != p.ways {
				t.Errorf("%d arrows instead of %d:\n%s", strings.Count(svg, `class="way"`), p.ways, svg)
			}
		})
	}
}

// A wire into a port is drawn as closed only if all that merge into it are.
func TestMergedWireIsOpenWhileOneIs(t *testing.T) {
	t.Parallel()
	p := sketch("", "a.o1 c.i1 closed", "b.o2 c.i1")
	if text := render(t, p, "terminal", draw.TerminalOptions{}); !strings.Contains(text, "─▶ i1") || strings.Count(text, "▽")+strings.Count(text, "△") != 1 {
		t.Errorf("one wire is closed, the other and the end of both are not:\n%s", text)
	}
	p.Edges[1].Closed = true
	if text := render(t, p, "terminal", draw.TerminalOptions{}); !strings.Contains(text, "╌▷ i1") || strings.ContainsAny(text, "▲▼▶") {
		t.Errorf("all wires are closed:\n%s", text)
	}
}

// wired makes a picture of jobs with ports of unlike names, some of them in frames.
func wired(t *rapid.T) draw.Picture {
	p := draw.Picture{Nodes: []draw.Node{{ID: "frame", Kind: draw.Group}}}
	var outs, ins []draw.Edge // half an edge each
	for i := range rapid.IntRange(2, 9).Draw(t, "jobs") {
		n := draw.Node{ID: fmt.Sprintf("n%d", i), Group: rapid.SampledFrom([]string{"", "", "frame"}).Draw(t, "group")}
		for k := range rapid.IntRange(1, 3).Draw(t, "outs") {
			n.Out = append(n.Out, draw.Port{Name: fmt.Sprintf("o%d%d", i, k)})
			outs = append(outs, draw.Edge{From: n.ID, FromPort: n.Out[k].Name})
		}
		for k := range rapid.IntRange(1, 2).Draw(t, "ins") {
			n.In = append(n.In, draw.Port{Name: fmt.Sprintf("i%d%d", i, k)})
			ins = append(ins, draw.Edge{To: n.ID, ToPort: n.In[k].Name})
		}
		p.Nodes = append(p.Nodes, n)
	}
	for range rapid.IntRange(1, 16).Draw(t, "edges") {
		from, to := rapid.SampledFrom(outs).Draw(t, "from"), rapid.SampledFrom(ins).Draw(t, "to")
		p.Edges = append(p.Edges, draw.Edge{From: from.From, FromPort: from.FromPort, To: to.To, ToPort: to.ToPort, Size: -1, Feedback: rapid.Bool().Draw(t, "back")})
	}
	return p
}
