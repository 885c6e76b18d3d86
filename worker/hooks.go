package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Hooks are called by an engine around what it does, to log, count and trace it, to put something into the context of
// runs, or to report failures: see Config.Hooks. NoHooks, embedded, has the methods that a type does not need. All methods
// may be called by several goroutines at once, and hold up the engine while they last.
type Hooks interface {
	// Run is called around the code of each run. It calls next once, with ctx or a context made of it, and returns its
	// error, or another one that takes its place. What it writes and logs belongs to the run. Panics of the
	// run pass through it.
	Run(ctx context.Context, run *Run, next func(context.Context) error) error
	// Ended is called when the code of a run is over, before what it did is committed; of a run that a client had, see Run.Remote,
	// when that was committed, or refused.
	Ended(end *RunEnd)
	// Committed is called after each commit.
	Committed(c *Commit)
}

// Selective is implemented by Hooks that want to be told of the end of some runs only. If all hooks of an engine are so, no more is
// spent on the others.
type Selective interface {
	// WantsEnd tells whether Ended is to be called for a run whose code is over.
	WantsEnd(run *Run) bool
}

// NoHooks does nothing. Types that implement Hooks embed it.
type NoHooks struct{}

// Run implements Hooks.
func (NoHooks) Run(ctx context.Context, _ *Run, next func(context.Context) error) error {
	return next(ctx)
}

// Ended implements Hooks.
func (NoHooks) Ended(*RunEnd) {}

// Committed implements Hooks.
func (NoHooks) Committed(*Commit) {}

// Outcome is how a run ended.
type Outcome string

