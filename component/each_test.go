package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Slow waits as many seconds as its message says, and writes that and the double of it.
type Slow struct {
	Factor int
	In     port.In[int]
	Out    port.Out[int]
}

// Run implements worker.Worker.
func (s *Slow) Run(_ context.Context, run *worker.Run) error {
	n, ok, err := s.In.Peek()
	if err != nil || !ok {
		return err
	}
	if n < 0 {
		return errors.New("it is negative")
	}
	if n == 13 && run.Info().Args != nil && s.Factor == 13 {
		return errors.Join(s.Out.Write(0), errors.New("unlucky"))
	}
	if run.Now().Before(run.Info().Created.Add(time.Duration(n) * time.Second)) {
		return errors.Join(run.WakeAfter(time.Second), worker.ErrSuspend)
	}
	if _, _, err := s.In.Read(); err != nil {
		return err
	}
	return errors.Join(s.Out.Write(n), s.Out.Write(n*s.Factor))
}

func newEach(t *testing.T, more ...worker.Worker) *weirtest.Engine {
	t.Helper()
	types := append([]worker.Worker{&Slow{}}, more...)
	return weirtest.New(t, append(All(Policy{Types: []worker.Worker{&Slow{}}}), types...)...)
}

func TestEach(t *testing.T) {
	t.Parallel()
	args := json.RawMessage(`{"Factor":2}`)
	for name, c := range map[string]struct {
		each Each
		out  []string
		err  []string
		fail string
	}{
		"input":   {each: Each{Type: "Slow", Args: args}, out: list("3 6 1 2 2 4 0 0 5 10")},
		"arrival": {each: Each{Type: "Slow", Args: args, Order: OrderArrival, Parallel: 10}, out: list("0 0 1 2 2 4 3 6 5 10")},
		"single":  {each: Each{Type: "Slow", Args: args, Order: OrderArrival, Parallel: 1}, out: list("3 6 1 2 2 4 0 0 5 10")},
		"of a component": {
			each: Each{Type: "reduce", Args: json.RawMessage(`{"expr":"acc + it","seed":100}`)}, out: list("103 101 102 100 105"),
		},
		"bad args": {each: Each{Type: "reduce", Args: json.RawMessage(`{"expr":"acc +"}`)}, fail: "unexpected token EOF"},
		"no port":  {each: Each{Type: "Slow", Input: "inn"}, fail: `has not both the In port "inn" and the Out port "out"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEach(t)
			h := e.StartWorker(&c.each)
			e.Feed(h, "in", 3, 1, 2, 0, 5)
			e.CloseIn(h, "in")
			e.Advance(time.Minute)
			if fs := e.Failures(h); len(fs) > 0 || c.fail != "" {
				if c.fail == "" || len(fs) == 0 || !strings.Contains(fs[0].Error, c.fail) {
					t.Errorf("failed with %v, want %q", fs, c.fail)
				}
				return
			}
			if got := outputs(t, h, "out")["out"]; !slices.Equal(got, c.out) {
				t.Errorf("got %v, want %v", got, c.out)
			}
			if s := e.Status(h); s != statemachine.Completed {
				t.Errorf("the job is %s", s)
			}
			if left, err := h.Children(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("%d jobs of items are left, %v", len(left), err)
			}
		})
	}
}

func TestEachFails(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]stream{
		OnErrorSkip: {"out": list("1 2 4 8")},
		OnErrorPort: {"out": list("1 2 4 8"), "err": {`{"error":"the job of item 1, ID, is failed: work: it is negative","data":-1}`, `{"error":"the job of item 2, ID, is terminated","data":9}`}},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := newEach(t)
			h := e.StartWorker(&Each{Type: "Slow", Args: json.RawMessage(`{"Factor":2}`), OnError: mode})
			e.Feed(h, "in", 1, -1, 9, 4)
			e.RunUntilIdle()
			if err := e.Child(h, "item_2").TerminateAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.CloseIn(h, "in")
			e.Advance(time.Minute)
			got := outputs(t, h, "out", "err")
			for i := range got["err"] {
				got["err"][i] = regexp.MustCompile(`[0-9a-f-]{36}\.\d+`).ReplaceAllString(got["err"][i], "ID")
			}
			if !same(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// TestEachRetried: the job of an item fails and so does each; its message is taken away and
// both go on.
func TestEachRetried(t *testing.T) {
	t.Parallel()
	e := newEach(t)
	h := e.StartWorker(&Each{Type: "map", Args: json.RawMessage(`{"expr":"it.n + 1"}`)})
	e.Feed(h, "in", map[string]int{"n": 1}, 5, map[string]int{"n": 3})
	e.RunUntilIdle()
	if s := e.Status(h); s != statemachine.Failed {
		t.Fatalf("the job is %s", s)
	}
	work := e.Child(h, "item_1", "work")
	if _, err := work.Drain(t.Context(), port.Input, "in"); err != nil {
		t.Fatal(err)
	}
	if err := work.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.RunUntilIdle()
	if err := h.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	if got := outputs(t, h, "out")["out"]; !slices.Equal(got, list("2 4")) || e.Status(h) != statemachine.Completed {
		t.Errorf("got %v, the job is %s: %v", got, e.Status(h), e.Failures(h))
	}
}

// TestEachOf: a graph for each message.
func TestEachOf(t *testing.T) {
	t.Parallel()
	g := graph.New("twice")
	double := graph.Add(g, "double", &Map{Expr: "it * 2"})
	sum := graph.Add(g, "sum", &Reduce{Expr: "acc + it", Seed: json.RawMessage("1")})
	graph.Connect(graph.Input[json.RawMessage](g, "in"), double.In)
	graph.Connect(double.Out, sum.In)
	same := graph.Add(g, "same", &Filter{Expr: "true"})
	graph.Connect(sum.Out, same.In)
	graph.Export(g, "out", same.Out)
	each := EachOf("twice_each", g)
	each.Parallel = 100 // with six jobs each, more than one commit may create
	e := newEach(t, each)
	h := e.StartWorker(each)
	var in []any
	var want []string
	for i := range 110 {
		in = append(in, i)
		want = append(want, fmt.Sprint(2*i+1))
	}
	e.Feed(h, "in", in...)
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	if got := outputs(t, h, "out")["out"]; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: %v", got, want, e.Failures(h))
	}
}

// TestEachMany: more output than one commit may write.
func TestEachMany(t *testing.T) {
	t.Parallel()
	e := newEach(t)
	h := e.StartWorker(&Each{Type: "map", Args: json.RawMessage(`{"expr":"repeat(it, 100000)"}`), Parallel: 100})
	for range 2 {
		var items []any
		for range 100 {
			items = append(items, "x")
		}
		e.Feed(h, "in", items...)
	}
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	if got := outputs(t, h, "out")["out"]; len(got) != 200 || e.Status(h) != statemachine.Completed {
		t.Errorf("got %d results, the job is %s: %v", len(got), e.Status(h), e.Failures(h))
	}
}

// TestEachLargeItem: an item that does not fit into the parameters of a job.
func TestEachLargeItem(t *testing.T) {
	t.Parallel()
	e := newEach(t)
	h := e.StartWorker(&Each{Type: "map", Args: json.RawMessage(`{"expr":"len(it)"}`), OnError: OnErrorPort})
	e.Feed(h, "in", strings.Repeat("x", 1<<20-3), "x")
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	want := stream{"out": list("1"), "err": {`{"error":"an item of 1048575 bytes is too large to be given to a job","data":null}`}}
	if got := outputs(t, h, "out", "err"); !same(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestEachLargeResult: a job writes more messages than a run sees at once.
func TestEachLargeResult(t *testing.T) {
	t.Parallel()
	e := newEach(t)
	h := e.StartWorker(&Each{Type: "flat_map", Args: json.RawMessage(`{"expr":"1..it"}`)})
	e.Feed(h, "in", 2500, 3)
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	got := outputs(t, h, "out")["out"]
	for i := range got {
		if want := fmt.Sprint(i%2500 + 1); got[i] != want {
			t.Fatalf("result %d is %s, want %s", i, got[i], want)
		}
	}
	if len(got) != 2503 {
		t.Errorf("got %d results", len(got))
	}
}
