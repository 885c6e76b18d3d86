package top

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Bounds of what is drawn of a tree.
const (
	spawnedBoxes = 4   // children of one type that a job spawned; more are one box
	wholeBoxes   = 60  // from more on, subgraphs are folded
	mostBoxes    = 400 // nobody finds anything among more
)

// drawing says how to draw a tree.
type drawing struct {
	color bool
	ascii bool
	folds map[string]bool // turned round by hand: subgraphs, and boxes of spawned children
}

// drawn is a tree that was drawn.
type drawn struct {
	sheet   *draw.Sheet
	width   int
	members map[string][]*job.Info // of each box
	boxes   int                    // that there are; without a sheet these are too many
	folded  map[string]bool        // subgraphs that are one box
	err     error                  // why there is no sheet
}

// draw draws a tree. It takes time: it is done where the tree is read.
func (d *drawing) draw(jobs []*job.Info) *drawn {
	view := draw.View{Spawned: spawnedBoxes, Spawns: true}
	p, members := view.Jobs(jobs)
	folded := make(map[string]bool)
	if len(p.Nodes) > wholeBoxes {
		for _, n := range p.Nodes {
			if n.Kind == draw.Group {
				folded[n.ID] = true
			}
		}
	}
	for path := range d.folds {
		if folded[path] = !folded[path]; !folded[path] {
			delete(folded, path)
		}
	}
	if len(folded) > 0 {
		view.Toggled = folded
		p, members = view.Jobs(jobs)
	}
	out := &drawn{members: members, boxes: len(p.Nodes), folded: folded}
	if len(p.Nodes) > mostBoxes {
		return out
	}
	tidy(&p)
	if out.sheet, out.err = draw.TerminalSheet(p, draw.TerminalOptions{Color: d.color, ASCII: d.ascii}); out.err != nil {
		return out
	}
	for _, l := range out.sheet.Lines {
		out.width = max(out.width, ansi.StringWidth(l))
	}
	if d.color {
		paint(out.sheet, p.Nodes)
	}
	return out
}

// paint gives boxes that run, or have failed, a border of their colour.
func paint(s *draw.Sheet, nodes []draw.Node) {
	style := term.Style{Color: true}
	for _, n := range nodes {
		r, ok := s.Boxes[n.ID]
		if !ok || n.Status != statemachine.Running && n.Status != statemachine.Failed {
			continue
		}
		border(s.Lines, r, func(text string) string { return style.Colored(n.Status, text) })
	}
}

// border draws the border of a box anew.
func border(lines []string, r draw.Rect, look func(string) string) {
	for y := max(r.Y, 0); y < min(r.Y+r.H, len(lines)); y++ {
		l := lines[y]
		before, after := ansi.Cut(l, 0, r.X), ansi.Cut(l, r.X+r.W, ansi.StringWidth(l))
		inner := ansi.Cut(l, r.X+1, r.X+r.W-1)
		if strings.ContainsAny(ansi.Strip(inner), "─┄") && (y == r.Y || y == r.Y+r.H-1) {
			inner = look(ansi.Strip(inner))
		}
		lines[y] = before + look(ansi.Strip(ansi.Cut(l, r.X, r.X+1))) + inner + look(ansi.Strip(ansi.Cut(l, r.X+r.W-1, r.X+r.W))) + after
	}
}

// tidy leaves out of a picture what the pane tells better: reasons, which make boxes wide, and ports for errors that lead nowhere.
func tidy(p *draw.Picture) {
	wired := make(map[[2]string]bool)
	for _, e := range p.Edges {
		wired[[2]string{e.From, e.FromPort}] = true
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Label, n.Type = clean(cmp.Or(n.Label, n.ID)), clean(n.Type)
		n.Out = slices.DeleteFunc(n.Out, func(o draw.Port) bool { return o.Name == "err" && !wired[[2]string{n.ID, o.Name}] })
		switch {
		case strings.HasPrefix(n.Note, "full: "):
			n.Note = "port full"
		case n.Status == statemachine.Failed || columnsOf(n.Note) > longNote:
			n.Note = ""
		}
	}
}

// longNote is how long what stands behind a status may be, such as how many jobs a box stands for.
const longNote = 24

