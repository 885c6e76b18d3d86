package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/term"
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
			return s.connected(c, func(ctx context.Context, store storecall.Store) error {
				h, err := find(ctx, client.New(store), args[0])
				if err != nil {
					return err
				}
				iso := term.StyleOf(c.OutOrStdout()).ISO || s.output != "table"
				reasons, err := explain.Ask(ctx, store, h, args[0], iso)
				if err != nil {
					return err
				}
				return s.show(c, reasons, "", func(w io.Writer) error { return printReasons(w, reasons) })
			})
		},
	}
	s.formats(c, "table", "json", "yaml")
	s.watched(c)
	return c
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
