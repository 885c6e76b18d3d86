package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// lockEvery is how often a lock that is held, or a run in progress, is looked at again.
const lockEvery = 10 * time.Millisecond

// jobLock implements job.Lock.
type jobLock struct {
	store *Store
	id    job.ID
	lock  *redislock.Lock
}

// Lock implements job.Control. First the lock is set, then the job is looked at: a run
// that began before is waited for, and none begins after.
func (s *Store) Lock(ctx context.Context, id job.ID, ttl, wait time.Duration) (job.Lock, error) {
	if _, err := s.Info(ctx, id); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(wait)
	lock, err := redislock.Obtain(ctx, s.rdb, s.keys.job(id, lockSuffix), ttl, &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(lockEvery), int(wait/lockEvery)),
	})
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, fmt.Errorf("%w: job %s", job.ErrLocked, id)
	}
	if err != nil {
		return nil, fmt.Errorf("locking job %s: %w", id, s.explain(err))
	}
	l := &jobLock{s, id, lock}
	for {
		running, err := s.running(ctx, id)
		if err == nil && !running {
			return l, l.Refresh(ctx, ttl) // waiting may have used it up
		}
		if err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("%w: job %s is %s", job.ErrLocked, id, statemachine.Running)
		}
		if err == nil {
			err = l.Refresh(ctx, ttl)
		}
		if err != nil {
			return nil, errors.Join(err, ignoreLost(l.Release(context.WithoutCancel(ctx))))
		}
		time.Sleep(lockEvery)
	}
}

// running tells whether a run of the job is in progress.
func (s *Store) running(ctx context.Context, id job.ID) (bool, error) {
	token, err := s.rdb.HGet(ctx, s.keys.job(id, ""), "token").Result()
	if isNil(err) {
		return false, nil
	}
	return token != "", s.explain(err)
}

// Token implements job.Lock.
func (l *jobLock) Token() string { return l.lock.Token() }

// Refresh implements job.Lock.
func (l *jobLock) Refresh(ctx context.Context, ttl time.Duration) error {
	return l.explain(l.lock.Refresh(ctx, ttl, nil))
}

// Release implements job.Lock. A job that is queued need not wait for the sweeper.
func (l *jobLock) Release(ctx context.Context) error {
	if err := l.explain(l.lock.Release(ctx)); err != nil {
		return err
	}
	gen, err := l.store.rdb.HGet(ctx, l.store.keys.job(l.id, ""), "gen").Result()
	if err != nil {
		return nil //nolint:nilerr // the lock is released; the sweeper finds the job
	}
	due := l.store.keys.dueOf(l.id)
	reply, err := l.store.run(ctx, scriptRenew, due, string(l.id), gen)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	var d decoder
	return l.store.deliver(ctx, due, &d, reply)
}

func (l *jobLock) explain(err error) error {
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) {
		return fmt.Errorf("%w: the lock of job %s was lost", job.ErrLocked, l.id)
	}
	return l.store.explain(err)
}

func ignoreLost(err error) error {
	if errors.Is(err, job.ErrLocked) {
		return nil
	}
	return err
}
