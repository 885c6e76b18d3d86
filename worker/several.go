package worker

import (
	"sync"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Several jobs at once: where runs of a type are known to be so short that the calls of the store between them take longer, a slot
// begins runs of several ready jobs in one call, works on one after the other, and commits all in one call: each in a transaction of
// its own, as if they had come one by one.

const (
	// severalTime is for how long the runs of several jobs take in all, as far as that is known before.
	severalTime = time.Millisecond
	// severalLease is how long a lease must be at least: that of a job is not prolonged while it waits for those before it.
	severalLease = time.Second
)

// several tells how many jobs of a type a slot begins at once.
func (t *turn) several(typ string) int {
	k := t.registry().kind(typ)
	if k == nil || t.cfg.Lease < severalLease {
		return 1
	}
	if k.options.Together > 1 {
		return t.atOnce(typ)
	}
	took := time.Duration(k.took.Load())
	if took <= 0 || took > severalTime {
		return 1
	}
	return int(min(severalTime/took, store.MostSeveral))
}

// workAll works on jobs that have begun, and returns what is to be committed. If a run takes long, others do not wait for it: what is
// done is committed meanwhile, and what has not run yet is handed back.
func (t *turn) workAll(begun []*store.Snapshot, granted time.Time) (rows []chained) {
	if t.together {
		return t.workTogether(begun, granted)
	}
	if len(begun) == 1 {
		if done := t.work(begun[0], granted); done.runs != nil {
			rows = append(rows, done)
		}
		return rows
	}
	q := &batch{engine: t.Engine, waiting: begun}
	late := time.AfterFunc(shortRun, q.late)
	defer late.Stop()
	for snap := q.take(); snap != nil; snap = q.take() {
		if done := t.work(snap, granted); done.runs != nil {
			q.add(done)
		}
	}
	return q.end()
}

// batch are jobs that a slot has begun at once.
type batch struct {
	engine  *Engine
	mu      sync.Mutex
	waiting []*store.Snapshot
	done    []chained // of those that have run, and are to be committed

	// Of those that run at the same time:
	running int
	timed   bool     // late comes, for those that have run
	ended   bool     // all have: the slot commits what is left
	free    reserved // for those that have run
}

// take returns the next job that is to run, or nil.
func (q *batch) take() (snap *store.Snapshot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		snap, q.waiting = q.waiting[0], q.waiting[1:]
	}
	return snap
}

func (q *batch) add(done chained) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done = append(q.done, done)
}

func (q *batch) end() []chained {
	q.mu.Lock()
	defer q.mu.Unlock()
	done := q.done
	q.done = nil
	return done
}

// late commits what is done, and hands back what has not run yet. The slot does not wait for it: nothing prolongs the lease of the run
// that took long once that is over.
func (q *batch) late() {
	done, free := q.left()
	if len(done) == 0 && free.places == 0 {
		return
	}
	defer q.engine.active.Done()
	t := q.engine.newTurn(time.Now())
	defer t.end()
	t.reserved = free // which the end of the turn gives back
	if len(done) > 0 {
		t.settleAll(done, store.Begin{}, false)
	}
}

// left takes out what is to be committed before the run is over that takes long. If there is something the engine waits until that is done.
func (q *batch) left() (done []chained, free reserved) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return nil, free
	}
	done, free = q.done, q.free
	for _, snap := range q.waiting {
		done = append(done, chained{runs: []*ran{newRan(snap, nil, handBack(snap, 0, ""), 0)}})
	}
	q.done, q.waiting, q.timed = nil, nil, false
	q.free.places, q.free.slots = 0, 0
	if len(done) > 0 || free.places > 0 {
		q.engine.active.Add(1)
	}
	return done, free
}

// settleAll commits rows, each as one transaction, and learns from them. With step it also begins runs, as b says. What cannot be
// committed together is committed one by one.
func (t *turn) settleAll(rows []chained, b store.Begin, step bool) (done committed) {
	if len(rows) == 1 {
		return t.settle(rows[0], b, step)
	}
	ctx, end := t.toCommit() // for all of them
	defer end()
	sent := time.Now()
	all, begun, err := t.commitAll(ctx, rows, b, step)
	took := time.Since(sent)
	done.begun = begun
	for i, r := range rows {
		switch {
		case i < len(all) && all[i].Applied > 0:
			done.Result = all[i]
			t.told(ctx, r.runs, committed{Result: all[i]}, nil, took)
			t.learnt(r.runs, r.leads, committed{Result: all[i]})
		case job.Temporary(err):
			t.told(ctx, r.runs, committed{}, err, took)
		default:
			one := t.settleWithin(ctx, r, b, step && i == len(rows)-1)
			done.Result, done.begun = one.Result, append(done.begun, one.begun...)
		}
	}
	return done
}
