package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// retryFlags are those of weir retry.
type retryFlags struct {
	bulkFlags
	tree, running, ignoreRepeat bool
	args, at, newName           string
	in                          time.Duration
	priority                    int

	opts   []client.RetryOption
	parsed json.RawMessage // what --args are
	timed  bool            // it is to run at a time
}

// options reads what the flags say of a retry. one tells that it is of one job, and not of a tree.
func (f *retryFlags) options(c *cobra.Command, one bool) error {
	given := c.Flags().Changed
	for _, name := range []string{"args", "rename"} {
		if given(name) && !one {
			return usageError{fmt.Errorf("--%s is for one JOB: leave it out, or retry that job alone", name)}
		}
	}
	if given("args") {
		text, err := argsText(f.args)
		if err == nil {
			err = checkArgs(text)
		}
		if err != nil {
			return usageError{err}
		}
		f.parsed = json.RawMessage(text)
		f.opts = append(f.opts, client.RetryArgs(f.parsed))
	}
	if given("at") {
		at, err := time.Parse(time.RFC3339, f.at)
		if err != nil {
			return usageError{fmt.Errorf("--at %q is not a moment: use RFC 3339, such as 2026-03-10T13:45:30Z", f.at)}
		}
		f.opts = append(f.opts, client.RetryAt(at))
	}
	if f.in < 0 {
		return usageError{fmt.Errorf("--in %s: use a time that is not negative, like 10m", f.in)}
	}
	if given("in") {
		f.opts = append(f.opts, client.RetryAfter(f.in))
	}
	if f.timed = given("at") || given("in"); f.ignoreRepeat && !f.timed {
		return usageError{errors.New("--ignore-repeat goes with --at or --in: without a time a job that repeats is tried now")}
	}
	if given("priority") {
		if err := job.CheckPriority(f.priority); err != nil {
			return usageError{err}
		}
		f.opts = append(f.opts, client.RetryPriority(f.priority))
	}
	if given("rename") {
		f.opts = append(f.opts, client.RetryName(f.newName))
	}
	if f.ignoreRepeat {
		f.opts = append(f.opts, client.IgnoreRepeat())
	}
	if f.running {
		f.opts = append(f.opts, client.RetryRunning())
	}
	return nil
}

// argsText is what --args is, or the contents of the file that it names as @FILE.
func argsText(text string) (string, error) {
	file, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return text, nil
	}
	raw, err := os.ReadFile(file) //nolint:gosec // the user names the file
	return strings.TrimSpace(string(raw)), err
}

// retry retries a job and says when it will run.
func (f *retryFlags) retry(ctx context.Context, h *client.Handle, types typeFinder) (string, error) {
	if f.parsed != nil {
		info, err := h.Info(ctx)
		if err == nil {
			err = checkComponent(ctx, types, job.New{Type: info.Type, Queue: info.Queue, Args: f.parsed})
		}
		if err != nil {
			return "", err
		}
	}
	if err := h.Retry(byUser(ctx), f.opts...); err != nil {
		return "", refused(ctx, h, statemachine.Retry, err)
	}
	info, err := h.Info(ctx)
	switch {
	case err != nil:
		return "", err
	case !f.timed:
		return willRun(info), nil
	case info.Status == statemachine.Scheduled && info.Repeat != nil && !f.ignoreRepeat:
		return fmt.Sprintf("will run at %s, as it repeats; with --ignore-repeat the time given counts", info.Next.Format(time.RFC3339)), nil
	case info.Status == statemachine.Scheduled:
		return "will run at " + info.Next.Format(time.RFC3339), nil
	}
	return willRun(info), nil
}

// retryTree retries all failed jobs of a tree.
func (f *retryFlags) retryTree(ctx context.Context, h *client.Handle) (string, error) {
	n, err := h.RetryFailed(byUser(ctx), f.opts...)
	return counted(n, "failed job") + " will run", err
}

