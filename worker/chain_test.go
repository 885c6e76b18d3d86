package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Either reads a message of one of its ports.
type Either struct {
	In   port.In[int]
	More port.In[int]
	Out  port.Out[int]
}

// WorkerOptions implements worker.Configured.
func (*Either) WorkerOptions() worker.Options {
	return worker.Options{Pure: true}
}

// Run implements worker.Worker.
func (w *Either) Run(context.Context, *worker.Run) error {
	for _, in := range []*port.In[int]{&w.In, &w.More} {
		if in.Len() > 0 {
			v, _, err := in.Read()
			return errors.Join(err, w.Out.Write(v))
		}
	}
	return nil
}

// A speculative run sees that one of the job's inputs has closed behind its last message.
func TestChainingWithOneEnd(t *testing.T) {
	each(t, func(b *bench) {
		g := graph.New("ends")
		x, y, e := graph.Add(g, "x", &Hop{}), graph.Add(g, "y", &Hop{}), graph.Add(g, "e", &Either{})
		graph.Connect(graph.Input[int](g, "one"), x.In)
		graph.Connect(graph.Input[int](g, "two"), y.In)
		graph.Connect(x.Out, e.In)
		graph.Connect(y.Out, e.More)
		graph.Export(g, "out", e.Out)
		s := b.countCommits()
		b.serve(func(c *worker.Config) {
			c.Store, c.Concurrency, c.Workers = s, 1, append(everything(), &Either{})
		})
		for n := range 4 {
			h := b.Start(g)
			x, err := h.Child(b.Ctx, "x")
			b.Check(err)
			l, err := x.Lock(b.Ctx, time.Minute, 0)
			b.Check(err)
			b.Check(h.Write(b.Ctx, "one", 1))
			b.Check(h.Close(b.Ctx, "one"))
			b.Check(x.Unlock(b.Ctx, l.Token()))
			b.Completed(x, 1)
			b.Until("it came through", func() bool { return b.came(h) == 1 })
			b.Check(h.Write(b.Ctx, "two", 2))
			b.Until("it came through", func() bool { return b.came(h) == 2 })
			b.same(h, 1, 2)
			s.mu.Lock()
			if s.wrong > n/2 { // of the first trees not all is known yet
				b.Errorf("%d refused speculative commits with %d trees", s.wrong, n+1)
			}
			s.mu.Unlock()
		}
	})
}
