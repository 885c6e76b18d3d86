package worker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// payments stands for a service that recognizes repeats by a key.
type payments struct{ done map[string]bool }

func (p *payments) pay(who, key string) {
	if p.done[key] {
		fmt.Println(who, "has paid already")
		return
	}
	p.done[key] = true
	fmt.Println(who, "pays")
}

// Charge takes payments.
type Charge struct {
	Orders port.In[string]

	payments *payments
}

func (*Charge) WorkerOptions() worker.Options {
	return worker.Options{Tries: 3, Backoff: worker.ExponentialBackoff(time.Millisecond, time.Hour)}
}

func (c *Charge) Run(_ context.Context, run *worker.Run) error {
	for who, err := range c.Orders.All() {
		if err != nil {
			return err
		}
		if who == "cid" && run.Info().Tries == 0 {
			return errors.New("no connection")
		}
		c.payments.pay(who, run.IdempotencyKey("pay"))
	}
	return nil
}

// Each order has a key of its own, and keeps it when the run is repeated.
func ExampleRun_IdempotencyKey() {
	ctx, client, stop := onEmbedded(&Charge{payments: &payments{done: map[string]bool{}}})
	defer stop()

	g := graph.New("payments")
	charge := graph.Add(g, "charge", &Charge{})
	graph.Initial(charge.Orders, "ann", "bob", "cid")
	h, err := client.Start(ctx, g)
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := h.Wait(ctx)
	fmt.Println(info.Status, err)
	// Output:
	// ann pays
	// bob pays
	// ann has paid already
	// bob has paid already
	// cid pays
	// completed <nil>
}
