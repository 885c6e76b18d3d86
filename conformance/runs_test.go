package conformance_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// dying is a store whose process dies: after its first commit it does and tells nothing.
type dying struct {
	*redisstore.Store
	dead atomic.Bool
}

func (s *dying) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	if s.dead.Swap(true) {
		return nil, job.ErrFenced
	}
	if _, err := s.Store.Commit(ctx, txs); err != nil {
		return nil, err
	}
	return nil, job.ErrFenced // the engine learns no more than a dead one
}

func (s *dying) Refresh(ctx context.Context, id job.ID, token string, lease time.Duration, far *job.Progress) error {
	if s.dead.Load() {
		return job.ErrFenced
	}
	return s.Store.Refresh(ctx, id, token, lease, far)
}

func (s *dying) Lead(context.Context, func(context.Context)) (time.Duration, error) { return 0, nil }

func TestR10StartOnce(t *testing.T) {
	each(t, func(e *env) {
		var mu sync.Mutex
		var calls []string
		note := func(name string) code {
			return func(context.Context, *worker.Run, *Do) error {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, name)
				return nil
			}
		}
		want := func(names ...string) {
			e.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(calls, names) {
				e.Errorf("calls %q, want %q", calls, names)
			}
			calls = nil
		}
		all := parts{start: note("start"), run: note("run"), shutdown: note("shutdown")}
		run := e.runner(&Life{}, &Do{})
		h := e.job("Life", lives(e.T, all))
		e.Check(run(h))
		e.Check(h.Run(e.Ctx))
		e.Check(run(h))
		want("start", "run", "run")

		// A crash in between: Start is committed, and the process dies.
		h = e.job("Life", lives(e.T, all))
		cfg := e.Config(&Life{})
		cfg.Store, cfg.Lease = &dying{Store: e.Open(e.URL)}, 100*time.Millisecond
		dead, err := worker.New(cfg)
		e.Check(err)
		e.Check(dead.RunJob(e.Ctx, h.ID()))
		want("start")
		e.is(h, statemachine.Running)
		e.serve(&Life{}, &Do{})
		e.reach(h, statemachine.Completed)
		want("run")

		// A job that ended before it ever ran, and is forced to life.
		h = e.create(job.New{Type: "Life", Args: lives(e.T, all), At: time.Now().Add(time.Hour)})
		e.Check(h.Terminate(e.Ctx))
		e.reach(h, statemachine.Terminated)
		e.Check(h.Force(e.Ctx))
		e.reach(h, statemachine.Completed)
		want("shutdown", "start", "run")
	})
}

func TestR11Suspend(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		var b busy
		h := e.job("Do", does(e.T, b.code(worker.ErrSuspend)))
		wait := e.background(func() error { return run(h) })
		e.Check(b.begun.Pass(e.Ctx))
		e.Check(h.Run(e.Ctx))
		b.gate.Open()
		wait()
		e.is(h, statemachine.Queued)
		e.Check(run(h))
		e.is(h, statemachine.Suspended)
	})
}

func TestR12Failure(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		for name, end := range map[string]func() error{
			"broken on purpose": func() error { return errBroken },
			"panic: at once":    func() error { panic("at once") },
		} {
			p := e.job("Do", nothing(e.T))
			e.Check(run(p))
			h := e.child(p, "c", "Do", does(e.T, func(_ context.Context, _ *worker.Run, w *Do) error {
				if v, ok, err := w.In.Read(); err != nil || !ok || v != 5 {
					return nil
				}
				if err := w.Out.Write(6); err != nil {
					return err
				}
				return end()
			}))
			e.Check(h.Write(e.Ctx, "in", 5))
			e.Check(run(h))
			e.is(h, statemachine.Failed)
			e.failedWith(h, name)
			i := e.Info(h)
			if in, _ := i.Port(port.Input, "in"); in.Waiting != 1 || in.Total != 1 || len(enginetest.Outs[int](e, h, "out")) != 0 {
				e.Errorf("%s: ports %+v", name, i.Ports)
			}
			e.is(p, statemachine.Queued)
		}
		var b busy
		h := e.job("Do", does(e.T, b.code(errBroken)))
		wait := e.background(func() error { return run(h) })
		e.Check(b.begun.Pass(e.Ctx))
		e.Check(h.Terminate(e.Ctx))
		b.gate.Open()
		wait()
		e.is(h, statemachine.Terminating)
		e.Check(run(h))
		e.is(h, statemachine.Terminated)
	})
}

