package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

func newLock(s *settings) *cobra.Command {
	var ttl, wait time.Duration
	c := &cobra.Command{
		Use:   "lock JOB",
		Short: "Keep a job from running, and print the token that unlocks it",
		Long: `Keep a job from beginning runs, for some time or until it is unlocked, and print the
token that unlocks it. The lock ends by itself after --ttl. A run in progress ends first, for
which --wait waits. Messages that the job gets meanwhile wait; it runs when it is unlocked.
The lock outlives this command.`,
		Example: "  token=$(weir lock album-2026 --ttl 10m)\n  weir state set album-2026 cursor=0\n  weir unlock album-2026 \"$token\"",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case ttl < time.Second:
				return usageError{fmt.Errorf("--ttl %s: a lock lasts a second or more", ttl)}
			case wait < 0:
				return usageError{fmt.Errorf("--wait %s: use a positive time, like 5s", wait)}
			}
			return s.with(c, args[0], func(ctx context.Context, _ *client.Client, h *client.Handle) error {
				if err := lockable(ctx, h); err != nil {
					return err
				}
				lock, err := h.Lock(job.WithContext(ctx, port.Context{port.ContextBy: actor}), ttl, wait)
				if err != nil {
					return whoLocked(ctx, h, err)
				}
				if _, err := fmt.Fprintln(c.OutOrStdout(), lock.Token()); err != nil {
					return err
				}
				fmt.Fprintf(c.ErrOrStderr(), "job %s is locked for %s\n", h.ID(), ttl)
				return nil
			})
		},
	}
	spanVar(c.Flags(), &ttl, "ttl", 10*time.Minute, "how long the lock lasts, if nobody unlocks it before, like 10m")
	spanVar(c.Flags(), &wait, "wait", 0, "how long to wait for a run in progress, or another lock, to end, like 5s")
	return c
}

// lockable refuses graphs: they have no runs that a lock could prevent.
func lockable(ctx context.Context, h *client.Handle) error {
	info, err := h.Info(ctx)
	if err == nil && info.Graph {
		err = fmt.Errorf("%w: job %s is a graph and has no runs of its own; lock the jobs in it, as weir tree %s shows them", job.ErrStatus, h.ID(), h.ID())
	}
	return err
}

// whoLocked adds to an error who holds the lock that is in the way.
func whoLocked(ctx context.Context, h *client.Handle, err error) error {
	if !errors.Is(err, job.ErrLocked) {
		return err
	}
	info, locked, other := h.Locked(ctx)
	if other != nil || !locked {
		return err
	}
	return fmt.Errorf("%w (%s); weir unlock %s --force would end it", err, term.Style{}.Lock(info), h.ID())
}

func newUnlock(s *settings) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:     "unlock JOB [TOKEN]",
		Short:   "Let a locked job run again, with the token that weir lock printed",
		Example: "  weir unlock album-2026 \"$token\"\n  weir unlock album-2026 --force",
		Args:    usage(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, args []string) error {
			if force == (len(args) == 2) {
				return usageError{errors.New("give the TOKEN that weir lock printed, or --force to end somebody else's lock")}
			}
			return s.act(c, args[0], "is unlocked", func(ctx context.Context, h *client.Handle) error {
				if force {
					return h.BreakLock(ctx)
				}
				return whoLocked(ctx, h, h.Unlock(ctx, args[1]))
			})
		},
	}
	c.Flags().BoolVar(&force, "force", false, "end the lock whoever holds it; he is told when he next uses it")
	return c
}
