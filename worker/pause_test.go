package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// queue returns what is known of a queue.
func (b *bench) queue(name string) redisstore.QueueInfo {
	b.Helper()
	all, err := b.Store.Queues(b.Ctx)
	b.Check(err)
	for _, q := range all {
		if q.Name == name {
			return q
		}
	}
	b.Fatalf("queue %s is not among %+v", name, all)
	return redisstore.QueueInfo{}
}

// turn pauses or resumes the default queue.
func (b *bench) turn(fn func(context.Context, string) (bool, error), want bool) {
	b.Helper()
	changed, err := fn(b.Ctx, job.DefaultQueue)
	b.Check(err)
	if changed != want {
		b.Errorf("pausing or resuming says %t, want %t", changed, want)
	}
}

// An engine that drains a queue stops doing so when it is paused, and goes on where it was.
func TestPausedQueueRunsNothing(t *testing.T) {
	each(t, func(b *bench) {
		const jobs, messages = 3, 100
		var all []*client.Handle
		want := []int{}
		for i := range messages {
			want = append(want, 2*i)
		}
		for range jobs {
			h := b.single(&Double{Most: 1, Pause: 2 * time.Millisecond})
			for i := range messages {
				b.Check(h.Write(b.Ctx, "in", i))
			}
			all = append(all, h)
		}
		steps := func() (n int64) {
			for _, h := range all {
				info := b.Info(h)
				n += info.Steps
			}
			return n
		}
		b.serve(func(c *worker.Config) { c.Queues = map[string]int{job.DefaultQueue: 1, "other": 1} })
		b.Until("jobs run", func() bool { return steps() > 10 })
		b.turn(b.Store.PauseQueue, true)
		b.turn(b.Store.PauseQueue, false)
		b.Until("nothing runs", func() bool {
			q := b.queue(job.DefaultQueue)
			return q.Paused && q.Active == 0 && q.Pending == jobs
		})
		before := steps()
		if before >= jobs*messages {
			b.Fatal("the jobs were done before the pause: it proves nothing")
		}

		// Meanwhile jobs of other queues run, and a sweep does not wake those of this one.
		other, err := b.Client.Create(b.Ctx, job.New{Type: "Count", Queue: "other"})
		b.Check(err)
		b.Completed(other, 1)
		_, err = b.Store.Sweep(b.Ctx)
		b.Check(err)
		if after := steps(); after != before {
			b.Errorf("%d steps when nothing ran any more, later %d", before, after)
		}

		b.turn(b.Store.ResumeQueue, true)
		b.turn(b.Store.ResumeQueue, false)
		for _, h := range all {
			b.Completed(h, messages)
			b.same(h, want...)
		}
	})
}

// A run in progress ends in spite of the pause; what it makes ready waits.
func TestPauseDuringARun(t *testing.T) {
	each(t, func(b *bench) {
		var end enginetest.Gate
		var runs atomic.Int64
		h := b.single(call(b, func(ctx context.Context, _ *worker.Run, _ *Call) error {
			if runs.Add(1) > 1 {
				return nil
			}
			if err := end.Pass(ctx); err != nil {
				return err
			}
			return worker.ErrAgain
		}))
		b.serve()
		b.Until("it runs", func() bool { return runs.Load() == 1 })
		b.turn(b.Store.PauseQueue, true)
		// Until then a slot may go on with what its run made ready.
		for quantum := time.Now().Add(100 * time.Millisecond); time.Now().Before(quantum); time.Sleep(enginetest.PollInterval) {
			b.Check(b.Ctx.Err())
		}
		end.Open()
		b.Reach(h, 1, statemachine.Queued)
		b.Until("it is in line", func() bool { q := b.queue(job.DefaultQueue); return q.Pending == 1 && q.Active == 0 })
		_, err := b.Store.Sweep(b.Ctx)
		b.Check(err)
		if n := runs.Load(); n != 1 {
			b.Errorf("%d runs of a job of a paused queue", n)
		}
		b.turn(b.Store.ResumeQueue, true)
		b.Completed(h, 2)
	})
}
