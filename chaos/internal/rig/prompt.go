package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/statemachine"
)

const (
	promptTrees = 15
	// promptIn is less than the second after which the sweeper looks for jobs that nobody took.
	promptIn = 900 * time.Millisecond
)

// prompt starts short trees one by one while the workers have nothing else to do and nothing breaks: most of them are done before
// the sweeper would find them, or notifications are not sent.
func (r *rig) prompt(ctx context.Context) error {
	var slow []time.Duration
	for range promptTrees {
		took, err := shortTree(ctx, r.client)
		if err != nil {
			return fmt.Errorf("a short tree when all is quiet: %w", err)
		}
		if took > promptIn {
			slow = append(slow, took)
		}
		if len(slow) > promptTrees/2 {
			r.bad(late, "%d short trees took %s and more when nothing else was to be done: doorbells do not ring", len(slow), slices.Min(slow).Round(time.Millisecond))
			return nil
		}
	}
	return nil
}

// shortTree starts a tree, waits until it is completed, says how long that took, and removes it.
func shortTree(ctx context.Context, client *client.Client) (took time.Duration, err error) {
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
