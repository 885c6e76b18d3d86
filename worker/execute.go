package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// errStopping is the cause of a run's cancelled context when the engine stops.
var errStopping = delivery.ErrStopping

// panicked is the error of a run that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// execute runs the worker once on a snapshot and returns what is to be committed; nil
// if the run has lost its job. Its lease was granted at the time given or later. Without one the run is a speculation:
// the lease is that of the run before, on what came of which it is one. settle is what such a run does when
// it needs the store, see Run.settle.
func (t *turn) execute(snap *store.Snapshot, granted time.Time, settle func() error) *ran {
	speculation := granted.IsZero()
	k := t.registry().kinds[snap.Info.Type]
	if k == nil {
		if _, told := t.unknown.LoadOrStore(snap.Info.Type, true); !told {
			t.cfg.Logger.Warn("no worker of this type runs here: its jobs wait for an engine that has it",
				"type", snap.Info.Type, "queue", snap.Info.Queue, "job", snap.Info.ID)
		}
		return newRan(snap, nil, unknownType(snap), 0)
	}
	if !t.registry().takes(&snap.Info) {
		return newRan(snap, nil, t.lacking(snap), 0)
	}
	if d := passing(snap); d != nil {
		return newRan(snap, nil, d, 0)
	}
	if k != t.held {
		if k.enterSome(1) == 0 { // several were popped at once
			return newRan(snap, nil, handBack(snap, crowdedDelay, ""), 0)
		}
		defer t.leave(k, 1)
	}
	if !speculation {
		failpoint.Hit(failpoint.AfterBegin)
	}
	ctx, cancel := context.WithCancelCause(t.Engine.runs)
	defer cancel(nil)
	if speculation {
		t.leaseKeeper.goOn(cancel)
	} else {
		t.leaseKeeper.keep(snap.Info.ID, snap.Token, granted, cancel)
	}
	defer t.leaseKeeper.rest()
	if limit := k.options.of(snap.Info.Options).Timeout; limit > 0 && !k.options.OwnTimeout {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, fmt.Errorf("timeout of %s: %w", limit, context.DeadlineExceeded))
		defer stop()
	}
	t.presence.at(ctx, t, store.RunningJob{Job: snap.Info.ID, Type: snap.Info.Type, Queue: snap.Info.Queue, Since: snap.Info.Ran})
	defer t.presence.none(t)
	r := newRun(ctx, t.cfg.Store, snap, t.cfg.Lease)
	r.layout, r.journal.off, r.hooks, r.tally = k.layout, k.options.NoLog, t.hooks, &t.tally
	r.leaseKeeper, r.speculation, r.settle = t.leaseKeeper, speculation, settle
	if settle != nil && !t.still {
		defer time.AfterFunc(shortRun, func() { _ = settle() }).Stop() // else what goes before it waits for it
	}
	failpoint.Hit(failpoint.BeforeUser)
	began := time.Now()
	r.journal.began = began
	err := tooDeadly(snap.Info.Crashes)
	if err == nil {
		err = t.hand.do(task{ctx, k, r, snap})
	}
	took := t.ended(k, began)
	t.tally.ran(&snap.Info, speculation, took)
	out := t.conclude(k, r, snap, err, took)
	if t.hooks != nil && t.hooks.wantEnd(r) {
		var d *store.Delta
		if out != nil {
			d = out.delta
		}
		t.hooks.Ended(endOf(r, k.name, &snap.Info, d, err, took))
	}
	return out
}

// conclude returns what is to be committed of a run whose code returned err; nil if the run has lost its job.
func (t *turn) conclude(k *kind, r *Run, snap *store.Snapshot, err error, took time.Duration) *ran {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	cause := context.Cause(r.ctx)
	var newer *undecodable
	switch {
	case errors.Is(cause, job.ErrFenced) || errors.Is(r.broken, job.ErrFenced):
		t.cfg.Logger.Warn("run lost its job: its lease ended", "job", snap.Info.ID, "type", k.name)
		return nil
	case r.broken != nil && (errors.Is(r.broken, job.ErrMoved) || errors.Is(cause, errStopping)),
		err != nil && errors.Is(cause, errStopping):
		snap.Token = r.token
		return newRan(snap, r, handBack(snap, 0, ""), took)
	case errors.Is(err, job.ErrCodec) || errors.Is(r.broken, job.ErrCodec): // of what was read later than at begin
		snap.Token = r.token
		return newRan(snap, r, handBack(snap, unknownDelay, firstLine(errors.Join(err, r.broken).Error())), took)
	case errors.As(r.broken, &newer), errors.As(err, &newer):
		snap.Token = r.token
		return newRan(snap, r, t.refuse(snap, newer), took)
	case r.broken != nil:
		err = r.broken
	case err != nil && cause != nil && errors.Is(err, context.DeadlineExceeded):
		err = cause
	}
	if t.still {
		took = 0
	}
	if d := t.elsewhere(snap, err); d != nil {
		snap.Token = r.token
		return newRan(snap, r, d, took)
	}
	d := r.conclude(k, err, snap.Shutdown, took)
	everywhere(d, snap, err)
	r.delta = nil // it is the engine's now
	return newRan(snap, r, d, took)
}

