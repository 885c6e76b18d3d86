// Package tracing makes OpenTelemetry spans of runs. A program that does not import it does not link OpenTelemetry.
//
//	hooks := tracing.New(store, provider)
//	engine, err := worker.New(worker.Config{Store: store, Workers: workers, Hooks: []worker.Hooks{hooks}})
//	c := client.New(store, tracing.Client())
//
// Each run of a trace that is sampled is a span. Messages carry its place in the trace in their context, as the keys traceparent and
// tracestate of W3C Trace Context, and children in a field: so the trace goes on in whatever process runs what comes next, also
// after a restart. The parent of a run's span is that of the first message which waits for the run, else what its job was created
// in: the span in the context of Client.Start or Create, or the run that spawned it. Its retries go on with it. A span has links to
// the spans of all messages that the run read.
//
// A trace begins, and is sampled or not, where work enters: with a run whose first message comes from outside of its tree, or
// that has no message, and whose job was not created in a trace. What it writes carries nothing if the trace is not sampled, and
// later runs of the tree take a message of a run that carries nothing for one that is not to be traced.
package tracing

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// Scope is the instrumentation scope of the spans.
const Scope = "github.com/weirworks/weir/telemetry/tracing"

// Attributes of spans, beside weir.namespace.
const (
	attrJob         = attribute.Key("weir.job.id")
	attrTree        = attribute.Key("weir.tree.id")
	attrName        = attribute.Key("weir.job.name")
	attrType        = attribute.Key("weir.job.type")
	attrQueue       = attribute.Key("weir.queue")
	attrStep        = attribute.Key("weir.step")
	attrTry         = attribute.Key("weir.try")
	attrOutcome     = attribute.Key("weir.outcome")
	attrWaited      = attribute.Key("weir.waited_seconds")
	attrCrashed     = attribute.Key("weir.crashed")
	attrSpeculative = attribute.Key("weir.speculative")
)

// failuresTimeout is how long a retry waits to be told the trace of the try before it.
const failuresTimeout = 2 * time.Second

// Source is the store of the namespace: a *redisstore.Store.
type Source interface {
	Namespace() string
	Failures(ctx context.Context, id job.ID) ([]job.Failure, error)
}

// Tracing traces the runs of any number of engines of a namespace.
type Tracing struct {
	worker.NoHooks
	store  Source
	tracer trace.Tracer
	always attribute.KeyValue
	names  sync.Map // of spans, by worker type
	open   sync.Map // *worker.Run -> trace.Span, of those that are recorded

	// What runs that are not sampled are given is made once.
	unsampled job.Trace
	silence   trace.Span
}

// New returns hooks that trace runs with a provider; nil means OpenTelemetry's global one. What it samples is up to the provider, but a
// trace that was not sampled where it began is not sampled later: for one that was begun elsewhere, too, the spans of runs
// would otherwise be parts that nothing holds together.
func New(store Source, provider trace.TracerProvider) *Tracing {
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	// Any ID will do for what nobody records.
	nowhere := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(uuid.New()), SpanID: trace.SpanID{7: 1}, Remote: true})
	return &Tracing{
		store: store, tracer: provider.Tracer(Scope), always: attribute.String("weir.namespace", store.Namespace()),
		unsampled: traceOf(nowhere), silence: trace.SpanFromContext(trace.ContextWithRemoteSpanContext(context.Background(), nowhere)),
	}
}

// Client lets a client find the span in the context that its methods are given: what Start and Create make, and Write and Publish
// write, belongs to the trace of that span.
func Client() client.Option {
	return client.TraceFrom(func(ctx context.Context) job.Trace { return traceOf(trace.SpanContextFromContext(ctx)) })
}

// Run implements worker.Hooks.
func (t *Tracing) Run(ctx context.Context, run *worker.Run, next func(context.Context) error) error {
	up, begins := run.Upstream()
	if begins && run.Try() > 1 {
		up = t.before(ctx, run.ID())
		begins = up.Parent == ""
	}
	if !begins && !up.Sampled() {
		return t.silent(ctx, run, up, next)
	}
	within := ctx
	if !begins {
		within = trace.ContextWithRemoteSpanContext(ctx, spanContextOf(up))
	}
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	if run.Remote() {
		opts = append(opts, trace.WithTimestamp(run.Now()))
	}
	within, span := t.tracer.Start(within, t.nameOf(run.Type()), opts...)
	if !span.SpanContext().IsSampled() {
		return t.silent(ctx, run, up, next)
	}
	recording := span.IsRecording()
	run.SetTrace(traceOf(span.SpanContext()), recording)
	if recording {
		t.describe(span, run)
		t.open.Store(run, span)
	}
	return next(within)
}

