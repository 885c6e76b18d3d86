package store

import (
	"context"
	"time"

	"github.com/weirworks/weir/job"
)

// Locks keeps runs off jobs for somebody outside.
type Locks interface {
	// Lock keeps runs off the job for a time. It tries again for as long as wait, then
	// returns job.ErrLocked. A run in progress when the lock is taken ends first. by says
	// who wants it, for those who look.
	Lock(ctx context.Context, id job.ID, by string, ttl, wait time.Duration) (job.Lock, error)
	// Unlock ends the lock that has the token, whoever took it, and lets runs go on. It
	// returns job.ErrLocked if the job has another lock, and job.ErrStatus if it has none.
	Unlock(ctx context.Context, id job.ID, token string) error
	// BreakLock ends whatever lock the job has, or returns job.ErrStatus if it has none.
	BreakLock(ctx context.Context, id job.ID) error
	// Locked returns the locks of those of the jobs that have one.
	Locked(ctx context.Context, ids ...job.ID) (map[job.ID]job.LockInfo, error)
}
