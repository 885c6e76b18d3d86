package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

func joined(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func newShow(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "show JOB",
		Short:   "Show one job: status, ports, state, children, errors",
		Example: "  weir show album-2026\n  weir show 019e1f0e -o json",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, _ *client.Client, h *client.Handle) error {
				v, err := api.FullJob(ctx, h)
				if err != nil {
					return err
				}
				return s.show(c, v, string(v.ID), func(w io.Writer) error { return showJob(w, v) })
			})
		},
	}
	s.formats(c, outputs...)
	s.watched(c)
	return c
}

// childrenShown is how many children weir show lists.
const childrenShown = 20

// showJob prints a job for people.
func showJob(w io.Writer, v *api.Job) error {
	style := term.StyleOf(w)
	rows := [][2]string{{"job", string(v.ID)}}
	add := func(key, value string) {
		if value != "" {
			rows = append(rows, [2]string{key, term.Clean(value)})
		}
	}
	add("name", deref(v.Name))
	add("type", v.Type)
	add("queue", v.Queue)
	if v.Priority != nil {
		add("priority", strconv.Itoa(*v.Priority))
	}
	add("args", term.Fit(string(v.Args), valueShown))
	add("runs", runOptions(v.Options))
	rows = append(rows, [2]string{"status", style.Status(statemachine.Status(v.Status))})
	add("reason", explain.FirstLine(deref(v.Reason)))
	if v.Progress != nil {
		add("progress", v.Progress.String())
	}
	if v.Lock != nil {
		add("locked", style.Lock(*v.Lock))
	}
	add("aliases", strings.Join(v.Aliases, ", "))
	add("labels", labelText(v.Labels))
	add("sequential key", turnText(v))
	add("unique key", deref(v.UniqueKey))
	add("parent", deref(v.Parent))
	add("created", when(style, v.CreatedAt))
	add("by", deref(v.CreatedBy))
	add("last run", when(style, v.RanAt))
	add("next run", upcoming(style, v))
	add("repeats", repeats(style, v.Repeat, statemachine.Status(v.Status)))
	add("removed", expires(style, v))
	for _, e := range v.Errors {
		add("error", style.Ago(e.At)+": "+explain.FirstLine(e.Message)+e.Where)
	}
	for _, key := range slices.Sorted(maps.Keys(v.State)) {
		add("state", key+" = "+term.Fit(string(v.State[key]), valueShown))
	}
	if err := term.Record(w, rows, style); err != nil {
		return err
	}
	if err := ports(w, style, v); err != nil {
		return err
	}
	return showChildren(w, style, v)
}

// repeats says when a job runs again, unless that is over, and how often it has completed.
func repeats(style term.Style, r *api.Repeat, status statemachine.Status) string {
	if r == nil {
		return ""
	}
	text := r.Schedule + " (" + r.Understood + "), completed " + term.Times(r.Count)
	if r.Ended != nil {
		text += ", last " + when(style, r.Ended)
	}
	if r.Passed > 0 {
		text += ", " + term.Times(r.Passed) + " passed over"
	}
	if over := status.Settled() || status == statemachine.Failed; r.Scheduled != nil && !over {
		text += ", due " + r.Scheduled.Format(time.RFC3339)
	}
	return text
}

// upcoming says when a job goes on by itself.
func upcoming(style term.Style, v *api.Job) string {
	switch {
	case v.NextAt == nil:
		return ""
	case style.ISO:
		return style.Age(*v.NextAt)
	}
	return v.NextAt.UTC().Format(time.RFC3339) + ", " + style.In(*v.NextAt)
}

// turnText says which sequential key the tree of a job has, and where it is among those with it.
func turnText(v *api.Job) string {
	switch t := v.Turn; {
	case t == nil:
		return deref(v.SequentialKey)
	case t.Before > 0:
		return fmt.Sprintf("%s, which job %s holds; %s before it, %s behind", t.Key, t.Holder, term.Number(t.Before), term.Number(t.Behind))
	case t.Holder == v.ID.Tree():
		return fmt.Sprintf("%s, which it holds; %s waiting", t.Key, term.Number(t.Behind))
	default:
		return t.Key
	}
}

// runOptions says what the node of a job has in place of the options of its type.
func runOptions(o *api.RunOptions) string {
	if o == nil {
		return ""
	}
	var all []string
	if o.Tries > 0 {
		all = append(all, fmt.Sprintf("tries %d", o.Tries))
	}
	for _, one := range [][2]string{{"backoff", o.Backoff}, {"greatest backoff", o.MaxBackoff}, {"timeout", o.Timeout}} {
		if one[1] != "" {
			all = append(all, one[0]+" "+one[1])
		}
	}
	return strings.Join(all, ", ")
}

// valueShown is how many columns weir show gives the args, and each value of the state.
const valueShown = 200

