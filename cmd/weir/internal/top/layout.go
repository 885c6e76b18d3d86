package top

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/weirworks/weir/internal/term"
)

// The smallest screen that anything is drawn on, and where the layout changes.
const (
	minWidth   = 30
	minHeight  = 8
	framing    = 60  // columns from which there are frames,
	framingH   = 12  // and lines
	withTabs   = 10  // lines from which the views are named
	withRates  = 18  // lines from which there are rates
	besides    = 80  // columns from which the panes are beside the tree, not below it
	besideMore = 130 // the same for what is wider than a tree
	withStatus = 56  // columns of the tree from which statuses are written out
	withLoad   = 70  // and the messages that wait
	tall       = 30  // lines of the panes from which all are shown at once
	foot       = 2   // lines at the bottom
)

// rect is a part of the screen.
type rect struct{ x, y, w, h int }

func (r rect) holds(x, y int) bool { return x >= r.x && x < r.x+r.w && y >= r.y && y < r.y+r.h }

// places are the parts of the screen.
type places struct {
	head       int // lines at the top
	main, pane rect
	framed     bool
}

// layout parts the screen.
func (m *Model) layout() places {
	p := places{framed: m.width >= framing && m.height >= framingH, head: 1}
	if m.height >= withTabs {
		p.head++
	}
	if m.height >= withRates {
		p.head++
	}
	all := rect{0, p.head, m.width, m.height - p.head - foot}
	if m.zoom {
		p.pane = all
		return p
	}
	p.main = all
	left, up := min(m.width/2, 100), (all.h+1)/2
	enough := besides
	switch m.view {
	case viewGraph:
		left, up, enough = m.width-56, all.h*2/3, besideMore
	case viewQueues, viewWorkers, viewTriggers:
		left, up, enough = max(m.width*3/5, m.width-70), max(all.h-11, all.h/2), besideMore
	default:
	}
	switch {
	case p.framed && m.width >= enough:
		p.main.w, p.pane = left, rect{left, all.y, m.width - left, all.h}
	case m.view == viewTree || up >= 8:
		p.main.h, p.pane = up, rect{0, all.y + up, m.width, all.h - up}
	}
	return p
}

// inner is what there is room for in a part: without its frame, or without its heading.
func (p *places) inner(r rect, heading bool) rect {
	switch {
	case r.h == 0:
	case p.framed:
		return rect{r.x + 1, r.y + 1, max(r.w-2, 0), max(r.h-2, 0)}
	case heading:
		return rect{r.x, r.y + 1, r.w, max(r.h-1, 0)}
	}
	return r
}

// paneRoom is what there is room for in the pane, and rowsHeight in the tree, list or table.
func (m *Model) paneRoom() rect {
	p := m.layout()
	r := p.inner(p.pane, true)
	if p.framed && r.w > 20 {
		r.x, r.w = r.x+1, r.w-2
	}
	return r
}

func (m *Model) rowsHeight() int {
	p := m.layout()
	return p.inner(p.main, false).h - 1
}

// stacked tells whether all panes of a job are shown at once.
func (m *Model) stacked() bool {
	p := m.layout()
	return !m.zoom && p.pane.h >= tall && p.pane.w < m.width
}

// frame draws a frame around lines, with what is written into its upper side.
func (m *Model) frame(r rect, title, right string, lines []string, look func(string) string) []string {
	w := r.w - 2
	title = ansi.Truncate(title, max(w-3, 0), "…")
	rest := w - 3 - columnsOf(title)
	if columnsOf(right)+5 > rest {
		right = ""
	}
	top := look("╭─ ") + title + look(" "+strings.Repeat("─", max(rest, 0))+"╮")
	if right != "" {
		top = look("╭─ ") + title + look(" "+strings.Repeat("─", rest-columnsOf(right)-3)+" ") + right + look(" ─╮")
	}
	out := []string{top}
	side := look("│")
	for n := range r.h - 2 {
		text := ""
		if n < len(lines) {
			text = lines[n]
		}
		out = append(out, side+filled(text, w)+side)
	}
	return append(out, look("╰"+strings.Repeat("─", w)+"╯"))
}

// filled makes a text, which may have colours, as wide as it has to be.
func filled(text string, width int) string {
	if rest := width - columnsOf(text); rest >= 0 {
		return text + strings.Repeat(" ", rest)
	}
	text = ansi.Truncate(text, width, "")
	return text + strings.Repeat(" ", max(width-columnsOf(text), 0)) // a wide letter may leave a column
}

// overlay lays a box over the middle of lines.
func (m *Model) overlay(lines, box []string) {
	w := 0
	for _, l := range box {
		w = max(w, columnsOf(l))
	}
	x, y := max((m.width-w)/2, 0), max((len(lines)-len(box))/2, 0)
	m.lay(lines, box, x, y)
}

// lay lays a box over lines at a place.
func (m *Model) lay(lines, box []string, x, y int) {
	for n, l := range box {
		if y+n < 0 || y+n >= len(lines) {
			continue
		}
		under, end := lines[y+n], x+columnsOf(l)
		behind := ansi.Cut(under, end, m.width)
		if columnsOf(behind) > m.width-end { // half of a wide character is below the box, and it is there as a whole
			behind = " " + ansi.Cut(under, end+1, m.width)
		}
		lines[y+n] = filled(ansi.Cut(under, 0, x), x) + l + behind
	}
}

// centered are lines with a text in their middle.
func (m *Model) centered(width, height int, text string) []string {
	out := make([]string, 0, height)
	lines := wrap(text, max(width-4, 1))
	for range max((height-len(lines))/3, 0) {
		out = append(out, "")
	}
	for _, l := range lines {
		out = append(out, strings.Repeat(" ", max((width-columnsOf(l))/2, 0))+m.cfg.Style.Faint(l))
	}
	return out[:min(len(out), height)]
}

// style is for texts about times.
func (m *Model) style() term.Style { return term.Style{Now: m.now} }

// unless is a look for what is not selected: that has one look for all of the line.
func (m *Model) unless(selected bool, look func(string) string) func(string) string {
	if selected {
		return same
	}
	return look
}

func (m *Model) render(s lipgloss.Style, text string) string {
	if !m.cfg.Style.Color || text == "" {
		return text
	}
	return s.Render(text)
}

// picked is the look of the selected line.
func (m *Model) picked(text string) string {
	return m.render(lipgloss.NewStyle().Background(lipgloss.Blue).Foreground(lipgloss.BrightWhite).Bold(true), text)
}

// badge is the look of what is on: the name of the program, the view that is shown.
func (m *Model) badge(text string) string {
	return m.render(lipgloss.NewStyle().Background(lipgloss.Cyan).Foreground(lipgloss.Black).Bold(true), text)
}

// zone is a part of the screen that does something when it is clicked.
type zone struct {
	rect
	do func() tea.Cmd
}
