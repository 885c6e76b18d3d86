package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// A job whose type nobody knows waits, and nobody touches it, and runs as soon as somebody does.
func TestUnknownType(t *testing.T) {
	each(t, func(b *bench) {
		first := b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Count{}} })
		h := b.single(&Double{})
		b.Check(h.Write(b.Ctx, "in", 1))
		b.Completed(b.single(&Count{To: 1}), 1)
		info := b.Info(h)
		if info.Status != statemachine.Queued || info.Version != 0 || b.queue(job.DefaultQueue).Pending != 1 {
			b.Errorf("the job of nobody's type is %s after %d commits", info.Status, info.Version)
		}
		first.Stop()
		b.serve()
		info = b.Completed(h, 1)
		b.same(h, 2)
		if info.Steps != 1 || info.Tries != 0 || info.Reason != "" {
			b.Errorf("%d steps, %d tries, reason %q; want 1, 0 and none", info.Steps, info.Tries, info.Reason)
		}
	})
}

// Nobody spins on a job that is to end but cannot run here.
func TestTerminateUnknownType(t *testing.T) {
	b := onRedis(t)
	first := b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Count{}} })
	h := b.single(&Ending{Call: *call(b, copyAll), End: keep(b, func(_ context.Context, run *worker.Run, _ *Call) error {
		return run.State().Set("ended", true)
	})})
	b.Check(h.Terminate(b.Ctx))
	for range 20 { // the next jobs are served meanwhile
		b.Completed(b.single(&Count{To: 1}), 1)
		time.Sleep(20 * time.Millisecond)
	}
	info := b.Info(h)
	if info.Version > 5 {
		b.Errorf("the job was taken and handed back %d times", info.Version)
	}
	first.Stop()
	b.serve()
	b.Reach(h, 0, statemachine.Terminated)
	if got := b.State(h)["ended"]; got != "true" {
		b.Errorf("ended = %q", got)
	}
}

// If nobody who could run its Shutdown comes, a job ends anyway.
func TestTerminateTypeThatIsNoMore(t *testing.T) {
	b := onRedis(t)
	b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Count{}} })
	h := b.single(&Double{})
	b.Check(h.Write(b.Ctx, "in", 1))
	b.Check(h.Terminate(b.Ctx))
	b.Reach(h, 0, statemachine.Terminated)
	info := b.Info(h)
	if p, _ := info.Port(port.Input, "in"); p.Waiting != 1 || !strings.Contains(info.Reason, "without Shutdown") {
		b.Errorf("%d messages left, reason %q", p.Waiting, info.Reason)
	}
}

// planned changes the plan of one job.
type planned struct {
	w      any
	change func(*job.Node)
}

func (p planned) Plan() (*job.Plan, error) {
	plan, err := job.Single(p.w, "").Plan()
	if err == nil {
		p.change(&plan.Nodes[0])
	}
	return plan, err
}

// Arguments that no engine can decode fail nothing: another program may, or the job gets others.
func TestArgumentsThatDoNotFit(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		for args, want := range map[string]string{
			`{"To":"many"}`:    "Count",
			`{"To":1,"Tu":2}`:  `"Tu"`,
			`[1]`:              "Count",
			`{"To":1e99}`:      "Count",
			`{"To":1}trailing`: "",
		} {
			h := b.Start(planned{&Count{}, func(n *job.Node) { n.Args = json.RawMessage(args) }})
			b.Until("it says why it waits", func() bool {
				info := b.Info(h)
				return info.Status == statemachine.Queued && info.Reason != "" && strings.Contains(info.Reason, want)
			})
			b.same(h)
			if err := h.Retry(b.Ctx); !errors.Is(err, job.ErrStatus) {
				b.Errorf("a retry with the same args: %v", err)
			}
			if err := h.Retry(b.Ctx, client.RetryArgs(json.RawMessage(`{"To":2}`)), client.RetryAfter(time.Hour)); !errors.Is(err, job.ErrStatus) {
				b.Errorf("a retry later: %v", err)
			}
			b.Check(h.Retry(b.Ctx, client.RetryArgs(json.RawMessage(`{"To":2}`))))
			if info := b.Completed(h, 0); info.Reason != "" || string(info.Args) != `{"To":2}` {
				b.Errorf("reason %q, args %s", info.Reason, info.Args)
			}
			b.same(h, 1, 2)
		}
	})
}

