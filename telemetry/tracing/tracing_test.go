package tracing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/tracing"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		serve()
		return
	}
	os.Exit(redistest.Main(m))
}

// Order fails at its first try.
type Order struct {
	In  port.In[int]
	Out port.Out[int]
}

func (w *Order) Run(_ context.Context, run *worker.Run) error {
	err := run.WithContext(port.Context{"shop": "north"}, func() error { return pass(w.In, w.Out) })
	if err != nil || run.Try() > 1 {
		return err
	}
	return errors.New("the till is closed\nfor now")
}

// WorkerOptions implements worker.Configured.
func (*Order) WorkerOptions() worker.Options {
	return worker.Options{Tries: 2, Backoff: worker.ConstantBackoff(time.Millisecond)}
}

// Ship spawns a child.
type Ship struct {
	In  port.In[int]
	Out port.Out[int]
}

func (w *Ship) Run(_ context.Context, run *worker.Run) error {
	crash()
	if w.In.Len() > 0 {
		if _, err := run.Spawn("parcel", job.Single(&Parcel{}, "")); err != nil {
			return err
		}
	}
	return pass(w.In, w.Out)
}

// Parcel does nothing.
type Parcel struct{}

func (*Parcel) Run(context.Context, *worker.Run) error { return nil }

// Bill reads all there is.
type Bill struct{ In port.In[int] }

func (w *Bill) Run(context.Context, *worker.Run) error {
	for _, err := range w.In.All() {
		if err != nil {
			return err
		}
	}
	return nil
}

// Relay passes one number on.
type Relay struct {
	In  port.In[int]
	Out port.Out[int]
}

func (w *Relay) Run(context.Context, *worker.Run) error { return pass(w.In, w.Out) }

// WorkerOptions implements worker.Configured.
func (*Relay) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Launcher starts a tree.
type Launcher struct{ Tree port.Out[job.ID] }

func (w *Launcher) Run(_ context.Context, run *worker.Run) error {
	tree, err := run.Start(job.Single(&Relay{}, ""))
	if err != nil {
		return err
	}
	return errors.Join(tree.Write("in", 1), tree.Close("in"), w.Tree.Write(tree.ID()))
}

// Source writes without having read.
type Source struct {
	Out  port.Out[int]
	Last int
}

func (w *Source) Run(_ context.Context, run *worker.Run) error {
	if run.Try() == 1 && run.Info().Steps == 0 {
		return errors.New("not yet")
	}
	return w.Out.Write(1)
}

// WorkerOptions implements worker.Configured.
func (*Source) WorkerOptions() worker.Options {
	return worker.Options{Tries: 2, Backoff: worker.ConstantBackoff(time.Millisecond)}
}

func pass(in port.In[int], out port.Out[int]) error {
	n, ok, err := in.Read()
	if err != nil || !ok {
		return err
	}
	return out.Write(n)
}

func orders() *graph.Graph {
	g := graph.New("orders")
	order, ship, bill := graph.Add(g, "order", &Order{}), graph.Add(g, "ship", &Ship{}), graph.Add(g, "bill", &Bill{})
	graph.Connect(graph.Input[int](g, "in"), order.In)
	graph.Connect(order.Out, ship.In)
	graph.Connect(ship.Out, bill.In)
	return g
}

// recorder keeps spans in memory.
func recorder(t testing.TB, opts ...sdk.TracerProviderOption) (*sdk.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	p := sdk.NewTracerProvider(append(opts, sdk.WithSyncer(spans))...)
	t.Cleanup(func() { _ = p.Shutdown(context.WithoutCancel(t.Context())) })
	return p, spans
}

// serving runs an engine with some types while fn runs.
func serving(ctx context.Context, t testing.TB, store *redisstore.Store, p trace.TracerProvider, types []worker.Worker, fn func(context.Context) error) {
	t.Helper()
	cfg := worker.Config{Store: store, Workers: types, Logger: slog.New(slog.DiscardHandler)}
	if p != nil {
		cfg.Hooks = []worker.Hooks{tracing.New(store, p)}
	}
	engine, err := worker.New(cfg)
	enginetest.Check(t, err)
	enginetest.Check(t, engine.RunWhile(ctx, fn))
}

// span is what a test looks at of one.
type span struct {
	trace, id, parent, name, text string
	links                         []string
}

