package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirworks/weir/job"
)

// leaseKeeper prolongs the lease of the run that a turn is at, while it lasts, and cancels the run's
// context when the lease is lost. Short runs end before it does anything.
type leaseKeeper struct {
	store Store
	lease time.Duration

	mu     sync.Mutex
	cancel context.CancelCauseFunc // of the run; nil: there is none, or it has lost its job
	id     job.ID
	token  string
	next   string    // the token after the checkpoint that is under way
	until  time.Time // the lease holds at least until then
	timer  *time.Timer
	over   bool
}

// newLeaseKeeper returns a lease keeper that is running until stop.
func newLeaseKeeper(s Store, lease time.Duration) *leaseKeeper {
	k := &leaseKeeper{store: s, lease: lease}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(lease/3, k.refresh)
	return k
}

// keep begins to keep the lease of a run, granted at the time given or later.
func (k *leaseKeeper) keep(id job.ID, token string, granted time.Time, cancel context.CancelCauseFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel, k.id, k.token, k.next, k.until = cancel, id, token, "", granted.Add(k.lease)
}

// goOn keeps the lease that it has kept before for another run.
func (k *leaseKeeper) goOn(cancel context.CancelCauseFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel, k.next = cancel, ""
}

// rest ends that. It does not wait for a refresh under way, which does no harm.
func (k *leaseKeeper) rest() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel = nil
}

func (k *leaseKeeper) refresh() {
	k.mu.Lock()
	if !k.over {
		k.timer.Reset(k.lease / 3) // at once: the next run does not wait for what is asked for this one
	}
	id, token, next, until, idle := k.id, k.token, k.next, k.until, k.over || k.cancel == nil
	k.mu.Unlock()
	if idle {
		return
	}
	asked := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	err := k.store.Refresh(ctx, id, token, k.lease)
	if errors.Is(err, job.ErrFenced) && next != "" {
		// The checkpoint may be stored while its answer is still on the way.
		err = k.store.Refresh(ctx, id, next, k.lease)
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.cancel == nil || k.id != id:
		// The run is over.
	case err == nil:
		k.prolong(asked)
	case errors.Is(err, job.ErrFenced) && (k.token != token || k.next != next):
		// A checkpoint has changed the token meanwhile: the question was out of date.
	case errors.Is(err, job.ErrFenced) || time.Now().After(k.until):
		// Either another run may have the job, or Redis could not be asked for so long
		// that this must be assumed.
		k.cancelRun()
	}
}

// prolong notes that the lease was granted anew at the time given or later.
func (k *leaseKeeper) prolong(granted time.Time) {
	if until := granted.Add(k.lease); until.After(k.until) {
		k.until = until
	}
}

func (k *leaseKeeper) cancelRun() {
	if k.cancel != nil {
		k.cancel(job.ErrFenced)
		k.cancel = nil
	}
}

// lose tells that the run has lost its job.
func (k *leaseKeeper) lose() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancelRun()
}

// change tells that a checkpoint is about to give the run a new token.
func (k *leaseKeeper) change(next string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = next
}

// changed tells that the checkpoint, begun at that time, gave the run its new token and
// lease.
func (k *leaseKeeper) changed(begun time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.token, k.next = k.next, ""
	k.prolong(begun)
}

// stop ends the lease keeper.
func (k *leaseKeeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over, k.cancel = true, nil
	k.timer.Stop()
}