func newRetry(s *settings) *cobra.Command {
	var f retryFlags
	c := &cobra.Command{
		Use:   "retry [JOB]",
		Short: "Give a job that failed another run, now or later, perhaps with other args",
		Long: `Give a job that failed, or whose next try is scheduled, another run: now, or when --at or --in say.
With --args, --priority and --rename it gets these, together with the run or not at all. A
running job is refused, unless --running takes its run away, and so is a queued one, unless
it waits as no engine can decode its args, and gets others with --args.

With --at or --in a job that repeats runs when its repeat says, counted from its last run,
unless --ignore-repeat is given; without them it is tried now. It repeats afterwards.` + bulkHelp + "\nOf graphs among them, the failed jobs are retried.",
		Example: "  weir retry album-2026 --tree\n  weir retry thumbs --args '{\"Width\": 320}' --in 10m\n  weir retry --type resize --newer 1h --all\n  weir retry --label customer=7 --yes",
		Args:    usage(cobra.MaximumNArgs(1)),
	}
	c.RunE = func(c *cobra.Command, args []string) error { return f.run(c, s, args) }
	f.flags(s, c)
	c.Flags().BoolVar(&f.tree, "tree", false, "all failed jobs of its tree")
	c.Flags().StringVar(&f.args, "args", "", "other parameters of the job, a `JSON` object or @FILE")
	c.Flags().StringVar(&f.at, "at", "", "run it at a `MOMENT` like 2026-03-10T13:45:30Z; this wins over --in")
	spanVar(c.Flags(), &f.in, "in", 0, "run it after this time, like 10m")
	c.Flags().IntVar(&f.priority, "priority", job.DefaultPriority, "from 0 to 1000: of the ready jobs of a queue those of a higher one run first")
	c.Flags().StringVar(&f.newName, "rename", "", "another `NAME` for the job; nodes of graphs keep theirs")
	c.Flags().BoolVar(&f.ignoreRepeat, "ignore-repeat", false, "run a job that repeats at the time given, and not when its repeat says")
	c.Flags().BoolVar(&f.running, "running", false, "also a running job: its run loses it, and nothing that it still does is stored")
	return c
}

// run is the command itself.
func (f *retryFlags) run(c *cobra.Command, s *settings, args []string) error {
	one, err := f.one(c, s, args)
	if err == nil {
		err = f.options(c, one && !f.tree)
	}
	switch {
	case err != nil:
		return err
	case one:
		return s.connected(c, func(ctx context.Context, store storecall.Store) error {
			h, err := find(ctx, client.New(store), args[0])
			if err != nil {
				return err
			}
			if f.tree {
				done, err := f.retryTree(ctx, h)
				switch {
				case err != nil:
					return err
				case s.output != "table":
					return s.did(c, h.ID(), done)
				}
				_, err = fmt.Fprintln(c.OutOrStdout(), done)
				return err
			}
			done, err := f.retry(ctx, h, store)
			if err != nil {
				return err
			}
			return s.did(c, h.ID(), done)
		})
	}
	return f.act(c, s, deed{
		verb: "Retry", on: []statemachine.Status{statemachine.Failed},
		do: func(ctx context.Context, h *client.Handle, i *job.Info) (string, error) {
			if f.tree || i.Graph {
				done, err := f.retryTree(ctx, h)
				return "goes on: " + done, err
			}
			return f.retry(ctx, h, nil)
		},
	})
}

func newFail(s *settings) *cobra.Command {
	var f bulkFlags
	var reason string
	c := &cobra.Command{
		Use:   "fail [JOB...]",
		Short: "Fail a job without another try",
		Long: `Fail a job that is queued, scheduled, waiting, suspended or running, without another try. The run of
a running job loses it: nothing that it still does is stored. What follows is what follows from
any failure: weir why says who it was, and weir retry gives the job another run.` + bulkHelp,
		Example: "  weir fail thumbs --reason 'the camera is broken'\n  weir fail --type resize --status scheduled --yes",
		Args:    usage(cobra.ArbitraryArgs),
	}
	fail := func(ctx context.Context, h *client.Handle) error {
		return refused(ctx, h, statemachine.GiveUp, h.Fail(byUser(ctx), reason))
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return f.do(c, s, args, "has failed", fail, deed{
			verb: "Fail", on: on(statemachine.GiveUp),
			do: func(ctx context.Context, h *client.Handle, _ *job.Info) (string, error) {
				return "has failed", fail(ctx, h)
			},
		})
	}
	f.flags(s, c)
	c.Flags().StringVar(&reason, "reason", "", "why, for those who look")
	return c
}
