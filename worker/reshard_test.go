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

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// reshards is how often each slot moves.
const reshards = 20

// asked repeats a call that is refused while a slot moves, which has changed nothing.
func (b *bench) asked(what string, call func() error) {
	b.Helper()
	b.Until(what, func() bool {
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
	rows := make([]*client.Handle, 4)
	for i := range rows {
		rows[i] = b.Start(row(&Hop{}))
	}
	listener := b.listener()
	ctx, stop := context.WithCancel(b.Ctx)
	var wg sync.WaitGroup
	said := make([]int, len(rows)+1)
	for i, h := range rows {
		wg.Go(func() { said[i] = b.sayer(ctx, "write", func(n int) error { return h.Write(b.Ctx, "in", n) }) })
	}
	wg.Go(func() {
		said[len(rows)] = b.sayer(ctx, "publish", func(n int) error { return b.Client.Publish(b.Ctx, "/halves", n) })
	})
	var fibs []*client.Handle
	for range reshards {
		alias := fmt.Sprint("fib", len(fibs))
		b.asked("start", func() error {
			h, err := b.Client.Start(b.Ctx, job.Single(&Fib{N: 4}, ""), job.Alias(alias))
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
		b.Completed(h, 1)
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
	keys := []string{"weir:{" + b.Namespace + "}:due", "asynq:{weir:" + b.Namespace + ":default}:pending"}
	for i := range b.Shards {
		keys = append(keys, fmt.Sprintf("weir:{%s:%d}:due", b.Namespace, i))
	}
	for _, key := range keys {
		slot, err := c.Slot(b.Ctx, key)
		b.Check(err)
		owner, err := c.Owner(b.Ctx, slot)
		b.Check(err)
		b.Check(c.MoveSlot(b.Ctx, slot, (owner+1+rand.IntN(len(c.Nodes)-1))%len(c.Nodes)))
	}
}

// arrived waits until all numbers up to n have come out of a job or graph, and wants them in order and once, and
// the state of the job in it that passed them on to have counted them.
func (b *bench) arrived(h *client.Handle, inner string, n int) {
	b.Helper()
	b.Until(fmt.Sprintf("%d messages came out of %s", n, h.ID()), func() bool { return b.came(h) >= int64(n) })
	want := make([]int, n)
	for i := range want {
		want[i] = i + 1
	}
	if got := enginetest.Outs[int](b, h, "out"); !slices.Equal(got, want) {
		b.Errorf("%d messages came out of %s, not 1 to %d: %v", len(got), h.ID(), n, got)
	}
	if inner != "" {
		var err error
		h, err = h.Child(b.Ctx, inner)
		b.Check(err)
	}
	b.Reach(h, 1, statemachine.Suspended, statemachine.Completed)
	if state := b.State(h); state["n"] != fmt.Sprint(n) || state["sum"] != fmt.Sprint(n*(n+1)/2) {
		b.Errorf("state of %s after %d messages: %v", h.ID(), n, state)
	}
}
