package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// copyAll writes what it reads.
func copyAll(_ context.Context, _ *worker.Run, w *Call) error { return copied(&w.In, &w.Out) }

// copied writes to one port what it reads from another.
func copied(in *port.In[int], out *port.Out[int]) error {
	for v, err := range in.All() {
		if err != nil {
			return err
		}
		if err := out.Write(v); err != nil {
			return err
		}
	}
	return nil
}

func TestInputIsReadOnce(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, copyAll))
		info := b.Completed(h, 1)
		b.Check(h.Write(b.Ctx, "in", 1, 2, 3))
		info = b.Completed(h, info.Steps+1)
		b.Check(h.Write(b.Ctx, "in", 4))
		info = b.Completed(h, info.Steps+1)
		b.Check(h.Run(b.Ctx)) // reads nothing again
		info = b.Completed(h, info.Steps+1)
		b.same(h, 1, 2, 3, 4)
		if p, _ := info.Port(port.Input, "in"); p.Waiting != 0 || p.Total != 4 {
			b.Errorf("in: %d of %d messages are unread, want 0 of 4", p.Waiting, p.Total)
		}
	})
}

func TestPeekLeavesTheMessage(t *testing.T) {
	each(t, func(b *bench) {
		h := b.single(call(b, func(_ context.Context, _ *worker.Run, w *Call) error {
			for range 3 {
				v, ok, err := w.In.Peek()
				if err != nil || !ok || w.In.Len() == 0 {
					return fmt.Errorf("Peek = %d, %t, %w with %d left", v, ok, err, w.In.Len())
				}
				if err := w.Out.Write(v); err != nil {
					return err
				}
			}
			v, ok, err := w.In.Read()
			if err != nil || !ok {
				return fmt.Errorf("Read = %d, %t, %w", v, ok, err)
			}
			_, _, err = w.In.Peek()
			return errors.Join(err, w.Out.Write(-v))
		}))
		b.Check(h.Write(b.Ctx, "in", 1, 2))
		b.serve()
		b.Completed(h, 2)
		b.same(h, 1, 1, 1, -1, 2, 2, 2, -2)
	})
}

func TestDefault(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, _ *worker.Run, w *Call) error {
			n := w.Size.Len()
			for range w.Size.All() { // never yields the default
				n--
			}
			first, ok1, err1 := w.Size.Read()
			second, ok2, err2 := w.Size.Peek()
			if n != 0 || !ok1 || !ok2 {
				return fmt.Errorf("n = %d, ok = %t, %t", n, ok1, ok2)
			}
			return errors.Join(err1, err2, w.Out.Write(first), w.Out.Write(second))
		}))
		info := b.Completed(h, 1)
		b.Check(h.Write(b.Ctx, "size", 7, 8))
		b.Completed(h, info.Steps+1)
		b.same(h, 640, 640, 640, 640)
	})
}

func TestDataComesBeforeTheDefault(t *testing.T) {
	each(t, func(b *bench) {
		h := b.single(call(b, func(_ context.Context, _ *worker.Run, w *Call) error {
			for range 3 {
				v, _, err := w.Size.Read()
				if err := errors.Join(err, w.Out.Write(v)); err != nil {
					return err
				}
			}
			return nil
		}))
		b.Check(h.Write(b.Ctx, "size", 1, 2))
		b.serve()
		b.Completed(h, 1)
		b.same(h, 1, 2, 640)
	})
}

// One run reads more messages than come with its snapshot, in order.
func TestManyMessages(t *testing.T) {
	each(t, func(b *bench) {
		const n = 5000
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			if w.In.Len() != n {
				return fmt.Errorf("Len = %d", w.In.Len())
			}
			for i := range n {
				if v, ok, err := w.In.Read(); v != i || !ok || err != nil {
					return fmt.Errorf("message %d = %d, %t, %w", i, v, ok, err)
				}
			}
			_, ok, err := w.In.Read()
			return errors.Join(err, run.State().Set("more", ok))
		}))
		messages := make([]any, n)
		for i := range messages {
			messages[i] = i
		}
		b.Check(h.Write(b.Ctx, "in", messages...))
		b.serve()
		if info := b.Completed(h, 1); info.Steps != 1 {
			b.Errorf("%d runs, want 1", info.Steps)
		}
		if got := b.State(h)["more"]; got != "false" {
			b.Errorf("more = %s", got)
		}
	})
}

// One run reads more bytes than come with its snapshot.
func TestLargeMessages(t *testing.T) {
	each(t, func(b *bench) {
		const n, size = 12, 700 << 10
		h := b.single(call(b, func(_ context.Context, _ *worker.Run, w *Call) error {
			for v, err := range w.Text.All() {
				if err != nil {
					return err
				}
				if len(v) != size || strings.Trim(v, v[:1]) != "" {
					return fmt.Errorf("message of %d bytes, begins with %q", len(v), v[:1])
				}
				if err := w.Out.Write(int(v[0] - 'a')); err != nil {
					return err
				}
			}
			return nil
		}))
		want := []int{}
		for i := range n {
			b.Check(h.Write(b.Ctx, "text", strings.Repeat(string(rune('a'+i)), size)))
			want = append(want, i)
		}
		b.serve()
		if info := b.Completed(h, 1); info.Steps != 1 {
			b.Errorf("%d runs, want 1", info.Steps)
		}
		b.same(h, want...)
	})
}

// What a run leaves unread is read by further runs without anybody's help.
func TestLeftMessagesGetAnotherRun(t *testing.T) {
	each(t, func(b *bench) {
		h := b.single(&Double{Most: 2})
		b.Check(h.Write(b.Ctx, "in", 1, 2, 3, 4, 5))
		b.serve()
		if info := b.Completed(h, 3); info.Steps != 3 {
			b.Errorf("%d runs, want 3", info.Steps)
		}
		b.same(h, 2, 4, 6, 8, 10)
	})
}

