package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

func TestConfigNamesEveryBadField(t *testing.T) {
	t.Parallel()
	_, err := worker.New(worker.Config{
		Queues:      map[string]int{"a b": 1, "slow": 0, "": 3},
		Concurrency: -1,
		Lease:       time.Millisecond,
		Drain:       -time.Second,
	})
	if !errors.Is(err, job.ErrConfig) {
		t.Fatalf("error = %v", err)
	}
	for _, want := range []string{"Store", "Workers", `"a b"`, `"slow"`, "queue is empty", "Concurrency -1", "Lease 1ms", "Drain -1s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %q: %v", want, err)
		}
	}
	for _, c := range []worker.Config{{Lease: -time.Second}, {Lease: 99 * time.Millisecond}} {
		if err := c.Validate(); !strings.Contains(fmt.Sprint(err), "Lease") {
			t.Errorf("Lease %s: %v", c.Lease, err)
		}
	}
	if err := (worker.Options{Tries: -1, Timeout: -1}).Validate(); !errors.Is(err, job.ErrConfig) ||
		strings.Count(err.Error(), "negative") != 2 {
		t.Errorf("options: %v", err)
	}
}

// RunWhile ends with its function, and with the engine's error when the engine cannot go on.
func TestWhile(t *testing.T) {
	t.Parallel()
	store, err := redisstore.Open(t.Context(), redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{&None{}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.RunWhile(t.Context(), func(context.Context) error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("RunWhile returns %v", err)
	}
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	if err := engine.RunWhile(t.Context(), wait); err == nil || !strings.Contains(err.Error(), "worker.New") {
		t.Errorf("an engine that has run: %v", err)
	}
	if err := engine.RunWhile(t.Context(), func(context.Context) error { return nil }); err == nil || !strings.Contains(err.Error(), "worker.New") {
		t.Errorf("an engine that has run, and a function that ends well: %v", err)
	}
	blind := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if err := engine.RunWhile(t.Context(), blind); err == nil || strings.Count(err.Error(), "worker.New") != 1 {
		t.Errorf("an engine that has run, and a function that does not look why its context ended: %v", err)
	}
	early := func(context.Context) error { return io.EOF }
	if err := engine.RunWhile(t.Context(), early); err == nil || strings.Count(err.Error(), "worker.New") != 1 {
		t.Errorf("an engine that has run, and a function that fails: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrClosedPipe)
	if engine, err = worker.New(worker.Config{Store: store, Workers: []worker.Worker{&None{}}}); err != nil {
		t.Fatal(err)
	}
	if err := engine.RunWhile(ctx, wait); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a context that has ended: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// Workers that cannot be registered.
type (
	Namesake  struct{ None }
	Strange   struct{ None }
	Impatient struct{ None }
	BadPort   struct {
		None
		In port.In[int] `port:"a b"`
	}
	None    struct{}
	noNames = struct{ None }
)

func (*None) Run(context.Context, *worker.Run) error { return nil }
func (*Namesake) JobType() string                    { return "Count" }
func (*Strange) JobType() string                     { return "a b" }
func (*Impatient) WorkerOptions() worker.Options     { return worker.Options{Timeout: -1} }

// ByValue is a worker whose method does not need a pointer.
type ByValue struct{ Out port.Out[int] }

// Run implements worker.Worker.
func (w ByValue) Run(context.Context, *worker.Run) error { return w.Out.Write(1) }

func TestRegistration(t *testing.T) {
	b := onRedis(t)
	for name, c := range map[string]struct {
		workers []worker.Worker
		want    error
		text    string
	}{
		"twice":    {[]worker.Worker{&Count{}, &Count{To: 2}}, job.ErrExists, `"Count"`},
		"namesake": {[]worker.Worker{&Count{}, &Namesake{}}, job.ErrExists, "Namesake"},
		"name":     {[]worker.Worker{&Strange{}}, job.ErrName, "Strange"},
		"unnamed":  {[]worker.Worker{&noNames{}}, job.ErrName, "named struct"},
		"options":  {[]worker.Worker{&Impatient{}}, job.ErrConfig, "Timeout"},
		"port":     {[]worker.Worker{&BadPort{}}, nil, `"a b"`},
		"nil":      {[]worker.Worker{nil}, job.ErrName, ""},
	} {
		_, err := worker.New(worker.Config{Store: b.Store, Workers: c.workers})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{ByValue{}} })
	h := b.single(&ByValue{})
	b.Completed(h, 1)
	b.same(h, 1)
}

// An engine serves its queues and no others, also when one job makes another ready.
func TestQueues(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) { c.Queues = map[string]int{"left": 5, "right": 1} })
		g := graph.New("crossing")
		count := graph.Add(g, "count", &Count{To: 10}, graph.Queue("left"))
		double := graph.Add(g, "double", &Double{}, graph.Queue("elsewhere"))
		graph.Connect(count.Out, double.In)
		graph.Export(g, "out", double.Out)
		crossing := b.Start(g, job.EnginesLater())
		far := b.Start(job.Single(&Count{To: 1}, "elsewhere"), job.EnginesLater())
		var near []*client.Handle
		for range 10 {
			near = append(near, b.Start(job.Single(&Count{To: 1}, "left")), b.Start(job.Single(&Count{To: 1}, "right")))
		}
		for _, h := range near {
			b.Completed(h, 1)
		}
		b.Completed(b.child(crossing, "count"), 1)
		for _, h := range []*client.Handle{far, b.child(crossing, "double")} {
			if info, err := h.Info(b.Ctx); err != nil || info.Status != statemachine.Queued || info.Version != 0 {
				b.Errorf("job of another queue: %+v, %v", info, err)
			}
		}
		b.serve(func(c *worker.Config) { c.Queues = map[string]int{"elsewhere": 1} })
		b.Completed(far, 1)
		if _, err := crossing.Wait(b.Ctx); err != nil {
			b.Error(err)
		}
		if got := enginetest.Outs[int](b, crossing, "out"); len(got) != 10 {
			b.Errorf("out = %v", got)
		}
	})
}

