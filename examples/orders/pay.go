package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// atOnce is how many payments a run of Pay begins.
const atOnce = 100

// Pay has a child job for each payment, so that one that is tried again keeps no other from going on. A child is removed when what it
// brought is passed on: otherwise the shop, which never ends, would keep one for each order.
type Pay struct {
	In      port.In[Order]
	Ship    port.Out[Order]
	Notices port.Out[Notice]
}

// Receipt is the result of a payment.
type Receipt struct {
	Order Order `json:"order"`
	Paid  bool  `json:"paid"`
}

// Run implements worker.Worker.
func (p *Pay) Run(_ context.Context, run *worker.Run) error {
	for _, child := range run.WokenBy() {
		if err := p.finish(child); err != nil {
			return err
		}
	}
	for range min(p.In.Len(), atOnce) {
		o, _, err := p.In.Read()
		if err != nil {
			return err
		}
		if _, err := run.Spawn(orderKey(o.ID), job.Single(&Charge{Order: o}, payQueue), job.Release()); err != nil {
			return err
		}
	}
	if p.In.Len() > 0 {
		return worker.ErrAgain
	}
	return worker.ErrSuspend
}

// finish passes on what a payment brought. It looks at the child first: what it finds then is no reason any more to be run again, so a
// result that came behind a look for it would be missed. One that is still trying wakes Pay again.
func (p *Pay) finish(child *worker.Child) error {
	info, err := child.Info()
	if err != nil {
		return err
	}
	if info.Status == statemachine.Failed { // Pay fails, and says so, until somebody retries both
		return fmt.Errorf("payment of %s: %s", child.Name(), info.Reason)
	}
	if out, _ := info.Port(port.Output, "out"); out.Waiting == 0 {
		return nil
	}
	var r Receipt
	if ok, err := child.Read("out", &r); err != nil || !ok {
		return err
	}
	if !r.Paid {
		return tell(p.Notices, r.Order, "declined", 0)
	}
	return p.Ship.Write(r.Order)
}

// Charge charges a card once, however often it is tried.
type Charge struct {
	Order Order
	Out   port.Out[Receipt]

	gateway Gateway
}

// WorkerOptions implements worker.Configured.
func (*Charge) WorkerOptions() worker.Options {
	return worker.Options{Tries: 5, Backoff: worker.ExponentialBackoff(50*time.Millisecond, time.Minute).Jittered(), Timeout: 30 * time.Second}
}

// Run implements worker.Worker.
func (c *Charge) Run(ctx context.Context, run *worker.Run) error {
	err := c.gateway.Charge(ctx, run.IdempotencyKey("charge"), c.Order.Card, c.Order.Cents, run.Info().Tries)
	if err != nil && !errors.Is(err, errDeclined) {
		return err
	}
	return c.Out.Write(Receipt{c.Order, err == nil})
}

// errDeclined is the gateway's no.
var errDeclined = errors.New("the card is declined")

// Gateway charges cards. A call with a key that it has seen is not carried out again, and answered as the first.
type Gateway interface {
	Charge(ctx context.Context, key, card string, cents, try int) error
}

// pretended is a gateway for this example: it charges nobody.
type pretended struct{}

// Charge implements Gateway.
func (pretended) Charge(_ context.Context, _, card string, _, try int) error {
	switch {
	case card == declinedCard:
		return errDeclined
	case card == flakyCard && try == 0:
		return errors.New("the gateway does not answer")
	}
	return nil
}
