package conformance_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// mortal is a Life that counts its runs and its ends.
type mortal struct{ runs, ends atomic.Int64 }

func (m *mortal) parts(run, shutdown error) parts {
	return parts{
		run:      func(context.Context, *worker.Run, *Do) error { m.runs.Add(1); return run },
		shutdown: func(context.Context, *worker.Run, *Do) error { m.ends.Add(1); return shutdown },
	}
}

func TestT1Terminate(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{}, &Life{})
		p := e.job("Do", nothing(e.T))
		e.check(run(p))
		for name, c := range map[string]struct {
			end    error
			before statemachine.Status
		}{
			"queued":    {nil, statemachine.Queued},
			"suspended": {worker.ErrSuspend, statemachine.Suspended},
			"completed": {nil, statemachine.Completed},
			"failed":    {errBroken, statemachine.Failed},
		} {
			var m mortal
			h := e.child(p, name, "Life", lives(e.T, m.parts(c.end, nil)))
			if c.before != statemachine.Queued {
				e.check(run(h))
			}
			e.is(h, c.before)
			if e.info(p).Status == statemachine.Queued {
				e.check(run(p))
			}
			runs := m.runs.Load()
			e.check(h.Terminate(e.ctx))
			e.is(h, statemachine.Terminating)
			e.is(p, statemachine.Completed)
			e.check(run(h))
			e.is(h, statemachine.Terminated)
			e.is(p, statemachine.Queued)
			e.refused(run(h), job.ErrStatus)
			if m.ends.Load() != 1 || m.runs.Load() != runs {
				e.Errorf("%s: %d times Shutdown, %d runs more", name, m.ends.Load(), m.runs.Load()-runs)
			}
		}
	})
}

func TestT2TerminateRunning(t *testing.T) {
	each(t, func(e *env) {
		var b busy
		var ends, early atomic.Int64
		e.serve(&Do{}, &Life{})
		h := e.job("Life", lives(e.T, parts{
			run: func(ctx context.Context, run *worker.Run, w *Do) error {
				if err := b.code(nil)(ctx, run, w); err != nil {
					return err
				}
				return w.Out.Write(1)
			},
			shutdown: func(_ context.Context, _ *worker.Run, w *Do) error {
				if ends.Add(1); !b.over() {
					early.Add(1)
				}
				return w.Out.Write(2)
			},
		}))
		e.check(b.begun.pass(e.ctx))
		e.check(h.Terminate(e.ctx))
		e.is(h, statemachine.Terminating)
		e.check(h.Terminate(e.ctx))
		e.reach(e.job("Do", nothing(e.T)), statemachine.Completed)
		e.is(h, statemachine.Terminating)
		b.gate.open()
		e.reach(h, statemachine.Terminated)
		e.idle()
		if b.runs.Load() != 1 || ends.Load() != 1 || early.Load() != 0 {
			e.Errorf("%d runs, %d times Shutdown, %d too early", b.runs.Load(), ends.Load(), early.Load())
		}
		if got := outs[int](e, h, "out"); !slices.Equal(got, []int{1, 2}) {
			e.Errorf("it wrote %v", got)
		}
	})
}

// over tells whether the run was let go.
func (b *busy) over() bool {
	select {
	case <-b.gate.opened():
		return true
	default:
		return false
	}
}

func TestT3TerminateTerminated(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		e.serve(&Do{}, &Life{})
		h := e.job("Life", lives(e.T, m.parts(nil, nil)))
		e.check(h.Terminate(e.ctx))
		e.reach(h, statemachine.Terminated)
		e.idle()
		before := e.record(h)
		e.check(h.Terminate(e.ctx))
		e.idle()
		e.same(h, before)
		e.check(h.TerminateAll(e.ctx))
		e.idle()
		e.is(h, statemachine.Terminated)
		if m.ends.Load() != 1 {
			e.Errorf("%d times Shutdown", m.ends.Load())
		}
	})
}

func TestT4ShutdownFails(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Life{})
		for text, end := range map[string]code{
			"broken on purpose": func(context.Context, *worker.Run, *Do) error { return errBroken },
			"panic: in the end": func(context.Context, *worker.Run, *Do) error { panic("in the end") },
		} {
			h := e.job("Life", lives(e.T, parts{shutdown: end}))
			e.check(h.Terminate(e.ctx))
			e.check(run(h))
			e.is(h, statemachine.Terminated)
			e.failedWith(h, text)
		}
	})
}

// family makes a job with a child and a grandchild, which all count their ends.
func (e *env) family(m *mortal) (top, child, grandchild *job.Handle) {
	e.Helper()
	top = e.job("Life", lives(e.T, m.parts(nil, nil)))
	child = e.child(top, "c", "Life", lives(e.T, m.parts(nil, nil)))
	grandchild = e.child(child, "g", "Life", lives(e.T, m.parts(nil, nil)))
	return top, child, grandchild
}

