package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/cmd/weir/internal/explain"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

func newWhy(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:     "why JOB",
		Short:   "Say in words what a job waits for, and what would move it",
		Example: "  weir why album-2026",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, _ *job.Client, h *job.Handle) error {
				tree, err := h.Tree(ctx)
				if err != nil {
					return err
				}
				reasons := explain.NewTree(tree, time.Now()).Why(h.ID())
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
