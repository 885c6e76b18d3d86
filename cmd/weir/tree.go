package main

import (
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
			store, err := s.open(c.Context())
			if err != nil {
				return err
			}
			defer store.Close()
			h, err := job.NewClient(store).Find(c.Context(), args[0])
			if err != nil {
				return err
			}
			tree, err := h.Tree(c.Context())
			if err != nil {
				return err
			}
			if s.output == "json" {
				return printJSON(c.OutOrStdout(), tree)
			}
			return term.Tree(c.OutOrStdout(), tree, term.StyleOf(c.OutOrStdout()))
		},
	}
	s.outputFlag(c)
	return c
}
