// Package otlp sends spans to a collector by OTLP over HTTP, as the standard environment variables of OpenTelemetry say. weir
// worker and weir serve use it; programs that have a provider of their own do not need it.
package otlp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"

	"github.com/weirworks/weir/job"
)

// FlushTimeout is how long a program that ends should wait for its last spans to be taken, with Shutdown of the provider.
const FlushTimeout = 5 * time.Second

// Wanted tells whether the environment asks for traces: it has OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
// OTEL_TRACES_EXPORTER=otlp, and neither OTEL_SDK_DISABLED=true nor OTEL_TRACES_EXPORTER=none.
func Wanted() bool {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none" {
		return false
	}
	return cmp.Or(exporter, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) != ""
}

// NewProvider returns a provider that sends spans as the environment says: OTEL_EXPORTER_OTLP_* where to and how,
// OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG which, OTEL_BSP_* in what batches, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME,
// else service, of whom. The caller shuts it down. What cannot be done gives an error that wraps job.ErrConfig; that nobody
// listens is none, and told to otel.SetErrorHandler.
func NewProvider(ctx context.Context, service string) (*sdk.TracerProvider, error) {
	if exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		return nil, fmt.Errorf("%w of traces: OTEL_TRACES_EXPORTER %.80q: use otlp or none", job.ErrConfig, exporter)
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" {
		return nil, fmt.Errorf("%w of traces: OTEL_EXPORTER_OTLP_PROTOCOL %.80q: use http/protobuf, which collectors take at port 4318", job.ErrConfig, protocol)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w of traces: %w", job.ErrConfig, err)
	}
	all, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(service)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("%w of traces: OTEL_RESOURCE_ATTRIBUTES: %w", job.ErrConfig, err)
	}
	return sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(all)), nil
}
