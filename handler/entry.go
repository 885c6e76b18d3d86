package handler

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
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
	// Code and Status are what came of the last try of a payload, of a job that is done and as far as it is known, see Ended.
	Code   Code `json:"code,omitempty" enum:"retry,ok,failed,error"`
	Status int  `json:"exitcode,omitempty"`
}

// FailureText is what is kept of a payload that ended as RETRY or ERROR, as Ended reads it.
func FailureText(code Code, status int, why string) string {
	return fmt.Sprintf("%s %d: %s", code, status, why)
}

// endRE is the beginning of the reason of a job that failed: FailureText, perhaps with why it is tried no more in front, which has no colon.
var endRE = regexp.MustCompile(`^(?:tried [^:]*: )?(retry|error) ([0-9]{3}): `)

// Ended returns the code and the status of the last try of a job that failed for good, from the reason that is kept. The code is empty if
// the reason does not begin as that of a payload does: no code had run, or the job was failed by hand.
func Ended(reason string) (code Code, status int) {
	m := endRE.FindStringSubmatch(reason)
	if m == nil {
		return "", 0
	}
	status, _ = strconv.Atoi(m[2]) // it is three digits
	if CodeOf(status) != Code(m[1]) {
		return "", 0
	}
	return Code(m[1]), status
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
		if i.Status == job.Failed {
			e.Code, e.Status = Ended(i.Reason)
		}
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
