package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// reshards is how often each slot moves.
const reshards = 20

// asked repeats a call that is refused while a slot moves, which has changed nothing.
func (b *bench) asked(what string, call func() error) {
	b.Helper()
	b.until(what, func() bool {
		err := call()
		if err != nil && !errors.Is(err, job.ErrUnavailable) {
			b.Errorf("%s: %v", what, err)
			return true
		}
		return err == nil
	})
}

// sayer writes numbers from 1 on with a call, until ctx ends, and returns the last one.
func (b *bench) sayer(ctx context.Context, what string, call func(n int) error) (n int) {
	for ctx.Err() == nil && !b.Failed() {
		n++
		b.asked(fmt.Sprintf("%s of %d", what, n), func() error { return call(n) })
		time.Sleep(2 * time.Millisecond)
	}
	return n
}

// Slots of a cluster move to and fro, key by key, while jobs work: nothing is lost, stuck or doubled.
func TestReshardWhileRunning(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	b := newBenchOf(t, cluster.URL(), 2)
	b.serve()
	rows := make([]*job.Handle, 4)
	for i := range rows {
		rows[i] = b.start(row(&Hop{}))
	}
	listener := b.listener()
	ctx, stop := context.WithCancel(b.ctx)
	var wg sync.WaitGroup
	said := make([]int, len(rows)+1)
	for i, h := range rows {
		wg.Go(func() { said[i] = b.sayer(ctx, "write", func(n int) error { return h.Write(b.ctx, "in", n) }) })
	}
	wg.Go(func() {
		said[len(rows)] = b.sayer(ctx, "publish", func(n int) error { return b.client.Publish(b.ctx, "/halves", n) })
	})
	var fibs []*job.Handle
	for range reshards {
		alias := fmt.Sprint("fib", len(fibs))
		b.asked("start", func() error {
			h, err := b.client.Start(b.ctx, job.Single(&Fib{N: 4}, ""), job.Alias(alias))
			if err == nil {
				fibs = append(fibs, h)
			}
			return err
		})
		b.reshard(cluster)
	}
	stop()
	wg.Wait()
	for _, h := range fibs {
		b.completed(h, 1)
		b.same(h, 3)
	}
	for i, h := range rows {
		b.arrived(h, "c", said[i])
	}
	b.arrived(listener, "", said[len(rows)])
}

// reshard moves each slot of the namespace, and that of its queue, to another node.
func (b *bench) reshard(c *redistest.Cluster) {
	b.Helper()
	keys := []string{"weir:{" + b.namespace + "}:due", "asynq:{weir:" + b.namespace + ":default}:pending"}
	for i := range b.shards {
		keys = append(keys, fmt.Sprintf("weir:{%s:%d}:due", b.namespace, i))
	}
	for _, key := range keys {
		slot, err := c.Slot(b.ctx, key)
		b.check(err)
		owner, err := c.Owner(b.ctx, slot)
		b.check(err)
		b.check(c.MoveSlot(b.ctx, slot, (owner+1+rand.IntN(len(c.Nodes)-1))%len(c.Nodes)))
	}
}

// arrived waits until all numbers up to n have come out of a job or graph, and wants them in order and once, and
// the state of the job in it that passed them on to have counted them.
func (b *bench) arrived(h *job.Handle, inner string, n int) {
	b.Helper()
	b.until(fmt.Sprintf("%d messages came out of %s", n, h.ID()), func() bool { return b.came(h) >= int64(n) })
	want := make([]int, n)
	for i := range want {
		want[i] = i + 1
	}
	if got := outs[int](b, h, "out"); !slices.Equal(got, want) {
		b.Errorf("%d messages came out of %s, not 1 to %d: %v", len(got), h.ID(), n, got)
	}
	if inner != "" {
		var err error
		h, err = h.Child(b.ctx, inner)
		b.check(err)
	}
	b.reach(h, 1, statemachine.Suspended, statemachine.Completed)
	if state := b.state(h); state["n"] != fmt.Sprint(n) || state["sum"] != fmt.Sprint(n*(n+1)/2) {
		b.Errorf("state of %s after %d messages: %v", h.ID(), n, state)
	}
}
