package graph_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/weirtest"
)

// TestRetain: a graph says for how long its trees are kept, and who starts one may say something else. It is another graph
// for neither.
func TestRetain(t *testing.T) {
	t.Parallel()
	build := func(d time.Duration) *graph.Graph {
		g := graph.New("line")
		graph.Connect(graph.Input[int](g, "in"), graph.Add(g, "s", &Step{By: 1}).In)
		if d != 0 {
			g.Retain(d)
		}
		return g
	}
	e := weirtest.New(t, &Step{})
	start := func(g *graph.Graph, opts ...job.Option) *client.Handle {
		t.Helper()
		h, err := e.Client().Start(t.Context(), g, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.TerminateAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		return h
	}
	day := 24 * time.Hour
	own, over, plain := start(build(day)), start(build(day), job.Retain(3*day)), start(build(0))
	never := start(build(day), job.Retain(job.Forever))
	for n, there := range [][]bool{{true, true, true, true}, {false, true, true, true}, {false, false, true, true}, {false, false, false, true}} {
		for i, h := range []*client.Handle{own, over, plain, never} {
			if is, err := h.Exists(t.Context()); err != nil || is != there[i] {
				t.Errorf("tree %d is there after %d days: %t, %v", i, 0, is, err)
			}
		}
		e.Advance([]time.Duration{2 * day, 2 * day, 4 * day, 0}[n])
	}
	one, err := build(day).Plan()
	if err != nil {
		t.Fatal(err)
	}
	other, err := build(0).Plan()
	if err != nil || one.Digest() != other.Digest() {
		t.Errorf("the retention makes another graph: %v", err)
	}
	if _, err := build(-day).Plan(); !errors.Is(err, job.ErrName) {
		t.Errorf("a negative retention: %v", err)
	}
}
