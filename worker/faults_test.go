package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/worker"
)

// Redis refuses, or does not answer, for longer than the driver is patient. Nothing is lost
// or done twice, and when it is over work goes on soon.
func TestRedisRefusesForAWhile(t *testing.T) {
	t.Parallel()
	do := func(words ...any) func(b *bench, s *redistest.Server) {
		return func(b *bench, s *redistest.Server) {
			b.Helper()
			b.Check(s.Client(b.T).Do(b.Ctx, words...).Err())
		}
	}
	for name, c := range map[string]struct {
		begin, end func(b *bench, s *redistest.Server)
	}{
		"replica": {do("REPLICAOF", "127.0.0.1", "1"), do("REPLICAOF", "NO", "ONE")},
		"full":    {do("CONFIG", "SET", "maxmemory", "1"), do("CONFIG", "SET", "maxmemory", "0")},
		"silent": {
			func(_ *bench, s *redistest.Server) { s.Pause() },
			func(_ *bench, s *redistest.Server) { s.Resume() },
		},
		"gone": {
			func(_ *bench, s *redistest.Server) { s.Kill() },
			func(_ *bench, s *redistest.Server) { s.Restart() },
		},
		"busy": {
			func(_ *bench, s *redistest.Server) {
				c := redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: -1, MaxRetries: -1})
				go func() {
					defer c.Close()
					_ = c.Eval(context.Background(), "while true do end", nil).Err() // until it is killed
				}()
			},
			do("SCRIPT", "KILL"),
		},
		"forgetful": {do("SCRIPT", "FLUSH"), do("FUNCTION", "FLUSH")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always", "--busy-reply-threshold", "50")
			b := newBench(t, r.URL())
			b.serve()
			s := b.tell(5 * time.Millisecond)
			b.Until("some runs are committed", func() bool { return s.begun(5) })
			c.begin(b, r)
			time.Sleep(3 * time.Second)
			c.end(b, r)
			over, first := time.Now(), int64(-1)
			b.Until("work goes on", func() bool {
				n, known := s.steps()
				if known && first < 0 {
					first = n
				}
				return known && n > first || s.over()
			})
			took := time.Since(over)
			b.Logf("work went on after %s", took.Round(time.Millisecond))
			if took > 10*time.Second { // two seconds on a machine with nothing else to do
				b.Errorf("work went on after %s only", took)
			}
			s.check()
		})
	}
}

// Redis goes away between the opening of the store and the start of an engine, which waits for it.
func TestStartWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	b := newBench(t, r.URL())
	h := b.single(call(b, func(_ context.Context, _ *worker.Run, w *Call) error { return w.Out.Write(1) }))
	r.Kill()
	e := b.serve(func(cfg *worker.Config) { cfg.QueueLimits = map[string]int{"default": 2} })
	select {
	case <-e.Done:
		b.Fatalf("the engine has ended: %v", e.Err)
	case <-time.After(3 * time.Second): // longer than the driver is patient
	}
	if e.Ready() == nil {
		b.Error("the engine says that it is ready")
	}
	r.Restart()
	b.Completed(h, 1)
	b.same(h, 1)
	r.Kill()
	again := b.serve()
	again.Stop() // one that waits for Redis can be stopped
}

// steps is how many runs of the story have been committed, if Redis tells.
func (s *story) steps() (n int64, known bool) {
	for _, h := range []*client.Handle{s.fib, s.sum, s.line} {
		ctx, cancel := context.WithTimeout(s.bench.Ctx, 100*time.Millisecond)
		infos, err := h.Tree(ctx)
		cancel()
		if err != nil {
			return 0, false
		}
		for _, i := range infos {
			n += i.Steps
		}
	}
	return n, true
}