func stubs(all tracetest.SpanStubs) (out []span) {
	for i := range all {
		s := &all[i]
		one := span{trace: s.SpanContext.TraceID().String(), id: s.SpanContext.SpanID().String(), name: s.Name, text: s.Name}
		if s.Parent.IsValid() {
			one.parent = s.Parent.SpanID().String()
		}
		if s.Status.Code == codes.Error {
			one.text += " failed: " + s.Status.Description
		}
		for _, l := range s.Links {
			one.links = append(one.links, l.SpanContext.SpanID().String())
		}
		out = append(out, one)
	}
	return out
}

// shape draws spans as a tree. The second run of Ship is that which its child woke.
func shape(all []span) string {
	var out strings.Builder
	slices.SortFunc(all, func(a, b span) int { return strings.Compare(a.text, b.text) })
	known := map[string]string{}
	for _, s := range all {
		known[s.id] = s.name
	}
	var below func(parent string, depth int)
	below = func(parent string, depth int) {
		for _, s := range all {
			if s.parent == parent || parent == "" && known[s.parent] == "" {
				linked := ""
				for _, l := range s.links {
					linked += " <- " + known[l]
				}
				fmt.Fprintf(&out, "%s%s%s\n", strings.Repeat("  ", depth), s.text, linked)
				below(s.id, depth+1)
			}
		}
	}
	below("", 0)
	return out.String()
}

const wantShape = `checkout
  run Order <- checkout
    run Ship <- run Order
      run Bill <- run Ship
      run Parcel
  run Order failed: the till is closed <- checkout
  run Ship
`

// oneTrace fails unless all spans are of one trace.
func oneTrace(t *testing.T, all []span) {
	t.Helper()
	for _, s := range all {
		if s.trace != all[0].trace {
			t.Errorf("%s is in trace %s, %s in %s", s.name, s.trace, all[0].name, all[0].trace)
		}
	}
}

// placed starts the graph and orders something, within a span.
func placed(ctx context.Context, t *testing.T, store *redisstore.Store, p trace.TracerProvider) *client.Handle {
	t.Helper()
	ctx, root := p.Tracer("test").Start(ctx, "checkout")
	defer root.End()
	h, err := client.New(store, tracing.Client()).Start(ctx, orders())
	if err == nil {
		err = errors.Join(h.Write(ctx, "in", 7), h.Close(ctx, "in"))
	}
	enginetest.Check(t, err)
	return h
}

// TestShape: runs, retries and children are in the trace of what caused them, in two engines.
func TestShape(t *testing.T) {
	enginetest.Each(t, func(e *enginetest.Env) {
		t, store, ctx, other := e.T, e.Store, e.Ctx, e.Open(e.URL)
		p, spans := recorder(t)
		h := placed(ctx, t, store, p)
		serving(ctx, t, store, p, []worker.Worker{&Order{}, &Bill{}}, func(ctx context.Context) error {
			serving(ctx, t, other, p, []worker.Worker{&Ship{}, &Parcel{}}, func(ctx context.Context) error {
				_, err := h.Wait(ctx)
				return errors.Join(err, settled(ctx, h))
			})
			return nil
		})
		all := stubs(spans.GetSpans())
		oneTrace(t, all)
		if got := shape(all); got != wantShape {
			t.Errorf("spans:\n%swant:\n%s", got, wantShape)
		}
	})
}

