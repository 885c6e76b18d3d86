package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// A store may be closed while an engine runs on it: the engine stops first.
func TestCloseStopsEngines(t *testing.T) {
	t.Parallel()
	store, err := redisstore.Open(t.Context(), redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		t.Fatal(err)
	}
	e, err := worker.New(worker.Config{Store: store, Workers: everything()})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- e.Run(context.WithoutCancel(t.Context())) }()
	for deadline := time.Now().Add(10 * time.Second); ; {
		types, err := store.Types(t.Context())
		if err == nil && len(types) > 0 || time.Now().After(deadline) {
			break
		}
	}
	time.Sleep(50 * time.Millisecond) // let it begin to serve
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ran:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the engine goes on without its store")
	}
	if err := e.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "worker.New") {
		t.Errorf("a second Run says: %v", err)
	}
}

// Goroutines of a worker that go on after it returned change nothing.
func TestRunIsOver(t *testing.T) {
	each(t, func(b *bench) {
		type left struct {
			run *worker.Run
			out port.Out[int]
		}
		late := make(chan left, 1)
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			late <- left{run, w.Out}
			if _, err := run.Child("none"); !errors.Is(err, job.ErrNotFound) { // it knows its children now
				return err
			}
			_, _, err := w.In.Read()
			return err
		}))
		b.Check(h.Write(b.Ctx, "in", 1))
		b.serve()
		b.Completed(h, 1)
		was := <-late
		run := was.run
		_, spawned := run.Spawn("late", job.Single(&Call{}, ""))
		for name, err := range map[string]error{
			"spawn":      spawned,
			"checkpoint": run.Checkpoint(),
			"state":      run.State().Set("late", 1),
			"log":        run.Log("late"),
			"group":      run.Group(func() error { return nil }),
			"ports":      run.SetPorts(nil),
			"timer":      run.WakeAfter(time.Second),
			"message":    was.out.Write(1),
			"end":        was.out.Close(),
		} {
			if err == nil || !strings.Contains(err.Error(), "the run is over") {
				b.Errorf("%s: %v", name, err)
			}
		}
		if i, err := h.Info(b.Ctx); err != nil || i.Steps != 1 || len(i.Ports) == 0 {
			b.Errorf("the job is %+v, %v", i, err)
		}
	})
}

// What is too large is refused at the door, with the limit.
func TestTooLargeFromOutside(t *testing.T) {
	b := onRedis(t)
	h := b.single(call(b, func(context.Context, *worker.Run, *Call) error { return nil }))
	big := strings.Repeat("x", job.MaxMessage)
	many := make([]any, 9)
	for i := range many {
		many[i] = big[:job.MaxMessage-2]
	}
	for name, err := range map[string]error{
		"message":  h.Write(b.Ctx, "text", big),
		"messages": h.Write(b.Ctx, "text", many...),
		"state":    h.SetState(b.Ctx, map[string]any{"k": big}),
		"default":  h.SetDefault(b.Ctx, 'i', "text", big),
	} {
		if !errors.Is(err, job.ErrTooLarge) || len(err.Error()) > 300 {
			b.Errorf("%s: %.300v", name, err)
		}
	}
	if err := h.Write(b.Ctx, "text", many[0]); err != nil {
		b.Errorf("the largest message: %v", err)
	}
}

// A goroutine that a worker leaves behind does not race with the commit of what the worker did.
func TestGroupAfterTheRun(t *testing.T) {
	each(t, func(b *bench) {
		var stop atomic.Bool
		h := b.single(call(b, func(_ context.Context, run *worker.Run, w *Call) error {
			go func() {
				for !stop.Load() {
					_ = run.Group(func() error { return nil })
					_ = run.Info()
					time.Sleep(20 * time.Microsecond)
				}
			}()
			_, _, err := w.In.Read()
			return err
		}))
		defer stop.Store(true)
		for i := range 100 {
			b.Check(h.Write(b.Ctx, "in", i))
		}
		b.serve()
		b.Until("all is read", func() bool { return b.Waiting(h, "in") == 0 })
	})
}
