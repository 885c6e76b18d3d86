package top

import (
	"fmt"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// grid are the columns of the tree or list, from the left; each begins with its gap to the
// one before.
type grid struct{ name, second, status, load, age int }

// grid fits the columns into a width.
func (m *Model) grid(width int) grid {
	g := grid{second: min(width/4, 24), age: 5}
	if m.here == m.list {
		g.second = 15
	}
	if width >= withStatus {
		g.status = 13
	}
	if width >= withLoad {
		g.load = 18
	}
	g.name = width - g.second - g.status - g.load - g.age
	return g
}

// heads are the headings of the columns.
func (m *Model) heads(width int) string {
	faint, g := m.cfg.Style.Faint, m.grid(width)
	name, second := "   JOB", "  TYPE"
	if m.here == m.list {
		name, second = "   TREE", "  ID"
	}
	l := newLine(width).cell(name, g.name, faint).cell(second, g.second, faint)
	if g.status > 0 {
		l.cell("  STATUS", g.status, faint)
	}
	if g.load > 0 {
		l.right("WAITING", 8, faint).cell("", g.load-8)
	}
	return l.right("AGE", g.age, faint).String()
}

// treeLines are the rows on the screen.
func (m *Model) treeLines(width, height int) []string {
	out := make([]string, 0, height)
	p := m.here
	for n := p.top; n < len(p.rows) && len(out) < height; n++ {
		out = append(out, m.rowLine(p.rows[n], n == p.cursor, width))
	}
	if len(p.rows) == 0 && p.picture != nil {
		text := "   no jobs"
		if p.filter != "" {
			text = "   nothing has " + clean(p.filter) + " in it"
		}
		out = append(out, newLine(width).add(text, m.cfg.Style.Faint).String())
	}
	for len(out) < height {
		out = append(out, newLine(width).String())
	}
	return out
}

func (m *Model) rowLine(r row, selected bool, width int) string {
	style, i := m.cfg.Style, r.node.info
	status := i.Status
	if r.finished > 0 {
		status = statemachine.Completed
	}
	mark, faint, colored := " ", style.Faint, func(s string) string { return style.Colored(status, s) }
	marked := m.here.marked[i.ID] && r.finished == 0
	if marked {
		mark = "◆"
	}
	switch {
	case selected && !marked: // one look for all of the row
		mark, faint, colored = "▌", same, same
	case selected:
		faint, colored = same, same
	}
	g := m.grid(width)
	if r.finished > 0 {
		g.name = width
	}
	name := newLine(g.name).add(mark, m.unless(selected, style.Warn)).add(term.Symbol(status), colored).add(" ").add(guide(r), faint)
	rest := newLine(width - g.name)
	if r.finished > 0 {
		name.add(finishedText(r), faint)
	} else {
		look := same
		if r.context {
			look = faint
		}
		name.add(clean(r.node.name()), look)
		if text := style.Progress(i); text != "" {
			name.add("  "+text, m.unless(selected, style.Accent))
		}
		rest.cell("  "+m.second(i), g.second, faint)
		if g.status > 0 {
			rest.cell("  "+string(status), g.status, colored)
		}
		m.addLoad(rest, i, g.load, selected)
		rest.right(term.Style{Now: m.now}.Age(i.Created), g.age, faint)
	}
	if selected {
		return m.picked(name.String() + rest.String())
	}
	return name.String() + rest.String()
}

// addLoad adds how many messages wait for a job, and how full the fullest of its bounded ports is.
func (m *Model) addLoad(l *line, i *job.Info, columns int, selected bool) {
	if columns == 0 {
		return
	}
	waiting, fullest := load(i)
	if waiting == 0 && fullest.Limit == 0 {
		l.space(columns)
		return
	}
	look := m.unless(selected, m.fill(fullest.Waiting, int64(fullest.Limit)))
	if fullest.Limit == 0 {
		look = same
	}
	l.right(count(waiting), 8, look)
	if fullest.Limit > 0 {
		l.add("  ").cell(term.Gauge(fullest.Waiting, int64(fullest.Limit), columns-10), columns-10, look)
		return
	}
	l.space(columns - 8)
}

// second is the text in the second column.
func (m *Model) second(i *job.Info) string {
	switch {
	case m.here == m.list:
		return string(i.ID[:min(len(i.ID), 13)]) // its time, to the millisecond
	case i.Graph:
		return "graph"
	}
	return clean(i.Type)
}

func same(s string) string { return s }

// guide are the lines in front of a name.
func guide(r row) string {
	end := map[marker]string{leaf: "─ ", isOpen: "▾ ", isClosed: "▸ "}[r.marker]
	switch {
	case !r.below && r.marker == leaf:
		return ""
	case !r.below:
		return end
	case r.last:
		return r.stem + "└" + end
	}
	return r.stem + "├" + end
}

// finishedText says what a row of finished jobs stands for.
func finishedText(r row) string {
	ended := 0
	for _, c := range r.node.children {
		if c.settled && c.info.Status == statemachine.Terminated {
			ended++
		}
	}
	if ended == 0 {
		return count(int64(r.finished)) + " completed"
	}
	return fmt.Sprintf("%s finished, %s terminated", count(int64(r.finished)), count(int64(ended)))
}
