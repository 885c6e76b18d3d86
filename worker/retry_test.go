package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// An error that another try cannot help ends the tries at once.
func TestPermanent(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		runs := atomic.Int64{}
		lost := errors.New("no such order")
		h := b.single(&Tried{Call: *call(b, func(context.Context, *worker.Run, *Call) error {
			runs.Add(1)
			return fmt.Errorf("paying: %w", worker.Permanent(lost))
		})})
		f := b.Failure(h)
		if f.Error != "paying: no such order" || f.Try != 1 || runs.Load() != 1 {
			b.Errorf("failure %+v after %d runs", f, runs.Load())
		}
	})
}

// RetryAfter says when the next try is, and each failed try is kept with its number.
func TestRetryAfter(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		runs := atomic.Int64{}
		h := b.single(&Tried{Call: *call(b, func(context.Context, *worker.Run, *Call) error {
			if runs.Add(1) == 1 {
				return worker.RetryAfter(0, errors.New("busy"))
			}
			return worker.RetryAfter(time.Hour, errors.New("closed"))
		})})
		info := b.Reach(h, 0, job.Scheduled)
		b.Until("the second try has failed", func() bool {
			info = b.Info(h)
			return info.Status == job.Scheduled && info.Tries == 2
		})
		if in := info.Next.Sub(info.Ran); in < 59*time.Minute || in > 61*time.Minute || info.Reason != "closed" {
			b.Errorf("the next try is after %s, as %q", in, info.Reason)
		}
		fs, err := h.Failures(b.Ctx)
		b.Check(err)
		if len(fs) != 2 || fs[0].Try != 2 || fs[0].Error != "closed" || fs[1].Try != 1 || fs[1].Error != "busy" {
			b.Errorf("failures %+v", fs)
		}
	})
}

func TestNoError(t *testing.T) {
	t.Parallel()
	if worker.Permanent(nil) != nil || worker.RetryAfter(time.Second, nil) != nil {
		t.Error("no error became one")
	}
	kind := errors.New("kind")
	if !errors.Is(worker.Permanent(kind), kind) || !errors.Is(worker.RetryAfter(1, kind), kind) {
		t.Error("what they wrap is not found")
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	constant := worker.ConstantBackoff(time.Minute)
	growing := worker.ExponentialBackoff(time.Second, 10*time.Second)
	several := map[time.Duration]bool{}
	for failures, most := range []time.Duration{1: time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 100: 10 * time.Second} {
		if failures == 0 || most == 0 {
			continue
		}
		if d := constant(failures, nil); d != time.Minute {
			t.Errorf("constant: %s after %d failures", d, failures)
		}
		if d := growing(failures, nil); d != most {
			t.Errorf("growing: %s after %d failures, want %s", d, failures, most)
		}
		for range 50 {
			d := growing.Jittered()(failures, nil)
			if d > most || d <= most*8/10 {
				t.Fatalf("%s after %d failures, want up to a fifth less than %s", d, failures, most)
			}
			several[d] = true
		}
	}
	if d := worker.ConstantBackoff(0).Jittered()(1, nil); d != 0 {
		t.Errorf("%s of nothing", d)
	}
	if len(several) < 50 {
		t.Errorf("only %d delays: there is no jitter", len(several))
	}
}

// Wayward has a backoff of its own, which may panic.
type Wayward struct{ Call }

var errGrave = errors.New("grave")

// WorkerOptions implements worker.Configured.
func (*Wayward) WorkerOptions() worker.Options {
	return worker.Options{Tries: 3, Backoff: func(failures int, err error) time.Duration {
		if errors.Is(err, errGrave) {
			panic("no idea")
		}
		return time.Duration(failures) * time.Hour
	}}
}

func TestBackoffFunction(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) { c.Workers = append(c.Workers, &Wayward{}) })
		for err, most := range map[error]time.Duration{errors.New("light"): time.Hour, errGrave: time.Second} {
			h := b.single(&Wayward{Call: *call(b, func(context.Context, *worker.Run, *Call) error { return err })})
			b.Until("the first try has failed", func() bool {
				fs, err := h.Failures(b.Ctx)
				b.Check(err)
				return len(fs) > 0
			})
			info, infoErr := h.Info(b.Ctx)
			b.Check(infoErr)
			if in := info.Next.Sub(info.Ran); info.Tries == 1 && (in < most/2 || in > most+time.Minute) {
				b.Errorf("%v: the next try is after %s", err, in)
			}
		}
	})
}

// The log of an engine says where a worker panicked.
func TestPanicIsLoggedWithItsPlace(t *testing.T) {
	b := onRedis(t)
	var mu sync.Mutex
	var log bytes.Buffer
	b.serve(func(c *worker.Config) { c.Logger = slog.New(slog.NewTextHandler(&locked{&mu, &log}, nil)) })
	h := b.single(call(b, func(context.Context, *worker.Run, *Call) error { return explode(nil) }))
	f := b.Failure(h)
	if !strings.Contains(f.PanickedAt(), "retry_test.go:") || !strings.Contains(f.PanickedAt(), "explode") {
		b.Errorf("it panicked at %q", f.PanickedAt())
	}
	b.Until("the engine has told of it", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(log.String(), `msg="job failed"`) && strings.Contains(log.String(), "explode")
	})
}

func explode(m map[string]int) error {
	m["x"]++
	return nil
}

// locked is a buffer that several goroutines use.
type locked struct {
	mu  *sync.Mutex
	buf *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}
