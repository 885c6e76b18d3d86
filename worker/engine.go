package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// lastWords is how long a commit may take after the drain time.
const lastWords = 2 * time.Second

// sweepEvery is how often the leading engine of a namespace puts right what is past due.
const sweepEvery = time.Second

// announceEvery is how often an engine that starts looks whether Redis answers again.
const announceEvery = 500 * time.Millisecond

// sweepSlack is how long after the end of another one's leadership an engine tries to lead.
const sweepSlack = 5 * time.Millisecond

// Engine runs the jobs of some worker types. Any number of engines, in any number of
// processes, may serve one namespace.
type Engine struct {
	cfg       Config
	id        string // known to those who look; its runs' tokens begin with it
	types     atomic.Pointer[registry]
	adding    sync.Mutex
	runs      context.Context //nolint:containedctx // the parent of all runs' contexts, which outlives the one given to Run
	abort     context.CancelCauseFunc
	active    sync.WaitGroup
	quiet     chan struct{} // closed when no further run may begin
	ran       atomic.Bool
	serving   atomic.Bool
	slots     atomic.Pointer[delivery.Server] // once it serves
	grouped   atomic.Pointer[kind]            // the type of which several jobs were run at the same time last
	timers    atomic.Int64                    // held in memory
	unknown   sync.Map                        // types of jobs that nobody here runs, or job.ErrCodec: those that were told of
	presence  presence
	heartbeat chan struct{} // has a value when the engine is to tell of itself now
	suspended sleepers
	rooms     rooms
	limits    atomic.Pointer[[]store.RunLimit] // of runs at once
	hooks     *hookSet                         // nil: none
	tally     tally
}

// errRan: an engine that has stopped cannot start again.
var errRan = errors.New("this engine runs, or has run, already: make a new one with worker.New")

// New returns an engine. All problems of the configuration and of the workers' port
// declarations are errors here, not later.
func New(cfg Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	r, err := newRegistry(cfg.Workers, cfg.Defaults)
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, id: rand.Text(), heartbeat: make(chan struct{}, 1), quiet: make(chan struct{}), hooks: newHooks(cfg.Hooks, cfg.Logger)}
	e.types.Store(r)
	e.limits.Store(&r.running)
	e.runs, e.abort = context.WithCancelCause(context.Background())
	return e, nil
}

