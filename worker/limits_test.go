package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// meter counts runs that go on at once, by key.
type meter struct {
	mu        sync.Mutex
	now, most map[string]int
}

func (m *meter) add(key string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.now == nil {
		m.now, m.most = map[string]int{}, map[string]int{}
	}
	m.now[key] += n
	m.most[key] = max(m.most[key], m.now[key])
}

// meet waits a while until two runs have gone on at once: on a busy machine short ones may miss each other.
func (m *meter) meet() {
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		m.mu.Lock()
		met := m.most[""] > 1
		m.mu.Unlock()
		if met {
			return
		}
	}
}

// Narrow may run three times at once, and for one customer twice.
type Narrow struct {
	Customer string `json:"customer"`
	In       port.In[int]
	Out      port.Out[int]
	meter    *meter
	by       string
	max      int
}

func (n *Narrow) WorkerOptions() worker.Options {
	return worker.Options{MaxRunning: n.max, MaxRunningBy: n.by, Pure: true}
}

func (n *Narrow) Run(context.Context, *worker.Run) error {
	n.meter.add(n.Customer, 1)
	n.meter.add("", 1)
	defer n.meter.add(n.Customer, -1)
	defer n.meter.add("", -1)
	n.meter.meet()
	for m, err := range n.In.All() {
		if err == nil {
			time.Sleep(2 * time.Millisecond)
			err = n.Out.Write(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// narrow runs jobs of such a type, with two messages each, on two engines, and returns how many went on at once.
func narrow(b *bench, w *Narrow, change func(*worker.Config)) map[string]int {
	b.Helper()
	w.meter = &meter{}
	for range 2 {
		b.serve(func(c *worker.Config) {
			c.Workers, c.Concurrency = []worker.Worker{w}, 10
			if change != nil {
				change(c)
			}
		})
	}
	var all []*client.Handle
	for n := range 40 {
		h := b.single(&Narrow{Customer: []string{"ann", "bob"}[n%2]})
		b.Check(h.Write(b.Ctx, "in", 1, 2))
		b.Check(h.Close(b.Ctx, "in"))
		all = append(all, h)
	}
	for _, h := range all {
		b.Until("both messages went through", func() bool { return len(enginetest.Outs[int](b, h, "out")) == 2 })
		b.same(h, 1, 2)
	}
	return w.meter.most
}

// TestMaxRunning: at most that many runs of a type go on at once, over all engines, and all jobs get their turn.
func TestMaxRunning(t *testing.T) {
	each(t, func(b *bench) {
		if most := narrow(b, &Narrow{max: 3}, nil); most[""] > 3 || most[""] < 2 {
			b.Errorf("%v runs went on at once, want 3", most)
		}
	})
}

// TestMaxRunningBy: each value of an argument has a limit of its own.
func TestMaxRunningBy(t *testing.T) {
	each(t, func(b *bench) {
		if most := narrow(b, &Narrow{max: 2, by: "customer"}, nil); most["ann"] > 2 || most["bob"] > 2 || most[""] < 2 {
			b.Errorf("%v runs went on at once, want 2 for each", most)
		}
	})
}

// TestQueueLimit: the same of a queue; every engine keeps to it.
func TestQueueLimit(t *testing.T) {
	each(t, func(b *bench) {
		most := narrow(b, &Narrow{}, func(c *worker.Config) { c.QueueLimits = map[string]int{job.DefaultQueue: 4} })
		if most[""] > 4 || most[""] < 2 {
			b.Errorf("%v runs went on at once, want 4", most)
		}
		limits, err := b.Store.QueueLimits(b.Ctx)
		b.Check(err)
		if limits[job.DefaultQueue] != 4 {
			b.Errorf("limits %v", limits)
		}
	})
}