func TestT5Recursive(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		e.serve(&Life{}, &Do{})
		top, child, grandchild := e.family(&m)
		e.check(top.Terminate(e.ctx))
		e.reach(top, statemachine.Terminated)
		for _, h := range []*job.Handle{child, grandchild} {
			e.check(h.Run(e.ctx))
			e.settled(h, 1)
		}
		if m.ends.Load() != 1 {
			e.Errorf("%d times Shutdown, want 1", m.ends.Load())
		}
		adopted := e.job("Life", lives(e.T, m.parts(nil, nil)))
		e.check(grandchild.Adopt(e.ctx, adopted, "other:tree"))
		e.check(top.TerminateAll(e.ctx))
		for _, h := range []*job.Handle{child, grandchild, adopted} {
			e.reach(h, statemachine.Terminated)
		}
		e.idle()
		if m.ends.Load() != 4 {
			e.Errorf("%d times Shutdown, want 4", m.ends.Load())
		}
	})
}

func TestT6Ended(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		e.serve(&Life{}, &Do{})
		top, child, grandchild := e.family(&m)
		want := func(want bool) {
			e.Helper()
			if got, err := top.Ended(e.ctx); err != nil || got != want {
				e.Fatalf("ended: %v (%v), want %v", got, err, want)
			}
		}
		want(false)
		for _, h := range []*job.Handle{top, child} {
			e.check(h.Terminate(e.ctx))
			e.reach(h, statemachine.Terminated)
			want(false)
		}
		e.check(grandchild.Terminate(e.ctx))
		e.reach(grandchild, statemachine.Terminated)
		want(true)
	})
}

func TestT7ForceTerminated(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		run := e.runner(&Life{})
		h := e.job("Life", lives(e.T, m.parts(nil, nil)))
		e.check(run(h))
		e.check(h.Terminate(e.ctx))
		e.check(run(h))
		e.is(h, statemachine.Terminated)
		e.check(h.Force(e.ctx))
		e.is(h, statemachine.Queued)
		e.check(run(h))
		e.is(h, statemachine.Completed)
		e.check(h.Terminate(e.ctx))
		e.check(run(h))
		e.is(h, statemachine.Terminated)
		if m.runs.Load() != 2 || m.ends.Load() != 2 {
			e.Errorf("%d runs, %d times Shutdown", m.runs.Load(), m.ends.Load())
		}
	})
}

func TestT8DeleteTooEarly(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		e.serve(&Life{}, &Do{})
		top, child, grandchild := e.family(&m)
		e.settled(grandchild, 1)
		for _, h := range []*job.Handle{top, child} {
			e.settled(h, 1)
		}
		e.idle()
		refuse := func() {
			e.Helper()
			records := []map[string]string{e.record(top), e.record(child), e.record(grandchild)}
			e.unchanged(func() { e.refused(top.Delete(e.ctx), job.ErrStatus) })
			for i, h := range []*job.Handle{top, child, grandchild} {
				e.same(h, records[i])
			}
		}
		refuse()
		for _, h := range []*job.Handle{top, child} {
			e.check(h.Terminate(e.ctx))
			e.reach(h, statemachine.Terminated)
			e.idle()
			refuse()
		}
		e.check(grandchild.Terminate(e.ctx))
		e.reach(grandchild, statemachine.Terminated)
		e.check(top.Delete(e.ctx))
	})
}

// lasting tells whether a key may be there when all jobs are deleted. For good there are the
// namespace's meta and types and, of each shard that ever sent or got orders, mailed and
// inbox, one counter and one small hash. All others expire: seen, erased, watch:outside, activity, locks, and
// what engines tell of themselves.
func lasting(key string) bool {
	_, name, _ := strings.Cut(key, "}:")
	return strings.HasPrefix(name, "engine:") ||
		slices.Contains([]string{"meta", "types", "engines", "sweeper", "adopting", "seen", "erased", "mailed", "inbox", "bells", "watch:outside", "audit", "activity"}, name)
}

