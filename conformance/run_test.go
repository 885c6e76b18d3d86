package conformance_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

var errBroken = errors.New("broken on purpose")

// record returns all that Redis says of a job in its hash, which it has once anything was to be changed.
func (e *env) record(h *client.Handle) map[string]string {
	e.Helper()
	_ = e.Store.ClosePort(e.Ctx, h.ID(), port.Input, "none") // there is no such port
	for _, k := range e.keys() {
		if strings.HasSuffix(k, "}:j:"+string(h.ID())) {
			all, err := e.Redis.HGetAll(e.Ctx, k).Result()
			e.Check(err)
			return all
		}
	}
	e.Fatalf("job %s has no record", h.ID())
	return nil
}

// runner returns an engine that runs nothing by itself, only what RunJob is asked for.
func (e *env) runner(workers ...worker.Worker) func(h *client.Handle) error {
	e.Helper()
	e.register(workers...)
	eng, err := worker.New(e.Config(workers...))
	e.Check(err)
	return func(h *client.Handle) error { return eng.RunJob(e.Ctx, h.ID()) }
}

func (e *env) is(h *client.Handle, want statemachine.Status) *job.Info {
	e.Helper()
	info := e.Info(h)
	if info.Status != want {
		e.Fatalf("job is %s (%s), want %s", info.Status, info.Reason, want)
	}
	return info
}

// busy is a Do that tells when its run has begun and does not end before its gate is open.
type busy struct {
	begun, gate enginetest.Gate
	runs        atomic.Int64
}

func (b *busy) code(end error) code {
	return func(ctx context.Context, _ *worker.Run, _ *Do) error {
		b.runs.Add(1)
		b.begun.Open()
		if err := b.gate.Pass(ctx); err != nil {
			return err
		}
		return end
	}
}

// background calls fn in a goroutine and returns a function that waits for its end.
func (e *env) background(fn func() error) func() {
	e.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	return func() { e.Helper(); e.Check(<-done) }
}

func TestR1Run(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		for name, c := range map[string]struct {
			end  error
			want statemachine.Status
		}{
			"completed": {nil, statemachine.Completed},
			"suspended": {worker.ErrSuspend, statemachine.Suspended},
		} {
			var n atomic.Int64
			h := e.job("Do", does(e.T, func(context.Context, *worker.Run, *Do) error { n.Add(1); return c.end }))
			e.Check(h.Run(e.Ctx)) // queued
			e.Check(run(h))
			e.is(h, c.want)
			e.Check(h.Run(e.Ctx))
			e.is(h, statemachine.Queued)
			asked := time.Now().Truncate(time.Millisecond)
			e.Check(run(h))
			if i := e.is(h, c.want); i.Ran.Before(asked) || n.Load() != 2 {
				e.Errorf("%s: ran at %s, asked at %s, %d runs", name, i.Ran, asked, n.Load())
			}
		}
		failed := e.job("Do", does(e.T, func(context.Context, *worker.Run, *Do) error { return errBroken }))
		e.Check(run(failed))
		e.is(failed, statemachine.Failed)
		e.onlyForced(failed)
		e.Check(run(failed))

		ended := e.job("Do", nothing(e.T))
		e.Check(run(ended))
		e.Check(ended.Terminate(e.Ctx))
		before := e.record(e.at(ended, statemachine.Terminating))
		e.refused(ended.Run(e.Ctx), job.ErrStatus)
		e.refused(ended.Force(e.Ctx), job.ErrStatus)
		e.same(ended, before)
		e.Check(run(ended))
		e.is(ended, statemachine.Terminated)
		e.onlyForced(ended)
	})
}

func (e *env) at(h *client.Handle, want statemachine.Status) *client.Handle {
	e.Helper()
	e.is(h, want)
	return h
}

// same fails the test unless the job's record is as before.
func (e *env) same(h *client.Handle, before map[string]string) {
	e.Helper()
	if after := e.record(h); !maps.Equal(after, before) {
		e.Fatalf("the job was\n%v\nis\n%v", before, after)
	}
}

// onlyForced wants Run to be refused without a trace and Force to queue the job.
func (e *env) onlyForced(h *client.Handle) {
	e.Helper()
	before := e.record(h)
	e.refused(h.Run(e.Ctx), job.ErrStatus)
	e.same(h, before)
	e.Check(h.Force(e.Ctx))
	e.is(h, statemachine.Queued)
}

