package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// watching is hooks that keep what they are told.
type watching struct {
	worker.NoHooks
	mu      sync.Mutex
	around  int
	ends    []worker.RunEnd
	commits []worker.Commit
}

func (w *watching) Run(ctx context.Context, run *worker.Run, next func(context.Context) error) error {
	w.mu.Lock()
	w.around++
	w.mu.Unlock()
	return w.NoHooks.Run(ctx, run, next)
}

func (w *watching) Ended(end *worker.RunEnd) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, *end)
}

func (w *watching) Committed(c *worker.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commits = append(w.commits, *c)
}

// outcomes returns how the runs of a job ended.
func (w *watching) outcomes(id job.ID) (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range w.ends {
		if end.Job == id {
			all = append(all, string(end.Outcome))
		}
	}
	return all
}

// sum adds up what was committed of the jobs of a tree.
func (w *watching) sum(id job.ID) (sum worker.CommittedJob) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.commits {
		for _, one := range c.Jobs {
			if one.Job.Tree() != id.Tree() || !one.Applied {
				continue
			}
			sum.Runs += one.Runs
			sum.Read += one.Read
			sum.Written += one.Written
			sum.Spawned += one.Spawned
			sum.DeadLetters += one.DeadLetters
		}
	}
	return sum
}

func hooked(all ...worker.Hooks) func(*worker.Config) {
	return func(c *worker.Config) { c.Hooks = all }
}

// TestHooksOutcomes: hooks are told how each run ended.
func TestHooksOutcomes(t *testing.T) {
	errBad := errors.New("bad")
	for name, c := range map[string]struct {
		planner func(t testing.TB) job.Planner
		ends    statemachine.Status
		want    string
		err     string
		stack   bool
	}{
		"completed": {func(t testing.TB) job.Planner {
			return job.Single(call(t, func(context.Context, *worker.Run, *Call) error { return nil }), "")
		}, statemachine.Completed, "completed", "", false},
		"requeued": {func(t testing.TB) job.Planner {
			return job.Single(call(t, func(_ context.Context, run *worker.Run, _ *Call) error {
				if run.Info().Steps == 0 {
					return worker.ErrAgain
				}
				return nil
			}), "")
		}, statemachine.Completed, "requeued completed", "", false},
		"suspended": {func(t testing.TB) job.Planner {
			return job.Single(call(t, func(context.Context, *worker.Run, *Call) error { return worker.ErrSuspend }), "")
		}, statemachine.Suspended, "suspended", "", false},
		"retried": {func(t testing.TB) job.Planner {
			return job.Single(&Tried{*call(t, func(context.Context, *worker.Run, *Call) error { return errBad })}, "")
		}, statemachine.Failed, "retried retried failed", "bad", false},
		"panic": {func(t testing.TB) job.Planner {
			return job.Single(call(t, func(context.Context, *worker.Run, *Call) error { panic("oh") }), "")
		}, statemachine.Failed, "failed", "panic: oh", true},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(b *bench) {
				seen := &watching{}
				b.serve(hooked(seen))
				h := b.Start(c.planner(b))
				b.Reach(h, 0, c.ends)
				b.Until("all runs were told of", func() bool { return strings.Join(seen.outcomes(h.ID()), " ") == c.want })
				seen.mu.Lock()
				defer seen.mu.Unlock()
				for i, end := range seen.ends {
					stack := end.Failure != nil && strings.Contains(end.Failure.Stack, "hooks_test.go")
					if got := fmt.Sprint(end.Err); c.err != "" && got != c.err || c.err == "" && end.Err != nil || stack != c.stack {
						b.Errorf("end %d: error %v, stack %t; want %q, %t", i, end.Err, stack, c.err, c.stack)
					}
					if end.Queue != job.DefaultQueue || end.Began.IsZero() || end.Took <= 0 || end.Waited < 0 || end.Waited > enginetest.Patience {
						b.Errorf("end %d: %+v", i, end)
					}
				}
				if seen.around != len(seen.ends) {
					b.Errorf("the hook was around %d runs, %d ended", seen.around, len(seen.ends))
				}
			})
		})
	}
}

