package worker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// spawning is a job that spawns children in its first run, and then does something each time.
func spawning(t testing.TB, kids map[string]*Call, then code) *Call {
	return call(t, func(ctx context.Context, run *worker.Run, w *Call) error {
		if run.Info().Steps == 0 {
			for _, name := range slices.Sorted(maps.Keys(kids)) {
				if _, err := run.Spawn(name, job.Single(kids[name], "")); err != nil {
					return err
				}
			}
		}
		return then(ctx, run, w)
	})
}

// giving is a child whose result is a number, once it may pass the gate.
func giving(t testing.TB, n int, g *enginetest.Gate) *Call {
	return call(t, func(ctx context.Context, _ *worker.Run, w *Call) error {
		if err := g.Pass(ctx); err != nil {
			return err
		}
		return w.Out.Write(n)
	})
}

// Results come in any order, and stay: what was awaited once is awaited again by the next run.
func TestAwait(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var gates [2]enginetest.Gate
		h := b.single(spawning(b, map[string]*Call{"a": giving(b, 3, &gates[0]), "b": giving(b, 4, &gates[1])},
			func(_ context.Context, run *worker.Run, w *Call) error {
				x, err := worker.AwaitPort[int](run, "a", "out")
				if err != nil {
					return err
				}
				y, err := worker.AwaitPort[int](run, "b", "out")
				if err != nil {
					return err
				}
				return w.Out.Write(x * y)
			}))
		b.Reach(h, 1, statemachine.Suspended)
		gates[0].Open()
		b.Reach(h, 2, statemachine.Suspended)
		gates[1].Open()
		b.Completed(h, 3)
		b.same(h, 12)
	})
}

func TestAwaitFailure(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		broken := call(b, func(context.Context, *worker.Run, *Call) error { return errors.New("no money") })
		var seen atomic.Pointer[worker.ChildError]
		h := b.single(spawning(b, map[string]*Call{"pay": broken}, func(_ context.Context, run *worker.Run, _ *Call) error {
			_, err := worker.AwaitPort[int](run, "pay", "out")
			var failed *worker.ChildError
			if errors.As(err, &failed) && errors.Is(err, job.ErrFailed) {
				seen.Store(failed)
			}
			return err
		}))
		f := b.Failure(h)
		child := b.child(h, "pay")
		if want := fmt.Sprintf(`child "pay" (job %s) is failed: no money`, child.ID()); f.Error != want {
			b.Errorf("failure %q, want %q", f.Error, want)
		}
		if got := seen.Load(); got == nil || *got != (worker.ChildError{Name: "pay", ID: child.ID(), Status: statemachine.Failed, Reason: "no money"}) {
			b.Errorf("error %+v", got)
		}
	})
}

// What can be awaited of a child, and what not.
func TestAwaitRefuses(t *testing.T) {
	b := onRedis(t)
	b.serve()
	nothing := func() *Call { return call(b, func(context.Context, *worker.Run, *Call) error { return nil }) }
	for name, c := range map[string]struct {
		kid   any
		await func(run *worker.Run) error
		want  string // of the failure; empty: none
	}{
		"no child":   {nothing(), func(run *worker.Run) error { _, err := worker.Await[int](run, "kit"); return err }, `has no child "kit"`},
		"two ports":  {nothing(), func(run *worker.Run) error { _, err := worker.Await[int](run, "kid"); return err }, "has several Out ports, more, out: name one with AwaitPort"},
		"other port": {nothing(), func(run *worker.Run) error { _, err := worker.AwaitPort[int](run, "kid", "ot"); return err }, `has no Out port "ot": did you mean "out"?`},
		"no port":    {&Idle{}, func(run *worker.Run) error { _, err := worker.Await[int](run, "kid"); return err }, "has no Out port, and so no result: await its end as Await[struct{}]"},
		"no result":  {nothing(), func(run *worker.Run) error { _, err := worker.AwaitPort[int](run, "kid", "out"); return err }, `is completed: it wrote nothing to port "out", or somebody has taken it`},
		"its end":    {nothing(), func(run *worker.Run) error { _, err := worker.Await[struct{}](run, "kid"); return err }, ""},
		"other type": {giving(b, 1, opened()), func(run *worker.Run) error { _, err := worker.AwaitPort[string](run, "kid", "out"); return err }, `the result of child "kid": `},
		"the only":   {&Count{To: 1}, func(run *worker.Run) error { _, err := worker.Await[int](run, "kid"); return err }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
				if run.Info().Steps == 0 {
					if _, err := run.Spawn("kid", job.Single(c.kid, "")); err != nil {
						return err
					}
				}
				return c.await(run)
			}))
			if c.want == "" {
				b.Completed(h, 1)
			} else if f := b.Failure(h); !strings.Contains(f.Error, c.want) {
				t.Errorf("failure %q, want %q", f.Error, c.want)
			}
		})
	}
}

// opened is a gate that is open.
func opened() *enginetest.Gate {
	g := &enginetest.Gate{}
	g.Open()
	return g
}

// A job learns which children woke it: all of them, and in a run that is repeated again.
func TestWokenBy(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var mu sync.Mutex
		told, failed := map[string]int{}, false
		kids := map[string]*Call{}
		for i := range 20 {
			kids[fmt.Sprintf("kid%d", i)] = giving(b, i, opened())
		}
		h := b.single(spawningTried(b, kids, func(_ context.Context, run *worker.Run, w *Call) error {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range run.WokenBy() {
				var n int
				if ok, err := c.Read("out", &n); err != nil || !ok || fmt.Sprintf("kid%d", n) != c.Name() {
					return fmt.Errorf("child %s: %d, %w", c.Name(), n, err)
				}
				if !failed {
					failed = true
					return errors.New("once more")
				}
				told[c.Name()]++
				if err := w.Out.Write(n); err != nil {
					return err
				}
			}
			return worker.ErrSuspend
		}))
		b.Until("all children have woken it", func() bool { return len(enginetest.Outs[int](b, h, "out")) == len(kids) })
		b.Reach(h, 2, statemachine.Suspended)
		mu.Lock()
		defer mu.Unlock()
		for name := range kids {
			if told[name] != 1 {
				b.Errorf("told %d times of %s", told[name], name)
			}
		}
	})
}

