package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// An engine that is told to stop lets its runs end and commits them.
func TestStopWaitsForRuns(t *testing.T) {
	each(t, func(b *bench) {
		e := b.serve()
		var inside, told enginetest.Gate
		h := b.single(call(b, func(ctx context.Context, _ *worker.Run, w *Call) error {
			inside.Open()
			return errors.Join(told.Pass(ctx), w.Out.Write(1))
		}))
		b.Check(inside.Pass(b.Ctx))
		e.End()
		time.Sleep(20 * time.Millisecond) // rather after the engine has noticed
		told.Open()
		e.Stop()
		if info, err := h.Info(b.Ctx); err != nil || info.Status != statemachine.Completed {
			b.Errorf("job is %v, %v", info.Status, err)
		}
		b.same(h, 1)
	})
}

// A run that goes on beyond the drain time is cancelled and its job handed back: that is
// no failure, and another engine runs it.
func TestStopHandsBackRuns(t *testing.T) {
	for name, end := range map[string]func(context.Context, *worker.Run) error{
		"context's error": func(ctx context.Context, _ *worker.Run) error { return ctx.Err() },
		"own error":       func(context.Context, *worker.Run) error { return errors.New("connection lost") },
		"checkpoint":      func(_ context.Context, run *worker.Run) error { return run.Checkpoint() },
		"panic":           func(context.Context, *worker.Run) error { panic("interrupted") },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				var again atomic.Bool
				var inside enginetest.Gate
				h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
					if err := copyAll(ctx, run, w); err != nil {
						return err
					}
					if again.Load() {
						return nil
					}
					inside.Open()
					<-ctx.Done()
					if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) || !strings.Contains(cause.Error(), "stopping") {
						b.Errorf("cause = %v", cause)
					}
					return end(ctx, run)
				}))
				b.Check(h.Write(b.Ctx, "in", 1, 2))
				e := b.serve(func(c *worker.Config) { c.Drain = 50 * time.Millisecond })
				b.Check(inside.Pass(b.Ctx))
				again.Store(true)
				e.Stop()
				info := b.Info(h)
				if info.Status != statemachine.Queued || info.Tries != 0 || info.Steps != 0 {
					b.Errorf("job is %s after %d failures and %d steps", info.Status, info.Tries, info.Steps)
				}
				if fs, err := h.Failures(b.Ctx); err != nil || len(fs) != 0 {
					b.Errorf("failures = %v, %v", fs, err)
				}
				b.serve()
				b.Completed(h, 1)
				b.same(h, 1, 2)
			})
		})
	}
}

// A run that takes no notice is waited for, and kept.
func TestStopWaitsForStubbornRuns(t *testing.T) {
	b := onRedis(t)
	e := b.serve(func(c *worker.Config) { c.Drain, c.Lease = time.Millisecond, 100*time.Millisecond })
	var inside enginetest.Gate
	h := b.single(call(b, func(ctx context.Context, _ *worker.Run, w *Call) error {
		inside.Open()
		<-ctx.Done()
		time.Sleep(300 * time.Millisecond)
		return w.Out.Write(1)
	}))
	b.Check(inside.Pass(b.Ctx))
	e.Stop()
	if info, err := h.Info(b.Ctx); err != nil || info.Status != statemachine.Completed || info.Steps != 1 {
		b.Errorf("job = %+v, %v", info, err)
	}
	b.same(h, 1)
}

// A job that is waiting to end when its engine stops is ended by the next one.
func TestTerminate(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var runs, ends atomic.Int64
		ending := func() *Ending {
			return &Ending{
				Call: *call(b, func(context.Context, *worker.Run, *Call) error { runs.Add(1); return worker.ErrSuspend }),
				End: keep(b, func(_ context.Context, run *worker.Run, w *Call) error {
					ends.Add(1)
					v, _, err := w.In.Read()
					return errors.Join(err, w.Out.Write(v), run.State().Set("ended", true))
				}),
			}
		}
		h := b.single(ending())
		b.Reach(h, 1, statemachine.Suspended)
		b.Check(h.Write(b.Ctx, "in", 7))
		b.Reach(h, 2, statemachine.Suspended)
		b.Check(h.Terminate(b.Ctx))
		b.Reach(h, 3, statemachine.Terminated)
		b.Check(h.Terminate(b.Ctx)) // no effect
		b.same(h, 7)
		if n := ends.Load(); n != 1 || b.State(h)["ended"] != "true" {
			b.Errorf("Shutdown was called %d times; state %v", n, b.State(h))
		}
		if err := h.Run(b.Ctx); !errors.Is(err, job.ErrStatus) {
			b.Errorf("Run of a terminated job: %v", err)
		}
		before := runs.Load()
		b.Check(h.Force(b.Ctx))
		b.Reach(h, 4, statemachine.Suspended)
		if runs.Load() != before+1 {
			b.Errorf("%d runs after Force", runs.Load()-before)
		}
		plain := b.single(&Summing{}) // has no Shutdown
		b.Reach(plain, 1, statemachine.Suspended)
		b.Check(plain.Terminate(b.Ctx))
		b.Reach(plain, 2, statemachine.Terminated)
	})
}

