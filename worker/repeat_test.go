package worker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// commits is a store that counts calls that commit runs, those that were not all taken, and runs
// that went into one.
type commits struct {
	worker.Store

	mu    sync.Mutex
	calls int
	wrong int
	held  int                                 // runs of a job on a guess in one that was taken
	most  map[job.ID]int                      // runs of a job in one of them
	first func(context.Context, job.Tx) error // happens before the next one that has several runs of a job
	moved bool                                // refuse what is committed behind the first row that is settled for it
	next  bool                                // this is it
}

func (s *commits) note(ctx context.Context, txs ...job.Tx) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.moved && s.next {
		s.moved = false
		return job.ErrMoved
	}
	s.next = txs[0].Deltas[0].Outcome == job.Checkpoint
	several := false
	for _, tx := range txs {
		for i := range tx.Deltas {
			n := len(tx.Deltas[i].Before) + 1
			if id := tx.Deltas[i].Job; n > s.most[id] {
				s.most[id] = n
			}
			several = several || n > 1
		}
	}
	if first := s.first; several && first != nil {
		s.first = nil
		return first(ctx, txs[0])
	}
	return nil
}

func (s *commits) Step(ctx context.Context, tx job.Tx, b job.Begin, types []string) (job.Result, *job.Snapshot, error) {
	if err := s.note(ctx, tx); err != nil {
		return job.Result{}, nil, err
	}
	res, next, err := s.Store.Step(ctx, tx, b, types)
	s.judge(tx, res)
	return res, next, err
}

func (s *commits) judge(tx job.Tx, res job.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if res.Refused != nil {
		s.wrong++
	}
	for i := range tx.Deltas[:res.Applied] {
		if d := &tx.Deltas[i]; d.Guess != nil {
			s.held = max(s.held, len(d.Parts()))
		}
	}
}

func (s *commits) Commit(ctx context.Context, txs []job.Tx) ([]job.Result, error) {
	if err := s.note(ctx, txs...); err != nil {
		return nil, err
	}
	res, err := s.Store.Commit(ctx, txs)
	for i := range res {
		s.judge(txs[i], res[i])
	}
	return res, err
}

// TestRepetition: messages that wait go through three jobs many in one commit; each is a run of
// each job all the same.
func TestRepetition(t *testing.T) {
	each(t, func(b *bench) {
		const n = 600
		s := &commits{Store: b.store, most: map[job.ID]int{}}
		h := b.start(row(&Hop{}))
		b.serve(func(c *worker.Config) { c.Store, c.Concurrency = s, 1 }) // else they are perhaps at work by themselves
		b.oneByOne(h, 1, 10)
		b.rest(h, 11, n)
		b.check(h.Close(b.ctx, "in"))
		b.settled(h, 4)
		b.hopped(h, n)
		s.mu.Lock()
		defer s.mu.Unlock()
		most := slices.Max(slices.Collect(maps.Values(s.most)))
		b.Logf("%d commits, at most %d runs of a job in one, %d were not taken as a whole", s.calls, most, s.wrong)
		if s.calls > n/2 || most < 10 || s.held < 10 {
			b.Errorf("%d commits for %d messages, at most %d runs of a job in one, and %d on a guess", s.calls, n, most, s.held)
		}
		children, err := h.Children(b.ctx)
		b.check(err)
		for name, c := range children {
			b.inSteps(c, name, n)
		}
	})
}

// inSteps fails the test unless the log of a job has n runs, one after the other, each of which
// read and wrote the next message.
func (b *bench) inSteps(h *job.Handle, name string, n int) {
	b.Helper()
	runs, err := h.Runs(b.ctx, 10_000)
	b.check(err)
	at := int64(0)
	for _, r := range runs {
		if len(r.Read) == 0 {
			continue // it ended its job
		}
		if len(r.Read) != 1 || r.Read[0].From != at || r.Read[0].N != 1 || len(r.Write) != 1 || r.Write[0].N != 1 ||
			len(r.Sent) != 1 || r.Sent[0].From != at || r.Sent[0].N != 1 || string(r.Write[0].Data[0]) != fmt.Sprint(at+1) {
			b.Fatalf("run %d of %s: %+v", at, name, r)
		}
		at++
	}
	if at != int64(n) {
		b.Errorf("the log has %d runs of %s, want %d", at, name, n)
	}
}

