package main

import (
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// payQueue is the queue of payments: they wait for somebody else's server, so they must not keep slots from other jobs.
const payQueue = "payments"

// shop is the graph of all that happens to orders.
func shop() *graph.Graph {
	g := graph.New("orders")
	validate := graph.Add(g, "validate", &Validate{}, graph.OnFailure(job.DeadLetter))
	reserve := graph.Add(g, "reserve", &Reserve{})
	approve := graph.Add(g, "approve", &Approve{})
	pay := graph.Add(g, "pay", &Pay{}, graph.Instances(2))
	ship := graph.Add(g, "ship", &Ship{})
	notify := graph.Add(g, "notify", &Notify{}, graph.Instances(2))
	tally := graph.Add(g, "tally", &Tally{})

	graph.WireInput(g, "orders", "validate.in", graph.Limit(5000))
	graph.WireInput(g, "decisions", "approve.decisions")
	graph.Connect(validate.Out, reserve.In)
	graph.Connect(reserve.Pay, pay.In, graph.Limit(2000))
	graph.Connect(reserve.Approve, approve.In)
	graph.Connect(approve.Pay, pay.In, graph.Limit(2000))
	graph.Connect(pay.Ship, ship.In)
	graph.Connect(reserve.Notices, notify.In)
	graph.Connect(approve.Notices, notify.In)
	graph.Connect(pay.Notices, notify.In)
	graph.Connect(ship.Notices, notify.In)
	graph.Connect(notify.Events, tally.In)
	return g
}

// workers are all types of worker, for an engine.
func workers(g Gateway) []worker.Worker {
	return []worker.Worker{
		&Validate{}, &Reserve{}, &Approve{}, &Pay{}, &Charge{gateway: g}, &Ship{}, &Notify{}, &Tally{},
	}
}
