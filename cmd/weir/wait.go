package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// settled is what weir wait calls any end of a job.
const settled = "settled"

// ends are the statuses that a job has when it has come to an end.
var ends = []statemachine.Status{statemachine.Completed, statemachine.Failed, statemachine.Terminated}

// goals are what weir wait can wait for.
var goals = []string{
	string(statemachine.Completed), string(statemachine.Failed), string(statemachine.Terminated), string(statemachine.Suspended), settled,
}

func newWait(s *settings) *cobra.Command {
	var timeout time.Duration
	goal := &choice{value: goals[0], known: goals, set: func(string) {}}
	c := &cobra.Command{
		Use:   "wait JOB",
		Short: "Wait until a job is completed, or something else",
		Long: `Wait until a job is completed, or what --for says: failed, terminated, suspended, or
settled, which is completed, failed or terminated. A graph is terminated here when all jobs below
it are, whose runs finish first. If the job fails or is terminated, and
that was not waited for, the exit code is 4; if it takes too long, 5. With -o json the status is
printed in each case, with the errors of the job and what waits in its Out ports.`,
		Example: "  weir wait album-2026 --timeout 10m\n  weir wait album-2026 --for settled && weir tree album-2026\n  weir wait album-2026 -o json | jq .outputs",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if timeout < 0 {
				return usageError{fmt.Errorf("--timeout %s: use a positive time, or none", timeout)}
			}
			return s.with(c, args[0], func(ctx context.Context, _ *client.Client, h *client.Handle) error {
				info, err := waitAtMost(ctx, h, goal.value, timeout)
				if s.output == "json" {
					return errors.Join(err, s.waited(ctx, c, h))
				}
				if err != nil {
					return err
				}
				w := c.OutOrStdout()
				_, err = fmt.Fprintf(w, "job %s is %s\n", info.ID, term.StyleOf(w).Status(info.Status))
				return err
			})
		},
	}
	spanVar(c.Flags(), &timeout, "timeout", 0, "how long, like 30s (default: no limit)")
	c.Flags().Var(goal, "for", "`WHAT` to wait for: "+joined(goals))
	oneOfWords(c, "for", goals)
	s.formats(c, "table", "json")
	return c
}

// waitAtMost is waitFor with a limit, unless that is 0.
func waitAtMost(ctx context.Context, h *client.Handle, goal string, limit time.Duration) (*job.Info, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, timeoutError{after: limit, goal: goal})
		defer cancel()
	}
	info, err := waitFor(ctx, h, goal)
	var over timeoutError
	if err != nil && errors.As(context.Cause(ctx), &over) {
		over.doing = strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error())
		return info, over
	}
	return info, err
}

// waitedOutputs is how many messages of a port weir wait -o json prints.
const waitedOutputs = 100

// waited prints how a job is as JSON, unless it is gone or a signal has ended the wait: there is an error of that then.
func (s *settings) waited(ctx context.Context, c *cobra.Command, h *client.Handle) error {
	info, err := h.Info(ctx)
	if err != nil {
		return nil //nolint:nilerr // the wait has ended with the same error
	}
	res := result{Job: info.ID, Status: string(info.Status), Outputs: map[string][]json.RawMessage{}}
	if info.Status == statemachine.Failed {
		if _, err := h.Wait(ctx); err != nil { // it says of a graph which of its jobs failed
			res.Errors = append(res.Errors, oneLine(err))
		}
	}
	for _, p := range info.Ports {
		if p.Dir != port.Output {
			continue
		}
		all, err := h.Messages(ctx, p.Dir, p.Name, waitedOutputs)
		if err != nil {
			return err
		}
		res.Outputs[p.Name] = []json.RawMessage{}
		for _, m := range all {
			res.Outputs[p.Name] = append(res.Outputs[p.Name], m.Data)
		}
	}
	return s.show(c, res, "", nil)
}

// waitFor waits until a job has reached a goal, or cannot reach it any more by itself.
func waitFor(ctx context.Context, h *client.Handle, goal string) (*job.Info, error) {
	reached := func(status statemachine.Status) bool {
		return string(status) == goal || goal == settled && slices.Contains(ends, status)
	}
	info, err := h.WaitFor(ctx, func(i *job.Info) bool {
		return reached(i.Status) || i.Status == statemachine.Failed || i.Status == statemachine.Terminated
	})
	switch {
	case err != nil:
		return info, err
	case reached(info.Status) && info.Status == statemachine.Terminated && info.Graph:
		return info, endedBelow(ctx, h)
	case reached(info.Status):
		return info, nil
	case info.Status == statemachine.Terminated:
		return info, fmt.Errorf("%w: job %s is terminated", job.ErrFailed, info.ID)
	}
	if info, err = h.Wait(ctx); err == nil { // it was retried meanwhile
		return waitFor(ctx, h, goal)
	}
	return info, err
}

// endEvery is how often endedBelow looks; at trees which take long to look at less often.
const endEvery = 100 * time.Millisecond

// endedBelow returns when all below a terminated graph is terminated, too: runs that are in progress finish first.
func endedBelow(ctx context.Context, h *client.Handle) error {
	for {
		began := time.Now()
		ended, err := h.Ended(ctx)
		if errors.Is(err, job.ErrNotFound) {
			return nil // it was deleted, with all below it
		}
		if err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("graph %s is terminated, but not all jobs below it are yet: %w", h.ID(), ctx.Err())
		case <-time.After(max(endEvery, 5*time.Since(began))):
		}
	}
}
