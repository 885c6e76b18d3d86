package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Validate passes orders on that can be carried out. Others it puts aside as dead letters, into its port errors, where they wait
// until somebody looks at them: weir dead list orders. It could as well return an error, as its policy in the graph says the
// same of errors that it did not think of; but then the run has to be repeated, with a message at a time.
type Validate struct {
	In     port.In[Order]
	Out    port.Out[Order]
	Errors port.Out[job.Letter]
}

// WorkerOptions implements worker.Configured.
func (*Validate) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run implements worker.Worker.
func (v *Validate) Run(_ context.Context, run *worker.Run) error {
	for o, err := range v.In.All() {
		if err != nil {
			return err
		}
		if err := o.check(); err != nil {
			if err := v.putAside(run, o, err); err != nil {
				return err
			}
		} else if err := v.Out.Write(o); err != nil {
			return err
		}
	}
	return nil
}

// check says what is wrong with an order.
func (o *Order) check() error {
	switch {
	case o.Quantity < 1:
		return fmt.Errorf("order %d: the quantity %d is less than 1", o.ID, o.Quantity)
	case o.Customer == "" || o.Cents < 1:
		return fmt.Errorf("order %d: it has no customer or no price", o.ID)
	}
	return nil
}

func (v *Validate) putAside(run *worker.Run, o Order, cause error) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return v.Errors.Write(job.Letter{Job: run.ID(), Error: cause.Error(), At: run.Now(), Messages: map[string]json.RawMessage{v.In.Name(): raw}})
}

// Notice is what a customer is told.
type Notice struct {
	Order    int    `json:"order"`
	Customer string `json:"customer"`
	What     string `json:"what"` // shipped, declined or waiting
	Cents    int    `json:"cents,omitempty"`
}

// tell writes a notice. Those of one customer go to one job, in order.
func tell(to port.Out[Notice], o Order, what string, cents int) error {
	return to.WriteKey(o.Customer, Notice{o.ID, o.Customer, what, cents})
}

// Reserve takes what is ordered out of the stock, which is in its state, and asks for approval of large orders.
type Reserve struct {
	In      port.In[Order]
	Pay     port.Out[Order]
	Approve port.Out[Order]
	Notices port.Out[Notice]
}