// failedWith wants the error among the job's failures and in its log; of a panic with
// its stack.
func (e *env) failedWith(h *client.Handle, text string) {
	e.Helper()
	panicked := strings.HasPrefix(text, "panic")
	fs, err := h.Failures(e.Ctx)
	e.Check(err)
	if len(fs) != 1 || !strings.Contains(fs[0].Error, text) || panicked != strings.Contains(fs[0].Stack, "conformance") {
		e.Errorf("failures %+v, want %q", fs, text)
	}
	log, err := h.Runs(e.Ctx, 100)
	e.Check(err)
	found := slices.ContainsFunc(log, func(r job.RunEntry) bool {
		return r.Job == h.ID() && strings.Contains(r.Error, text) && panicked == (r.Stack != "")
	})
	if !found {
		e.Errorf("log %+v, want %q", log, text)
	}
	if i := e.Info(h); !strings.Contains(i.Reason, text) {
		e.Errorf("reason %q", i.Reason)
	}
}

func TestR13OneRunAtATime(t *testing.T) {
	each(t, func(e *env) {
		const jobs, messages = 3, 60
		var overlaps, total atomic.Int64
		var inside [jobs]atomic.Int64
		cfg := e.Config(&Always{})
		e.serve(&Always{})
		cfg.Store = e.Open(e.URL)
		e.Serve(cfg)
		var hs []*client.Handle
		for n := range jobs {
			hs = append(hs, e.job("Always", does(e.T, func(_ context.Context, _ *worker.Run, w *Do) error {
				if inside[n].Add(1) > 1 {
					overlaps.Add(1)
				}
				defer inside[n].Add(-1)
				time.Sleep(2 * time.Millisecond)
				for v, err := range w.In.All() {
					if err != nil {
						return err
					}
					total.Add(int64(v))
				}
				return nil
			})))
		}
		var wg sync.WaitGroup
		for _, h := range hs {
			for part := range 4 {
				wg.Go(func() {
					for range messages / 4 {
						if err := h.Write(e.Ctx, "in", 1); err != nil {
							e.Error(err)
						}
						if err := h.Run(e.Ctx); err != nil && part == 0 {
							e.Error(err)
						}
						stray := delivery.Notification{Queue: job.DefaultQueue, Shard: part, Gen: 1<<40 + total.Load()}
						if _, err := e.Store.Broker().(*delivery.Broker).Enqueue(e.Ctx, []delivery.Notification{stray}); err != nil {
							e.Error(err)
						}
					}
				})
			}
		}
		wg.Wait()
		e.Until("all is read", func() bool { return total.Load() >= jobs*messages })
		for _, h := range hs {
			e.settled(h, 2)
		}
		if overlaps.Load() != 0 || total.Load() != jobs*messages {
			e.Errorf("%d overlaps, %d messages read, want %d", overlaps.Load(), total.Load(), jobs*messages)
		}
	})
}

// Always is a Do that may run as often as it likes.
type Always struct{ Do }

// WorkerOptions implements worker.Configured.
func (w *Always) WorkerOptions() worker.Options { return worker.Options{MaxRunsPerMinute: -1} }

