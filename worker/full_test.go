package worker_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// While the memory of Redis is full, jobs end with a run in progress and their Shutdown, and are deleted, though asynq
// takes no wakes. The engine neither spins nor floods its log, also one that starts then, and goes on by itself when
// there is memory.
func TestFullRedisEnds(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	b := newBench(t, r.URL())
	memory := func(most string) { b.Check(r.Client(t).ConfigSet(b.Ctx, "maxmemory", most).Err()) }
	log := &warnings{}
	first := b.serve(withWarnings(log))

	begun, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	shutdown := keep(t, func(_ context.Context, run *worker.Run, _ *Call) error {
		ended <- struct{}{}
		return run.State().Set("ended", true)
	})
	busy := b.single(&Ending{Call: *call(t, func(context.Context, *worker.Run, *Call) error {
		close(begun)
		<-goOn
		return nil
	}), End: shutdown})
	idle := b.single(&Ending{Call: *call(t, func(context.Context, *worker.Run, *Call) error { return nil }), End: shutdown})
	waits := b.single(call(t, func(_ context.Context, _ *worker.Run, w *Call) error { return w.Out.Write(1) }))
	b.Reach(idle, 1, statemachine.Suspended, statemachine.Completed)
	b.Reach(waits, 1, statemachine.Suspended, statemachine.Completed)
	<-begun
	lock, err := waits.Lock(b.Ctx, time.Hour, time.Second)
	b.Check(err)
	b.Check(waits.Run(b.Ctx)) // a wake that is queued
	memory("1mb")

	before := commands(b, r)
	time.Sleep(3 * time.Second) // of which the commands are counted
	if n := commands(b, r) - before; n > 1000 {
		b.Errorf("%d commands in 3 s of an engine that can do nothing", n)
	}
	b.Check(busy.Terminate(b.Ctx))
	close(goOn)
	b.Reach(busy, 1, statemachine.Terminated)
	first.Stop()
	b.serve(withWarnings(log))
	b.Check(idle.Terminate(b.Ctx))
	b.Reach(idle, 1, statemachine.Terminated)
	for _, h := range []*client.Handle{busy, idle} {
		b.Check(h.Delete(b.Ctx))
		if _, err := h.Info(b.Ctx); !errors.Is(err, job.ErrNotFound) {
			b.Errorf("after it was deleted: %v", err)
		}
	}
	if len(ended) != 2 {
		b.Errorf("%d shutdowns, want 2", len(ended))
	}
	if said, all := len(log.with("memory is full")), log.with(""); said == 0 || len(all) > 6 {
		b.Errorf("%d of %d lines in the logs of two engines say it:\n%s", said, len(all), strings.Join(all, "\n"))
	}
	b.Check(lock.Release(b.Ctx))
	memory("0")
	over := time.Now()
	b.Completed(b.single(call(t, func(context.Context, *worker.Run, *Call) error { return nil })), 1)
	b.Reach(waits, 2, statemachine.Suspended, statemachine.Completed)
	b.Logf("work went on after %s", time.Since(over).Round(time.Millisecond))
}

// commands is how many commands a Redis has carried out.
func commands(b *bench, r *redistest.Server) int {
	b.Helper()
	info, err := r.Client(b.T).Info(b.Ctx, "stats").Result()
	b.Check(err)
	n, err := strconv.Atoi(regexp.MustCompile(`total_commands_processed:(\d+)`).FindStringSubmatch(info)[1])
	b.Check(err)
	return n
}