// The outcomes of runs.
const (
	Completed    Outcome = "completed"     // the job is
	Suspended    Outcome = "suspended"     // until something wakes the job
	Requeued     Outcome = "requeued"      // the job runs again at once
	Retried      Outcome = "retried"       // it failed; the job tries again, now or later
	DeadLettered Outcome = "dead_lettered" // it failed; the message that it read is put aside
	Failed       Outcome = "failed"        // and so did the job
	Terminated   Outcome = "terminated"    // it was the last run of a terminated job
	HandedBack   Outcome = "handed_back"   // nothing of it counts: another run takes its place
	Lost         Outcome = "lost"          // its lease ended before it did
	Refused      Outcome = "refused"       // a client said what cannot be committed; it has its run still, see Leases
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome {
	return []Outcome{Completed, Suspended, Requeued, Retried, DeadLettered, Failed, Terminated, HandedBack, Lost, Refused}
}

// RunEnd is what is known of a run whose code is over.
type RunEnd struct {
	Run   *Run // which one: that which Hooks.Run was called with, unless its code was not called
	Job   job.ID
	Type  string
	Queue string
	Step  int64         // commits of the job before it
	Try   int           // 1, or more after failures in succession
	Began time.Time     // by the store's clock
	Took  time.Duration // its code
	// Waited is for how long the job was queued before the run began; negative if it never was, as the run followed
	// others in one commit.
	Waited time.Duration
	// Crashed: the run before it ended without a commit, as its process died, or was cut off.
	Crashed bool
	// Speculative: the run read what is not committed yet, see Options.Pure. It may be discarded and repeated.
	Speculative bool
	Outcome     Outcome
	// Err is what the run returned, or what else ended it; nil if all went well.
	Err error
	// Failure is what is recorded of a run that failed, with the stack of a panic; else nil.
	Failure *job.Failure
	// Secret: the store encrypts what jobs hold, so Err and Failure do not belong in logs.
	Secret bool
}

// Commit is what is known of a commit: of a run, of several that followed each other, or of a Checkpoint.
type Commit struct {
	Jobs       []CommittedJob // in the order of their runs; the first is the one that a slot began with
	Took       time.Duration  // until the store answered, with waiting for others and asking again
	Bytes      int            // of what it writes, about
	Checkpoint bool           // the run goes on
	Blocked    bool           // a port that was written to is full: its writer is suspended by backpressure
	// Err is why the jobs that are not Applied are not; nil if all are.
	Err error
	// Failure: with that the first job failed, as what its run did can never be committed. Else nil.
	Failure *job.Failure
	Secret  bool // as in RunEnd
}

// CommittedJob is what a commit holds of one job.
type CommittedJob struct {
	Job         job.ID
	Type        string
	Queue       string
	Runs        int // that the commit ends
	Read        int // messages
	Written     int // messages
	Spawned     int // children
	DeadLetters int
	Speculative bool // the runs read what was not committed before, see Options.Pure
	Applied     bool // else nothing of it holds, and the runs are repeated
}

// hookSet calls several hooks. A panic in one that no run can be blamed for is logged.
type hookSet struct {
	all       []Hooks
	selective []Selective // all of them; nil if one is not
	log       *slog.Logger
}

// newHooks returns nil if there are none, so that no run pays for them.
func newHooks(all []Hooks, log *slog.Logger) *hookSet {
	if len(all) == 0 {
		return nil
	}
	h := &hookSet{all: all, log: log}
	for _, hook := range all {
		one, ok := hook.(Selective)
		if !ok {
			h.selective = nil
			break
		}
		h.selective = append(h.selective, one)
	}
	return h
}

// wantEnd tells whether a hook wants to be told of the end of a run.
func (h *hookSet) wantEnd(run *Run) bool {
	want := h.selective == nil
	if !want {
		h.call(func() { want = slices.ContainsFunc(h.selective, func(one Selective) bool { return one.WantsEnd(run) }) })
	}
	return want
}

// Run implements Hooks: the first of them is the outermost.
func (h *hookSet) Run(ctx context.Context, run *Run, next func(context.Context) error) error {
	for i := len(h.all) - 1; i > 0; i-- {
		hook, inner := h.all[i], next
		next = func(ctx context.Context) error { return hook.Run(ctx, run, inner) }
	}
	return h.all[0].Run(ctx, run, next)
}

// Ended implements Hooks.
func (h *hookSet) Ended(end *RunEnd) {
	for _, hook := range h.all {
		h.call(func() { hook.Ended(end) })
	}
}

// Committed implements Hooks.
func (h *hookSet) Committed(c *Commit) {
	for _, hook := range h.all {
		h.call(func() { hook.Committed(c) })
	}
}

func (h *hookSet) call(fn func()) {
	defer func() {
		if v := recover(); v != nil {
			h.log.Error("a hook panicked", "panic", v)
		}
	}()
	fn()
}

// endOf is what hooks are told of a run whose code returned err, and of which d is to be committed: nil if it lost its job.
func endOf(run *Run, typ string, i *job.Info, d *store.Delta, err error, took time.Duration) *RunEnd {
	end := &RunEnd{
		Run: run, Job: i.ID, Type: typ, Queue: i.Queue, Step: i.Steps, Try: i.Tries + 1, Began: i.Ran, Took: took, Waited: -1,
		Outcome: outcomeOf(d), Err: err, Secret: run.store.Encodes(),
	}
	if end.Speculative = run.speculation && run.settle == nil; !run.speculation {
		end.Crashed = i.Crashes > 0
		end.Waited = max(i.Ran.Sub(i.Queued), 0)
	}
	if d != nil {
		end.Failure = d.Failure
	}
	switch {
	case end.Speculative && end.Failure != nil: // its job is run again, the usual way
		end.Outcome, end.Failure = HandedBack, nil
	case end.Failure != nil && err == nil:
		end.Err = errors.New(end.Failure.Error)
	}
	if errors.Is(err, ErrSuspend) || errors.Is(err, ErrFull) || errors.Is(err, ErrAgain) {
		end.Err = nil
	}
	return end
}

func outcomeOf(d *store.Delta) Outcome {
	switch {
	case d == nil:
		return Lost
	case d.Failure != nil && d.Handed || d.Outcome == statemachine.Backoff:
		return Retried
	case d.Handed:
		return HandedBack
	case deadLetters(d) > 0:
		return DeadLettered
	case d.Outcome == statemachine.Complete, d.Outcome == statemachine.Reschedule:
		return Completed
	case d.Outcome == statemachine.Suspend:
		return Suspended
	case d.Outcome == statemachine.Fail:
		return Failed
	case d.Outcome == statemachine.Shutdown:
		return Terminated
	}
	return Requeued
}

// deadLetters is how many messages a failed run puts aside.
func deadLetters(d *store.Delta) int {
	if d.Failure != nil && len(d.Writes) == 1 && d.Writes[0].Job == "" && d.Writes[0].Port == job.ErrorsPort {
		return 1
	}
	return 0
}

// committedJob is what hooks are told of a delta.
func committedJob(d *store.Delta, i *job.Info, runs int) CommittedJob {
	one := CommittedJob{
		Job: i.ID, Type: i.Type, Queue: i.Queue, Runs: runs, Spawned: len(d.Spawns), DeadLetters: deadLetters(d), Speculative: d.Speculation != nil,
	}
	for _, t := range d.Takes {
		one.Read += t.N
	}
	count := func(writes []store.Write) {
		for _, w := range writes {
			one.Written += len(w.Items)
		}
	}
	count(d.Writes)
	for i := range d.Before {
		count(d.Before[i].Writes)
	}
	if d.Handed {
		one.Runs, one.Read, one.Written = 0, 0, 0
	}
	return one
}

// tellCommit tells hooks of a commit of a chain, and why the rest of it was refused, or all of it.
func (e *Engine) tellCommit(row []*ran, done committed, err error, failure *job.Failure, took time.Duration) {
	c := &Commit{Took: took, Blocked: err == nil && done.Full, Err: err, Failure: failure, Secret: e.cfg.Store.Encodes()}
	for n, r := range row {
		one := committedJob(r.sum, &r.snap.Info, r.runs())
		one.Applied = err == nil && n < done.Applied
		c.Jobs, c.Bytes = append(c.Jobs, one), c.Bytes+r.size
	}
	if err == nil && done.Applied < len(row) {
		c.Err = done.Refused
	}
	e.hooks.Committed(c)
}

// tellCheckpoint tells hooks of a checkpoint.
func (r *Run) tellCheckpoint(d *store.Delta, res store.Result, err error, size int, took time.Duration) {
	one := committedJob(d, r.info, 0)
	one.Applied = err == nil
	r.hooks.Committed(&Commit{
		Jobs: []CommittedJob{one}, Took: took, Bytes: size, Checkpoint: true, Blocked: err == nil && res.Full, Err: err, Secret: r.store.Encodes(),
	})
}

// LogHooks returns hooks that log each run, at level Info or, if it failed or was lost, Warn, and each commit at Debug. What an
// encrypted store holds is not logged. Nil means slog.Default().
func LogHooks(log *slog.Logger) Hooks {
	if log == nil {
		log = slog.Default()
	}
	return &logHooks{log: log}
}

type logHooks struct {
	NoHooks
	log *slog.Logger
}

// Ended implements Hooks.
func (h *logHooks) Ended(end *RunEnd) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("job", string(end.Job)), slog.String("type", end.Type), slog.String("queue", end.Queue), slog.Int64("step", end.Step),
		slog.Int("try", end.Try), slog.String("outcome", string(end.Outcome)), slog.Duration("took", end.Took),
	}
	if end.Waited >= 0 {
		attrs = append(attrs, slog.Duration("waited", end.Waited))
	}
	if end.Speculative {
		attrs = append(attrs, slog.Bool("speculative", true))
	}
	if end.Failure != nil || end.Outcome == Lost || end.Outcome == Refused {
		level = slog.LevelWarn
	}
	if end.Err != nil && !end.Secret {
		attrs = append(attrs, slog.String("error", firstLine(end.Err.Error())))
		if end.Failure != nil && end.Failure.Stack != "" {
			attrs = append(attrs, slog.String("at", end.Failure.PanickedAt()))
		}
	}
	h.log.LogAttrs(context.Background(), level, "run ended", attrs...)
}

// Committed implements Hooks.
func (h *logHooks) Committed(c *Commit) {
	ctx := context.Background()
	if !h.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	runs, applied := 0, 0
	for _, one := range c.Jobs {
		runs += one.Runs
		if one.Applied {
			applied += one.Runs
		}
	}
	attrs := []slog.Attr{
		slog.String("job", string(c.Jobs[0].Job)), slog.Int("jobs", len(c.Jobs)), slog.Int("runs", runs), slog.Int("applied", applied),
		slog.Int("bytes", c.Bytes), slog.Duration("took", c.Took), slog.Bool("checkpoint", c.Checkpoint), slog.Bool("blocked", c.Blocked),
	}
	if c.Err != nil && !c.Secret {
		attrs = append(attrs, slog.String("error", firstLine(c.Err.Error())))
	}
	h.log.LogAttrs(ctx, slog.LevelDebug, "committed", attrs...)
}
