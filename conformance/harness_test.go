package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/httpstore"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) {
	if os.Getenv(bystanderEnv) != "" {
		logging.Disable() // it says on stderr what the engine is told anyway
		if err := bystanderMain(); err != nil {
			fmt.Fprintln(os.Stderr, "the bystander:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(redistest.Main(m))
}

// env is a namespace of its own for one test on one kind of Redis.
type env struct{ *enginetest.Env }

// each runs fn on every kind of Redis.
func each(t *testing.T, fn func(e *env)) {
	t.Helper()
	enginetest.Each(t, func(e *enginetest.Env) { fn(envOf(e)) })
}

func newEnv(t *testing.T, url string) *env {
	t.Helper()
	return envOf(enginetest.New(t, redisstore.Config{URL: url}))
}

func envOf(from *enginetest.Env) *env {
	e := &env{from}
	if strings.HasPrefix(e.URL, "redis+cluster://") {
		e.Client = client.New(e.throughHTTP()) // what holds beside Redis holds behind a server
	}
	return e
}

// throughHTTP is the store behind a server of its own.
func (e *env) throughHTTP() *httpstore.Store {
	e.Helper()
	handler, err := api.New(api.Config{Store: e.Store})
	e.Check(err)
	server := httptest.NewServer(handler)
	e.Cleanup(func() {
		e.Check(handler.Close())
		server.Close()
	})
	s, err := httpstore.Open(e.Ctx, httpstore.Config{URL: server.URL})
	e.Check(err)
	e.Cleanup(func() { _ = s.Close() })
	return s
}

// refused fails the test unless err is of the given kind.
func (e *env) refused(err, kind error) {
	e.Helper()
	if !errors.Is(err, kind) {
		e.Fatalf("error %v, want one that is %q", err, kind)
	}
}

// register makes the workers known as a serving engine does, without serving them.
func (e *env) register(workers ...worker.Worker) {
	e.Helper()
	e.Check(e.Store.Register(e.Ctx, e.types(workers...)))
}

func (e *env) types(workers ...worker.Worker) []job.TypeInfo {
	e.Helper()
	out := make([]job.TypeInfo, len(workers))
	for i, w := range workers {
		n, err := job.NodeOf(w, "", "")
		e.Check(err)
		out[i] = job.TypeInfo{Type: n.Type, Queue: job.DefaultQueue, Silent: n.Silent}
		for _, p := range n.Ports {
			out[i].Ports = append(out[i].Ports, p.Spec)
		}
	}
	return out
}

// serve registers the workers and starts an engine that runs them.
func (e *env) serve(workers ...worker.Worker) *enginetest.Engine {
	e.Helper()
	e.register(workers...)
	return e.Serve(e.Config(workers...))
}

// create creates a job of a registered type.
func (e *env) create(n job.New) *client.Handle {
	e.Helper()
	h, err := e.Client.Create(e.Ctx, n)
	e.Check(err)
	return h
}

// job creates a job of a registered type, without a parent.
func (e *env) job(typ string, args any) *client.Handle {
	e.Helper()
	return e.create(job.New{Type: typ, Args: args})
}

// child creates a job under another one.
func (e *env) child(parent *client.Handle, name, typ string, args any) *client.Handle {
	e.Helper()
	return e.create(job.New{Type: typ, Args: args, Parent: parent.ID(), Name: name})
}

// reach waits until the job has one of the statuses, whatever it has before.
func (e *env) reach(h *client.Handle, want ...statemachine.Status) *job.Info {
	e.Helper()
	return e.Await(h, fmt.Sprint(want), func(info *job.Info) bool { return slices.Contains(want, info.Status) })
}

// settled waits until the job has made that many steps and is completed or suspended.
func (e *env) settled(h *client.Handle, steps int64) *job.Info {
	e.Helper()
	return e.Await(h, "settled", func(info *job.Info) bool {
		e.Helper()
		if info.Status == statemachine.Failed {
			e.Fatalf("job failed: %s", info.Reason)
		}
		return info.Steps >= steps && (info.Status == statemachine.Completed || info.Status == statemachine.Suspended)
	})
}

// keys returns all keys of the namespace in Redis, sorted, but not those of asynq, not
// that which remembers calls for a minute, and not the lock of the sweeper, which may lose it and take it again; nor what trees
// that are records have in common. A job that is one by itself has the key that it would have otherwise.
func (e *env) keys() []string {
	e.Helper()
	all := slices.DeleteFunc(e.scan("weir:{"+e.Namespace+"[}:]*"), func(key string) bool {
		return strings.HasSuffix(key, "}:seen") || strings.HasSuffix(key, "}:sweeper") || strings.Contains(key, "}:pops:") || strings.Contains(key, "}:d:")
	})
	for i := range all {
		all[i] = strings.Replace(all[i], "}:r:", "}:j:", 1)
	}
	slices.Sort(all)
	return all
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
	if c, ok := e.Redis.(*redis.ClusterClient); ok {
		e.Check(c.ForEachMaster(e.Ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) }))
	} else {
		e.Check(scan(e.Ctx, e.Redis))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