func TestR2RunOfQueued(t *testing.T) {
	each(t, func(e *env) {
		var n atomic.Int64
		e.register(&Do{})
		h := e.job("Do", does(e.T, func(context.Context, *worker.Run, *Do) error { n.Add(1); return nil }))
		before := e.record(h)
		for range 5 {
			e.Check(h.Run(e.Ctx))
		}
		e.same(h, before)
		e.serve(&Do{})
		e.idle()
		if i := e.is(h, statemachine.Completed); n.Load() != 1 || i.Version != 1 {
			e.Errorf("%d runs, %d commits", n.Load(), i.Version)
		}
	})
}

func TestR3RunWhileRunning(t *testing.T) {
	each(t, func(e *env) {
		var b busy
		var over atomic.Int64
		e.serve(&Do{})
		h := e.job("Do", does(e.T, func(ctx context.Context, run *worker.Run, w *Do) error {
			if n := b.runs.Load(); n > 0 && over.Load() != n {
				e.Error("the second run began during the first")
			}
			defer over.Add(1)
			return b.code(nil)(ctx, run, w)
		}))
		e.Check(b.begun.Pass(e.Ctx))
		e.is(h, statemachine.Running)
		e.Check(h.Run(e.Ctx))
		e.Check(h.Run(e.Ctx))
		e.is(h, statemachine.Running)
		b.gate.Open()
		e.settled(h, 2)
		e.idle()
		if n := b.runs.Load(); n != 2 || e.Info(h).Version != 2 {
			e.Errorf("%d runs", n)
		}
	})
}

func TestR4RunParent(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		p := e.job("Do", nothing(e.T))
		e.Check(run(p))
		before := e.record(p)
		e.unchanged(func() { e.Check(p.RunParent(e.Ctx)) })
		e.same(p, before)
		c := e.child(p, "c", "Do", nothing(e.T))
		e.is(p, statemachine.Completed)
		e.Check(c.RunParent(e.Ctx))
		e.is(p, statemachine.Queued)
		e.Check(run(p))
		e.is(p, statemachine.Completed)
		e.is(c, statemachine.Queued)
	})
}

func TestR5RunLater(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Do{})
		later := []*client.Handle{e.job("Do", nothing(e.T)), e.job("Do", nothing(e.T))}
		for _, h := range later {
			e.settled(h, 1)
		}
		due := time.Now().Add(600 * time.Millisecond)
		e.Check(later[0].RunAt(e.Ctx, due))
		e.Check(later[1].RunAfter(e.Ctx, time.Until(due)+20*time.Millisecond))
		past := e.job("Do", nothing(e.T))
		e.settled(past, 1)
		e.Check(past.RunAt(e.Ctx, time.Now().Add(-time.Hour)))
		e.settled(past, 2)
		for _, h := range later {
			if i := e.settled(h, 2); i.Ran.Before(due.Truncate(time.Millisecond)) {
				e.Errorf("ran at %s, asked for %s", i.Ran, due)
			}
		}
		e.idle()
		for _, h := range append(later, past) {
			if i := e.Info(h); i.Version != 2 {
				e.Errorf("%d runs, want 2", i.Version)
			}
		}
	})
}

// A time that is too far away to be stored is refused; all others, and all delays, hold.
func TestFarTimers(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Do{})
		last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		for name, c := range map[string]struct {
			at   time.Time
			next time.Time // zero: it is refused
		}{
			"last": {last, last},
			// Milliseconds since 1970 of these do not fit an int64.
			"overflows to the past":   {at: time.Unix(1<<54, 0)},
			"overflows to the future": {at: time.Unix(-1<<55-1<<53, 0)},
			"behind the last":         {at: last.Add(time.Second)},
		} {
			_, err := e.Client.Create(e.Ctx, job.New{Type: "Do", Args: nothing(e.T), At: c.at})
			h := e.job("Do", nothing(e.T))
			e.settled(h, 1)
			if c.next.IsZero() {
				e.refused(err, job.ErrTooLarge)
				e.refused(h.RunAt(e.Ctx, c.at), job.ErrTooLarge)
			} else {
				e.Check(err)
				e.Check(h.RunAt(e.Ctx, c.at))
			}
			if i := e.Info(h); i.Version != 1 || !i.Next.Equal(c.next) {
				e.Errorf("%s: %d runs, the next is at %s", name, i.Version, i.Next)
			}
		}
		h := e.job("Do", nothing(e.T))
		e.settled(h, 1)
		e.Check(h.RunAfter(e.Ctx, math.MinInt64))
		e.settled(h, 2)
		e.Check(h.RunAfter(e.Ctx, math.MaxInt64))
		if i := e.Info(h); i.Version != 2 || time.Until(i.Next) < 200*365*24*time.Hour {
			e.Errorf("after the longest delay: %d runs, the next is at %s", i.Version, i.Next)
		}
	})
}