// silent goes on with a run that is not sampled. Its children and its retry are told so, and so are spans of its own code.
func (t *Tracing) silent(ctx context.Context, run *worker.Run, up job.Trace, next func(context.Context) error) error {
	if up.Parent == "" {
		run.SetTrace(t.unsampled, false)
		return next(trace.ContextWithSpan(ctx, t.silence))
	}
	run.SetTrace(up, false)
	return next(trace.ContextWithRemoteSpanContext(ctx, spanContextOf(up)))
}

// before returns the trace of the last try of a job, which failed.
func (t *Tracing) before(ctx context.Context, id job.ID) job.Trace {
	ctx, cancel := context.WithTimeout(ctx, failuresTimeout)
	defer cancel()
	all, err := t.store.Failures(ctx, id)
	if err != nil || len(all) == 0 {
		return job.Trace{} // the run matters more than its trace
	}
	return job.StoredTrace(all[0].Trace)
}

func (t *Tracing) nameOf(typ string) string {
	if name, ok := t.names.Load(typ); ok {
		return name.(string)
	}
	name := "run " + typ
	t.names.Store(typ, name)
	return name
}

func (t *Tracing) describe(span trace.Span, run *worker.Run) {
	i := run.Info()
	span.SetAttributes(t.always, attrJob.String(string(i.ID)), attrTree.String(string(i.ID.Tree())), attrType.String(i.Type),
		attrQueue.String(i.Queue), attrStep.Int64(i.Steps), attrTry.Int(run.Try()))
	if i.Name != "" {
		span.SetAttributes(attrName.String(i.Name))
	}
}

// WantsEnd implements worker.Selective.
func (t *Tracing) WantsEnd(run *worker.Run) bool {
	if !run.Trace().Sampled() {
		return false
	}
	_, ok := t.open.Load(run)
	return ok
}

// Ended implements worker.Hooks.
func (t *Tracing) Ended(end *worker.RunEnd) {
	open, ok := t.open.LoadAndDelete(end.Run)
	if !ok {
		return
	}
	if end.Outcome == worker.Refused {
		return // its client has to say something else: that is the run's span
	}
	span := open.(trace.Span)
	for _, read := range end.Run.ReadTraces() {
		span.AddLink(trace.Link{SpanContext: spanContextOf(read)})
	}
	span.SetAttributes(attrOutcome.String(string(end.Outcome)))
	if end.Waited >= 0 {
		span.SetAttributes(attrWaited.Float64(end.Waited.Seconds()))
	}
	if end.Crashed {
		span.SetAttributes(attrCrashed.Bool(true))
	}
	if end.Speculative {
		span.SetAttributes(attrSpeculative.Bool(true))
	}
	if failed := end.Failure != nil || end.Outcome == worker.Lost; failed && end.Secret {
		span.SetStatus(codes.Error, "its data are encrypted: weir why tells the reason")
	} else if failed {
		record(span, end)
	}
	if end.Run.Remote() { // by the clock that told when it began
		span.End(trace.WithTimestamp(end.Began.Add(end.Took)))
		return
	}
	span.End()
}

// record notes why a run failed.
func record(span trace.Span, end *worker.RunEnd) {
	what := "the run lost its job: its lease ended"
	if end.Err != nil {
		what, _, _ = strings.Cut(end.Err.Error(), "\n")
		if end.Failure != nil && end.Failure.Stack != "" {
			span.RecordError(end.Err, trace.WithAttributes(attribute.String("exception.stacktrace", end.Failure.Stack)))
		} else {
			span.RecordError(end.Err)
		}
	}
	span.SetStatus(codes.Error, what)
}

// traceOf is what messages carry of a span; zero if there is none.
func traceOf(sc trace.SpanContext) job.Trace {
	if !sc.IsValid() {
		return job.Trace{}
	}
	id, span, flags := sc.TraceID(), sc.SpanID(), [1]byte{byte(sc.TraceFlags() & trace.FlagsSampled)}
	parent := append(make([]byte, 0, 55), "00-"...)
	parent = append(hex.AppendEncode(parent, id[:]), '-')
	parent = append(hex.AppendEncode(parent, span[:]), '-')
	return job.Trace{Parent: string(hex.AppendEncode(parent, flags[:])), State: sc.TraceState().String()}
}

// spanContextOf is the span that messages tell of.
func spanContextOf(t job.Trace) trace.SpanContext {
	cfg := trace.SpanContextConfig{Remote: true}
	if len(t.Parent) != 55 {
		return trace.SpanContext{}
	}
	cfg.TraceID, _ = trace.TraceIDFromHex(t.Parent[3:35]) // package job has checked them
	cfg.SpanID, _ = trace.SpanIDFromHex(t.Parent[36:52])
	if t.Sampled() {
		cfg.TraceFlags = trace.FlagsSampled
	}
	if t.State != "" {
		cfg.TraceState, _ = trace.ParseTraceState(t.State) // without it the trace goes on
	}
	return trace.NewSpanContext(cfg)
}
