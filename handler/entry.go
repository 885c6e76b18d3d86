package handler

import (
	"cmp"
	"time"

	"github.com/weirworks/weir/job"
)

// Entry is a job in the words of a minimal job queue: from when on it may run, and who has it. It is a view of a job.Info: nothing is stored
// as an Entry.
type Entry struct {
	ID   job.ID `json:"id"`
	Type string `json:"type"`
	// DT is when the job may run; while it runs when its lease ends; when it is done a thousand years after its end.
	DT time.Time `json:"dt"`
	// Lock is empty, or who runs the job: the beginning of the ID of an engine; or Done.
	Lock string `json:"lock"`
}

// Done is the lock of jobs that are done, which are kept for the retention of the namespace.
const Done = "__done"

// doneYears is how much later than its end the DT of a job is that is done.
const doneYears = 1000

// EntryOf is the entry of a job.
func EntryOf(i *job.Info) Entry {
	e := Entry{ID: i.ID, Type: i.Type}
	later := func(times ...time.Time) time.Time { // the first that is known
		for _, t := range times {
			if !t.IsZero() {
				return t
			}
		}
		return i.Created
	}
	switch {
	case i.Status.Settled() || i.Status == job.Failed:
		e.DT, e.Lock = later(i.Ended, i.Ran).AddDate(doneYears, 0, 0), Done
	case i.Status == job.Running:
		e.DT, e.Lock = later(i.Lease, i.Ran), cmp.Or(i.Owner(), "?")
	default:
		e.DT = later(i.Next, i.Queued)
	}
	return e
}

// Phase is where an entry is in its life.
type Phase string

// The phases.
const (
	Deferred  Phase = "deferred"  // it may not run yet
	Ready     Phase = "ready"     // it may run
	Running   Phase = "running"   // somebody has it
	Abandoned Phase = "abandoned" // who had it did not renew its lease: it is about to be ready again
	Archived  Phase = "done"      // it does not run any more
)

// Phase tells where the entry is in its life at a time.
func (e *Entry) Phase(now time.Time) Phase {
	switch ahead := e.DT.After(now); {
	case e.Lock == Done:
		return Archived
	case e.Lock == "" && ahead:
		return Deferred
	case e.Lock == "":
		return Ready
	case ahead:
		return Running
	}
	return Abandoned
}
