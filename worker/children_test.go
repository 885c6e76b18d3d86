package worker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Y1
func TestFibonacci(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		n, answer, jobs := 12, 144, 465
		if strings.HasSuffix(b.Name(), "miniredis") { // its scripts are slow
			n, answer, jobs = 8, 21, 67
		}
		h := b.single(&Fib{N: n})
		b.Completed(h, 1)
		b.same(h, answer)
		b.settled(h, jobs)
	})
}

// settled waits until all jobs of the tree are completed.
func (b *bench) settled(h *client.Handle, jobs int) {
	b.Helper()
	b.Until("all jobs are completed", func() bool {
		infos, err := h.Tree(b.Ctx)
		b.Check(err)
		open := slices.ContainsFunc(infos, func(i *job.Info) bool { return i.Status != statemachine.Completed })
		if len(infos) != jobs {
			b.Errorf("the tree has %d jobs, want %d", len(infos), jobs)
		}
		return !open
	})
}

// Y2
func TestSumFlow(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(&SumFlow{})
		b.Completed(h, 1)
		b.same(h, 11)
		if got := b.Tree(h); !slices.Equal(got, []string{"sum"}) {
			b.Errorf("children = %q", got)
		}
	})
}

// pipeline is a graph to spawn: it doubles numbers and adds them up.
func pipeline() *graph.Graph {
	g := graph.New("pipeline")
	double := graph.Add(g, "double", &Double{}, graph.Instances(2))
	sum := graph.Add(g, "sum", &Sum{})
	graph.Connect(graph.Input[int](g, "numbers"), double.In)
	graph.Connect(double.Out, sum.In)
	graph.Export(g, "total", sum.Total)
	return g
}

// counted is a graph to spawn that needs no input.
func counted(n int) *graph.Graph {
	g := graph.New("counted")
	count := graph.Add(g, "count", &Count{To: n})
	double := graph.Add(g, "double", &Double{}, graph.Instances(2))
	sum := graph.Add(g, "sum", &Sum{})
	graph.Connect(count.Out, double.In)
	graph.Connect(double.Out, sum.In)
	graph.Export(g, "total", sum.Total)
	return g
}

func TestSpawnGraph(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			c, err := run.Child("numbers")
			if errors.Is(err, job.ErrNotFound) {
				if c, err = run.Spawn("numbers", counted(100)); err != nil {
					return err
				}
			}
			var total int
			if ok, err := c.Read("total", &total); err != nil {
				return err
			} else if !ok {
				return worker.ErrSuspend
			}
			return w.Out.Write(total)
		}))
		b.Completed(h, 1)
		b.same(h, 10100)
		want := []string{"count", "double_1", "double_2", "numbers", "sum"}
		if got := b.Tree(h); !slices.Equal(got, want) {
			b.Errorf("tree = %q, want %q", got, want)
		}
		infos, err := h.Tree(b.Ctx)
		b.Check(err)
		if by := "job:" + string(h.ID()); infos[1].By != by || infos[1].Parent != h.ID() {
			b.Errorf("child of %q by %q, want %q", infos[1].Parent, infos[1].By, by)
		}
	})
}

// A message reaches a spawned graph through its own port, in the run that spawns it and
// in later ones.
func TestWriteToSpawnedGraph(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			c, err := run.Child("p")
			if errors.Is(err, job.ErrNotFound) {
				c, err = run.Spawn("p", pipeline())
			}
			if err != nil {
				return err
			}
			return errors.Join(c.Write("numbers", 1), c.Write("numbers", 20))
		}))
		b.Completed(h, 1)
		b.Check(h.Run(b.Ctx))
		b.Completed(h, 2)
		sum := b.child(h, "sum")
		b.Until("the sum of two runs' messages is 84", func() bool {
			s := b.State(sum)
			return s["sum"] == "84" && s["n"] == "4"
		})
	})
}

