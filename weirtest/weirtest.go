package weirtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Epoch is when the clock of every Engine begins.
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// DefaultMaxRuns is how many runs one call may take to get quiet.
const DefaultMaxRuns = 10_000

// lease is much longer than any run, so that a test may stop in a debugger.
const lease = time.Hour

// TB is what this package needs of a *testing.T, *testing.B or *rapid.T. One that has
// Logf too is told what the engine logs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Engine runs the jobs of one test, when the test says so.
type Engine struct {
	// MaxRuns is how many runs one call of RunUntilIdle or Advance may take before
	// the test fails; those that share a commit with the last of them come on top. Zero means
	// DefaultMaxRuns.
	MaxRuns int

	tb     TB
	ctx    context.Context //nolint:containedctx // the test's own: it ends in the cleanup
	clock  *redisstore.Clock
	store  *redisstore.Store
	client *client.Client
	engine *worker.Engine
	types  map[string]bool // those that engine runs

	versions map[string]int // of them

	trees int             // started by this Engine
	line  []job.ID        // ready jobs, in the order in which they became ready
	stuck map[job.ID]bool // ready, but locked
	due   []redisstore.Due
	stale bool           // due is no more what it was
	runs  map[job.ID]int // of the current call
	total int            // of them
}

// New returns an engine for the given types of workers, with a store of its own that is
// closed when the test ends.
func New(tb TB, workers ...worker.Worker) *Engine {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e := &Engine{tb: tb, ctx: ctx, clock: redisstore.NewClock(Epoch), types: map[string]bool{}, versions: map[string]int{}}
	tb.Cleanup(cancel)
	var err error
	// A tree lies in one shard anyway: one shard is faster to look through.
	if e.store, err = redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start, Shards: 1, Clock: e.clock}); err != nil {
		tb.Fatalf("weirtest: %v", err)
		return nil
	}
	tb.Cleanup(func() { _ = e.store.Close() })
	e.client = client.New(everyQueue{e.store})
	e.engine, err = worker.New(worker.Config{
		Store: observed{e.store, e}, Workers: workers, Lease: lease, Logger: logger(tb),
	})
	if err != nil {
		tb.Fatalf("weirtest: %v", err)
		return nil
	}
	if err := e.engine.Register(e.ctx); err != nil {
		tb.Fatalf("weirtest: %v", err)
		return nil
	}
	for _, w := range workers {
		name, _ := job.TypeOf(w) // worker.New has checked it
		e.types[name] = true
		e.versions[name], _ = job.VersionOf(w)
	}
	return e
}

// everyQueue is a store in which a type that is registered for the default queue is known in all:
// the engine runs jobs of every queue.
type everyQueue struct{ *redisstore.Store }

// Type implements store.Types.
func (s everyQueue) Type(ctx context.Context, queue, name string) (*job.TypeInfo, error) {
	t, err := s.Store.Type(ctx, queue, name)
	if errors.Is(err, job.ErrUnknownType) {
		if known, err := s.Store.Type(ctx, job.DefaultQueue, name); err == nil {
			return known, nil
		}
	}
	return t, err
}

// Client returns a client of the engine's store, for what Engine has no method for. The
// trees that it starts have IDs and an order of their own, different in each test run.
func (e *Engine) Client() *client.Client { return e.client }

// Store returns the engine's store, for what is to be given one, such as a server of package api. The Engine closes it.
func (e *Engine) Store() *redisstore.Store { return e.store }

// Now returns what the clock shows. Every engine's begins at Epoch.
func (e *Engine) Now() time.Time { return e.clock.Now() }

// Start creates the jobs of a graph, or of any other plan, and runs none of them.
func (e *Engine) Start(p job.Planner) *client.Handle {
	e.tb.Helper()
	plan, err := p.Plan()
	if e.failed(err) || e.failed(plan.Validate()) {
		return nil
	}
	for _, n := range plan.Nodes {
		if !n.Graph && !e.types[n.Type] {
			e.tb.Fatalf("weirtest: nobody runs job %s: %s", cmp.Or(n.Name, n.Type), e.unknown(n.Type))
			return nil
		}
	}
	// The client would choose a random ID.
	e.trees++
	id := job.ID(fmt.Sprintf("%08x-%04x-7000-8000-%012x", Epoch.UnixMilli()>>16, Epoch.UnixMilli()&0xffff, e.trees))
	if _, err := e.store.Create(e.ctx, id, plan, ""); e.failed(err) {
		return nil
	}
	h, err := e.client.Find(e.ctx, string(id))
	if e.failed(err) {
		return nil
	}
	e.look()
	return h
}

// StartWorker creates one job: w, with the parameters that its fields hold.
func (e *Engine) StartWorker(w worker.Worker) *client.Handle {
	e.tb.Helper()
	return e.Start(job.Single(w, ""))
}

// Feed writes messages to an In port of a job.
func (e *Engine) Feed(h *client.Handle, in string, messages ...any) {
	e.tb.Helper()
	if !e.failed(h.Write(e.ctx, in, messages...)) {
		e.look()
	}
}

// CloseIn ends an In port of a job: no message will come any more.
func (e *Engine) CloseIn(h *client.Handle, in string) {
	e.tb.Helper()
	if !e.failed(h.Close(e.ctx, in)) {
		e.look()
	}
}

// failed fails the test if there is an error. It is false for a nil error.
func (e *Engine) failed(err error) bool {
	e.tb.Helper()
	if err != nil {
		e.tb.Fatalf("weirtest: %v", err)
	}
	return err != nil
}

func (e *Engine) unknown(typ string) string {
	return fmt.Sprintf("there is no worker of type %q; give one to weirtest.New", typ)
}

// observed is the store as the engine sees it: the clock says when a run failed, and runs are counted.
type observed struct {
	*redisstore.Store
	e *Engine
}

// Commit implements store.Runs.
func (s observed) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	for _, tx := range txs {
		for i := range tx.Deltas {
			if f := tx.Deltas[i].Failure; f != nil {
				f.At = s.e.clock.Now()
			}
		}
	}
	results, err := s.Store.Commit(ctx, txs)
	for i, r := range results {
		for _, d := range txs[i].Deltas[:r.Applied] {
			n := len(d.Parts())
			if d.Outcome == store.Checkpoint && !d.Leads {
				n-- // its last run goes on
			}
			s.e.runs[d.Job] += n
			s.e.total += n
		}
	}
	return results, err
}

// logger tells the test what the engine logs, if the test wants to know.
func logger(tb TB) *slog.Logger {
	l, ok := tb.(interface{ Logf(string, ...any) })
	if !ok {
		return slog.New(slog.DiscardHandler)
	}
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(logs(l.Logf), &slog.HandlerOptions{ReplaceAttr: untimed}))
}

// logs writes lines with a test's Logf.
type logs func(format string, args ...any)

// Write implements io.Writer.
func (l logs) Write(p []byte) (int, error) {
	l("%s", strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}
