package graph_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/weirtest"
)

// TestLabel: jobs get the labels of their worker, and the root those that it is started with; neither
// makes another graph of it.
func TestLabel(t *testing.T) {
	t.Parallel()
	build := func(opts ...graph.Option) *graph.Graph {
		g := graph.New("line")
		s := graph.Add(g, "s", &Step{By: 1}, append(opts, graph.Instances(2))...)
		graph.Connect(graph.Input[int](g, "in"), s.In)
		return g
	}
	e := weirtest.New(t, &Step{})
	g := build(graph.Label("stage", "first"), graph.Label("team", "x"))
	for _, customer := range []string{"7", "8"} {
		if _, err := e.Client().Start(t.Context(), g, job.Label("customer", customer), job.Label("by", customer)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		label, value string
		want         map[string]string
		n            int
	}{
		{"team", "x", map[string]string{"stage": "first", "team": "x"}, 4},
		{"customer", "7", map[string]string{"customer": "7", "by": "7"}, 1},
		{"customer", "8", map[string]string{"customer": "8", "by": "8"}, 1},
		{"customer", "9", nil, 0},
	} {
		n := 0
		for i, err := range e.Client().Jobs(t.Context(), job.Filter{Labels: map[string]string{c.label: c.value}, All: true}) {
			if n++; err != nil || !maps.Equal(i.Labels, c.want) {
				t.Errorf("%s=%s: job with %v, %v", c.label, c.value, i.Labels, err)
			}
		}
		if n != c.n {
			t.Errorf("%s=%s: %d jobs, want %d", c.label, c.value, n, c.n)
		}
	}
	digest := func(g *graph.Graph) string {
		plan, err := g.Plan()
		if err != nil {
			t.Fatal(err)
		}
		return plan.Digest()
	}
	if digest(g) != digest(build()) {
		t.Error("labels make another definition")
	}
	_, err := build(graph.Label("a b", "c")).Plan()
	if !errors.Is(err, job.ErrName) || !strings.HasPrefix(err.Error(), "line/s: invalid name: key \"a b\" of a label") {
		t.Errorf("got %v", err)
	}
	if _, err := e.Client().Start(t.Context(), g, job.Label("", "")); !errors.Is(err, job.ErrName) {
		t.Errorf("got %v", err)
	}
}
