package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/redistest"
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

// Shared waits for a moment, as code does that somebody else answers.
type Shared struct {
	In port.In[int] `port:"in"`

	name       string
	own, total *most
	here       int
	together   int
}

func (w *Shared) JobType() string { return w.name }

func (w *Shared) WorkerOptions() worker.Options {
	return worker.Options{Together: w.together, MaxRunningHere: w.here, CommitEachRun: true}
}

func (w *Shared) Run(context.Context, *worker.Run) error {
	w.own.add(1)
	w.total.add(1)
	time.Sleep(2 * time.Millisecond)
	w.own.add(-1)
	w.total.add(-1)
	for _, err := range w.In.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// However many jobs begin together, no more runs go on than there are slots, and places of their types, and few are handed back.
func TestTogetherKeepsToLimits(t *testing.T) {
	const concurrency, here, trees, jobs = 12, 9, 8, 60
	b := onRedis(t)
	var total, a, c most
	first, second := &Shared{name: "A", own: &a, total: &total, here: here, together: 8}, &Shared{name: "C", own: &c, total: &total, together: 5}
	cfg := b.Config(&Count{}, first, second)
	l := &long{}
	store := &severalStore{Store: b.Store, long: l, lose: func(int64) (call, reply bool) { return false, false }}
	cfg.Store, cfg.Concurrency = store, concurrency
	b.Serve(cfg)
	var all []*job.Handle
	for range trees {
		g := graph.New("both")
		for i, w := range []*Shared{first, second} {
			count := graph.Add(g, fmt.Sprint("count", i), &Count{To: jobs})
			shared := graph.Add(g, fmt.Sprint("shared", i), &Shared{name: w.name}, graph.Instances(jobs))
			graph.Connect(count.Out, shared.In)
		}
		all = append(all, b.Start(g))
	}
	for _, h := range all {
		b.Await(h, "completed", func(i *job.Info) bool { return i.Status == statemachine.Completed })
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
	if n := store.handed.Load(); n > trees*jobs/20 {
		t.Errorf("%d of %d runs were handed back", n, 2*trees*jobs)
	}
}

// What waits because as many runs go on as may begins when one ends, also where Redis tells nobody of it.
func TestTogetherMissesNothing(t *testing.T) {
	b := onRedis(t)
	var total, own most
	w := &Shared{name: "A", own: &own, total: &total, here: 2, together: 2}
	cfg := b.Config(&Count{}, w)
	cfg.Concurrency = 4
	b.Serve(cfg)
	var all []*job.Handle
	for range 60 { // of several shards, each with a job or two
		g := graph.New("one")
		count := graph.Add(g, "count", &Count{To: 2})
		shared := graph.Add(g, "shared", &Shared{name: w.name}, graph.Instances(2))
		graph.Connect(count.Out, shared.In)
		all = append(all, b.Start(g))
	}
	began := time.Now()
	for _, h := range all {
		b.Await(h, "completed", func(i *job.Info) bool { return i.Status == statemachine.Completed })
	}
	t.Log(time.Since(began))
}

// Long runs have all the places of their type, however many of its jobs would begin together.
func TestTogetherFillsPlaces(t *testing.T) {
	for _, here := range []int{2, 16} {
		t.Run(fmt.Sprint(here), func(t *testing.T) {
			b := onRedis(t)
			var now atomic.Int64
			release := make(chan struct{})
			w := &Hops{here: here, together: job.MostSeveral, run: func() { now.Add(1); <-release }}
			cfg := b.Config(w)
			cfg.Concurrency = 4 * here
			b.Serve(cfg)
			defer close(release)
			for range 2 * here {
				b.single(&Hops{})
			}
			b.Until("all places are taken", func() bool { return now.Load() == int64(here) })
		})
	}
}

// Hops passes on what it reads.
type Hops struct {
	In  port.In[int]  `port:"in"`
	Out port.Out[int] `port:"out"`

	here, together int
	run            func()
}

func (w *Hops) WorkerOptions() worker.Options {
	return worker.Options{Together: w.together, MaxRunningHere: w.here, Pure: true}
}

func (w *Hops) Run(context.Context, *worker.Run) error {
	if w.run != nil {
		w.run()
	}
	for v, err := range w.In.All() {
		if err != nil {
			return err
		}
		if err := w.Out.Write(v); err != nil {
			return err
		}
	}
	return nil
}

// Runs that follow each other in one turn, of one job or of several of a type, bear it that there is no place for them.
func TestPlacesOfRunsInARow(t *testing.T) {
	const messages = 3
	for _, together := range []int{1, 2} {
		t.Run(fmt.Sprint(together), func(t *testing.T) {
			b := newBenchOf(t, redistest.SharedRedis(t), 1)
			cfg := b.Config(&Count{}, &Hops{here: 2, together: together, run: func() { time.Sleep(time.Millisecond) }})
			cfg.Concurrency = 8
			e, err := worker.New(cfg)
			b.Check(err)
			b.Check(e.Register(b.Ctx)) // all jobs are there before any runs
			var all []*job.Handle
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