func TestR14SecondDelivery(t *testing.T) {
	each(t, func(e *env) {
		var b busy
		e.serve(&Do{})
		h := e.job("Do", does(e.T, func(ctx context.Context, run *worker.Run, w *Do) error {
			for _, err := range w.In.All() {
				if err != nil {
					return err
				}
			}
			return b.code(nil)(ctx, run, w)
		}))
		e.Check(b.begun.Pass(e.Ctx))
		second := e.runner(&Do{})
		e.refused(second(h), job.ErrStatus)
		e.Check(h.Write(e.Ctx, "in", 1))
		e.Check(h.Write(e.Ctx, "in", 2))
		e.refused(second(h), job.ErrStatus)
		if b.runs.Load() != 1 {
			e.Errorf("%d runs while one is on", b.runs.Load())
		}
		b.gate.Open()
		e.settled(h, 2)
		e.idle()
		if i := e.Info(h); b.runs.Load() != 2 || i.Version != 2 || i.Ports[0].Waiting != 0 {
			e.Errorf("%d runs, %+v", b.runs.Load(), i)
		}
	})
}

// Seldom is a Do that may run three times a minute.
type Seldom struct{ Do }

// WorkerOptions implements worker.Configured.
func (w *Seldom) WorkerOptions() worker.Options { return worker.Options{MaxRunsPerMinute: 3} }

func (e *env) minute() int64 {
	e.Helper()
	now, err := e.Redis.Time(e.Ctx).Result()
	e.Check(err)
	return now.Unix() / 60
}

func TestR15TooOften(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Seldom{})
		again := func(h *client.Handle) error {
			if e.Info(h).Status != statemachine.Queued {
				e.Check(h.Run(e.Ctx))
			}
			return run(h)
		}
		for {
			h := e.job("Seldom", nothing(e.T))
			minute := e.minute()
			var errs []error
			for range 5 {
				errs = append(errs, again(h))
			}
			i := e.Info(h)
			if e.minute() != minute {
				continue // it went over into the next minute: that proves nothing
			}
			for _, err := range errs[:3] {
				e.Check(err)
			}
			e.refused(errs[3], job.ErrRate)
			e.refused(errs[4], job.ErrRate)
			if i.Status != statemachine.Queued || i.Version != 3 || !strings.HasPrefix(i.Reason, "rate: it ran 3 times") {
				e.Errorf("it is %s after %d runs, reason %q", i.Status, i.Version, i.Reason)
			}
			log, err := h.Logs(e.Ctx, 10)
			e.Check(err)
			if len(log) != 1 || !strings.Contains(string(log[0].Entry), "rate: it ran 3 times") {
				e.Errorf("log %s", log)
			}
			e.nextMinute(h, again)
			return
		}
	})
}

// nextMinute lets the job's last minute be over.
func (e *env) nextMinute(h *client.Handle, again func(*client.Handle) error) {
	e.Helper()
	for {
		minute := e.minute()
		for _, k := range e.keys() {
			if strings.HasSuffix(k, "}:j:"+string(h.ID())) {
				e.Check(e.Redis.HSet(e.Ctx, k, "rate", strconv.FormatInt(minute-1, 10)+":3").Err())
			}
		}
		err := again(h)
		rate := e.record(h)["rate"]
		if e.minute() != minute {
			continue
		}
		e.Check(err)
		if want := strconv.FormatInt(minute, 10) + ":1"; rate != want {
			e.Errorf("counter %q, want %q", rate, want)
		}
		if i := e.is(h, statemachine.Completed); i.Reason != "" {
			e.Errorf("reason %q remains", i.Reason)
		}
		return
	}
}

