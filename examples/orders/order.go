package main

import "fmt"

// Order is what a customer sends.
type Order struct {
	ID       int    `json:"id"`
	Customer string `json:"customer"`
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
	Cents    int    `json:"cents"`
	Card     string `json:"card"`
}

// limit is the amount above which somebody has to approve an order.
const limit = 1000_00

// Cards that the gateway treats in their own way.
const (
	goodCard     = "4242"
	flakyCard    = "4000" // the first try fails, the second does not
	declinedCard = "4001"
)

// soldOut is what the shop has none of.
const soldOut = "unicorn"

// orderOf returns the order of a number, from 0: the same each time.
func orderOf(n int) Order {
	r := mix(uint64(n))
	o := Order{
		ID: n, Customer: fmt.Sprintf("customer-%d", r%500), Item: fmt.Sprintf("item-%d", r>>10%20), Quantity: 1 + int(r>>20%3),
		Cents: 500 + int(r>>24%20_000), Card: goodCard,
	}
	switch kind := r >> 40 % 1000; {
	case kind < 5:
		o.Quantity = -1 // broken: it becomes a dead letter
	case kind < 25:
		o.Card = declinedCard
	case kind < 40:
		o.Item = soldOut
	case kind < 60:
		o.Cents += limit // somebody has to approve it
	case kind < 90:
		o.Card = flakyCard
	}
	return o
}

// mix is a step of SplitMix64: numbers that look random, and are the same on each machine.
func mix(n uint64) uint64 {
	n = (n + 1) * 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// Totals is what became of the orders.
type Totals struct {
	Orders   int     `json:"orders"`
	Shipped  int     `json:"shipped"`
	Declined int     `json:"declined"`
	Dead     int     `json:"dead"`
	Waiting  int     `json:"waiting"`
	Cents    int     `json:"cents"`
	Notified int     `json:"notified"`
	Seconds  float64 `json:"seconds"`
}

// settled tells whether nothing more happens to the orders by itself.
func (t *Totals) settled() bool {
	decided := t.Shipped + t.Declined + t.Waiting
	return decided+t.Dead == t.Orders && t.Notified >= decided
}

// expected is what becomes of the first n orders.
func expected(n int) Totals {
	t := Totals{Orders: n}
	for i := range n {
		switch o := orderOf(i); {
		case o.Quantity < 1:
			t.Dead++
		case o.Item == soldOut, o.Card == declinedCard:
			t.Declined++
		case o.Cents > limit:
			t.Waiting++
		default:
			t.Shipped++
			t.Cents += o.Cents
		}
	}
	t.Notified = t.Shipped + t.Declined + t.Waiting
	return t
}
