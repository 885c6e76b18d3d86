package top

import (
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/trigger"
)

// view is one of the things that fill most of the screen.
type view int

const (
	viewTree view = iota
	viewGraph
	viewQueues
	viewWorkers
	viewTriggers
)

const views = 5

var viewNames = [views]string{"tree", "graph", "queues", "workers", "triggers"}

// overview is what counters say, and the queues and engines with them.
type overview struct {
	stamp
	stats *redisstore.Stats // the last; nil before it
}

// fires are the triggers.
type fires struct {
	stamp
	all []*trigger.Status
}

// show shows a view.
func (m *Model) show(v view) {
	m.zoom, m.scroll = false, 0
	if m.peek.Port != "" {
		m.peek, m.pane = job.PortRef{}, paneWhy
	}
	switch r, ok := m.here.selected(); {
	case v != viewGraph || m.here != m.list:
	case m.tree != nil && (!ok || m.tree.root.Tree() == r.node.info.ID.Tree()):
		m.here = m.tree
	case ok:
		m.enter(r.node.info.ID.Tree())
	}
	m.view = v
	switch {
	case v == viewGraph && (m.here.picture == nil || m.here.picture.drawn == nil):
		m.here.due = m.now
	case v == viewGraph:
		m.here.follow = true
	}
}

// entry is a line of a table: a queue or a type in it, an engine or a run of it, or a trigger.
type entry struct {
	id      string // finds it again
	queue   *redisstore.QueueInfo
	typ     *redisstore.ReadyType
	engine  *store.EngineInfo
	run     *store.RunningJob
	trigger *trigger.Status
	last    bool // of those below the same entry
}

// table is where the user is in a view that is a table.
type table struct {
	entries []entry
	sel     string
	cursor  int
	top     int
	order   int // which of the orders of the view
	seen    any // what the entries were made from
	by      int
}

// orders are the orders of the views that are tables.
var orders = map[view][]string{
	viewQueues:   {"name", "ready", "oldest"},
	viewWorkers:  {"host", "load", "newest"},
	viewTriggers: {"name", "next", "last"},
}

// layTable makes the entries of the table that is shown anew if there is something new, and finds the selected one again.
func (m *Model) layTable() {
	if m.view != viewQueues && m.view != viewWorkers && m.view != viewTriggers {
		return
	}
	t := &m.tabs[m.view]
	var source any = m.over.stats
	if m.view == viewTriggers {
		source = m.fire.at
	}
	if t.seen != source || t.by != t.order {
		t.seen, t.by = source, t.order
		switch m.view {
		case viewQueues:
			t.entries = m.queueEntries(orders[m.view][t.order])
		case viewWorkers:
			t.entries = m.workerEntries(orders[m.view][t.order])
		default:
			t.entries = m.triggerEntries(orders[m.view][t.order])
		}
		if n := slices.IndexFunc(t.entries, func(e entry) bool { return e.id == t.sel }); n >= 0 {
			t.cursor = n
		}
	}
	t.move(0)
	height := max(m.rowsHeight(), 1)
	t.top = min(t.top, t.cursor)
	t.top = max(t.top, t.cursor-height+1)
	t.top = max(min(t.top, len(t.entries)-height), 0)
}

// move selects the entry that many further down.
func (t *table) move(by int) {
	t.cursor = max(min(t.cursor+by, len(t.entries)-1), 0)
	if e, ok := t.selected(); ok {
		t.sel = e.id
	}
}

func (t *table) selected() (entry, bool) {
	if t.cursor >= len(t.entries) {
		return entry{}, false
	}
	return t.entries[t.cursor], true
}

// entry is the selected entry of the table that is shown, if any is.
func (m *Model) entry() (entry, bool) {
	return m.tabs[m.view].selected()
}

// tableLines are the headings and entries of a table that fit.
func (m *Model) tableLines(width, height int) []string {
	t := &m.tabs[m.view]
	read := m.over.stats != nil
	if m.view == viewTriggers {
		read = !m.fire.at.IsZero()
	}
	if len(t.entries) == 0 {
		text := map[view]string{
			viewQueues:   "no queues yet: start an engine (weir worker), or create a job",
			viewWorkers:  "no engine lives: start one, as with weir worker",
			viewTriggers: "no triggers: weir trigger add 'every weekday at 9am' --type report",
		}[m.view]
		if !read {
			text = "reading…"
		}
		return m.centered(width, height, text)
	}
	draw := map[view]func(e *entry, selected bool, width int) string{
		viewQueues: m.queueLine, viewWorkers: m.workerLine, viewTriggers: m.triggerLine,
	}[m.view]
	out := []string{draw(nil, false, width)}
	for n := t.top; n < len(t.entries) && len(out) < height; n++ {
		text := draw(&t.entries[n], n == t.cursor, width)
		if n == t.cursor {
			text = m.picked("▌" + text)
		} else {
			text = " " + text
		}
		out = append(out, text)
	}
	out[0] = " " + out[0]
	return out
}

// tableTitle is what stands in the frame of a table.
func (m *Model) tableTitle() (title, right string) {
	t := &m.tabs[m.view]
	n := 0
	for i := range t.entries {
		if t.entries[i].typ == nil && t.entries[i].run == nil {
			n++
		}
	}
	title = fmt.Sprintf("%s (%d)", viewNames[m.view], n)
	return title, "by " + orders[m.view][t.order]
}

// since is for how long something is so.
func (m *Model) ago(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return m.style().Age(at)
}
