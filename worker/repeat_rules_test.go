package worker_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// oneByOne lets messages through a row, so that its jobs are known to sleep.
func (b *bench) oneByOne(h *job.Handle, from, to int) {
	b.Helper()
	for v := from; v <= to; v++ {
		b.check(h.Write(b.ctx, "in", v))
		b.until("it came through", func() bool { return b.came(h) == int64(v) })
	}
}

// rest lets all other messages through a row at once.
func (b *bench) rest(h *job.Handle, from, to int) {
	b.Helper()
	items := make([]any, 0, to-from+1)
	for v := from; v <= to; v++ {
		items = append(items, v)
	}
	b.check(h.Write(b.ctx, "in", items...))
	b.until("all came through", func() bool { return b.came(h) == int64(to) })
}

// SeldomTried may run seven times a minute, and has three tries.
type SeldomTried struct{ Call }

// WorkerOptions implements worker.Configured.
func (*SeldomTried) WorkerOptions() worker.Options {
	return worker.Options{MaxRunsPerMinute: 7, Tries: 3, Backoff: time.Millisecond, Pure: true}
}

func (w *SeldomTried) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

// Runs that are committed by themselves, behind others, count for the limit of runs, too.
func TestRepetitionCountsRuns(t *testing.T) {
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
		h := b.start(rowOf(&SeldomTried{Call{Key: key}}))
		b.feed(h, 40)
		srv := b.serve(func(c *worker.Config) { c.Workers = append(everything(), &SeldomTried{}) })
		child, err := h.Child(b.ctx, "first")
		b.check(err)
		b.until("it is parked", func() bool {
			i, err := child.Info(b.ctx)
			b.check(err)
			return i.Reason == "rate: it ran 7 times this minute"
		})
		srv.stop()
		i, err := child.Info(b.ctx)
		b.check(err)
		fs, err := child.Failures(b.ctx)
		b.check(err)
		if got := int(i.Steps) + len(fs); got != 7 && got != 14 { // at the turn of a minute
			b.Errorf("%d steps and %d failures", i.Steps, len(fs))
		}
	})
}

// What is fed by a repeated run that writes nothing, but sets a default, runs for that.
func TestRepetitionOfDefaults(t *testing.T) {
	each(t, func(b *bench) {
		const n = 40
		middle := call(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			if v == n {
				return run.SetDefault(port.Output, "out", v)
			}
			return w.Out.Write(v)
		})
		var seen atomic.Bool
		last := call(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			if v == n {
				seen.Store(true)
				return nil
			}
			return w.Out.Write(v)
		})
		h := b.start(rowOf(&Hop{}, middle, last))
		b.serve(func(c *worker.Config) { c.Concurrency = 1 })
		b.oneByOne(h, 1, 10)
		b.check(h.Write(b.ctx, "in", 11, 12, 13, 14, 15, 16))
		b.until("all came through", func() bool { return b.came(h) == 16 })
		b.check(h.Write(b.ctx, "in", 17, n))
		b.until("the default was read", seen.Load)
	})
}

// A group that ends with an error when its run is over changes nothing.
func TestRepetitionAfterLateGroups(t *testing.T) {
	each(t, func(b *bench) {
		const n = 60
		var late sync.WaitGroup
		w := call(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
			begun := make(chan struct{})
			late.Go(func() {
				_ = run.Group(func() error {
					close(begun)
					for {
						if _, err := run.In("in"); err != nil { // the run is over
							return errors.New("late")
						}
						runtime.Gosched()
					}
				})
			})
			<-begun
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			return w.Out.Write(v)
		})
		h := b.start(rowOf(w, &Hop{}))
		b.feed(h, n)
		b.serve()
		b.until("all came through", func() bool { return b.came(h) == n })
		late.Wait()
		b.same(h, sequence(n)...)
	})
}

// A port within a row has never much more in it than its limit, even if its job turns out to be at work.
func TestRepetitionHeedsLimitsWithin(t *testing.T) {
	each(t, func(b *bench) {
		const limit = 4
		g := graph.New("row")
		first, last := graph.Add(g, "first", &Hop{}), graph.Add(g, "last", &Hop{})
		graph.Connect(graph.Input[int](g, "in"), first.In)
		graph.Connect(first.Out, last.In, graph.Limit(limit))
		graph.Export(g, "out", last.Out)
		h := b.start(g)
		child, err := h.Child(b.ctx, "last")
		b.check(err)
		s := &commits{Store: b.store, most: map[job.ID]int{}}
		b.serve(func(c *worker.Config) { c.Store, c.Concurrency = s, 1 })
		b.oneByOne(h, 1, 10)
		var wait, runs int64
		s.mu.Lock()
		s.first = func(ctx context.Context, tx job.Tx) error {
			runs = int64(len(tx.Deltas[0].Parts()))
			b.check(child.SetState(ctx, map[string]any{"x": 1}))
			_, err := b.store.Commit(ctx, []job.Tx{tx})
			wait = b.waiting(child, "in")
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

// Either reads a message of one of its ports.
type Either struct {
	In   port.In[int]
	More port.In[int]
	Out  port.Out[int]
}

// WorkerOptions implements worker.Configured.
func (*Either) WorkerOptions() worker.Options {
	return worker.Options{Pure: true}
}

// Run implements worker.Worker.
func (w *Either) Run(context.Context, *worker.Run) error {
	for _, in := range []*port.In[int]{&w.In, &w.More} {
		if in.Len() > 0 {
			v, _, err := in.Read()
			return errors.Join(err, w.Out.Write(v))
		}
	}
	return nil
}

// A job one of whose inputs has ended with a message is known as it is then.
func TestFusionWithOneEnd(t *testing.T) {
	each(t, func(b *bench) {
		g := graph.New("ends")
		x, y, e := graph.Add(g, "x", &Hop{}), graph.Add(g, "y", &Hop{}), graph.Add(g, "e", &Either{})
		graph.Connect(graph.Input[int](g, "one"), x.In)
		graph.Connect(graph.Input[int](g, "two"), y.In)
		graph.Connect(x.Out, e.In)
		graph.Connect(y.Out, e.More)
		graph.Export(g, "out", e.Out)
		s := &commits{Store: b.store, most: map[job.ID]int{}}
		b.serve(func(c *worker.Config) {
			c.Store, c.Concurrency, c.Workers = s, 1, append(everything(), &Either{})
		})
		for n := range 4 {
			h := b.start(g)
			x, err := h.Child(b.ctx, "x")
			b.check(err)
			l, err := x.Lock(b.ctx, time.Minute, 0)
			b.check(err)
			b.check(h.Write(b.ctx, "one", 1))
			b.check(h.Close(b.ctx, "one"))
			b.check(x.Unlock(b.ctx, l.Token()))
			b.completed(x, 1)
			b.until("it came through", func() bool { return b.came(h) == 1 })
			b.check(h.Write(b.ctx, "two", 2))
			b.until("it came through", func() bool { return b.came(h) == 2 })
			b.same(h, 1, 2)
			s.mu.Lock()
			if s.wrong > n/2 { // of the first trees not all is known yet
				b.Errorf("%d wrong guesses with %d trees", s.wrong, n+1)
			}
			s.mu.Unlock()
		}
	})
}
