package worker_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// A long last run of a chain keeps its lease when the runs before it are committed. There is one slot: of two, one could run
// what the other has guessed on, and the long run would be repeated, which is right.
func TestRunBatchingKeepsTheLeaseAtTheEnd(t *testing.T) {
	const n, lease = 20, 3 * time.Second // a machine that stands still for a second loses no run
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
		h := b.Start(chainOf(&Hop{}, &Hop{}, w))
		b.feed(h, n)
		b.Check(h.Close(b.Ctx, "in"))
		b.serve(func(c *worker.Config) { c.Lease, c.Concurrency = lease, 1 })
		b.allThrough(h, n)
		if long.Load() != 1 || lost.Load() != 0 {
			b.Errorf("the long run happened %d times, and lost its lease %d times", long.Load(), lost.Load())
		}
	})
}

// A run that asks the store has the runs before it committed first and then has a lease of its own; a
// goroutine that outlives a run changes nothing.
func TestRunBatchingKeepsTheLease(t *testing.T) {
	const n, lease = 20, 3 * time.Second
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
		h := b.Start(chainOf(w, &Hop{}, &Hop{}))
		b.feed(h, n)
		b.serve(func(c *worker.Config) { c.Lease = lease })
		b.allThrough(h, n)
		if ran.Load() != 1 {
			b.Errorf("the long run happened %d times", ran.Load())
		}
	})
}

// The runs before a long run are committed without waiting for it.
func TestRunBatchingDoesNotWait(t *testing.T) {
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
		h := b.Start(chainOf(w, &Hop{}, &Hop{}))
		b.feed(h, n)
		b.serve()
		b.Until("all but the last came through", func() bool { return b.came(h) == n-1 })
		close(long)
		b.allThrough(h, n)
	})
}

// A worker goroutine survives whatever ends the goroutine of a speculative run.
func TestRunBatchingAfterExit(t *testing.T) {
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
				h := b.Start(chainOf(&Hop{}, &Hop{}, tries(last)))
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

// A group that ends with an error when its run is over changes nothing.
func TestRunBatchingAfterLateGroups(t *testing.T) {
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
		h := b.Start(chainOf(w, &Hop{}))
		b.feed(h, n)
		b.serve()
		b.Until("all came through", func() bool { return b.came(h) == n })
		late.Wait()
		b.same(h, sequence(n)...)
	})
}