// What a run does that others of its row cannot be committed with: what happens is what happens
// without them.
func TestRepetitionStops(t *testing.T) {
	const n = 60
	fourth := func(w *Call) (bool, error) {
		v, ok, err := w.In.Peek()
		return ok && v%4 == 0, err
	}
	var tried sync.Map
	for name, c := range map[string]struct {
		worker   func(key string) hopper
		code     code
		failures int // of the job
		alone    bool
	}{
		"error": {worker: tries, failures: n / 4, code: func(_ context.Context, run *worker.Run, w *Call) error {
			is, err := fourth(w)
			if is && run.Info().Tries == 0 {
				return errors.New("not at the first try")
			}
			if run.Info().Tries > 1 {
				return fmt.Errorf("it has been tried %d times", run.Info().Tries)
			}
			return err
		}},
		"panic": {worker: tries, failures: n / 4, code: func(_ context.Context, run *worker.Run, w *Call) error {
			is, err := fourth(w)
			if is && run.Info().Tries == 0 {
				panic("at the first try")
			}
			return err
		}},
		"error of the clock": {worker: tries, failures: -1, code: func(_ context.Context, run *worker.Run, w *Call) error {
			is, err := fourth(w)
			v, _, _ := w.In.Peek()
			if _, again := tried.LoadOrStore(fmt.Sprint(run.ID(), v), true); is && !again {
				return errors.New("not at the first time")
			}
			return err
		}},
		"checkpoint": {code: func(_ context.Context, run *worker.Run, w *Call) error {
			if is, err := fourth(w); !is || err != nil {
				return err
			}
			return run.Checkpoint()
		}},
		"children": {code: func(_ context.Context, run *worker.Run, w *Call) error {
			if is, err := fourth(w); !is || err != nil {
				return err
			}
			_, err := run.Spawn(fmt.Sprint("c", run.Info().Steps), job.Single(&Count{To: 1}, ""))
			return err
		}},
		"again": {code: func(_ context.Context, run *worker.Run, w *Call) error {
			var seen bool
			is, err := fourth(w)
			v, _, _ := w.In.Peek()
			if _, err := run.State().Get(fmt.Sprint(v), &seen); !is || seen || err != nil {
				return err
			}
			return errors.Join(err, run.State().Set(fmt.Sprint(v), true), worker.ErrAgain)
		}},
		"CommitEachRun": {worker: func(key string) hopper { return &Alone{Call{Key: key}} }, alone: true},
		"not pure":      {worker: func(key string) hopper { return &Acting{Call{Key: key}} }},
	} {
		for at, place := range []string{"first", "middle", "last"} {
			t.Run(name+", "+place, func(t *testing.T) {
				each(t, func(b *bench) {
					var runs atomic.Int64
					key := keep(b.T, passing(&runs, c.code))
					hops := []hopper{&Hop{}, &Hop{}, &Hop{}}
					hops[at] = &Call{Key: key}
					if c.worker != nil {
						hops[at] = c.worker(key)
					}
					s := &commits{Store: b.store, most: map[job.ID]int{}}
					h := b.start(rowOf(hops...))
					b.feed(h, n)
					b.serve(func(cfg *worker.Config) { cfg.Store, cfg.Workers = s, append(everything(), &Alone{}, &Acting{}) })
					b.until("all came through", func() bool { return b.came(h) == n })
					b.same(h, sequence(n)...)
					child, err := h.Child(b.ctx, place)
					b.check(err)
					b.hopCounts(h, sequence(n))
					fs, err := child.Failures(b.ctx)
					b.check(err)
					if want := min(c.failures, 20); c.failures >= 0 && len(fs) != want { // so many are kept
						b.Errorf("%d failures, want %d", len(fs), want)
					}
					info, err := child.Info(b.ctx)
					b.check(err)
					if got := int(runs.Load()); c.failures >= 0 && at == 0 && got > int(info.Steps)+c.failures {
						b.Errorf("%d runs for %d steps and %d failures: the first of a row is not run in vain", got, info.Steps, c.failures)
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					if c.alone && s.most[child.ID()] != 1 || !c.alone && slices.Max(slices.Collect(maps.Values(s.most))) == 1 {
						b.Errorf("at most %v runs of a job in a commit", s.most)
					}
				})
			})
		}
	}
}

func tries(key string) hopper { return &Tried{Call{Key: key}} }

// sequence is the numbers from 1 to n.
func sequence(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// rowOf is a graph of three jobs, each of which reads what the one before it writes.
func rowOf(hops ...hopper) *graph.Graph {
	g := graph.New("row")
	before := graph.Input[int](g, "in")
	for i, h := range hops {
		w, in, out := h.hop()
		graph.AddWorker(g, []string{"first", "middle", "last"}[i], w)
		graph.Connect(before, *in)
		before = *out
	}
	graph.Export(g, "out", before)
	return g
}

// A row whose commit is refused, as somebody took a message from under it, happens again: nothing
// of it is kept, whether a run of it has asked the store meanwhile or not.
func TestRepetitionIsRefused(t *testing.T) {
	for name, asks := range map[string]bool{"at its end": false, "while a run asks": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				const n = 40
				w := call(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
					v, ok, err := w.In.Read()
					if !ok || err != nil {
						return err
					}
					if asks && v%8 == 0 {
						if _, err := run.Child("nobody"); !errors.Is(err, job.ErrNotFound) {
							return err
						}
					}
					return w.Out.Write(v)
				})
				h := b.start(rowOf(w, &Hop{}, &Hop{}))
				b.feed(h, n)
				child, err := h.Child(b.ctx, "first")
				b.check(err)
				var taken []int
				s := &commits{Store: b.store, most: map[job.ID]int{}, first: func(ctx context.Context, tx job.Tx) error {
					t := tx.Deltas[0].Takes[0]
					taken = append(taken, int(t.Head)+1)
					return b.store.Take(ctx, child.ID(), job.Take{Dir: port.Input, Port: "in", Head: t.Head, N: 1}, "taken")
				}}
				b.serve(func(c *worker.Config) { c.Store = s })
				b.until("all came through", func() bool { return b.came(h) == n-1 })
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(taken) != 1 {
					b.Fatalf("taken: %v", taken)
				}
				want := slices.DeleteFunc(sequence(n), func(v int) bool { return v == taken[0] })
				b.same(h, want...)
			})
		})
	}
}

