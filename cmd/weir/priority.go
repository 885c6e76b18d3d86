package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

func newPriority(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "priority JOB NUMBER",
		Short: "Change when a job's turn comes among those that are ready",
		Long: `Give a job, and all below it, a priority from 0 to 1000: of the ready jobs of a queue those of
a higher one run first. 500 is the default. It holds at once, also for jobs that are ready; a
run in progress goes on, and a slot may begin others of the priority that it is at, in the
shard that it is in, for up to a tenth of a second before.`,
		Example: "  weir priority album-2026 900\n  weir priority backfill 100",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usageError{fmt.Errorf("%.40q is no whole number: use a priority from 0 to %d", args[1], job.MaxPriority)}
			}
			if err := job.CheckPriority(n); err != nil {
				return usageError{err}
			}
			return s.actSaying(c, args[0], func(ctx context.Context, h *client.Handle, _ *job.Info) (string, error) {
				if err := h.SetPriority(ctx, n); err != nil {
					return "", err
				}
				info, err := h.Info(ctx)
				switch {
				case err != nil:
					return "", err
				case info.Status.Final():
					return fmt.Sprintf("is %s and will not run again: priority %d changes nothing", info.Status, n), nil
				case info.Status.Settled():
					return fmt.Sprintf("has priority %d, for when it runs again: it is %s", n, info.Status), nil
				}
				return fmt.Sprintf("has priority %d", n), nil
			})
		},
	}
}