// TestHooksAround: what hooks put into the context is there for the run, the first hook is the outermost, their errors count, and
// a panic of one does no harm.
func TestHooksAround(t *testing.T) {
	each(t, func(b *bench) {
		type key struct{}
		var mu sync.Mutex
		var order []string
		note := func(what ...any) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprint(what...))
		}
		b.serve(hooked(
			&wrapping{around: func(ctx context.Context, _ *worker.Run, next func(context.Context) error) error {
				note("first")
				err := next(context.WithValue(ctx, key{}, "tenant-7"))
				note("last: ", err)
				return err
			}, ended: func() { panic("a hook that is broken") }},
			&wrapping{around: func(ctx context.Context, run *worker.Run, next func(context.Context) error) error {
				note("second sees ", ctx.Value(key{}))
				if err := next(ctx); err != nil {
					return err
				}
				return fmt.Errorf("no more runs of %s today", run.Info().Type)
			}, ended: func() {}}))
		h := b.single(call(b, func(ctx context.Context, _ *worker.Run, w *Call) error {
			note("run sees ", ctx.Value(key{}))
			return w.Out.Write(1)
		}))
		if f := b.Failure(h); f.Error != "no more runs of Call today" {
			b.Errorf("the run failed with %q", f.Error)
		}
		b.same(h)
		mu.Lock()
		defer mu.Unlock()
		want := []string{"first", "second sees tenant-7", "run sees tenant-7", "last: no more runs of Call today"}
		if !slices.Equal(order, want) {
			b.Errorf("order:\n%q, want\n%q", order, want)
		}
	})
}

type wrapping struct {
	worker.NoHooks
	around func(context.Context, *worker.Run, func(context.Context) error) error
	ended  func()
}

func (w *wrapping) Run(ctx context.Context, run *worker.Run, next func(context.Context) error) error {
	return w.around(ctx, run, next)
}

func (w *wrapping) Ended(*worker.RunEnd) { w.ended() }

// TestHooksCommits: what hooks are told of commits adds up to what happened, however runs are chained and batched.
func TestHooksCommits(t *testing.T) {
	each(t, func(b *bench) {
		const n = 300
		seen := &watching{}
		h := b.Start(row(&Hop{}))
		b.serve(hooked(seen))
		b.feed(h, n)
		b.Check(h.Close(b.Ctx, "in"))
		b.settled(h, 4)
		b.hopped(h, n)
		b.Until("all was told", func() bool { return seen.sum(h.ID()).Written >= 3*n })
		if sum := seen.sum(h.ID()); sum.Read != 3*n || sum.Written != 3*n || sum.Runs < 3*n {
			b.Errorf("committed by what hooks were told: %+v; want %d messages read and written, in as many runs or more", sum, 3*n)
		}
		seen.mu.Lock()
		defer seen.mu.Unlock()
		together, speculative := 0, 0
		for _, c := range seen.commits {
			if c.Bytes <= 0 && c.Jobs[0].Written > 0 || c.Took <= 0 || c.Checkpoint {
				b.Errorf("commit: %+v", c)
			}
			together = max(together, len(c.Jobs))
			for _, one := range c.Jobs {
				if one.Speculative {
					speculative++
				}
			}
		}
		if together != 3 || speculative == 0 {
			b.Errorf("at most %d jobs in a commit, %d speculative; want 3, and some", together, speculative)
		}
	})
}

// TestHooksCheckpoint: a checkpoint is a commit that ends no run.
func TestHooksCheckpoint(t *testing.T) {
	each(t, func(b *bench) {
		seen := &watching{}
		b.serve(hooked(seen))
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			return errors.Join(w.Out.Write(1), run.Checkpoint(), w.Out.Write(2))
		}))
		b.Completed(h, 2)
		b.Until("both commits were told of", func() bool { return seen.sum(h.ID()).Written == 2 })
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if len(seen.commits) != 2 || !seen.commits[0].Checkpoint || seen.commits[0].Jobs[0].Runs != 0 || seen.commits[1].Jobs[0].Runs != 1 {
			b.Errorf("commits: %+v", seen.commits)
		}
	})
}

// Risky fails on negative numbers.
type Risky struct{ In port.In[int] }

func (w *Risky) Run(context.Context, *worker.Run) error {
	n, _, err := w.In.Read()
	if err == nil && n < 0 {
		err = errors.New("negative")
	}
	return err
}

