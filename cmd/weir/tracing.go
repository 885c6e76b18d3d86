package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"

	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/metrics"
	"github.com/weirworks/weir/telemetry/tracing"
	"github.com/weirworks/weir/telemetry/tracing/otlp"
	"github.com/weirworks/weir/worker"
)

// traceHelp is what help texts of commands that run jobs say of traces.
const traceHelp = `With OTEL_EXPORTER_OTLP_ENDPOINT in the environment, such as http://localhost:4318, each run is
a span of OpenTelemetry that is sent there; the other standard OTEL_* variables count, too.`

// hooksOf are those of runs: metrics unless they are nil, and traces if the environment asks for them. flush sends the last spans.
func hooksOf(c *cobra.Command, store *redisstore.Store, m *metrics.Metrics) (hooks []worker.Hooks, flush func(), err error) {
	if m != nil {
		hooks = append(hooks, m)
	}
	if !otlp.Wanted() {
		return hooks, nothing, nil
	}
	provider, err := otlp.NewProvider(c.Context(), "weir")
	if err != nil {
		return nil, nil, usageError{err}
	}
	log := logger(c.ErrOrStderr())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces", "error", err) }))
	return append(hooks, tracing.New(store, provider)), func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), otlp.FlushTimeout)
		defer cancel()
		if err := provider.Shutdown(late); err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "weir: the last spans were not sent: %v\n", err)
		}
	}, nil
}
