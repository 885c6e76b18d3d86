package worker_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// order is in which order jobs ran.
type order struct {
	mu   sync.Mutex
	done []string
}

// quantum is longer than a slot stays in a shard.
const quantum = 110 * time.Millisecond

// slow returns a worker whose runs take longer than a quantum.
func (o *order) slow(t *testing.T, name string, then func()) *Call {
	return call(t, func(context.Context, *worker.Run, *Call) error {
		o.mu.Lock()
		o.done = append(o.done, name)
		o.mu.Unlock()
		if then != nil {
			then()
		}
		time.Sleep(quantum)
		return nil
	})
}

func (o *order) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.done)
}

// Jobs of a higher priority run first, whatever their shards, and those that come later as soon as a slot is free.
func TestPrioritiesAcrossShards(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		b := &bench{*enginetest.New(t, redisstore.Config{URL: url, Shards: 16})}
		var o order
		start := func(n, priority int, name string, then func()) {
			for range n {
				b.Start(job.Single(o.slow(t, name, then), ""), job.WithPriority(priority))
			}
		}
		// An engine that starts looks for ready jobs everywhere, and may tell of one that has begun meanwhile.
		var busy enginetest.Gate
		begun := make(chan struct{})
		b.Start(job.Single(call(t, func(ctx context.Context, _ *worker.Run, _ *Call) error {
			close(begun)
			time.Sleep(quantum)
			return busy.Pass(ctx)
		}), ""))
		defer b.serve(func(c *worker.Config) { c.Concurrency = 1 }).Stop()
		<-begun
		start(6, 500, "middle", nil)
		start(3, 100, "low", nil)
		start(3, 900, "high", nil)
		start(3, 700, "better", nil)
		start(1, 600, "asking", func() { start(1, 1000, "late", nil) })
		start(3, 500, "middle", nil)
		start(3, 900, "high", nil)
		want := strings.Fields(strings.Repeat("high ", 6) + strings.Repeat("better ", 3) + "asking late " + strings.Repeat("middle ", 9) + strings.Repeat("low ", 3))
		busy.Open()
		b.Until("all have run", func() bool { return len(o.all()) == len(want) })
		if got := o.all(); early(got, want) > 1 {
			t.Errorf("ran\n%v, want\n%v", got, want)
		}
	})
}

// early returns how many jobs came too early, if all others came in order. One may: the sweeper may tell of a job that a slot is
// about to take, and what follows it in its shard is taken for as urgent then.
func early(got, want []string) (n int) {
	left := slices.Clone(want)
	for _, name := range got {
		at := slices.Index(left, name)
		if at > 0 {
			n++
		}
		left = slices.Delete(left, at, at+1)
	}
	return n
}

// A job whose priority rises while it is ready gets its new turn, also if others of its shard and type are ready.
func TestPriorityRises(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, redistest.SharedRedis(t), 8)
	var o order
	for range 12 {
		b.Start(job.Single(o.slow(t, "other", nil), ""))
	}
	h := b.Start(job.Single(o.slow(t, "risen", nil), ""))
	b.Check(h.SetPriority(b.Ctx, 501))
	defer b.serve(func(c *worker.Config) { c.Concurrency = 1 }).Stop()
	b.Until("all have run", func() bool { return len(o.all()) == 13 })
	if got := o.all(); got[0] != "risen" {
		t.Errorf("ran %v", got)
	}
}

