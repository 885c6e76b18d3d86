package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/httpstore"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) {
	redis.SetLogger(mute{}) // it says on stderr what the engines are told anyway
	if os.Getenv(bystanderEnv) != "" {
		if err := bystanderMain(); err != nil {
			fmt.Fprintln(os.Stderr, "the bystander:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(redistest.Main(m))
}

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

const (
	// patience is how long a test waits for what must happen.
	patience = 60 * time.Second
	// look is how often it looks.
	look = 5 * time.Millisecond
)

// env is a namespace of its own for one test on one kind of Redis.
type env struct {
	*testing.T
	url, namespace string
	store          *redisstore.Store
	client         *job.Client
	rdb            redis.UniversalClient // of the same Redis, to look behind the store
	ctx            context.Context       //nolint:containedctx // of the whole test
}

// each runs fn on every kind of Redis.
func each(t *testing.T, fn func(e *env)) {
	t.Helper()
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		fn(newEnv(t, url))
	})
}

func newEnv(t *testing.T, url string) *env {
	t.Helper()
	e := &env{T: t, url: url, namespace: redistest.Namespace(t)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*patience)
	e.ctx = ctx
	t.Cleanup(cancel)
	e.store = e.open()
	e.client = job.NewClient(e.store)
	if strings.HasPrefix(url, "redis+cluster://") {
		e.client = job.NewClient(e.throughHTTP()) // what holds beside Redis holds behind a server
	}
	e.rdb = connect(t, url)
	return e
}

// throughHTTP is the store behind a server of its own.
func (e *env) throughHTTP() *httpstore.Store {
	e.Helper()
	handler, err := api.New(api.Config{Store: e.store})
	e.check(err)
	server := httptest.NewServer(handler)
	e.Cleanup(func() {
		e.check(handler.Close())
		server.Close()
	})
	s, err := httpstore.Open(e.ctx, httpstore.Config{URL: server.URL})
	e.check(err)
	e.Cleanup(func() { _ = s.Close() })
	return s
}

