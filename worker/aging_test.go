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
		for range trees {
			b.feed(b.Start(job.Single(urgent, ""), job.WithPriority(900)), messages)
		}
		b.Start(job.Single(late, ""), job.WithPriority(100))
		defer b.serve(func(c *worker.Config) { c.Aging, c.Concurrency, c.Workers = aging, 1, append(everything(), &Alone{}) }).Stop()
		b.Until("the job of low priority has run", func() bool { return seen.Load() >= 0 })
		return seen.Load()
	}
	for shards, aging := range map[int]int{1: 4, 16: 2} { // in several shards a lot is for a turn of many runs, too
		// A slot may run it in the rest of a turn in which the last job of a higher priority of its shard has completed.
		most := map[int]int64{1: trees * messages, 16: trees * messages * 3 / 4}[shards]
		if n := before(0, shards); n < most {
			t.Errorf("%d shards: without Aging it began behind %d runs of a higher priority, want %d of %d", shards, n, most, trees*messages)
		}
		if n := before(aging, shards); n >= trees*messages/2 {
			t.Errorf("%d shards: with Aging it began behind %d runs of a higher priority, of which there were %d", shards, n, trees*messages)
		}
	}
}
