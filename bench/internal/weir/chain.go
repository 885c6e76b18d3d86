package weir

import (
	"context"
	"fmt"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"

	"github.com/weirworks/weir/bench/internal/lab"
)

// first writes the item that it was created with.
type first struct {
	tuned
	Item string
	Out  port.Out[string]
}

// Run implements worker.Worker.
func (f *first) Run(context.Context, *worker.Run) error { return f.Out.Write(f.Item) }

// relay passes one message on.
type relay struct {
	tuned
	In  port.In[string]
	Out port.Out[string]
}

// Run implements worker.Worker.
func (r *relay) Run(context.Context, *worker.Run) error {
	item, ok, err := r.In.Read()
	if !ok || err != nil {
		return err
	}
	return r.Out.Write(item)
}

// last tells the ledger of one message.
type last struct {
	tuned
	In     port.In[string]
	ledger *lab.Ledger
}

// Run implements worker.Worker.
func (l *last) Run(context.Context, *worker.Run) error {
	item, ok, err := l.In.Read()
	if ok && err == nil {
		l.ledger.Arrived(item)
	}
	return err
}

// row is a tree for one item: three jobs in a row.
func row(item string) *graph.Graph {
	g := graph.New("row")
	a := graph.Add(g, "a", &first{Item: item})
	b := graph.Add(g, "b", &relay{})
	c := graph.Add(g, "c", &last{})
	graph.Connect(a.Out, b.In)
	graph.Connect(b.Out, c.In)
	return g
}

// startRow starts a tree for an item.
func (r *rig) startRow(ctx context.Context, i int) error {
	_, err := r.client.Start(ctx, row(lab.Item(i)))
	return err
}

// chain creates a tree for each item and runs all.
func chain(t tuned) func(context.Context, *lab.Lab) ([]lab.Figure, error) {
	return func(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
		return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
			n := l.Size.Chain
			ledger := lab.NewLedger(n, n)
			var used lab.Usage
			err := r.serve(ctx, func(ctx context.Context) (err error) {
				if used, err = l.Flood(ctx, n, ledger, r.startRow); err != nil {
					return err
				}
				return r.checkRows(ctx, n)
			}, &first{tuned: t}, &relay{tuned: t}, &last{tuned: t, ledger: ledger})
			return used.Throughput("chain", n, "items"), err
		})
	}
}

// hops sends items through the chain one at a time.
func hops(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) ([]lab.Figure, error) {
		n := l.Size.Hops
		ledger := lab.NewLedger(n, n)
		var times lab.Times
		err := r.serve(ctx, func(ctx context.Context) (err error) {
			if times, err = lab.Drip(ctx, n, ledger, lab.NoPause, r.startRow); err != nil {
				return err
			}
			return r.checkRows(ctx, n)
		}, &first{}, &relay{}, &last{ledger: ledger})
		return times.Figures("hops"), err
	})
}

// sampled is how many trees are looked at job by job.
const sampled = 20

// checkRows waits until n trees are completed and checks that one message passed each port.
func (r *rig) checkRows(ctx context.Context, n int) error {
	var some []job.ID
	err := lab.Until(ctx, func(ctx context.Context) error {
		some = some[:0]
		completed := 0
		for info, err := range r.client.Jobs(ctx, job.Filter{Type: "row", Order: job.Oldest}) {
			if err != nil {
				return err
			}
			if info.Status != statemachine.Completed {
				return wrong(info, "is not completed: %s", info.Reason)
			}
			if completed++; completed%max(n/sampled, 1) == 0 {
				some = append(some, info.ID)
			}
		}
		if completed != n {
			return fmt.Errorf("%d trees are completed, and %d were created", completed, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range some {
		if err := r.checkRow(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) checkRow(ctx context.Context, id job.ID) error {
	h, err := r.client.Find(ctx, string(id))
	if err != nil {
		return err
	}
	tree, err := h.Tree(ctx)
	if err != nil {
		return err
	}
	if len(tree) != 4 {
		return fmt.Errorf("tree %s has %d jobs instead of the graph's and its three", id, len(tree))
	}
	for _, i := range tree[1:] {
		if i.Status != statemachine.Completed {
			return wrong(i, "is not completed: %s", i.Reason)
		}
		for _, p := range i.Ports {
			if p.Waiting != 0 || p.Total != 1 {
				return wrong(i, "port %s passed %d messages and holds %d", p.Name, p.Total, p.Waiting)
			}
		}
	}
	return nil
}
