package worker

import (
	"context"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// A slot goes on in a tree for that many runs, in one that is alone in its shard for more. Then the ready jobs of its shard take their turns, as many as there are trees
// that have some, for so long at most: then the queues choose again.
const (
	quantumRuns = 120
	aloneRuns   = 480
	quantumTime = 100 * time.Millisecond
)

// handedOn is what a message counts for, in runs, that leaves its way through a tree to
// another turn: else trees whose jobs run in turns of their own would get more than those
// whose runs are chained.
const handedOn = 2

// maxKept is how many queued jobs a slot keeps to itself, to go on with when those that they
// led to have run: were another slot to take them, none of these jobs would ever be suspended,
// and no runs could be chained.
const maxKept = 8

// turn is what a slot does from when it got a job until the queues choose again.
type turn struct {
	*Engine
	start time.Time
	now   time.Time // when the last run ended
	tree  job.ID    // that it is in
	runs  int       // there
	most  int       // runs there at a time
	turns int       // of other trees, that are still to come
	still bool      // no time passes in it, see RunJob
	kept  []job.ID  // queued, and nobody else knows

	reserved    reserved     // for jobs that it may begin besides one
	together    bool         // the jobs that have begun have what was reserved for them
	held        *kind        // the type of which a place is reserved for the runs of the turn, which come one after the other
	leaseKeeper *leaseKeeper // of the lease of the run that it is at
	hand        hand         // which that runs in
}

func (e *Engine) newTurn(start time.Time) *turn {
	return &turn{Engine: e, start: start, now: start, most: quantumRuns, leaseKeeper: newLeaseKeeper(e.cfg.Store, e.cfg.Lease)}
}

// end is to be called when the last run of the turn is over.
func (t *turn) end() {
	t.release(t.reserved)
	t.leaseKeeper.stop()
	t.hand.rest()
	t.presence.over(t)
}

// cost is what a row counts for, in runs.
func cost(row []*ran, leads bool) (n int) {
	for _, r := range row {
		n += r.runs()
	}
	if leads {
		n += handedOn * row[len(row)-1].runs()
	}
	return n
}

// costs is what those of some rows count for that are of the tree that the turn is in.
func (t *turn) costs(rows []chained) (n int) {
	for _, r := range rows {
		if r.runs[0].snap.Info.ID.Tree() == t.tree {
			n += cost(r.runs, r.leads)
		}
	}
	return n
}

// open tells whether the turn may go on.
func (t *turn) open() bool { return t.now.Sub(t.start) < quantumTime && !t.stopping() }

// room tells whether it may go on in its tree after that many more runs.
func (t *turn) room(runs int) bool { return t.runs+runs < t.most && t.open() }

// goOn runs jobs that have begun, and then those that its commits make ready, and others of their shard, for a quantum.
func (t *turn) goOn(begun []*store.Snapshot) {
	if len(begun) == 0 {
		return
	}
	if t.turns = begun[0].Ready; t.turns == 0 {
		t.most = aloneRuns
	}
	granted := t.start
	for len(begun) > 0 {
		rows := t.workAll(begun, granted)
		if len(rows) == 0 {
			return
		}
		granted = time.Now()
		last := rows[len(rows)-1]
		b, step := t.next(rows)
		done := t.settleAll(rows, b, step)
		t.use(done.begun)
		if step && b.Fair {
			t.tree, t.turns = "", t.turns-1
		}
		if done.Held {
			t.kept = append(t.kept, last.runs[0].snap.Info.ID)
		}
		for begun = done.begun; len(begun) == 0 && len(t.kept) > 0 && !t.stopping(); t.kept = t.kept[1:] {
			granted = time.Now()
			if snap, _ := t.cfg.Store.Begin(t.Engine.runs, t.kept[0], t.beginning()); snap != nil { // else the sweeper finds it
				begun = []*store.Snapshot{snap}
			}
		}
	}
}

// next tells how runs are to begin in the call that commits some rows, and whether any are.
func (t *turn) next(rows []chained) (b store.Begin, step bool) {
	last := rows[len(rows)-1]
	b = t.beginning()
	b.Hold = func(next string) bool { return len(t.kept) < maxKept && t.registry().short(next) }
	b.Several = t.several
	b.Fair, b.Own = t.runs+t.costs(rows) >= t.most, len(t.kept) > 0
	step = t.open() && !last.runs[0].delta.Handed && (!b.Fair || t.turns > 0 && len(t.kept) == 0 && t.now.Sub(t.start) < quantumTime/2)
	if last.busy && last.runs[0].delta.Outcome == statemachine.Requeue {
		step = false // it goes on when those that it feeds have caught up: then they are chained
	}
	if step {
		t.reserve(t.registry().kind(last.runs[0].snap.Info.Type))
	}
	return b, step
}

// chained is a chain of runs that is committed as one transaction.
type chained struct {
	runs  []*ran
	leads bool // see chain
	busy  bool
}

// work runs a job whose run has begun, then those that it leads to, and all of them again, for
// as long as that can go into one commit. It returns what is to be committed: nothing, if the job is lost.
func (t *turn) work(snap *store.Snapshot, granted time.Time) (done chained) {
	if tree := snap.Info.ID.Tree(); tree != t.tree {
		t.tree, t.runs = tree, 0
	}
	t.meet(snap.Row)
	first := t.execute(snap, granted, nil)
	if first == nil {
		return chained{}
	}
	done.runs, done.leads, done.busy = t.chain([]*ran{first})
	if !done.busy {
		done.runs, done.leads = t.repeat(done.runs, done.leads)
	}
	if done.runs != nil {
		t.registry().learn(done.runs[0])
	}
	return done
}

// short tells whether runs of a type are known to be short.
func (t *turn) short(name string) bool { return t.still || t.registry().short(name) }

// ended notes that a run of a type is over that began at the time given, and returns how long it took.
func (t *turn) ended(k *kind, began time.Time) (took time.Duration) {
	if t.still {
		return 0
	}
	took = time.Since(began)
	t.now = began.Add(took)
	k.timed(took)
	return took
}

// clock is the time for what a turn learns from commits, which may be made while a run of it is running: now is
// not to be read then.
func (t *turn) clock() time.Time {
	if t.still {
		return t.start
	}
	return time.Now()
}

// settle commits a row, and learns from it.
func (t *turn) settle(r chained, b store.Begin, step bool) committed {
	ctx, end := t.toCommit()
	defer end()
	return t.settleWithin(ctx, r, b, step)
}

// settleWithin does so until ctx ends.
func (t *turn) settleWithin(ctx context.Context, r chained, b store.Begin, step bool) committed {
	done := t.commit(ctx, r.runs, b, step)
	t.learnt(r.runs, r.leads, done)
	return done
}

// learnt notes what a commit tells.
func (t *turn) learnt(row []*ran, leads bool, done committed) {
	if row[0].snap.Info.ID.Tree() == t.tree {
		t.runs += cost(row, leads)
	}
	t.suspended.judge(row, done.Applied, t.clock())
	for _, r := range row[:done.Applied] {
		t.note(r)
	}
	if done.Applied == len(row) && done.Room >= 0 {
		end := row[len(row)-1]
		t.rooms.put(end.snap.Info.ID, end.targets(), done.Room, t.clock())
	}
}

// RunJob runs one queued job as Run would, with run batching and with the jobs that are chained
// to it, and returns when that is committed: for tests and tools that run jobs when they choose,
// instead of Run or beside it. Only how long runs take does not matter, so the same jobs, run in the
// same order by one engine, share commits in the same way each time; and jobs that become ready are
// left to the next call. A job that is not to be run now gives an error that wraps job.ErrStatus,
// job.ErrLocked, job.ErrRate or job.ErrNotFound; how runs ended is in the job's Info and Failures.
// ctx governs only how the first run begins.
func (e *Engine) RunJob(ctx context.Context, id job.ID) error {
	return e.runJob(ctx, id, func(t *turn, snap *store.Snapshot, begun time.Time) {
		if done := t.work(snap, begun); done.runs != nil {
			t.settle(done, store.Begin{}, false)
		}
	})
}

// RunJobOnce is RunJob for a single run of the job, in a commit of its own.
func (e *Engine) RunJobOnce(ctx context.Context, id job.ID) error {
	return e.runJob(ctx, id, func(t *turn, snap *store.Snapshot, begun time.Time) {
		if r := t.execute(snap, begun, nil); r != nil {
			t.settle(chained{runs: []*ran{r}}, store.Begin{}, false)
		}
	})
}

// runJob begins a run of a job, and works on it in a turn in which no time passes.
func (e *Engine) runJob(ctx context.Context, id job.ID, work func(t *turn, snap *store.Snapshot, begun time.Time)) error {
	e.active.Add(1)
	defer e.active.Done()
	begun := time.Now()
	snap, err := e.cfg.Store.Begin(ctx, id, e.beginning())
	if err != nil {
		return err
	}
	t := e.newTurn(time.Time{})
	t.still = true
	defer t.end()
	work(t, snap, begun)
	return nil
}