// What a child did while its parent ran, and the parent has seen, is no reason to run again: what Run writes behind
// Await is written once.
func TestAwaitedWhileRunning(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var running, ended enginetest.Gate
		runs := atomic.Int64{}
		h := b.single(spawning(b, map[string]*Call{"kid": giving(b, 7, &running)}, func(ctx context.Context, run *worker.Run, w *Call) error {
			if run.Info().Steps == 0 {
				return run.WakeAfter(0)
			}
			runs.Add(1)
			running.Open()
			if err := ended.Pass(ctx); err != nil {
				return err
			}
			n, err := worker.AwaitPort[int](run, "kid", "out")
			if err != nil {
				return err
			}
			return w.Out.Write(n)
		}))
		var kid *client.Handle
		b.Until("the child is there", func() bool {
			var err error
			kid, err = h.Child(b.Ctx, "kid")
			return err == nil
		})
		b.Completed(kid, 1)
		ended.Open()
		b.Completed(h, 2)
		b.same(h, 7)
		if n := runs.Load(); n != 1 {
			b.Errorf("%d runs, want 1", n)
		}
	})
}

// spawningTried is spawning with several tries.
func spawningTried(t testing.TB, kids map[string]*Call, then code) *Tried {
	return &Tried{Call: *spawning(t, kids, then)}
}

func TestSpawnOptions(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		other := b.Start(job.Single(&Count{To: 1}, ""), job.Alias("taken"))
		refused := atomic.Pointer[error]{}
		h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			if run.Info().Steps > 0 {
				return nil
			}
			_, taken := run.Spawn("other", counted(1), job.Alias("taken"))
			refused.Store(&taken)
			_, err := run.Spawn("kid", counted(1), job.Alias("pay/1"), job.Label("customer", "7"), job.InQueue("slow"))
			return err
		}))
		b.Completed(h, 1)
		if err := *refused.Load(); !errors.Is(err, job.ErrExists) || !strings.Contains(err.Error(), string(other.ID())) {
			b.Errorf("a taken alias: %v", err)
		}
		b.Until("the child has its alias", func() bool {
			_, err := b.Client.Find(b.Ctx, "pay/1")
			return err == nil
		})
		kid, err := b.Client.Find(b.Ctx, "pay/1")
		b.Check(err)
		info := b.Info(kid)
		if info.Name != "kid" || !maps.Equal(info.Labels, map[string]string{"customer": "7"}) {
			b.Errorf("child %+v", info)
		}
		sum, err := kid.Child(b.Ctx, "sum")
		b.Check(err)
		if info, err := sum.Info(b.Ctx); err != nil || info.Queue != "slow" || info.Labels != nil {
			b.Errorf("job of the child %+v, %v", info, err)
		}
	})
}

// A child has the priority that it was spawned with, and goes when its retention says: so long after its end, or as soon as its
// parent was told of that. Then its name is free again.
func TestSpawnPriorityAndRetention(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var again atomic.Bool
		h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			if again.Load() {
				_, err := run.Spawn("released", counted(1), job.Retain(job.Forever))
				return errors.Join(err, worker.ErrSuspend)
			}
			if run.Info().Steps == 0 {
				for name, opts := range map[string][]job.ChildOption{
					"kept": {job.WithPriority(900), job.Retain(time.Hour)}, "short": {job.Retain(500 * time.Millisecond)}, "released": {job.Release()}, "plain": nil,
				} {
					if _, err := run.Spawn(name, counted(1), opts...); err != nil {
						return err
					}
				}
			}
			return worker.ErrSuspend
		}))
		b.Within(3*enginetest.Patience, "two children are gone", func() bool { // of one whose end its parent has not seen in time, after a minute
			all, err := h.Children(b.Ctx)
			b.Check(err)
			return len(all) == 2 && all["kept"] != nil && all["plain"] != nil
		})
		kid, err := h.Child(b.Ctx, "kept")
		b.Check(err)
		b.Completed(kid, 0)
		info := b.Info(kid)
		if left := time.Until(info.Expires); info.Retain != time.Hour || left > time.Hour || left < 50*time.Minute {
			b.Errorf("child kept for %s, to go in %s", info.Retain, left)
		}
		sum, err := kid.Child(b.Ctx, "sum")
		b.Check(err)
		if info, err := sum.Info(b.Ctx); err != nil || info.Priority == nil || *info.Priority != 900 {
			b.Errorf("a job of the child is %+v, %v", info, err)
		}
		plain, err := h.Child(b.Ctx, "plain")
		b.Check(err)
		if info, err := plain.Info(b.Ctx); err != nil || !info.Expires.IsZero() {
			b.Errorf("a child without retention expires at %s, %v", info.Expires, err)
		}
		again.Store(true)
		b.Check(h.Run(b.Ctx))
		b.Until("the name is taken again", func() bool {
			kid, err := h.Child(b.Ctx, "released")
			if errors.Is(err, job.ErrNotFound) {
				return false
			}
			b.Check(err)
			info, err := kid.Info(b.Ctx)
			return err == nil && info.Retain == job.Forever
		})
	})
}

// Idle has no ports.
type Idle struct{ pure }

// Run implements worker.Worker.
func (*Idle) Run(context.Context, *worker.Run) error { return nil }
