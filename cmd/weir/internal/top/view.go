package top

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/statemachine"
)

// The smallest screen that anything is drawn on, and where the layout changes.
const (
	minWidth   = 30
	minHeight  = 8
	besides    = 64 // columns from which the panes are beside the tree, not below it
	withStatus = 56 // columns of the tree from which statuses are written out
	tall       = 36 // lines from which all panes are shown at once
)

// frameLines are those above and below the tree and its panes.
const frameLines = 4

// View implements tea.Model.
func (m *Model) View() tea.View {
	text, cursor := m.frame()
	if m.cfg.ASCII {
		text = term.ASCII(text)
	}
	v := tea.NewView(text)
	v.AltScreen = true
	v.Cursor = cursor
	return v
}

func (m *Model) frame() (string, *tea.Cursor) {
	if m.width == 0 {
		return "", nil // the size is not known yet
	}
	if m.width < minWidth || m.height < minHeight {
		return term.Fit(fmt.Sprintf("%d x %d is too small", m.width, m.height), m.width), nil
	}
	lines := []string{m.header()}
	switch {
	case m.help:
		lines = append(lines, m.helpLines()...)
	case m.beside():
		lines = append(lines, m.columns()...)
	default:
		lines = append(lines, m.stack()...)
	}
	bottom, cursor := m.bottom()
	return strings.Join(append(lines, bottom...), "\n"), cursor
}

// beside tells whether there is room for the panes beside the tree.
func (m *Model) beside() bool { return m.width >= besides }

// bodyHeight is how many rows of the tree there is room for.
func (m *Model) bodyHeight() int {
	h := m.height - frameLines
	if m.beside() {
		return h
	}
	return (h - 1) / 2
}

// columns are the tree and the panes beside each other, with their headings.
func (m *Model) columns() []string {
	left := min(m.width/2, 90)
	right := m.width - left - 3
	height := m.bodyHeight()
	middle := " " + m.cfg.Style.Faint("│") + " "
	out := []string{m.heads(left) + middle + m.tabs(right)}
	rows, pane := m.treeLines(left, height), m.paneLines(right, height)
	for n := range height {
		out = append(out, rows[n]+middle+pane[n])
	}
	return out
}

// stack is the tree with the panes below it.
func (m *Model) stack() []string {
	height := m.bodyHeight()
	out := append([]string{m.heads(m.width)}, m.treeLines(m.width, height)...)
	out = append(out, m.tabs(m.width))
	return append(out, m.paneLines(m.width, m.height-frameLines-1-height)...)
}

// header is the first line: what is shown, and how its jobs are or why that is not known.
func (m *Model) header() string {
	style := m.cfg.Style
	l := newLine(m.width).add(" weir top ", style.Bold)
	if stale := m.stale(); stale != "" {
		return l.add(" ").add(stale, style.Warn).String()
	}
	l.add(" ").add(m.title())
	if l.columns == 0 {
		return l.String()
	}
	counts := m.countsText(l.columns - 1)
	l.columns -= columnsOf(counts) + 1
	if where := "  " + clean(m.cfg.Where); m.cfg.Where != "" && columnsOf(where) < l.columns {
		l.add(where, style.Faint)
	}
	return l.String() + counts + " "
}

// countsText are the jobs by status, as far as there is room.
func (m *Model) countsText(columns int) string {
	var b strings.Builder
	for _, c := range m.counts() {
		text := " " + count(int64(c.n))
		if columns -= columnsOf(text) + 3; columns < 0 {
			break
		}
		b.WriteString("  " + m.cfg.Style.Colored(c.status, term.Symbol(c.status)) + text)
	}
	return b.String()
}

// title says which place is shown.
func (m *Model) title() string {
	switch {
	case m.here.picture == nil:
		return "reading…"
	case m.here.filter != "" && m.prompt == nil:
		return "only what has " + clean(m.here.filter)
	case m.here == m.list && m.here.full:
		return "the newest " + jobs(len(m.here.picture.tops))
	case m.here == m.list:
		return jobs(len(m.here.picture.tops))
	}
	title := jobs(len(m.here.picture.nodes))
	if tops := m.here.picture.tops; len(tops) > 0 {
		title = clean(tops[0].name()) + ", " + title
	}
	if pause := m.pause(); pause > m.cfg.Interval {
		title += fmt.Sprintf(", read every %ds", int(pause.Seconds()+1))
	}
	return title
}

