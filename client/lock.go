package client

import (
	"context"
	"time"

	"github.com/weirworks/weir/job"
)

// Lock keeps runs off the job for ttl, to change several things of it undisturbed. It
// tries for as long as wait; then the error wraps job.ErrLocked. Those who look are told who
// holds it if ctx says so, see job.WithContext and port.ContextBy.
func (h *Handle) Lock(ctx context.Context, ttl, wait time.Duration) (job.Lock, error) {
	by := job.Actor(ctx)
	return h.store.Lock(ctx, h.id, by, ttl, wait)
}

// Unlock ends the lock with the given token, which another process may have taken. The
// error wraps job.ErrLocked if the job has another lock by now, and job.ErrStatus if it has none.
func (h *Handle) Unlock(ctx context.Context, token string) error {
	return h.store.Unlock(ctx, h.id, token)
}

// BreakLock ends whatever lock the job has. Whoever holds it is told when he next
// refreshes or releases it. The error wraps job.ErrStatus if there is none.
func (h *Handle) BreakLock(ctx context.Context) error { return h.store.BreakLock(ctx, h.id) }

// Locked tells whether the job is locked, and what is known of the lock.
func (h *Handle) Locked(ctx context.Context) (info job.LockInfo, locked bool, err error) {
	all, err := h.store.Locked(ctx, h.id)
	info, locked = all[h.id]
	if err == nil && !locked {
		_, err = h.Info(ctx) // which says so if there is no such job
	}
	return info, locked, err
}
