package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
)

func newTree(s *settings) *cobra.Command {
	c := &cobra.Command{
		Use:   "tree JOB",
		Short: "Draw the tree that a job belongs to",
		Long: `Draw the tree that a job belongs to: each job with its status, the number of its
commits, and for each port the messages that wait and those that ever passed.
JOB is an ID or an alias.`,
		Example: "  weir tree album-2026\n  weir tree 019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11 -o json",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return s.with(c, args[0], func(ctx context.Context, _ *job.Client, h *job.Handle) error {
				tree, err := h.Tree(ctx)
				if err != nil {
					return err
				}
				return s.show(c, treeView(tree), string(tree[0].ID), func(w io.Writer) error {
					return term.Tree(w, tree, term.StyleOf(w))
				})
			})
		},
	}
	s.formats(c, outputs...)
	return c
}
