package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Payment takes money, and says how.
type Payment struct {
	Cents int
	Done  port.Out[Receipt]
}

type Receipt struct{ Text string }

func (p *Payment) Run(context.Context, *worker.Run) error {
	if p.Cents > 10_000 {
		return errors.New("over the limit")
	}
	return p.Done.Write(Receipt{fmt.Sprintf("%d cents", p.Cents)})
}

// Order has a child job for each payment, and lists what came of them when all have ended.
type Order struct {
	Cents  []int
	Result port.Out[[]string]
}

// Start spawns the payments: once, in whatever process the job goes on.
func (o *Order) Start(_ context.Context, run *worker.Run) error {
	for i, cents := range o.Cents {
		if _, err := run.Spawn(fmt.Sprintf("pay-%d", i), job.Single(&Payment{Cents: cents}, "")); err != nil {
			return err
		}
	}
	return nil
}

// Run runs again whenever a payment has done something, and gets past Await when that payment has ended. What it did
// before is kept, so it writes only when it has them all.
func (o *Order) Run(_ context.Context, run *worker.Run) error {
	var lines []string
	for i := range o.Cents {
		receipt, err := worker.Await[Receipt](run, fmt.Sprintf("pay-%d", i))
		var failed *worker.ChildError
		switch {
		case errors.As(err, &failed):
			lines = append(lines, failed.Name+" failed: "+failed.Reason)
		case err != nil:
			return err // not yet: the job is suspended
		default:
			lines = append(lines, receipt.Text)
		}
	}
	return o.Result.Write(lines)
}

// A job awaits the results of its children.
func ExampleAwait() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	engine, err := worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&Order{}, &Payment{}}, Logger: slog.New(slog.DiscardHandler), // it tells of payments that fail
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = engine.RunWhile(ctx, func(ctx context.Context) error {
		order, err := client.New(store).Start(ctx, job.Single(&Order{Cents: []int{250, 99_999, 1_000}}, ""))
		if err != nil {
			return err
		}
		if _, err := order.Wait(ctx); err != nil {
			return err
		}
		lines, err := order.Peek(ctx, "result", 10)
		fmt.Printf("%s\n", lines)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: [["250 cents","pay-1 failed: over the limit","1000 cents"]]
}
