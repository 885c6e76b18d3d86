package term

import (
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Tree draws jobs below their parents, one a line: name, status, number of commits, and
// for each port the messages that wait and that ever passed. Jobs whose parent is not
// among them are roots. Why a job failed or is parked comes below it.
func Tree(w io.Writer, tree []*job.Info, s Style) error {
	d := treeDrawing{style: s, children: make(map[job.ID][]*job.Info)}
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
	d.rows = []treeRow{{name: "JOB", status: "STATUS", steps: "COMMITS", ports: "PORTS waiting/total"}}
	for _, root := range roots {
		d.add(root, "", "")
	}
	_, err := io.WriteString(w, d.String())
	return err
}

type treeDrawing struct {
	style    Style
	children map[job.ID][]*job.Info
	rows     []treeRow
}

// treeRow is a line in columns, or a note across all of them.
type treeRow struct {
	name, status, steps, ports string
	note                       string
}

// add adds a job and what is below it. branch leads to the job, stem goes on below it.
func (d *treeDrawing) add(i *job.Info, branch, stem string) {
	name := i.Name
	if name == "" {
		name = i.Type
	}
	d.rows = append(d.rows, treeRow{
		name:   d.style.Faint(branch) + Clean(name),
		status: d.style.Status(i.Status),
		steps:  Number(i.Steps),
		ports:  d.ports(i),
	})
	children := d.children[i.ID]
	if i.Reason != "" {
		reason, _, _ := strings.Cut(i.Reason, "\n")
		below := "   "
		if len(children) > 0 {
			below = "│  "
		}
		d.rows = append(d.rows, treeRow{note: d.style.Faint(stem+below) + d.reason(i, Clean(reason))})
	}
	for n, child := range children {
		if n < len(children)-1 {
			d.add(child, stem+"├─ ", stem+"│  ")
		} else {
			d.add(child, stem+"└─ ", stem+"   ")
		}
	}
}

func (d *treeDrawing) reason(i *job.Info, reason string) string {
	if i.Status == statemachine.Failed {
		return d.style.render(lookOf(i.Status).style, reason)
	}
	return d.style.Faint(reason)
}

func (d *treeDrawing) ports(i *job.Info) string {
	var texts []string
	for _, p := range i.Ports {
		arrow := "←"
		if p.Dir == port.Output {
			arrow = "→"
		}
		count := fmt.Sprintf("%s/%s", Number(p.Waiting), Number(p.Total))
		if p.Wired {
			count = Number(p.Total) // nothing ever waits in it
		}
		texts = append(texts, fmt.Sprintf("%s %s %s", arrow, Clean(p.Name), count))
	}
	return strings.Join(texts, "  ")
}

// String lays the rows out. Colours take no columns.
func (d *treeDrawing) String() string {
	var name, status, steps int
	for _, r := range d.rows {
		name = max(name, lipgloss.Width(r.name))
		status = max(status, lipgloss.Width(r.status))
		steps = max(steps, lipgloss.Width(r.steps))
	}
	var b strings.Builder
	for n, r := range d.rows {
		line := r.note
		if line == "" {
			line = pad(r.name, name) + "  " + pad(r.status, status) + "  " + padLeft(r.steps, steps) + "  " + r.ports
		}
		if line = strings.TrimRight(line, " "); n == 0 {
			line = d.style.Faint(line)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