const (
	// unknownDelay is how long a job is left alone whose type nobody here runs.
	unknownDelay = 2 * time.Second
	// crowdedDelay is how long one is that was begun though as many runs of its type go on here as may.
	crowdedDelay = 100 * time.Millisecond
)

// unknownType leaves a job to engines that run its type. One that is to end does so without its Shutdown: it was given
// to an engine that lacks its type as none came that has it.
func unknownType(snap *store.Snapshot) *store.Delta {
	reason := fmt.Sprintf("%s %q in any engine that lives", delivery.NoWorker, snap.Info.Type)
	if !snap.Shutdown {
		return handBack(snap, unknownDelay, reason)
	}
	return &store.Delta{Job: snap.Info.ID, Token: snap.Token, Outcome: statemachine.Shutdown, Reason: reason + ": it ended without Shutdown"}
}

// maxCrashes is after how many runs in a row that ended without a word a job fails: it may be
// what kills the processes.
const maxCrashes = 10

func tooDeadly(n int) error {
	if n < maxCrashes {
		return nil
	}
	return fmt.Errorf("it was not run: its last %d runs ended without a word, as their processes died, or were cut off; look what they did, then retry it", n)
}

// handBack ends a run as if it had not been.
func handBack(snap *store.Snapshot, delay time.Duration, reason string) *store.Delta {
	return &store.Delta{
		Job: snap.Info.ID, Token: snap.Token, Outcome: statemachine.Requeue, Handed: true, Delay: delay, Reason: reason,
	}
}

// work makes a worker and runs it. Already the parameters may have methods of the user.
func work(ctx context.Context, k *kind, r *Run, snap *store.Snapshot) error {
	if err := k.upgrade(r); err != nil {
		return err
	}
	w, err := k.instance(&snap.Info, (*binder)(r))
	if err != nil {
		return err
	}
	if !snap.Shutdown {
		if s, ok := w.(Starter); ok && !snap.Info.Started {
			if err := s.Start(ctx, r); err != nil {
				return err
			}
			r.started()
			if err := r.Checkpoint(); err != nil {
				return err
			}
		}
		return w.Run(ctx, r)
	}
	if s, ok := w.(Shutdowner); ok {
		return s.Shutdown(ctx, r)
	}
	return nil
}

// outcome decides how a run without failure ends. A run that took some of its messages
// and left others goes on in another run. A job sleeps while inputs wired to other jobs
// may bring more; when none can, it is completed and its wired Outs are closed.
func (r *Run) outcome(err error) statemachine.Event {
	cut := func(in *inbox) bool { return in.cut && (in.left > 0 || in.more) }
	if errors.Is(err, ErrFull) || errors.Is(err, ErrAgain) || slices.ContainsFunc(r.boxes, cut) {
		return statemachine.Requeue
	}
	if err != nil {
		return statemachine.Suspend
	}
	took, left, open := r.took, false, false
	for _, in := range r.ins.all {
		took = took || in.taken > 0
		left = left || in.left > 0 || in.hidden > 0
		open = open || in.fed && !in.done()
	}
	switch {
	case took && left:
		return statemachine.Requeue
	case open:
		return statemachine.Suspend
	}
	for _, out := range r.outs.all {
		if out.wired {
			out.close()
		}
	}
	return statemachine.Complete
}

func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return clip(line, 500)
}

// commit stores a delta, and asks again while the store cannot be reached: a commit is
// idempotent, and if it takes too long the lease ends and it is refused.
func commit(ctx context.Context, s Store, d store.Delta) (store.Result, error) {
	var res store.Result
	err := retry(ctx, func() (err error) {
		if res, err = commitOnce(ctx, s, store.Tx{Deltas: []store.Delta{d}}); err != nil {
			return err
		}
		return res.Refused
	})
	return res, err
}

func commitOnce(ctx context.Context, s Store, tx store.Tx) (store.Result, error) {
	all, err := s.Commit(ctx, []store.Tx{tx})
	if err != nil {
		return store.Result{}, err
	}
	return all[0], nil
}

// permanent tells whether asking again cannot help.
func permanent(err error) bool {
	for _, kind := range []error{job.ErrFenced, job.ErrMoved, job.ErrNotFound, job.ErrStatus, job.ErrPort, job.ErrExists, job.ErrUnknownType, job.ErrTooLarge, port.ErrEncoding, job.ErrRefused, job.ErrCodec} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// patience is how long a store that cannot be reached is asked again and again.
const patience = time.Minute

func retry(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(patience)
	for delay := 20 * time.Millisecond; ; delay = min(2*delay, time.Second) {
		err := fn()
		if err == nil || permanent(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(delay):
		}
	}
}
