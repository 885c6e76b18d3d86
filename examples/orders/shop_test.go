package main

import (
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

// One worker alone: what is put into its In ports, and what comes out.
func TestReserve(t *testing.T) {
	e := weirtest.New(t, &Reserve{})
	h := e.StartWorker(&Reserve{})
	e.Feed(h, "in", Order{ID: 1, Item: "cup", Quantity: 2, Cents: 900}, Order{ID: 2, Item: soldOut}, Order{ID: 3, Item: "piano", Quantity: 1, Cents: limit + 1})
	e.RunUntilIdle()
	if got := weirtest.Drain[Order](e, h, "pay"); len(got) != 1 || got[0].ID != 1 {
		t.Errorf("to be paid: %+v", got)
	}
	if got := weirtest.State[map[string]int](e, h, "reserved"); got["cup"] != 2 || got["piano"] != 1 {
		t.Errorf("reserved: %v", got)
	}
}

// Time passes when the test says so.
func TestShipWaitsForTen(t *testing.T) {
	e := weirtest.New(t, &Ship{})
	h := e.StartWorker(&Ship{})
	e.Feed(h, "in", Order{ID: 1, Cents: 900}, Order{ID: 2, Cents: 700})
	e.RunUntilIdle()
	if got := weirtest.Drain[Notice](e, h, "notices"); len(got) != 0 {
		t.Errorf("two were shipped at once: %+v", got)
	}
	e.Advance(patience)
	if got := weirtest.Drain[Notice](e, h, "notices"); len(got) != 2 {
		t.Errorf("after %s: %+v", patience, got)
	}
}

// A whole graph, with a child job that is tried again.
func TestShop(t *testing.T) {
	e := weirtest.New(t, workers(pretended{})...)
	h := e.Start(shop())
	e.Feed(h, "orders", Order{ID: 1, Customer: "ann", Item: "cup", Quantity: 1, Cents: 900, Card: flakyCard}, Order{ID: 2, Customer: "bob", Quantity: -1})
	e.RunUntilIdle()
	e.Advance(time.Minute) // the second try of the payment, and then the five seconds of Ship
	e.RunUntilIdle()
	e.Advance(patience)
	e.RunUntilIdle()
	if sum := weirtest.State[Event](e, e.Child(h, "tally"), "sum"); sum.Shipped != 1 || sum.Cents != 900 {
		t.Errorf("the tally: %+v", sum)
	}
	if got := weirtest.Drain[job.Letter](e, e.Child(h, "validate"), "errors"); len(got) != 1 {
		t.Errorf("dead letters: %+v", got)
	}
	if status := e.Status(h); slices.Contains([]statemachine.Status{statemachine.Failed, statemachine.Terminated}, status) {
		t.Errorf("the shop is %s", status)
	}
}
