package top

import (
	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// key does what a key is for.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case k.String() == "ctrl+c":
		return tea.Quit
	case k.String() == "ctrl+z":
		return tea.Suspend
	case k.String() == "ctrl+l":
		return tea.ClearScreen
	case m.help:
		m.help = false
		return nil
	case m.prompt != nil:
		return m.prompt.key(m, k)
	}
	if m.travel(k.String()) {
		return nil
	}
	switch k.String() {
	case "q":
		return tea.Quit
	case "?":
		m.help = true
	case "/":
		m.prompt = &filterPrompt{edit: newEditor(m.here.filter), from: m.here.sel}
	case "tab":
		m.turn(1)
	case "shift+tab":
		m.turn(-1)
	case "1", "2", "3", "4", "5":
		m.pane, m.scroll = pane(k.String()[0]-'1'), 0
	case "J", "shift+down":
		m.scrollBy(1)
	case "K", "shift+up":
		m.scrollBy(-1)
	case "f":
		m.toFailed()
	case "esc":
		m.escape()
	default:
		return m.steer(k.String())
	}
	return nil
}

// travel moves in the tree or list.
func (m *Model) travel(k string) bool {
	page := max(m.bodyHeight()-1, 1)
	switch k {
	case "up", "k":
		m.here.move(-1)
	case "down", "j":
		m.here.move(1)
		m.more()
	case "pgup", "ctrl+u":
		m.here.move(-page)
	case "pgdown", "ctrl+d":
		m.here.move(page)
		m.more()
	case "home", "g":
		m.here.move(-len(m.here.rows))
	case "end", "G":
		m.here.move(len(m.here.rows))
		m.more()
	case "right", "l":
		m.forward(false)
	case "enter", "space":
		m.forward(true)
	case "left", "h":
		m.backward()
	default:
		return false
	}
	return true
}

// more lists more trees when the end of the list is reached.
func (m *Model) more() {
	if m.here == m.list && m.here.full && m.here.cursor == len(m.here.rows)-1 && m.here.limit == len(m.here.picture.tops) {
		m.here.limit += listStep
		m.due = m.now
	}
}

// forward opens a tree, or what is below a row; what is open already is closed if toggle
// is set, or else stepped into.
func (m *Model) forward(toggle bool) {
	r, ok := m.here.selected()
	switch {
	case !ok:
	case m.here == m.list:
		m.enter(r.node.info.ID)
	case m.here.filter != "": // to the job, among all others
		m.here.filter = ""
		m.here.to(r.node)
	case r.marker == leaf:
	case r.marker == isClosed || toggle:
		m.here.toggle(r, r.marker == isClosed)
	default:
		m.here.move(1)
	}
}

// backward closes what is below a row, or goes to what the row is below, or to the list.
func (m *Model) backward() {
	r, ok := m.here.selected()
	switch {
	case m.here == m.list:
	case ok && r.marker == isOpen && m.here.filter == "":
		m.here.toggle(r, false)
	case ok && r.finished > 0:
		m.here.to(r.node)
	case ok && r.node.parent != nil:
		m.here.to(r.node.parent)
	default:
		m.back()
	}
}

// escape leaves the innermost of what the user went into.
func (m *Model) escape() {
	switch {
	case m.pane == panePeek:
		m.pane, m.peek = panePorts, job.PortRef{}
	case m.here.filter != "":
		m.here.search("")
	default:
		m.back()
	}
}

// turn shows another pane.
func (m *Model) turn(by int) {
	n := len(m.panes())
	m.pane, m.scroll = pane((int(m.pane)+by+n)%n), 0
}

// scrollBy scrolls the pane down. The log is shown from its end, so its lines are counted
// from there.
func (m *Model) scrollBy(lines int) {
	if m.pane == paneLog {
		lines = -lines
	}
	m.scroll = max(min(m.scroll+lines, m.hidden), 0)
}

func (m *Model) toFailed() {
	n := m.here.nextFailed()
	if n == nil {
		m.say(note, "nothing has failed")
		return
	}
	m.here.filter = ""
	m.here.to(n)
}

// steer does something to the selected job.
func (m *Model) steer(k string) tea.Cmd {
	r, ok := m.here.selected()
	if !ok || (k != "s" && k != "p" && k != "r" && k != "R" && k != "x") {
		return nil
	}
	if r.finished > 0 {
		m.say(note, "this row stands for several jobs: Enter shows them")
		return nil
	}
	switch n := r.node; k {
	case "s":
		m.askPort("send to which port?", n, n.named(port.Input), m.askMessage)
	case "p":
		m.askPort("peek which port?", n, n.named(port.Input, port.Output), m.startPeek)
	case "r":
		return m.retry(n)
	case "R":
		return m.run(n)
	case "x":
		m.prompt = &endPrompt{n}
	}
	return nil
}

// startPeek shows what waits in a port.
func (m *Model) startPeek(n *node, p job.PortInfo) {
	m.peek = job.PortRef{Job: n.info.ID, Dir: p.Dir, Port: p.Name}
	m.pane, m.scroll = panePeek, 0
}