// WorkerOptions implements worker.Configured.
func (*Reserve) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run implements worker.Worker.
func (r *Reserve) Run(_ context.Context, run *worker.Run) error {
	reserved := map[string]int{}
	if _, err := run.State().Get("reserved", &reserved); err != nil {
		return err
	}
	n := 0
	for o, err := range r.In.All() {
		if n++; err != nil {
			return err
		}
		switch {
		case o.Item == soldOut:
			err = tell(r.Notices, o, "declined", 0)
		case o.Cents > limit:
			reserved[o.Item] += o.Quantity
			err = r.Approve.Write(o)
		default:
			reserved[o.Item] += o.Quantity
			err = r.Pay.Write(o)
		}
		if err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	return run.State().Set("reserved", reserved)
}

// Decision is what somebody says to an order that waits for approval. It comes from outside:
//
//	weir send orders decisions '{"order": 7, "yes": true}'
type Decision struct {
	Order int  `json:"order"`
	Yes   bool `json:"yes"`
}

// Approve keeps large orders until somebody decides on them.
type Approve struct {
	In        port.In[Order]
	Decisions port.In[Decision]
	Pay       port.Out[Order]
	Notices   port.Out[Notice]
}

// Run implements worker.Worker.
func (a *Approve) Run(_ context.Context, run *worker.Run) error {
	for o, err := range a.In.All() {
		if err != nil {
			return err
		}
		if err := run.State().Set(orderKey(o.ID), o); err != nil {
			return err
		}
		if err := tell(a.Notices, o, "waiting", 0); err != nil {
			return err
		}
	}
	for d, err := range a.Decisions.All() {
		if err != nil {
			return err
		}
		if err := a.decide(run, d); err != nil {
			return err
		}
	}
	return nil
}

func (a *Approve) decide(run *worker.Run, d Decision) error {
	var o Order
	waits, err := run.State().Get(orderKey(d.Order), &o)
	if err != nil || !waits {
		return err // it was decided before, or nobody ordered it
	}
	run.State().Unset(orderKey(d.Order))
	if !d.Yes {
		return tell(a.Notices, o, "refused", 0)
	}
	if err := tell(a.Notices, o, "approved", 0); err != nil {
		return err
	}
	return a.Pay.Write(o)
}

func orderKey(id int) string { return fmt.Sprintf("order-%d", id) }

// batch is how many orders are shipped at a time, and patience how long fewer wait.
const (
	batch    = 10
	patience = 5 * time.Second
)

// Ship ships orders, ten at a time. Fewer wait for five seconds; they stay in the port until then.
type Ship struct {
	In      port.In[Order]
	Notices port.Out[Notice]
}

// Run implements worker.Worker.
func (s *Ship) Run(_ context.Context, run *worker.Run) error {
	var since time.Time
	waited, err := run.State().Get("since", &since)
	if err != nil {
		return err
	}
	ready := s.In.Len() - s.In.Len()%batch
	if waited && !run.Now().Before(since.Add(patience)) {
		ready = s.In.Len()
	}
	ready = min(ready, 50*batch)
	for range ready {
		o, _, err := s.In.Read()
		if err == nil {
			err = tell(s.Notices, o, "shipped", o.Cents)
		}
		if err != nil {
			return err
		}
	}
	switch left := s.In.Len(); {
	case left >= batch:
		return worker.ErrAgain
	case left == 0 && waited:
		run.State().Unset("since")
	case left > 0 && (ready > 0 || !waited):
		if err := run.State().Set("since", run.Now()); err != nil {
			return err
		}
		return errors.Join(run.WakeAfter(patience), worker.ErrSuspend)
	}
	return worker.ErrSuspend
}

// Event is what the tally counts.
type Event struct {
	Shipped  int `json:"shipped,omitempty"`
	Declined int `json:"declined,omitempty"`
	Waiting  int `json:"waiting,omitempty"`
	Cents    int `json:"cents,omitempty"`
	Notified int `json:"notified,omitempty"`
}

// Notify tells customers what happens to their orders. It numbers the notices of each customer, in the order in which they come.
type Notify struct {
	In     port.In[Notice]
	Events port.Out[Event]
}

// Run implements worker.Worker.
func (n *Notify) Run(_ context.Context, run *worker.Run) error {
	sent := map[string]int{}
	if _, err := run.State().Get("sent", &sent); err != nil {
		return err
	}
	var e Event
	for notice, err := range n.In.All() {
		if err != nil {
			return err
		}
		sent[notice.Customer]++ // here a real shop sends a mail, with the key run.IdempotencyKey("mail")
		e.Notified++
		e.Cents += notice.Cents
		switch notice.What {
		case "shipped":
			e.Shipped++
		case "declined":
			e.Declined++
		case "waiting":
			e.Waiting++
		case "refused":
			e.Waiting--
			e.Declined++
		case "approved":
			e.Waiting--
		}
	}
	if e.Notified == 0 {
		return nil
	}
	if err := run.State().Set("sent", sent); err != nil {
		return err
	}
	return n.Events.Write(e)
}

// Tally adds up what happened.
type Tally struct{ In port.In[Event] }

// Run implements worker.Worker.
func (t *Tally) Run(_ context.Context, run *worker.Run) error {
	var sum Event
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	for e, err := range t.In.All() {
		if err != nil {
			return err
		}
		sum.Shipped += e.Shipped
		sum.Declined += e.Declined
		sum.Waiting += e.Waiting
		sum.Cents += e.Cents
		sum.Notified += e.Notified
	}
	return run.State().Set("sum", sum)
}
