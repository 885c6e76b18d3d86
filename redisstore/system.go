package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bsm/redislock"

	"github.com/weirworks/weir/job"
)

// System is the ID of a process in a namespace, which no other process has at the time. It is reserved by Store.ReserveSystem, must be renewed before its time is over, and is
// free again when it was released, or not renewed in time. It is safe for concurrent use.
type System struct {
	store *Store
	id    string
	ttl   time.Duration
	lock  *redislock.Lock
	until atomic.Int64 // by the clock of this process, in ns: when it is lost unless it is renewed
}

// ReserveSystem reserves an ID for a time. The error wraps job.ErrLocked if another process has it.
func (s *Store) ReserveSystem(ctx context.Context, id string, ttl time.Duration) (*System, error) {
	return s.reserveSystem(ctx, id, rand.Text(), ttl)
}

func (s *Store) reserveSystem(ctx context.Context, id, token string, ttl time.Duration) (*System, error) {
	if err := job.CheckName("system ID", id); err != nil {
		return nil, err
	}
	asked := time.Now()
	lock, err := redislock.Obtain(ctx, s.rdb, s.keys.system(id), ttl, &redislock.Options{Token: token})
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, fmt.Errorf("%w: another process has system ID %s: it is free when that one has ended, at most %s later", job.ErrLocked, id, ttl)
	}
	if err != nil {
		return nil, fmt.Errorf("reserving system ID %s: %w", id, s.explain(err))
	}
	y := &System{store: s, id: id, ttl: ttl, lock: lock}
	y.until.Store(asked.Add(ttl).UnixNano())
	return y, nil
}

// ID is the ID that is reserved.
func (y *System) ID() string { return y.id }

// Held tells whether the ID is surely still reserved: by the clock of this process, from when it was last renewed.
func (y *System) Held() bool { return time.Now().UnixNano() < y.until.Load() }

// Renew keeps the ID for another ttl. If its time was over and nobody else has it, it is reserved anew. The error wraps job.ErrLocked if another process has it: then Held is
// false from now on.
func (y *System) Renew(ctx context.Context) error {
	asked := time.Now()
	err := y.lock.Refresh(ctx, y.ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) {
		var again *System
		if again, err = y.store.reserveSystem(ctx, y.id, y.lock.Token(), y.ttl); err != nil {
			y.until.Store(0)
			return err
		}
		asked = time.Unix(0, again.until.Load()).Add(-y.ttl)
	}
	if err != nil {
		return fmt.Errorf("renewing system ID %s: %w", y.id, y.store.explain(err))
	}
	y.until.Store(asked.Add(y.ttl).UnixNano())
	return nil
}

// Release lets others have the ID at once.
func (y *System) Release(ctx context.Context) error {
	y.until.Store(0)
	err := y.lock.Release(ctx)
	if err == nil || errors.Is(err, redislock.ErrLockNotHeld) {
		return nil
	}
	return fmt.Errorf("releasing system ID %s: %w", y.id, y.store.explain(err))
}