// What a job did on a guess that was dropped is not there when the next one is made, even if nothing has
// been committed in between.
func TestRepetitionForgets(t *testing.T) {
	each(t, func(b *bench) {
		const n = 100
		var failed atomic.Bool
		last := keep(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if v == n/2 && failed.CompareAndSwap(false, true) {
				return errors.New("not at the first time")
			}
			if !ok || err != nil {
				return err
			}
			return w.Out.Write(v)
		})
		s := &commits{Store: b.store, most: map[job.ID]int{}, moved: true}
		h := b.start(rowOf(&Hop{}, &Hop{}, tries(last)))
		b.serve(func(c *worker.Config) { c.Store, c.Concurrency = s, 1 })
		b.oneByOne(h, 1, 10)
		b.rest(h, 11, n)
		b.same(h, sequence(n)...)
		b.hopCounts(h, sequence(n))
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.moved {
			b.Error("nothing was refused")
		}
	})
}

// A slot survives whatever ends the goroutine of a run on a guess.
func TestRepetitionAfterExit(t *testing.T) {
	for name, exit := range map[string]func(){
		"exit": runtime.Goexit,
		"panic": func() {
			panic("out of paper")
		},
		"panic at exit": func() {
			defer panic("while it exits")
			runtime.Goexit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				const n = 60
				var left atomic.Int64
				left.Store(3)
				last := keep(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
					v, ok, err := w.In.Read()
					if !ok || err != nil {
						return err
					}
					if v%20 == 0 && left.Add(-1) >= 0 {
						exit()
					}
					return w.Out.Write(v)
				})
				h := b.start(rowOf(&Hop{}, &Hop{}, tries(last)))
				b.serve(func(c *worker.Config) { c.Concurrency = 1 })
				b.oneByOne(h, 1, 10)
				b.rest(h, 11, n)
				b.same(h, sequence(n)...)
				if left.Load() > 0 {
					b.Errorf("%d runs were still to exit", left.Load())
				}
			})
		})
	}
}

