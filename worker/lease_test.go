package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// succeeds wants an experiment to succeed once: a machine under load may end a lease.
func (b *bench) succeeds(what string, experiment func() bool) {
	b.Helper()
	for range 4 {
		if experiment() {
			return
		}
	}
	b.Errorf("four times in vain: %s", what)
}

// Two engines watch that nobody keeps a job for longer than its lease; a run that lives
// keeps it.
func TestLongRunKeepsItsLease(t *testing.T) {
	each(t, func(b *bench) {
		short := func(c *worker.Config) { c.Lease = 300 * time.Millisecond }
		b.serve(short)
		b.serve(short)
		b.succeeds("a long run keeps its lease", func() bool {
			var runs atomic.Int64
			h := b.single(call(b, func(ctx context.Context, _ *worker.Run, w *Call) error {
				runs.Add(1)
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(1500 * time.Millisecond):
					return w.Out.Write(1)
				}
			}))
			b.Completed(h, 1)
			b.same(h, 1)
			return runs.Load() == 1
		})
	})
}

// slow is a store whose answers to commits take their time.
type slow struct {
	*redisstore.Store
	delay time.Duration
}

func (s slow) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	res, err := s.Store.Commit(ctx, txs)
	time.Sleep(s.delay)
	return res, err
}

// A run with checkpoints keeps its job under a lease that is shorter than the run, and
// than the answer to a checkpoint takes.
func TestCheckpointUnderShortLease(t *testing.T) {
	for name, delay := range map[string]time.Duration{"at once": 0, "late": 500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				b.serve(func(c *worker.Config) { c.Store, c.Lease = slow{b.Store, delay}, 300*time.Millisecond })
				b.succeeds("a run with checkpoints keeps its lease", func() bool {
					var runs atomic.Int64
					h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
						runs.Add(1)
						var n int
						if _, err := run.State().Get("n", &n); err != nil {
							return err
						}
						for ; n < 4; n++ {
							time.Sleep(150 * time.Millisecond)
							err := errors.Join(w.Out.Write(n), run.State().Set("n", n+1), run.Checkpoint(), context.Cause(ctx))
							if err != nil {
								return err
							}
						}
						return nil
					}))
					b.Completed(h, 5)
					b.same(h, 0, 1, 2, 3)
					return runs.Load() == 1
				})
			})
		})
	}
}

// What was done before a checkpoint is seen at once, and is not repeated.
func TestCheckpoint(t *testing.T) {
	each(t, func(b *bench) {
		var inside, seen enginetest.Gate
		h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			if run.Info().Steps > 0 { // repeated from the checkpoint on
				return copyAll(ctx, run, w)
			}
			v, _, err := w.In.Read()
			if err != nil {
				return err
			}
			_, err = run.Spawn("child", job.Single(&Count{To: 3}, ""))
			if err := errors.Join(err, w.Out.Write(-v), run.State().Set("v", v), run.Log(v), run.Checkpoint()); err != nil {
				return err
			}
			inside.Open()
			if err := seen.Pass(ctx); err != nil {
				return err
			}
			if _, err := run.Spawn("child", job.Single(&Count{}, "")); !errors.Is(err, job.ErrExists) {
				return fmt.Errorf("Spawn of a child that the checkpoint made: %w", err)
			}
			if ok, err := run.State().Get("v", &v); !ok || err != nil || v != 1 {
				return fmt.Errorf("state after the checkpoint: v = %d, %t, %w", v, ok, err)
			}
			v, _, err = w.In.Read()
			if err := errors.Join(err, w.Out.Write(-v), run.State().Set("v", v)); err != nil {
				return err
			}
			return errors.New("bad luck")
		}))
		b.Check(h.Write(b.Ctx, "in", 1, 2, 3))
		b.serve()
		b.Check(inside.Pass(b.Ctx))
		b.same(h, -1)
		if got, n := b.State(h)["v"], b.Waiting(h, "in"); got != "1" || n != 2 {
			b.Errorf("after the checkpoint: v = %s, %d messages wait", got, n)
		}
		b.Completed(b.child(h, "child"), 1)
		seen.Open()
		f := b.Failure(h)
		if f.Error != "bad luck" || f.Step != 1 {
			b.Errorf("failure = %+v", f)
		}
		b.same(h, -1)
		if got, n := b.State(h)["v"], b.Waiting(h, "in"); got != "1" || n != 2 {
			b.Errorf("after the failure: v = %s, %d messages wait", got, n)
		}
		b.Check(h.Retry(b.Ctx))
		b.Completed(h, 1)
		b.same(h, -1, 2, 3)
	})
}

