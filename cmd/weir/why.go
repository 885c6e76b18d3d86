package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

func newWhy(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "why JOB",
		Short:   "Say in words what a job waits for, and what would move it",
		Example: "  weir why album-2026",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store *redisstore.Store) error {
				h, err := job.NewClient(store).Find(ctx, args[0])
				if err != nil {
					return err
				}
				e, err := newExplainer(ctx, store, h)
				if err != nil {
					return err
				}
				reasons := e.why(e.jobs[h.ID()])
				return s.show(c, reasons, "", func(w io.Writer) error {
					for _, r := range reasons {
						if _, err := fmt.Fprintln(w, term.Clean(r.Text)); err != nil {
							return err
						}
						if r.Command != "" {
							if _, err := fmt.Fprintln(w, "  "+term.StyleOf(w).Faint(r.Command)); err != nil {
								return err
							}
						}
					}
					return nil
				})
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}

// because is one reason for a job's status.
type because struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"` // that would move it
}

// explainer knows the jobs of a tree.
type explainer struct {
	tree   []*job.Info
	jobs   map[job.ID]*job.Info
	paused map[string]bool // queues
	served map[string]bool // "<queue> <type>", by engines that live
	locks  map[job.ID]job.LockInfo
}

func newExplainer(ctx context.Context, store *redisstore.Store, h *job.Handle) (*explainer, error) {
	tree, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	e := &explainer{tree: tree, jobs: map[job.ID]*job.Info{}, paused: map[string]bool{}, served: map[string]bool{}}
	for _, i := range tree {
		e.jobs[i.ID] = i
	}
	queues, err := store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		e.paused[q.Name] = q.Paused
	}
	engines, err := store.Engines(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range engines {
		for queue := range one.Queues {
			for _, t := range one.Types {
				e.served[queue+" "+t] = true
			}
		}
	}
	e.locks, err = held(ctx, store, tree, h.ID())
	return e, err
}

func (e *explainer) why(i *job.Info) []because {
	lock, locked := e.locks[i.ID]
	if !locked {
		return e.status(i)
	}
	reasons := []because{{
		Text:    fmt.Sprintf("job %s is locked %s: it begins no run", e.path(i), lockText(lock)),
		Command: "weir unlock " + string(i.ID) + " --force",
	}}
	if i.Status == statemachine.Queued && !e.paused[i.Queue] {
		return reasons // it waits for nothing else
	}
	return append(reasons, e.status(i)...)
}

// status explains a job's status.
func (e *explainer) status(i *job.Info) []because {
	who := "job " + e.path(i)
	id := string(i.ID)
	switch i.Status {
	case statemachine.Running:
		return []because{{Text: fmt.Sprintf("%s is running, since %s", who, age(i.Ran))}}
	case statemachine.Queued:
		if e.paused[i.Queue] {
			return []because{{Text: fmt.Sprintf("%s is ready, but its queue %s is paused", who, i.Queue), Command: "weir queue resume " + i.Queue}}
		}
		text := fmt.Sprintf("%s is ready since %s and waits for an engine that serves queue %s and has type %s", who, age(i.Queued), i.Queue, i.Type)
		if i.Reason != "" {
			text += " (" + i.Reason + ")"
		}
		if !e.served[i.Queue+" "+i.Type] {
			return []because{{Text: text + "; none that lives does", Command: "weir workers"}}
		}
		return []because{{Text: text, Command: "weir queues"}}
	case statemachine.Failed:
		if i.Graph {
			return e.below(i, fmt.Sprintf("%s failed, because of a job in it", who), func(c *job.Info) bool { return c.Status == statemachine.Failed })
		}
		return []because{{Text: fmt.Sprintf("%s failed: %s", who, firstLine(i.Reason)), Command: "weir retry " + id}}
	case statemachine.Scheduled:
		return []because{{Text: fmt.Sprintf("%s waits for its time%s%s", who, next(i), tries(i)), Command: "weir run " + id}}
	case statemachine.Terminated:
		return []because{{Text: who + " is terminated", Command: "weir run " + id + " --force"}}
	case statemachine.Terminating:
		return []because{{Text: who + " is about to end: its Shutdown has not run yet"}}
	case statemachine.Completed:
		return []because{{Text: who + " is completed: it has worked on all it got"}}
	default:
	}
	if i.Graph {
		if i.Reason != "" {
			return []because{{Text: who + " is " + i.Reason, Command: e.send(i)}}
		}
		return e.below(i, who+" waits for jobs in it", func(c *job.Info) bool { return !c.Status.Settled() })
	}
	return e.asleep(i, who)
}

// asleep tells what a suspended job may wait for.
func (e *explainer) asleep(i *job.Info, who string) []because {
	if i.Blocked {
		return []because{{Text: fmt.Sprintf("%s rests: %s", who, i.Reason), Command: e.full(i.Reason)}}
	}
	var out []because
	if !i.Next.IsZero() {
		out = append(out, because{Text: fmt.Sprintf("%s waits for a timer%s", who, next(i))})
	}
	for _, p := range i.Ports {
		switch {
		case p.Dir != port.Input || p.Closed || p.Name == port.Any:
		case p.Sources > 0:
			out = append(out, because{Text: fmt.Sprintf("%s waits for messages on port %s: %d sources are open, %d messages wait", who, p.Name, p.Sources, p.Waiting)})
		case !p.Fed:
			out = append(out, because{
				Text:    fmt.Sprintf("%s waits for messages on port %s, which nobody is wired to", who, p.Name),
				Command: fmt.Sprintf("weir send %s %s MESSAGE", i.ID, p.Name),
			})
		}
	}
	for _, c := range e.tree {
		if c.Parent == i.ID && !c.Status.Settled() {
			out = append(out, because{Text: fmt.Sprintf("%s may wait for its child %s, which is %s", who, c.Name, c.Status), Command: "weir why " + string(c.ID)})
		}
	}
	if out == nil {
		out = append(out, because{Text: who + " sleeps until somebody asks for a run", Command: "weir run " + string(i.ID)})
	}
	return out
}

// below explains a graph by the jobs in it.
func (e *explainer) below(i *job.Info, text string, concerns func(*job.Info) bool) []because {
	out := []because{{Text: text}}
	for _, c := range e.tree {
		if c.Parent == i.ID && concerns(c) {
			for _, r := range e.why(c) {
				r.Text = "  " + r.Text
				out = append(out, r)
			}
		}
	}
	return out
}

// send is a command that gives an idle graph something to do.
func (e *explainer) send(i *job.Info) string {
	for _, p := range i.Ports {
		if p.Dir == port.Input && !p.Closed {
			return fmt.Sprintf("weir send %s %s MESSAGE", i.ID, p.Name)
		}
	}
	return ""
}

// full is a command that looks at the job whose port is full.
func (e *explainer) full(reason string) string {
	if _, id, ok := strings.Cut(reason, " of job "); ok {
		return "weir why " + id
	}
	return ""
}

// path is a job's names from the root down.
func (e *explainer) path(i *job.Info) string {
	name := i.Name
	if name == "" {
		name = string(i.ID)
	}
	if up := e.jobs[i.Parent]; up != nil {
		return e.path(up) + "/" + name
	}
	return name
}

func next(i *job.Info) string {
	if i.Next.IsZero() {
		return ""
	}
	return fmt.Sprintf(", which is in %s (%s)", time.Until(i.Next).Round(time.Second), i.Next.Format(time.RFC3339))
}

func tries(i *job.Info) string {
	if i.Tries == 0 {
		return ""
	}
	return fmt.Sprintf("; it has failed %d times, last with: %s", i.Tries, firstLine(i.Reason))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
