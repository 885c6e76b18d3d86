// Command temporal is Temporal's test server, with its store in memory, at the work of the
// benchmark: each item is a workflow of three activities.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.temporal.io/server/temporaltest"

	"github.com/weirworks/weir/bench/internal/lab"
)

// slower is how many times fewer items this system is given than the others: it does some
// tens a second.
const slower = 20

const taskQueue = "bench"

func main() {
	os.Exit(lab.Obey(context.Background(), map[string]func(context.Context, *lab.Lab) ([]lab.Figure, error){ //nolint:forbidigo // a program ends here
		"chain": chain, "hops": hops,
	}))
}

// activities are the stages of a chain; the last tells the ledger.
type activities struct{ ledger *lab.Ledger }

// Pass is a stage that passes its item on.
func (*activities) Pass(_ context.Context, item string) (string, error) { return item, nil }

// Arrive is the last stage.
func (a *activities) Arrive(_ context.Context, item string) error {
	a.ledger.Arrived(item)
	return nil
}

// row is the workflow of an item.
func row(ctx workflow.Context, item string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	var a *activities // only its methods' names count
	for range 2 {
		if err := workflow.ExecuteActivity(ctx, a.Pass, item).Get(ctx, &item); err != nil {
			return err
		}
	}
	return workflow.ExecuteActivity(ctx, a.Arrive, item).Get(ctx, nil)
}

// serve runs a server and a worker for as long as fn does. fn is given a function that starts
// the workflow of an item.
func serve(l *lab.Lab, ledger *lab.Ledger, fn func(start func(context.Context, int) error) error) error {
	server := temporaltest.NewServer(temporaltest.WithBaseClientOptions(client.Options{Logger: silence{}}))
	defer server.Stop()
	server.NewWorkerWithOptions(taskQueue, func(r worker.Registry) {
		r.RegisterWorkflow(row)
		r.RegisterActivity(&activities{ledger})
	}, worker.Options{MaxConcurrentActivityExecutionSize: l.Concurrency})
	c := server.GetDefaultClient()
	return fn(func(ctx context.Context, i int) error {
		_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: taskQueue, ID: fmt.Sprint("row-", i)}, row, lab.Item(i))
		return err
	})
}

func chain(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	n := max(l.Size.Chain/slower, 1)
	ledger := lab.NewLedger(n, n)
	var used lab.Usage
	err := serve(l, ledger, func(start func(context.Context, int) error) (err error) {
		used, err = l.Flood(ctx, n, ledger, start)
		return errors.Join(err, ledger.Once())
	})
	return used.Throughput("chain", n, "items"), err
}

func hops(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	n := l.Size.Hops
	ledger := lab.NewLedger(n, n)
	var times lab.Times
	err := serve(l, ledger, func(start func(context.Context, int) error) (err error) {
		times, err = lab.Drip(ctx, n, ledger, lab.NoPause, start)
		return errors.Join(err, ledger.Once())
	})
	return times.Figures("hops"), err
}

// silence is a logger that says nothing.
type silence struct{}

func (silence) Debug(string, ...any) {}
func (silence) Info(string, ...any)  {}
func (silence) Warn(string, ...any)  {}
func (silence) Error(string, ...any) {}
