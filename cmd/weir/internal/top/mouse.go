package top

import (
	tea "charm.land/bubbletea/v2"
)

// wheelLines is how far a notch of the wheel goes.
const wheelLines = 3

// click does what is below the mouse: it chooses a view, a pane, a row or a box. A second click on a row opens it.
func (m *Model) click(e tea.MouseClickMsg) tea.Cmd {
	if e.Button != tea.MouseLeft {
		return nil
	}
	if m.help {
		m.help = false
		return nil
	}
	if m.prompt != nil {
		return nil // a click is no answer
	}
	for _, z := range m.zones {
		if z.holds(e.X, e.Y) {
			return z.do()
		}
	}
	p := m.layout()
	in := p.inner(p.main, false)
	if p.main.h == 0 || !in.holds(e.X, e.Y) {
		return nil
	}
	if m.view == viewGraph {
		m.clickGraph(e.X-in.x, e.Y-in.y, in.w, in.h)
		return nil
	}
	n := e.Y - in.y - 1 // below the headings
	switch {
	case n < 0:
	case m.view == viewTree:
		m.clickRow(m.here.top+n, e.Mod.Contains(tea.ModCtrl) || e.Mod.Contains(tea.ModShift))
	default:
		t := &m.tabs[m.view]
		if n += t.top; n < len(t.entries) {
			t.move(n - t.cursor)
			m.scroll = 0
		}
	}
	return nil
}

// clickRow selects a row, or marks it, or opens it if it is selected already.
func (m *Model) clickRow(n int, mark bool) {
	p := m.here
	switch {
	case n >= len(p.rows):
	case mark:
		p.move(n - p.cursor)
		m.mark()
	case n == p.cursor:
		m.forward(true)
	default:
		p.move(n - p.cursor)
	}
}

// wheel scrolls what is below the mouse.
func (m *Model) wheel(e tea.MouseWheelMsg) {
	by := wheelLines
	switch e.Button {
	case tea.MouseWheelUp:
		by = -wheelLines
	case tea.MouseWheelDown:
	case tea.MouseWheelLeft, tea.MouseWheelRight:
		if m.view == viewGraph {
			if e.Button == tea.MouseWheelLeft {
				by = -by
			}
			m.here.x, m.here.follow = m.here.x+2*by, false
		}
		return
	default:
		return
	}
	p := m.layout()
	switch {
	case m.help || m.prompt != nil:
	case p.pane.holds(e.X, e.Y):
		m.scrollBy(by)
	case m.view == viewGraph && e.Mod.Contains(tea.ModShift):
		m.here.x, m.here.follow = m.here.x+2*by, false
	case m.view == viewGraph:
		m.here.y, m.here.follow = m.here.y+by, false
	case m.view == viewTree:
		m.here.move(by)
		m.more()
	default:
		m.tabs[m.view].move(by)
	}
}
