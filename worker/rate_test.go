package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Restless is Call without a limit of any kind.
type Restless struct{ Call }

// WorkerOptions implements worker.Configured.
func (*Restless) WorkerOptions() worker.Options { return worker.Options{MaxRunsPerMinute: -1} }

// withWarnings tells of what an engine warns.
func withWarnings(w *warnings) func(*worker.Config) {
	return func(c *worker.Config) {
		c.Workers, c.Logger = append(c.Workers, &Restless{}), slog.New(w)
	}
}

// warnings are what a log was told at level WARN, in a line each.
type warnings struct {
	slog.Handler // nil: nothing else of it is called
	mu           sync.Mutex
	lines        []string
}

func (*warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler         { return w }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	return nil
}

// with returns the lines that have a text.
func (w *warnings) with(text string) (found []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// counting lets a run count itself in the job's state.
func counting(run *worker.Run) (n int, err error) {
	if _, err := run.State().Get("n", &n); err != nil {
		return 0, err
	}
	return n + 1, run.State().Set("n", n+1)
}

// TestNoRateLimitUnlessAsked: a worker that reads a message a run, and one that writes one and asks
// for another run, go on for as many runs as there is work.
func TestNoRateLimitUnlessAsked(t *testing.T) {
	const n = 1500
	b := onRedis(t)
	w := &warnings{}
	b.serve(withWarnings(w))
	reads := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
		_, ok, err := w.In.Read()
		if err == nil && ok {
			_, err = counting(run)
		}
		return err
	}))
	b.feed(reads, n)
	writes := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
		i, err := counting(run)
		if err == nil && i < n {
			err = worker.ErrAgain
		}
		return errors.Join(err, w.Out.Write(i))
	}))
	began := time.Now()
	b.Completed(reads, n)
	b.Completed(writes, n)
	if got := len(enginetest.Outs[int](b, writes, "out")); got != n || b.Waiting(reads, "in") > 0 {
		b.Errorf("%d messages written, %d not read", got, b.Waiting(reads, "in"))
	}
	if warned := w.with("throttled"); len(warned) > 0 {
		b.Errorf("after %s: %q", time.Since(began), warned)
	}
}

// TestHotLoopIsThrottled: a job that asks for run after run, and does nothing else, is throttled, and
// everybody can see that; not if its type has no limit at all, or it does something now and then.
func TestHotLoopIsThrottled(t *testing.T) {
	b := newBench(t, redistest.Start(t).URL()) // of its own, for doctor
	w := &warnings{}
	b.serve(withWarnings(w))
	// spin asks for another run until it has run that many times, and writes something each that many runs.
	spin := func(most, each int) code {
		return func(_ context.Context, run *worker.Run, w *Call) error {
			n, err := counting(run)
			if err != nil || n == most {
				return err
			}
			if n%each == 0 {
				err = w.Out.Write(n)
			}
			return errors.Join(err, worker.ErrAgain)
		}
	}
	const never = 1 << 30
	idle := b.single(call(b, spin(never, never)))
	busy := b.single(call(b, spin(2*worker.MaxIdleRuns, worker.MaxIdleRuns/2)))
	free := b.single(&Restless{*call(b, spin(2*worker.MaxIdleRuns, never))})
	var info *job.Info
	b.Until("the hot loop is throttled", func() bool {
		info = b.Info(idle)
		return info.Status == statemachine.Queued && info.Reason != ""
	})
	const reason = "rate: it ran 600 times this minute in a row, and read, wrote and spawned nothing"
	if info.Reason != reason || info.Next.IsZero() || !info.Next.Equal(info.Next.Truncate(time.Minute)) {
		b.Errorf("reason %q, next run at %s", info.Reason, info.Next)
	}
	if info.Steps < worker.MaxIdleRuns || info.Steps >= 2*worker.MaxIdleRuns { // a minute may have begun meanwhile
		b.Errorf("%d runs", info.Steps)
	}
	b.Until("the engine warns", func() bool { return len(w.with(string(idle.ID()))) > 0 })
	for _, want := range []string{"WARN", "throttled", "type Call", "WakeAfter", "MaxRunsPerMinute: -1"} {
		if line := w.with(string(idle.ID()))[0]; !strings.Contains(line, want) {
			b.Errorf("the engine says %q, without %q", line, want)
		}
	}
	b.Until("doctor finds it", func() bool { // not when a minute has just begun
		findings, err := redisstore.Examine(b.Ctx, redisstore.Config{URL: b.URL, Namespace: b.Namespace}, redisstore.Examination{})
		b.Check(err)
		return slices.ContainsFunc(findings, func(f redisstore.Finding) bool {
			return f.Check == "throttled" && f.Level == redisstore.Warning && strings.Contains(f.Fix, "WakeAfter") &&
				strings.Contains(f.Finding, string(idle.ID())+" of type Call")
		})
	})
	b.Completed(busy, 2*worker.MaxIdleRuns)
	b.Completed(free, 2*worker.MaxIdleRuns)
	for _, h := range []*client.Handle{busy, free} {
		if warned := w.with(string(h.ID())); len(warned) > 0 {
			b.Errorf("throttled, too: %q", warned)
		}
	}
}

// TestGuardSeesOnlyItsOwnAsking: a job that asks for itself by a Handle is not told apart from one that others have good reasons to run, and goes
// on; a limit of its type stops it.
func TestGuardSeesOnlyItsOwnAsking(t *testing.T) {
	b := onRedis(t)
	w := &warnings{}
	b.serve(withWarnings(w), func(c *worker.Config) { c.Workers = append(c.Workers, &SeldomTried{}) })
	again := func(ctx context.Context, run *worker.Run, _ *Call) error {
		n, err := counting(run)
		if err != nil || n > worker.MaxIdleRuns {
			return err
		}
		return b.Client.At(run.ID()).Run(ctx)
	}
	limited := b.single(&SeldomTried{*call(b, again)})
	b.Until("the one with a limit is throttled", func() bool {
		i := b.Info(limited)
		return i.Status == statemachine.Queued && strings.HasPrefix(i.Reason, "rate: it ran 7 times this minute")
	})
	free := b.single(call(b, again))
	b.Until("the other one goes on", func() bool {
		i := b.Info(free)
		return i.Status == statemachine.Completed && i.Steps > worker.MaxIdleRuns
	})
	if warned := w.with(string(free.ID())); len(warned) > 0 {
		b.Errorf("throttled, too: %q", warned)
	}
}
