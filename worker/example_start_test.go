package worker_test

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Invoice is written by a tree of its own.
type Invoice struct {
	Order port.In[string]
	Text  port.Out[string]
}

func (i *Invoice) Run(context.Context, *worker.Run) error {
	order, ok, err := i.Order.Read()
	if !ok || err != nil {
		return err
	}
	return i.Text.Write("invoice for " + order)
}

// Clerk has an invoice written for each order, and waits until the first one is.
type Clerk struct {
	Orders port.In[string]
	Ended  port.In[struct{ Job job.ID }]
	Trees  port.Out[job.ID]
}

func (c *Clerk) Run(_ context.Context, run *worker.Run) error {
	for order, err := range c.Orders.All() {
		if err != nil {
			return err
		}
		invoice, err := run.Start(job.Single(&Invoice{}, ""), job.TellEnd(run.ID(), "ended"))
		if err != nil {
			return err
		}
		if err := invoice.Write("order", order); err != nil {
			return err
		}
	}
	ended, ok, err := c.Ended.Read()
	if !ok {
		return cmp.Or(err, worker.ErrSuspend)
	}
	return c.Trees.Write(ended.Job)
}

// A tree that a run starts exists if the run commits, and then exactly once.
func ExampleRun_Start() {
	ctx, c, stop := onEmbedded(&Clerk{}, &Invoice{})
	defer stop()

	clerk, err := c.Start(ctx, job.Single(&Clerk{}, ""))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(clerk.Write(ctx, "orders", "two weirs"))
	info, err := clerk.Wait(ctx)
	fmt.Println(info.Status, err)
	id, _, err := client.Receive[job.ID](ctx, clerk, "trees")
	fmt.Println(err)
	text, _, err := client.Receive[string](ctx, c.At(id), "text")
	fmt.Println(text, err)
	// Output:
	// <nil>
	// completed <nil>
	// <nil>
	// invoice for two weirs <nil>
}
