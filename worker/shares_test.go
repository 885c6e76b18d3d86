package worker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// contest is some trees in each shard that always have work, until so much is done.
type contest struct {
	until int // messages in all

	mu   sync.Mutex
	done map[job.ID]int
	all  int
	over chan struct{}
}

func (c *contest) ran(id job.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all++; c.all == c.until {
		close(c.over)
	}
	if c.all <= c.until {
		c.done[id.Tree()]++
	}
}

// contest starts that many trees in each shard, each with twice its share of work, serves them until half of all is done,
// and returns how far they are then: by shard, in order.
func (b *bench) contest(trees []int, share int) [][]int {
	b.Helper()
	c := &contest{done: map[job.ID]int{}, over: make(chan struct{})}
	w := call(b.T, func(_ context.Context, run *worker.Run, w *Call) error {
		v, ok, err := w.In.Read()
		if !ok || err != nil {
			return err
		}
		c.ran(run.ID())
		return w.Out.Write(v)
	})
	for shard, n := range trees {
		for range n {
			id, err := job.NewID()
			for b.Check(err); id.Shard(len(trees)) != shard; b.Check(err) {
				id, err = job.NewID()
			}
			plan, err := row(w).Plan()
			b.Check(err)
			_, err = b.Store.Create(b.Ctx, id, plan, "test")
			b.Check(err)
			b.feed(b.Client.At(id), 2*share)
			c.until += share
		}
	}
	engine := b.serve()
	select {
	case <-c.over:
	case <-time.After(3 * enginetest.Patience):
		b.Fatal("half of the work is still not done")
	}
	engine.Stop()
	out := make([][]int, len(trees))
	for id, n := range c.done {
		shard := id.Shard(len(trees))
		out[shard] = append(out[shard], n)
	}
	for _, counts := range out {
		slices.Sort(counts)
	}
	return out
}

// Shards that always have work are served in turns, and in each of them trees: each tree gets its share within a factor of two, and
// each shard within half as much.
func TestSharesAmongShards(t *testing.T) {
	t.Parallel()
	const trees, share = 12, 200
	for range 3 { // a machine under load may hold up one of them
		fair := true
		for shard, counts := range newBenchOf(t, redistest.SharedRedis(t), 4).contest([]int{trees, trees, trees, trees}, share) {
			sum := 0
			for _, n := range counts {
				sum += n
			}
			t.Logf("shard %d: %d, %v", shard, sum, counts)
			fair = fair && len(counts) == trees && counts[0] >= share/2 && counts[trees-1] <= 2*share
			fair = fair && sum >= trees*share*2/3 && sum <= trees*share*3/2
		}
		if fair {
			return
		}
	}
	t.Errorf("in no attempt each shard has done its share of %d, and each of its %d trees %d within a factor of two: see above", trees*share, trees, share)
}
