package job

import (
	"context"
	"time"
)

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
