package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// most is the largest of the numbers that it was told of.
type most struct{ now, most atomic.Int64 }

func (m *most) add(n int64) {
	now := m.now.Add(n)
	for {
		old := m.most.Load()
		if now <= old || m.most.CompareAndSwap(old, now) {
			return
		}
	}
}

// However many jobs begin together, no more runs go on than there are slots, and places of their types, and few are handed back.
func TestTogetherKeepsToLimits(t *testing.T) {
	const concurrency, here, trees, jobs = 12, 9, 8, 60
	b := onRedis(t)
	var total, a, c most
	waits := func(own *most) func(context.Context) error { // for somebody who answers
		return func(context.Context) error {
			own.add(1)
			total.add(1)
			time.Sleep(2 * time.Millisecond)
			own.add(-1)
			total.add(-1)
			return nil
		}
	}
	first, second := &called{name: "A", run: waits(&a), here: here, together: 8}, &called{name: "C", run: waits(&c), together: 5}
	cfg := b.Config(&Count{}, first, second)
	l := &long{}
	store := &severalStore{Store: b.Store, long: l, lose: func(int64) (call, reply bool) { return false, false }}
	cfg.Store, cfg.Concurrency = store, concurrency
	b.Serve(cfg)
	rounds := 0
	for ; rounds == 0 || l.mostBegun() < 4 && rounds < 30; rounds++ { // on a busy machine slots may be at a job each for long
		var all []*client.Handle
		for range trees {
			g := graph.New("both")
			for i, w := range []*called{first, second} {
				count := graph.Add(g, fmt.Sprint("count", i), &Count{To: jobs})
				shared := graph.Add(g, fmt.Sprint("shared", i), &called{name: w.name}, graph.Instances(jobs))
				graph.Connect(count.Out, shared.In)
			}
			all = append(all, b.Start(g))
		}
		for _, h := range all {
			b.Await(h, "completed", func(i *job.Info) bool { return i.Status == statemachine.Completed })
		}
	}
	if n := total.most.Load(); n > concurrency {
		t.Errorf("%d runs went on at once, of %d slots", n, concurrency)
	}
	if n := a.most.Load(); n > here {
		t.Errorf("%d runs of a type went on at once, of which %d may", n, here)
	}
	if n := l.mostBegun(); n < 4 {
		t.Errorf("%d runs began at once at most", n)
	}
	// Several slots may take their first job at once.
	if n, of := store.handed.Load(), int64(2*rounds*trees*jobs); n > of/40 {
		t.Errorf("%d of %d runs were handed back", n, of)
	}
}

// Who has room again begins what it was told of while it had none, though nobody tells it again.
func TestMissedJobsBegin(t *testing.T) {
	for _, together := range []int{1, 8} {
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			b := onRedis(t)
			var runs atomic.Int64
			release := make(chan struct{})
			cfg := b.Config(&called{name: "A", here: 1, together: together, run: func(context.Context) error {
				if runs.Add(1) == 1 {
					<-release
				}
				return nil
			}})
			cfg.Store = unswept{b.Store}
			b.Serve(cfg)
			b.single(&called{name: "A"})
			b.Until("the first one runs", func() bool { return runs.Load() == 1 })
			for range 20 {
				b.single(&called{name: "A"})
			}
			time.Sleep(50 * time.Millisecond) // the engine hears of them
			close(release)
			b.Until("all have run", func() bool { return runs.Load() == 21 })
		})
	}
}

// What becomes ready while all places of its type are taken begins when one is free, whatever the engine knows of other shards.
func TestMissedJobsBeginInTime(t *testing.T) {
	b := newBenchOf(t, redistest.SharedRedis(t), 8)
	began := make(chan time.Time, 100)
	cfg := b.Config(&called{name: "A", here: 1, together: 1, run: func(context.Context) error {
		began <- time.Now()
		time.Sleep(30 * time.Millisecond)
		return nil
	}})
	cfg.Store, cfg.Concurrency = unswept{b.Store}, 8
	b.Serve(cfg)
	for round := range 12 {
		for range 3 {
			b.single(&called{name: "A"})
		}
		time.Sleep(time.Duration(20+rand.IntN(50)) * time.Millisecond)
		b.single(&called{name: "A"})
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		b.single(&called{name: "A"})
		for n := range 5 {
			select {
			case <-began:
			case <-time.After(30 * time.Second): // nobody else brings it
				t.Fatalf("round %d: %d of 5 jobs have begun", round, n)
			}
		}
	}
}