func TestR16ParentWoken(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{}, &Life{})
		p := e.job("Do", does(e.T, func(context.Context, *worker.Run, *Do) error { return worker.ErrSuspend }))
		e.Check(run(p))
		woken := func(what string, h *client.Handle, want statemachine.Status) {
			e.Helper()
			e.is(p, statemachine.Suspended)
			e.Check(run(h))
			e.is(h, want)
			if s := e.Info(p).Status; s != statemachine.Queued {
				e.Fatalf("after a run that %s the parent is %s", what, s)
			}
			e.Check(run(p))
		}
		does := func(name string, end error) *client.Handle {
			return e.child(p, name, "Do", does(e.T, func(context.Context, *worker.Run, *Do) error { return end }))
		}
		done, suspended, failed := does("a", nil), does("b", worker.ErrSuspend), does("c", errBroken)
		woken("completed", done, statemachine.Completed)
		woken("suspended", suspended, statemachine.Suspended)
		woken("failed", failed, statemachine.Failed)
		e.Check(failed.Force(e.Ctx))
		woken("failed again", failed, statemachine.Failed)
		e.Check(done.Run(e.Ctx))
		woken("completed again", done, statemachine.Completed)
		broken := e.child(p, "d", "Life", lives(e.T, parts{shutdown: func(context.Context, *worker.Run, *Do) error { return errBroken }}))
		for name, h := range map[string]*client.Handle{"ended": suspended, "ended after a failure": failed, "ended with a failure": broken} {
			e.Check(h.Terminate(e.Ctx))
			e.is(p, statemachine.Suspended)
			woken(name, h, statemachine.Terminated)
		}
	})
}

// Silent is a Do whose statuses are not published.
type Silent struct{ Do }

// SilentStatus implements job.StatusHider.
func (w *Silent) SilentStatus() bool { return true }

// listen collects what is published on a channel from now on.
func (e *env) listen(channel string) func() []string {
	e.Helper()
	var mu sync.Mutex
	var heard []string
	ctx, cancel := context.WithCancel(e.Ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := e.Client.Listen(ctx, channel, func(m json.RawMessage) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, string(m))
		})
		if err != nil && ctx.Err() == nil {
			e.Error(err)
		}
	}()
	e.Cleanup(func() { cancel(); <-done })
	got := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.DeleteFunc(slices.Clone(heard), func(s string) bool { return s == `"hello"` })
	}
	e.Until("the listener listens", func() bool {
		e.Check(e.Client.Publish(e.Ctx, channel, "hello"))
		mu.Lock()
		defer mu.Unlock()
		return len(heard) > 0
	})
	e.Until("the shards know", func() bool {
		n := 0
		for _, k := range e.keys() {
			if strings.HasSuffix(k, ":watch:outside") {
				n++
			}
		}
		return n == 4
	})
	return got
}

func TestR17StatusPublished(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{}, &Silent{})
		h := e.job("Do", nothing(e.T))
		heard := e.listen(client.StatusChannel(h.ID()))
		said := func(statuses ...statemachine.Status) []string {
			var out []string
			for _, s := range statuses {
				out = append(out, `{"job":"`+string(h.ID())+`","status":"`+string(s)+`"}`)
			}
			return out
		}
		e.Check(h.Run(e.Ctx)) // it is queued already
		e.Check(run(h))
		e.Check(h.Run(e.Ctx))
		e.Check(h.Run(e.Ctx))
		e.Check(run(h))
		e.Check(h.Terminate(e.Ctx))
		e.Check(h.Terminate(e.Ctx))
		e.Check(run(h))
		want := said(statemachine.Running, statemachine.Completed, statemachine.Queued, statemachine.Running,
			statemachine.Completed, statemachine.Terminating, statemachine.Terminated)
		e.Until("all statuses were heard", func() bool { return len(heard()) >= len(want) })
		if got := heard(); !slices.Equal(got, want) {
			e.Errorf("heard\n%q\nwant\n%q", got, want)
		}
		for _, h := range []*client.Handle{
			e.job("Silent", nothing(e.T)), e.Start(job.Single(&Silent{Do{Key: nothing(e.T).Key}}, "")),
		} {
			quiet := e.listen(client.StatusChannel(h.ID()))
			e.Check(run(h))
			e.is(h, statemachine.Completed)
			e.Check(e.Client.Publish(e.Ctx, client.StatusChannel(h.ID()), "end"))
			e.Until("the end is heard", func() bool { return slices.Contains(quiet(), `"end"`) })
			if got := quiet(); len(got) != 1 {
				e.Errorf("a silent job said %q", got)
			}
		}
	})
}