// stale says since when the picture is old, and why.
func (m *Model) stale() string {
	late := m.reading && m.now.Sub(m.since) > max(patience, restOf*m.here.took)
	switch {
	case m.err != nil && m.here.at.IsZero():
		return "no picture yet: " + words(m.err)
	case m.err != nil:
		return "stale since " + term.Style{Now: m.now}.Age(m.here.at) + ": " + words(m.err)
	case late && m.here.at.IsZero():
		return "reading since " + term.Style{Now: m.now}.Age(m.since)
	case late:
		return "stale since " + term.Style{Now: m.now}.Age(m.here.at) + ": no answer yet"
	}
	return ""
}

type statusCount struct {
	status statemachine.Status
	n      int
}

// counts are the jobs by the symbol of their status, the busy ones first.
func (m *Model) counts() []statusCount {
	p := m.here.picture
	if p == nil {
		return nil
	}
	c := func(all ...statemachine.Status) statusCount {
		n := 0
		for _, s := range all {
			n += p.counts[s]
		}
		return statusCount{all[0], n}
	}
	all := []statusCount{
		c(statemachine.Failed), c(statemachine.Running), c(statemachine.Queued, statemachine.Scheduled, statemachine.Waiting),
		c(statemachine.Suspended), c(statemachine.Completed), c(statemachine.Terminated, statemachine.Terminating),
	}
	return slices.DeleteFunc(all, func(c statusCount) bool { return c.n == 0 })
}

// bottom are the line of the last action and that of the keys, or a prompt.
func (m *Model) bottom() ([]string, *tea.Cursor) {
	style := m.cfg.Style
	looks := map[tone]func(string) string{note: style.Faint, good: style.Good, bad: style.Bad, busy: style.Faint}
	if m.prompt != nil {
		label, text, at, remark, t := m.prompt.ask(m.width - 2)
		l := newLine(m.width).add(" "+label, style.Bold)
		start := m.width - l.columns
		l.add(text)
		var cursor *tea.Cursor
		if at >= 0 {
			cursor = tea.NewCursor(min(start+at, m.width-1), m.height-2)
		}
		return []string{l.String(), newLine(m.width).add(" "+remark, looks[t]).String()}, cursor
	}
	said := []string{""}
	if m.status.tone == busy || m.now.Sub(m.status.at) < statusTime {
		said = wrap(m.status.text, m.width-2)
	}
	out := []string{m.hints()}
	if len(said) > 1 {
		out[0] = newLine(m.width).add(" "+said[1], looks[m.status.tone]).String()
	}
	return append([]string{newLine(m.width).add(" "+said[0], looks[m.status.tone]).String()}, out...), nil
}

// hint is a key and what it does.
type hint struct{ key, does string }

// hints are the keys that are most of use now. Where room is scarce, the way to the help and
// the way out stay.
func (m *Model) hints() string {
	first := hint{"←", "back"}
	switch {
	case m.here.filter != "":
		first = hint{"esc", "all"}
	case m.here == m.list:
		first = hint{"→", "open"}
	}
	hints := []hint{first, {"tab", "pane"}, {"/", "find"}, {"s", "send"}, {"p", "peek"}, {"r", "retry"}, {"R", "run"}, {"x", "end"}, {"?", "help"}, {"q", "quit"}}
	columns := func() int {
		n := 0
		for _, h := range hints {
			n += columnsOf(h.key+h.does) + 3
		}
		return n - 1
	}
	for len(hints) > 2 && columns() > m.width {
		hints = slices.Delete(hints, len(hints)-3, len(hints)-2)
	}
	l := newLine(m.width)
	for _, h := range hints {
		l.space(1).add(h.key).add(" "+h.does, m.cfg.Style.Faint).space(1)
	}
	return l.String()
}