// pops notes how many runs one Pop has begun at most.
type pops struct {
	worker.Store
	most most
}

func (p *pops) Pop(ctx context.Context, queue string, shard int, gen int64, b store.Begin, types []string) ([]*store.Snapshot, error) {
	begun, err := p.Store.Pop(ctx, queue, shard, gen, b, types)
	p.most.add(int64(len(begun)))
	p.most.add(-int64(len(begun)))
	return begun, err
}

// A slot that begins anew begins several jobs at once, too, once it is known of which type.
func TestPopsBeginSeveral(t *testing.T) {
	b := onRedis(t)
	var runs atomic.Int64
	cfg := b.Config(&called{name: "A", here: 8, together: 4, run: func(context.Context) error {
		runs.Add(1)
		return nil
	}})
	store := &pops{Store: b.Store}
	cfg.Store, cfg.Concurrency = store, 8
	b.Serve(cfg)
	rounds := int64(0)
	for ; store.most.most.Load() < 2 && rounds < 30; rounds++ {
		for range 100 {
			b.single(&called{name: "A"})
		}
		b.Until("all have run", func() bool { return runs.Load() == 100*(rounds+1) })
	}
	if n := store.most.most.Load(); n < 2 || n > 4 {
		t.Errorf("after %d rounds a Pop has begun %d jobs at once, of 4 at most", rounds, n)
	}
}

// Long runs have all the places of their type, however many of its jobs would begin together.
func TestTogetherFillsPlaces(t *testing.T) {
	for _, here := range []int{2, 16} {
		t.Run(fmt.Sprint(here), func(t *testing.T) {
			b := onRedis(t)
			var now atomic.Int64
			release := make(chan struct{})
			cfg := b.Config(&called{name: "A", here: here, together: store.MostSeveral, run: func(context.Context) error {
				now.Add(1)
				<-release
				return nil
			}})
			cfg.Concurrency = 4 * here
			b.Serve(cfg)
			defer close(release)
			for range 2 * here {
				b.single(&called{name: "A"})
			}
			b.Until("all places are taken", func() bool { return now.Load() == int64(here) })
		})
	}
}

// Hops takes a moment to pass on what it reads.
type Hops struct {
	In  port.In[int]  `port:"in"`
	Out port.Out[int] `port:"out"`

	here, together int
}

func (w *Hops) WorkerOptions() worker.Options {
	return worker.Options{Together: w.together, MaxRunningHere: w.here, Pure: true}
}

func (w *Hops) Run(context.Context, *worker.Run) error {
	time.Sleep(time.Millisecond)
	return copied(&w.In, &w.Out)
}

// Runs that follow each other in one turn, of one job or of several of a type, bear it that there is no place for them.
func TestPlacesOfRunsInARow(t *testing.T) {
	const messages = 3
	for _, together := range []int{1, 2} {
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			b := newBenchOf(t, redistest.SharedRedis(t), 1)
			cfg := b.Config(&Count{}, &Hops{here: 2, together: together})
			cfg.Concurrency = 8
			e, err := worker.New(cfg)
			b.Check(err)
			b.Check(e.Register(b.Ctx)) // all jobs are there before any runs
			var all []*client.Handle
			for range 40 {
				g := graph.New("hops")
				count := graph.Add(g, "count", &Count{To: messages})
				out := count.Out
				for n := range 4 {
					hop := graph.Add(g, fmt.Sprint("hop", n), &Hops{})
					graph.Connect(out, hop.In)
					out = hop.Out
				}
				graph.Export(g, "out", out)
				all = append(all, b.Start(g))
			}
			b.Serve(cfg)
			for _, h := range all {
				b.Await(h, "completed", func(i *job.Info) bool { return i.Status == statemachine.Completed })
				for want := 1; want <= messages; want++ {
					var got int
					ok, err := h.Read(b.Ctx, "out", &got)
					if b.Check(err); !ok || got != want {
						t.Fatalf("message %d is %d, %v", want, got, ok)
					}
				}
			}
		})
	}
}