// A port that is full behind a row, which only reads one message a run, never holds more than its
// limit: rows end in time.
func TestRepetitionHeedsLimits(t *testing.T) {
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
		g := graph.New("row")
		graph.Nest(g, "inner", inner)
		d := graph.Add(g, "d", slow)
		graph.WireInput(g, "in", "inner.in")
		graph.Wire(g, "inner.out", "d.in", graph.Limit(limit))
		graph.Export(g, "out", d.Out)
		h := b.start(g)
		b.feed(h, n)
		b.serve(func(cfg *worker.Config) { cfg.Workers = append(everything(), &Alone{}, &Acting{}) })
		b.until("all came through", func() bool { return b.came(h) == n })
		b.same(h, sequence(n)...)
		if most.Load() > limit {
			b.Errorf("%d messages in a port with a limit of %d", most.Load(), limit)
		}
	})
}

// The state of a job is what its runs made of it one after the other.
func TestRepetitionOfState(t *testing.T) {
	each(t, func(b *bench) {
		const n = 100
		w := call(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			key := fmt.Sprint("k", v*v%17)
			if v%3 > 0 {
				err = run.State().Set(key, v)
			} else {
				run.State().Unset(key)
			}
			return errors.Join(err, w.Out.Write(v))
		})
		want := map[string]string{}
		for _, v := range sequence(n) {
			if key := fmt.Sprint("k", v*v%17); v%3 > 0 {
				want[key] = fmt.Sprint(v)
			} else {
				delete(want, key)
			}
		}
		h := b.start(rowOf(w, &Call{Key: w.Key}, &Hop{}))
		b.feed(h, n)
		b.serve()
		b.until("all came through", func() bool { return b.came(h) == n })
		for _, name := range []string{"first", "middle"} {
			child, err := h.Child(b.ctx, name)
			b.check(err)
			if got := b.state(child); !maps.Equal(got, want) {
				b.Errorf("state of %s: %v, want %v", name, got, want)
			}
		}
	})
}

// The last run of a job, before which others are committed, leads to one that takes long: it keeps the lease.
func TestRepetitionKeepsTheLeaseAtTheEnd(t *testing.T) {
	const n, lease = 20, 300 * time.Millisecond
	each(t, func(b *bench) {
		var long, lost atomic.Int64
		w := call(b.T, func(ctx context.Context, _ *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			if v == n {
				long.Add(1)
				select {
				case <-ctx.Done():
					lost.Add(1)
				case <-time.After(2 * lease):
				}
			}
			return w.Out.Write(v)
		})
		h := b.start(rowOf(&Hop{}, &Hop{}, w))
		b.feed(h, n)
		b.check(h.Close(b.ctx, "in"))
		b.serve(func(c *worker.Config) { c.Lease = lease })
		b.until("all came through", func() bool { return b.came(h) == n })
		b.same(h, sequence(n)...)
		if long.Load() != 1 || lost.Load() != 0 {
			b.Errorf("the long run happened %d times, and lost its lease %d times", long.Load(), lost.Load())
		}
	})
}