func TestT9Delete(t *testing.T) {
	each(t, func(e *env) {
		s := e.serve(&Life{}, &Do{})
		before := slices.DeleteFunc(e.keys(), lasting)
		if len(before) != 0 {
			e.Fatalf("keys of an empty namespace: %q", before)
		}
		p := e.job("Do", nothing(e.T))
		e.check(p.Write(e.ctx, "in", 1)) // its tree has a log from now on
		e.settled(p, 1)
		early := e.child(p, "early", "Do", nothing(e.T)) // and counters
		e.settled(early, 1)
		e.ended(early)
		e.check(early.Delete(e.ctx))
		e.idle()
		before = slices.DeleteFunc(e.keys(), lasting)

		top := e.loaded(p)
		heard := e.listen(job.StatusChannel(top.ID()))
		e.ended(top)
		during := slices.DeleteFunc(e.keys(), lasting)
		if len(during) < len(before)+10 {
			e.Fatalf("there is too little to delete: %q", during)
		}
		e.check(top.Delete(e.ctx))
		e.names(p)
		if _, err := e.client.Find(e.ctx, "t9"); err == nil {
			e.Error("the alias is left")
		}
		deleted := `{"job":"` + string(top.ID()) + `","status":"deleted"}`
		e.until("the end is published", func() bool { return slices.Contains(heard(), deleted) })
		e.idle()
		if after := slices.DeleteFunc(e.keys(), lasting); !slices.Equal(after, before) {
			e.Errorf("keys were\n%q\nare\n%q", before, after)
		}
		e.ended(p)
		e.check(p.Delete(e.ctx))
		s.stop()
		e.until("nothing is left", func() bool { return len(slices.DeleteFunc(e.keys(), lasting)) == 0 })
		for _, k := range e.keys() {
			_, name, _ := strings.Cut(k, "}:")
			ttl, err := e.rdb.PTTL(e.ctx, k).Result()
			e.check(err)
			forever := slices.Contains([]string{"meta", "types", "mailed", "inbox", "bells", "audit"}, name)
			if forever != (ttl == -1) {
				e.Errorf("%s expires after %s", k, ttl)
			}
		}
		for _, k := range e.scan("asynq:{weir:" + e.namespace + ":*") {
			if strings.Contains(k, "}:t:") {
				e.Errorf("asynq still has %s", k)
			}
		}
	})
}

// loaded makes a tree with something of everything that a job can have, under p.
func (e *env) loaded(p *job.Handle) *job.Handle {
	e.Helper()
	spawned := nothing(e.T).Key
	spec := []port.Spec{
		{Name: "sub", Dir: port.Input, Channels: []string{"/t9/a", "/weir"}},
		{Name: "pub", Dir: port.Output, Channels: []string{"/t9/b"}},
		{Name: "preset", Dir: port.Input},
	}
	top := e.create(job.New{Type: "Life", Args: lives(e.T, parts{run: func(_ context.Context, run *worker.Run, _ *Do) error {
		if _, err := run.Child("spawned"); err == nil {
			return errBroken // which its record keeps
		}
		_, err := run.Spawn("spawned", job.Single(&Do{Key: spawned}, ""))
		return err
	}}), Ports: spec, Alias: "t9", Parent: p.ID(), Name: "top"})
	child := e.child(top, "c", "Do", nothing(e.T))
	adopted := e.job("Do", nothing(e.T))
	e.check(child.Adopt(e.ctx, adopted, "adopted"))
	for i, h := range []*job.Handle{top, child, adopted} {
		e.check(h.AddAlias(e.ctx, []string{"t9a", "t9b", "t9c"}[i]))
		e.check(h.SetState(e.ctx, map[string]any{"k": i}))
		e.check(h.Write(e.ctx, "in", 1, 2))
		e.check(h.WriteOut(e.ctx, "out", 3))
		if i > 0 { // the first may have failed by now
			e.check(h.RunAfter(e.ctx, time.Hour))
		}
	}
	e.check(top.SetDefault(e.ctx, port.Input, "preset", 7))
	e.check(top.WriteOut(e.ctx, "pub", 1))
	e.check(e.client.Publish(e.ctx, "/t9/a", 1))
	e.until("it failed", func() bool { return e.info(top).Status == statemachine.Failed })
	lock, err := child.Lock(e.ctx, time.Hour, patience)
	e.check(err)
	e.check(lock.Release(e.ctx))
	return top
}

func TestT10WriteToTerminated(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		e.serve(&Life{}, &Do{})
		h := e.job("Life", lives(e.T, m.parts(nil, nil)))
		e.check(h.Terminate(e.ctx))
		e.reach(h, statemachine.Terminated)
		e.idle()
		runs := m.runs.Load()
		e.check(h.Write(e.ctx, "in", 1, 2))
		e.idle()
		if i := e.is(h, statemachine.Terminated); i.Ports[0].Waiting != 2 || m.runs.Load() != runs {
			e.Errorf("ports %+v, %d runs more", i.Ports, m.runs.Load()-runs)
		}
		var v int
		ok, err := h.ReadIn(e.ctx, "in", &v)
		if err != nil || !ok || v != 1 {
			e.Errorf("read %v %v %v", v, ok, err)
		}
	})
}