// R13: however many engines there are, and however often a job is woken, it has one run
// at a time, and no wake is lost.
func TestOneRunAtATime(t *testing.T) {
	each(t, func(b *bench) {
		var running, overlaps, runs atomic.Int64
		key := keep(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			runs.Add(1)
			if running.Add(1) > 1 {
				overlaps.Add(1)
			}
			defer running.Add(-1)
			runtime.Gosched()
			return copyAll(ctx, run, w)
		})
		b.serve()
		second := *b
		second.Store = b.Open(b.URL)
		second.serve()
		h := b.single(&Call{Key: key})
		const writers, each = 4, 25
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				for k := range each {
					if err := errors.Join(h.Write(b.Ctx, "in", i*each+k), h.Run(b.Ctx)); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
		b.Until("all messages are read", func() bool { return len(enginetest.Outs[int](b, h, "out")) == writers*each })
		b.Completed(h, 1)
		got := enginetest.Outs[int](b, h, "out")
		slices.Sort(got)
		if len(slices.Compact(got)) != writers*each || overlaps.Load() > 0 {
			b.Errorf("%d messages, %d overlaps in %d runs", len(got), overlaps.Load(), runs.Load())
		}
	})
}

// R13 again: of many jobs, each is run just once by one of two engines.
func TestManyJobsTwoEngines(t *testing.T) {
	b := onRedis(t)
	const jobs = 300
	var runs [jobs]atomic.Int64
	key := keep(b, func(_ context.Context, _ *worker.Run, w *Call) error {
		v, ok, err := w.In.Read()
		if ok {
			runs[v].Add(1)
		}
		return errors.Join(err, w.Out.Write(v))
	})
	g := graph.New("many")
	for i := range jobs {
		feed := graph.Add(g, fmt.Sprintf("feed_%d", i), &Feed{Value: i})
		c := graph.Add(g, fmt.Sprintf("job_%d", i), &Call{Key: key})
		graph.Connect(feed.Out, c.In)
	}
	b.serve()
	second := *b
	second.Store = b.Open(b.URL)
	second.serve()
	if _, err := b.Start(g).Wait(b.Ctx); err != nil {
		b.Fatal(err)
	}
	for i := range runs {
		if n := runs[i].Load(); n != 1 {
			b.Errorf("message %d was read %d times", i, n)
		}
	}
}

// R3: a run that is asked for while one goes on follows it.
func TestRunWhileRunning(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var inside, asked enginetest.Gate
		h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			inside.Open()
			return errors.Join(asked.Pass(ctx), w.Out.Write(int(run.Info().Steps)))
		}))
		b.Check(inside.Pass(b.Ctx))
		b.Check(h.Run(b.Ctx))
		b.Check(h.Run(b.Ctx)) // two wishes are one
		asked.Open()
		b.Completed(h, 2)
		b.same(h, 0, 1)
	})
}

// An engine leaves no goroutines behind, and neither does the embedded store.
func TestNothingLeaks(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithTimeout(t.Context(), enginetest.Patience)
	defer cancel()
	for range 2 {
		s, err := redisstore.Open(ctx, redisstore.Config{Embedded: embedded.Start})
		if err != nil {
			t.Fatal(err)
		}
		e, err := worker.New(worker.Config{Store: s, Workers: []worker.Worker{&Count{}, &Double{}, &Sum{}}})
		if err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- e.Run(running) }()
		h, err := client.New(s).Start(ctx, counted(100))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Wait(ctx); err != nil {
			t.Error(err)
		}
		stop()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// An engine that is stopped before it is started, and one without anything to do, end.
func TestIdleEngineStops(t *testing.T) {
	b := onRedis(t)
	b.serve().Stop()
	e, err := worker.New(worker.Config{Store: b.Store, Workers: everything()})
	b.Check(err)
	ctx, cancel := context.WithCancel(b.Ctx)
	cancel()
	b.Check(e.Run(ctx))
}

// Who starts something else under an alias is refused, or gets the tree that is there if he asks
// for it, and is told so.
func TestSameAliasOtherPlan(t *testing.T) {
	each(t, func(b *bench) {
		first := b.Start(row(&Hop{}), job.Alias("album"))
		if _, err := b.Client.Start(b.Ctx, job.Single(&Count{To: 3}, ""), job.Alias("album")); !errors.Is(err, job.ErrExists) {
			b.Errorf("another plan under the alias: %v", err)
		}
		second := b.Start(job.Single(&Count{To: 3}, ""), job.Alias("album"), job.TakeExisting())
		if second.ID() != first.ID() || !first.Created() || second.Created() {
			b.Errorf("%s created: %t, then %s: %t", first.ID(), first.Created(), second.ID(), second.Created())
		}
		infos, err := second.Tree(b.Ctx)
		b.Check(err)
		if len(infos) != 4 || infos[0].Type != "row" {
			b.Errorf("%d jobs of %s", len(infos), infos[0].Type)
		}
	})
}
