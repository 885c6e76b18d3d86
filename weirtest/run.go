package weirtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// RunNext gives the job that has been ready longest one run, with a commit of its own: a single
// step, without run batching and without chaining. It returns false, and does nothing, if no job
// is ready.
func (e *Engine) RunNext() bool {
	e.tb.Helper()
	e.begin()
	e.look()
	return e.runNext(e.engine.RunJobOnce)
}

// RunUntilIdle runs ready jobs as an engine does, with run batching and chaining, until none is
// ready any more: all have settled, or wait for data or time. The test fails if that takes more
// than MaxRuns runs.
func (e *Engine) RunUntilIdle() {
	e.tb.Helper()
	e.begin()
	e.quiet()
}

// Advance lets time pass, as if an engine that takes no time served the jobs: it runs
// those that are ready, then goes from timer (a retry, a start at a set time) to timer,
// with the clock standing still while jobs run, until d has passed.
func (e *Engine) Advance(d time.Duration) {
	e.tb.Helper()
	if d < 0 {
		e.tb.Fatalf("weirtest: Advance(%s): time does not go back", d)
		return
	}
	e.begin()
	end := e.clock.Now().Add(d)
	for ok := e.quiet(); ok; ok = e.drain() {
		if e.stale && !e.fetch() {
			return
		}
		if len(e.due) == 0 || e.due[0].At.After(end) {
			e.clock.Set(end)
			return
		}
		e.clock.Set(e.due[0].At)
		clear(e.stuck)
		e.consider()
	}
}

// begin forgets the call before.
func (e *Engine) begin() {
	e.runs, e.total = map[job.ID]int{}, 0
	e.stuck = map[job.ID]bool{}
}

// quiet runs until no job is ready, and tells whether it got so far.
func (e *Engine) quiet() bool {
	e.tb.Helper()
	clear(e.stuck) // time may have passed
	e.look()
	return e.drain()
}

// drain is quiet for those that are queued, and those that they make ready.
func (e *Engine) drain() bool {
	e.tb.Helper()
	most := cmp.Or(e.MaxRuns, DefaultMaxRuns)
	for len(e.line) > 0 {
		if e.total >= most {
			e.tb.Fatalf("weirtest: jobs are still ready after %d runs (see Engine.MaxRuns): %s", e.total, e.busiest())
			return false
		}
		e.runNext(e.engine.RunJob)
	}
	return true
}

// runNext runs the first queued job that can be run, and looks what came of it.
func (e *Engine) runNext(run func(context.Context, job.ID) error) bool {
	e.tb.Helper()
	for len(e.line) > 0 {
		id := e.line[0]
		e.line = e.line[1:]
		err := run(e.ctx, id)
		switch {
		case errors.Is(err, job.ErrLocked), errors.Is(err, job.ErrRate), errors.Is(err, job.ErrLimit):
			e.stuck[id], e.stale = true, true // it stays ready, until its lock or the minute ends
		case errors.Is(err, job.ErrStatus), errors.Is(err, job.ErrNotFound):
			e.fetch() // the test did something to it since we looked
		case e.failed(err):
			return false
		default:
			e.look()
			return true
		}
	}
	return false
}

// look puts jobs that became ready in the queue; those that became so together in the order
// of their numbers. Jobs that are no longer ready leave the line.
func (e *Engine) look() {
	e.tb.Helper()
	if e.fetch() {
		e.consider()
	}
}

// fetch asks what is due, and tells whether it was told.
func (e *Engine) fetch() bool {
	e.tb.Helper()
	var err error
	e.due, err = e.store.Due(e.ctx)
	e.stale = false
	return !e.failed(err)
}

// consider does so by what is due, which is known, when time may have passed since.
func (e *Engine) consider() {
	e.tb.Helper()
	now := e.clock.Now()
	over := func(d redisstore.Due) bool { return !waits(d) && !d.At.After(now) }
	if slices.ContainsFunc(e.due, over) {
		if _, err := e.store.Sweep(e.ctx); e.failed(err) || !e.fetch() {
			return
		}
	}
	// Who claims a place of a limit gets it from the store: each of many asking whenever one is free would cost their number squared.
	claims := func(d redisstore.Due) bool { return d.Claims && d.At.After(now) }
	due := slices.DeleteFunc(slices.Clone(e.due), func(d redisstore.Due) bool { return !waits(d) || e.stuck[d.Job] || claims(d) })
	slices.SortFunc(due, func(a, b redisstore.Due) int {
		return cmp.Or(a.At.Compare(b.At), byNumber(a.Job, b.Job))
	})
	fresh := make(map[job.ID]bool, len(due))
	for _, d := range due {
		if !e.types[d.Type] {
			e.tb.Fatalf("weirtest: nobody runs job %s: %s", e.path(d.Job), e.unknown(d.Type))
			return
		}
		if n := &d.Needs; !n.Plain() && (n.Version > e.versions[d.Type] || len(n.Refused)+len(n.Unread) > 0) {
			e.tb.Fatalf("weirtest: job %s waits for another version of its worker: %s", e.path(d.Job), e.reason(d.Job))
			return
		}
		fresh[d.Job] = true
	}
	e.line = slices.DeleteFunc(e.line, func(id job.ID) bool { return !fresh[id] })
	for _, id := range e.line {
		fresh[id] = false
	}
	for _, d := range due {
		if fresh[d.Job] {
			e.line = append(e.line, d.Job)
		}
	}
}

// reason is what a job says about why it waits.
func (e *Engine) reason(id job.ID) string {
	info, err := e.store.Info(e.ctx, id)
	if err != nil {
		return err.Error()
	}
	return cmp.Or(info.Reason, info.Needs.Words())
}

// waits tells whether a job waits for a run, rather than for time.
func waits(d redisstore.Due) bool {
	return d.Status == statemachine.Queued || d.Status == statemachine.Terminating
}

func byNumber(a, b job.ID) int {
	return cmp.Or(cmp.Compare(a.Tree(), b.Tree()), cmp.Compare(a.Number(), b.Number()))
}

// busiest names the jobs that ran most in the current call.
func (e *Engine) busiest() string {
	const most = 5
	ids := slices.SortedFunc(maps.Keys(e.runs), func(a, b job.ID) int {
		return cmp.Or(e.runs[b]-e.runs[a], byNumber(a, b))
	})
	var texts []string
	for _, id := range ids[:min(most, len(ids))] {
		texts = append(texts, fmt.Sprintf("%s ran %d times", e.path(id), e.runs[id]))
	}
	if more := len(ids) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// path joins the names from the root of the tree down to a job; a job without a name
// goes by its type.
func (e *Engine) path(id job.ID) string {
	var names []string
	for id != "" {
		i, err := e.store.Info(e.ctx, id)
		if err != nil {
			names = append(names, string(id))
			break
		}
		names = append(names, cmp.Or(i.Name, i.Type))
		id = i.Parent
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}
