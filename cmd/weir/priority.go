package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/job"
)

func newPriority(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "priority JOB NUMBER",
		Short: "Change when a job's turn comes among those that are ready",
		Long: `Give a job, and all below it, a priority from 0 to 1000: of the ready jobs of a queue in one
shard those of a higher one run first. 500 is the default. It holds at once, also for jobs that
are ready; a run in progress goes on. Other trees may lie in other shards, which take turns
whatever their jobs' priorities are: what is to go before all others needs a queue of its own.`,
		Example: "  weir priority album-2026 900\n  weir priority backfill 100",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usageError{fmt.Errorf("%.40q is not a number: use a priority from 0 to %d", args[1], job.MaxPriority)}
			}
			if err := job.CheckPriority(n); err != nil {
				return usageError{err}
			}
			return s.act(c, args[0], "has priority "+args[1], func(ctx context.Context, h *job.Handle) error { return h.SetPriority(ctx, n) })
		},
	}
}
