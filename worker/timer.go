package worker

import (
	"context"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
)

// Timers are in the store, where the sweeper finds them within some seconds if they are set for less than
// that, else on time. The process that set one also holds it in memory, and is on time.
const (
	maxTimers = 10_000
	maxTimer  = time.Hour        // longer ones are the sweeper's alone
	timerSlip = time.Millisecond // the store counts whole milliseconds
	sweepTime = 10 * time.Second // that a sweep may take
)

// remind sees to the timers that a commit has set.
func (e *Engine) remind(d *store.Delta) {
	if !e.ran.Load() {
		return // jobs are run by hand: so is time
	}
	for _, after := range append(slices.Clip(d.Wakes), d.Delay) {
		if after <= 0 || after > maxTimer {
			continue
		}
		if e.timers.Add(1) > maxTimers {
			e.timers.Add(-1)
			continue
		}
		id := d.Job
		time.AfterFunc(after+timerSlip, func() {
			e.timers.Add(-1)
			if e.runs.Err() != nil {
				return // letGo has told those who sweep
			}
			ctx, cancel := context.WithTimeout(e.runs, sweepTime)
			defer cancel()
			_ = e.cfg.Store.SweepOf(ctx, id) // else the sweeper does
		})
	}
}

// letGo tells those who sweep of the timers that this process holds no longer: they would leave quiet shards alone for seconds.
func (e *Engine) letGo() {
	if e.timers.Load() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.runs), lastWords)
	defer cancel()
	e.cfg.Store.Broker().DueAnywhere(ctx)
}