// A run that reads nothing is not repeated indefinitely.
func TestUnreadMessagesAloneMakeNoRun(t *testing.T) {
	each(t, func(b *bench) {
		h := b.single(call(b, func(context.Context, *worker.Run, *Call) error { return nil }))
		b.Check(h.Write(b.Ctx, "in", 1, 2))
		b.serve()
		if info := b.Completed(h, 1); info.Steps != 1 {
			b.Errorf("%d runs, want 1", info.Steps)
		}
		if n := b.Waiting(h, "in"); n != 2 {
			b.Errorf("%d messages wait, want 2", n)
		}
	})
}

// A message that arrives while the job runs is not overlooked.
func TestMessageDuringRun(t *testing.T) {
	each(t, func(b *bench) {
		var inside, written enginetest.Gate
		h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			if err := copyAll(ctx, run, w); err != nil {
				return err
			}
			inside.Open()
			return written.Pass(ctx)
		}))
		b.serve()
		b.Check(inside.Pass(b.Ctx))
		b.Check(h.Write(b.Ctx, "in", 1))
		written.Open()
		b.Completed(h, 2)
		b.same(h, 1)
	})
}

func TestSuspend(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if err != nil {
				return err
			}
			if !ok {
				if err := run.State().Set("slept", true); err != nil {
					return err
				}
				return worker.ErrSuspend
			}
			if err := w.Out.Write(v); err != nil {
				return err
			}
			return fmt.Errorf("enough for now: %w", worker.ErrSuspend)
		}))
		b.Reach(h, 1, statemachine.Suspended)
		if got := b.State(h)["slept"]; got != "true" {
			b.Errorf("state of a suspended run: slept = %q", got)
		}
		b.Check(h.Write(b.Ctx, "in", 1, 2))
		b.Reach(h, 2, statemachine.Suspended)
		b.same(h, 1)
		b.Check(h.Write(b.Ctx, "in", 3)) // finds 2 unread
		b.Reach(h, 3, statemachine.Suspended)
		b.same(h, 1, 2)
	})
}

func TestDone(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			before := w.In.Done()
			if err := copyAll(ctx, run, w); err != nil {
				return err
			}
			return w.More.Write(fmt.Sprint(before, w.In.Done()))
		}))
		b.Completed(h, 1)
		b.Check(h.Write(b.Ctx, "in", 1))
		b.Completed(h, 2)
		b.Check(h.Close(b.Ctx, "in"))
		b.Completed(h, 3)
		want := []string{"false false", "false false", "true true"}
		if got := enginetest.Outs[string](b, h, "more"); !slices.Equal(got, want) {
			b.Errorf("Done before and after reading: %q, want %q", got, want)
		}
		if err := h.Write(b.Ctx, "in", 2); !errors.Is(err, job.ErrPort) {
			b.Errorf("writing to a closed port: %v, want job.ErrPort", err)
		}
	})
}

// An input with several sources is done when all of them are, and a stage that wakes
// for the end alone still passes it on.
func TestDoneComesThroughAGraph(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		g := graph.New("sums")
		one := graph.Add(g, "one", &Count{To: 100})
		two := graph.Add(g, "two", &Count{To: 50})
		none := graph.Add(g, "none", &Count{})
		double := graph.Add(g, "double", &Double{Most: 7}, graph.Instances(3))
		sum := graph.Add(g, "sum", &Sum{})
		graph.Connect(one.Out, double.In)
		graph.Connect(two.Out, double.In)
		graph.Connect(none.Out, double.In)
		graph.Connect(double.Out, sum.In)
		graph.Export(g, "total", sum.Total)
		graph.Export(g, "items", sum.Items)
		h := b.Start(g)
		if _, err := h.Wait(b.Ctx); err != nil {
			b.Fatal(err)
		}
		total, items := enginetest.Outs[int](b, h, "total"), enginetest.Outs[int](b, h, "items")
		if want := 2 * (5050 + 1275); !slices.Equal(total, []int{want}) || !slices.Equal(items, []int{150}) {
			b.Errorf("total %v of %v items, want %d of 150", total, items, want)
		}
	})
}

// Somebody outside takes messages while a run reads: nobody gets one twice.
func TestMessagesTakenFromOutside(t *testing.T) {
	for _, n := range []int{10, 2500} { // within the snapshot, and beyond it
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			each(t, func(b *bench) {
				var runs atomic.Int64
				var inside, taken enginetest.Gate
				h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
					if runs.Add(1) == 1 {
						if _, _, err := w.In.Read(); err != nil {
							return err
						}
						inside.Open()
						if err := taken.Pass(ctx); err != nil {
							return err
						}
					}
					return copyAll(ctx, run, w)
				}))
				messages, want := make([]any, n), make([]int, n)
				for i := range n {
					messages[i], want[i] = i, i
				}
				b.Check(h.Write(b.Ctx, "in", messages...))
				b.serve()
				b.Check(inside.Pass(b.Ctx))
				b.Check(b.Store.Take(b.Ctx, h.ID(), store.Take{Dir: port.Input, Port: "in", Head: 0, N: 2}, "token"))
				taken.Open()
				if info := b.Completed(h, 1); info.Steps != 1 || info.Tries != 0 {
					b.Errorf("%d steps and %d failures, want 1 and none", info.Steps, info.Tries)
				}
				b.same(h, want[2:]...)
				if got := runs.Load(); got != 2 {
					b.Errorf("%d runs, want 2", got)
				}
			})
		})
	}
}
