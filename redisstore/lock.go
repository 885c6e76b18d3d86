package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

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

// lockNote is what the value of a lock's key has behind its token and a blank, as JSON.
type lockNote struct {
	By    string `json:"by,omitempty"`
	Since int64  `json:"since"` // when it was asked for: ms, by Redis's clock
}

// Lock implements store.Locks. First the lock is set, then the job is looked at: a run
// that began before is waited for, and none begins after.
func (s *Store) Lock(ctx context.Context, id job.ID, by string, ttl, wait time.Duration) (job.Lock, error) {
	if err := checkTTL(id, ttl); err != nil {
		return nil, err
	}
	if _, err := s.Info(ctx, id); err != nil {
		return nil, err
	}
	now, err := s.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("locking job %s: %w", id, err)
	}
	note, err := json.Marshal(lockNote{By: by, Since: now.UnixMilli()})
	if err != nil {
		return nil, fmt.Errorf("locking job %s: %w", id, err)
	}
	deadline := time.Now().Add(wait)
	lock, err := redislock.Obtain(ctx, s.rdb, s.keys.job(id, lockSuffix), ttl, &redislock.Options{
		Token:         rand.Text(), // one of redislock may begin like a flag of a command
		Metadata:      " " + string(note),
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
	token, err := s.fieldOf(ctx, id, "token")
	return token != "", err
}

// Token implements job.Lock.
func (l *jobLock) Token() string { return l.lock.Token() }

// Refresh implements job.Lock.
func (l *jobLock) Refresh(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(l.id, ttl); err != nil {
		return err
	}
	return l.explain(l.lock.Refresh(ctx, ttl, nil))
}

// Release implements job.Lock.
func (l *jobLock) Release(ctx context.Context) error {
	err := l.store.Unlock(ctx, l.id, l.lock.Token())
	if errors.Is(err, job.ErrStatus) || errors.Is(err, job.ErrLocked) {
		return l.explain(redislock.ErrLockNotHeld)
	}
	return err
}

// Unlock implements store.Locks.
func (s *Store) Unlock(ctx context.Context, id job.ID, token string) error {
	return s.unlock(ctx, id, token, false)
}

// BreakLock implements store.Locks.
func (s *Store) BreakLock(ctx context.Context, id job.ID) error { return s.unlock(ctx, id, "", true) }

func (s *Store) unlock(ctx context.Context, id job.ID, token string, force bool) error {
	due := s.keys.dueOf(id)
	reply, err := s.run(ctx, scriptUnlock, due, string(id), token, flag(force), rand.Text())
	if err != nil {
		return fmt.Errorf("unlocking job %s: %w", id, err)
	}
	var d decoder
	l := d.list(reply)
	switch why := d.str(d.at(l, 0)); {
	case d.err != nil:
		return d.err
	case why == "gone":
		return refusal(why, id)
	case why == "free":
		return fmt.Errorf("%w: job %s is not locked, or no longer", job.ErrStatus, id)
	case why == "held":
		return fmt.Errorf("%w: job %s, and not with this token", job.ErrLocked, id)
	}
	return s.deliver(ctx, due, &d, d.at(l, 1))
}

// RefreshLock makes the lock of a job last another ttl from now, whoever took it with that token: what Refresh of a [job.Lock] does
// for the one who has it. It returns an error that wraps [job.ErrLocked] if the lock is lost.
func (s *Store) RefreshLock(ctx context.Context, id job.ID, token string, ttl time.Duration) error {
	if err := checkTTL(id, ttl); err != nil {
		return err
	}
	reply, err := s.run(ctx, scriptRelock, s.keys.dueOf(id), string(id), token, ttl.Milliseconds())
	if err != nil {
		return fmt.Errorf("refreshing the lock of job %s: %w", id, err)
	}
	var d decoder
	if held := d.int(reply); d.err != nil || held == 1 {
		return d.err
	}
	return fmt.Errorf("%w: the lock of job %s was lost", job.ErrLocked, id)
}

// Locked implements store.Locks.
func (s *Store) Locked(ctx context.Context, ids ...job.ID) (map[job.ID]job.LockInfo, error) {
	out := map[job.ID]job.LockInfo{}
	for part := range slices.Chunk(ids, 1000) {
		values, ttls := make([]*redis.StringCmd, len(part)), make([]*redis.DurationCmd, len(part))
		var now *redis.TimeCmd
		_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
			now = p.Time(ctx)
			for i, id := range part {
				key := s.keys.job(id, lockSuffix)
				values[i], ttls[i] = p.Get(ctx, key), p.PTTL(ctx, key)
			}
			return nil
		})
		for i, id := range part {
			if err := errors.Join(now.Err(), ttls[i].Err()); err != nil {
				return nil, s.explain(err)
			}
			if ttls[i].Val() > 0 { // others keep nobody from running
				out[id] = lockInfo(values[i].Val(), now.Val().Add(ttls[i].Val()))
			}
		}
	}
	return out, nil
}

// checkTTL refuses to lock a job for no time.
func checkTTL(id job.ID, ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("%w: job %s cannot be locked for %s: use a millisecond at least", job.ErrValue, id, ttl)
	}
	return nil
}

// lockInfo reads the value of a lock's key. What other programs set has no note.
func lockInfo(value string, until time.Time) job.LockInfo {
	info := job.LockInfo{Until: until.UTC()}
	var note lockNote
	_, text, _ := strings.Cut(value, " ")
	if json.Unmarshal([]byte(text), &note) == nil && note.Since > 0 {
		info.By, info.Since = note.By, time.UnixMilli(note.Since).UTC()
	}
	return info
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
