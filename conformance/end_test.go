package conformance_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
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
		e.Check(run(p))
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
				e.Check(run(h))
			}
			e.is(h, c.before)
			if e.Info(p).Status == statemachine.Queued {
				e.Check(run(p))
			}
			runs := m.runs.Load()
			e.Check(h.Terminate(e.Ctx))
			e.is(h, statemachine.Terminating)
			e.is(p, statemachine.Completed)
			e.Check(run(h))
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
		e.Check(b.begun.Pass(e.Ctx))
		e.Check(h.Terminate(e.Ctx))
		e.is(h, statemachine.Terminating)
		e.Check(h.Terminate(e.Ctx))
		e.reach(e.job("Do", nothing(e.T)), statemachine.Completed)
		e.is(h, statemachine.Terminating)
		b.gate.Open()
		e.reach(h, statemachine.Terminated)
		e.idle()
		if b.runs.Load() != 1 || ends.Load() != 1 || early.Load() != 0 {
			e.Errorf("%d runs, %d times Shutdown, %d too early", b.runs.Load(), ends.Load(), early.Load())
		}
		if got := enginetest.Outs[int](e, h, "out"); !slices.Equal(got, []int{1, 2}) {
			e.Errorf("it wrote %v", got)
		}
	})
}

// over tells whether the run was let go.
func (b *busy) over() bool {
	select {
	case <-b.gate.Opened():
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
		e.Check(h.Terminate(e.Ctx))
		e.reach(h, statemachine.Terminated)
		e.idle()
		before := e.record(h)
		e.Check(h.Terminate(e.Ctx))
		e.idle()
		e.same(h, before)
		e.Check(h.TerminateAll(e.Ctx))
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
			e.Check(h.Terminate(e.Ctx))
			e.Check(run(h))
			e.is(h, statemachine.Terminated)
			e.failedWith(h, text)
		}
	})
}

// family makes a job with a child and a grandchild, which all count their ends.
func (e *env) family(m *mortal) (top, child, grandchild *client.Handle) {
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
		e.Check(top.Terminate(e.Ctx))
		e.reach(top, statemachine.Terminated)
		for _, h := range []*client.Handle{child, grandchild} {
			e.Check(h.Run(e.Ctx))
			e.settled(h, 1)
		}
		if m.ends.Load() != 1 {
			e.Errorf("%d times Shutdown, want 1", m.ends.Load())
		}
		adopted := e.job("Life", lives(e.T, m.parts(nil, nil)))
		e.Check(grandchild.Adopt(e.Ctx, adopted, "other:tree"))
		e.Check(top.TerminateAll(e.Ctx))
		for _, h := range []*client.Handle{child, grandchild, adopted} {
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
			if got, err := top.Ended(e.Ctx); err != nil || got != want {
				e.Fatalf("ended: %v (%v), want %v", got, err, want)
			}
		}
		want(false)
		for _, h := range []*client.Handle{top, child} {
			e.Check(h.Terminate(e.Ctx))
			e.reach(h, statemachine.Terminated)
			want(false)
		}
		e.Check(grandchild.Terminate(e.Ctx))
		e.reach(grandchild, statemachine.Terminated)
		want(true)
	})
}

func TestT7ForceTerminated(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		run := e.runner(&Life{})
		h := e.job("Life", lives(e.T, m.parts(nil, nil)))
		e.Check(run(h))
		e.Check(h.Terminate(e.Ctx))
		e.Check(run(h))
		e.is(h, statemachine.Terminated)
		e.Check(h.Force(e.Ctx))
		e.is(h, statemachine.Queued)
		e.Check(run(h))
		e.is(h, statemachine.Completed)
		e.Check(h.Terminate(e.Ctx))
		e.Check(run(h))
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
		for _, h := range []*client.Handle{top, child} {
			e.settled(h, 1)
		}
		e.idle()
		refuse := func() {
			e.Helper()
			records := []map[string]string{e.record(top), e.record(child), e.record(grandchild)}
			e.unchanged(func() { e.refused(top.Delete(e.Ctx), job.ErrStatus) })
			for i, h := range []*client.Handle{top, child, grandchild} {
				e.same(h, records[i])
			}
		}
		refuse()
		for _, h := range []*client.Handle{top, child} {
			e.Check(h.Terminate(e.Ctx))
			e.reach(h, statemachine.Terminated)
			e.idle()
			refuse()
		}
		e.Check(grandchild.Terminate(e.Ctx))
		e.reach(grandchild, statemachine.Terminated)
		e.Check(top.Delete(e.Ctx))
	})
}

// lasting tells whether a key may be there when all jobs are deleted. For good there are the
// namespace's meta and types with their version and, of each shard that ever sent or got orders, mailed and
// inbox, one counter and one small hash. All others expire: seen, erased, watch:outside, activity, locks, and
// what engines tell of themselves.
func lasting(key string) bool {
	_, name, _ := strings.Cut(key, "}:")
	return strings.HasPrefix(name, "engine:") ||
		slices.Contains([]string{"meta", "types", "types:version", "engines", "sweeper", "adopting", "seen", "erased", "mailed", "inbox", "bells", "watch:outside", "audit", "activity"}, name)
}