// settled waits until all jobs of the tree have.
func settled(ctx context.Context, h *client.Handle) error {
	for {
		all, err := h.Tree(ctx)
		if err != nil {
			return err
		}
		open := 0
		for _, i := range all {
			if !i.Status.Settled() {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestBegins: a run that nothing traced led to begins a trace, and its retry and what follows go on with it.
func TestBegins(t *testing.T) {
	e := enginetest.Shared(t)
	store, ctx := e.Store, e.Ctx
	p, spans := recorder(t)
	g := graph.New("g")
	a, b := graph.Add(g, "a", &Source{}), graph.Add(g, "b", &Bill{})
	graph.Connect(a.Out, b.In)
	var h *client.Handle
	serving(ctx, t, store, p, []worker.Worker{&Source{}, &Bill{}}, func(ctx context.Context) (err error) {
		if h, err = client.New(store).Start(ctx, g); err != nil {
			return err
		}
		_, err = h.Wait(ctx)
		return err
	})
	all := stubs(spans.GetSpans())
	oneTrace(t, all)
	want := "run Source failed: not yet\n  run Source\n    run Bill <- run Source\n"
	if got := shape(all); got != want {
		t.Errorf("spans:\n%swant:\n%s", got, want)
	}
	a1, err := client.New(store).Find(ctx, string(h.ID())+"/a")
	enginetest.Check(t, err)
	fs, err := a1.Failures(ctx)
	if err != nil || len(fs) != 1 || !strings.Contains(fs[0].Trace, all[0].trace) {
		t.Errorf("failures %+v, error %v: want the trace %s", fs, err, all[0].trace)
	}
}

// TestLinks: a run that reads messages of several traces is linked to all of them, and in that of the first.
func TestLinks(t *testing.T) {
	e := enginetest.Shared(t)
	store, ctx := e.Store, e.Ctx
	p, spans := recorder(t)
	client := client.New(store, tracing.Client())
	h, err := client.Start(ctx, job.Single(&Bill{}, ""), job.EnginesLater())
	enginetest.Check(t, err)
	for _, name := range []string{"first", "second", "third"} {
		within, s := p.Tracer("test").Start(ctx, name)
		within = job.WithContext(within, port.Context{"tenant": name})
		enginetest.Check(t, h.Write(within, "in", 1, 2, 3))
		s.End()
	}
	serving(ctx, t, store, p, []worker.Worker{&Bill{}}, func(ctx context.Context) error {
		_, err := h.Wait(ctx)
		return err
	})
	want := "first\n  run Bill <- first <- second <- third\nsecond\nthird\n"
	if got := shape(stubs(spans.GetSpans())); got != want {
		t.Errorf("spans:\n%swant:\n%s", got, want)
	}
}

// TestOff: without tracing messages and jobs have not a byte more.
func TestOff(t *testing.T) {
	e := enginetest.Shared(t)
	store, ctx := e.Store, e.Ctx
	h, err := client.New(store, tracing.Client()).Start(ctx, orders())
	enginetest.Check(t, err)
	enginetest.Check(t, h.Write(ctx, "in", 7))
	ship, err := client.New(store).Find(ctx, string(h.ID())+"/ship")
	enginetest.Check(t, err)
	serving(ctx, t, store, nil, []worker.Worker{&Order{}}, func(ctx context.Context) error {
		_, err := ship.WaitFor(ctx, func(i *job.Info) bool { p, _ := i.Port(port.Input, "in"); return p.Waiting == 1 })
		return err
	})
	all, err := ship.Messages(ctx, port.Input, "in", 2)
	if err != nil || len(all) != 1 || len(all[0].Context) != 2 || all[0].Context[port.ContextBy] == nil {
		t.Errorf("messages %+v, error %v: want one that says who wrote it, and where", all, err)
	}
	if info, err := ship.Info(ctx); err != nil || info.Trace != (job.Trace{}) {
		t.Errorf("trace %+v, error %v: want none", info.Trace, err)
	}
}

// TestSecret: a span tells nothing of what is encrypted in the store.
func TestSecret(t *testing.T) {
	t.Parallel()
	p, spans := recorder(t)
	hooks := tracing.New(source{}, p)
	e := enginetest.New(t, redisstore.Config{URL: redistest.SharedRedis(t)})
	store, ctx := e.Store, e.Ctx
	h, err := client.New(store).Start(ctx, job.Single(&Source{}, ""), job.EnginesLater())
	enginetest.Check(t, err)
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Source{}}, Hooks: []worker.Hooks{veil{hooks}}, Logger: slog.New(slog.DiscardHandler)})
	enginetest.Check(t, err)
	enginetest.Check(t, engine.RunJob(ctx, h.ID()))
	all := spans.GetSpans()
	if len(all) != 1 || all[0].Status.Code != codes.Error || strings.Contains(fmt.Sprint(all), "not yet") {
		t.Errorf("spans %+v: want one that failed and does not say why", all)
	}
}

// source is a namespace without failures.
type source struct{}

func (source) Namespace() string                                       { return "veiled" }
func (source) Failures(context.Context, job.ID) ([]job.Failure, error) { return nil, nil }

// veil tells hooks that the store encrypts.
type veil struct{ worker.Hooks }

func (v veil) Ended(end *worker.RunEnd) {
	end.Secret = true
	v.Hooks.Ended(end)
}

// counter counts the ends of runs.
type counter struct {
	worker.NoHooks
	ends atomic.Int64
}

func (c *counter) Ended(*worker.RunEnd) { c.ends.Add(1) }

// TestBesideOthers: hooks that want to be told of all runs are, although tracing is not.
func TestBesideOthers(t *testing.T) {
	e := enginetest.Shared(t)
	store, ctx := e.Store, e.Ctx
	p, spans := recorder(t, sdk.WithSampler(sdk.NeverSample()))
	all := &counter{}
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&Parcel{}}, Hooks: []worker.Hooks{tracing.New(store, p), all}, Logger: slog.New(slog.DiscardHandler)})
	enginetest.Check(t, err)
	h, err := client.New(store).Start(ctx, job.Single(&Parcel{}, ""), job.EnginesLater())
	enginetest.Check(t, err)
	enginetest.Check(t, engine.RunJob(ctx, h.ID()))
	if n := all.ends.Load(); n != 1 || len(spans.GetSpans()) > 0 {
		t.Errorf("told of %d ends, %d spans", n, len(spans.GetSpans()))
	}
}

