package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
)

const (
	// waitEvery is how often WaitFor looks at the job.
	waitEvery = 25 * time.Millisecond
	// waitFor is how long Wait bears that the store does not answer.
	waitFor = time.Minute
	// lookAround is how long Wait takes at most, when its time is over, to find out what the tree is doing.
	lookAround = 2 * time.Second
	// named is how many jobs of a tree it names then.
	named = 3
)

// Wait returns when the job is completed or terminated, with its last Info; when it
// failed, with a *FailedError; or when ctx ends. If its time is over, the error says what the job, and what the jobs of
// a graph, are doing instead; errors.Is finds context.DeadlineExceeded in it.
func (h *Handle) Wait(ctx context.Context) (*job.Info, error) {
	info, err := h.WaitFor(ctx, func(i *job.Info) bool { return i.Status.Settled() || i.Status == job.Failed })
	if err != nil && info != nil && info.Graph && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return info, h.busy(ctx, err)
	}
	if err != nil || info.Status != job.Failed {
		return info, err
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return info, err
	}
	return info, failureOf(ctx, h.store, tree, info)
}

// WaitFor returns when done says so of the job, with its last Info, or when ctx ends: then the error says what
// the job is doing instead. It looks at the job some forty times a second, and bears that the store does not answer for
// a minute.
func (h *Handle) WaitFor(ctx context.Context, done func(*job.Info) bool) (*job.Info, error) {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	var last *job.Info
	for answered := time.Now(); ; {
		info, err := h.Info(ctx)
		switch {
		case job.Temporary(err) && time.Since(answered) < waitFor:
		case err != nil && ctx.Err() != nil && !errors.Is(err, job.ErrNotFound): // its time was over in the middle of the look
		case err != nil:
			return nil, err
		case done(info):
			return info, nil
		default:
			answered, last = time.Now(), info
		}
		select {
		case <-ctx.Done():
			return last, h.waited(ctx, last)
		case <-tick.C:
		}
	}
}

// waited is the error of a wait that ended with its context.
func (h *Handle) waited(ctx context.Context, last *job.Info) error {
	if last == nil {
		return fmt.Errorf("waiting for job %s, of which the store tells nothing: %w", h.id, ctx.Err())
	}
	return fmt.Errorf("waiting for job %s (%s), which is %s: %w", h.id, last.Type, doing(last), ctx.Err())
}

// doing says what a job is doing, and why.
func doing(i *job.Info) string {
	text := string(i.Status)
	switch i.Tries {
	case 0:
	case 1:
		text += " after a failed run"
	default:
		text += fmt.Sprintf(" after %d failed runs", i.Tries)
	}
	if !i.Next.IsZero() {
		text += " until " + i.Next.UTC().Format(time.RFC3339)
	}
	if reason, _, _ := strings.Cut(i.Reason, "\n"); reason != "" {
		text += ": " + reason
	}
	return text
}

// busy adds to the error of a wait for a graph what the jobs in it are doing that have not ended.
func (h *Handle) busy(ctx context.Context, waited error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookAround)
	defer cancel()
	tree, err := h.Tree(ctx)
	if err != nil {
		return waited // which says enough
	}
	inside := under(tree, h.id)
	var moving, suspended []*job.Info
	for _, i := range tree {
		switch {
		case i.Graph || i.Status.Settled() || !inside[i.ID]:
		case i.Status == job.Suspended:
			suspended = append(suspended, i)
		default:
			moving = append(moving, i)
		}
	}
	all := slices.Concat(moving, suspended)
	if len(all) == 0 {
		return waited
	}
	var texts []string
	for _, i := range all[:min(named, len(all))] {
		texts = append(texts, fmt.Sprintf("%s is %s", pathOf(tree, i.ID), doing(i)))
	}
	if more := len(all) - named; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w; in it %s", waited, strings.Join(texts, "; "))
}
