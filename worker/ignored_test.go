package worker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Of a run that ignores the end of its context is told, and an engine that stops abandons it: another engine runs
// the job, and what the first run commits later is refused.
func TestIgnoredContext(t *testing.T) {
	b := onRedis(t)
	var again atomic.Bool
	var first, second, unblock enginetest.Gate
	returned := make(chan struct{}, 2)
	blocked := func(inside *enginetest.Gate) code {
		return func(_ context.Context, _ *worker.Run, w *Call) error {
			if again.Load() {
				return w.Out.Write(2)
			}
			inside.Open()
			defer func() { returned <- struct{}{} }()
			if err := unblock.Pass(context.Background()); err != nil {
				return err
			}
			return w.Out.Write(1)
		}
	}
	timed := b.single(&Timed{*call(b, blocked(&first))}) // asynq has it when the engine starts
	w := &warnings{}
	cfg := b.Config(everything()...)
	cfg.Drain = 10 * time.Millisecond
	withWarnings(w)(&cfg)
	e, err := worker.New(cfg)
	b.Check(err)
	ctx, stop := context.WithCancel(b.Ctx)
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- e.Run(ctx) }()
	b.Check(first.Pass(b.Ctx))
	plain := b.single(call(b, blocked(&second)))
	b.Check(second.Pass(b.Ctx))

	b.Until("the warning", func() bool { return len(w.with("its slot stays taken")) > 0 })
	if lines := w.with("its slot stays taken"); len(lines) != 1 || !strings.Contains(lines[0], "job="+string(timed.ID())+" type=") ||
		!strings.Contains(lines[0], "Timed") || !strings.Contains(lines[0], "timeout of 50ms") {
		b.Errorf("told %q", lines)
	}
	b.Until("others to see it", func() bool {
		engines, err := b.Store.Engines(b.Ctx)
		return err == nil && len(engines) == 1 && len(engines[0].Runs) == 2 && engines[0].Runs[0].Ignores == "timeout of 50ms"
	})
	stop()
	began := time.Now()
	select {
	case err = <-stopped:
	case <-b.Ctx.Done():
		b.Fatal("the engine does not stop")
	}
	if took := time.Since(began); took < 5*time.Second || took > 15*time.Second {
		b.Errorf("it took %s to stop", took)
	}
	if err == nil || !strings.Contains(err.Error(), "2 of its runs did not return") ||
		!strings.Contains(err.Error(), "job "+string(timed.ID())) || !strings.Contains(err.Error(), "job "+string(plain.ID())) {
		b.Errorf("Run: %v", err)
	}
	if lines := w.with("its slot stays taken"); len(lines) != 2 || !strings.Contains(lines[1], "job="+string(plain.ID())) {
		b.Errorf("told %q", lines)
	}

	again.Store(true)
	b.serve()
	b.Reach(timed, 1, statemachine.Completed)
	b.Reach(plain, 1, statemachine.Completed)
	unblock.Open()
	<-returned
	<-returned
	b.same(timed, 2)
	b.same(plain, 2)
	b.Until("the late commits are refused", func() bool { return len(w.with("run was not committed")) == 2 })
}
