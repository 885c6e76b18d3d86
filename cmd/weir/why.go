package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/cmd/weir/internal/explain"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

func newWhy(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "why JOB",
		Short: "Say in words what a job waits for, and what would move it",
		Long: `Say in words what a job waits for, and what would move it. What it waits for is followed
up to where it begins: through ports that are full or empty, to the jobs that feed or read
them, and into graphs. Of a failed job the message that the run had read last is named, and how
to take it out. Commands that would move something are shown, and not run.`,
		Example: "  weir why album-2026\n  weir why 019e1f0e.3 -o json",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.connected(c, func(ctx context.Context, store *redisstore.Store) error {
				h, err := job.NewClient(store).Find(ctx, args[0])
				if err != nil {
					return err
				}
				tree, err := h.Tree(ctx)
				if err != nil {
					return err
				}
				e := explain.NewTree(tree, time.Now())
				e.Most, e.ISO = alike, term.StyleOf(c.OutOrStdout()).ISO || s.output != "table"
				e.Called = map[job.ID]string{h.ID(): args[0]}
				if err := inform(ctx, e, store, tree, h.ID()); err != nil {
					return err
				}
				e.Poison = func(i *job.Info) (explain.Poison, bool) { return poison(ctx, store, i) }
				e.Stack = func(i *job.Info) string { return stack(ctx, store, i) }
				reasons := e.Why(h.ID())
				return s.show(c, reasons, "", func(w io.Writer) error { return printReasons(w, reasons) })
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	return c
}

// alike is how many jobs of a graph that have the same status are explained.
const alike = 5

// stack is that of the last failed run of a job, if it panicked and can be read.
func stack(ctx context.Context, store *redisstore.Store, i *job.Info) string {
	failures, err := job.NewClient(store).At(i.ID).Failures(ctx)
	if err != nil || len(failures) == 0 {
		return ""
	}
	return failures[0].Stack
}

// poison looks for the message that the last failed run of a job read last. What cannot be read is not known.
func poison(ctx context.Context, store *redisstore.Store, i *job.Info) (m explain.Poison, ok bool) {
	h := job.NewClient(store).At(i.ID)
	failures, err := h.Failures(ctx)
	if err != nil || len(failures) == 0 || failures[0].Port == "" {
		return m, false
	}
	p, _ := i.Port(port.Input, failures[0].Port)
	ahead := failures[0].Number - (p.Total - p.Waiting)
	if ahead < 0 || ahead >= p.Waiting {
		return m, false // it was taken out
	}
	m = explain.Poison{Port: p.Name, Place: int(ahead) + 1, Of: p.Waiting, Data: "…"}
	if items, err := h.Messages(ctx, port.Input, p.Name, m.Place); err == nil && len(items) == m.Place {
		m.Data = string(items[ahead].Data)
	}
	return m, true
}

// inform tells what explains a tree who could run its jobs, and what keeps them from it.
func inform(ctx context.Context, e *explain.Tree, store *redisstore.Store, tree []*job.Info, asked job.ID) (err error) {
	if e.Types, err = store.Types(ctx); err != nil {
		return err
	}
	queues, err := store.Queues(ctx)
	if err != nil {
		return err
	}
	e.Engines, e.Paused = map[string]int{}, map[string]bool{}
	for _, q := range queues {
		e.Engines[q.Name], e.Paused[q.Name] = q.Engines, q.Paused
	}
	if e.Living, err = store.Engines(ctx); err != nil {
		return err
	}
	if e.Locks, err = held(ctx, store, tree, asked); err != nil {
		return err
	}
	docs, err := component.Catalogue()
	for _, d := range docs {
		e.Components = append(e.Components, d.Type)
	}
	return err
}

// printReasons prints each reason as a sentence, those behind another indented below it, and
// what would help.
func printReasons(w io.Writer, reasons []explain.Because) error {
	style := term.StyleOf(w)
	for _, r := range reasons {
		indent := fmt.Sprintf("%*s", 2*r.Level, "")
		for n, line := range style.Wrap(term.Clean(r.Text), len(indent)+2) {
			if n > 0 {
				line = "  " + line
			}
			if _, err := fmt.Fprintln(w, indent+line); err != nil {
				return err
			}
		}
		if r.Command == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, indent+"  "+style.Faint("$ "+term.Clean(r.Command))); err != nil {
			return err
		}
	}
	return nil
}