func TestR6TypeGone(t *testing.T) {
	each(t, func(e *env) {
		first := e.serve(&Do{}, &Life{})
		h := e.job("Life", lives(e.T, parts{run: func(_ context.Context, _ *worker.Run, w *Do) error {
			for v, err := range w.In.All() {
				if err != nil {
					return err
				}
				if err := w.Out.Write(v); err != nil {
					return err
				}
			}
			return nil
		}}))
		e.reach(h, statemachine.Completed)
		first.Stop()
		second := e.serve(&Do{})
		e.Check(h.Write(e.Ctx, "in", 7))
		e.Until("it is parked with the reason", func() bool { return strings.Contains(e.Info(h).Reason, `"Life"`) })
		if i := e.is(h, statemachine.Queued); i.Ports[0].Waiting != 1 {
			e.Errorf("the data was not kept: %+v", i.Ports)
		}
		second.Stop()
		e.serve(&Do{}, &Life{})
		e.Until("it ran", func() bool { got := enginetest.Outs[int](e, h, "out"); return len(got) == 1 && got[0] == 7 })
		if i := e.reach(h, statemachine.Completed); i.Reason != "" {
			e.Errorf("reason %q remains", i.Reason)
		}
	})
}

func TestR7RunOfDeleted(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Do{})
		h := e.job("Do", nothing(e.T))
		e.ended(h)
		e.Check(h.Delete(e.Ctx))
		e.idle()
		e.unchanged(func() {
			e.refused(h.Run(e.Ctx), job.ErrNotFound)
			e.refused(h.Force(e.Ctx), job.ErrNotFound)
			e.refused(h.RunAfter(e.Ctx, 0), job.ErrNotFound)
		})
	})
}

func TestR8StrayDelivery(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		make := func(end error) *client.Handle {
			h := e.job("Do", does(e.T, func(context.Context, *worker.Run, *Do) error { return end }))
			e.Check(run(h))
			return h
		}
		completed, suspended, failed := make(nil), make(worker.ErrSuspend), make(errBroken)
		ended := make(nil)
		e.Check(ended.Terminate(e.Ctx))
		e.Check(run(ended))
		scheduled := e.create(job.New{Type: "Do", Args: nothing(e.T), At: time.Now().Add(time.Hour)})
		var b busy
		running := e.job("Do", does(e.T, b.code(nil)))
		wait := e.background(func() error { return run(running) })
		e.Check(b.begun.Pass(e.Ctx))
		jobs := map[*client.Handle]statemachine.Status{
			completed: statemachine.Completed, suspended: statemachine.Suspended, failed: statemachine.Failed,
			ended: statemachine.Terminated, scheduled: statemachine.Scheduled, running: statemachine.Running,
		}
		before := map[*client.Handle]map[string]string{}
		var stray []delivery.Notification
		for h, want := range jobs {
			e.is(h, want)
			before[h] = e.record(h)
			e.refused(run(h), job.ErrStatus)
			stray = append(stray, delivery.Notification{Queue: job.DefaultQueue, Shard: h.ID().Shard(4), Gen: 1 << 40})
		}
		_, err := e.Store.Broker().(*delivery.Broker).Enqueue(e.Ctx, stray)
		e.Check(err)
		e.serve(&Do{})
		e.reach(e.job("Do", nothing(e.T)), statemachine.Completed)
		e.Until("all deliveries are over", func() bool {
			waiting, err := e.Store.Broker().(*delivery.Broker).Waiting(e.Ctx, stray)
			e.Check(err)
			return !slices.Contains(waiting, true)
		})
		for h, want := range jobs {
			e.is(h, want)
			e.same(h, before[h])
		}
		b.gate.Open()
		wait()
		if b.runs.Load() != 1 {
			e.Errorf("%d runs", b.runs.Load())
		}
	})
}

func TestR9Statuses(t *testing.T) {
	each(t, func(e *env) {
		var b busy
		e.register(&Do{})
		h := e.job("Do", does(e.T, b.code(nil)))
		if i := e.is(h, statemachine.Queued); !i.Ran.IsZero() {
			e.Errorf("a job that never ran, ran at %s", i.Ran)
		}
		before := time.Now().Truncate(time.Millisecond)
		e.serve(&Do{})
		e.Check(b.begun.Pass(e.Ctx))
		running := e.is(h, statemachine.Running)
		if running.Ran.Before(before) || running.Ran.After(time.Now()) {
			e.Errorf("ran at %s, began after %s", running.Ran, before)
		}
		b.gate.Open()
		if i := e.settled(h, 1); i.Status != statemachine.Completed || !i.Ran.Equal(running.Ran) {
			e.Errorf("it is %s and ran at %s, not %s", i.Status, i.Ran, running.Ran)
		}
	})
}
