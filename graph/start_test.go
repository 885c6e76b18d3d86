package graph_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

// startErr wants an error of Start that wraps one and says something.
func startErr(t *testing.T, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want an error that wraps %q", err, want)
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q lacks %q", err, text)
		}
	}
}

// Another definition under the alias of a living tree is not ignored.
func TestStartOtherDefinition(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Step{})
	start := func(g *graph.Graph, opts ...job.Option) (*client.Handle, error) {
		return e.Client().Start(t.Context(), g, append(opts, job.Alias("shop"))...)
	}
	v1, v2 := func() *graph.Graph { return row(part{"a", 2}) }, func() *graph.Graph { return row(part{"a", 3}) }
	h, err := start(v1())
	if err != nil || !h.Created() {
		t.Fatal(err, h.Created())
	}
	again, err := start(v1())
	if err != nil || again.Created() || !again.Equal(h) {
		t.Fatalf("the same definition: %v", err)
	}
	_, err = start(v2())
	startErr(t, err, job.ErrExists, `"shop"`, string(h.ID()), "job.PatchExisting()", "Handle.Patch", "job.TakeExisting()")
	taken, err := start(v2(), job.TakeExisting())
	if err != nil || !taken.Equal(h) {
		t.Fatalf("taken: %v", err)
	}
	e.Feed(h, "in", 1)
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 2)

	patched, err := start(v2(), job.PatchExisting())
	if err != nil || !patched.Equal(h) || patched.Created() {
		t.Fatalf("patched: %v", err)
	}
	e.Feed(h, "in", 1)
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 3)
	if _, err := start(v2()); err != nil {
		t.Errorf("the definition that it has now: %v", err)
	}
	_, err = start(v1())
	startErr(t, err, job.ErrExists)
}

// A graph of another name is not patched; the error does not offer it.
func TestStartOtherKind(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Step{}, &Halve{})
	start := func(p job.Planner, opts ...job.Option) error {
		_, err := e.Client().Start(t.Context(), p, append(opts, job.Alias("shop"))...)
		return err
	}
	if err := start(job.Single(&Step{By: 2}, "")); err != nil {
		t.Fatal(err)
	}
	for _, same := range []job.Planner{job.Single(&Step{By: 2}, ""), job.Single(&Step{By: 2}, job.DefaultQueue)} {
		if err := start(same); err != nil {
			t.Error(err)
		}
	}
	for says, other := range map[string]job.Planner{
		"has other parameters":  job.Single(&Step{By: 3}, ""),
		`is in queue "default"`: job.Single(&Step{By: 2}, "fast"),
		"is a Step":             job.Single(&Halve{}, ""),
		"and is a Step":         row(part{"a", 2}),
	} {
		err := start(other, job.EnginesLater())
		startErr(t, err, job.ErrExists, says, "choose another alias", "job.TakeExisting()")
		if strings.Contains(err.Error(), "Patch") {
			t.Errorf("it cannot be patched: %v", err)
		}
		startErr(t, start(other, job.PatchExisting(), job.EnginesLater()), job.ErrExists, says)
		if err := start(other, job.TakeExisting(), job.EnginesLater()); err != nil {
			t.Error(err)
		}
	}
}

// hating is a graph of a step that fails on one number.
func hating(n int) *graph.Graph {
	g := graph.New("hating")
	graph.Connect(graph.Input[int](g, "in"), graph.Add(g, "a", &Step{By: 1, Hate: n}).In)
	return g
}

// A tree that has failed or come to its end is not taken for another one; one that failed can be patched.
func TestStartOverEndedTree(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Step{})
	var h *client.Handle
	start := func(hate int, opts ...job.Option) *client.Handle {
		t.Helper()
		h, err := e.Client().Start(t.Context(), hating(hate), append(opts, job.Alias("shop"))...)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	refused := func(hate int, says string, opts ...job.Option) {
		t.Helper()
		_, err := e.Client().Start(t.Context(), hating(hate), append(opts, job.Alias("shop"))...)
		if !errors.Is(err, job.ErrExists) || !strings.Contains(err.Error(), says) {
			t.Errorf("another definition under the alias: %v", err)
		}
	}
	h = start(3)
	digest := e.Info(h).Definition
	e.Feed(h, "in", 3)
	e.Advance(time.Hour)
	if got := e.Status(h); got != statemachine.Failed {
		t.Fatal(got)
	}
	refused(5, "job.PatchExisting()")
	start(5, job.TakeExisting())
	if e.Info(h).Definition != digest {
		t.Error("a failed graph was changed though nobody asked for it")
	}
	start(5, job.PatchExisting())
	patched := e.Info(h).Definition
	if patched == digest {
		t.Error("a failed graph was not patched")
	}
	if err := e.Child(h, "a").Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	if got := e.Status(h); got != statemachine.Completed {
		t.Fatal(got)
	}
	refused(7, "and is completed: choose another alias, terminate it with all jobs in it and delete it")
	refused(7, "and is completed: ", job.PatchExisting()) // which cannot change it, and does not say that it had
	for _, again := range []*client.Handle{start(7, job.TakeExisting()), start(5, job.PatchExisting())} {
		if !again.Equal(h) || e.Info(h).Definition != patched {
			t.Error("a completed graph was changed")
		}
	}
}

// Several programs that deploy one version at a time do not disturb each other.
func TestStartPatchesTogether(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Step{})
	h, err := e.Client().Start(t.Context(), row(part{"a", 2}), job.Alias("shop"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := e.Client().Start(t.Context(), row(part{"a", 3}, part{"b", 1}), job.Alias("shop"), job.PatchExisting())
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	e.Feed(h, "in", 1)
	e.RunUntilIdle()
	wantOut(t, e, h, "out", 3)
}

// A port feeds that many jobs at most, and Plan says of which it feeds more.
func TestFanOutLimit(t *testing.T) {
	t.Parallel()
	plan := func(instances int) error {
		g := graph.New("fan")
		a := graph.Add(g, "a", &Step{})
		graph.Connect(graph.Input[int](g, "in"), a.In)
		graph.Connect(a.Out, graph.Add(g, "b", &Step{}, graph.Instances(instances)).In)
		_, err := g.Plan()
		return err
	}
	if err := plan(2 * job.MaxFanOut); err != nil {
		t.Error(err)
	}
	startErr(t, plan(2*job.MaxFanOut+1), job.ErrTooLarge, "fan: ", `"a"`, "port out feeds 501 ports", "put jobs in between")
}