// first is the box at the left end of the picture, or one that has failed.
func (d *drawn) first() string {
	best, rank := "", 0
	for path, r := range d.sheet.Boxes {
		if len(d.members[path]) == 0 {
			continue
		}
		n := 1<<40 + r.X<<20 + r.Y
		if i := d.members[path][0]; i.Status == statemachine.Failed && !i.Graph {
			n -= 1 << 40
		}
		if best == "" || n < rank {
			best, rank = path, n
		}
	}
	return best
}

// drawing is how the tree that is shown is drawn, nil if it need not be.
func (m *Model) drawing() *drawing {
	if m.view != viewGraph || m.here == m.list {
		return nil
	}
	return &drawing{color: m.cfg.Style.Color, ascii: m.cfg.ASCII, folds: maps.Clone(m.here.folds)}
}

// boxOf is the smallest box that a job is in.
func (d *drawn) boxOf(id job.ID) (string, bool) {
	best, found := "", false
	for path, all := range d.members {
		if _, there := d.sheet.Boxes[path]; !there {
			continue
		}
		for _, i := range all {
			if i.ID == id && (!found || len(path) > len(best)) {
				best, found = path, true
			}
		}
	}
	return best, found
}

// selectedBox is the box of the selected job, or of what it is below.
func (m *Model) selectedBox(d *drawn) (string, bool) {
	r, ok := m.here.selected()
	if !ok || d.sheet == nil {
		return "", false
	}
	for n := r.node; n != nil; n = n.parent {
		if path, ok := d.boxOf(n.info.ID); ok {
			return path, true
		}
	}
	return "", false
}

// intoGraph selects a box if none is.
func (m *Model) intoGraph() {
	if m.here.picture == nil || m.here.picture.drawn == nil || m.here.picture.drawn.sheet == nil {
		return
	}
	d := m.here.picture.drawn
	if _, ok := m.selectedBox(d); !ok {
		m.selectBox(d, d.first())
	}
}

// graphLines are the part of the picture that fits.
func (m *Model) graphLines(width, height int) []string {
	p := m.here
	switch {
	case m.here == m.list:
		return m.centered(width, height, "choose a tree first: 1 shows them")
	case p.picture == nil || p.picture.drawn == nil:
		return m.centered(width, height, "drawing…")
	case p.picture.drawn.err != nil:
		return m.centered(width, height, words(p.picture.drawn.err))
	case p.picture.drawn.sheet == nil:
		return m.centered(width, height, count(int64(p.picture.drawn.boxes))+" boxes are too many to draw: fold some, or see 1, the tree")
	case len(p.picture.drawn.sheet.Lines) == 0:
		return m.centered(width, height, "no jobs")
	}
	d := p.picture.drawn
	lines := d.sheet.Lines
	if path, ok := m.selectedBox(d); ok {
		r := d.sheet.Boxes[path]
		lines = m.highlight(lines, r)
		if p.follow {
			p.x = follow(p.x, r.X, r.X+r.W, width)
			p.y = follow(p.y, r.Y, r.Y+r.H, height)
		}
	}
	p.x = max(min(p.x, d.width-width), 0)
	p.y = max(min(p.y, len(lines)-height), 0)
	left, up := max((width-d.width)/2, 0), max((height-len(lines))/2, 0)
	out := make([]string, 0, height)
	for range up {
		out = append(out, "")
	}
	for n := p.y; n < len(lines) && len(out) < height; n++ {
		out = append(out, strings.Repeat(" ", left)+m.seen(lines[n], p.x, width, d.width))
	}
	return out
}

// seen is what is shown of a line of a picture, with marks at the sides where that goes on.
func (m *Model) seen(line string, x, width, all int) string {
	before, after := "‹", "›"
	if m.cfg.ASCII {
		before, after = "<", ">"
	}
	from, to := x, x+width
	if x > 0 {
		from++
	}
	if all > to {
		to--
	}
	out := ansi.Cut(line, from, to)
	if x > 0 {
		out = m.cfg.Style.Faint(before) + out
	}
	if all > x+width {
		out = term.Pad(out, width-1) + m.cfg.Style.Faint(after)
	}
	return out
}

// follow scrolls so that what reaches from one place to another is seen.
func follow(at, from, to, room int) int {
	const margin = 2
	at = max(at, to+margin-room)
	return max(min(at, from-margin), 0)
}

