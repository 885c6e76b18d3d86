package rig

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

const (
	// ownQueue is a queue that no worker serves: its jobs are the harness's to run.
	ownQueue = "rig"
	// lost lease and good lease of the two runs of an impostor.
	lostLease = 200 * time.Millisecond
	goodLease = 30 * time.Second
	// whoKey is the key of the state that says whose commit was the last.
	whoKey = "who"
)

// impostor begins a run of a job and lets its lease end; when the job has another run, it
// commits the first one, which must be refused, and then the second, which must hold.
func (r *rig) impostor(ctx context.Context) {
	h := r.start(ctx, r.name("impostor"), job.Single(&crew.Once{}, ownQueue))
	if h == nil {
		return
	}
	for ctx.Err() == nil {
		first, second := rand.Text(), rand.Text()
		if !r.begin(ctx, h, first, lostLease) || !r.begin(ctx, h, second, goodLease) {
			return
		}
		err, ok := r.commit(ctx, h, first)
		if ok && !errors.Is(err, job.ErrFenced) {
			r.bad(fenceViolations, "job %s: the commit of a run that was given up, while it has another one: %v instead of a refusal", h.ID(), err)
		}
		if err, ok = r.commit(ctx, h, second); ok && err != nil {
			r.bad(fenceViolations, "job %s: the commit of its run is refused: %v", h.ID(), err)
		}
		state, err := h.State(ctx, whoKey)
		if want := fmt.Sprintf("%q", second); ok && err == nil && string(state[whoKey]) != want {
			r.bad(wrongState, "job %s: its state is of %s, and its last run was %s", h.ID(), state[whoKey], want)
		}
		r.count(fenceProbes, 1)
	}
	if err := h.Terminate(context.WithoutCancel(ctx)); err != nil {
		r.bad(trouble, "ending job %s: %v", h.ID(), err)
	}
	if end := rand.Text(); r.begin(ctx, h, end, goodLease) {
		_, _ = r.commitAs(ctx, h, end, statemachine.Shutdown) // else it is stuck, which is seen
	}
}

// begin begins a run, when the job is ready for one.
func (r *rig) begin(ctx context.Context, h *client.Handle, token string, lease time.Duration) bool {
	return r.insist(ctx, "beginning a run of "+string(h.ID()), func(ctx context.Context) error {
		_, err := r.store.Begin(ctx, h.ID(), store.Begin{Token: token, Lease: lease, Batch: 1, Bytes: 1})
		return err
	})
}

func (r *rig) commit(ctx context.Context, h *client.Handle, token string) (refused error, heard bool) {
	return r.commitAs(ctx, h, token, statemachine.Requeue)
}

// commitAs commits a run that has set a key of the state, and returns why that was refused, if
// it was heard.
func (r *rig) commitAs(ctx context.Context, h *client.Handle, token string, outcome statemachine.Event) (refused error, heard bool) {
	delta := store.Delta{
		Job: h.ID(), Token: token, Outcome: outcome,
		Set: map[string]json.RawMessage{whoKey: json.RawMessage(fmt.Sprintf("%q", token))},
	}
	heard = r.insist(ctx, "committing a run of "+string(h.ID()), func(ctx context.Context) error {
		all, err := r.store.Commit(ctx, []store.Tx{{Deltas: []store.Delta{delta}}})
		if err == nil {
			refused = all[0].Refused
		}
		return err
	})
	return refused, heard
}