// Beyond the first batch, a run with checkpoints pages on from where it is.
func TestCheckpointWhilePaging(t *testing.T) {
	each(t, func(b *bench) {
		const n = 2500
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			for i := range n {
				v, ok, err := w.In.Read()
				if v != i || !ok || err != nil {
					return fmt.Errorf("message %d = %d, %t, %w", i, v, ok, err)
				}
				if err := w.Out.Write(v); err != nil {
					return err
				}
				if i%600 == 599 {
					if err := run.Checkpoint(); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		messages, want := make([]any, n), make([]int, n)
		for i := range n {
			messages[i], want[i] = i, i
		}
		b.Check(h.Write(b.Ctx, "in", messages...))
		b.serve()
		if info := b.Completed(h, 5); info.Steps != 5 {
			b.Errorf("%d steps, want 5", info.Steps)
		}
		b.same(h, want...)
	})
}

// When a checkpoint is refused nothing that follows is kept, whatever the worker does
// about the error.
func TestCheckpointRefused(t *testing.T) {
	each(t, func(b *bench) {
		var runs atomic.Int64
		var inside, taken enginetest.Gate
		h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			if runs.Add(1) > 1 {
				return copyAll(ctx, run, w)
			}
			if err := copyAll(ctx, run, w); err != nil {
				return err
			}
			inside.Open()
			first := errors.Join(taken.Pass(ctx), run.Checkpoint())
			second := run.Checkpoint()
			if !errors.Is(first, job.ErrMoved) || !errors.Is(second, job.ErrMoved) {
				b.Errorf("Checkpoint = %v, then %v", first, second)
			}
			return w.Out.Write(99)
		}))
		b.Check(h.Write(b.Ctx, "in", 1, 2, 3))
		b.serve()
		b.Check(inside.Pass(b.Ctx))
		b.Check(b.Store.Take(b.Ctx, h.ID(), store.Take{Dir: port.Input, Port: "in", Head: 0, N: 1}, "token"))
		taken.Open()
		b.Completed(h, 1)
		b.same(h, 2, 3)
		if fs, err := h.Failures(b.Ctx); err != nil || len(fs) > 0 {
			b.Errorf("failures = %v, %v", fs, err)
		}
	})
}

// deaf is a store that does not prolong leases.
type deaf struct{ *redisstore.Store }

func (deaf) Refresh(ctx context.Context, _ job.ID, _ string, _ time.Duration, _ *job.Progress) error {
	<-ctx.Done()
	return ctx.Err()
}

// A run that cannot prolong its lease is cancelled when that ends, and its job has
// another run, which has the effect.
func TestLostLeaseCancelsTheRun(t *testing.T) {
	each(t, func(b *bench) {
		var runs atomic.Int64
		causes := make(chan error, 1)
		h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			if runs.Add(1) == 1 {
				<-ctx.Done()
				causes <- context.Cause(ctx)
			}
			return w.Out.Write(int(runs.Load()))
		}))
		b.serve(func(c *worker.Config) { c.Store, c.Lease = deaf{b.Store}, 200*time.Millisecond })
		select {
		case cause := <-causes:
			if !errors.Is(cause, job.ErrFenced) || !strings.Contains(cause.Error(), "lease") {
				b.Errorf("cause = %v", cause)
			}
		case <-b.Ctx.Done():
			b.Fatal("the run is not cancelled")
		}
		b.Reach(h, 1, statemachine.Completed)
		if got := enginetest.Outs[int](b, h, "out"); !slices.Equal(got, []int{2}) {
			b.Errorf("out = %v, want [2]", got)
		}
	})
}
