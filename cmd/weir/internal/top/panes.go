package top

import (
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// pane is one of the things that are shown of the selected job.
type pane int

const (
	paneWhy pane = iota
	panePorts
	paneEdges
	paneState
	paneLog
	panePeek // only while a port is peeked at
)

var paneNames = []string{"why", "ports", "edges", "state", "log", "peek"}

// panes are those that there are now.
func (m *Model) panes() []pane {
	all := []pane{paneWhy, panePorts, paneEdges, paneState, paneLog}
	if m.peek.Port != "" {
		all = append(all, panePeek)
	}
	return all
}

// paneTitle is what stands in the frame of the pane: the names of all panes of a job.
func (m *Model) paneTitle(p *places) string {
	if m.view != viewTree && m.view != viewGraph {
		return m.cfg.Style.Faint("details")
	}
	var b strings.Builder
	x := p.pane.x + 1
	if p.framed {
		x += 2
	}
	between := " │ "
	if p.pane.w < 52 && len(m.panes()) > int(panePeek) || p.pane.w < 38 {
		between = " "
	}
	for n, one := range m.panes() {
		text, look := paneNames[one], m.cfg.Style.Faint
		if one == m.pane {
			if look = m.cfg.Style.Bold; !m.cfg.Style.Color {
				text = "[" + text + "]"
			}
		}
		if n > 0 {
			b.WriteString(m.cfg.Style.Faint(between))
			x += columnsOf(between)
		}
		m.zones = append(m.zones, zone{rect{x, p.pane.y, columnsOf(text), 1}, func() tea.Cmd { m.pane, m.scroll = one, 0; return nil }})
		b.WriteString(look(text))
		x += columnsOf(text)
	}
	return b.String()
}

// paneLines are what is shown of the selected job, exactly that many lines.
func (m *Model) paneLines(width, height int) []string {
	var out []string
	switch p, isPort := m.prompt.(*portPrompt); {
	case isPort:
		out = m.choiceLines(p, width, height)
	case m.subject.row.node == nil:
	case m.subject.row.finished > 0:
		out = m.foldLines(width)
	default:
		if out = m.headLines(width); height < roomy {
			out = m.headLine(width)
		}
		if m.stacked() {
			out = append(out, m.allPanes(width, height-len(out))...)
		} else {
			out = append(out, m.window(m.pane, m.contents(m.pane, width), height-len(out))...)
		}
	}
	return out[:min(len(out), height)]
}

// window is the part of a pane that fits. The log is shown from its end, all others from
// their beginning. How many lines are hidden is noted, for the keys that scroll.
func (m *Model) window(p pane, lines []string, height int) []string {
	height = max(height, 0)
	hidden := max(len(lines)-height, 0)
	from := 0
	if p == m.pane {
		from, m.hidden = min(m.scroll, hidden), hidden
	}
	if p == paneLog {
		from = hidden - from
	}
	return lines[from:min(from+height, len(lines))]
}

// allPanes are all panes below each other. The one that the tabs point at gets the room
// that the others leave.
func (m *Model) allPanes(width, height int) []string {
	all := m.panes()
	contents := make([][]string, len(all))
	for n, p := range all {
		contents[n] = m.contents(p, width)
	}
	heights := m.share(contents, height-2*len(all)) // a heading and a gap each
	var out []string
	for n, p := range all {
		look := m.cfg.Style.Faint
		if p == m.pane {
			look = m.cfg.Style.Bold
		}
		rule := strings.ToUpper(paneNames[p]) + " "
		if n == len(all)-1 && len(out) >= height {
			break
		}
		out = append(out, newLine(width).add(rule, look).add(strings.Repeat("─", max(width-len(rule), 0)), m.cfg.Style.Faint).String())
		out = append(append(out, m.window(p, contents[n], heights[n])...), "")
	}
	return out
}

// share parts the lines that there are among the panes: some for each, then as many as it
// can use for the one that the tabs point at, then for the others.
func (m *Model) share(contents [][]string, room int) []int {
	heights := make([]int, len(contents))
	grant := func(n, most int) {
		more := max(min(len(contents[n])-heights[n], most, room), 0)
		heights[n] += more
		room -= more
	}
	some := room / (len(contents) + 1)
	for n := range contents {
		grant(n, some)
	}
	grant(int(m.pane), room)
	for n := range contents {
		grant(n, room)
	}
	return heights
}

func (m *Model) contents(p pane, width int) []string {
	switch p {
	case panePorts:
		return m.portLines(width)
	case paneEdges:
		return m.edgeLines(width)
	case paneState:
		return m.stateLines(width)
	case paneLog:
		return m.logLines(width)
	case paneWhy:
		return m.whyLines(width)
	default:
		return m.peekLines(width)
	}
}

// roomy is how many lines a pane has that begins with more than a line about its job.
const roomy = 12

// headLine says it in one line.
func (m *Model) headLine(width int) []string {
	i := m.subject.row.node.info
	l := newLine(width).add(term.Symbol(i.Status)+" ", func(s string) string { return m.cfg.Style.Colored(i.Status, s) })
	return []string{l.add(m.subject.row.node.path(), m.cfg.Style.Bold).add("  "+string(i.Status), m.cfg.Style.Faint).String()}
}

// headLines say which job the panes are about, and how it is.
func (m *Model) headLines(width int) []string {
	style, i := m.cfg.Style, m.subject.row.node.info
	name := m.subject.row.node.path()
	if rest := columnsOf(name) - width; rest > 0 {
		name = clean(m.subject.row.node.name())
	}
	about := []string{string(i.Status)}
	switch i.Status {
	case statemachine.Running:
		about[0] += " " + term.Style{Now: m.now}.Age(i.Ran)
	case statemachine.Queued:
		about[0] += " " + term.Style{Now: m.now}.Age(i.Queued)
	case statemachine.Scheduled, statemachine.Suspended:
		if next := (term.Style{Now: m.now}).Next(i); next != "" {
			about = append(about, next)
		}
	default:
	}
	if i.Name != "" && !i.Graph {
		about = append(about, clean(i.Type))
	}
	if i.Tries > 0 {
		about = append(about, many(i.Tries, "failure"))
	}
	if !i.Graph {
		about = append(about, many(int(i.Steps), "commit"))
	}
	if i.Queue != "" && i.Queue != job.DefaultQueue {
		about = append(about, "queue "+clean(i.Queue))
	}
	l := newLine(width).add(term.Symbol(i.Status)+" ", func(s string) string { return style.Colored(i.Status, s) })
	l.add(strings.Join(about, " · "))
	head := newLine(width).add(name, style.Bold)
	if d := m.known(); d != nil && len(d.aliases) > 0 {
		head.add("  "+clean(strings.Join(d.aliases, ", ")), style.Faint)
	}
	out := []string{
		head.String(),
		l.String(),
		newLine(width).add(shortID(i.ID, width), style.Faint).String(),
	}
	if text := style.Progress(i); text != "" {
		out = append(out, newLine(width).add(text, style.Accent).String())
	}
	if i.Reason != "" && m.pane != paneWhy && !m.stacked() {
		look := style.Faint
		if i.Status == statemachine.Failed {
			look = style.Bad
		}
		lines := wrap(brief(explain.FirstLine(i.Reason)), width)
		for _, text := range lines[:min(len(lines), 3)] {
			out = append(out, look(text))
		}
	}
	return append(out, "")
}

// shortID is an ID, cut if it must be so that commands still take it.
func shortID(id job.ID, columns int) string {
	tree, number, child := strings.Cut(string(id), ".")
	if len(id) <= columns {
		return string(id)
	}
	if tree = tree[:min(len(tree), idPrefix)]; child {
		return tree + "." + number
	}
	return tree
}

// idPrefix is how much of an ID tells it from others: its time and some chance.
const idPrefix = 18

// portLines are the ports of the job, a remark below those that have one.
func (m *Model) portLines(width int) []string {
	ports := m.subject.row.node.info.Ports
	if len(ports) == 0 {
		return []string{m.cfg.Style.Faint("no ports")}
	}
	name := width - 3*8
	if width >= 44 {
		name -= meterColumns + 3
	}
	name = min(max(name, 8), maxName)
	out := []string{newLine(width).cell("PORT", name, m.cfg.Style.Faint).right("WAIT", 8, m.cfg.Style.Faint).
		right("PASSED", 8, m.cfg.Style.Faint).right("LIMIT", 8, m.cfg.Style.Faint).String()}
	for _, p := range ports {
		out = append(out, m.portLine(p, name, width))
		if about := remark(p); about != "" {
			out = append(out, newLine(width).add("  "+about, m.cfg.Style.Faint).String())
		}
	}
	return out
}

// maxName is how wide the names in the panes get, so that their numbers stay near them.
const maxName = 44

// meterColumns is how wide the bar of a port with a limit is, and meterMost at most.
const (
	meterColumns = 8
	meterMost    = 24
)

func (m *Model) portLine(p job.PortInfo, name, width int) string {
	look := same
	if p.Limit > 0 {
		look = m.fill(p.Waiting, int64(p.Limit))
	}
	waits, limit := count(p.Waiting), "-"
	if p.Wired {
		waits = "-" // nothing ever waits in it
	}
	if p.Limit > 0 {
		limit = count(int64(p.Limit))
	}
	l := newLine(width).cell(portName(p.Dir, clean(p.Name)), name).right(waits, 8, look).right(count(p.Total), 8, m.cfg.Style.Faint).right(limit, 8, m.cfg.Style.Faint)
	if columns := min(l.columns-3, meterMost); p.Limit > 0 && columns >= meterColumns {
		l.add("  ").add(term.Gauge(p.Waiting, int64(p.Limit), columns), look)
	}
	return l.String()
}

// fill is the look of a port that holds that many of the messages that it may hold.
func (m *Model) fill(n, limit int64) func(string) string {
	switch {
	case n*100 >= limit*85:
		return m.cfg.Style.Bad
	case n*100 >= limit*60:
		return m.cfg.Style.Warn
	}
	return m.cfg.Style.Good
}

// remark is what there is to say about a port besides its numbers.
func remark(p job.PortInfo) string {
	var parts []string
	if p.Closed {
		parts = append(parts, "closed")
	}
	if p.Default != nil {
		parts = append(parts, "default "+brief(string(p.Default)))
	}
	for _, c := range p.Channels {
		parts = append(parts, "channel "+clean(c))
	}
	return strings.Join(parts, " · ")
}

// edgeLines are the wires from and to the job.
func (m *Model) edgeLines(width int) []string {
	s := m.subject
	if s.picture == nil {
		return m.missing(width)
	}
	faint := m.cfg.Style.Faint
	name := min(max(width-2*8, 8), maxName+8)
	head := func(text string) string {
		return newLine(width).cell(text, name, faint).right("WAIT", 8, faint).right("PASSED", 8, faint).String()
	}
	line := func(text string, w wire) string {
		look := same
		if w.limit > 0 {
			look = m.fill(w.waits, int64(w.limit))
		}
		return newLine(width).cell(text, name).right(count(w.waits), 8, look).right(count(w.passed), 8, faint).String()
	}
	out := []string{head("FED BY")}
	for _, w := range s.fed {
		out = append(out, line(clean(w.other)+" → "+clean(w.own), w))
	}
	if len(s.fed) == 0 {
		out = append(out, faint("nobody"))
	}
	out = append(out, "", head("FEEDS"))
	for _, w := range s.feeds {
		out = append(out, line(clean(w.own)+" → "+clean(w.other), w))
	}
	if len(s.feeds) == 0 {
		out = append(out, faint("nobody"))
	}
	return out
}

// known are the details of the job, if they are read already.
func (m *Model) known() *details {
	if m.details == nil || m.details.of.id != m.subject.row.node.info.ID {
		return nil
	}
	return m.details
}

// missing says why there are no details to show.
func (m *Model) missing(width int) []string {
	if d := m.known(); d != nil && d.err != nil {
		lines := wrap(words(d.err), width)
		for n := range lines {
			lines[n] = m.cfg.Style.Bad(lines[n])
		}
		return lines
	}
	return []string{m.cfg.Style.Faint("reading…")}
}

func (m *Model) stateLines(width int) []string {
	d := m.known()
	switch {
	case d == nil || d.state == nil && d.err != nil:
		return m.missing(width)
	case len(d.state) == 0:
		return []string{m.cfg.Style.Faint("no state")}
	}
	out := make([]string, len(d.state))
	for n, text := range d.state {
		out[n] = term.Fit(text, width)
	}
	return out
}

func (m *Model) logLines(width int) []string {
	d := m.known()
	switch {
	case d == nil || d.of.log == 0 || d.log == nil && d.err != nil:
		return m.missing(width)
	case len(d.log) == 0:
		return []string{m.cfg.Style.Faint("nothing logged yet")}
	}
	var out []string
	for _, l := range d.log {
		at := l.at.Format("15:04:05")
		who := ""
		if l.job != d.of.id {
			who = explain.Number(l.job) + " "
		}
		for n, text := range wrap(who+l.text, width-len(at)-1) {
			if l.failed {
				text = m.cfg.Style.Bad(text)
			}
			if n > 0 {
				at = strings.Repeat(" ", len(at))
			}
			out = append(out, m.cfg.Style.Faint(at)+" "+text)
		}
	}
	return out
}

func (m *Model) whyLines(width int) []string {
	if m.subject.picture == nil {
		return m.missing(width)
	}
	var out []string
	for _, b := range m.subject.why {
		in := 2 * b.Level
		for n, part := range wrap(brief(b.Text), width-in-2) {
			out = append(out, strings.Repeat(" ", in+2*min(n, 1))+part)
		}
		if b.Command != "" {
			command := clean(b.Command)
			if columnsOf(command) > width-in-2 {
				tree := m.subject.row.node.info.ID.Tree()
				command = strings.ReplaceAll(command, string(tree), shortID(tree, 0))
			}
			out = append(out, newLine(width).space(in+2).add(command, m.cfg.Style.Faint).String())
		}
	}
	return out
}

// peekLines are the messages that wait in a port.
func (m *Model) peekLines(width int) []string {
	d := m.known()
	if d == nil || d.of.peek != m.peek || d.waiting == nil && d.err != nil {
		return m.missing(width)
	}
	p, _ := m.subject.row.node.info.Port(m.peek.Dir, m.peek.Port)
	title := fmt.Sprintf("%s: %s", portName(m.peek.Dir, clean(m.peek.Port)), cmp.Or(waiting(p.Waiting, len(d.waiting)), "nothing waits"))
	if p.Wired {
		title = portName(m.peek.Dir, clean(m.peek.Port)) + ": what comes goes on at once"
	}
	out := []string{newLine(width).add(title, m.cfg.Style.Faint).String()}
	for _, one := range d.waiting {
		lines := wrap(one.line, width-2)
		if len(lines) > 2 {
			lines = one.lines
		}
		for n, text := range lines {
			lead := "  "
			if n == 0 {
				lead = "· "
			}
			out = append(out, newLine(width).add(lead+text).String())
		}
	}
	return out
}

func waiting(n int64, shown int) string {
	switch {
	case shown == 0:
		return ""
	case n > int64(shown):
		return fmt.Sprintf("%s wait; the oldest %d", count(n), shown)
	}
	return fmt.Sprintf("%s wait", count(int64(shown)))
}

// foldLines are about a row that stands for several jobs.
func (m *Model) foldLines(width int) []string {
	r := m.subject.row
	return []string{
		newLine(width).add(r.node.path(), m.cfg.Style.Bold).String(),
		newLine(width).add(finishedText(r) + " below it").String(),
		"",
		m.cfg.Style.Faint("Enter shows them"),
	}
}

// choiceLines are the ports to choose from.
func (m *Model) choiceLines(p *portPrompt, width, height int) []string {
	out := []string{newLine(width).add(p.node.path(), m.cfg.Style.Bold).String(), "", newLine(width).add(p.title, m.cfg.Style.Faint).String()}
	room := max(height-len(out), 1)
	from := max(p.chosen-room+1, 0)
	for n := from; n < min(from+room, len(p.ports)); n++ {
		one := p.ports[n]
		text := newLine(width).cell(" "+portName(one.Dir, clean(one.Name)), width-8).right(count(one.Waiting)+" ", 8).String()
		if n == p.chosen {
			text = m.picked("▌" + text[1:])
		}
		out = append(out, text)
	}
	return out
}
