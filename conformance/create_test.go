package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// unchanged fails the test unless fn leaves just the keys that there were before.
func (e *env) unchanged(fn func()) {
	e.Helper()
	keys := func() []string { // but for that to which engines add up what they do, when their turn has come
		return slices.DeleteFunc(e.keys(), func(k string) bool { return strings.HasSuffix(k, "}:activity") })
	}
	before := keys()
	fn()
	if after := keys(); !slices.Equal(after, before) {
		e.Fatalf("keys were\n%q\nare\n%q", before, after)
	}
}

// idle waits until nothing is left to do, now or later: no job is queued, running or
// terminating, no timer is set and no order is on its way. That what has settled is to be removed in some days does not count.
func (e *env) idle() {
	e.Helper()
	e.Until("nothing is due", func() bool {
		return !slices.ContainsFunc(e.keys(), func(k string) bool {
			if !strings.HasSuffix(k, ":due") {
				return false
			}
			due, err := e.Redis.ZRange(e.Ctx, k, 0, -1).Result()
			e.Check(err)
			return slices.ContainsFunc(due, func(m string) bool { return m != "!retain" })
		})
	})
}

func TestC1TypeNotRegistered(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Do{})
		e.unchanged(func() {
			_, err := e.Client.Create(e.Ctx, job.New{Type: "Nobody"})
			e.refused(err, job.ErrUnknownType)
			_, err = e.Client.Create(e.Ctx, job.New{Type: "Do", Queue: "elsewhere", Alias: "me"})
			e.refused(err, job.ErrUnknownType)
			_, err = e.Client.Find(e.Ctx, "me")
			e.refused(err, job.ErrNotFound)
		})
	})
}

func TestC2DeliveredOnce(t *testing.T) {
	each(t, func(e *env) {
		var here, other atomic.Int64
		e.register(&Do{}, &Life{})
		far := e.types(&Do{})
		far[0].Queue = "far"
		e.Check(e.Store.Register(e.Ctx, far))
		count := func(n *atomic.Int64) code {
			return func(context.Context, *worker.Run, *Do) error { n.Add(1); return nil }
		}
		h := e.job("Do", does(e.T, count(&here)))
		elsewhere := e.create(job.New{Type: "Do", Queue: "far", Args: does(e.T, count(&other))})
		if s := e.Info(h).Status; s != statemachine.Queued {
			e.Fatalf("a new job is %s", s)
		}
		e.serve(&Do{}, &Life{})
		e.Serve(func() worker.Config { c := e.Config(&Do{}, &Life{}); c.Store = e.Open(e.URL); return c }())
		info := e.reach(h, statemachine.Completed)
		e.reach(e.job("Do", nothing(e.T)), statemachine.Completed)
		if n := here.Load(); n != 1 || info.Version != 1 || e.Info(h).Version != 1 {
			e.Errorf("%d runs, %d commits", n, e.Info(h).Version)
		}
		if s := e.Info(elsewhere).Status; s != statemachine.Queued || other.Load() != 0 {
			e.Errorf("a job of a queue that nobody serves is %s and ran %d times", s, other.Load())
		}
	})
}

// Raw takes its args as they are.
type Raw struct{ args json.RawMessage }

// rawSeen tells what runs of a Raw saw, by job.
var rawSeen sync.Map

// SetArgs implements worker.ArgsSetter.
func (w *Raw) SetArgs(args json.RawMessage) error { w.args = slices.Clone(args); return nil }

// Run implements worker.Worker.
func (w *Raw) Run(_ context.Context, run *worker.Run) error {
	seen, _ := rawSeen.LoadOrStore(run.ID(), new([]string))
	list := seen.(*[]string)
	*list = append(*list, string(w.args), string(run.Info().Args))
	return nil
}

