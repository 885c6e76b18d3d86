package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// View implements tea.Model.
func (m *Model) View() tea.View {
	text, cursor := m.screen()
	if m.cfg.ASCII {
		text = term.ASCII(text)
	}
	v := tea.NewView(text)
	v.AltScreen = true
	v.Cursor = cursor
	v.MouseMode = tea.MouseModeCellMotion
	v.WindowTitle = "weir top"
	return v
}

func (m *Model) screen() (string, *tea.Cursor) {
	m.zones = m.zones[:0]
	if m.width == 0 {
		return "", nil // the size is not known yet
	}
	if m.width < minWidth || m.height < minHeight {
		return term.Fit(fmt.Sprintf("%d x %d is too small", m.width, m.height), m.width), nil
	}
	p := m.layout()
	lines := []string{m.header(p.framed)}
	if p.head > 2 {
		lines = append(lines, m.rates())
	}
	if p.head > 1 {
		lines = append(lines, m.viewTabs(len(lines)))
	}
	if m.help {
		lines = append(lines, m.helpLines(m.height-p.head-foot)...)
	} else {
		lines = append(lines, m.body(&p)...)
	}
	if q, ok := m.prompt.(interface{ box(m *Model) []string }); ok && m.prompt != nil {
		m.popUp(lines, q.box(m))
	}
	bottom, cursor := m.bottom()
	return strings.Join(append(lines, bottom...), "\n"), cursor
}

// popUp lays the box of a prompt over the screen, if there is room: what is asked is at the bottom, too.
func (m *Model) popUp(lines, box []string) {
	if len(box) == 0 || len(box) > len(lines) {
		return
	}
	if _, ok := m.prompt.(*commandPrompt); ok {
		m.lay(lines, box, 1, len(lines)-len(box))
		return
	}
	m.overlay(lines, box)
}

// body is what is between the head and the foot.
func (m *Model) body(p *places) []string {
	var left, right []string
	if p.main.h > 0 {
		left = m.mainPart(p)
	}
	if p.pane.h > 0 {
		right = m.panePart(p)
	}
	if p.pane.h == 0 || p.main.h == 0 || p.pane.x == 0 {
		return append(left, right...)
	}
	for n := range left {
		left[n] += right[n]
	}
	return left
}

// mainPart is the tree, the list, the picture or the table.
func (m *Model) mainPart(p *places) []string {
	in := p.inner(p.main, false)
	var lines []string
	var title, right string
	switch m.view {
	case viewTree:
		lines = append([]string{m.heads(in.w)}, m.treeLines(in.w, in.h-1)...)
		title, right = m.title(), m.listText(in.w/2)
	case viewGraph:
		lines = m.graphLines(in.w, in.h)
		title, right = m.title(), m.countsText(in.w/2)
	default:
		lines = m.tableLines(in.w, in.h)
		title, right = m.tableTitle()
		right = m.cfg.Style.Faint(right)
	}
	if p.framed {
		look := m.cfg.Style.Accent
		if m.stale() != "" {
			look = m.cfg.Style.Warn
		}
		return m.frame(p.main, m.cfg.Style.Bold(title), right, lines, look)
	}
	return padded(lines, in)
}

// padded are lines that fill a part of the screen.
func padded(lines []string, r rect) []string {
	for len(lines) < r.h {
		lines = append(lines, "")
	}
	for n := range lines {
		lines[n] = filled(lines[n], r.w)
	}
	return lines[:r.h]
}

// panePart is the pane, about what is selected.
func (m *Model) panePart(p *places) []string {
	r := m.paneRoom()
	title := m.paneTitle(p)
	var lines []string
	if m.view == viewTree || m.view == viewGraph {
		lines = m.paneLines(r.w, r.h)
	} else {
		lines = m.part(m.entryLines(r.w), r.h)
	}
	if !p.framed {
		return append([]string{filled(" "+title, p.pane.w)}, padded(lines, r)...)
	}
	if r.w < p.pane.w-2 {
		for n := range lines {
			lines[n] = " " + lines[n]
		}
	}
	look := m.cfg.Style.Faint
	if m.zoom {
		look = m.cfg.Style.Accent
	}
	return m.frame(p.pane, title, m.paneRight(), lines, look)
}

// paneRight is what stands at the right of the frame of the pane.
func (m *Model) paneRight() string {
	switch {
	case m.zoom && m.pane == paneLog && m.scroll == 0:
		return m.cfg.Style.Good("following") + m.cfg.Style.Faint(" · z back")
	case m.zoom:
		return m.cfg.Style.Faint("z back")
	case m.hidden > 0 && !m.stacked():
		return m.cfg.Style.Faint(fmt.Sprintf("%d more lines", m.hidden))
	}
	return ""
}

