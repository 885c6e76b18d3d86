package conformance_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Kahn's theorem: what comes out of a graph in which nobody chooses between messages by
// when they come depends on what goes in, and on nothing else.

// shape is a graph without such a choice, and what comes out of it: by key, if it has keys.
type shape struct {
	build func() *graph.Graph
	want  map[int64][]int64
}

const numbers = 6

// straight computes what comes out of a graph without keys.
func straight(fn func(n int64) int64) map[int64][]int64 {
	var all []int64
	for n := range int64(numbers) {
		all = append(all, fn(n+1))
	}
	return map[int64][]int64{0: all}
}

var shapes = map[string]shape{
	"chain": {func() *graph.Graph {
		g := graph.New("chain")
		out := graph.Add(g, "count", &Count{N: numbers}).Out
		for i := range int64(4) {
			c := graph.Add(g, fmt.Sprint("calc", i), &Calc{Mul: 3, Add: i})
			graph.Connect(out, c.In)
			out = c.Out
		}
		graph.Export(g, "out", out)
		return g
	}, straight(func(n int64) int64 { return 3*(3*(3*(3*n)+1)+2) + 3 })},

	"diamond": {func() *graph.Graph { return diamond("diamond") }, straight(func(n int64) int64 { return 31*(2*n) + n + 7 })},

	"small limits": {func() *graph.Graph {
		return diamond("tight", graph.Limit(1))
	}, straight(func(n int64) int64 { return 31*(2*n) + n + 7 })},

	"keyed": {func() *graph.Graph {
		g := graph.New("keyed")
		c := graph.Add(g, "count", &Count{N: 2 * numbers, Keys: 7})
		f := graph.Add(g, "fold", &Fold{}, graph.Instances(3))
		graph.Connect(c.Out, f.In, graph.Limit(4))
		graph.Export(g, "out", f.Out)
		return g
	}, folded(2*numbers, 7)},

	"nested": {func() *graph.Graph {
		g := graph.New("nested")
		c := graph.Add(g, "count", &Count{N: numbers})
		r := graph.Add(g, "row", &Row{})
		graph.Connect(c.Out, r.In)
		graph.Export(g, "out", r.Out)
		return g
	}, straight(func(n int64) int64 { return twin(5, twin(2, n)) })},

	"loop": {func() *graph.Graph {
		g := graph.New("loop")
		c := graph.Add(g, "count", &Count{N: numbers})
		t := graph.Add(g, "turn", &Turn{})
		pass := graph.Add(g, "pass", &Calc{Mul: 1, Add: 10})
		last := graph.Add(g, "last", &Calc{Mul: 2})
		graph.Connect(c.Out, t.In, graph.Limit(2))
		graph.Connect(t.Again, pass.In, graph.Limit(1))
		graph.Connect(pass.Out, t.Back, graph.Feedback())
		graph.Connect(t.Out, last.In)
		graph.Export(g, "out", last.Out)
		return g
	}, straight(func(n int64) int64 { return 2 * (n + 10*(n%4)) })},
}

func twin(by, n int64) int64 { return 31*(by*n) + n + by }

// diamond is a graph that parts and joins again; the options are those of all its wires.
func diamond(name string, opts ...graph.WireOption) *graph.Graph {
	g := graph.New(name)
	c := graph.Add(g, "count", &Count{N: numbers})
	a := graph.Add(g, "a", &Calc{Mul: 2})
	b := graph.Add(g, "b", &Calc{Mul: 1})
	b2 := graph.Add(g, "b2", &Calc{Mul: 1, Add: 7})
	z := graph.Add(g, "z", &Zip{})
	graph.Connect(c.Out, a.In, opts...)
	graph.Connect(c.Out, b.In, opts...)
	graph.Connect(b.Out, b2.In, opts...)
	graph.Connect(a.Out, z.A, opts...)
	graph.Connect(b2.Out, z.B, opts...)
	graph.Export(g, "out", z.Out)
	return g
}

func folded(n, keys int64) map[int64][]int64 {
	all, sums := map[int64][]int64{}, map[int64]int64{}
	for i := int64(1); i <= n; i++ {
		key := i * i % keys
		sums[key] = sums[key]*3 + i
		all[key] = append(all[key], sums[key])
	}
	return all
}

const (
	byHandOnRedis = 120 // shuffles of each shape that are scheduled by hand
	byHandElse    = 4   // on each other kind of Redis
	byEngines     = 80  // shuffles that engines run, and do not survive
	together      = 4   // shuffles by hand that go on at a time
	handCount     = 3
)

// Jobs run one by one, in an order and by a number of hands that are drawn at random.
func TestGraphsByHand(t *testing.T) {
	for name, s := range shapes {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			each(t, func(e *env) {
				shuffles := byHandElse
				if strings.HasSuffix(e.Name(), "/redis") {
					shuffles = byHandOnRedis
				}
				hands := e.hands()
				var moved map[string]int64
				for seed := 0; seed < shuffles && !e.Failed(); seed += together {
					var trees []*client.Handle
					var wg sync.WaitGroup
					for i := range together {
						h := e.Start(s.build())
						trees = append(trees, h)
						wg.Go(func() { e.shuffle(h, hands, rand.New(rand.NewPCG(uint64(seed+i), 1))) })
					}
					wg.Wait()
					for i, h := range trees {
						e.outcome(h, s)
						if m := e.moved(h); moved == nil {
							moved = m
						} else if !maps.Equal(m, moved) {
							e.Errorf("shuffle %d: the ports passed %v messages, in the first shuffle %v", seed+i, m, moved)
						}
						if e.Failed() {
							e.Fatalf("shuffle %d is the first to fail", seed+i)
						}
					}
				}
			})
		})
	}
}

