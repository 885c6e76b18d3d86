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
)

func newWhy(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "why JOB",
		Short: "Say in words what a job waits for, and what would move it",
		Long: `Say in words what a job waits for, and what would move it. What it waits for is followed
up to where it begins: through ports that are full or empty, to the jobs that feed or read
them, and into graphs. Commands that would move something are shown, and not run.`,
		Example: "  weir why album-2026\n  weir why 019e1f0e.3 -o json",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, client *job.Client, h *job.Handle) error {
				tree, err := h.Tree(ctx)
				if err != nil {
					return err
				}
				e := explain.NewTree(tree, time.Now())
				e.Most, e.ISO = alike, term.StyleOf(c.OutOrStdout()).ISO || s.output != "table"
				e.Called = map[job.ID]string{h.ID(): args[0]}
				if err := inform(ctx, e, client, tree); err != nil {
					return err
				}
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

// inform tells what explains a tree who could run its jobs.
func inform(ctx context.Context, e *explain.Tree, client *job.Client, tree []*job.Info) (err error) {
	if e.Types, err = client.Types(ctx); err != nil {
		return err
	}
	e.Engines = map[string]int{}
	for _, i := range tree {
		if _, asked := e.Engines[i.Queue]; asked {
			continue
		}
		if e.Engines[i.Queue], err = client.Engines(ctx, i.Queue); err != nil {
			return err
		}
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
