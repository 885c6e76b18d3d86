package worker

import (
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// repeat has a job that completes run again, if it repeats and its schedule has a further time.
func (r *Run) repeat(d *store.Delta, finished time.Time) {
	if r.info.Repeat == nil {
		return
	}
	next, again := r.info.Repeat.After(r.info, finished)
	if d.Repeat = next; again {
		reschedule(d, next, finished)
	}
}

// reschedule ends a run whose job is to run again then.
func reschedule(d *store.Delta, next *job.Repeats, now time.Time) {
	d.Outcome, d.Repeat, d.Delay = statemachine.Reschedule, next, max(next.Scheduled.Sub(now), 0)
}

// passing ends a run that has just begun before its worker is called, if its job repeats and is not to run now; else it is nil.
func passing(snap *store.Snapshot) *store.Delta {
	if snap.Info.Repeat == nil || snap.Shutdown {
		return nil
	}
	next, ok := snap.Info.Repeat.Waits(&snap.Info)
	if ok && next == nil {
		return nil
	}
	d := handBack(snap, 0, "")
	if d.Outcome = statemachine.Complete; ok {
		reschedule(d, next, snap.Info.Ran)
	}
	return d
}
