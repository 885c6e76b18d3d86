package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/job"
)

// Several jobs at once: where runs of a type are known to be so short that the calls of the store between them take longer, a slot
// begins runs of several ready jobs in one call, works on one after the other, and commits all in one call: each in a transaction of
// its own, as if they had come one by one. Those of a type with Together it runs at the same time, however long they take.

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
		return t.together(k)
	}
	took := time.Duration(k.took.Load())
	if took <= 0 || took > severalTime {
		return 1
	}
	return int(min(severalTime/took, job.MostSeveral))
}

// together does so for a type whose jobs it runs at the same time: no more than may run here, and as there are slots in all.
func (t *turn) together(k *kind) int {
	n := min(k.options.Together, job.MostSeveral, t.cfg.Concurrency-t.presence.count())
	if most := k.options.MaxRunningHere; most > 0 {
		n = min(n, most-int(k.here.Load()))
	}
	return max(n, 1)
}

// workAll works on jobs that have begun, and returns what is to be committed. If a run takes long, others do not wait for it: what is
// done is committed meanwhile, and what has not run yet is handed back.
func (t *turn) workAll(begun []*job.Snapshot, granted time.Time) (rows []chained) {
	if len(begun) == 1 {
		if done := t.work(begun[0], granted); done.runs != nil {
			rows = append(rows, done)
		}
		return rows
	}
	if t.registry().together(begun) {
		return t.workTogether(begun, granted)
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

// together tells whether jobs run at the same time.
func (r *registry) together(begun []*job.Snapshot) bool {
	return !slices.ContainsFunc(begun, func(snap *job.Snapshot) bool {
		k := r.kind(snap.Info.Type)
		return k == nil || k.options.Together <= 1
	})
}

// workTogether is workAll for jobs that run at the same time, each in a turn of its own. None that is done waits long for the others.
func (t *turn) workTogether(begun []*job.Snapshot, granted time.Time) []chained {
	q := &batch{engine: t.Engine, running: len(begun)}
	var all sync.WaitGroup
	for _, snap := range begun {
		all.Go(func() {
			one := t.newTurn(t.start)
			defer one.end()
			q.over(one.work(snap, granted))
		})
	}
	all.Wait()
	t.now = time.Now()
	return q.end()
}

// batch are jobs that a slot has begun at once.
type batch struct {
	engine  *Engine
	mu      sync.Mutex
	waiting []*job.Snapshot
	running int       // those that run at the same time
	timed   bool      // late comes, for those of these that have run
	ended   bool      // all of these have: the slot commits what is left
	done    []chained // of those that have run, and are to be committed
}

// over notes that one of those is over that run at the same time. Without runs there is nothing to commit.
func (q *batch) over(done chained) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	if done.runs != nil {
		q.done = append(q.done, done)
	}
	q.ended = q.running == 0
	if !q.ended && !q.timed && len(q.done) > 0 {
		q.timed = true
		time.AfterFunc(shortRun, q.late)
	}
}

// take returns the next job that is to run, or nil.
func (q *batch) take() (snap *job.Snapshot) {
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

// late commits what is done, and hands back what has not run yet. The slot waits for it once the run is over that took long.
func (q *batch) late() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	done := q.done
	for _, snap := range q.waiting {
		done = append(done, chained{runs: []*ran{newRan(snap, nil, handBack(snap, 0, ""), 0)}})
	}
	q.done, q.waiting, q.timed = nil, nil, false
	if len(done) == 0 {
		return
	}
	t := q.engine.newTurn(time.Now())
	defer t.end()
	t.settleAll(done, job.Begin{}, false)
}

// settleAll commits rows, each as one transaction, and learns from them. With step it also begins runs, as b says. What cannot be
// committed together is committed one by one.
func (t *turn) settleAll(rows []chained, b job.Begin, step bool) (done committed) {
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