// TestRemote: the runs of clients that lease them are spans as those of engines, from when they began, also of one that failed; what they
// write goes on with the trace. A commit that is refused, and one that is sent twice, leave nothing behind.
func TestRemote(t *testing.T) {
	e := enginetest.Shared(t)
	store, ctx := e.Store, e.Ctx
	p, spans := recorder(t)
	g := graph.New("g")
	a, b := graph.Add(g, "a", &Relay{}), graph.Add(g, "b", &Bill{})
	graph.Connect(graph.Input[int](g, "in"), a.In)
	graph.Connect(a.Out, b.In)
	counts := &counter{}
	leases, err := worker.NewLeases(worker.LeaseConfig{Store: store, Hooks: []worker.Hooks{tracing.New(store, p), counts}})
	enginetest.Check(t, err)
	enginetest.Run(t, leases.Run)
	take := func() string {
		t.Helper()
		all, err := leases.Take(ctx, worker.LeaseRequest{Types: []string{"Relay"}, Wait: enginetest.Patience})
		if err != nil || len(all) != 1 {
			t.Fatalf("leased %v, error %v", all, err)
		}
		return all[0].Ticket()
	}
	within, root := p.Tracer("test").Start(ctx, "checkout")
	h, err := client.New(store, tracing.Client()).Start(within, g, job.EnginesLater())
	if err == nil {
		err = errors.Join(h.Write(within, "in", 7), h.Close(within, "in"))
	}
	if root.End(); err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	first := take()
	if err := leases.Fail(ctx, first, worker.RunFailure{Error: "no paper", Read: map[string]int{"in": 1}, RetryAfter: &now}); err != nil {
		t.Fatal(err)
	}
	ticket := take()
	wrong := worker.Work{Write: []worker.Written{{Port: "outt", Messages: []json.RawMessage{json.RawMessage("7")}}}}
	if err := leases.Commit(ctx, ticket, wrong); !errors.Is(err, job.ErrPort) {
		t.Errorf("error %v, want one of the port", err)
	}
	work := worker.Work{Read: map[string]int{"in": 1}, Write: []worker.Written{{Port: "out", Messages: []json.RawMessage{json.RawMessage("7")}}}}
	for range 2 {
		enginetest.Check(t, leases.Commit(ctx, ticket, work))
	}
	serving(ctx, t, store, p, []worker.Worker{&Bill{}}, func(ctx context.Context) error {
		_, err := h.Wait(ctx)
		return err
	})
	all := spans.GetSpans()
	for i := range all {
		if s := &all[i]; s.Name == "run Relay" && s.EndTime.Sub(s.StartTime) <= 0 {
			t.Errorf("the span of a remote run took %s", s.EndTime.Sub(s.StartTime))
		}
	}
	oneTrace(t, stubs(all))
	const want = "checkout\n  run Relay <- checkout\n    run Bill <- run Relay\n  run Relay failed: no paper <- checkout\n"
	if got := shape(stubs(all)); got != want {
		t.Errorf("spans:\n%swant:\n%s", got, want)
	}
	if n := counts.ends.Load(); n != 3 {
		t.Errorf("told of %d ends, want 3: a failed one, a refused one and one that was committed", n)
	}
}