// TestHooksDeadLetters: a message that is put aside is told of.
func TestHooksDeadLetters(t *testing.T) {
	each(t, func(b *bench) {
		seen := &watching{}
		g := graph.New("risk")
		graph.Connect(graph.Input[int](g, "in"), graph.Add(g, "r", &Risky{}, graph.OnFailure(job.DeadLetter)).In)
		h := b.Start(g)
		b.serve(hooked(seen), func(c *worker.Config) { c.Workers = []worker.Worker{&Risky{}} })
		b.Check(h.Write(b.Ctx, "in", 1, -2, 3))
		b.Check(h.Close(b.Ctx, "in"))
		b.Completed(h, 0)
		b.Until("the dead letter was told of", func() bool { return seen.sum(h.ID()).DeadLetters == 1 })
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if !slices.ContainsFunc(seen.ends, func(end worker.RunEnd) bool {
			return end.Outcome == worker.DeadLettered && end.Failure != nil && end.Err.Error() == "negative"
		}) {
			b.Errorf("ends: %+v", seen.ends)
		}
	})
}

// fencing is a store that grants no lease twice.
type fencing struct{ worker.Store }

func (fencing) Refresh(context.Context, job.ID, string, time.Duration, *job.Progress) error {
	return job.ErrFenced
}

// TestHooksLeaseLost: a run whose lease ended is told of, and that the run after it follows one that was cut off.
func TestHooksLeaseLost(t *testing.T) {
	each(t, func(b *bench) {
		seen := &watching{}
		h := b.single(call(b, func(ctx context.Context, run *worker.Run, _ *Call) error {
			if run.Info().Crashes > 0 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}))
		b.serve(hooked(seen), func(c *worker.Config) { c.Store, c.Lease = fencing{b.Store}, 300*time.Millisecond })
		b.Completed(h, 1)
		b.Until("both runs were told of", func() bool { return slices.Equal(seen.outcomes(h.ID()), []string{"lost", "completed"}) })
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if seen.ends[0].Crashed || !seen.ends[1].Crashed {
			b.Errorf("crashed: %t, then %t; want false, true", seen.ends[0].Crashed, seen.ends[1].Crashed)
		}
	})
}

// TestHooksRefusedCommit: a run that can never be committed is told of with the failure that its job gets.
func TestHooksRefusedCommit(t *testing.T) {
	each(t, func(b *bench) {
		seen := &watching{}
		b.serve(hooked(seen))
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			if run.Info().Steps == 0 {
				_, err := run.Spawn("c", job.Single(&Count{To: 1}, ""))
				return errors.Join(err, worker.ErrSuspend)
			}
			c, err := run.Child("c")
			if err != nil {
				return err
			}
			return c.Write("nowhere", 1)
		}))
		b.Failure(h)
		b.Until("the commit was told of", func() bool {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			return slices.ContainsFunc(seen.commits, func(c worker.Commit) bool {
				return errors.Is(c.Err, job.ErrPort) && c.Failure != nil && strings.Contains(c.Failure.Error, "nowhere") && !c.Jobs[0].Applied
			})
		})
	})
}

// TestLogHooks: each run is a line, failures are warnings.
func TestLogHooks(t *testing.T) {
	b := onRedis(t)
	var out lines
	b.serve(hooked(worker.LogHooks(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))))
	h := b.single(&Tried{*call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
		if run.Info().Tries == 0 {
			panic("oh")
		}
		return nil
	})})
	b.Completed(h, 1)
	b.Until("all is logged", func() bool { return strings.Count(out.String(), "msg=committed") == 2 })
	for _, want := range []string{
		"level=WARN msg=\"run ended\" job=" + string(h.ID()) + " type=Tried queue=default step=0 try=1 outcome=retried",
		`error="panic: oh" at=`, "level=INFO msg=\"run ended\"", "try=2 outcome=completed", "level=DEBUG msg=committed",
	} {
		if !strings.Contains(out.String(), want) {
			b.Errorf("the log has no %q:\n%s", want, out.String())
		}
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestNilHook(t *testing.T) {
	b := onRedis(t)
	_, err := worker.New(worker.Config{Store: b.Store, Workers: everything(), Hooks: []worker.Hooks{nil}})
	if !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "Hooks has a nil") {
		t.Errorf("error %v", err)
	}
}