// entryLines are the pane of the entry that is selected in a table.
func (m *Model) entryLines(width int) []string {
	e, ok := m.entry()
	switch {
	case !ok:
		return nil
	case e.queue != nil:
		return m.queuePane(e.queue, e.typ, width)
	case e.engine != nil:
		return m.workerPane(e.engine, e.run, width)
	}
	return m.triggerPane(e.trigger, width)
}

// part is the part of lines that the pane is scrolled to.
func (m *Model) part(lines []string, height int) []string {
	m.hidden = max(len(lines)-height, 0)
	from := min(m.scroll, m.hidden)
	return lines[from:min(from+height, len(lines))]
}

// header is the first line: which Redis, what is wrong with it, and the totals.
func (m *Model) header(framed bool) string {
	style := m.cfg.Style
	l := newLine(m.width).add(" weir top ", m.badge)
	if stale := m.stale(); stale != "" {
		return l.add(" ").add(stale, style.Warn).String()
	}
	if !framed {
		l.add(" ").add(m.title())
	}
	if l.columns == 0 {
		return l.String()
	}
	totals := m.totals(l.columns-1, m.width >= 100)
	l.columns -= columnsOf(totals) + 1
	if where := "  " + clean(m.cfg.Where); m.cfg.Where != "" && l.columns > 12 {
		l.add(where, style.Faint)
	}
	return l.String() + totals + " "
}

// totals are what counters say of the namespace, as far as there is room.
func (m *Model) totals(columns int, wordy bool) string {
	st := m.over.stats
	if st == nil {
		return ""
	}
	active, ready := 0, 0
	for i := range st.Engines {
		active += st.Engines[i].Running
	}
	for i := range st.Queues {
		ready += st.Queues[i].Pending
	}
	style := m.cfg.Style
	var b strings.Builder
	for _, t := range []struct {
		symbol, word string
		n            int64
		look         func(string) string
		always       bool
	}{
		{"✗", "failed", st.Failed, style.Bad, false},
		{"†", strings.TrimPrefix(many(int(st.Dead), "job"), count(st.Dead)+" ") + " with dead letters", st.Dead, style.Warn, false},
		{"●", "running", int64(active), style.Accent, true},
		{"○", "ready", int64(ready), style.Warn, true},
		{"", "tree", st.Roots, style.Faint, true},
	} {
		if t.n == 0 && !t.always {
			continue
		}
		text := strings.TrimSpace(t.symbol + " " + count(t.n))
		switch {
		case t.symbol == "":
			text = many(int(t.n), t.word)
		case wordy:
			text += " " + t.word
		}
		if columns -= columnsOf(text) + 2; columns < 0 {
			break
		}
		b.WriteString("  " + t.look(text))
	}
	return b.String()
}

// viewTabs are the names of the views, with how many there are of what they list.
func (m *Model) viewTabs(y int) string {
	l := newLine(m.width)
	for v := range view(views) {
		name := viewNames[v]
		if v == viewTree && m.here == m.list && m.view == viewTree {
			name = "trees"
		}
		text := " " + strconv.Itoa(int(v)+1) + " " + name + m.tabNote(v) + " "
		look := m.cfg.Style.Faint
		if v == m.view {
			look = m.badge
			if !m.cfg.Style.Color {
				text = "[" + text[1:len(text)-1] + "]"
			}
		}
		m.zones = append(m.zones, zone{rect{m.width - l.columns, y, columnsOf(text), 1}, func() tea.Cmd { m.show(v); return nil }})
		l.add(text, look)
	}
	if n := len(m.here.marked); n > 0 && (m.view == viewTree || m.view == viewGraph) {
		l.add("   ").add("◆ "+count(int64(n))+" selected", m.cfg.Style.Warn)
	}
	return l.String()
}

// tabNote is how many queues or engines there are.
func (m *Model) tabNote(v view) string {
	st := m.over.stats
	switch {
	case st == nil || m.width < 80:
	case v == viewQueues:
		paused := 0
		for i := range st.Queues {
			if st.Queues[i].Paused {
				paused++
			}
		}
		if paused > 0 {
			return fmt.Sprintf(" %d, %d paused", len(st.Queues), paused)
		}
		return fmt.Sprintf(" %d", len(st.Queues))
	case v == viewWorkers:
		return fmt.Sprintf(" %d", len(st.Engines))
	}
	return ""
}

// title says which place is shown.
func (m *Model) title() string {
	p := m.here
	switch {
	case m.view > viewGraph:
		title, _ := m.tableTitle()
		return title
	case p.picture == nil:
		return "reading…"
	case p.filter != "" && m.prompt == nil:
		return "only what has " + clean(p.filter)
	case p == m.list && p.full:
		return "the first " + jobs(len(p.picture.tops))
	case p == m.list:
		return jobs(len(p.picture.tops))
	}
	title := jobs(len(p.picture.nodes))
	if tops := p.picture.tops; len(tops) > 0 {
		title = clean(tops[0].name()) + ", " + title
	}
	if pause := p.pause(m.cfg.Interval); pause > m.cfg.Interval {
		title += fmt.Sprintf(", read every %ds", int(pause.Seconds()+1))
	}
	return title
}

