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

// tracedStream is stream with tracing, of which a share of the messages is sampled. Spans are thrown away in batches.
func tracedStream(share float64) func(context.Context, *lab.Lab) ([]lab.Figure, error) {
	return func(ctx context.Context, l *lab.Lab) ([]lab.Figure, error) {
		return with(ctx, l, func(r *rig) (figures []lab.Figure, err error) {
			p := sdk.NewTracerProvider(sdk.WithBatcher(tracetest.NewNoopExporter()), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(share))))
			defer func() { err = errors.Join(err, p.Shutdown(context.WithoutCancel(ctx))) }()
			r.hooks = []worker.Hooks{tracing.New(r.store, p)}
			name, n, rows := l.Size.Rows()
			return singly(name, n, rows, tuned{}).run(ctx, r)
		})
	}
}
