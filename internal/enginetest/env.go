// Package enginetest is the common harness of tests that run jobs on a Redis of redistest: an Env
// is a namespace of its own with a store, a client and engines, and there are helpers that wait for
// what must happen. Only tests import it. Programs outside this module have weirtest.
package enginetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// Env is a namespace of its own for one test. Tests embed it and add what is special to them.
type Env struct {
	*testing.T
	URL, Namespace string
	Shards         int
	Store          *redisstore.Store
	Client         *client.Client        // of the store
	Redis          redis.UniversalClient // of the same Redis, to look behind the store; nil if that is embedded
	Ctx            context.Context       // of the whole test, until all its engines have stopped
}

// Each runs fn in parallel on every kind of Redis, in a new namespace of four shards.
func Each(t *testing.T, fn func(e *Env)) {
	t.Helper()
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		fn(New(t, redisstore.Config{URL: url}))
	})
}

// Shared runs the test in parallel to others, in a new namespace of the shared redis-server.
func Shared(t *testing.T) *Env {
	t.Helper()
	t.Parallel()
	return New(t, redisstore.Config{URL: redistest.SharedRedis(t)})
}

// New opens the namespace of cfg, by default a new one of four shards.
func New(t *testing.T, cfg redisstore.Config) *Env {
	t.Helper()
	if cfg.Namespace == "" {
		cfg.Namespace = redistest.Namespace(t)
	}
	if cfg.Shards == 0 {
		cfg.Shards = 4
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*Patience)
	t.Cleanup(cancel)
	s := Open(t, cfg)
	e := &Env{T: t, URL: cfg.URL, Namespace: cfg.Namespace, Shards: cfg.Shards, Store: s, Client: client.New(s), Ctx: ctx}
	if cfg.Embedded == nil {
		e.Redis = Connect(t, cfg.URL)
	}
	return e
}

// Open opens the namespace once more, as another process would, by a URL of its Redis.
func (e *Env) Open(url string) *redisstore.Store {
	e.Helper()
	return Open(e, redisstore.Config{URL: url, Namespace: e.Namespace, Shards: e.Shards})
}

// Open opens a store and closes it when the test ends, unless the test did.
func Open(t testing.TB, cfg redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), cfg)
	Check(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

// Connect returns a client of the Redis or cluster with that URL, closed when the test ends.
func Connect(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	var rdb redis.UniversalClient
	if hosts, ok := strings.CutPrefix(url, "redis+cluster://"); ok {
		rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(hosts, ",")})
	} else {
		o, err := redis.ParseURL(url)
		Check(t, err)
		rdb = redis.NewClient(o)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Check fails the test at once if there is an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Check fails the test at once if there is an error.
func (e *Env) Check(err error) {
	e.Helper()
	Check(e, err)
}