func connect(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	var rdb redis.UniversalClient
	if hosts, ok := strings.CutPrefix(url, "redis+cluster://"); ok {
		rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(hosts, ",")})
	} else {
		o, err := redis.ParseURL(url)
		if err != nil {
			t.Fatal(err)
		}
		rdb = redis.NewClient(o)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// open opens the namespace once more, as another process would.
func (e *env) open() *redisstore.Store {
	e.Helper()
	s, err := redisstore.Open(e.ctx, redisstore.Config{URL: e.url, Namespace: e.namespace, Shards: 4})
	e.check(err)
	e.Cleanup(func() { _ = s.Close() })
	return s
}

func (e *env) check(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// refused fails the test unless err is of the given kind.
func (e *env) refused(err, kind error) {
	e.Helper()
	if !errors.Is(err, kind) {
		e.Fatalf("error %v, want one that is %q", err, kind)
	}
}

// engine is one that runs until it is stopped or the test ends.
type engine struct {
	env  *env
	end  context.CancelFunc
	done chan struct{}
	err  error
}

// config is that of an engine with these workers.
func (e *env) config(workers ...worker.Worker) worker.Config {
	return worker.Config{
		Store: e.store, Workers: workers, Concurrency: 4,
		Lease: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
}

// register makes the workers known as a serving engine does, without serving them.
func (e *env) register(workers ...worker.Worker) {
	e.Helper()
	e.check(e.store.Register(e.ctx, e.types(workers...)))
}

func (e *env) types(workers ...worker.Worker) []job.TypeInfo {
	e.Helper()
	out := make([]job.TypeInfo, len(workers))
	for i, w := range workers {
		n, err := job.NodeOf(w, "", "")
		e.check(err)
		out[i] = job.TypeInfo{Type: n.Type, Queue: job.DefaultQueue, Silent: n.Silent}
		for _, p := range n.Ports {
			out[i].Ports = append(out[i].Ports, p.Spec)
		}
	}
	return out
}

// serve registers the workers and starts an engine that runs them.
func (e *env) serve(workers ...worker.Worker) *engine {
	e.Helper()
	e.register(workers...)
	return e.serveWith(e.config(workers...))
}

// serveWith starts an engine.
func (e *env) serveWith(cfg worker.Config) *engine {
	e.Helper()
	eng, err := worker.New(cfg)
	e.check(err)
	ctx, cancel := context.WithCancel(e.ctx)
	s := &engine{env: e, end: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = eng.Run(ctx)
	}()
	e.Cleanup(s.stop)
	return s
}

// stop ends the engine and waits for it. It may be called again.
func (s *engine) stop() {
	s.env.Helper()
	s.end()
	select {
	case <-s.done:
	case <-time.After(patience):
		s.env.Fatal("the engine does not stop")
	}
	if s.err != nil {
		s.env.Error(s.err)
	}
}

// create creates a job of a registered type.
func (e *env) create(n job.New) *job.Handle {
	e.Helper()
	h, err := e.client.Create(e.ctx, n)
	e.check(err)
	return h
}

// job creates a job of a registered type, without a parent.
func (e *env) job(typ string, args any) *job.Handle {
	e.Helper()
	return e.create(job.New{Type: typ, Args: args})
}

// child creates a job under another one.
func (e *env) child(parent *job.Handle, name, typ string, args any) *job.Handle {
	e.Helper()
	return e.create(job.New{Type: typ, Args: args, Parent: parent.ID(), Name: name})
}

// start starts a planned tree.
func (e *env) start(p job.Planner, options ...job.Option) *job.Handle {
	e.Helper()
	h, err := e.client.Start(e.ctx, p, options...)
	e.check(err)
	return h
}

// until polls until ok holds.
func (e *env) until(what string, ok func() bool) {
	e.Helper()
	e.within(patience, what, ok)
}

// within is until for what takes long by itself.
func (e *env) within(most time.Duration, what string, ok func() bool) {
	e.Helper()
	for deadline := time.Now().Add(most); !ok(); time.Sleep(look) {
		if time.Now().After(deadline) {
			e.Fatalf("still not after %s: %s", most, what)
		}
	}
}

func (e *env) info(h *job.Handle) *job.Info {
	e.Helper()
	info, err := h.Info(e.ctx)
	e.check(err)
	return info
}

// reach waits until the job has one of the statuses.
func (e *env) reach(h *job.Handle, want ...statemachine.Status) *job.Info {
	e.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		info := e.info(h)
		if slices.Contains(want, info.Status) {
			return info
		}
		if time.Now().After(deadline) {
			text, _ := json.MarshalIndent(info, "", " ")
			e.Fatalf("job is not %v after %s:\n%s", want, patience, text)
		}
	}
}

// settled waits until the job has made that many steps and is suspended: it is completed or suspended.
func (e *env) settled(h *job.Handle, steps int64) *job.Info {
	e.Helper()
	var info *job.Info
	e.until("the job rests", func() bool {
		info = e.info(h)
		if info.Status == statemachine.Failed {
			e.Fatalf("job failed: %s", info.Reason)
		}
		return info.Steps >= steps && (info.Status == statemachine.Completed || info.Status == statemachine.Suspended)
	})
	return info
}

// outs returns what waits in an Out port of the job.
func outs[T any](e *env, h *job.Handle, name string) []T {
	e.Helper()
	raws, err := h.Peek(e.ctx, name, 1<<20)
	e.check(err)
	out := []T{}
	for _, raw := range raws {
		var v T
		e.check(port.Decode(raw, &v))
		out = append(out, v)
	}
	return out
}

// keys returns all keys of the namespace in Redis, sorted, but not those of asynq, not
// that which remembers calls for a minute, and not the lock of the sweeper, which may lose it and take it again.
func (e *env) keys() []string {
	e.Helper()
	return slices.DeleteFunc(e.scan("weir:{"+e.namespace+"[}:]*"), func(key string) bool {
		return strings.HasSuffix(key, "}:seen") || strings.HasSuffix(key, "}:sweeper") || strings.Contains(key, "}:pops:")
	})
}

func (e *env) scan(pattern string) []string {
	e.Helper()
	var mu sync.Mutex
	var keys []string
	scan := func(ctx context.Context, c redis.UniversalClient) error {
		it := c.Scan(ctx, 0, pattern, 1000).Iterator()
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	if c, ok := e.rdb.(*redis.ClusterClient); ok {
		e.check(c.ForEachMaster(e.ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) }))
	} else {
		e.check(scan(e.ctx, e.rdb))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
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