// heavy are the corners and sides of a box that is selected, also of one in ASCII.
var heavy = strings.NewReplacer("+", "#", "-", "=", "|", "#", ".", "#", ":", "#", "╭", "┏", "╮", "┓", "╰", "┗", "╯", "┛", "─", "━", "│", "┃", "┄", "━", "┆", "┃")

// highlight gives a box a heavy border.
func (m *Model) highlight(lines []string, r draw.Rect) []string {
	out := slices.Clone(lines)
	border(out, r, func(text string) string { return m.cfg.Style.Accent(heavy.Replace(text)) })
	return out
}

// graphKey moves from box to box, scrolls and folds.
func (m *Model) graphKey(k string) bool {
	p := m.here
	d := (*drawn)(nil)
	if p.picture != nil {
		d = p.picture.drawn
	}
	if d == nil || d.sheet == nil {
		return false
	}
	dx, dy := 0, 0
	switch k {
	case "left", "h":
		dx = -1
	case "right", "l":
		dx = 1
	case "up", "k":
		dy = -1
	case "down", "j":
		dy = 1
	case "<", "shift+left":
		p.x, p.follow = p.x-10, false
		return true
	case ">", "shift+right":
		p.x, p.follow = p.x+10, false
		return true
	case "pgup", "ctrl+u":
		p.y, p.follow = p.y-10, false
		return true
	case "pgdown", "ctrl+d":
		p.y, p.follow = p.y+10, false
		return true
	case "enter":
		return m.foldBox(d)
	default:
		return false
	}
	if path, ok := m.selectedBox(d); ok {
		if next, ok := d.beside(path, dx, dy); ok {
			m.selectBox(d, next)
		}
	}
	return true
}

// beside is the nearest box in a direction.
func (d *drawn) beside(path string, dx, dy int) (string, bool) {
	from := d.sheet.Boxes[path]
	best, nearest, found := "", 0, false
	for other, r := range d.sheet.Boxes {
		if other == path || len(d.members[other]) == 0 {
			continue
		}
		ahead := (2*r.X+r.W-2*from.X-from.W)*dx + 2*(2*r.Y+r.H-2*from.Y-from.H)*dy
		aside := abs((2*r.X+r.W-2*from.X-from.W)*dy) + 2*abs((2*r.Y+r.H-2*from.Y-from.H)*dx)
		if ahead <= 0 {
			continue
		}
		if far := ahead + 2*aside; !found || far < nearest || far == nearest && other < best {
			best, nearest, found = other, far, true
		}
	}
	return best, found
}

func abs(n int) int { return max(n, -n) }

// selectBox selects the job that a box stands for, the first of several.
func (m *Model) selectBox(d *drawn, path string) {
	if all := d.members[path]; len(all) > 0 {
		if n := m.here.picture.nodes[all[0].ID]; n != nil {
			m.here.filter, m.here.follow = "", true
			m.here.to(n)
		}
	}
}

// foldBox folds the selected subgraph, or unfolds it.
func (m *Model) foldBox(d *drawn) bool {
	path, ok := m.selectedBox(d)
	if !ok || len(d.members[path]) == 0 {
		return true
	}
	graph := d.members[path][0].Graph && strings.Contains(path, "/")
	if spawned := strings.Contains(path, "×"); !graph && !spawned {
		m.say(note, "only subgraphs and boxes of several jobs can be folded")
		return true
	}
	if m.here.folds[path] {
		delete(m.here.folds, path)
	} else {
		m.here.folds[path] = true
	}
	m.here.due = m.now
	return true
}

// clickGraph selects the box at a place of the picture.
func (m *Model) clickGraph(x, y, width, height int) {
	p := m.here
	if p.picture == nil || p.picture.drawn == nil || p.picture.drawn.sheet == nil {
		return
	}
	d := p.picture.drawn
	x += p.x - max((width-d.width)/2, 0)
	y += p.y - max((height-len(d.sheet.Lines))/2, 0)
	best, size := "", 0
	for path, r := range d.sheet.Boxes {
		inside := x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H && len(d.members[path]) > 0
		if inside && (best == "" || r.W*r.H < size) {
			best, size = path, r.W*r.H
		}
	}
	if best != "" {
		m.selectBox(d, best)
	}
}
