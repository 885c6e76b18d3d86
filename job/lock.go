package job

import (
	"context"
	"time"
)

// Locks keeps runs off jobs for somebody outside.
type Locks interface {
	// Lock keeps runs off the job for a time. It tries again for as long as wait, then
	// returns ErrLocked. A run in progress when the lock is taken ends first. by says
	// who wants it, for those who look.
	Lock(ctx context.Context, id ID, by string, ttl, wait time.Duration) (Lock, error)
	// Unlock ends the lock that has the token, whoever took it, and lets runs go on. It
	// returns ErrLocked if the job has another lock, and ErrStatus if it has none.
	Unlock(ctx context.Context, id ID, token string) error
	// BreakLock ends whatever lock the job has, or returns ErrStatus if it has none.
	BreakLock(ctx context.Context, id ID) error
	// Locked returns the locks of those of the jobs that have one.
	Locked(ctx context.Context, ids ...ID) (map[ID]LockInfo, error)
}

// Lock is held on a job by somebody outside of its runs.
type Lock interface {
	// Token is what the lock is known by.
	Token() string
	// Refresh makes the lock last another ttl from now, or returns ErrLocked if it is lost.
	Refresh(ctx context.Context, ttl time.Duration) error
	// Release lets runs go on at once, or returns ErrLocked if the lock was lost.
	Release(ctx context.Context) error
}

// LockInfo is what may be known of a lock by those who do not hold it.
type LockInfo struct {
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until"` // unless it is refreshed
}

// Lock keeps runs off the job for ttl, to change several things of it undisturbed. It
// tries for as long as wait; then the error wraps ErrLocked. Those who look are told who
// holds it if ctx says so, see WithContext and port.ContextBy.
func (h *Handle) Lock(ctx context.Context, ttl, wait time.Duration) (Lock, error) {
	by := Actor(ctx)
	return h.store.Lock(ctx, h.id, by, ttl, wait)
}

// Unlock ends the lock with the given token, which another process may have taken. The
// error wraps ErrLocked if the job has another lock by now, and ErrStatus if it has none.
func (h *Handle) Unlock(ctx context.Context, token string) error {
	return h.store.Unlock(ctx, h.id, token)
}

// BreakLock ends whatever lock the job has. Whoever holds it is told when he next
// refreshes or releases it. The error wraps ErrStatus if there is none.
func (h *Handle) BreakLock(ctx context.Context) error { return h.store.BreakLock(ctx, h.id) }

// Locked tells whether the job is locked, and what is known of the lock.
func (h *Handle) Locked(ctx context.Context) (info LockInfo, locked bool, err error) {
	all, err := h.store.Locked(ctx, h.id)
	info, locked = all[h.id]
	if err == nil && !locked {
		_, err = h.Info(ctx) // which says so if there is no such job
	}
	return info, locked, err
}
