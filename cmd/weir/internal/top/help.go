package top

import (
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/statemachine"
)

// helpKeys are all keys; an empty one is a gap.
var helpKeys = [][2]string{
	{"↑ ↓  j k", "move; PgUp and PgDn by a screen"},
	{"g G", "to the first, to the last"},
	{"→ Enter", "open a tree, or what is below a job"},
	{"← Esc", "close it; go up; go back to the list"},
	{"f", "to the next failed job"},
	{"/", "show only what has a text in it"},
	{},
	{"Tab  1-5", "another pane"},
	{"J K", "scroll the pane"},
	{},
	{"s", "send a message to a port"},
	{"p", "peek at what waits in a port"},
	{"r", "retry a failed job, or all that failed in a graph"},
	{"R", "ask for a run"},
	{"x", "terminate; asks before it does"},
	{},
	{"Ctrl-L", "draw the screen anew"},
	{"q  Ctrl-C", "quit"},
	{},
}

// helpLines are the overlay with all keys, in the middle of the screen.
func (m *Model) helpLines() []string {
	height := m.height - frameLines + 1
	keys := helpKeys
	if len(keys)+1 > height { // leave the gaps out
		keys = nil
		for _, h := range helpKeys {
			if h[0] != "" {
				keys = append(keys, h)
			}
		}
	}
	left := max((m.width-62)/2, 1)
	var out []string
	for range (height - len(keys) - 1) / 3 {
		out = append(out, newLine(m.width).String())
	}
	for _, h := range keys {
		out = append(out, newLine(m.width).space(left).cell(h[0], 12, m.cfg.Style.Bold).add(h[1]).String())
	}
	out = append(out, m.legend(left))
	for len(out) < height {
		out = append(out, newLine(m.width).String())
	}
	return out[:height]
}

// legend tells what the symbols stand for.
func (m *Model) legend(left int) string {
	l := newLine(m.width).space(left)
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
