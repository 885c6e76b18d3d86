package graph_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// What docs/graphs.md shows of Go is here, and runs.

// Order is what somebody buys.
type Order struct {
	Item   string
	Amount int
}

// Price knows what things cost.
type Price struct {
	Prices map[string]int
	In     port.In[Order]
	Out    port.Out[int]
}

func (p *Price) Run(context.Context, *worker.Run) error {
	for order, err := range p.In.All() {
		if err != nil {
			return err
		}
		price, ok := p.Prices[order.Item]
		if !ok {
			return fmt.Errorf("nobody knows the price of %s", order.Item)
		}
		if err := p.Out.Write(price * order.Amount); err != nil {
			return err
		}
	}
	return nil
}

// Percent adds a part.
type Percent struct {
	Add int
	In  port.In[int]
	Out port.Out[int]
}

func (p *Percent) Run(context.Context, *worker.Run) error {
	for n, err := range p.In.All() {
		if err == nil {
			err = p.Out.Write(n + n*p.Add/100)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Charges is a graph that can be a node: its ports are the ports, its other fields the parameters.
type Charges struct {
	Tax, Fee int
	In       port.In[int]
	Out      port.Out[int]
}

func (c *Charges) Build(g *graph.Graph) {
	tax := graph.Add(g, "tax", &Percent{Add: c.Tax})
	fee := graph.Add(g, "fee", &Percent{Add: c.Fee})
	graph.BindInput(c.In, tax.In)
	graph.Connect(tax.Out, fee.In)
	graph.BindOutput(fee.Out, c.Out)
}

// Total adds up, and writes the sum at the end.
type Total struct {
	In  port.In[int] `port:"in,required"`
	Sum port.Out[int]
}

func (t *Total) Run(_ context.Context, run *worker.Run) error {
	var sum int
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	for n, err := range t.In.All() {
		if err != nil {
			return err
		}
		sum += n
	}
	if t.In.Done() {
		return t.Sum.Write(sum)
	}
	return run.State().Set("sum", sum)
}

func TestGuide(t *testing.T) {
	t.Parallel()
	g := graph.New("orders")
	price := graph.Add(g, "price", &Price{Prices: map[string]int{"tea": 400, "cup": 900}},
		graph.Instances(2), graph.OnFailure(job.DeadLetter))
	charges := graph.Add(g, "charges", &Charges{Tax: 20, Fee: 10})
	total := graph.Add(g, "total", &Total{})

	graph.Connect(graph.Input[Order](g, "orders"), price.In, graph.Limit(100))
	graph.Connect(price.Out, charges.In)
	graph.Initial(charges.In, 500) // for the parcel
	graph.Connect(charges.Out, total.In)
	graph.Export(g, "total", total.Sum)
	graph.Export(g, "bad", graph.Errors(g, price))

	e := weirtest.New(t, &Price{}, &Percent{}, &Total{})
	h := e.Start(g)
	e.Feed(h, "orders", Order{"tea", 5}, Order{"jam", 1}, Order{"cup", 2})
	e.CloseIn(h, "orders")
	e.RunUntilIdle()
	if got := weirtest.Drain[int](e, h, "total"); !slices.Equal(got, []int{5676}) {
		t.Errorf("total %v", got)
	}
	if bad := weirtest.Drain[job.Letter](e, h, "bad"); len(bad) != 1 || bad[0].Error != "nobody knows the price of jam" {
		t.Errorf("letters %+v", bad)
	}
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("the graph is %s", s)
	}
}

func TestGuideFeedback(t *testing.T) {
	t.Parallel()
	g := graph.New("odd")
	halve := graph.Add(g, "halve", &Halve{})
	pass := graph.Add(g, "pass", &Step{By: 1})
	graph.Connect(graph.Input[int](g, "in"), halve.In)
	graph.Connect(halve.Again, pass.In)
	graph.Connect(pass.Out, halve.In, graph.Feedback())
	graph.Export(g, "odd", halve.Out)

	e, h := start(t, g)
	e.Feed(h, "in", 12, 7)
	e.CloseIn(h, "in")
	e.RunUntilIdle()
	if got := weirtest.Drain[int](e, h, "odd"); !slices.Equal(got, []int{7, 3}) {
		t.Errorf("got %v", got)
	}
}
