package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Check refuses broken orders, which become dead letters, and has large ones approved.
type Check struct {
	In      port.In[Order]
	Pay     port.Out[Order]
	Approve port.Out[Order]
}

// Run implements worker.Worker.
func (c *Check) Run(context.Context, *worker.Run) error {
	o, ok, err := c.In.Read()
	switch {
	case err != nil || !ok:
		return err
	case o.Quantity < 1:
		return worker.Permanent(fmt.Errorf("order %d: the quantity is %d", o.ID, o.Quantity))
	case o.Euros >= approvals:
		return c.Approve.Write(o)
	}
	return c.Pay.Write(o)
}

// Decision is what somebody says of an order that waits for approval.
type Decision struct {
	Order int  `json:"order"`
	Yes   bool `json:"yes"`
}

// Approve keeps large orders until somebody decides on them, in its state.
type Approve struct {
	In        port.In[Order]
	Decisions port.In[Decision]
	Pay       port.Out[Order]
}

// Run implements worker.Worker.
func (a *Approve) Run(_ context.Context, run *worker.Run) error {
	var waiting []Order
	if _, err := run.State().Get("waiting", &waiting); err != nil {
		return err
	}
	for d, err := range a.Decisions.All() {
		if err != nil {
			return err
		}
		for i, o := range waiting {
			if o.ID != d.Order {
				continue
			}
			waiting = append(waiting[:i:i], waiting[i+1:]...)
			if d.Yes {
				if err := a.Pay.Write(o); err != nil {
					return err
				}
			}
			break
		}
	}
	for o, err := range a.In.All() {
		if err != nil {
			return err
		}
		waiting = append(waiting, o)
	}
	if n := len(waiting) - pending; n > 0 {
		if err := run.Log(fmt.Sprintf("nobody has decided on order %d: it is declined", waiting[0].ID)); err != nil {
			return err
		}
		waiting = waiting[n:]
	}
	return run.State().Set("waiting", waiting)
}

// atOnce is how many payments are in progress at a time.
const atOnce = 6

// Pay has a child job for each payment, so that one that is tried again keeps no other from going on.
type Pay struct {
	In   port.In[Order]
	Paid port.Out[Order]
}

// Run implements worker.Worker.
func (p *Pay) Run(_ context.Context, run *worker.Run) error {
	var open int
	if _, err := run.State().Get("open", &open); err != nil {
		return err
	}
	for _, child := range run.WokenBy() {
		done, err := p.finish(child)
		if err != nil {
			return err
		}
		if done {
			open--
		}
	}
	for open < atOnce && p.In.Len() > 0 {
		o, _, err := p.In.Read()
		if err != nil {
			return err
		}
		if _, err := run.Spawn("order-"+strconv.Itoa(o.ID), job.Single(&Charge{Order: o}, payQueue), job.Release()); err != nil {
			return err
		}
		open++
	}
	if err := run.State().Set("open", open); err != nil {
		return err
	}
	return worker.ErrSuspend
}

// finish passes on what a payment brought, if it is over.
func (p *Pay) finish(child *worker.Child) (over bool, err error) {
	info, err := child.Info()
	if err != nil || info.Status != statemachine.Completed && info.Status != statemachine.Failed && info.Status != statemachine.Terminated {
		return false, err
	}
	var o Order
	if ok, err := child.Read("out", &o); err != nil || !ok {
		return true, err
	}
	return true, p.Paid.Write(o)
}

// Charge charges a card. Each fourth time the bank does not answer at first.
type Charge struct {
	Order Order
	Out   port.Out[Order]
}

// WorkerOptions implements worker.Configured.
func (*Charge) WorkerOptions() worker.Options {
	return worker.Options{Tries: 4, Backoff: worker.ExponentialBackoff(time.Second, 10*time.Second).Jittered(), Timeout: 30 * time.Second}
}

// Run implements worker.Worker.
func (c *Charge) Run(ctx context.Context, run *worker.Run) error {
	if err := work(ctx, 400*time.Millisecond+time.Duration(c.Order.ID%5)*150*time.Millisecond); err != nil {
		return err
	}
	if run.Try() == 1 && c.Order.ID%4 == 1 {
		return errors.New("the bank does not answer")
	}
	return c.Out.Write(c.Order)
}

// Pack packs one order at a time, half as fast as they come in a burst: so the edge to it fills, then those before it, and who takes
// orders is suspended by backpressure for half of the burst.
type Pack struct {
	In  port.In[Order]
	Out port.Out[Order]
}

// Run implements worker.Worker.
func (p *Pack) Run(ctx context.Context, _ *worker.Run) error {
	o, ok, err := p.In.Read()
	if err != nil || !ok {
		return err
	}
	if err := work(ctx, 650*time.Millisecond); err != nil {
		return err
	}
	return p.Out.Write(o)
}

// Ship counts what leaves the shop.
type Ship struct {
	In  port.In[Order]
	Out port.Out[Order]
}

// Run implements worker.Worker.
func (s *Ship) Run(_ context.Context, run *worker.Run) error {
	var shipped struct {
		Orders int `json:"orders"`
		Euros  int `json:"euros"`
		Last   int `json:"last"`
	}
	if _, err := run.State().Get("shipped", &shipped); err != nil {
		return err
	}
	for o, err := range s.In.All() {
		if err != nil {
			return err
		}
		shipped.Orders, shipped.Euros, shipped.Last = shipped.Orders+1, shipped.Euros+o.Euros, o.ID
		if err := s.Out.Write(o); err != nil {
			return err
		}
	}
	return run.State().Set("shipped", shipped)
}

// Notify tells customers, in at most 20 runs a minute: then it is throttled.
type Notify struct{ In port.In[Order] }

// WorkerOptions implements worker.Configured.
func (*Notify) WorkerOptions() worker.Options { return worker.Options{MaxRunsPerMinute: 20} }

// Run implements worker.Worker.
func (n *Notify) Run(_ context.Context, run *worker.Run) error {
	told := 0
	for _, err := range n.In.All() {
		if err != nil {
			return err
		}
		told++
	}
	if told == 0 {
		return nil
	}
	return run.Log(fmt.Sprintf("told %d customers", told))
}

// shelves are what Stock counts.
const shelves = 10

// Stock counts the stock, for the trigger, and tells how far it is.
type Stock struct{ Counted port.Out[int] }

// Run implements worker.Worker.
func (s *Stock) Run(ctx context.Context, run *worker.Run) error {
	for n := range shelves {
		if err := errors.Join(run.Progress(n, shelves, "shelves"), work(ctx, 500*time.Millisecond)); err != nil {
			return err
		}
	}
	return errors.Join(run.Progress(shelves, shelves, "shelves"), s.Counted.Write(run.Now().Second()))
}

// work takes its time.
func work(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
