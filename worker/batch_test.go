package worker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// TestRunBatching: many queued messages go through three jobs in one commit; each is a run of each
// job nevertheless.
func TestRunBatching(t *testing.T) {
	each(t, func(b *bench) {
		const n = 600
		s := b.countCommits()
		h := b.Start(row(&Hop{}))
		b.serve(func(c *worker.Config) { c.Store, c.Concurrency = s, 1 }) // with more, the jobs may run apart
		b.oneByOne(h, 1, 10)
		b.rest(h, 11, n)
		b.Check(h.Close(b.Ctx, "in"))
		b.settled(h, 4)
		b.hopped(h, n)
		s.mu.Lock()
		defer s.mu.Unlock()
		most := slices.Max(slices.Collect(maps.Values(s.most)))
		b.Logf("%d commits, at most %d runs of a job in one, %d were refused", s.calls, most, s.wrong)
		if s.calls > n/2 || most < 10 || s.held < 10 {
			b.Errorf("%d commits for %d messages, at most %d runs of a job in one, %d of them speculative", s.calls, n, most, s.held)
		}
		children, err := h.Children(b.Ctx)
		b.Check(err)
		for name, c := range children {
			b.inSteps(c, name, n)
		}
	})
}

// inSteps fails the test unless the log of a job has n runs, one after the other, each of which
// read and wrote the next message.
func (b *bench) inSteps(h *client.Handle, name string, n int) {
	b.Helper()
	runs, err := h.Runs(b.Ctx, 10_000)
	b.Check(err)
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

// allThrough waits until the numbers from 1 to n have come through a graph, and wants them in order.
func (b *bench) allThrough(h *client.Handle, n int) {
	b.Helper()
	b.Until("all came through", func() bool { return b.came(h) == int64(n) })
	b.same(h, sequence(n)...)
}

// oneByOne sends messages through a chain one at a time: its jobs are suspended then.
func (b *bench) oneByOne(h *client.Handle, from, to int) {
	b.Helper()
	for v := from; v <= to; v++ {
		b.Check(h.Write(b.Ctx, "in", v))
		b.Until("it came through", func() bool { return b.came(h) == int64(v) })
	}
}

// rest sends all other messages through a chain at once.
func (b *bench) rest(h *client.Handle, from, to int) {
	b.Helper()
	items := make([]any, 0, to-from+1)
	for v := from; v <= to; v++ {
		items = append(items, v)
	}
	b.Check(h.Write(b.Ctx, "in", items...))
	b.Until("all came through", func() bool { return b.came(h) == int64(to) })
}

// A run that cannot be committed together with others has the same results as without batching.
func TestRunBatchingStops(t *testing.T) {
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
		"error once per message": {worker: tries, failures: -1, code: func(_ context.Context, run *worker.Run, w *Call) error {
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
					s := b.countCommits()
					h := b.Start(chainOf(hops...))
					b.feed(h, n)
					b.serve(func(cfg *worker.Config) { cfg.Store, cfg.Workers = s, append(everything(), &Alone{}, &Acting{}) })
					b.allThrough(h, n)
					child, err := h.Child(b.Ctx, place)
					b.Check(err)
					b.hopCounts(h, sequence(n))
					fs, err := child.Failures(b.Ctx)
					b.Check(err)
					if want := min(c.failures, 20); c.failures >= 0 && len(fs) != want { // 20 are kept
						b.Errorf("%d failures, want %d", len(fs), want)
					}
					info := b.Info(child)
					if got := int(runs.Load()); c.failures >= 0 && at == 0 && got > int(info.Steps)+c.failures {
						b.Errorf("%d runs for %d steps and %d failures: the first run of a chain is never discarded", got, info.Steps, c.failures)
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

// chainOf is a graph of three jobs, each of which reads what the one before it writes.
func chainOf(hops ...hopper) *graph.Graph {
	g := graph.New("chain")
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

// A batch whose commit is refused, because somebody took a message that it read, runs again: nothing of
// it is kept, whether one of its runs has asked the store meanwhile or not.
func TestRunBatchingIsRefused(t *testing.T) {
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
				h := b.Start(chainOf(w, &Hop{}, &Hop{}))
				b.feed(h, n)
				child, err := h.Child(b.Ctx, "first")
				b.Check(err)
				var taken []int
				s := b.countCommits()
				s.first = func(ctx context.Context, tx store.Tx) error {
					t := tx.Deltas[0].Takes[0]
					taken = append(taken, int(t.Head)+1)
					return b.Store.Take(ctx, child.ID(), store.Take{Dir: port.Input, Port: "in", Head: t.Head, N: 1}, "taken")
				}
				b.serve(func(c *worker.Config) { c.Store = s })
				b.Until("all came through", func() bool { return b.came(h) == n-1 })
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

// What a discarded speculative run did is not there when the next one begins, even if nothing has been
// committed in between.
func TestRunBatchingForgets(t *testing.T) {
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
		s := b.countCommits()
		s.moved = true
		h := b.Start(chainOf(&Hop{}, &Hop{}, tries(last)))
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

// The state of a job is what its batched runs made of it, one after the other.
func TestRunBatchingOfState(t *testing.T) {
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
		h := b.Start(chainOf(w, &Call{Key: w.Key}, &Hop{}))
		b.feed(h, n)
		b.serve()
		b.Until("all came through", func() bool { return b.came(h) == n })
		for _, name := range []string{"first", "middle"} {
			child, err := h.Child(b.Ctx, name)
			b.Check(err)
			if got := b.State(child); !maps.Equal(got, want) {
				b.Errorf("state of %s: %v, want %v", name, got, want)
			}
		}
	})
}

// A job that is fed by a batched run which writes nothing, but sets a default, runs because of the default.
func TestRunBatchingOfDefaults(t *testing.T) {
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
		h := b.Start(chainOf(&Hop{}, middle, last))
		b.serve(func(c *worker.Config) { c.Concurrency = 1 })
		b.oneByOne(h, 1, 10)
		b.Check(h.Write(b.Ctx, "in", 11, 12, 13, 14, 15, 16))
		b.Until("all came through", func() bool { return b.came(h) == 16 })
		b.Check(h.Write(b.Ctx, "in", 17, n))
		b.Until("the default was read", seen.Load)
	})
}
