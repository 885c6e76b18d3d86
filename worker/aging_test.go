package worker_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// A job of a low priority begins behind all others, or, where engines have Aging, behind some.
func TestAging(t *testing.T) {
	t.Parallel()
	const trees, messages = 4, 1200
	before := func(aging, shards int) int64 {
		b := newBenchOf(t, redistest.SharedRedis(t), shards)
		var high, seen atomic.Int64
		seen.Store(-1)
		urgent := &Alone{*call(t, passing(&high, nil))} // one lot for each run
		late := call(t, func(context.Context, *worker.Run, *Call) error {
			seen.Store(high.Load())
			return nil
		})
		taken := map[int]bool{}
		for range trees {
			h := b.Start(job.Single(urgent, ""), job.WithPriority(900))
			b.feed(h, messages)
			taken[h.ID().Shard(shards)] = shards > 1
		}
		// Not where others are: a slot may run it in the rest of a turn in which the last of them has completed.
		id, err := job.NewID()
		for b.Check(err); taken[id.Shard(shards)]; b.Check(err) {
			id, err = job.NewID()
		}
		plan, err := job.Single(late, "").Plan()
		b.Check(err)
		plan.Nodes[0].Priority = new(100)
		_, err = b.Store.Create(b.Ctx, id, plan, "test")
		b.Check(err)
		defer b.serve(func(c *worker.Config) { c.Aging, c.Concurrency, c.Workers = aging, 1, append(everything(), &Alone{}) }).Stop()
		b.Until("the job of low priority has run", func() bool { return seen.Load() >= 0 })
		return seen.Load()
	}
	for shards, aging := range map[int]int{1: 4, 16: 2} { // in several shards a lot is for a turn of many runs, too
		if n := before(0, shards); n < trees*messages {
			t.Errorf("%d shards: without Aging it began behind %d runs of a higher priority, want all %d", shards, n, trees*messages)
		}
		if n := before(aging, shards); n >= trees*messages/2 {
			t.Errorf("%d shards: with Aging it began behind %d runs of a higher priority, of which there were %d", shards, n, trees*messages)
		}
	}
}