func TestC3ArgsUnchanged(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Raw{}, &Do{})
		for _, text := range []string{
			`null`, `false`, `0`, `""`, `"text"`, `[]`, `[1,[2,{"a":null}]]`, `{}`,
			`{"big":12345678901234567890123,"small":1e-300,"text":"ü \u0000 😀","list":[true,null,{"x":[]}]}`,
		} {
			h := e.create(job.New{Type: "Raw", Args: json.RawMessage(text)})
			e.settled(h, 1)
			e.Check(h.Run(e.Ctx))
			e.settled(h, 2)
			seen, _ := rawSeen.Load(h.ID())
			if got := *seen.(*[]string); !slices.Equal(got, []string{text, text, text, text}) {
				e.Errorf("args %s arrived as %q", text, got)
			}
			if got := e.Info(h).Args; !bytes.Equal(got, []byte(text)) {
				e.Errorf("args %s are kept as %s", text, got)
			}
		}
		var sum atomic.Int64
		a := does(e.T, func(_ context.Context, _ *worker.Run, w *Do) error { sum.Add(int64(w.N)); return nil })
		a.N = 1 << 40
		h := e.job("Do", a)
		e.settled(h, 1)
		e.Check(h.Run(e.Ctx))
		e.settled(h, 2)
		if sum.Load() != 2<<40 {
			e.Errorf("fields of the worker: %d", sum.Load())
		}
	})
}

func TestC4ParentWithoutName(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Do{})
		p := e.job("Do", nothing(e.T))
		e.unchanged(func() {
			_, err := e.Client.Create(e.Ctx, job.New{Type: "Do", Parent: p.ID()})
			e.refused(err, job.ErrName)
			_, err = e.Client.Create(e.Ctx, job.New{Type: "Do", Name: "a"})
			e.refused(err, job.ErrName)
			_, err = e.Client.Create(e.Ctx, job.New{Type: "Do", Parent: p.ID(), Name: "a b", Alias: "x"})
			e.refused(err, job.ErrName)
		})
		e.names(p)
	})
}

func TestC5NameTaken(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Do{})
		p := e.job("Do", nothing(e.T))
		first := e.child(p, "a", "Do", nothing(e.T))
		e.unchanged(func() {
			_, err := e.Client.Create(e.Ctx, job.New{Type: "Do", Parent: p.ID(), Name: "a", Alias: "second"})
			e.refused(err, job.ErrExists)
		})
		e.names(p, "a")
		c, err := p.Child(e.Ctx, "a")
		e.Check(err)
		if !c.Equal(first) {
			e.Errorf("child a is %s, was %s", c.ID(), first.ID())
		}
	})
}

// names fails the test unless the job has just these children.
func (e *env) names(h *client.Handle, want ...string) {
	e.Helper()
	all, err := h.Children(e.Ctx)
	e.Check(err)
	got := []string{}
	for name := range all {
		got = append(got, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, append([]string{}, want...)) {
		e.Fatalf("children are %q, want %q", got, want)
	}
}

func TestC6CreatedBy(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Do{})
		p := e.job("Do", does(e.T, func(_ context.Context, run *worker.Run, _ *Do) error {
			if _, err := run.Child("c"); err == nil {
				return nil // the child woke its parent
			}
			_, err := run.Spawn("c", job.Single(&Do{Key: nothing(e.T).Key}, ""))
			return err
		}))
		e.settled(p, 1)
		c, err := p.Child(e.Ctx, "c")
		e.Check(err)
		for h, want := range map[*client.Handle]string{
			c: "job:" + string(p.ID()),
			p: "",
			e.create(job.New{Type: "Do", Args: nothing(e.T), By: "user:7 Zoë"}):            "user:7 Zoë",
			e.Start(job.Single(&Do{Key: nothing(e.T).Key}, ""), job.By("cron")):            "cron",
			e.create(job.New{Type: "Do", Args: nothing(e.T), Parent: p.ID(), Name: "out"}): "",
		} {
			if got := e.Info(h).By; got != want {
				e.Errorf("created by %q, want %q", got, want)
			}
		}
	})
}