// child finds a job of the tree by its name.
func (b *bench) child(h *client.Handle, name string) *client.Handle {
	b.Helper()
	infos, err := h.Tree(b.Ctx)
	b.Check(err)
	for _, i := range infos {
		if i.Name == name {
			c, err := b.Client.Find(b.Ctx, string(i.ID))
			b.Check(err)
			return c
		}
	}
	b.Fatalf("no job %q in the tree", name)
	return nil
}

// A name that is taken fails the run, and nothing of the run is kept.
func TestSpawnUnderTakenName(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		for name, planner := range map[string]job.Planner{"worker": job.Single(&Count{To: 1}, ""), "graph": counted(3)} {
			h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
				if run.Info().Steps > 0 && w.In.Len() == 0 {
					return nil // woken by the child
				}
				if _, _, err := w.In.Read(); err != nil {
					return err
				}
				if err := errors.Join(run.State().Set("run", run.Info().Steps), w.Out.Write(int(run.Info().Steps))); err != nil {
					return err
				}
				if run.Info().Steps > 0 {
					if _, err := run.Spawn("new", job.Single(&Count{To: 1}, "")); err != nil {
						return err
					}
				}
				_, err := run.Spawn("taken", planner)
				return err
			}))
			b.Completed(h, 2)
			b.Check(h.Write(b.Ctx, "in", 1))
			f := b.Failure(h)
			if !strings.Contains(f.Error, `"taken"`) || !strings.Contains(f.Error, job.ErrExists.Error()) {
				b.Errorf("%s: failure = %q", name, f.Error)
			}
			b.same(h, 0)
			if got := b.State(h); !maps.Equal(got, map[string]string{"run": "0"}) {
				b.Errorf("%s: state = %v", name, got)
			}
			if n := b.Waiting(h, "in"); n != 1 {
				b.Errorf("%s: %d messages wait, want 1", name, n)
			}
			if got := b.Tree(h); slices.Contains(got, "new") {
				b.Errorf("%s: tree = %q", name, got)
			}
		}
	})
}

func TestSpawnRefuses(t *testing.T) {
	b := onRedis(t)
	b.serve()
	bad := graph.New("bad")
	graph.Add(bad, "no name!", &Count{})
	for name, c := range map[string]struct {
		spawn func(run *worker.Run) error
		want  string
	}{
		"twice": {func(run *worker.Run) error {
			_, err1 := run.Spawn("x", job.Single(&Count{}, ""))
			_, err2 := run.Spawn("x", job.Single(&Count{}, ""))
			return errors.Join(err1, err2)
		}, job.ErrExists.Error()},
		"name": {func(run *worker.Run) error {
			_, err := run.Spawn("a b", job.Single(&Count{}, ""))
			return err
		}, job.ErrName.Error()},
		"queue": {func(run *worker.Run) error {
			_, err := run.Spawn("x", job.Single(&Count{}, "a b"))
			return err
		}, job.ErrName.Error()},
		"graph": {func(run *worker.Run) error {
			_, err := run.Spawn("x", bad)
			return err
		}, "no name!"},
		"worker": {func(run *worker.Run) error {
			_, err := run.Spawn("x", job.Single(7, ""))
			return err
		}, job.ErrName.Error()},
		"later error": {func(run *worker.Run) error {
			_, err := run.Spawn("x", job.Single(&Count{}, ""))
			return errors.Join(err, errors.New("changed my mind"))
		}, "changed my mind"},
	} {
		h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error { return c.spawn(run) }))
		if f := b.Failure(h); !strings.Contains(f.Error, c.want) {
			b.Errorf("%s: failure = %q, want %q", name, f.Error, c.want)
		}
		if got := b.Tree(h); len(got) != 0 {
			b.Errorf("%s: children %q are there after a failed run", name, got)
		}
	}
}

