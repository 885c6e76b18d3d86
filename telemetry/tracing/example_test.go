package tracing_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/telemetry/tracing"
	"github.com/weirworks/weir/worker"
)

// What a client starts within a span belongs to its trace.
func ExampleNew() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	spans := tracetest.NewInMemoryExporter() // or one that sends them to a collector
	provider := sdk.NewTracerProvider(sdk.WithSyncer(spans))
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Parcel{}}, Hooks: []worker.Hooks{tracing.New(store, provider)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.RunWhile(ctx, func(ctx context.Context) error {
		ctx, span := provider.Tracer("shop").Start(ctx, "checkout")
		defer span.End()
		h, err := client.New(store, tracing.Client()).Start(ctx, job.Single(&Parcel{}, ""))
		if err == nil {
			_, err = h.Wait(ctx)
		}
		return err
	}); err != nil {
		fmt.Println(err)
		return
	}
	run, checkout := spans.GetSpans()[0], spans.GetSpans()[1]
	fmt.Println(run.Name, run.Parent.SpanID() == checkout.SpanContext.SpanID())
	// Output: run Parcel true
}
