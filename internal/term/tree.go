package term

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// TreeOptions say what of a tree is drawn. The zero value is for all of it, without times.
type TreeOptions struct {
	// Depth is how many levels below the root are shown; zero is for all.
	Depth int
	// Same is how many children of one job, if they are of one status, are shown; zero is for
	// all. Where more of them are finished, with all below them, none of those is. Others are shown before finished ones: as many
	// more of them as finished ones are left out for that, failed ones first.
	Same int
	// Times adds the jobs' ages, how long the runs in progress have taken so far, and when what has settled is removed.
	Times bool
	// Locks are the locks of jobs that are shown.
	Locks map[job.ID]job.LockInfo
}

// Tree draws all of a tree, see DrawTree.
func Tree(w io.Writer, tree []*job.Info, s Style) error { return DrawTree(w, tree, s, TreeOptions{}) }

// DrawTree draws jobs below their parents, one a line: name, status, number of commits, and
// for each port the messages that wait and that ever passed, and whether it is closed. Jobs
// whose parent is not among them are roots. Why a job failed or is throttled comes below it. What
// is not shown is counted by status.
func DrawTree(w io.Writer, tree []*job.Info, s Style, o TreeOptions) error {
	d := treeDrawing{style: s, options: o, names: NamesOf(tree), children: make(map[job.ID][]*job.Info)}
	known := make(map[job.ID]bool, len(tree))
	for _, i := range tree {
		known[i.ID] = true
	}
	var roots []*job.Info
	for _, i := range tree {
		if i.Parent == "" || !known[i.Parent] {
			roots = append(roots, i)
		} else {
			d.children[i.Parent] = append(d.children[i.Parent], i)
		}
	}
	d.rows = []treeRow{{cells: [columns]string{"JOB", "STATUS", "AGE", "RUN", "COMMITS", ""}}}
	for _, root := range roots {
		d.add(root, "", "", 0)
	}
	d.head()
	if d.folded {
		d.rows = append([]treeRow{{note: s.Faint(Number(int64(len(tree))) + " jobs: " + d.counts(tree))}}, d.rows...)
	}
	_, err := io.WriteString(w, d.String())
	return err
}

// The columns of a tree.
const (
	nameColumn = iota
	statusColumn
	ageColumn
	runColumn
	stepsColumn
	portsColumn
	columns
)

// treeRow is a line in columns, or a note across all of them.
type treeRow struct {
	cells [columns]string
	note  string
}

type treeDrawing struct {
	style    Style
	options  TreeOptions
	names    Names
	children map[job.ID][]*job.Info
	rows     []treeRow
	folded   bool // something is not shown
	running  bool // something runs
	closed   bool // a port is closed
}

// head completes the heads of the columns.
func (d *treeDrawing) head() {
	for n := range d.rows {
		cells := &d.rows[n].cells
		if !d.options.Times {
			cells[ageColumn] = ""
		}
		if !d.options.Times || !d.running {
			cells[runColumn] = ""
		}
	}
	ports := "PORTS waiting/total"
	if d.closed {
		ports += ", ∎ closed"
	}
	d.rows[0].cells[portsColumn] = ports
}