func TestChild(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			c, err := run.Child("child")
			if errors.Is(err, job.ErrNotFound) {
				if c, err = run.Spawn("child", job.Single(&Double{}, "")); err != nil {
					return err
				}
				var v int
				if ok, err := c.Read("out", &v); ok || err != nil { // it has not run yet
					return fmt.Errorf("Read of a new child = %t, %w", ok, err)
				}
				if err := c.Write("inn", 1); !errors.Is(err, job.ErrPort) {
					return fmt.Errorf("Write to a port that is not there: %w", err)
				}
				if err := c.Write("in", 1); err != nil {
					return err
				}
				return errors.Join(c.Write("in", 2), run.State().Set("id", c.ID()))
			}
			if err != nil {
				return err
			}
			info, err := c.Info()
			if err != nil || info.Parent != run.ID() || info.Name != "child" {
				return fmt.Errorf("info of the child: %+v, %w", info, err)
			}
			for {
				var v int
				if ok, err := c.Read("out", &v); err != nil {
					return err
				} else if !ok {
					return nil
				}
				if err := w.Out.Write(v); err != nil {
					return err
				}
			}
		}))
		b.Until("the child's answers are passed on", func() bool { return len(enginetest.Outs[int](b, h, "out")) >= 2 })
		b.Completed(h, 2)
		b.same(h, 2, 4)
		c := b.child(h, "child")
		if got := b.State(h)["id"]; got != `"`+string(c.ID())+`"` {
			b.Errorf("ID of the child = %s, want %s", got, c.ID())
		}
		b.same(c) // what the parent read is gone
	})
}

// A child may have written more than one round trip brings.
func TestChildWithManyMessages(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		const n = 3500
		h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			c, err := run.Child("child")
			if errors.Is(err, job.ErrNotFound) {
				if _, err := run.Spawn("child", job.Single(&Count{To: n}, "")); err != nil {
					return err
				}
				return worker.ErrSuspend
			}
			if err != nil {
				return err
			}
			for want := 1; ; want++ {
				var v int
				ok, err := c.Read("out", &v)
				if err != nil {
					return err
				}
				if !ok {
					return run.State().Set("read", want-1)
				}
				if v != want {
					return fmt.Errorf("message %d = %d", want, v)
				}
			}
		}))
		b.Completed(h, 2)
		if got := b.State(h)["read"]; got != "3500" {
			b.Errorf("read %s messages, want %d", got, n)
		}
		b.same(b.child(h, "child"))
	})
}

// R16: a parent is woken after every run of a child, also of one that says nothing.
func TestParentWakesAfterChild(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		for want, child := range map[statemachine.Status]code{
			statemachine.Failed:    func(context.Context, *worker.Run, *Call) error { return errors.New("bad luck") },
			statemachine.Completed: func(context.Context, *worker.Run, *Call) error { return nil },
		} {
			w := call(b, child)
			h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
				c, err := run.Child("child")
				if errors.Is(err, job.ErrNotFound) {
					if _, err := run.Spawn("child", job.Single(w, "")); err != nil {
						return err
					}
					return worker.ErrSuspend
				}
				if err != nil {
					return err
				}
				info, err := c.Info()
				if err != nil {
					return err
				}
				if info.Status != want {
					return worker.ErrSuspend
				}
				return run.State().Set("child", info.Status)
			}))
			b.Completed(h, 2)
			if got := b.State(h)["child"]; got != `"`+string(want)+`"` {
				b.Errorf("child = %s", got)
			}
		}
	})
}

// A wrong port of a child that is there already is known to the commit only.
func TestWriteToWrongPortOfChild(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			c, err := run.Child("child")
			if errors.Is(err, job.ErrNotFound) {
				_, err := run.Spawn("child", job.Single(&Summing{}, ""))
				return err
			}
			if err != nil {
				return err
			}
			if w.In.Len() == 0 {
				return nil
			}
			_, _, err = w.In.Read()
			return errors.Join(err, w.Out.Write(1), run.State().Set("x", 1), c.Write("inn", 1))
		}))
		b.Completed(h, 1)
		b.Check(h.Write(b.Ctx, "in", 1))
		if f := b.Failure(h); !strings.Contains(f.Error, "port") {
			b.Errorf("failure = %q", f.Error)
		}
		b.same(h)
		if n := b.Waiting(h, "in"); n != 1 || len(b.State(h)) != 0 {
			b.Errorf("%d messages wait, state %v; want 1 and none", n, b.State(h))
		}
	})
}