func TestC7PortsMerged(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Do{})
		given := []port.Spec{
			{Name: "in", Dir: port.Input, Default: json.RawMessage(`7`)},
			{Name: "extra", Dir: port.Input, Default: json.RawMessage(`null`)},
			{Name: "in", Dir: port.Output},
		}
		before := slices.Clone(given)
		h := e.create(job.New{Type: "Do", Args: nothing(e.T), Ports: given})
		info := e.Info(h)
		if len(info.Ports) != 4 {
			e.Errorf("ports %+v", info.Ports)
		}
		for _, want := range append(given, port.Spec{Name: "out", Dir: port.Output}) {
			p, ok := info.Port(want.Dir, want.Name)
			if !ok || !bytes.Equal(p.Default, want.Default) {
				e.Errorf("%s port %q: %v, default %s, want %s", want.Dir, want.Name, ok, p.Default, want.Default)
			}
		}
		for i := range given {
			if given[i].Name != before[i].Name || !bytes.Equal(given[i].Default, before[i].Default) {
				e.Error("the caller's ports were changed")
			}
		}
		// The type itself has not changed.
		if p, _ := e.Info(e.job("Do", nothing(e.T))).Port(port.Input, "in"); p.Default != nil {
			e.Errorf("the type's port got the default %s", p.Default)
		}
		_, err := e.Client.Create(e.Ctx, job.New{Type: "Do", Ports: []port.Spec{{Name: "a b", Dir: port.Input}}})
		e.refused(err, port.ErrName)
	})
}

func TestC8RunTime(t *testing.T) {
	each(t, func(e *env) {
		e.serve(&Do{})
		at := time.Now().Add(700 * time.Millisecond)
		later := e.create(job.New{Type: "Do", Args: nothing(e.T), At: at})
		if i := e.Info(later); i.Status != statemachine.Scheduled && time.Now().Before(at) {
			e.Errorf("a job for later is %s", i.Status)
		}
		past := e.create(job.New{Type: "Do", Args: nothing(e.T), At: time.Now().Add(-time.Hour)})
		e.reach(past, statemachine.Completed)
		if i := e.reach(later, statemachine.Completed); i.Ran.Before(at.Truncate(time.Millisecond)) || i.Version != 1 {
			e.Errorf("it ran at %s, not before %s was asked for; %d runs", i.Ran, at, i.Version)
		}
	})
}

func TestC9IDsNeverRepeat(t *testing.T) {
	each(t, func(e *env) { idsNeverRepeat(e, func() { e.Client = client.New(e.Open(e.URL)) }) })
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
		e := newEnv(t, s.URL())
		idsNeverRepeat(e, func() {
			s.Restart()
			e.Until("Redis is back", func() bool { return e.Redis.Ping(e.Ctx).Err() == nil })
		})
	})
}

func idsNeverRepeat(e *env, restart func()) {
	e.Helper()
	e.serve(&Do{})
	seen := map[job.ID]bool{}
	use := func(h *client.Handle) *client.Handle {
		e.Helper()
		if seen[h.ID()] {
			e.Fatalf("ID %s again", h.ID())
		}
		seen[h.ID()] = true
		return h
	}
	p := use(e.job("Do", nothing(e.T)))
	for round := range 3 {
		for range 3 {
			c := use(e.child(p, "c", "Do", nothing(e.T)))
			e.ended(c)
			e.Check(c.Delete(e.Ctx))
		}
		r := use(e.job("Do", nothing(e.T)))
		use(e.child(r, "c", "Do", nothing(e.T)))
		e.ended(r)
		e.Check(r.Delete(e.Ctx))
		if round == 1 {
			restart()
		}
	}
}

// ended terminates a job and all below it and waits for the end.
func (e *env) ended(h *client.Handle) {
	e.Helper()
	e.Check(h.TerminateAll(e.Ctx))
	e.Until("all are terminated", func() bool {
		ok, err := h.Ended(e.Ctx)
		e.Check(err)
		return ok
	})
}
