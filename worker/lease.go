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
	due    time.Time     // when that fires
	far    *job.Progress // what the run told of how far it is and is not known yet; nil: nothing
	told   time.Time     // when that was told last, or the run began
	over   bool
}

// newLeaseKeeper returns a lease keeper that is running until stop.
func newLeaseKeeper(s Store, lease time.Duration) *leaseKeeper {
	k := &leaseKeeper{store: s, lease: lease}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer, k.due = time.AfterFunc(lease/3, k.refresh), time.Now().Add(lease/3)
	return k
}

// keep begins to keep the lease of a run, granted at the time given or later.
func (k *leaseKeeper) keep(id job.ID, token string, granted time.Time, cancel context.CancelCauseFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel, k.id, k.token, k.next, k.until = cancel, id, token, "", granted.Add(k.lease)
	k.far, k.told = nil, granted
}

// goOn keeps the lease that it has kept before for another run.
func (k *leaseKeeper) goOn(cancel context.CancelCauseFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel, k.next, k.far = cancel, "", nil
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
	asked := time.Now()
	id, token, next, until, idle := k.id, k.token, k.next, k.until, k.over || k.cancel == nil
	far := k.far
	k.due, k.far = asked.Add(k.lease/3), nil
	if far != nil {
		k.told = asked
	}
	k.mu.Unlock()
	if idle {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	err := k.store.Refresh(ctx, id, token, k.lease, far)
	if errors.Is(err, job.ErrFenced) && next != "" {
		// The checkpoint may be stored while its answer is still on the way.
		err = k.store.Refresh(ctx, id, next, k.lease, nil) // it says how far the run is
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

// progressEvery is how often a run's progress is told at most before it is committed.
const progressEvery = time.Second

// tell has what a run of that job tells of how far it is written soon. In a chain the lease may be that of another job's run:
// then it is written with the commit.
func (k *leaseKeeper) tell(id job.ID, far *job.Progress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cancel == nil || k.over || k.id != id {
		return
	}
	k.far = far
	if at := k.told.Add(progressEvery); at.Before(k.due) {
		k.due = at
		k.timer.Reset(time.Until(at))
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
