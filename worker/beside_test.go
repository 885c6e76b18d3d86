package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// Jobs begin in the order of their priorities also beside an engine of another process that does not run them, and hears of them.
func TestPrioritiesBesideWhoRunsOthers(t *testing.T) {
	t.Parallel()
	const each, slots = 500, 8
	url := redistest.SharedRedis(t)
	b := newBenchOf(t, url, 16)
	other, err := redisstore.Open(b.Ctx, redisstore.Config{URL: url, Namespace: b.Namespace})
	b.Check(err)
	t.Cleanup(func() { b.Check(other.Close()) })
	var mu sync.Mutex
	var begun []int
	for n := range 3 * each {
		priority := []int{500, 0, 1000}[n%3]
		b.Start(job.Single(call(t, func(context.Context, *worker.Run, *Call) error {
			mu.Lock()
			begun = append(begun, priority)
			mu.Unlock()
			time.Sleep(2 * time.Millisecond)
			return nil
		}), ""), job.WithPriority(priority))
	}
	cfg := b.Config(&Count{})
	cfg.Store = other
	defer b.Serve(cfg).Stop()
	defer b.serve(func(c *worker.Config) { c.Concurrency = slots }).Stop()
	b.Until("all have run", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(begun) == 3*each
	})
	last, early := 0, 0 // of the jobs with 500, and how many with 0 began before it
	for i, p := range begun {
		if p == 500 {
			last = i
		}
	}
	for _, p := range begun[:last] {
		if p == 0 {
			early++
		}
	}
	if early > 5*slots {
		t.Errorf("%d jobs of priority 0 began before the last of priority 500, want %d at most", early, 5*slots)
	}
}
