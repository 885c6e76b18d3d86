package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Brief writes twice what it reads. Its runs are short, but for that of one job.
type Brief struct {
	In  port.In[int]
	Out port.Out[int]

	long     *long
	together int
}

// WorkerOptions implements worker.Configured.
func (w *Brief) WorkerOptions() worker.Options { return worker.Options{Together: w.together} }

// long is what the runs of a test have in common: one job's run lasts until its channel is closed.
type long struct {
	mu      sync.Mutex
	job     job.ID
	behind  []*store.Snapshot // that began in the same call, behind it
	before  job.ID            // before it
	most    int               // that began at once
	began   atomic.Bool       // the long run
	release chan struct{}
}

func (l *long) is(id job.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return id == l.job
}

func (l *long) mostBegun() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

// Run implements worker.Worker.
func (w *Brief) Run(_ context.Context, run *worker.Run) error {
	if w.long.is(run.ID()) {
		w.long.began.Store(true)
		<-w.long.release
	}
	for v, err := range w.In.All() {
		if err != nil {
			return err
		}
		if err := w.Out.Write(2 * v); err != nil {
			return err
		}
	}
	return nil
}

// severalStore notes what began at once: once that were four, the run of the second of them is to be long. It may lose calls and
// replies.
type severalStore struct {
	worker.Store
	long   *long
	choose bool
	calls  atomic.Int64
	handed atomic.Int64 // runs that were handed back
	lose   func(n int64) (call, reply bool)
	err    error        // of what is lost
	broken atomic.Bool  // the job before the long one cannot be committed
	tries  atomic.Int64 // … which was tried that often
}

// Commit implements store.Runs.
func (s *severalStore) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	s.long.mu.Lock()
	before := s.long.before
	s.long.mu.Unlock()
	if s.broken.Load() && slices.ContainsFunc(txs, func(tx store.Tx) bool { return tx.Deltas[0].Job == before }) {
		s.tries.Add(1)
		return nil, errors.New("ERR damaged")
	}
	s.count(txs)
	return s.Store.Commit(ctx, txs)
}

// count counts runs that are handed back.
func (s *severalStore) count(txs []store.Tx) {
	for _, tx := range txs {
		if tx.Deltas[0].Handed {
			s.handed.Add(1)
		}
	}
}

// Step implements store.Runs.
func (s *severalStore) Step(ctx context.Context, txs []store.Tx, b store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	s.count(txs)
	call, reply := false, false
	if len(txs) > 1 {
		call, reply = s.lose(s.calls.Add(1))
	}
	if call {
		return nil, nil, s.err
	}
	res, begun, err := s.Store.Step(ctx, txs, b, types)
	s.long.mu.Lock()
	defer s.long.mu.Unlock()
	s.long.most = max(s.long.most, len(begun))
	if s.choose && s.long.job == "" && len(begun) > 3 && begun[1].Info.Type == "Brief" {
		s.long.before, s.long.job, s.long.behind = begun[0].Info.ID, begun[1].Info.ID, begun[2:]
	}
	if reply {
		return nil, nil, s.err
	}
	return res, begun, err
}

const briefs = 60

// briefly starts a graph with many jobs that run briefly.
func (b *bench) briefly(l *long) *client.Handle {
	b.Helper()
	g := graph.New("shoal")
	count := graph.Add(g, "count", &Count{To: briefs})
	brief := graph.Add(g, "brief", &Brief{long: l}, graph.Instances(briefs))
	sum := graph.Add(g, "sum", &Sum{})
	graph.Connect(count.Out, brief.In)
	graph.Connect(brief.Out, sum.In)
	graph.Export(g, "total", sum.Total)
	return b.Start(g)
}

// withLong starts such graphs until the long run began, and returns the one that has it: on a slow machine not all have four runs that begin
// at once.
func (b *bench) withLong(store *severalStore) *client.Handle {
	b.Helper()
	l := store.long
	l.mu.Lock()
	store.choose = true
	l.mu.Unlock()
	for range 20 {
		h := b.briefly(l)
		b.Until("the long run began, or all runs are over", func() bool { return l.began.Load() || b.completed(h.ID()) })
		if l.began.Load() {
			return h
		}
		b.summed(h)
	}
	b.Fatal("in 20 graphs no four runs began at once")
	return nil
}

// summed waits until such a graph is completed, and wants what it has summed up.
func (b *bench) summed(h *client.Handle) {
	b.Helper()
	b.Await(h, "completed", func(i *job.Info) bool { return i.Status == statemachine.Completed })
	var total int
	ok, err := h.Read(b.Ctx, "total", &total)
	b.Check(err)
	if want := briefs * (briefs + 1); !ok || total != want {
		b.Errorf("total %d, want %d", total, want)
	}
}

