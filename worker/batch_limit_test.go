package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// A port behind a chain whose jobs read one message a run never holds more than its limit: batches end
// in time.
func TestRunBatchingHeedsLimits(t *testing.T) {
	each(t, func(b *bench) {
		const n, limit = 60, 4
		inner := graph.New("inner")
		a, c := graph.Add(inner, "a", &Hop{}), graph.Add(inner, "c", &Hop{})
		graph.Connect(graph.Input[int](inner, "in"), a.In)
		graph.Connect(a.Out, c.In)
		graph.Export(inner, "out", c.Out)
		var most atomic.Int64
		slow := &Alone{*call(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
			most.Store(max(most.Load(), int64(w.In.Len())))
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			time.Sleep(2 * time.Millisecond)
			return w.Out.Write(v)
		})}
		g := graph.New("chain")
		graph.Nest(g, "inner", inner)
		d := graph.Add(g, "d", slow)
		graph.WireInput(g, "in", "inner.in")
		graph.Wire(g, "inner.out", "d.in", graph.Limit(limit))
		graph.Export(g, "out", d.Out)
		h := b.Start(g)
		b.feed(h, n)
		b.serve(func(cfg *worker.Config) { cfg.Workers = append(everything(), &Alone{}, &Acting{}) })
		b.allThrough(h, n)
		if most.Load() > limit {
			b.Errorf("%d messages in a port with a limit of %d", most.Load(), limit)
		}
	})
}

// A port within a chain never holds more than its limit, even if its job turns out to have changed.
func TestRunBatchingHeedsLimitsWithin(t *testing.T) {
	each(t, func(b *bench) {
		const limit = 4
		g := graph.New("chain")
		first, last := graph.Add(g, "first", &Hop{}), graph.Add(g, "last", &Hop{})
		graph.Connect(graph.Input[int](g, "in"), first.In)
		graph.Connect(first.Out, last.In, graph.Limit(limit))
		graph.Export(g, "out", last.Out)
		h := b.Start(g)
		child, err := h.Child(b.Ctx, "last")
		b.Check(err)
		s := b.countCommits()
		b.serve(func(c *worker.Config) { c.Store, c.Concurrency = s, 1 })
		b.oneByOne(h, 1, 10)
		var wait, runs int64
		s.mu.Lock()
		s.first = func(ctx context.Context, tx store.Tx) error {
			runs = int64(len(tx.Deltas[0].Parts()))
			b.Check(child.SetState(ctx, map[string]any{"x": 1}))
			_, err := b.Store.Commit(ctx, []store.Tx{tx})
			wait = b.Waiting(child, "in")
			return err
		}
		s.mu.Unlock()
		b.rest(h, 11, 100)
		b.same(h, sequence(100)...)
		if wait > limit || wait != runs {
			b.Errorf("%d messages of %d runs wait in a port with a limit of %d", wait, runs, limit)
		}
	})
}

// A rate limit holds for batched runs.
func TestRunBatchingHeedsTheRate(t *testing.T) {
	each(t, func(b *bench) {
		for place := range 3 {
			hops := []hopper{&Hop{}, &Hop{}, &Hop{}}
			hops[place] = &Seldom{Hop{}}
			h := b.Start(chainOf(hops...))
			b.feed(h, 50)
			began, err := b.Store.Now(b.Ctx)
			b.Check(err)
			srv := b.serve(func(c *worker.Config) { c.Workers = append(everything(), &Seldom{}) })
			child, err := h.Child(b.Ctx, []string{"first", "middle", "last"}[place])
			b.Check(err)
			b.Until("it is throttled", func() bool {
				i := b.Info(child)
				return i.Status == statemachine.Queued && i.Reason == "rate: it ran 7 times this minute"
			})
			srv.Stop()
			i := b.Info(child)
			ended, err := b.Store.Now(b.Ctx)
			b.Check(err)
			minutes := 1 + ended.Truncate(time.Minute).Sub(began.Truncate(time.Minute))/time.Minute
			if i.Steps < 7 || i.Steps > 7*int64(minutes) {
				b.Errorf("job %d of the chain had %d runs in %d minutes", place, i.Steps, minutes)
			}
		}
	})
}

// Seldom is Hop that may run seven times a minute.
type Seldom struct{ Hop }

// WorkerOptions implements worker.Configured.
func (*Seldom) WorkerOptions() worker.Options { return worker.Options{MaxRunsPerMinute: 7, Pure: true} }

func (w *Seldom) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

// SeldomTried may run seven times a minute, and has three tries.
type SeldomTried struct{ Call }

// WorkerOptions implements worker.Configured.
func (*SeldomTried) WorkerOptions() worker.Options {
	return worker.Options{MaxRunsPerMinute: 7, Tries: 3, Backoff: worker.ExponentialBackoff(time.Millisecond, time.Hour), Pure: true}
}

func (w *SeldomTried) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

// Runs that are committed by themselves, behind a batch, count for the rate limit, too.
func TestRunBatchingCountsRuns(t *testing.T) {
	each(t, func(b *bench) {
		var tried sync.Map
		key := keep(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			if _, again := tried.LoadOrStore(v, true); v%3 == 2 && !again {
				return errors.New("not at the first try")
			}
			return w.Out.Write(v)
		})
		h := b.Start(chainOf(&SeldomTried{Call{Key: key}}))
		b.feed(h, 40)
		srv := b.serve(func(c *worker.Config) { c.Workers = append(everything(), &SeldomTried{}) })
		child, err := h.Child(b.Ctx, "first")
		b.Check(err)
		b.Until("it is throttled", func() bool {
			i := b.Info(child)
			return i.Reason == "rate: it ran 7 times this minute"
		})
		srv.Stop()
		i := b.Info(child)
		fs, err := child.Failures(b.Ctx)
		b.Check(err)
		if got := int(i.Steps) + len(fs); got != 7 && got != 14 { // at the turn of a minute
			b.Errorf("%d steps and %d failures", i.Steps, len(fs))
		}
	})
}

// Runs whose messages together are too large for one commit are committed one by one.
func TestTooLargeTogether(t *testing.T) {
	each(t, func(b *bench) {
		const n = 200
		s := b.countCommits()
		refused := false
		s.first = func(context.Context, store.Tx) error {
			refused = true
			return job.ErrTooLarge
		}
		h := b.Start(row(&Hop{}))
		b.serve(func(c *worker.Config) { c.Store, c.Concurrency = s, 1 })
		b.rest(h, 1, n)
		b.Check(h.Close(b.Ctx, "in"))
		b.settled(h, 4)
		b.hopped(h, n)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !refused {
			t.Error("no commit had several runs")
		}
	})
}
