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
	const trees, messages = 4, 100
	before := func(aging int) int64 {
		b := newBenchOf(t, redistest.SharedRedis(t), 1)
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
	if n := before(0); n < trees*messages {
		t.Errorf("without Aging it began behind %d runs of a higher priority, want all %d", n, trees*messages)
	}
	if n := before(4); n >= trees*messages/2 {
		t.Errorf("with Aging it began behind %d runs of a higher priority, of which there were %d", n, trees*messages)
	}
}