func TestT9Delete(t *testing.T) {
	each(t, func(e *env) {
		s := e.serve(&Life{}, &Do{})
		before := slices.DeleteFunc(e.keys(), lasting)
		if len(before) != 0 {
			e.Fatalf("keys of an empty namespace: %q", before)
		}
		p := e.job("Do", nothing(e.T))
		e.Check(p.Write(e.Ctx, "in", 1)) // its tree has a log from now on
		e.settled(p, 1)
		early := e.child(p, "early", "Do", nothing(e.T)) // and counters
		e.settled(early, 1)
		e.ended(early)
		e.Check(early.Delete(e.Ctx))
		e.idle()
		before = slices.DeleteFunc(e.keys(), lasting)

		top := e.loaded(p)
		heard := e.listen(client.StatusChannel(top.ID()))
		e.ended(top)
		during := slices.DeleteFunc(e.keys(), lasting)
		if len(during) < len(before)+10 {
			e.Fatalf("there is too little to delete: %q", during)
		}
		e.Check(top.Delete(e.Ctx))
		e.names(p)
		if _, err := e.Client.Find(e.Ctx, "t9"); err == nil {
			e.Error("the alias is left")
		}
		deleted := `{"job":"` + string(top.ID()) + `","status":"deleted"}`
		e.Until("the end is published", func() bool { return slices.Contains(heard(), deleted) })
		e.idle()
		if after := slices.DeleteFunc(e.keys(), lasting); !slices.Equal(after, before) {
			e.Errorf("keys were\n%q\nare\n%q", before, after)
		}
		e.ended(p)
		e.Check(p.Delete(e.Ctx))
		s.Stop()
		e.Until("nothing is left", func() bool { return len(slices.DeleteFunc(e.keys(), lasting)) == 0 })
		for _, k := range e.keys() {
			_, name, _ := strings.Cut(k, "}:")
			ttl, err := e.Redis.PTTL(e.Ctx, k).Result()
			e.Check(err)
			forever := slices.Contains([]string{"meta", "types", "types:version", "mailed", "inbox", "bells", "audit"}, name)
			if forever != (ttl == -1) {
				e.Errorf("%s expires after %s", k, ttl)
			}
		}
		for _, k := range e.scan("asynq:{weir:" + e.Namespace + ":*") {
			if strings.Contains(k, "}:t:") {
				e.Errorf("asynq still has %s", k)
			}
		}
	})
}

// Each job that goes with the one that is deleted says so, also one that was adopted from another tree.
func TestT9DeleteIsPublishedForAll(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		e.serve(&Life{})
		top, child, grandchild := e.family(&m)
		adopted := e.job("Life", lives(e.T, m.parts(nil, nil)))
		e.Check(child.Adopt(e.Ctx, adopted, "adopted"))
		all := []*client.Handle{top, child, grandchild, adopted}
		var heard []func() []string
		for _, h := range all {
			heard = append(heard, e.listen(client.StatusChannel(h.ID())))
		}
		e.ended(top)
		e.Check(top.Delete(e.Ctx))
		for i, h := range all {
			deleted := `{"job":"` + string(h.ID()) + `","status":"deleted"}`
			e.Until("the end is published", func() bool { return slices.Contains(heard[i](), deleted) })
		}
	})
}

// loaded makes a tree with something of everything that a job can have, under p.
func (e *env) loaded(p *client.Handle) *client.Handle {
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
	e.Check(child.Adopt(e.Ctx, adopted, "adopted"))
	for i, h := range []*client.Handle{top, child, adopted} {
		e.Check(h.AddAlias(e.Ctx, []string{"t9a", "t9b", "t9c"}[i]))
		e.Check(h.SetState(e.Ctx, map[string]any{"k": i}))
		e.Check(h.Write(e.Ctx, "in", 1, 2))
		e.Check(h.WriteOut(e.Ctx, "out", 3))
		if i > 0 { // the first may have failed by now
			e.Check(h.RunAfter(e.Ctx, time.Hour))
		}
	}
	e.Check(top.SetDefault(e.Ctx, port.Input, "preset", 7))
	e.Check(top.WriteOut(e.Ctx, "pub", 1))
	e.Check(e.Client.Publish(e.Ctx, "/t9/a", 1))
	e.Until("it failed", func() bool { return e.Info(top).Status == statemachine.Failed })
	lock, err := child.Lock(e.Ctx, time.Hour, enginetest.Patience)
	e.Check(err)
	e.Check(lock.Release(e.Ctx))
	return top
}

func TestT10WriteToTerminated(t *testing.T) {
	each(t, func(e *env) {
		var m mortal
		e.serve(&Life{}, &Do{})
		h := e.job("Life", lives(e.T, m.parts(nil, nil)))
		e.Check(h.Terminate(e.Ctx))
		e.reach(h, statemachine.Terminated)
		e.idle()
		runs := m.runs.Load()
		e.Check(h.Write(e.Ctx, "in", 1, 2))
		e.idle()
		if i := e.is(h, statemachine.Terminated); i.Ports[0].Waiting != 2 || m.runs.Load() != runs {
			e.Errorf("ports %+v, %d runs more", i.Ports, m.runs.Load()-runs)
		}
		var v int
		ok, err := h.ReadIn(e.Ctx, "in", &v)
		if err != nil || !ok || v != 1 {
			e.Errorf("read %v %v %v", v, ok, err)
		}
	})
}
