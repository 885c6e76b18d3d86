package tracing_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// TestNotSampled: of a trace that is not sampled there are no spans, in no later run, child or retry either, and what runs write
// carries nothing of it, whether it began outside or with a run.
func TestNotSampled(t *testing.T) {
	t.Parallel()
	for name, outside := range map[string]bool{"began outside": true, "began with a run": false} {
		t.Run(name, func(t *testing.T) {
			e := enginetest.Shared(t)
			store, ctx := e.Store, e.Ctx
			never, spans := recorder(t, sdk.WithSampler(sdk.NeverSample()))
			all, kept := recorder(t) // which samples all
			c, entry := never, all
			if !outside {
				c, entry = nil, never
			}
			var h *client.Handle
			if c != nil {
				h = placed(ctx, t, store, c)
			} else {
				h = placedUntraced(ctx, t, store)
			}
			bill, err := client.New(store).Find(ctx, string(h.ID())+"/bill")
			enginetest.Check(t, err)
			ship, err := client.New(store).Find(ctx, string(h.ID())+"/ship")
			enginetest.Check(t, err)
			serving(ctx, t, store, entry, []worker.Worker{&Order{}}, func(ctx context.Context) error { return waits(ctx, t, ship) })
			serving(ctx, t, store, all, []worker.Worker{&Ship{}, &Parcel{}}, func(ctx context.Context) error { return waits(ctx, t, bill) })
			serving(ctx, t, store, all, []worker.Worker{&Order{}, &Ship{}, &Parcel{}, &Bill{}}, func(ctx context.Context) error { return settled(ctx, h) })
			if n := len(spans.GetSpans()); n > 0 {
				t.Errorf("%d spans, want none", n)
			}
			// Ship's second run, which its child wakes, reads nothing: it belongs to what its job was created in, or begins a trace.
			if got := shape(stubs(kept.GetSpans())); outside && got != "" || !outside && strings.Trim(got, "\n") != "run Ship" {
				t.Errorf("spans:\n%s", got)
			}
		})
	}
}

// waits waits for a message that waits at the job's port in, and looks that it carries no trace.
func waits(ctx context.Context, t *testing.T, h *client.Handle) error {
	t.Helper()
	if _, err := h.WaitFor(ctx, func(i *job.Info) bool { p, _ := i.Port(port.Input, "in"); return p.Waiting == 1 }); err != nil {
		return err
	}
	waiting, err := h.Messages(ctx, port.Input, "in", 1)
	if err == nil && waiting[0].Context[port.ContextTrace] != nil {
		t.Errorf("context %v: want no trace", waiting[0].Context)
	}
	return err
}

// placedUntraced is placed by a client that traces nothing.
func placedUntraced(ctx context.Context, t *testing.T, store *redisstore.Store) *client.Handle {
	t.Helper()
	h, err := client.New(store).Start(ctx, orders())
	if err == nil {
		err = errors.Join(h.Write(ctx, "in", 7), h.Close(ctx, "in"))
	}
	enginetest.Check(t, err)
	return h
}

// TestSamplesWhereWorkEnters: of many messages from outside about the share that is to be sampled is, each of these with all its runs.
func TestSamplesWhereWorkEnters(t *testing.T) {
	e := enginetest.Shared(t)
	store, ctx := e.Store, e.Ctx
	p, spans := recorder(t, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(0.25))))
	g := graph.New("g")
	a, b, c := graph.Add(g, "a", &Relay{}), graph.Add(g, "b", &Relay{}), graph.Add(g, "c", &Relay{})
	graph.Connect(graph.Input[int](g, "in"), a.In)
	graph.Connect(a.Out, b.In)
	graph.Connect(b.Out, c.In)
	graph.Export(g, "out", c.Out)
	h, err := client.New(store).Start(ctx, g, job.EnginesLater())
	enginetest.Check(t, err)
	const n = 100
	numbers := make([]any, n)
	for i := range numbers {
		numbers[i] = i
	}
	enginetest.Check(t, errors.Join(h.Write(ctx, "in", numbers...), h.Close(ctx, "in")))
	serving(ctx, t, store, p, []worker.Worker{&Relay{}}, func(ctx context.Context) error {
		_, err := h.Wait(ctx)
		return err
	})
	runs := map[string]int{}
	for _, s := range stubs(spans.GetSpans()) {
		runs[s.trace]++
	}
	whole := 0
	for _, k := range runs {
		if k >= 3 { // a speculative run that was discarded has a span, too
			whole++
		}
	}
	// More than four standard deviations. A last run of each job may read nothing, and begin a trace of its own.
	if whole < 5 || whole > 45 || len(runs) > whole+3 {
		t.Errorf("%d traces of %d messages, %d of them with a span for each job", len(runs), n, whole)
	}
}

// TestAnotherTree: what a run of another tree wrote begins a trace, unless that run's was not to be sampled.
func TestAnotherTree(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"untraced": "run Relay\n", "not sampled": ""} {
		t.Run(name, func(t *testing.T) {
			e := enginetest.Shared(t)
			store, ctx := e.Store, e.Ctx
			c := client.New(store)
			h, err := c.Start(ctx, job.Single(&Launcher{}, ""), job.EnginesLater())
			enginetest.Check(t, err)
			var by trace.TracerProvider
			if name == "not sampled" {
				by, _ = recorder(t, sdk.WithSampler(sdk.NeverSample()))
			}
			var tree job.ID
			serving(ctx, t, store, by, []worker.Worker{&Launcher{}}, func(ctx context.Context) error {
				if _, err := h.Wait(ctx); err != nil {
					return err
				}
				tree, _, err = client.Receive[job.ID](ctx, h, "tree")
				return err
			})
			p, spans := recorder(t)
			serving(ctx, t, store, p, []worker.Worker{&Relay{}}, func(ctx context.Context) error {
				other, err := c.Find(ctx, string(tree))
				if err == nil {
					_, err = other.Wait(ctx)
				}
				return err
			})
			if got := shape(stubs(spans.GetSpans())); got != want {
				t.Errorf("spans:\n%swant:\n%s", got, want)
			}
		})
	}
}