// Grumpy panics when it gets its arguments.
type Grumpy struct{ Mood Mood }

// Mood is an argument.
type Mood struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*Mood) UnmarshalJSON([]byte) error { panic("bad mood") }

// Run implements worker.Worker.
func (*Grumpy) Run(context.Context, *worker.Run) error { return nil }

func TestArgumentsPanic(t *testing.T) {
	b := onRedis(t)
	b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Grumpy{}} })
	if f := b.Failure(b.single(&Grumpy{})); !strings.Contains(f.Error, "bad mood") || f.Stack == "" {
		b.Errorf("failure = %q, stack %q", f.Error, f.Stack)
	}
}

// younger is a job of Call's type, made by a program whose Call had no ports.
func younger(w *Call) job.Planner {
	return planned{w, func(n *job.Node) { n.Ports = nil }}
}

func TestJobWithFewerPorts(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.Start(younger(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if ok || err != nil || w.In.Len() != 0 || w.In.Done() {
				return fmt.Errorf("Read = %d, %t, %w", v, ok, err)
			}
			size, ok, err := w.Size.Read()
			if !ok || err != nil || size != 640 {
				return fmt.Errorf("Read of a port with a default = %d, %t, %w", size, ok, err)
			}
			if err := w.Out.Close(); err != nil {
				return err
			}
			return run.State().Set("ran", true)
		})))
		b.Completed(h, 1)
		if got := b.State(h); !maps.Equal(got, map[string]string{"ran": "true"}) {
			b.Errorf("state = %v", got)
		}
	})
}

// A job that lacks a port which its run writes to fails at once: more tries would only repeat what the run did before. Its error says
// what to do, and that helps.
func TestJobWithoutOutPort(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var runs atomic.Int64
		w := &Tried{*call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			n, info := runs.Add(1), run.Info()
			if _, has := info.Port(port.Output, "out"); has != (n > 1) { // as docs/deploys.md says
				b.Errorf("run %d has the port: %t", n, has)
			}
			return w.Out.Write(1)
		})}
		var ports []port.Spec
		h := b.Start(planned{w, func(n *job.Node) {
			for _, p := range n.Ports {
				ports = append(ports, p.Spec)
			}
			n.Ports = nil
		}})
		want := fmt.Sprintf(`writing to port "out": job %s was created without this port, by another version of its type: patch its graph (Handle.Patch)`, h.ID())
		if f := b.Failure(h); !strings.HasPrefix(f.Error, want) || runs.Load() != 1 {
			b.Errorf("failure = %q after %d runs", f.Error, runs.Load())
		}
		b.Check(h.SetPorts(b.Ctx, ports))
		b.Check(h.Retry(b.Ctx))
		b.Completed(h, 1)
		b.same(h, 1)
	})
}

