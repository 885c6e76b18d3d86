package job

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Handle acts on one job from outside of its runs. It holds no state of the job: every
// call asks the store. Methods on a job that is gone return ErrNotFound.
type Handle struct {
	store   Store
	id      ID
	created bool
}

// ID returns the job's ID.
func (h *Handle) ID() ID { return h.id }

// Created tells whether the Start that returned this handle created the tree, rather
// than found it under its alias.
func (h *Handle) Created() bool { return h.created }

// Info returns what is known of the job now.
func (h *Handle) Info(ctx context.Context) (*Info, error) { return h.store.Info(ctx, h.id) }

// Tree returns all jobs of the job's tree ordered by number, the root first.
func (h *Handle) Tree(ctx context.Context) ([]*Info, error) { return h.store.Tree(ctx, h.id) }

// State returns the job's state: the given keys, or all of it when none is given.
func (h *Handle) State(ctx context.Context, keys ...string) (map[string]json.RawMessage, error) {
	return h.store.State(ctx, h.id, keys...)
}

// Failures returns the job's recorded errors, newest first.
func (h *Handle) Failures(ctx context.Context) ([]Failure, error) {
	return h.store.Failures(ctx, h.id)
}

// Logs returns the last entries that runs of the job logged, oldest first.
func (h *Handle) Logs(ctx context.Context, limit int) ([]LogEntry, error) {
	return h.store.Logs(ctx, h.id, limit)
}

// Write appends messages to an In port of the job, each encoded as JSON, and wakes it.
func (h *Handle) Write(ctx context.Context, in string, messages ...any) error {
	w := Write{Dir: port.Input, Port: in}
	for _, m := range messages {
		raw, err := port.Encode(m)
		if err != nil {
			return fmt.Errorf("writing to port %q of job %s: %w", in, h.id, err)
		}
		w.Items = append(w.Items, raw)
	}
	return h.store.Write(ctx, h.id, w)
}

// Close ends an In port of the job: when what it holds is read, it is done.
func (h *Handle) Close(ctx context.Context, in string) error {
	return h.store.ClosePort(ctx, h.id, port.Input, in)
}

// Peek returns up to n of the oldest messages of an Out port without removing them.
func (h *Handle) Peek(ctx context.Context, out string, n int) ([]json.RawMessage, error) {
	items, _, err := h.store.Peek(ctx, h.id, port.Output, out, n)
	return items, err
}

// Read removes the oldest message of an Out port and decodes it into v. ok is false
// when there was none.
func (h *Handle) Read(ctx context.Context, out string, v any) (ok bool, err error) {
	// First look, then remove what was seen: a reply that is lost on the way loses no message.
	token := rand.Text()
	for {
		items, head, err := h.store.Peek(ctx, h.id, port.Output, out, 1)
		if err != nil || len(items) == 0 {
			return false, err
		}
		// Decode first: a message that v cannot hold stays in the port.
		if err := port.Decode(items[0], v); err != nil {
			return false, fmt.Errorf("reading port %q of job %s: %w", out, h.id, err)
		}
		err = h.store.Take(ctx, h.id, Take{Dir: port.Output, Port: out, Head: head, N: 1}, token)
		if !errors.Is(err, ErrMoved) {
			return err == nil, err
		}
	}
}

// Run asks for a run that begins after this call, now, whatever the job waits for. A
// failed or terminated job needs Retry or Force.
func (h *Handle) Run(ctx context.Context) error {
	return h.store.Apply(ctx, h.id, statemachine.Run)
}

// Retry gives a failed job another run.
func (h *Handle) Retry(ctx context.Context) error {
	return h.store.Apply(ctx, h.id, statemachine.Retry)
}

// Force is Run for failed and terminated jobs too.
func (h *Handle) Force(ctx context.Context) error {
	return h.store.Apply(ctx, h.id, statemachine.Force)
}

// RetryFailed retries every failed job of the tree that has a worker, and returns how many.
func (h *Handle) RetryFailed(ctx context.Context) (int, error) {
	tree, err := h.Tree(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, i := range tree {
		if i.Status != statemachine.Failed || i.Graph {
			continue
		}
		if err := h.store.Apply(ctx, i.ID, statemachine.Retry); err != nil && !errors.Is(err, ErrStatus) {
			return n, err
		}
		n++
	}
	return n, nil
}

// Terminate asks the job to end; a run in progress finishes first.
func (h *Handle) Terminate(ctx context.Context) error {
	return h.store.Apply(ctx, h.id, statemachine.Terminate)
}

// waitEvery is how often Wait looks.
const waitEvery = 25 * time.Millisecond

// Wait returns when the job is completed or terminated, with its last Info; when it
// failed, with a *FailedError; or when ctx ends.
func (h *Handle) Wait(ctx context.Context) (*Info, error) {
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		info, err := h.Info(ctx)
		if err != nil {
			return nil, err
		}
		switch {
		case info.Status.Settled():
			return info, nil
		case info.Status == statemachine.Failed:
			tree, err := h.Tree(ctx)
			if err != nil {
				return info, err
			}
			if tree[0].ID == h.id {
				return info, failureOf(ctx, h.store, tree)
			}
			return info, failureOf(ctx, h.store, append([]*Info{info}, nil...))
		}
		select {
		case <-ctx.Done():
			return info, ctx.Err()
		case <-tick.C:
		}
	}
}