// add adds a job and what is below it. branch leads to the job, stem goes on below it.
func (d *treeDrawing) add(i *job.Info, branch, stem string, level int) {
	name := i.Name
	if name == "" {
		name = i.Type
	}
	row := treeRow{cells: [columns]string{
		nameColumn: d.style.Faint(d.style.Text(branch)) + d.style.Text(Clean(name)), statusColumn: d.style.Status(i.Status),
		ageColumn: d.style.Age(i.Created), stepsColumn: Number(i.Steps), portsColumn: d.ports(i),
	}}
	if i.Status == statemachine.Running && !i.Ran.IsZero() {
		d.running = true
		row.cells[runColumn] = Duration(d.style.Since(i.Ran))
	}
	d.rows = append(d.rows, row)
	shown, hidden := d.fold(d.children[i.ID], level)
	below := "   "
	if len(shown)+len(hidden) > 0 {
		below = "│  "
	}
	if i.Reason != "" {
		d.note(stem+below, d.reason(i))
	}
	if text := d.style.Progress(i); text != "" {
		d.note(stem+below, d.style.Accent(text))
	}
	if text := d.style.Next(i); text != "" {
		d.note(stem+below, d.style.Faint(text))
	}
	if lock, locked := d.options.Locks[i.ID]; locked {
		d.note(stem+below, d.style.Text(Clean("locked "+d.style.Lock(lock))))
	}
	if text := d.retention(i); text != "" {
		d.note(stem+below, d.style.Faint(text))
	}
	for n, child := range shown {
		if n < len(shown)-1 || len(hidden) > 0 {
			d.add(child, stem+"├─ ", stem+"│  ", level+1)
		} else {
			d.add(child, stem+"└─ ", stem+"   ", level+1)
		}
	}
	if len(hidden) > 0 {
		d.folded = true
		var all []*job.Info
		for _, h := range hidden {
			all = d.below(all, h)
		}
		d.note(stem+"└─ ", d.style.Faint(d.style.Text("… "+d.counts(all))))
	}
}

func (d *treeDrawing) note(branch, text string) {
	d.rows = append(d.rows, treeRow{note: d.style.Faint(d.style.Text(branch)) + text})
}

// fold parts the children of a job on some level into those to show and others.
func (d *treeDrawing) fold(children []*job.Info, level int) (shown, hidden []*job.Info) {
	if d.options.Depth > 0 && level >= d.options.Depth {
		return nil, children
	}
	if d.options.Same == 0 || len(children) <= d.options.Same {
		return children, nil
	}
	finished := make([]bool, len(children))
	ended, over := 0, 0
	rest := make(map[statemachine.Status]int) // those that are not finished
	for n, c := range children {
		if finished[n] = d.finished(c); finished[n] {
			ended++
		} else if rest[c.Status]++; rest[c.Status] > d.options.Same {
			over++
		}
	}
	room := d.rooms(rest)
	if ended > 0 && over > 0 && ended <= d.options.Same {
		spare := ended
		for _, status := range append([]statemachine.Status{statemachine.Failed, statemachine.Suspended}, statemachine.Statuses()...) {
			more := min(spare, rest[status]-room[status])
			room[status], spare = room[status]+more, spare-more
		}
	}
	locks := d.options.Same // that are shown in any case: nobody would look for one among what is folded
	for n, c := range children {
		show := ended <= d.options.Same && over == 0
		if _, locked := d.options.Locks[c.ID]; locked && locks > 0 {
			locks--
			show = true
		} else if !finished[n] {
			room[c.Status]--
			show = room[c.Status] >= 0
		}
		if show {
			shown = append(shown, c)
		} else {
			hidden = append(hidden, c)
		}
	}
	return shown, hidden
}

// rooms are how many jobs of each status are shown, of so many.
func (d *treeDrawing) rooms(of map[statemachine.Status]int) map[statemachine.Status]int {
	room := make(map[statemachine.Status]int)
	for status, n := range of {
		room[status] = min(n, d.options.Same)
	}
	return room
}

// finished tells whether a job and all below it have come to a good end.
func (d *treeDrawing) finished(i *job.Info) bool {
	if !i.Status.Settled() {
		return false
	}
	for _, c := range d.children[i.ID] {
		if !d.finished(c) {
			return false
		}
	}
	return true
}

// below adds a job and all below it to a list.
func (d *treeDrawing) below(list []*job.Info, i *job.Info) []*job.Info {
	list = append(list, i)
	for _, c := range d.children[i.ID] {
		list = d.below(list, c)
	}
	return list
}

