// Package explain says in words what jobs wait for and what their runs did.
package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Because is one reason for a job's status.
type Because struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"` // that would move it
}

// Tree knows the jobs of a tree at one moment.
type Tree struct {
	// Most is how many reasons a graph is explained with, about; zero means all.
	Most int
	// ByType calls roots by their type instead of their ID.
	ByType bool

	now      time.Time
	jobs     map[job.ID]*job.Info
	children map[job.ID][]*job.Info
}

// NewTree returns what explains the jobs of a tree.
func NewTree(tree []*job.Info, now time.Time) *Tree {
	t := &Tree{now: now, jobs: make(map[job.ID]*job.Info, len(tree)), children: make(map[job.ID][]*job.Info)}
	for _, i := range tree {
		t.jobs[i.ID] = i
		t.children[i.Parent] = append(t.children[i.Parent], i)
	}
	return t
}

// Why says why a job has its status and what would move it; nothing of a job that is not in
// the tree.
func (t *Tree) Why(id job.ID) []Because {
	if i := t.jobs[id]; i != nil {
		return t.why(i)
	}
	return nil
}

func (t *Tree) why(i *job.Info) []Because {
	who := "job " + t.Path(i)
	id := string(i.ID)
	switch i.Status {
	case statemachine.Running:
		return []Because{{Text: fmt.Sprintf("%s is running, since %s", who, term.Age(i.Ran, t.now))}}
	case statemachine.Queued:
		text := fmt.Sprintf("%s is ready since %s and waits for an engine that serves queue %s and has type %s", who, term.Age(i.Queued, t.now), i.Queue, i.Type)
		if i.Reason != "" {
			text += " (" + i.Reason + ")"
		}
		return []Because{{Text: text, Command: "weir types"}}
	case statemachine.Failed:
		if i.Graph {
			return t.below(i, fmt.Sprintf("%s failed, because of a job in it", who), func(c *job.Info) bool { return c.Status == statemachine.Failed })
		}
		return []Because{{Text: fmt.Sprintf("%s failed: %s", who, FirstLine(i.Reason)), Command: "weir retry " + id}}
	case statemachine.Scheduled:
		return []Because{{Text: fmt.Sprintf("%s waits for its time%s%s", who, t.next(i), tries(i)), Command: "weir run " + id}}
	case statemachine.Terminated:
		return []Because{{Text: who + " is terminated", Command: "weir run " + id + " --force"}}
	case statemachine.Terminating:
		return []Because{{Text: who + " is about to end: its Shutdown has not run yet"}}
	case statemachine.Completed:
		return []Because{{Text: who + " is completed: it has worked on all it got"}}
	default:
	}
	if i.Graph {
		if i.Reason != "" {
			return []Because{{Text: who + " is " + i.Reason, Command: send(i)}}
		}
		return t.below(i, who+" waits for jobs in it", func(c *job.Info) bool { return !c.Status.Settled() })
	}
	return t.asleep(i, who)
}

// asleep tells what a suspended job may wait for.
func (t *Tree) asleep(i *job.Info, who string) []Because {
	if i.Blocked {
		return []Because{{Text: fmt.Sprintf("%s rests: %s", who, i.Reason), Command: full(i.Reason)}}
	}
	var out []Because
	if !i.Next.IsZero() {
		out = append(out, Because{Text: fmt.Sprintf("%s waits for a timer%s", who, t.next(i))})
	}
	for _, p := range i.Ports {
		switch {
		case p.Dir != port.Input || p.Closed || p.Name == port.Any:
		case p.Sources > 0:
			out = append(out, Because{Text: fmt.Sprintf("%s waits for messages on port %s: %d sources are open, %d messages wait", who, p.Name, p.Sources, p.Waiting)})
		case !p.Fed:
			out = append(out, Because{
				Text:    fmt.Sprintf("%s waits for messages on port %s, which nobody is wired to", who, p.Name),
				Command: fmt.Sprintf("weir send %s %s MESSAGE", i.ID, p.Name),
			})
		}
	}
	for _, c := range t.children[i.ID] {
		if !c.Status.Settled() {
			out = append(out, Because{Text: fmt.Sprintf("%s may wait for its child %s, which is %s", who, c.Name, c.Status), Command: "weir why " + string(c.ID)})
		}
	}
	if out == nil {
		out = append(out, Because{Text: who + " sleeps until somebody asks for a run", Command: "weir run " + string(i.ID)})
	}
	return out
}

// below explains a graph by the jobs in it.
func (t *Tree) below(i *job.Info, text string, concerns func(*job.Info) bool) []Because {
	out := []Because{{Text: text}}
	more := 0
	for _, c := range t.children[i.ID] {
		switch {
		case !concerns(c):
		case t.Most > 0 && len(out) > t.Most:
			more++
		default:
			for _, r := range t.why(c) {
				r.Text = "  " + r.Text
				out = append(out, r)
			}
		}
	}
	if more > 0 {
		out = append(out, Because{Text: fmt.Sprintf("  and so on for %s more", term.Number(int64(more)))})
	}
	return out
}

// send is a command that gives an idle graph something to do.
func send(i *job.Info) string {
	for _, p := range i.Ports {
		if p.Dir == port.Input && !p.Closed {
			return fmt.Sprintf("weir send %s %s MESSAGE", i.ID, p.Name)
		}
	}
	return ""
}

// full is a command that looks at the job whose port is full.
func full(reason string) string {
	if _, id, ok := strings.Cut(reason, " of job "); ok {
		return "weir why " + id
	}
	return ""
}

// Path is a job's names from the root down.
func (t *Tree) Path(i *job.Info) string {
	name := i.Name
	switch {
	case name == "" && t.ByType:
		name = i.Type
	case name == "":
		name = string(i.ID)
	}
	if up := t.jobs[i.Parent]; up != nil {
		return t.Path(up) + "/" + name
	}
	return name
}

func (t *Tree) next(i *job.Info) string {
	if i.Next.IsZero() {
		return ""
	}
	return fmt.Sprintf(", which is in %s (%s)", i.Next.Sub(t.now).Round(time.Second), i.Next.Format(time.RFC3339))
}

func tries(i *job.Info) string {
	if i.Tries == 0 {
		return ""
	}
	return fmt.Sprintf("; it has failed %d times, last with: %s", i.Tries, FirstLine(i.Reason))
}

// FirstLine is a text up to its first line break.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
