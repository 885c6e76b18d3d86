package worker_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// TestMain runs the tests, or is a worker process of one of them.
func TestMain(m *testing.M) {
	worker.ShortRun(shortRun)
	worker.StrayDelay(time.Second)
	if os.Getenv(processEnv) != "" {
		processMain()
		return
	}
	redis.SetLogger(mute{}) // it says on stderr what the engines are told anyway
	os.Exit(redistest.Main(m))
}

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

const (
	// patience is how long a test waits for what must happen.
	patience = 60 * time.Second
	// shortRun is how long runs may take that fuse: more than any takes on a slow machine that
	// is not meant to.
	shortRun = 200 * time.Millisecond
	// look is how often it looks.
	look = 5 * time.Millisecond
)

// bench is a namespace of its own for one test.
type bench struct {
	*testing.T
	url, namespace string
	shards         int
	store          *redisstore.Store
	client         *job.Client
	ctx            context.Context
}

// each runs fn on every kind of Redis.
func each(t *testing.T, fn func(b *bench)) {
	t.Helper()
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		fn(newBench(t, url))
	})
}

// onRedis returns a bench on the shared redis-server.
func onRedis(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	return newBench(t, redistest.SharedRedis(t))
}

func newBench(t *testing.T, url string) *bench {
	t.Helper()
	return newBenchOf(t, url, 4)
}

// newBenchOf returns a bench of that many shards. With one, commits often go in groups.
func newBenchOf(t *testing.T, url string, shards int) *bench {
	t.Helper()
	b := &bench{T: t, url: url, namespace: redistest.Namespace(t), shards: shards}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*patience)
	b.ctx = ctx
	t.Cleanup(cancel)
	b.store = b.open(url)
	b.client = job.NewClient(b.store)
	return b
}

// open opens the bench's namespace by another URL of its Redis.
func (b *bench) open(url string) *redisstore.Store {
	b.Helper()
	s, err := redisstore.Open(b.ctx, redisstore.Config{URL: url, Namespace: b.namespace, Shards: b.shards})
	b.check(err)
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// everything is one of each type of worker of this suite.
func everything() []worker.Worker {
	return []worker.Worker{
		&Call{}, &Tried{}, &Timed{}, &Ending{}, &Count{}, &Double{}, &Sum{}, &Fib{}, &SumFlow{}, &Summing{}, &Feed{}, &Hop{}, &Idle{},
	}
}

// served is an engine that runs until it is stopped or the test ends.
type served struct {
	engine *worker.Engine
	bench  *bench
	end    context.CancelFunc
	done   chan struct{}
	err    error
}

// serve starts an engine with all workers of the suite, changed by the options.
func (b *bench) serve(options ...func(*worker.Config)) *served {
	b.Helper()
	cfg := worker.Config{
		Store: b.store, Workers: everything(), Concurrency: 4,
		Lease: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
	for _, o := range options {
		o(&cfg)
	}
	e, err := worker.New(cfg)
	b.check(err)
	ctx, cancel := context.WithCancel(b.ctx)
	s := &served{bench: b, engine: e, end: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = e.Run(ctx)
	}()
	b.Cleanup(s.stop)
	return s
}

// stop ends the engine and waits for it. It may be called again.
func (s *served) stop() {
	s.bench.Helper()
	s.end()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.bench.Fatal("the engine does not stop")
	}
	if s.err != nil {
		s.bench.Error(s.err)
	}
}

func (b *bench) start(p job.Planner, options ...job.Option) *job.Handle {
	b.Helper()
	h, err := b.client.Start(b.ctx, p, options...)
	b.check(err)
	return h
}

// single starts one job.
func (b *bench) single(w any) *job.Handle {
	b.Helper()
	return b.start(job.Single(w, ""))
}

// until polls until ok holds.
func (b *bench) until(what string, ok func() bool) {
	b.Helper()
	b.within(patience, what, ok)
}

// within is until for what takes longer than tests wait as a rule.
func (b *bench) within(limit time.Duration, what string, ok func() bool) {
	b.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(look) {
		if time.Now().After(deadline) {
			b.Fatalf("still not after %s: %s", limit, what)
		}
	}
}

// reach waits until the job has one of the statuses and has run at least steps times.
func (b *bench) reach(h *job.Handle, steps int64, want ...statemachine.Status) *job.Info {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		info, err := h.Info(b.ctx)
		b.check(err)
		if slices.Contains(want, info.Status) && info.Steps >= steps {
			return info
		}
		if info.Status == statemachine.Failed && !slices.Contains(want, info.Status) {
			b.Fatalf("job failed: %s", info.Reason)
		}
		if time.Now().After(deadline) {
			text, _ := json.MarshalIndent(info, "", " ")
			b.Fatalf("job is not %v after %s:\n%s", want, patience, text)
		}
	}
}

// completed waits until the job is completed after at least that many steps.
func (b *bench) completed(h *job.Handle, steps int64) *job.Info {
	b.Helper()
	return b.reach(h, steps, statemachine.Completed)
}

// failed waits until the job has failed and returns its last failure.
func (b *bench) failed(h *job.Handle) job.Failure {
	b.Helper()
	b.reach(h, 0, statemachine.Failed)
	fs, err := h.Failures(b.ctx)
	b.check(err)
	if len(fs) == 0 {
		b.Fatal("the job failed without a recorded failure")
	}
	return fs[0]
}

// outs returns what waits in an Out port of the job.
func outs[T any](b *bench, h *job.Handle, name string) []T {
	b.Helper()
	raws, err := h.Peek(b.ctx, name, 1<<20)
	b.check(err)
	out := []T{}
	for _, raw := range raws {
		var v T
		b.check(port.Decode(raw, &v))
		out = append(out, v)
	}
	return out
}

// same fails the test unless the port "out" holds just these numbers.
func (b *bench) same(h *job.Handle, want ...int) {
	b.Helper()
	if got := outs[int](b, h, "out"); !slices.Equal(got, want) {
		b.Errorf("port out holds %v, want %v", got, want)
	}
}

// state returns the job's state as JSON texts.
func (b *bench) state(h *job.Handle) map[string]string {
	b.Helper()
	raws, err := h.State(b.ctx)
	b.check(err)
	out := map[string]string{}
	for k, v := range raws {
		out[k] = string(v)
	}
	return out
}

// waiting returns how many messages wait in an In port of the job.
func (b *bench) waiting(h *job.Handle, name string) int64 {
	b.Helper()
	info, err := h.Info(b.ctx)
	b.check(err)
	p, ok := info.Port(port.Input, name)
	if !ok {
		b.Fatalf("job has no In port %q", name)
	}
	return p.Waiting
}

// tree returns the names of all jobs of the job's tree but the root.
func (b *bench) tree(h *job.Handle) []string {
	b.Helper()
	infos, err := h.Tree(b.ctx)
	b.check(err)
	names := []string{}
	for _, i := range infos[1:] {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	return names
}

// gate lets goroutines wait for each other. Its zero value is shut.
type gate struct {
	mu sync.Mutex
	ch chan struct{}
}

func (g *gate) opened() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

// open lets everybody pass, now and later.
func (g *gate) open() {
	ch := g.opened()
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-ch:
	default:
		close(ch)
	}
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	select {
	case <-g.opened():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
