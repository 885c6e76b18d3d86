package worker

import (
	"context"
	"time"

	"github.com/weirworks/weir/internal/store"
)

// StrayDelay sets when a job is run again beside messages that its version does not read.
func StrayDelay(d time.Duration) { strayDelay = d }

// ShortRun sets how long runs may take that fuse.
func ShortRun(d time.Duration) { shortRun = d }

// SuspendedJobs tells of how many jobs an engine knows that they sleep, or once did.
func SuspendedJobs(e *Engine) int {
	e.suspended.mu.Lock()
	defer e.suspended.mu.Unlock()
	return len(e.suspended.jobs) + len(e.suspended.older)
}

// WaitingClients tells how many clients wait for jobs.
func WaitingClients(l *Leases) int {
	l.clients.mu.Lock()
	defer l.clients.mu.Unlock()
	return len(l.clients.all)
}

// LostLimits is lostLimits.
var LostLimits = lostLimits

// Plain is plain.
func Plain(d *store.Delta) bool { return plain(d) }

// Merged is what one commit says of two runs of a job, the second of which followed the first.
func Merged(first, next store.Delta) store.Delta {
	r := newRan(&store.Snapshot{}, nil, &first, 0)
	r.add(newRan(&store.Snapshot{}, nil, &next, 0))
	return *r.sum
}

// Predicted is what an engine expects the next run to see after one that saw this and did that.
func Predicted(seen *store.Snapshot, did store.Delta) *store.Snapshot {
	return newRan(seen, newRun(context.Background(), nil, seen, 0), &did, 0).behind()
}