// counts says how many of the jobs have which status.
func (d *treeDrawing) counts(jobs []*job.Info) string {
	n := make(map[statemachine.Status]int64)
	for _, i := range jobs {
		n[i.Status]++
	}
	var parts []string
	for _, status := range statemachine.Statuses() {
		if n[status] > 0 {
			parts = append(parts, Number(n[status])+" "+status.String())
		}
	}
	return strings.Join(parts, ", ")
}

// retention says when a job is removed that has settled.
func (d *treeDrawing) retention(i *job.Info) string {
	switch {
	case !d.options.Times:
		return ""
	case i.Unread:
		return "past its retention, kept until the messages of its Out ports are read"
	case i.Expires.IsZero():
		return ""
	}
	text := "removed " + d.style.In(i.Expires)
	if unread := unreadOf(i); i.Parent == "" && unread != "" {
		text += ", unless " + unread + " stay unread"
	}
	return text
}

// unreadOf are the messages in Out ports of a job, which keep a root job.
func unreadOf(i *job.Info) string {
	var parts []string
	for _, p := range i.Ports {
		if p.Dir == port.Output && p.Waiting > 0 {
			parts = append(parts, fmt.Sprintf("%s in %s", Number(p.Waiting), Clean(p.Name)))
		}
	}
	return strings.Join(parts, ", ")
}

func (d *treeDrawing) reason(i *job.Info) string {
	reason := d.style.Text(Clean(d.names.Reason(i)))
	if i.Status == statemachine.Failed {
		return d.style.render(lookOf(i.Status).style, reason)
	}
	return d.style.Faint(reason)
}

func (d *treeDrawing) ports(i *job.Info) string {
	var texts []string
	for _, p := range i.Ports {
		if job.ForErrors(&p.Spec) && len(p.Edges) == 0 && p.Total == 0 {
			continue
		}
		arrow, closed := "←", ""
		if p.Dir == port.Output {
			arrow = "→"
		}
		count := fmt.Sprintf("%s/%s", Number(p.Waiting), Number(p.Total))
		if p.Wired {
			count = Number(p.Total) // nothing ever waits in it
		}
		if p.Closed {
			d.closed, closed = true, "∎"
		}
		texts = append(texts, fmt.Sprintf("%s %s %s%s", arrow, Clean(p.Name), count, closed))
	}
	return d.style.Text(strings.Join(texts, "  "))
}

// String lays the rows out. Colours take no columns.
func (d *treeDrawing) String() string {
	var widths [columns]int
	for _, r := range d.rows {
		for c, cell := range r.cells {
			widths[c] = max(widths[c], ansi.StringWidth(cell))
		}
	}
	d.narrow(&widths)
	var b strings.Builder
	for _, r := range d.rows {
		line := r.note
		if d.style.Width > 0 {
			line = d.style.Fit(line, d.style.Width)
		}
		if line == "" {
			line = d.line(r, widths)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// narrow cuts ports and names if a tree is too wide: first the longest, in the end all.
func (d *treeDrawing) narrow(widths *[columns]int) {
	over := total(widths[:]...) - d.style.Width
	if d.style.Width == 0 {
		return
	}
	for _, step := range []struct{ column, keep int }{{portsColumn, 24}, {nameColumn, 24}, {portsColumn, 8}, {nameColumn, 12}} {
		cut := min(max(over, 0), max(0, widths[step.column]-step.keep))
		widths[step.column] -= cut
		over -= cut
	}
}

func (d *treeDrawing) line(r treeRow, widths [columns]int) string {
	var cells []string
	for c, cell := range r.cells {
		if widths[c] == 0 {
			continue
		}
		cell = d.style.Fit(cell, widths[c])
		if c == ageColumn && !d.style.ISO || c == runColumn || c == stepsColumn {
			cell = padLeft(cell, widths[c])
		} else {
			cell = Pad(cell, widths[c])
		}
		cells = append(cells, cell)
	}
	line := strings.TrimRight(strings.Join(cells, gap), " ")
	if r.cells[stepsColumn] == "COMMITS" {
		return d.style.Faint(line)
	}
	return line
}
