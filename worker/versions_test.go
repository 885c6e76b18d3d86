package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Workers of two versions of a program: the second has a new port, and a new type.
type (
	firstA  struct{ Hop }
	secondA struct {
		Hop
		Extra port.In[int]
	}
	onlyNew struct{ Hop }
)

// Runs of each version.
var firstRuns, secondRuns atomic.Int64

func (*firstA) JobType() string  { return "versioned" }
func (*secondA) JobType() string { return "versioned" }
func (*onlyNew) JobType() string { return "new" }

// Run implements worker.Worker.
func (w *firstA) Run(ctx context.Context, run *worker.Run) error {
	firstRuns.Add(1)
	return w.Hop.Run(ctx, run)
}

// Run implements worker.Worker. It also passes on what comes in the port that is new.
func (w *secondA) Run(ctx context.Context, run *worker.Run) error {
	secondRuns.Add(1)
	err := w.Hop.Run(ctx, run)
	for v, more := range w.Extra.All() {
		err = errors.Join(err, more, w.Out.Write(v))
	}
	return err
}

func (w *firstA) hop() (worker.Worker, *port.In[int], *port.Out[int])  { return w, &w.In, &w.Out }
func (w *secondA) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }
func (w *onlyNew) hop() (worker.Worker, *port.In[int], *port.Out[int]) { return w, &w.In, &w.Out }

// Engines of two versions work on the same trees; then the first is stopped, as in a rolling update.
func TestTwoVersions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	b := newBench(t, server.URL())
	types := func(workers ...worker.Worker) func(c *worker.Config) {
		return func(c *worker.Config) { c.Workers = append([]worker.Worker{&Hop{}, &Feed{}}, workers...) }
	}
	rolled := b.serve(types(&firstA{}))
	old := b.single(&firstA{})
	b.Check(old.Write(b.Ctx, "in", 1))
	b.Completed(old, 1)

	// The other version has other scripts.
	other := *b
	libraries, err := server.Client(t).FunctionList(b.Ctx, redis.FunctionListQuery{}).Result()
	b.Check(err)
	name := libraries[0].Name
	line := redistest.StartProxy(t, server.Addr())
	line.Replace(name, "weir_"+strings.Repeat("0", len(name)-len("weir_")))
	other.Store = b.Open(line.URL())
	other.Client = client.New(other.Store)
	other.serve(types(&secondA{}, &onlyNew{}))
	first, second, alone := b.Start(row(&firstA{})), other.Start(row(&secondA{})), other.Start(row(&onlyNew{}))
	g := graph.New("extra")
	feed, a := graph.Add(g, "feed", &Feed{Value: 7}), graph.Add(g, "a", &secondA{})
	graph.Connect(feed.Out, a.Extra)
	graph.Export(g, "out", a.Out)
	extra := other.Start(g)
	const n = 300
	for i := range n {
		for _, h := range []*client.Handle{first, second, alone} {
			b.Check(h.Write(b.Ctx, "in", i+1))
		}
	}
	b.Until("both versions ran jobs", func() bool { return firstRuns.Load() > 10 && secondRuns.Load() > 10 })
	b.Until("the message in the new port is read while both are there", func() bool { return len(enginetest.Outs[int](b, extra, "out")) == 1 })
	b.same(extra, 7)
	b.Logf("%d and %d runs", firstRuns.Load(), secondRuns.Load())
	libraries, err = server.Client(t).FunctionList(b.Ctx, redis.FunctionListQuery{}).Result()
	if err != nil || len(libraries) != 2 {
		b.Errorf("the server has %d libraries, want one of each version, %v", len(libraries), err)
	}
	rolled.Stop()
	for _, h := range []*client.Handle{first, second, alone} {
		b.Check(h.Close(b.Ctx, "in"))
	}
	for _, h := range []*client.Handle{first, second, alone} {
		b.Completed(h, 0)
		b.hopped(h, n)
		infos, err := h.Tree(b.Ctx)
		b.Check(err)
		for _, i := range infos {
			if fs, err := b.Store.Failures(b.Ctx, i.ID); err != nil || len(fs) > 0 {
				b.Errorf("job %s (%s): failures %v, %v", i.ID, i.Type, fs, err)
			}
		}
	}
	b.Completed(extra, 0)
}

// What only the second version reads keeps a job suspended at the first one, which says why, and is read
// when the second one comes.
func TestNewPortWaitsForItsVersion(t *testing.T) {
	b := onRedis(t)
	stop := b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&firstA{}, &Feed{}} })
	g := graph.New("extra")
	feed, a := graph.Add(g, "feed", &Feed{Value: 7}), graph.Add(g, "a", &secondA{})
	graph.Connect(feed.Out, a.Extra)
	graph.Export(g, "out", a.Out)
	h := b.Start(g)
	b.Until("the job names the port", func() bool {
		info, err := b.child(h, "a").Info(b.Ctx)
		b.Check(err)
		return info.Status == statemachine.Suspended && strings.Contains(info.Reason, `"extra"`)
	})
	b.same(h)
	b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&secondA{}} })
	stop.Stop()
	b.Completed(h, 0)
	b.same(h, 7)
}
