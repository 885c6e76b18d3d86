package top

import (
	"strings"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/statemachine"
)

// section is a part of the help: its keys have something in common.
type section struct {
	title string
	keys  [][2]string
}

var helpSections = []section{
	{"VIEWS", [][2]string{
		{"1-5", "tree, graph, queues, workers, triggers"},
		{":", "commands: :queues, :filter failed, :pause QUEUE"},
		{"Tab", "another pane; z it fills the screen"},
		{"J K", "scroll the pane"},
		{"L", "log on the full screen, following"},
		{"Esc", "back; q  Ctrl-C  quit"},
	}},
	{"MOVE", [][2]string{
		{"↑ ↓ j k", "move; PgUp PgDn g G further"},
		{"→ Enter", "open; ← close, go up, go back"},
		{"f", "to the next failed job"},
		{"/", "show only what has a text in it"},
		{"F o", "list by status; in another order"},
		{"mouse", "click selects and opens, wheel scrolls"},
	}},
	{"ACT (asks first)", [][2]string{
		{"space a", "select several; all that are shown"},
		{"r R", "retry what failed; run now"},
		{"x d", "terminate; delete"},
		{"s p", "send to a port; peek into one"},
		{"y", "copy the ID"},
		{"Ctrl-L", "draw the screen anew"},
	}},
	{"GRAPH, QUEUES, TRIGGERS", [][2]string{
		{"↑↓←→", "graph: from box to box; Enter folds"},
		{"< >", "graph: scroll, as Shift and arrows"},
		{"p", "pause or resume a queue or trigger"},
		{"=", "limit the runs of a queue"},
		{"F", "fire a trigger now"},
		{"Enter", "jobs of a queue; tree of a run"},
	}},
}

// helpLines are the overlay with all keys: in two columns if there is room, without titles if there is little.
func (m *Model) helpLines(height int) []string {
	const column = 62
	two := m.width >= 2*column
	var blocks [][]string
	for _, s := range helpSections {
		block := []string{m.cfg.Style.Accent(s.title)}
		for _, k := range s.keys {
			block = append(block, newLine(min(column, m.width-2)).cell(k[0], 10, m.cfg.Style.Bold).add(k[1]).String())
		}
		blocks = append(blocks, append(block, ""))
	}
	var lines []string
	if two {
		for n := 0; n < len(blocks); n += 2 {
			for k := range blocks[n] {
				lines = append(lines, filled(blocks[n][k], column)+blocks[n+1][k])
			}
		}
	} else {
		lines = tight(blocks, height-2)
	}
	lines = append(lines, m.legend())
	width := 0
	for _, l := range lines {
		width = max(width, columnsOf(strings.TrimRight(l, " ")))
	}
	left := strings.Repeat(" ", max((m.width-width)/2, 1))
	var out []string
	for range max((height-len(lines))/3, 0) {
		out = append(out, "")
	}
	for _, l := range lines {
		out = append(out, left+l)
	}
	return padded(out, rect{w: m.width, h: height})
}

// tight are blocks below each other, as roomy as there are lines.
func tight(blocks [][]string, room int) []string {
	var all, keys []string
	for _, b := range blocks {
		all = append(all, b...)
		keys = append(keys, b[1:len(b)-1]...)
	}
	if len(all) <= room {
		return all
	}
	return keys[:min(len(keys), max(room, 0))]
}

// legend tells what the symbols stand for.
func (m *Model) legend() string {
	l := newLine(m.width - 2)
	for _, s := range []struct {
		status statemachine.Status
		text   string
	}{
		{statemachine.Running, "running"},
		{statemachine.Queued, "to run"},
		{statemachine.Suspended, "waits"},
		{statemachine.Completed, "completed"},
		{statemachine.Failed, "failed"},
		{statemachine.Terminated, "ended"},
	} {
		l.add(term.Symbol(s.status), func(text string) string { return m.cfg.Style.Colored(s.status, text) }).add(" " + s.text + "  ")
	}
	return l.String()
}
