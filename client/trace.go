package client

import (
	"context"

	"github.com/weirworks/weir/job"
)

type traceKey struct{}

// WithTrace returns a context under which what a Client creates and writes belongs to a trace, for programs that know the
// headers of a request and do not trace themselves. If the Client finds a trace in the context itself, see TraceFrom, that one counts.
func WithTrace(ctx context.Context, t job.Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// Option is a choice made when a Client is made.
type Option func(*Client)

// TraceFrom lets a Client find the trace to which what it creates and writes belongs, in the context that its methods are given.
// Package telemetry/tracing has one for OpenTelemetry.
func TraceFrom(find func(context.Context) job.Trace) Option {
	return func(c *Client) { c.trace = find }
}

// traceFinder is where a client looks for a trace; nil: only at what WithTrace has set.
type traceFinder func(context.Context) job.Trace

func (find traceFinder) in(ctx context.Context) job.Trace {
	if find != nil {
		if t := find(ctx); t.Parent != "" {
			return t
		}
	}
	t, _ := ctx.Value(traceKey{}).(job.Trace)
	return t
}
