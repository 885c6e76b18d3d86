package top

import (
	tea "charm.land/bubbletea/v2"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// redrawKey draws the screen anew, and does nothing else.
const redrawKey = "ctrl+l"

// key does what a key is for.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	switch {
	case k.String() == "ctrl+c":
		return tea.Quit
	case k.String() == "ctrl+z":
		return tea.Suspend
	case k.String() == redrawKey:
		return tea.ClearScreen
	case m.help:
		m.help = false
		return nil
	case m.prompt != nil:
		return m.prompt.key(m, k)
	case k.String() == "q":
		return tea.Quit
	}
	if m.common(k.String()) {
		return nil
	}
	switch m.view {
	case viewTree:
		if m.travel(k.String()) {
			return nil
		}
	case viewGraph:
		if m.graphKey(k.String()) {
			return nil
		}
	default:
		return m.tableKey(k.String())
	}
	switch k.String() {
	case "/":
		if m.view == viewTree {
			m.prompt = &filterPrompt{edit: newEditor(m.here.filter), from: m.here.sel}
		}
	case "F":
		m.nextStatus()
	case "o":
		m.nextOrder()
	case "f":
		m.toFailed()
	case "space":
		m.mark()
	case "a":
		m.markAll()
	case "L":
		m.pane, m.scroll, m.zoom = paneLog, 0, true
	default:
		return m.steer(k.String())
	}
	return nil
}

// common does what a key is for in all views; while the pane fills the screen, the keys that move scroll it.
func (m *Model) common(k string) bool {
	page := max(m.paneRoom().h-1, 1)
	if m.zoom {
		by, scrolls := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "ctrl+u": -page, "pgdown": page, "ctrl+d": page, "home": -1 << 20, "g": -1 << 20, "end": 1 << 20, "G": 1 << 20}[k]
		if scrolls {
			m.scrollBy(by)
			return true
		}
	}
	switch k {
	case "?":
		m.help = true
	case ":":
		m.prompt = newCommandPrompt(m)
	case "1", "2", "3", "4", "5":
		m.show(view(k[0] - '1'))
	case "tab":
		m.turn(1)
	case "shift+tab":
		m.turn(-1)
	case "J", "shift+down":
		m.scrollBy(1)
	case "K", "shift+up":
		m.scrollBy(-1)
	case "z":
		m.zoom, m.scroll = !m.zoom, 0
	case "esc":
		m.escape()
	default:
		return false
	}
	return true
}

// travel moves in the tree or list.
func (m *Model) travel(k string) bool {
	page := max(m.rowsHeight()-1, 1)
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
	case "enter":
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
		m.here.due = m.now
	}
}

// forward opens a tree, or what is below a row; what is open already is closed if toggle
// is set, or else stepped into.
func (m *Model) forward(toggle bool) {
	r, ok := m.here.selected()
	switch {
	case !ok:
	case m.here == m.list:
		m.open(r.node.info.ID)
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
	case m.zoom:
		m.zoom, m.scroll = false, 0
	case m.view != viewTree && m.view != viewGraph:
		m.show(viewTree)
	case m.pane == panePeek:
		m.pane, m.peek = paneWhy, job.PortRef{}
	case len(m.here.marked) > 0:
		clear(m.here.marked)
	case m.view == viewGraph:
		m.show(viewTree)
	case m.here.filter != "":
		m.here.search("")
	case m.here == m.list && listed(&m.list.which):
		m.list.which = job.Filter{Order: m.list.which.Order}
		m.relist()
	default:
		m.back()
	}
}

// open shows the tree of a job, with the job selected.
func (m *Model) open(id job.ID) {
	m.enter(id.Tree())
	m.here.sel = key{id: id}
	m.view, m.zoom = viewTree, false
}

// turn shows another pane.
func (m *Model) turn(by int) {
	if m.view != viewTree && m.view != viewGraph {
		return
	}
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

// steer does something to the selected job, or to all that are marked.
func (m *Model) steer(k string) tea.Cmd {
	if len(m.here.marked) > 0 && (k == "r" || k == "x" || k == "d" || k == "R") {
		return m.bulk(k)
	}
	r, ok := m.here.selected()
	if !ok || (k != "s" && k != "p" && k != "r" && k != "R" && k != "x" && k != "d" && k != "y") {
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
	case "y":
		return m.copy(string(n.info.ID))
	default:
		m.confirmAct(k, n)
	}
	return nil
}

// copy puts a text into the clipboard of the terminal.
func (m *Model) copy(text string) tea.Cmd {
	m.say(good, "copied "+text)
	return tea.SetClipboard(text)
}

// startPeek shows what waits in a port.
func (m *Model) startPeek(n *node, p job.PortInfo) {
	m.peek = job.PortRef{Job: n.info.ID, Dir: p.Dir, Port: p.Name}
	m.pane, m.scroll = panePeek, 0
}
