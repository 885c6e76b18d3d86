package weir

import (
	"context"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"

	"github.com/weirworks/weir/bench/internal/lab"
)

// count writes the numbers below N.
type count struct {
	tuned
	N   int
	Out port.Out[int]
}

// Run implements worker.Worker.
func (c *count) Run(context.Context, *worker.Run) error {
	for i := range c.N {
		if err := c.Out.Write(i); err != nil {
			return err
		}
	}
	return nil
}

// double is a child: it has one number to double.
type double struct {
	tuned
	In  port.In[int]
	Out port.Out[int]
}

// Run implements worker.Worker.
func (d *double) Run(context.Context, *worker.Run) error {
	for n, err := range d.In.All() {
		if err != nil {
			return err
		}
		if err := d.Out.Write(2 * n); err != nil {
			return err
		}
	}
	return nil
}

// sum adds up what the children wrote, and writes the total when all have ended.
type sum struct {
	tuned
	Tree   int
	In     port.In[int]
	Total  port.Out[int]
	ledger *lab.Ledger
}

// Run implements worker.Worker.
func (s *sum) Run(_ context.Context, run *worker.Run) error {
	var total int
	if _, err := run.State().Get("total", &total); err != nil {
		return err
	}
	for n, err := range s.In.All() {
		if err != nil {
			return err
		}
		total += n
	}
	if !s.In.Done() {
		return run.State().Set("total", total)
	}
	if err := s.Total.Write(total); err != nil {
		return err
	}
	s.ledger.Arrived(lab.Item(s.Tree))
	return nil
}

// family is a graph with n children between a job that gives each a number and one that joins
// what they write.
func family(tree, n int) *graph.Graph {
	g := graph.New("family")
	a := graph.Add(g, "count", &count{N: n})
	b := graph.Add(g, "double", &double{}, graph.Instances(n))
	c := graph.Add(g, "sum", &sum{Tree: tree})
	graph.Connect(a.Out, b.In)
	graph.Connect(b.Out, c.In)
	graph.Export(g, "total", c.Total)
	return g
}

// fanout starts families and waits for their totals.
func fanout(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		n, children := l.Size.Trees, l.Size.Children
		trees := make([]string, n)
		ledger := lab.NewLedger(n, n)
		var used lab.Usage
		err := r.serve(ctx, func(ctx context.Context) (err error) {
			used, err = l.Flood(ctx, n, ledger, func(ctx context.Context, i int) error {
				h, err := r.client.Start(ctx, family(i, children))
				if err == nil {
					trees[i] = string(h.ID())
				}
				return err
			})
			if err != nil {
				return err
			}
			for _, id := range trees {
				if err := r.checkTotal(ctx, id, children*(children-1)); err != nil {
					return err
				}
			}
			return nil
		}, &count{}, &double{}, &sum{ledger: ledger})
		return used.Throughput("fanout", n, "trees"), err
	})
}

// checkTotal checks the sum of all that a family's children wrote.
func (r *rig) checkTotal(ctx context.Context, id string, want int) error {
	h, err := r.client.Find(ctx, id)
	if err != nil {
		return err
	}
	info, err := h.Wait(ctx)
	if err != nil {
		return err
	}
	var total int
	if ok, err := h.Read(ctx, "total", &total); err != nil || !ok {
		return wrong(info, "has no total: %v", err)
	}
	if total != want {
		return wrong(info, "the total is %d instead of %d", total, want)
	}
	return nil
}
