package worker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// doSomething reads, writes, changes the state, logs and spawns.
func doSomething(run *worker.Run, w *Call) error {
	_, _, err := w.In.Read()
	_, spawnErr := run.Spawn("child", job.Single(&Count{To: 1}, ""))
	return errors.Join(err, spawnErr, w.Out.Write(1), run.State().Set("x", 1), run.Log("did something"), w.More.Close())
}

// untouched fails the test unless the run of doSomething left nothing behind but what it logged.
func (b *bench) untouched(h *client.Handle) {
	b.Helper()
	b.same(h)
	if n := b.Waiting(h, "in"); n != 1 {
		b.Errorf("%d messages wait, want 1", n)
	}
	logs, err := h.Logs(b.Ctx, 10)
	b.Check(err)
	if state, tree := b.State(h), b.Tree(h); len(state) != 0 || len(tree) != 0 || len(logs) > 1 {
		b.Errorf("state %v, children %q, log %v, want neither state nor children", state, tree, logs)
	}
	info := b.Info(h)
	if p, _ := info.Port(port.Output, "more"); p.Closed || info.Steps != 0 {
		b.Errorf("closed = %t, %d steps, want false and 0", p.Closed, info.Steps)
	}
}

// However a run fails, nothing of it is kept but the reason and what it logged.
func TestFailure(t *testing.T) {
	for name, c := range map[string]struct {
		fail          func(ctx context.Context, run *worker.Run, w *Call) error
		reason, stack string
	}{
		"error": {func(context.Context, *worker.Run, *Call) error {
			return errors.New("no luck\nmore about it")
		}, "no luck", ""},
		"panic": {func(context.Context, *worker.Run, *Call) error {
			panic("out of paper")
		}, "panic: out of paper", "failures_test.go"},
		"nil map": {func(context.Context, *worker.Run, *Call) error {
			none := func() map[string]int { return nil }
			none()["a"]++
			return nil
		}, "panic: assignment to entry in nil map", "failures_test.go"},
		"exit": {func(context.Context, *worker.Run, *Call) error {
			runtime.Goexit()
			return nil
		}, "the worker ended its goroutine instead of returning", ""},
		"wrong message": {func(_ context.Context, _ *worker.Run, w *Call) error {
			_, _, err := w.Text.Read()
			return err
		}, `reading from port "text"`, ""},
		"wrong state": {func(_ context.Context, run *worker.Run, _ *Call) error {
			return run.State().Set("f", func() {})
		}, `state "f"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
					if err := doSomething(run, w); err != nil {
						return fmt.Errorf("unexpected: %w", err)
					}
					return c.fail(ctx, run, w)
				}))
				b.Check(h.Write(b.Ctx, "in", 1))
				b.Check(h.Write(b.Ctx, "text", 7))
				b.serve()
				f := b.Failure(h)
				info := b.Info(h)
				if !strings.HasPrefix(info.Reason, c.reason) || strings.Contains(info.Reason, "\n") || !strings.HasPrefix(f.Error, c.reason) {
					b.Errorf("reason %q, failure %q, want %q", info.Reason, f.Error, c.reason)
				}
				if !strings.Contains(f.Stack, c.stack) || c.stack == "" && f.Stack != "" {
					b.Errorf("stack = %q", f.Stack)
				}
				if f.At.IsZero() || f.Step != 0 || info.Tries != 1 {
					b.Errorf("failure at %v in step %d, %d tries", f.At, f.Step, info.Tries)
				}
				b.untouched(h)
				if _, err := h.Wait(b.Ctx); !errors.Is(err, job.ErrFailed) || !strings.Contains(err.Error(), c.reason) {
					b.Errorf("Wait = %v", err)
				}
			})
		})
	}
}

// The message to blame is the last that the run has read, or the one that the worker names of those.
func TestAtMessage(t *testing.T) {
	b := onRedis(t)
	b.serve()
	no := errors.New("no")
	for name, c := range map[string]struct {
		err  error
		want int64
	}{
		"none": {no, 2}, "the first": {worker.AtMessage(1, no), 0}, "the second, for good": {worker.Permanent(fmt.Errorf("tried once: %w", worker.AtMessage(2, no))), 1},
		"one that is not there": {worker.AtMessage(0, no), 2}, "one behind the last": {worker.AtMessage(9, no), 2},
	} {
		h := b.single(call(b, func(_ context.Context, _ *worker.Run, w *Call) error {
			for range 3 {
				if _, ok, err := w.In.Read(); !ok || err != nil {
					return worker.ErrSuspend
				}
			}
			return c.err
		}))
		b.Check(h.Write(b.Ctx, "in", 1, 2, 3, 4))
		if f := b.Failure(h); f.Port != "in" || f.Number != c.want || !strings.HasSuffix(f.Error, "no") {
			b.Errorf("%s: failure %+v, want message %d", name, f, c.want)
		}
	}
	if worker.AtMessage(1, nil) != nil {
		b.Error("an error of none")
	}
}

func TestTimeout(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(&Timed{*call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			if err := doSomething(run, w); err != nil {
				return err
			}
			<-ctx.Done()
			return fmt.Errorf("reading a page: %w", ctx.Err())
		})})
		b.Check(h.Write(b.Ctx, "in", 1))
		if f := b.Failure(h); !strings.Contains(f.Error, "timeout of 50ms") {
			b.Errorf("failure = %q", f.Error)
		}
	})
}

// Code that ends its runs itself is not cut off.
func TestOwnTimeout(t *testing.T) {
	b := onRedis(t)
	b.serve()
	h := b.single(&Patient{*call(b, func(ctx context.Context, _ *worker.Run, w *Call) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
			return w.Out.Write(1)
		}
	})})
	b.Completed(h, 1)
	b.same(h, 1)
}

// A run that is done in spite of its timeout is kept.
func TestTimeoutIgnored(t *testing.T) {
	b := onRedis(t)
	b.serve()
	h := b.single(&Timed{*call(b, func(ctx context.Context, _ *worker.Run, w *Call) error {
		<-ctx.Done()
		return w.Out.Write(1)
	})})
	b.Completed(h, 1)
	b.same(h, 1)
}

func TestTries(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var runs atomic.Int64
		h := b.single(&Tried{*call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			if run.Info().Steps > 0 {
				return nil // woken by the child
			}
			if n := runs.Add(1); int(n) != run.Info().Tries+1 {
				return fmt.Errorf("run %d after %d failures", n, run.Info().Tries)
			}
			if err := doSomething(run, w); err != nil {
				return err
			}
			if run.Info().Tries < 2 {
				return fmt.Errorf("failure %d", run.Info().Tries)
			}
			return nil
		})})
		b.Check(h.Write(b.Ctx, "in", 1))
		info := b.Completed(h, 1)
		b.same(h, 1)
		if n := b.Waiting(h, "in"); n != 0 || info.Tries != 0 || info.Steps > 2 || info.Reason != "" {
			b.Errorf("%d wait; %d tries, %d steps, reason %q", n, info.Tries, info.Steps, info.Reason)
		}
		fs, err := h.Failures(b.Ctx)
		b.Check(err)
		if len(fs) != 2 || fs[0].Error != "failure 1" || fs[1].Error != "failure 0" {
			b.Errorf("failures = %+v", fs)
		}
	})
}

// A checkpoint is no success of the run: a job that commits and then fails, each time,
// does not go on indefinitely.
func TestTriesWithCheckpoints(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var runs atomic.Int64
		h := b.single(&Tried{*call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			runs.Add(1)
			if err := run.Checkpoint(); err != nil {
				return err
			}
			return errors.New("after the checkpoint")
		})})
		b.Failure(h)
		if n := runs.Load(); n != 3 {
			b.Errorf("%d runs, want 3", n)
		}
	})
}

// When the tries are used up the job fails; Retry gives it as many again.
func TestRetry(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var runs atomic.Int64
		h := b.single(&Tried{*call(b, func(_ context.Context, _ *worker.Run, w *Call) error {
			if runs.Add(1) < 6 {
				return errors.New("not yet")
			}
			return w.Out.Write(1)
		})})
		b.Failure(h)
		if n := runs.Load(); n != 3 {
			b.Errorf("%d runs, want 3", n)
		}
		if err := h.Run(b.Ctx); !errors.Is(err, job.ErrStatus) {
			b.Errorf("Run of a failed job: %v", err)
		}
		b.Check(h.Retry(b.Ctx))
		b.Completed(h, 1)
		b.same(h, 1)
		if n := runs.Load(); n != 6 {
			b.Errorf("%d runs, want 6", n)
		}
		if err := h.Retry(b.Ctx); !errors.Is(err, job.ErrStatus) {
			b.Errorf("Retry of a completed job: %v", err)
		}
	})
}

// A message does not wake a failed job, but is there when it is retried.
func TestWriteToFailedJob(t *testing.T) {
	b := onRedis(t)
	b.serve()
	var ready atomic.Bool
	h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
		if !ready.Load() {
			return errors.New("not ready")
		}
		return copyAll(ctx, run, w)
	}))
	b.Failure(h)
	ready.Store(true)
	b.Check(h.Write(b.Ctx, "in", 5))
	if info, err := h.Info(b.Ctx); err != nil || info.Status != statemachine.Failed {
		b.Errorf("after a message: %v, %v", info.Status, err)
	}
	b.Check(h.Retry(b.Ctx))
	b.Completed(h, 1)
	b.same(h, 5)
}

func TestTooLarge(t *testing.T) {
	b := onRedis(t)
	b.serve()
	half := strings.Repeat("x", worker.MaxMessage/2)
	message, commit := fmt.Sprint(worker.MaxMessage), fmt.Sprint(worker.MaxCommit)
	fill := func(add func(i int) error) error {
		for i := range 20 {
			if err := add(i); err != nil {
				if i < 13 {
					return fmt.Errorf("already value %d of half a message: %w", i, err)
				}
				return err
			}
		}
		return nil
	}
	many := fmt.Sprint(worker.MaxWrites)
	often := func(size int, add func() error) error {
		for i := range worker.MaxWrites + 1 {
			if err := add(); err != nil {
				if job.Values(i+1, (i+1)*size) <= worker.MaxWrites {
					return fmt.Errorf("already entry %d: %w", i, err)
				}
				return err
			}
		}
		return nil
	}
	for name, c := range map[string]struct {
		do    func(run *worker.Run, w *Call) error
		limit string
	}{
		"message": {func(_ *worker.Run, w *Call) error { return w.More.Write(half + half) }, message},
		"state":   {func(run *worker.Run, _ *Call) error { return run.State().Set("s", half+half) }, message},
		"log":     {func(run *worker.Run, _ *Call) error { return run.Log(half + half) }, message},
		"messages": {func(_ *worker.Run, w *Call) error {
			return fill(func(int) error { return w.More.Write(half) })
		}, commit},
		"states": {func(run *worker.Run, _ *Call) error {
			return fill(func(i int) error { return run.State().Set(fmt.Sprint(i), half) })
		}, commit},
		"log entries": {func(run *worker.Run, _ *Call) error { return often(1, func() error { return run.Log(1) }) }, many},
		"timers": {func(run *worker.Run, _ *Call) error {
			return often(16, func() error { return run.WakeAfter(time.Hour) })
		}, many},
		"arguments": {func(run *worker.Run, _ *Call) error {
			_, err := run.Spawn("big", job.Single(&Call{Key: half + half}, ""))
			return err
		}, message},
	} {
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error { return c.do(run, w) }))
		f := b.Failure(h)
		if !strings.Contains(f.Error, c.limit) || !strings.Contains(f.Error, job.ErrTooLarge.Error()) || strings.Contains(f.Error, "already") || strings.Count(f.Error, "writing to") > 1 {
			b.Errorf("%s: failure %q does not name the limit %s, once", name, f.Error, c.limit)
		}
		if got := enginetest.Outs[string](b, h, "more"); len(got)+len(b.State(h))+len(b.Tree(h)) != 0 {
			b.Errorf("%s: something was kept", name)
		}
	}
}

// Checkpoint makes room for another commit.
func TestMoreThanOneCommit(t *testing.T) {
	b := onRedis(t)
	b.serve()
	half := strings.Repeat("x", worker.MaxMessage/2)
	h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
		for i := range 40 {
			if i%10 == 9 {
				if err := run.Checkpoint(); err != nil {
					return err
				}
			}
			if err := w.More.Write(half); err != nil {
				return err
			}
		}
		return nil
	}))
	b.Completed(h, 5)
	all, err := h.Drain(b.Ctx, port.Output, "more") // as many at a time as fit
	b.Check(err)
	if n := len(all); n != 40 {
		b.Errorf("%d messages, want 40", n)
	}
}

func TestWriteAfterClose(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			if run.Info().Steps == 0 {
				return errors.Join(w.Out.Write(1), w.Out.Close(), w.Out.Close())
			}
			return w.Out.Write(2)
		}))
		b.Completed(h, 1)
		b.Check(h.Run(b.Ctx))
		if f := b.Failure(h); !strings.Contains(f.Error, `"out"`) || !strings.Contains(f.Error, "closed") {
			b.Errorf("failure = %q", f.Error)
		}
		same := b.single(call(b, func(_ context.Context, _ *worker.Run, w *Call) error {
			return errors.Join(w.Out.Close(), w.Out.Write(1))
		}))
		if f := b.Failure(same); !strings.Contains(f.Error, "closed") {
			b.Errorf("failure = %q", f.Error)
		}
		b.same(h, 1)
		b.same(same)
	})
}

// A job whose runs take their processes with them fails after some, and its worker is not
// called again until it is retried.
func TestDeadlyJob(t *testing.T) {
	each(t, func(b *bench) {
		var runs atomic.Int64
		h := b.single(call(b, func(_ context.Context, _ *worker.Run, w *Call) error {
			runs.Add(1)
			_, _, err := w.In.Read()
			return err
		}))
		b.Check(h.Write(b.Ctx, "in", 1))
		const crashes = 10
		for range crashes {
			_, err := b.Store.Begin(b.Ctx, h.ID(), store.Begin{Token: rand.Text(), Lease: time.Millisecond})
			b.Check(err)
			b.Until("its lease has ended", func() bool {
				_, err := b.Store.Sweep(b.Ctx)
				b.Check(err)
				info := b.Info(h)
				return info.Status == statemachine.Queued
			})
		}
		b.serve()
		b.Check(h.Run(b.Ctx)) // now, and not when it has been left alone for a minute
		f := b.Failure(h)
		if want := fmt.Sprintf("its last %d runs ended without a word", crashes); !strings.Contains(f.Error, want) {
			b.Errorf("it failed with %q, want %q", f.Error, want)
		}
		if n := runs.Load(); n != 0 || b.Waiting(h, "in") != 1 {
			b.Errorf("%d runs, %d messages wait", n, b.Waiting(h, "in"))
		}
		b.Check(h.Retry(b.Ctx))
		b.Until("it has run", func() bool { return b.Waiting(h, "in") == 0 })
	})
}

// A job that was created by its type has the failure policy that it was created with, and the port that dead letters need.
func TestFailurePolicyOfCreatedJob(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Risky{}} })
		var made [2]*client.Handle
		b.Until("the type is registered", func() bool {
			_, err := b.Store.Type(b.Ctx, job.DefaultQueue, "Risky")
			return err == nil
		})
		for i, policy := range []job.FailurePolicy{job.DeadLetter, job.FailGraph} {
			h, err := b.Client.Create(b.Ctx, job.New{Type: "Risky", OnFailure: policy})
			b.Check(err)
			b.Check(h.Write(b.Ctx, "in", 1, -2, 3))
			b.Check(h.Close(b.Ctx, "in"))
			made[i] = h
		}
		b.Completed(made[0], 0)
		if letters := enginetest.Outs[job.Letter](b, made[0], job.ErrorsPort); len(letters) != 1 || letters[0].Error != "negative" {
			b.Errorf("dead letters: %v", letters)
		}
		if failure := b.Failure(made[1]); failure.Error != "negative" {
			b.Errorf("the job without dead letters failed with %q", failure.Error)
		}
	})
}
