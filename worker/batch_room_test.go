package worker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// runsOf runs a job of a tree again and again, as long as it can run, and tells after each commit how many messages wait at another one.
func (b *bench) runsOf(h *client.Handle, name, at, port string) (waiting []int64) {
	b.Helper()
	e, err := worker.New(worker.Config{Store: b.Store, Workers: append(everything(), &Alone{})})
	b.Check(err)
	b.Check(e.Register(b.Ctx))
	writer, err := h.Child(b.Ctx, name)
	b.Check(err)
	for range 100 {
		if err := e.RunJob(b.Ctx, writer.ID()); err != nil {
			if !errors.Is(err, job.ErrStatus) {
				b.Error(err)
			}
			break
		}
		reader := h
		for path := range strings.SplitSeq(at, "/") {
			reader, err = reader.Child(b.Ctx, path)
			b.Check(err)
		}
		waiting = append(waiting, b.Waiting(reader, port))
	}
	return waiting
}

// What is known of the room in one port says nothing of another one: a port that a batch comes to for the first time, or had not in the
// last commit, never holds more than its limit.
func TestBatchesKnowTheirPorts(t *testing.T) {
	each(t, func(b *bench) {
		const limit, many = 3, 60
		split := call(b.T, func(_ context.Context, _ *worker.Run, w *Call) error {
			v, ok, err := w.In.Read()
			if !ok || err != nil {
				return err
			}
			if v == 0 {
				return w.Out.Write(v)
			}
			return w.More.Write("rare")
		})
		g := graph.New("split")
		s := graph.Add(g, "split", split)
		often, seldom := graph.Add(g, "often", &Alone{}), graph.Add(g, "seldom", &Alone{})
		graph.Connect(graph.Input[int](g, "in"), s.In)
		graph.Connect(s.Out, often.In, graph.Limit(1000))
		graph.Connect(s.More, seldom.Text, graph.Limit(limit))
		h := b.Start(g)
		items := make([]any, 2*many)
		for i := range items {
			items[i] = i / many
		}
		b.Check(h.Write(b.Ctx, "in", items...))
		got := b.runsOf(h, "split", "seldom", "text")
		if last := got[len(got)-1]; last != limit {
			b.Errorf("%v messages in a port with a limit of %d", got, limit)
		}
		if len(got) > 20 {
			b.Errorf("%d commits of %d runs", len(got), many+limit)
		}
	})
}

// A batch fills a port that its job alone feeds; of one that several feed, also through the port of a graph, it takes its part.
func TestBatchesShareRoom(t *testing.T) {
	const limit = 12
	box := func(writers int) (g *graph.Graph, at string) {
		inner := graph.New("box")
		graph.Connect(graph.Input[int](inner, "in"), graph.Add(inner, "sink", &Alone{}).In, graph.Limit(limit))
		g = graph.New("tree")
		graph.Nest(g, "box", inner)
		for n := range writers {
			name := string(rune('a' + n))
			w := graph.Add(g, name, &Hop{})
			graph.Connect(graph.Input[int](g, name), w.In)
			graph.Wire(g, name+".out", "box.in")
		}
		return g, "box/sink"
	}
	flat := func(writers int) (g *graph.Graph, at string) {
		g = graph.New("tree")
		sink := graph.Add(g, "sink", &Alone{})
		for n := range writers {
			name := string(rune('a' + n))
			w := graph.Add(g, name, &Hop{})
			graph.Connect(graph.Input[int](g, name), w.In)
			graph.Connect(w.Out, sink.In, graph.Limit(limit))
		}
		return g, "sink"
	}
	each(t, func(b *bench) {
		for _, of := range []func(int) (*graph.Graph, string){flat, box} {
			for writers, want := range map[int][]int64{1: {1, 4, 11, 12}, 2: {1, 4, 8, 10, 11, 12}, 3: {1, 4, 7, 9, 10, 11, 12}} { // snapshots grow, too
				g, at := of(writers)
				h := b.Start(g)
				b.Check(h.Write(b.Ctx, "a", make([]any, 2*limit)...))
				if got := b.runsOf(h, "a", at, "in"); !slices.Equal(got, want) {
					b.Errorf("%d writers to %s: %v messages, want %v", writers, at, got, want)
				}
			}
		}
	})
}