// T2: a job that is running ends its run first, and what that did is kept.
func TestTerminateRunningJob(t *testing.T) {
	for name, result := range map[string]error{"completes": nil, "suspends": worker.ErrSuspend, "fails": errors.New("bad luck")} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				b.serve()
				var inside, told enginetest.Gate
				var ends atomic.Int64
				h := b.single(&Ending{
					Call: *call(b, func(ctx context.Context, _ *worker.Run, w *Call) error {
						inside.Open()
						if err := errors.Join(told.Pass(ctx), w.Out.Write(1)); err != nil {
							return err
						}
						return result
					}),
					End: keep(b, func(_ context.Context, _ *worker.Run, w *Call) error {
						ends.Add(1)
						return w.Out.Write(2)
					}),
				})
				b.Check(inside.Pass(b.Ctx))
				b.Check(h.Terminate(b.Ctx))
				if info, err := h.Info(b.Ctx); err != nil || info.Status != statemachine.Terminating {
					b.Errorf("job is %v, %v", info.Status, err)
				}
				told.Open()
				b.Reach(h, 1, statemachine.Terminated)
				if n := ends.Load(); n != 1 {
					b.Errorf("Shutdown was called %d times", n)
				}
				fs, err := h.Failures(b.Ctx)
				b.Check(err)
				if name == "fails" {
					b.same(h, 2)
				} else {
					b.same(h, 1, 2)
				}
				if (len(fs) == 1) != (name == "fails") {
					b.Errorf("failures = %v", fs)
				}
			})
		})
	}
}

// T4: whatever goes wrong in Shutdown is recorded, and the job ends anyway.
func TestShutdownFails(t *testing.T) {
	for want, end := range map[string]code{
		"cannot say goodbye": func(context.Context, *worker.Run, *Call) error { return errors.New("cannot say goodbye") },
		"panic: too late":    func(context.Context, *worker.Run, *Call) error { panic("too late") },
		"port": func(_ context.Context, run *worker.Run, _ *Call) error { // the commit is refused
			c, err := run.Child("child")
			if err != nil {
				return fmt.Errorf("unexpected: %w", err)
			}
			return c.Write("inn", 1)
		},
	} {
		t.Run(want, func(t *testing.T) {
			each(t, func(b *bench) {
				b.serve()
				var ends atomic.Int64
				h := b.single(&Ending{
					Call: *call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
						if _, err := run.Child("child"); err == nil {
							return worker.ErrSuspend
						}
						_, err := run.Spawn("child", job.Single(&Summing{}, ""))
						return err
					}),
					End: keep(b, func(ctx context.Context, run *worker.Run, w *Call) error {
						ends.Add(1)
						return errors.Join(w.Out.Write(1), end(ctx, run, w))
					}),
				})
				b.Reach(h, 2, statemachine.Suspended)
				b.Check(h.Terminate(b.Ctx))
				b.Reach(h, 0, statemachine.Terminated)
				fs, err := h.Failures(b.Ctx)
				b.Check(err)
				if len(fs) != 1 || !strings.Contains(fs[0].Error, want) || strings.Contains(fs[0].Error, "unexpected") {
					b.Errorf("failures = %v", fs)
				}
				b.same(h)
				if n := ends.Load(); n != 1 {
					b.Errorf("Shutdown was called %d times", n)
				}
			})
		})
	}
}

// Abort ends the drain time of an engine that stops.
func TestAbort(t *testing.T) {
	each(t, func(b *bench) {
		var inside enginetest.Gate
		h := b.single(call(b, func(ctx context.Context, _ *worker.Run, _ *Call) error {
			inside.Open()
			<-ctx.Done()
			return ctx.Err()
		}))
		e := b.serve(func(c *worker.Config) { c.Drain = time.Hour })
		b.Check(inside.Pass(b.Ctx))
		if runs := e.Running(); len(runs) != 1 || runs[0].Job != h.ID() {
			b.Errorf("running are %v", runs)
		}
		e.End()
		e.Abort()
		e.Stop()
		if info, err := h.Info(b.Ctx); err != nil || info.Status != statemachine.Queued {
			b.Errorf("job is %v, %v", info.Status, err)
		}
		if runs := e.Running(); len(runs) != 0 {
			b.Errorf("running are still %v", runs)
		}
	})
}
