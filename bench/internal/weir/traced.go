package weir

import (
	"context"
	"errors"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weirworks/weir/telemetry/tracing"
	"github.com/weirworks/weir/worker"

	"github.com/weirworks/weir/bench/internal/lab"
)

// tracedStream is stream with a trace for each message, of which one in a hundred is sampled. Spans are thrown away in batches.
func tracedStream(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
	return with(ctx, l, func(r *rig) (figures []lab.Figure, err error) {
		p := sdk.NewTracerProvider(sdk.WithBatcher(tracetest.NewNoopExporter()), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(0.01))))
		defer func() { err = errors.Join(err, p.Shutdown(context.WithoutCancel(ctx))) }()
		r.hooks = []worker.Hooks{tracing.New(r.store, p)}
		name, n, rows := l.Size.Rows()
		return singly(name, n, rows, tuned{}).run(ctx, r)
	})
}