// showChildren lists the children of a job.
func showChildren(w io.Writer, style term.Style, v *api.Job) error {
	children, _ := v.Children.(map[string]job.ID)
	if len(children) == 0 {
		return nil
	}
	rows := [][]string{{"CHILD", "ID"}}
	for n, name := range slices.Sorted(maps.Keys(children)) {
		if n == childrenShown {
			break
		}
		rows = append(rows, []string{term.Clean(name), term.Clean(string(children[name]))})
	}
	if err := term.Table(w, rows, style); err != nil || len(children) <= childrenShown {
		return err
	}
	_, err := fmt.Fprintf(w, "… %s more: weir tree %s\n", term.Number(int64(len(children)-childrenShown)), v.ID)
	return err
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// expires says when a job is removed that has settled.
func expires(style term.Style, v *api.Job) string {
	switch {
	case v.ExpiresAt != nil && style.ISO:
		return style.Age(*v.ExpiresAt)
	case v.ExpiresAt != nil:
		return v.ExpiresAt.UTC().Format(time.RFC3339) + ", unless it runs again or holds messages that nobody has read" + unread(v)
	case v.Unread:
		return "when the messages of its Out ports are read: it is past its retention" + unread(v)
	}
	return ""
}

// unread says which Out ports of a root job keep it.
func unread(v *api.Job) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(v.Out)) {
		if n := v.Out[name].Size; n > 0 && v.Parent == nil {
			names = append(names, fmt.Sprintf("%s in %s", term.Number(n), name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// when is a time, and how long ago that was.
func when(style term.Style, t *time.Time) string {
	switch {
	case t == nil:
		return ""
	case style.ISO:
		return style.Age(*t)
	}
	return t.UTC().Format(time.RFC3339) + ", " + style.Ago(*t)
}

func ports(w io.Writer, style term.Style, v *api.Job) error {
	if len(v.In)+len(v.Out) == 0 {
		return nil
	}
	rows := [][]string{{"PORT", "SIZE", "LIMIT", "DEFAULT", ""}}
	for _, side := range []struct {
		arrow string
		ports map[string]api.Port
	}{{"← ", v.In}, {"→ ", v.Out}} {
		for _, name := range slices.Sorted(maps.Keys(side.ports)) {
			p := side.ports[name]
			limit, value, closed := "-", "-", ""
			if p.Default != nil {
				value = term.Clean(string(*p.Default))
			}
			if p.Limit != nil {
				limit = term.Number(int64(*p.Limit))
			}
			if p.Closed {
				closed = "closed"
			}
			rows = append(rows, []string{side.arrow + term.Clean(name), term.Number(p.Size), limit, value, closed})
		}
	}
	return term.Table(w, rows, style)
}

func newPorts(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "ports JOB",
		Short:   "Show the ports of a job, with what waits in them",
		Example: "  weir ports album-2026",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, _ *client.Client, h *client.Handle) error {
				info, err := h.Info(ctx)
				if err != nil {
					return err
				}
				v := api.JobOf(info)
				return s.show(c, map[string]any{"in": v.In, "out": v.Out}, "", func(w io.Writer) error {
					return ports(w, term.StyleOf(w), v)
				})
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
}

// messages is what peek and read print as JSON.
type messages struct {
	Items []job.Message `json:"items"`
	Left  int64         `json:"left"`
}

// withPort calls fn with the job and the port that a command is given.
func (s *settings) withPort(c *cobra.Command, args []string, fn func(ctx context.Context, client *client.Client, h *client.Handle, p job.PortInfo) error) error {
	return s.with(c, args[0], func(ctx context.Context, client *client.Client, h *client.Handle) error {
		info, err := h.Info(ctx)
		if err != nil {
			return err
		}
		p, err := portOf(info, args[1])
		if err != nil {
			return err
		}
		return fn(ctx, client, h, p)
	})
}

// portOf finds a port by its name: an Out port, or else an In port.
func portOf(info *job.Info, name string) (job.PortInfo, error) {
	if p, ok := info.Port(port.Output, name); ok {
		return p, nil
	}
	if p, ok := info.Port(port.Input, name); ok {
		return p, nil
	}
	var known []string
	for _, p := range info.Ports {
		known = append(known, p.Name)
	}
	return job.PortInfo{}, usageError{fmt.Errorf("job %s has no port %q: %s", info.ID, name, port.Suggest(name, known))}
}

func newPeek(s *settings) *cobra.Command {
	var n int
	c := &cobra.Command{
		Use:     "peek JOB PORT",
		Short:   "Show the messages that wait in a port, and leave them",
		Example: "  weir peek album-2026 thumbs -n 3",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkNumber(n); err != nil {
				return err
			}
			return s.withPort(c, args, func(ctx context.Context, _ *client.Client, h *client.Handle, p job.PortInfo) error {
				items, err := h.Messages(ctx, p.Dir, p.Name, n)
				if err != nil {
					return err
				}
				return s.messages(c, items, p.Waiting-int64(len(items)))
			})
		},
	}
	c.Flags().IntVarP(&n, "number", "n", 10, "at most `N` messages")
	s.formats(c, "table", "json", "jsonl", "yaml")
	s.watched(c)
	return c
}

// messages prints messages: as a table, one a line.
func (s *settings) messages(c *cobra.Command, items []job.Message, left int64) error {
	if s.output == "jsonl" {
		for _, one := range items {
			if err := encode(c.OutOrStdout(), markedMessage{one, messageMark}, ""); err != nil {
				return err
			}
		}
		return nil
	}
	return s.show(c, messages{append([]job.Message{}, items...), max(left, 0)}, "", func(w io.Writer) error {
		for _, one := range items {
			if _, err := fmt.Fprintln(w, term.Clean(string(one.Data))); err != nil {
				return err
			}
		}
		return nil
	})
}
