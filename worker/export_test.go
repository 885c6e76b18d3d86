package worker

import "time"

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
