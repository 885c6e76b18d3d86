package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Picky is a worker that need not read all that comes, and whose code a test gives.
type Picky struct {
	Key  string
	In   port.In[int]
	Go   port.In[int] `port:"go,default=0"`
	Out  port.Out[int]
	code *sync.Map // by key
}

// Run implements worker.Worker.
func (w *Picky) Run(_ context.Context, run *worker.Run) error {
	fn, _ := w.code.Load(w.Key)
	return fn.(func(*worker.Run, *Picky) error)(run, w)
}

// all passes on what waits in port in.
func (w *Picky) all() error {
	for n, err := range w.In.All() {
		if err = errors.Join(err, w.Out.Write(n)); err != nil {
			return err
		}
	}
	return nil
}

// picky starts a graph that gives a Picky three messages, and then ends port in; with more, port go is an input
// of the graph.
func (b *bench) picky(more bool, code func(*worker.Run, *Picky) error) (tree, node *client.Handle) {
	b.Helper()
	var codes sync.Map
	codes.Store("it", code)
	b.serve(func(c *worker.Config) { c.Workers = append(c.Workers, &Picky{code: &codes}) })
	g := graph.New("g")
	numbers, picky := graph.Add(g, "numbers", &Count{To: 3}), graph.Add(g, "picky", &Picky{Key: "it"})
	graph.Connect(numbers.Out, picky.In)
	if more {
		graph.Connect(graph.Input[int](g, "go"), picky.Go)
	}
	graph.Export(g, "out", picky.Out)
	tree = b.Start(g)
	infos, err := tree.Tree(b.Ctx)
	b.Check(err)
	for _, i := range infos {
		if i.Name == "picky" {
			node = b.Client.At(i.ID)
		}
	}
	return tree, node
}

// TestUnreadOnAClosedInput: a job whose run returns nil and leaves messages in a port to which nothing more
// can come is run again with them; if nothing is read then either, it fails and says so.
func TestUnreadOnAClosedInput(t *testing.T) {
	const left = "returned nil but left 3 messages of the closed port in unread"
	// from lets the run of this number, and those behind it, read.
	from := func(n int) func(run *worker.Run, w *Picky) error {
		return func(run *worker.Run, w *Picky) error {
			if i, err := counting(run); err != nil || i < n {
				return err
			}
			return w.all()
		}
	}
	never := from(1 << 30)
	test := func(name string, more bool, code func(*worker.Run, *Picky) error, steps int64, then func(b *bench, tree, node *client.Handle)) {
		t.Run(name, func(t *testing.T) {
			b := onRedis(t)
			tree, node := b.picky(more, code)
			if then != nil {
				then(b, tree, node)
			}
			if steps > 0 {
				b.Completed(node, steps)
				b.Completed(tree, 0)
				b.same(tree, 1, 2, 3)
			}
		})
	}
	test("never read", false, never, 0, func(b *bench, tree, node *client.Handle) {
		const want = left + ": read them, or return worker.ErrSuspend to wait for something else"
		if f := b.Failure(node); f.Error != want || b.State(node)["n"] != "1" { // the second run is not kept
			b.Errorf("failed with %q after %s runs, want %q", f.Error, b.State(node)["n"], want)
		}
		if i := b.Reach(tree, 0, statemachine.Failed); i.Reason != "picky: "+want {
			b.Errorf("its graph: %q", i.Reason)
		}
	})
	test("read in the second run", false, from(2), 2, nil)
	test("read one a run", false, func(_ *worker.Run, w *Picky) error {
		n, ok, err := w.In.Read()
		if ok {
			err = errors.Join(err, w.Out.Write(n))
		}
		return err
	}, 3, nil)
	test("suspended", false, func(run *worker.Run, w *Picky) error {
		return errors.Join(from(2)(run, w), worker.ErrSuspend)
	}, 0, func(b *bench, tree, node *client.Handle) {
		b.Reach(node, 1, statemachine.Suspended)
		info, err := tree.Tree(b.Ctx)
		b.Check(err)
		if want := "idle: its job picky sleeps, with 3 messages of its closed port in unread"; info[0].Reason != want {
			b.Errorf("its graph is %q, want %q", info[0].Reason, want)
		}
	})
	test("waits for another port", true, func(run *worker.Run, w *Picky) error {
		if w.Go.Len() == 0 {
			_, err := counting(run)
			return err
		}
		_, _, err := w.Go.Read()
		return errors.Join(err, w.all())
	}, 2, func(b *bench, tree, node *client.Handle) {
		b.Reach(node, 1, statemachine.Suspended)
		b.Check(errors.Join(tree.Write(b.Ctx, "go", 1), tree.Close(b.Ctx, "go")))
	})
	test("waits for a timer of an earlier run", false, func(run *worker.Run, w *Picky) error {
		if run.Info().Steps == 0 {
			return errors.Join(run.WakeAfter(time.Hour), run.State().Set("n", 1))
		}
		return from(4)(run, w)
	}, 4, func(b *bench, _, node *client.Handle) {
		b.Reach(node, 1, statemachine.Suspended)
		b.Check(node.Run(b.Ctx)) // and once more, as nothing was read
		b.Reach(node, 3, statemachine.Suspended)
		b.Check(node.Run(b.Ctx))
	})
	test("waits for a child", false, func(run *worker.Run, w *Picky) error {
		if run.Info().Steps > 0 {
			return w.all()
		}
		_, err := run.Spawn("child", job.Single(&Count{To: 1}, ""))
		return err
	}, 2, nil)
}

// TestAllGoesOnAfterAnError: what is no message for the worker is told, and skipped if it goes on.
func TestAllGoesOnAfterAnError(t *testing.T) {
	b := onRedis(t)
	b.serve()
	h := b.single(call(t, func(_ context.Context, _ *worker.Run, w *Call) error {
		for n, err := range w.In.All() {
			if err != nil {
				if err := w.More.Write(err.Error()); err != nil {
					return err
				}
				continue
			}
			if err := w.Out.Write(n); err != nil {
				return err
			}
		}
		return nil
	}))
	odd := store.Write{Dir: port.Input, Port: "in", Items: []json.RawMessage{json.RawMessage("1"), json.RawMessage(`"x"`), json.RawMessage("3")}}
	b.Check(b.Store.Write(b.Ctx, h.ID(), odd)) // which knows no Go types
	b.Until("all is read", func() bool { return b.Waiting(h, "in") == 0 })
	b.Completed(h, 1)
	b.same(h, 1, 3)
	if more := enginetest.Outs[string](b, h, "more"); len(more) != 1 || !strings.Contains(more[0], `reading from port "in"`) {
		b.Errorf("errors %q", more)
	}
}