// If one of the runs that began at once takes long, those done before it are committed meanwhile, and other engines take those
// behind it.
func TestLongRunsHoldUpNoOthers(t *testing.T) {
	b := onRedis(t)
	l := &long{release: make(chan struct{})}
	cfg := b.Config(&Count{}, &Brief{long: l}, &Sum{})
	store := &severalStore{Store: b.Store, long: l, lose: func(int64) (call, reply bool) { return false, false }}
	cfg.Store, cfg.Concurrency, cfg.Lease = store, 1, time.Minute
	b.Serve(cfg)
	for range 3 { // until it is known that the runs are short
		b.summed(b.briefly(l))
	}
	if n := l.mostBegun(); n < 4 {
		t.Fatalf("%d runs began at once at most", n)
	}
	h := b.withLong(store)
	b.Until("the run before it is committed", func() bool { return b.completed(l.before) })
	other := b.Config(&Count{}, &Brief{long: &long{}}, &Sum{})
	other.Lease = time.Minute
	b.Serve(other)
	b.Until("others take those behind it", func() bool {
		for _, s := range l.behind {
			if !b.completed(s.Info.ID) {
				return false
			}
		}
		return true
	})
	if store.handed.Load() == 0 {
		t.Error("nothing was handed back")
	}
	close(l.release)
	b.summed(h)
}

// Runs of a type with Together that began at once go on at the same time: one that takes long neither holds others up nor sends them away.
func TestTogether(t *testing.T) {
	b := onRedis(t)
	l := &long{release: make(chan struct{})}
	cfg := b.Config(&Count{}, &Brief{long: l, together: 8}, &Sum{})
	store := &severalStore{Store: b.Store, long: l, choose: true, lose: func(int64) (call, reply bool) { return false, false }}
	cfg.Store, cfg.Concurrency, cfg.Lease = store, 8, time.Minute
	b.Serve(cfg)
	h := b.briefly(l)
	b.Until("the long run began", l.began.Load)
	b.Until("those that began with it are committed", func() bool {
		for _, s := range l.behind {
			if !b.completed(s.Info.ID) {
				return false
			}
		}
		return b.completed(l.before)
	})
	close(l.release)
	b.summed(h)
	if n := store.handed.Load(); n > 0 {
		t.Errorf("%d runs were handed back", n)
	}
}

// completed tells whether a job has.
func (b *bench) completed(id job.ID) bool {
	b.Helper()
	found, err := b.Client.Find(b.Ctx, string(id))
	b.Check(err)
	return b.Info(found).Status == statemachine.Completed
}

// A run that took long is committed though one that began with it cannot be.
func TestLongRunsWaitForNoCommit(t *testing.T) {
	b := onRedis(t)
	l := &long{release: make(chan struct{})}
	cfg := b.Config(&Count{}, &Brief{long: l}, &Sum{})
	store := &severalStore{Store: b.Store, long: l, lose: func(int64) (call, reply bool) { return false, false }}
	cfg.Store, cfg.Concurrency, cfg.Lease = store, 1, 10*time.Minute
	b.Serve(cfg)
	for range 3 { // until it is known that the runs are short
		b.summed(b.briefly(l))
	}
	store.broken.Store(true)
	h := b.withLong(store)
	time.Sleep(2 * shortRun) // until those beside it are to be committed
	close(l.release)
	b.Until("the long run is committed", func() bool {
		l.mu.Lock()
		id := l.job
		l.mu.Unlock()
		found, err := b.Client.Find(b.Ctx, string(id))
		b.Check(err)
		return b.Info(found).Status == statemachine.Completed
	})
	tries := store.tries.Load()
	b.Until("the other one is still to be committed", func() bool { return store.tries.Load() > tries })
	store.broken.Store(false)
	b.summed(h)
}

// Runs that began at once, and their commits, survive calls and replies that are lost: no run has to wait for the end of a lease.
func TestLostCallsOfSeveral(t *testing.T) {
	t.Run("as the store cannot be reached", func(t *testing.T) { lostCalls(t, job.ErrUnreachable) })
	t.Run("with another error", func(t *testing.T) { lostCalls(t, context.DeadlineExceeded) })
}

func lostCalls(t *testing.T, lost error) {
	t.Helper()
	b := onRedis(t)
	l := &long{}
	cfg := b.Config(&Count{}, &Brief{long: l}, &Sum{})
	store := &severalStore{Store: b.Store, long: l, err: lost, lose: func(n int64) (call, reply bool) { return n%3 == 0, n%3 == 1 }}
	cfg.Store, cfg.Concurrency, cfg.Lease = store, 2, time.Minute
	b.Serve(cfg)
	for range 6 {
		b.summed(b.briefly(l))
	}
	if most, n := l.mostBegun(), store.calls.Load(); most < 4 || n < 3 {
		t.Errorf("%d runs began at once at most, and %d calls committed several", most, n)
	}
}
