package worker

import "time"

// StrayDelay sets when a job is run again beside messages that its version does not read.
func StrayDelay(d time.Duration) { strayDelay = d }

// ShortRun sets how long runs may take that fuse.
func ShortRun(d time.Duration) { shortRun = d }

// Asleep tells of how many jobs an engine knows that they sleep, or once did.
func Asleep(e *Engine) int {
	e.asleep.mu.Lock()
	defer e.asleep.mu.Unlock()
	return len(e.asleep.jobs) + len(e.asleep.older)
}

// WaitingClients tells how many clients wait for jobs.
func WaitingClients(l *Leases) int {
	l.clients.mu.Lock()
	defer l.clients.mu.Unlock()
	return len(l.clients.all)
}

// LostLimits is lostLimits.
var LostLimits = lostLimits