// listText says which jobs are listed in which order; of a tree, how its jobs are.
func (m *Model) listText(columns int) string {
	if m.here != m.list {
		return m.countsText(columns)
	}
	f := &m.list.which
	var parts []string
	for _, s := range f.Status {
		parts = append(parts, m.cfg.Style.Colored(s, term.Symbol(s)+" "+string(s)))
	}
	faint := m.cfg.Style.Faint
	if f.Type != "" {
		parts = append(parts, faint("type ")+clean(f.Type))
	}
	if f.Queue != "" {
		parts = append(parts, faint("queue ")+clean(f.Queue))
	}
	if f.All {
		parts = append(parts, "all jobs")
	}
	return strings.Join(append(parts, faint(orderWords[f.Order])), faint(" · "))
}

// orderWords say in which order jobs are listed.
var orderWords = map[job.Order]string{
	"": "newest first", job.Newest: "newest first", job.Oldest: "oldest first", job.LastRan: "last run first", job.FirstRan: "longest idle first",
	job.ByStatus: "by status", job.ByType: "by type",
}

// stale says since when what is shown is old, and why.
func (m *Model) stale() string {
	s, topic := &m.here.stamp, ofPlace
	switch m.view {
	case viewQueues, viewWorkers:
		s, topic = &m.over.stamp, ofStats
	case viewTriggers:
		s, topic = &m.fire.stamp, ofTriggers
	default:
	}
	late := m.reading && (m.topic == topic || m.topic == ofDetails) && m.now.Sub(m.since) > max(patience, restOf*s.took)
	switch {
	case s.err != nil && s.at.IsZero():
		return "no picture yet: " + words(s.err)
	case s.err != nil:
		return "stale since " + m.ago(s.at) + ": " + words(s.err)
	case late && s.at.IsZero():
		return "reading since " + m.ago(m.since)
	case late:
		return "stale since " + m.ago(s.at) + ": no answer yet"
	}
	return ""
}

// countsText are the jobs by status, as far as there is room.
func (m *Model) countsText(columns int) string {
	var parts []string
	for _, c := range m.counts() {
		text := " " + count(int64(c.n))
		if columns -= columnsOf(text) + 3; columns < 0 {
			break
		}
		parts = append(parts, m.cfg.Style.Colored(c.status, term.Symbol(c.status))+text)
	}
	return strings.Join(parts, "  ")
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
	looks := map[tone]func(string) string{note: style.Faint, good: style.Good, bad: style.Bad, busy: style.Accent}
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

// viewHints are the keys that are most of use in a view. Where room is scarce, those at the end of the list go first.
func (m *Model) viewHints() []hint {
	back := hint{"esc", "back"}
	switch {
	case m.zoom:
		return []hint{back, {"J K", "scroll"}, {"tab", "pane"}, {"y", "copy ID"}}
	case m.view == viewQueues:
		return []hint{back, {"p", "pause or resume"}, {"=", "limit"}, {"o", "order"}, {":", "command"}}
	case m.view == viewWorkers:
		return []hint{back, {"enter", "job"}, {"o", "order"}, {"y", "copy ID"}, {":", "command"}}
	case m.view == viewTriggers:
		return []hint{back, {"F", "fire"}, {"p", "pause or resume"}, {"enter", "last tree"}, {"o", "order"}, {"y", "copy ID"}, {":", "command"}}
	case m.view == viewGraph:
		return []hint{back, {"↑↓←→", "move"}, {"enter", "fold"}, {"r", "retry"}, {"x", "end"}, {"L", "log"}, {"s", "send"}, {"p", "peek"}, {"tab", "pane"}, {":", "command"}}
	case m.here.filter != "":
		back = hint{"esc", "all"}
	case m.here == m.list:
		return []hint{{"→", "open"}, {"/", "find"}, {"F", "status"}, {"o", "order"}, {"space", "select"}, {"r", "retry"}, {"x", "end"}, {"d", "delete"}, {"tab", "pane"}, {":", "command"}}
	}
	return []hint{back, {"/", "find"}, {"space", "select"}, {"r", "retry"}, {"x", "end"}, {"L", "log"}, {"s", "send"}, {"p", "peek"}, {"R", "run"}, {"tab", "pane"}, {":", "command"}}
}

// hints are the keys at the bottom. The way to the help and the way out stay.
func (m *Model) hints() string {
	hints := append(m.viewHints(), hint{"?", "help"}, hint{"q", "quit"})
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
		l.space(1).add(h.key, m.cfg.Style.Bold).add(" "+h.does, m.cfg.Style.Faint).space(1)
	}
	return l.String()
}
