package redisstore_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// What a server hears that is stopping, another one hears at once: asynq would keep it for seconds, and nobody could ring again
// meanwhile.
func TestStoppingServersPassOn(t *testing.T) {
	each(t, func(e *env) {
		b := e.store.(*redisstore.Store).Broker().(*delivery.Broker)
		heard := make(chan delivery.Notification, 10)
		serve := func(answer error) delivery.Server {
			s, err := b.Serve(delivery.ServeConfig{
				Concurrency: 1, Queues: map[string]int{job.DefaultQueue: 1}, Logger: slog.New(slog.DiscardHandler), Closing: func() {},
				Handle: func(_ context.Context, n delivery.Notification) error {
					heard <- n
					return answer
				},
			})
			e.Check(err)
			return s
		}
		first := serve(delivery.ErrStopping)
		e.create(job.Node{Type: "T"})
		n := <-heard
		first.Stop()
		for len(heard) > 0 { // it rang for itself, too
			n = <-heard
		}
		retried := "asynq:{weir:" + e.Namespace + ":" + job.DefaultQueue + "}:retry"
		if held := e.Redis.ZCard(e.Context(), retried).Val(); held != 0 {
			e.Errorf("asynq keeps %d notifications for later", held)
		}
		second := serve(nil)
		defer second.Stop()
		select {
		case again := <-heard:
			if again.Shard != n.Shard || again.Gen <= n.Gen {
				e.Errorf("heard %v, then %v", n, again)
			}
		case <-time.After(30 * time.Second):
			e.Error("nobody else heard it")
		}
	})
}
