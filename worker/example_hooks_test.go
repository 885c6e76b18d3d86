package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/worker"
)

// Tenants puts the tenant of a job, a label, into the context of its runs, and reports failures.
type Tenants struct{ worker.NoHooks }

type tenantKey struct{}

// Run implements worker.Hooks.
func (Tenants) Run(ctx context.Context, run *worker.Run, next func(context.Context) error) error {
	return next(context.WithValue(ctx, tenantKey{}, run.Info().Labels["tenant"]))
}

// Ended implements worker.Hooks.
func (Tenants) Ended(end *worker.RunEnd) {
	fmt.Printf("%s %s: %v\n", end.Type, end.Outcome, end.Err)
}

// Billing bills a tenant who pays.
type Billing struct{}

// Run implements worker.Worker.
func (*Billing) Run(ctx context.Context, _ *worker.Run) error {
	return fmt.Errorf("%v does not pay", ctx.Value(tenantKey{}))
}

func ExampleHooks() {
	if err := bill(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: Billing failed: acme does not pay
}

func bill(ctx context.Context) error {
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := worker.New(worker.Config{
		Store: store, Workers: []worker.Worker{&Billing{}}, Hooks: []worker.Hooks{Tenants{}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return engine.RunWhile(ctx, func(ctx context.Context) error {
		h, err := client.New(store).Start(ctx, job.Single(&Billing{}, ""), job.Label("tenant", "acme"))
		if err == nil {
			_, err = h.Wait(ctx)
		}
		if errors.Is(err, job.ErrFailed) {
			return nil
		}
		return err
	})
}
