package delivery

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
)

// listen counts what a process hears that is no server, and returns how to wait for more.
func listen(t *testing.T, b *Broker) (more func(what string)) {
	t.Helper()
	heard := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		b.Listen(ctx, func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
	})
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	more = func(what string) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(pollInterval / 2): // it does not come by itself before
			t.Errorf("nothing was heard of %s", what)
		}
	}
	more("the beginning")
	return more
}

// Who listens hears of notifications that asynq has, of those that it does not have, and of queues that go on, from this process and
// from others.
func TestListen(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		ns := redistest.Namespace(t)
		here, other := opened(t, url, ns), opened(t, url, ns)
		more := listen(t, here)
		for _, b := range []*Broker{here, other} {
			ring(t, b, 1, "a")
			more("a bell of asynq")
			b.Forward(t.Context(), notificationOfT(2, "a"))
			more("a bell that asynq does not have")
			if _, err := b.Pause(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			more("a pause")
			if open, err := here.Open(t.Context(), []string{"a", "b"}); err != nil || len(open) != 1 || open[0] != "b" {
				t.Errorf("open are %v, %v", open, err)
			}
			if _, err := b.Resume(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			more("a queue that goes on")
		}
	})
}

// A process goes on hearing others when one of two of its servers stops.
func TestStopOneOfTwo(t *testing.T) {
	b := New(client(t, redistest.SharedRedis(t)), redistest.Namespace(t))
	cfg := ServeConfig{Queues: map[string]int{"a": 1}, Handle: (&taken{}).handle}
	first, second := serve(t, b, cfg), serve(t, b, cfg)
	for end := time.Now().Add(30 * time.Second); b.notifier.hears.Load() < 2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	first.Stop()
	if b.notifier.hears.Load() != 1 {
		t.Error("the process does not know that it hears")
	}
	second.Stop()
}
