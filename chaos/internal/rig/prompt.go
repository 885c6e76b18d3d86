package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"

	"github.com/weirworks/weir/chaos/internal/crew"
)

const (
	promptTrees = 15
	// promptIn is less than the second after which the sweeper looks for jobs that nobody took.
	promptIn = 900 * time.Millisecond
)

// prompt starts short trees one by one while the workers have nothing else to do and nothing breaks: most of them are done before
// the sweeper would find them, or notifications are not sent.
func (r *rig) prompt(ctx context.Context) error {
	took := make([]time.Duration, promptTrees)
	for i := range took {
		var err error
		if took[i], err = shortTree(ctx, r.client); err != nil {
			return fmt.Errorf("a short tree when all is quiet: %w", err)
		}
	}
	slices.Sort(took)
	if median := took[promptTrees/2]; median > promptIn {
		r.bad(late, "half of %d short trees took %s and more when nothing else was to be done: doorbells do not ring", promptTrees, median.Round(time.Millisecond))
	}
	return nil
}

// shortTree starts a tree, waits until it is completed, says how long that took, and removes it.
func shortTree(ctx context.Context, client *job.Client) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	began := time.Now()
	h, err := client.Start(ctx, crew.LoadRow())
	if err != nil {
		return 0, err
	}
	if err := errors.Join(h.Write(ctx, "in", crew.Stamped{Pad: padding}, crew.Stamped{Pad: padding}), h.Close(ctx, "in")); err != nil {
		return 0, err
	}
	for {
		if i, err := h.Info(ctx); err != nil || i.Status == statemachine.Completed {
			break
		}
		if !pause(ctx, 10*time.Millisecond) {
			return 0, fmt.Errorf("%s is not completed: %w", h.ID(), ctx.Err())
		}
	}
	took = time.Since(began)
	if err := h.TerminateAll(ctx); err != nil {
		return 0, err
	}
	for {
		if ended, err := h.Ended(ctx); err != nil || ended {
			return took, errors.Join(err, h.Delete(ctx))
		}
		if !pause(ctx, 10*time.Millisecond) {
			return 0, fmt.Errorf("%s has not ended: %w", h.ID(), ctx.Err())
		}
	}
}
