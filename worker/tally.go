package worker

import (
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// tally counts what runs did, for the store to add up: see store.Activity.
type tally struct {
	runs, failed, read, written atomic.Int64
	waited, took                [len(store.Durations{})]atomic.Int64
}

// ran counts the code of a run, and how long its job was queued; a speculation never was.
func (t *tally) ran(info *job.Info, speculation bool, took time.Duration) {
	t.took[store.DurationIndex(took)].Add(1)
	if !speculation {
		t.waited[store.DurationIndex(info.Ran.Sub(info.Queued))].Add(1)
	}
}

// committed counts what a delta of that many runs holds.
func (t *tally) committed(d *store.Delta, info *job.Info, runs int) {
	one := committedJob(d, info, runs)
	t.runs.Add(int64(one.Runs))
	t.read.Add(int64(one.Read))
	t.written.Add(int64(one.Written))
	if d.Failure != nil {
		t.failed.Add(1)
	}
}

// sum is all that was counted so far.
func (t *tally) sum() store.Activity {
	a := store.Activity{Runs: t.runs.Load(), Failed: t.failed.Load(), Read: t.read.Load(), Written: t.written.Load()}
	for i := range t.took {
		a.Waited[i], a.Took[i] = t.waited[i].Load(), t.took[i].Load()
	}
	return a
}
