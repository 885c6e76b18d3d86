package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// unswept is a store whose sweeper never comes.
type unswept struct{ *redisstore.Store }

func (unswept) Lead(ctx context.Context, _ func(context.Context)) (time.Duration, error) {
	<-ctx.Done()
	return 0, nil
}

// A timer does not wait for the sweeper while the process that set it lives.
func TestTimersWithoutSweeper(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) {
			c.Store = unswept{b.Store}
			c.Workers = []worker.Worker{&reminder{}}
		})
		h := b.Start(job.Single(&reminder{}, ""))
		b.Check(h.Write(b.Ctx, "in", 1))
		b.Until("the timer has fired", func() bool { return len(enginetest.Outs[time.Time](b, h, "out")) >= 2 })
	})
}

// An engine that stops tells those who sweep of the timers that it held: nobody else is on time with them.
func TestTimersOfAnEngineThatStops(t *testing.T) {
	each(t, func(b *bench) {
		e := b.serve(func(c *worker.Config) {
			c.Store = unswept{b.Store}
			c.Workers = []worker.Worker{&reminder{}}
		})
		h := b.Start(job.Single(&reminder{}, ""))
		b.Check(h.Write(b.Ctx, "in", 1800))
		b.Until("a timer is set", func() bool { return len(enginetest.Outs[time.Time](b, h, "out")) >= 1 })
		broker := b.Store.Broker().(*delivery.Broker)
		broker.AskedDue()
		e.Stop()
		if _, all := broker.AskedDue(); !all {
			t.Error("nobody was told")
		}
	})
}