// hands makes engines that run jobs when they are told to.
func (e *env) hands() []*worker.Engine {
	e.Helper()
	var hands []*worker.Engine
	for i := range uint64(handCount) {
		d := newDice(i)
		hand, err := worker.New(worker.Config{
			Store: flaky{Store: e.Store, dice: d}, Workers: gamblers(d), Logger: slog.New(slog.DiscardHandler),
		})
		e.Check(err)
		e.Check(hand.Register(e.Ctx))
		hands = append(hands, hand)
	}
	return hands
}

// shuffle runs a tree to its end: a random number of hands each run some of the ready jobs,
// in any order, again and again.
func (e *env) shuffle(h *client.Handle, hands []*worker.Engine, rng *rand.Rand) {
	e.Helper()
	var wg sync.WaitGroup
	for _, hand := range hands[:1+rng.IntN(len(hands))] {
		mine := rand.New(rand.NewPCG(rng.Uint64(), 2))
		wg.Go(func() {
			for deadline := time.Now().Add(enginetest.Patience / 2); time.Now().Before(deadline); {
				tree, err := h.Tree(e.Ctx)
				if err != nil {
					e.Error(err)
					return
				}
				if s := tree[0].Status; s == statemachine.Completed || s == statemachine.Failed {
					return
				}
				ready := slices.DeleteFunc(tree, func(i *job.Info) bool { return i.Status != statemachine.Queued })
				if len(ready) == 0 {
					time.Sleep(time.Millisecond) // another hand has it
					continue
				}
				mine.Shuffle(len(ready), func(i, j int) { ready[i], ready[j] = ready[j], ready[i] })
				for _, i := range ready[:1+mine.IntN(len(ready))] {
					if err := hand.RunJob(e.Ctx, i.ID); err != nil && !errors.Is(err, job.ErrStatus) {
						e.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// outcome compares what came out of a tree with what must come out, and the order.
func (e *env) outcome(h *client.Handle, s shape) {
	e.Helper()
	if i := e.Info(h); i.Status != statemachine.Completed {
		tree, err := h.Tree(e.Ctx)
		e.Check(err)
		for _, i := range tree {
			e.Logf("%s %s: %s %s", i.ID, i.Name, i.Status, i.Reason)
		}
		e.Errorf("the graph is %s", i.Status)
		return
	}
	got := map[int64][]int64{}
	for n, m := range enginetest.Outs[Num](e, h, "out") {
		got[m.Key] = append(got[m.Key], m.Val)
		if m.Seq != 0 && m.Seq != int64(n)+1 {
			e.Errorf("message %d came out at place %d", m.Seq, n+1)
		}
	}
	if !maps.EqualFunc(got, s.want, slices.Equal) {
		e.Errorf("got %v, want %v", got, s.want)
	}
}

// moved is how many messages ever came to each In port of a tree.
func (e *env) moved(h *client.Handle) map[string]int64 {
	e.Helper()
	tree, err := h.Tree(e.Ctx)
	e.Check(err)
	all := map[string]int64{}
	for _, i := range tree {
		for _, p := range i.Ports {
			if p.Dir == port.Input {
				all[fmt.Sprint(i.ID.Number(), ".", p.Name)] = p.Total
				if p.Waiting > 0 || !p.Closed {
					e.Errorf("in the end port %s of job %s holds %d messages; closed: %v", p.Name, i.Name, p.Waiting, p.Closed)
				}
			}
		}
	}
	return all
}

// All trees run at the same time, on engines of random sizes that are ended in the middle
// of what they do, or lose runs as if they had been.
func TestGraphsOnDyingEngines(t *testing.T) {
	e := newEnv(t, redistest.SharedRedis(t))
	e.register(gamblers(nil)...)
	trees := map[*client.Handle]shape{}
	for _, s := range shapes {
		for range byEngines {
			trees[e.Start(s.build())] = s
		}
	}
	ended, lost := e.chaos(func() bool {
		for h := range trees {
			if s := e.Info(h).Status; s != statemachine.Completed && s != statemachine.Failed {
				return false
			}
		}
		return true
	})
	for h, s := range trees {
		e.outcome(h, s)
	}
	e.Logf("%d trees; %d engines were ended, %d runs lost before their commit", len(trees), ended, lost)
	if ended == 0 || lost == 0 {
		e.Error("nothing went wrong: the test shows nothing")
	}
}

// chaos starts and ends engines until done.
func (e *env) chaos(done func() bool) (ended int, lost int64) {
	e.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	var living []*enginetest.Engine
	var died atomic.Int64
	begin := func() {
		d := newDice(rng.Uint64())
		d.pollInterval = time.Duration(1+rng.IntN(20)) * time.Millisecond
		living = append(living, e.Serve(worker.Config{
			Store: flaky{Store: e.Store, dice: d, dies: 50, died: &died}, Workers: gamblers(d),
			Concurrency: 1 + rng.IntN(6), Lease: 200 * time.Millisecond, Drain: time.Millisecond,
			Logger: slog.New(slog.DiscardHandler),
		}))
	}
	e.Within(3*enginetest.Patience, "all trees are completed", func() bool { // 20 s on a quiet machine with two cores
		if len(living) == 0 || len(living) < 3 && rng.IntN(2) == 0 {
			begin()
		} else {
			n := rng.IntN(len(living))
			living[n].Stop()
			living = slices.Delete(living, n, n+1)
			ended++
		}
		time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		return done()
	})
	return ended, died.Load()
}
