package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirworks/weir/job"
)

// keeper prolongs the lease of a run while it lasts and cancels the run's context when
// the lease is lost. Short runs end before it does anything.
type keeper struct {
	store  Store
	id     job.ID
	lease  time.Duration
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	token string
	next  string    // the token after the checkpoint that is under way
	until time.Time // the lease holds at least until then
	timer *time.Timer
	done  bool
}

// keep begins to keep a lease that was granted at the time given or later.
func keep(s Store, id job.ID, token string, lease time.Duration, granted time.Time, cancel context.CancelCauseFunc) *keeper {
	k := &keeper{store: s, id: id, lease: lease, cancel: cancel, token: token, until: granted.Add(lease)}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(lease/3, k.refresh)
	return k
}

func (k *keeper) refresh() {
	k.mu.Lock()
	token, next, done, until := k.token, k.next, k.done, k.until
	k.mu.Unlock()
	if done {
		return
	}
	asked := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), until)
	err := k.store.Refresh(ctx, k.id, token, k.lease)
	if errors.Is(err, job.ErrFenced) && next != "" {
		// The checkpoint may be stored while its answer is still on the way.
		err = k.store.Refresh(ctx, k.id, next, k.lease)
	}
	cancel()

	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.done:
		return
	case err == nil:
		k.until = asked.Add(k.lease)
	case errors.Is(err, job.ErrFenced) && (k.token != token || k.next != next):
		// A checkpoint has changed the token meanwhile: the question was out of date.
	case errors.Is(err, job.ErrFenced) || time.Now().After(k.until):
		// Either another run may have the job, or Redis could not be asked for so long
		// that this must be assumed.
		k.cancel(job.ErrFenced)
		return
	}
	k.timer.Reset(k.lease / 3)
}

// change tells that a checkpoint is about to give the run a new token.
func (k *keeper) change(next string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = next
}

// changed tells that the checkpoint, begun at that time, gave the run its new token and
// lease.
func (k *keeper) changed(begun time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.token, k.next = k.next, ""
	if until := begun.Add(k.lease); until.After(k.until) {
		k.until = until
	}
}

// stop ends the keeping. It does not wait for a refresh under way, which does no harm.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.done = true
	k.timer.Stop()
}