// A graph fails with a job of it, tells which, and goes on when that is retried.
func TestFailureInGraph(t *testing.T) {
	each(t, func(b *bench) {
		var ready atomic.Bool
		b.serve()
		g := graph.New("flow")
		count := graph.Add(g, "count", &Count{To: 10})
		middle := graph.Add(g, "middle", call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			if !ready.Load() && w.In.Len() > 0 {
				return errors.New("not ready")
			}
			return copyAll(ctx, run, w)
		}))
		sum := graph.Add(g, "sum", &Sum{})
		graph.Connect(count.Out, middle.In)
		graph.Connect(middle.Out, sum.In)
		graph.Export(g, "out", sum.Total)
		h := b.Start(g)
		_, err := h.Wait(b.Ctx)
		var failed *client.FailedError
		if !errors.As(err, &failed) || failed.Path != "flow/middle" || failed.Reason != "not ready" {
			b.Errorf("Wait = %v", err)
		}
		ready.Store(true)
		if n, err := h.RetryFailed(b.Ctx); n != 1 || err != nil {
			b.Errorf("RetryFailed = %d, %v", n, err)
		}
		b.Until("the graph is completed", func() bool {
			info := b.Info(h)
			return info.Status == statemachine.Completed
		})
		b.same(h, 55)
	})
}

// A port that a newer version of a worker does not have any more keeps its messages, and the
// job says so; the older version, or one that has the port again, reads them.
func TestJobWithMorePorts(t *testing.T) {
	each(t, func(b *bench) {
		stop := b.serve()
		h := b.Start(planned{&Double{}, func(n *job.Node) {
			n.Ports = append(n.Ports, job.Port{Spec: port.Spec{Name: "former", Dir: port.Input}})
		}})
		b.Check(h.Write(b.Ctx, "former", 1, 2))
		b.Check(h.Write(b.Ctx, "in", 3))
		var info *job.Info
		b.Until("the job names the port", func() bool {
			info = b.Info(h)
			return info.Status.Settled() && strings.Contains(info.Reason, `"former"`)
		})
		if p, _ := info.Port(port.Input, "former"); p.Waiting != 2 {
			b.Errorf("%d messages wait, want 2", p.Waiting)
		}
		stop.Stop()
	})
}

// If another job feeds such a port, the job is not completed without it.
func TestWiredJobWithMorePorts(t *testing.T) {
	b := onRedis(t)
	b.serve()
	h := b.Start(planned{&Double{}, func(n *job.Node) {
		n.Ports = append(n.Ports, job.Port{Spec: port.Spec{Name: "former", Dir: port.Input}, Sources: 1})
	}})
	b.Check(h.Write(b.Ctx, "former", 1))
	b.Until("the job names the port", func() bool {
		info := b.Info(h)
		return info.Status == statemachine.Suspended && strings.Contains(info.Reason, `"former"`)
	})
}

// An engine that hears a notification for types that it lacks passes it on to one that has them, in this process or in another
// one: jobs get done without a sweeper.
func TestEngineWithoutTheTypePassesItOn(t *testing.T) {
	each(t, func(b *bench) {
		idle, other := b.Open(b.URL), b.Open(b.URL)
		for range 2 {
			b.serve(func(c *worker.Config) { c.Workers, c.Store = []worker.Worker{&Count{}}, unswept{idle} })
		}
		b.serve(func(c *worker.Config) { c.Store = unswept{other} })
		const n = 40
		var all []*client.Handle
		for i := range n {
			h := b.single(&Double{})
			b.Check(h.Write(b.Ctx, "in", i))
			if i%2 == 0 { // else they come together
				b.Completed(h, 1)
			}
			all = append(all, h)
		}
		for i, h := range all {
			b.Completed(h, 1)
			b.same(h, 2*i)
		}
	})
}

// An engine that starts finds what was ready before, though an engine without the types has heard its notification by then: it
// waits for no sweeper.
func TestEngineThatStartsCatchesUp(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) { c.Workers, c.Store = []worker.Worker{&Count{}}, unswept{b.Open(b.URL)} })
		var all []*client.Handle
		for i := range 5 {
			h := b.single(&Double{})
			b.Check(h.Write(b.Ctx, "in", i))
			all = append(all, h)
		}
		b.Completed(b.single(&Count{To: 1}), 1)
		b.serve(func(c *worker.Config) { c.Store = unswept{b.Open(b.URL)} })
		for i, h := range all {
			b.Completed(h, 1)
			b.same(h, 2*i)
		}
	})
}
