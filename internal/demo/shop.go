// Package demo is a shop that weir demo runs: nobody pays, and nothing is sent anywhere. It uses most of what Weir has, slowly enough
// to be watched, and nothing in it grows without end.
package demo

import (
	"context"
	"errors"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/worker"
)

// Aliases of what is started.
const (
	Shop      = "demo"      // the tree that orders go through
	Stocktake = "stocktake" // the trigger
)

// payQueue is that of payments: they wait for somebody else's server, and must not keep slots from other jobs.
const payQueue = "payments"

// Queues are those that the engine serves.
func Queues() []string { return []string{job.DefaultQueue, payQueue} }

// Workers are the types of the shop.
func Workers() []worker.Worker {
	return []worker.Worker{&Orders{}, &Check{}, &Approve{}, &Pay{}, &Charge{}, &Pack{}, &Ship{}, &Notify{}, &Stock{}}
}

// Graph is the shop.
func Graph() *graph.Graph {
	g := graph.New("shop")
	orders := graph.Add(g, "orders", &Orders{})
	check := graph.Add(g, "check", &Check{}, graph.OnFailure(job.DeadLetter))
	approve := graph.Add(g, "approve", &Approve{})
	pay := graph.Add(g, "pay", &Pay{})
	graph.Add(g, "notify", &Notify{})

	parcels := graph.New("parcels")
	pack, ship := graph.Add(parcels, "pack", &Pack{}), graph.Add(parcels, "ship", &Ship{})
	graph.WireInput(parcels, "in", "pack.in", graph.Limit(edge))
	graph.Connect(pack.Out, ship.In)
	graph.WireExport(parcels, "out", "ship.out")
	graph.Nest(g, "parcels", parcels)

	graph.Connect(orders.Out, check.In, graph.Limit(edge))
	graph.Connect(check.Pay, pay.In, graph.Limit(edge))
	graph.Connect(check.Approve, approve.In)
	graph.WireInput(g, "decisions", "approve.decisions")
	graph.Connect(approve.Pay, pay.In, graph.Limit(edge))
	graph.Wire(g, "pay.paid", "parcels.in")
	graph.Wire(g, "parcels.out", "notify.in")
	return g
}

// edge is how many orders wait on an edge before who writes there is suspended.
const edge = 8

// Start starts the shop and its trigger, unless they are there already.
func Start(ctx context.Context, client *client.Client) (ran time.Time, err error) {
	if ran, err = lastRan(ctx, client); err != nil {
		return ran, err
	}
	if _, err := client.Start(ctx, Graph(), job.Alias(Shop), job.TakeExisting(), job.EnginesLater()); err != nil {
		return ran, err
	}
	plan, err := job.Single(&Stock{}, "").Plan() // no engine has registered the type yet
	if err != nil {
		return ran, err
	}
	_, err = trigger.Add(ctx, client, trigger.Definition{
		Schedule: "every:20s", Missed: "skip",
		Launch: &trigger.Launch{Plan: (*trigger.Plan)(plan), Retain: "2m", Labels: map[string]string{"what": "stocktake"}},
	}, job.Alias(Stocktake))
	if errors.Is(err, job.ErrExists) {
		return ran, nil
	}
	return ran, err
}

// lastRan is when a shop that there is already did something last; zero if there is none.
func lastRan(ctx context.Context, client *client.Client) (ran time.Time, err error) {
	h, err := client.Find(ctx, Shop)
	if errors.Is(err, job.ErrNotFound) {
		return ran, nil
	}
	if err != nil {
		return ran, err
	}
	tree, err := h.Tree(ctx)
	for _, i := range tree {
		if i.Ran.After(ran) {
			ran = i.Ran
		}
	}
	return ran, err
}

// Order is what a customer wants.
type Order struct {
	ID       int    `json:"id"`
	Customer string `json:"customer"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
	Euros    int    `json:"euros"`
}

const (
	tick      = 300 * time.Millisecond
	burst     = 80  // orders in succession, before as long a time with few
	approvals = 120 // euros from which on somebody has to approve
	pending   = 8   // orders that wait for that; of more than that the first is declined
	flawed    = 500 // there is no broken order behind this one, so that dead letters do not pile up
)

// order makes the nth order: the same whenever it is made.
func order(n int) Order {
	customers, items := []string{"Ada", "Grace", "Edsger", "Barbara", "Tony"}, []string{"lamp", "chair", "kettle", "globe"}
	o := Order{ID: n, Customer: customers[n*7%5], Item: items[n*3%4], Quantity: 1 + n%3, Euros: 10 + n*13%90}
	if n%15 == 0 {
		o.Euros += 100
	}
	if n%25 == 7 && n < flawed {
		o.Quantity = 0
	}
	return o
}

// Orders takes orders: many for a while, then few.
type Orders struct{ Out port.Out[Order] }

// Run implements worker.Worker.
func (s *Orders) Run(_ context.Context, run *worker.Run) error {
	var at struct {
		Next int       `json:"next"`
		When time.Time `json:"when"`
	}
	if _, err := run.State().Get("at", &at); err != nil {
		return err
	}
	if early := at.When.Sub(run.Now()); early > 0 { // somebody has asked for a run
		return worker.ErrSuspend
	}
	pause := tick
	if at.Next/burst%2 == 1 {
		pause *= 4
	}
	at.Next++
	at.When = run.Now().Add(pause)
	if err := errors.Join(s.Out.Write(order(at.Next)), run.State().Set("at", at), run.WakeAfter(pause)); err != nil {
		return err
	}
	return worker.ErrSuspend
}