// Run serves jobs until ctx ends. Then it takes no further jobs, gives runs the drain
// time to finish, cancels and hands back those that do not, and returns when all have
// ended. Runs that have not five seconds after their context was cancelled it abandons, with an error that names
// their jobs: these are run again when their leases end, and what such a run commits later is refused. An engine runs once.
func (e *Engine) Run(ctx context.Context) error {
	if !e.ran.CompareAndSwap(false, true) {
		return errRan
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := e.announce(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("starting the engine: %w", err)
	}
	e.lookAtLimits(ctx)
	for _, warning := range e.cfg.Store.Warnings(ctx) {
		e.cfg.Logger.Warn(warning)
	}
	leave := e.present(ctx)
	defer leave()
	srv, err := e.cfg.Store.Broker().Serve(delivery.ServeConfig{
		Concurrency: e.cfg.Concurrency,
		Queues:      e.cfg.Queues,
		Drain:       e.cfg.Drain + abandonAfter,
		Logger:      e.cfg.Logger,
		Handle:      e.handle,
		Runs:        e.takes,
		Next:        func() (store.Begin, []string) { return e.beginning(), e.asks(nil) },
		Begun:       e.begun,
		Lowest:      e.lowest,
		Closing:     cancel,
	})
	if err != nil {
		return fmt.Errorf("starting the engine: %w", err)
	}
	e.slots.Store(&srv)
	e.serving.Store(true)
	sweeping := make(chan struct{})
	go func() {
		defer close(sweeping)
		sweep(ctx, e.cfg.Store, e.cfg.Logger)
	}()
	<-ctx.Done()
	close(e.quiet)
	srv.StopTaking()
	timer := time.AfterFunc(e.cfg.Drain, func() { e.abort(errStopping) })
	late := time.After(e.cfg.Drain + abandonAfter)
	srv.Stop()
	err = e.awaitRuns(late)
	timer.Stop()
	e.abort(errStopping)
	e.letGo()
	<-sweeping
	return err
}

// announce tells the store what the engine runs. A store that does not answer is waited for, as it is later.
func (e *Engine) announce(ctx context.Context) error {
	for told := false; ; told = true {
		err := e.Register(ctx)
		for queue, n := range e.cfg.QueueLimits {
			if err == nil {
				err = e.cfg.Store.SetQueueLimit(ctx, queue, n)
			}
		}
		if !job.Temporary(err) {
			return err
		}
		if !told {
			e.cfg.Logger.Warn("the engine starts when Redis answers", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(announceEvery):
		}
	}
}

// RunWhile serves jobs for as long as fn runs, and returns fn's error and that of Run, joined if there are both. fn's context ends
// with ctx and when the engine fails: the reason is the context's cause, and what RunWhile returns in place of an error of fn then.
func (e *Engine) RunWhile(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = e.Run(ctx)
		stop(failed)
	}()
	end := func() {
		stop(nil)
		<-ended
	}
	defer end() // also if fn panics
	err := fn(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	end()
	if failed == nil || errors.Is(err, failed) {
		return err
	}
	return errors.Join(err, failed)
}

// Running returns the runs in progress, the oldest first. While Run stops they are what it waits for.
func (e *Engine) Running() []store.RunningJob { return e.presence.running() }

// Abort makes an engine that is stopping do now what it does when the drain time is over: the contexts of the
// runs in progress are cancelled and their jobs handed back. An engine that is not stopping yet begins no
// run afterwards.
func (e *Engine) Abort() { e.abort(errStopping) }

// errNotServing: Run was not called, or is not that far yet.
var errNotServing = errors.New("the engine has not started")

// Ready returns nil while the engine takes jobs, else why it does not: it has not started yet, or it stops.
func (e *Engine) Ready() error {
	switch {
	case !e.serving.Load():
		return errNotServing
	case e.stopping():
		return errStopping
	}
	return nil
}

// Register tells the store which types of workers the engine runs, in which queues, so
// that anybody can create jobs of them. Run does so at its start.
func (e *Engine) Register(ctx context.Context) error {
	if err := e.cfg.Store.Register(ctx, e.registry().catalogue(e.cfg.Queues)); err != nil {
		return fmt.Errorf("registering workers: %w", err)
	}
	return nil
}

func (e *Engine) stopping() bool {
	select {
	case <-e.quiet:
		return true
	default:
		return false
	}
}

// handle begins a run of a ready job of a queue, and goes on with others there.
func (e *Engine) handle(_ context.Context, notification delivery.Notification) error {
	if e.stopping() {
		return delivery.ErrStopping // another engine is to hear it
	}
	e.active.Add(1)
	defer e.active.Done()
	t := e.newTurn(time.Now())
	defer t.end()
	b := e.beginning()
	if notification.Heard {
		b.AtLeast = notification.Priority()
	}
	if k := e.groups(notification); k != nil {
		t.reserve(k)
		b.Several = t.atOnce
	}
	begun, err := e.cfg.Store.Pop(e.runs, notification.Queue, notification.Shard, notification.Gen, b, e.asks(t.keeps()))
	if errors.Is(err, job.ErrHotLoop) {
		e.cfg.Logger.Warn("a job is throttled until the minute is over: let it ask for a later run (WakeAfter), or give its type MaxRunsPerMinute: -1",
			"error", err)
		return nil
	}
	if errors.Is(err, job.ErrCodec) {
		if _, told := e.unknown.LoadOrStore(job.ErrCodec, true); !told {
			e.cfg.Logger.Error("a job cannot be decoded; such jobs wait, and say why", "error", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	t.use(begun)
	t.goOn(begun)
	return nil
}

// begun goes on with a run that began, not before since, in the call that made its job ready.
func (e *Engine) begun(snap *store.Snapshot, since time.Time) {
	e.active.Add(1)
	defer e.active.Done()
	t := e.newTurn(since)
	defer t.end()
	t.goOn([]*store.Snapshot{snap})
}

// lowest tells, by lot, whether a job of the lowest priority has its turn.
func (e *Engine) lowest() bool { return e.cfg.Aging > 0 && mrand.N(e.cfg.Aging) == 0 }

func (e *Engine) beginning() store.Begin {
	return store.Begin{
		Token: job.RunToken(e.id), Lease: e.cfg.Lease,
		Batch: batchMessages, Batches: *e.registry().batches.Load(), Bytes: batchBytes, Row: rowRuns - 1, Limits: e.registry().limits,
		Running: *e.limits.Load(), Lowest: e.lowest(),
	}
}

// committed is what came of a commit.
type committed struct {
	store.Result
	begun []*store.Snapshot // of runs that began with it
}

// tx is the transaction of a row of runs.
func tx(row []*ran) (tx store.Tx) {
	for _, r := range row {
		tx.Deltas = append(tx.Deltas, *r.sum)
	}
	return tx
}

// toCommit is the context of commits. A run that is over is committed even if the engine stops meanwhile; but when the
// drain time is over a store that does not answer is not waited for much longer.
func (e *Engine) toCommit() (ctx context.Context, end func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.runs), patience)
	stop := context.AfterFunc(e.runs, func() { time.AfterFunc(lastWords, cancel) })
	return ctx, func() { stop(); cancel() }
}

// commit stores what a row of runs did. With step it also begins, as b says, a run of a job
// that the commit made ready.
func (t *turn) commit(ctx context.Context, row []*ran, b store.Begin, step bool) (done committed) {
	failpoint.Hit(failpoint.AfterUserBeforeCommit)
	sent := time.Now()
	err := retry(ctx, func() error {
		var all []store.Result
		var err error
		if step {
			all, done.begun, err = t.cfg.Store.Step(ctx, []store.Tx{tx(row)}, b, t.asks(t.keeps()))
		} else {
			all, err = t.cfg.Store.Commit(ctx, []store.Tx{tx(row)})
		}
		if len(all) > 0 {
			done.Result = all[0]
		}
		if err == nil && done.Applied == 0 {
			err = done.Refused // else what was guessed wrong happens again
		}
		return err
	})
	t.told(ctx, row, done, err, time.Since(sent))
	return done
}

// commitAll stores what several rows of runs did, each as a transaction, with one call. With step it also begins runs, as b says.
// A store that cannot be reached is asked again; with another error what has a result was stored.
func (t *turn) commitAll(ctx context.Context, rows []chained, b store.Begin, step bool) (all []store.Result, begun []*store.Snapshot, err error) {
	failpoint.Hit(failpoint.AfterUserBeforeCommit)
	txs := make([]store.Tx, len(rows))
	for i, r := range rows {
		txs[i] = tx(r.runs)
	}
	var other error
	err = retry(ctx, func() (err error) {
		if step {
			all, begun, err = t.cfg.Store.Step(ctx, txs, b, t.asks(t.keeps()))
		} else {
			all, err = t.cfg.Store.Commit(ctx, txs)
		}
		if !job.Temporary(err) {
			other, err = err, nil
		}
		return err
	})
	return all, begun, errors.Join(err, other)
}

// told does what is to be done when it is known what came of a commit.
func (e *Engine) told(ctx context.Context, row []*ran, done committed, err error, took time.Duration) {
	snap, d, failure := row[0].snap, row[0].sum, (*job.Failure)(nil)
	log := e.cfg.Logger.With("job", snap.Info.ID, "type", snap.Info.Type)
	switch {
	case err == nil:
		for _, r := range row[:done.Applied] {
			e.remind(r.sum)
			e.tally.committed(r.sum, &r.snap.Info, r.runs())
		}
		if d.Outcome == statemachine.Fail {
			e.logFailure(log, d)
		}
	case errors.Is(err, job.ErrFenced), errors.Is(err, job.ErrNotFound):
		log.Warn("run was not committed: its job is gone or has another run", "error", err)
	case errors.Is(err, job.ErrTooLarge) && row[0].runs() > 1: // together, for their messages go to many
		e.registry().kinds[snap.Info.Type].alone.Store(true)
		e.giveUp(ctx, log, handBack(&store.Snapshot{Info: snap.Info, Token: d.Token}, 0, ""))
	case errors.Is(err, job.ErrTooLarge) && most(d.Takes) > 1 && snap.Info.Single >= 0 && !snap.Shutdown: // as in conclude
		back := handBack(&store.Snapshot{Info: snap.Info, Token: d.Token}, 0, firstLine(err.Error()))
		back.Single = strconv.Itoa(most(d.Takes))
		e.giveUp(ctx, log, back)
	case errors.Is(err, job.ErrMoved):
		e.giveUp(ctx, log, handBack(&store.Snapshot{Info: snap.Info, Token: d.Token}, 0, ""))
	case permanent(err):
		outcome := statemachine.Fail
		if snap.Shutdown {
			outcome = statemachine.Shutdown // which an error does not prevent
		}
		failure = &job.Failure{At: time.Now().UTC(), Step: snap.Info.Steps, Try: snap.Info.Tries + 1, Error: err.Error()}
		e.giveUp(ctx, log, &store.Delta{Job: d.Job, Token: d.Token, Outcome: outcome, Reason: firstLine(err.Error()), Failure: failure})
		e.tally.failed.Add(1)
	default:
		log.Error("run could not be committed; it will be repeated when its lease ends", "error", err)
	}
	if e.hooks != nil {
		e.tellCommit(row, done, err, failure, took)
	}
}

// most is how many messages are taken of the port of which most are.
func most(takes []store.Take) (n int) {
	for _, t := range takes {
		n = max(n, t.N)
	}
	return n
}

// logFailure tells that a job failed, where it panicked, and why: unless that is encrypted in the store.
func (e *Engine) logFailure(log *slog.Logger, d *store.Delta) {
	if d.Failure != nil {
		if at := d.Failure.PanickedAt(); at != "" {
			log = log.With("at", at)
		}
	}
	if !e.cfg.Store.Encodes() {
		log.Error("job failed", "error", d.Reason)
		return
	}
	log.Error("job failed; its data are encrypted: weir why tells the reason")
	log.Debug("job failed", "error", d.Reason)
}

// giveUp commits what takes the place of a commit that was refused.
func (e *Engine) giveUp(ctx context.Context, log *slog.Logger, d *store.Delta) {
	if _, err := commit(ctx, e.cfg.Store, *d); err != nil {
		log.Error("run could not be ended; its job goes on when the lease ends", "error", err)
	}
}

// sweep keeps trying to lead the namespace's sweeping until ctx ends. It sweeps once in any case:
// an engine often starts because another one has died, which may still be taken for the leader.
func sweep(ctx context.Context, store store.Sweeper, log *slog.Logger) {
	failed := func(err error) { log.Warn("sweep failed; it is repeated", "error", err) }
	if _, err := store.Sweep(ctx); err != nil && ctx.Err() == nil {
		failed(err)
	}
	for {
		others, err := store.Lead(ctx, func(ctx context.Context) {
			store.Watch(ctx, sweepEvery, failed)
		})
		if err != nil && ctx.Err() == nil {
			log.Warn("sweeper leadership", "error", err)
		}
		if err != nil || others > sweepEvery { // a lock that a clock has set far ahead is no reason to wait for longer
			others = sweepEvery
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(others + sweepSlack):
		}
	}
}