// Engines that cannot run the first job of a shard let other shards have their turns before it.
func TestForeignPriority(t *testing.T) {
	t.Parallel()
	const shards = 4
	b := newBenchOf(t, redistest.SharedRedis(t), shards)
	var o order
	foreign := &Alone{*call(t, func(context.Context, *worker.Run, *Call) error { return nil })}
	for range 4 * shards { // in all shards, very likely
		b.Start(job.Single(foreign, ""), job.WithPriority(1000))
	}
	for range 3 * shards {
		b.Start(job.Single(o.slow(t, "low", nil), ""), job.WithPriority(100))
	}
	for range 2 * shards {
		b.Start(job.Single(o.slow(t, "high", nil), ""), job.WithPriority(200))
	}
	defer b.serve(func(c *worker.Config) { c.Concurrency = 1 }).Stop()
	b.Until("all have run", func() bool { return len(o.all()) == 5*shards })
	// The first notification of each shard is the foreign job's, and the sweeper may bring another one.
	got := o.all()
	if n := early(got[shards:], slices.Sorted(slices.Values(got[shards:]))); n > 1 {
		t.Errorf("ran %v", got)
	}
}

// A slot with a short urgent job does not go on with a job of a lower priority of the same shard while other shards have urgent ones.
func TestShortUrgentJobs(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		b := &bench{*enginetest.New(t, redisstore.Config{URL: url, Shards: 4})}
		var o order
		short := call(t, func(context.Context, *worker.Run, *Call) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.done = append(o.done, "high")
			return nil
		})
		for range 12 { // in all shards, very likely
			b.Start(job.Single(o.slow(t, "low", nil), ""))
		}
		for range 12 {
			b.Start(job.Single(short, ""), job.WithPriority(900))
		}
		want := slices.Concat(slices.Repeat([]string{"high"}, 12), slices.Repeat([]string{"low"}, 12))
		defer b.serve(func(c *worker.Config) { c.Concurrency = 1 }).Stop()
		b.Until("all have run", func() bool { return len(o.all()) == len(want) })
		if got := o.all(); early(got, want) > 1 {
			t.Errorf("ran %v", got)
		}
	})
}

// A job whose priority falls while it is ready loses its turn, also if the notification of its shard was placed for it.
func TestPriorityFalls(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, redistest.SharedRedis(t), 16)
	var o order
	var fallen []*client.Handle
	for range 6 {
		fallen = append(fallen, b.Start(job.Single(o.slow(t, "z", nil), ""), job.WithPriority(900)))
		b.Start(job.Single(o.slow(t, "other", nil), ""))
	}
	for _, h := range fallen {
		b.Check(h.SetPriority(b.Ctx, 100))
	}
	defer b.serve(func(c *worker.Config) { c.Concurrency = 1 }).Stop()
	b.Until("all have run", func() bool { return len(o.all()) == 12 })
	if got := o.all(); !slices.IsSorted(got) {
		t.Errorf("ran %v", got)
	}
}

// An engine takes no job of a low priority because the first job of its shard, which only another engine runs, has a high one.
func TestPrioritiesBesideAnotherEngine(t *testing.T) {
	t.Parallel()
	const shards = 16
	b := newBenchOf(t, redistest.SharedRedis(t), shards)
	var o order
	put := func(n int, w worker.Worker, priority int, first bool) {
		for range n {
			id, err := job.NewID()
			for b.Check(err); (id.Shard(shards) == 0) != first; b.Check(err) {
				id, err = job.NewID()
			}
			plan, err := job.Single(w, "").Plan()
			b.Check(err)
			plan.Nodes[0].Priority = &priority
			_, err = b.Store.Create(b.Ctx, id, plan, "test")
			b.Check(err)
		}
	}
	theirs := &Alone{*call(t, func(context.Context, *worker.Run, *Call) error {
		time.Sleep(20 * time.Millisecond)
		return nil
	})}
	put(200, theirs, 900, true)
	put(10, o.slow(t, "low", nil), 100, true)
	put(20, o.slow(t, "high", nil), 600, false)
	defer b.serve(func(c *worker.Config) { c.Concurrency, c.Workers = 1, []worker.Worker{&Alone{}} }).Stop()
	defer b.serve(func(c *worker.Config) { c.Concurrency = 1 }).Stop()
	b.Until("all have run", func() bool { return len(o.all()) == 30 })
	if got := o.all(); early(got, slices.Sorted(slices.Values(got))) > 1 {
		t.Errorf("ran %v", got)
	}
}