// A run before which others are committed, as it needs the store, has a lease of its own; and
// what it leaves behind when it is over changes nothing.
func TestRepetitionKeepsTheLease(t *testing.T) {
	const n, lease = 20, 300 * time.Millisecond
	each(t, func(b *bench) {
		var ran atomic.Int64
		w := call(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			over := make(chan struct{})
			defer close(over)
			if v == 10 {
				if _, err := run.Child("nobody"); !errors.Is(err, job.ErrNotFound) {
					return err
				}
				ran.Add(1)
				time.Sleep(2 * lease)
			} else if v < 10 {
				go func() {
					<-over
					time.Sleep(time.Millisecond)
					_, _ = run.Child("nobody")
				}()
			}
			return w.Out.Write(v)
		})
		h := b.start(rowOf(w, &Hop{}, &Hop{}))
		b.feed(h, n)
		b.serve(func(c *worker.Config) { c.Lease = lease })
		b.until("all came through", func() bool { return b.came(h) == n })
		b.same(h, sequence(n)...)
		if ran.Load() != 1 {
			b.Errorf("the long run happened %d times", ran.Load())
		}
	})
}

// What goes before a long run is not kept waiting for it.
func TestRepetitionDoesNotWait(t *testing.T) {
	each(t, func(b *bench) {
		const n = 100
		long := make(chan struct{})
		w := call(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			if v == n {
				<-long
			}
			return w.Out.Write(v)
		})
		h := b.start(rowOf(w, &Hop{}, &Hop{}))
		b.feed(h, n)
		b.serve()
		b.until("all but the last came through", func() bool { return b.came(h) == n-1 })
		close(long)
		b.until("all came through", func() bool { return b.came(h) == n })
		b.same(h, sequence(n)...)
	})
}

// A job that may run so often in a minute does, and no more often.
func TestRepetitionHeedsTheRate(t *testing.T) {
	each(t, func(b *bench) {
		for place := range 3 {
			hops := []hopper{&Hop{}, &Hop{}, &Hop{}}
			hops[place] = &Seldom{Hop{}}
			h := b.start(rowOf(hops...))
			b.feed(h, 50)
			srv := b.serve(func(c *worker.Config) { c.Workers = append(everything(), &Seldom{}) })
			child, err := h.Child(b.ctx, []string{"first", "middle", "last"}[place])
			b.check(err)
			b.until("it is parked", func() bool {
				i, err := child.Info(b.ctx)
				b.check(err)
				return i.Status == statemachine.Queued && i.Reason == "rate: it ran 7 times this minute"
			})
			srv.stop()
			i, err := child.Info(b.ctx)
			b.check(err)
			if i.Steps != 7 && i.Steps != 14 { // at the turn of a minute
				b.Errorf("the job in place %d ran %d times", place, i.Steps)
			}
		}
	})
}

// Seldom is Hop that may run seven times a minute.
type Seldom struct{ Hop }

// WorkerOptions implements worker.Configured.
func (*Seldom) WorkerOptions() worker.Options { return worker.Options{MaxRunsPerMinute: 7, Pure: true} }

func (w *Seldom) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

// Runs whose messages together come to too much for one commit, as they go to many, are committed one by one.
func TestTooLargeTogether(t *testing.T) {
	each(t, func(b *bench) {
		const n = 200
		s := &commits{Store: b.store, most: map[job.ID]int{}}
		refused := false
		s.first = func(context.Context, job.Tx) error {
			refused = true
			return job.ErrTooLarge
		}
		h := b.start(row(&Hop{}))
		b.serve(func(c *worker.Config) { c.Store, c.Concurrency = s, 1 })
		b.rest(h, 1, n)
		b.check(h.Close(b.ctx, "in"))
		b.settled(h, 4)
		b.hopped(h, n)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !refused {
			t.Error("no commit had several runs")
		}
	})
}
