package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/localredis"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/statemachine"
)

func TestConfigNamesEveryBadField(t *testing.T) {
	t.Parallel()
	for _, ns := range []string{"A", "a b", "a:b", "{a}", "-a", strings.Repeat("x", 64), "a\n"} {
		err := redisstore.Config{Namespace: ns, Shards: 1025}.Validate()
		if !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "Namespace") || !strings.Contains(err.Error(), "Shards 1025") {
			t.Errorf("namespace %q: %v", ns, err)
		}
		if _, err := redisstore.Open(t.Context(), redisstore.Config{Namespace: ns}); !errors.Is(err, job.ErrConfig) {
			t.Errorf("open of namespace %q: %v", ns, err)
		}
	}
	if err := (redisstore.Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestNamespaceKeepsItsLayout(t *testing.T) {
	each(t, func(e *env) {
		url := e.URL
		try := func(shards int) (*redisstore.Store, error) {
			return redisstore.Open(e.Context(), redisstore.Config{URL: url, Namespace: e.Namespace, Shards: shards})
		}
		for _, n := range []int{0, shards} {
			s, err := try(n)
			e.Check(err)
			e.Check(s.Close())
		}
		refused := func(shards int, want string) {
			e.Helper()
			_, err := try(shards)
			e.fails(err, job.ErrConfig)
			if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), e.Namespace) {
				e.Errorf("%v does not say %q", err, want)
			}
		}
		refused(shards+1, "has 4 shards, not 5")
		meta := "weir:{" + e.Namespace + "}:meta"
		e.Check(e.Redis.HSet(e.Context(), meta, "format", "999").Err())
		refused(0, `layout "999"`)
		e.Check(e.Redis.HSet(e.Context(), meta, "format", "2", "shards", "many").Err())
		refused(0, `"many" shards`)
	})
}

// Opening a namespace of the program of before, which knew no ready sets, puts its queued jobs into them.
func TestUpgradeOfReadySets(t *testing.T) {
	each(t, func(e *env) {
		const n = 450 // more than one script takes
		ids := make([]job.ID, n)
		for i := range ids {
			ids[i] = e.single()
		}
		slept := e.single()
		e.end(slept, statemachine.Suspend)
		for shard := range shards {
			p := fmt.Sprintf("weir:{%s:%d}:", e.Namespace, shard)
			for _, key := range []string{"ready:default", "ready:default#T", "bells"} {
				e.Check(e.Redis.Del(e.Context(), p+key).Err())
			}
		}
		meta := "weir:{" + e.Namespace + "}:meta"
		e.Check(e.Redis.HSet(e.Context(), meta, "format", "1").Err())
		s := enginetest.Open(e, redisstore.Config{URL: e.URL, Namespace: e.Namespace})
		e.equal("format", e.Redis.HGet(e.Context(), meta, "format").Val(), "2")
		got := map[job.ID]bool{}
		for shard := range shards {
			for {
				snap, err := popped(s.Pop(e.Context(), job.DefaultQueue, shard, 0, beginning(), []string{"T"}))
				e.Check(err)
				if snap == nil {
					break
				}
				got[snap.Info.ID] = true
			}
		}
		for _, id := range ids {
			if !got[id] {
				e.Errorf("job %s is not ready", id)
			}
		}
		e.equal("jobs", len(got), n)
	})
}

func TestNamespacesAreApart(t *testing.T) {
	each(t, func(e *env) {
		other := enginetest.Open(e, redisstore.Config{URL: e.URL, Namespace: redistest.Namespace(e.T)})
		id := e.single()
		_, err := other.Info(e.Context(), id)
		e.fails(err, job.ErrNotFound)
		created, err := other.Create(e.Context(), id, &job.Plan{Nodes: []job.Node{{Type: "T"}}}, "")
		e.Check(err)
		e.equal("created", created, true)
	})
}

func TestEvictionIsRefused(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	_, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL()})
	if !errors.Is(err, job.ErrConfig) || !strings.Contains(fmt.Sprint(err), "allkeys-lru") || !strings.Contains(err.Error(), "CONFIG SET maxmemory-policy noeviction") {
		t.Errorf("a Redis that evicts: %v", err)
	}
	if n := srv.Client(t).DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("it has %d keys now", n)
	}
}

// oneLine wants an error that came soon and is fit for a terminal.
func oneLine(t *testing.T, start time.Time, err error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "cannot reach Redis at redis://127.0.0.1:") {
		t.Errorf("error %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestRedisIsDown(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	e := open(t, srv.URL())
	id := e.single()
	snap := e.begin(id)
	srv.Kill()
	for _, try := range []func() error{
		func() error { _, err := e.store.Info(e.Context(), id); return err },
		func() error { _, err := e.store.State(e.Context(), id); return err },
		func() error { _, err := e.store.Sweep(e.Context()); return err },
		func() error {
			_, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{delta(snap, statemachine.Complete)}}})
			return err
		},
		func() error { return e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "in"}) },
		func() error {
			_, err := redisstore.Open(e.Context(), redisstore.Config{URL: srv.URL()})
			return err
		},
	} {
		start := time.Now()
		oneLine(t, start, try())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.store.Info(ctx, id); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A store that nobody gave a Redis says how to, and starts none.
func TestNoRedis(t *testing.T) {
	t.Parallel()
	for _, cfg := range []redisstore.Config{{}, {Clock: redisstore.NewClock(time.Unix(0, 0))}} {
		_, err := redisstore.Open(t.Context(), cfg)
		if !errors.Is(err, job.ErrConfig) || !matches("URL is empty: .*redis://localhost:6379.*embedded.Start", fmt.Sprint(err)) {
			t.Errorf("%v", err)
		}
	}
	failed := errors.New("no port is free")
	_, err := redisstore.Open(t.Context(), redisstore.Config{Embedded: func() (localredis.Server, error) { return nil, failed }})
	if !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
}

func TestClosedStore(t *testing.T) {
	t.Parallel()
	s, err := redisstore.Open(t.Context(), redisstore.Config{Embedded: embedded.Start})
	if err != nil {
		t.Fatal(err)
	}
	if s.Where() != "the embedded Redis" || s.Broker() == nil {
		t.Errorf("it is at %q", s.Where())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Info(t.Context(), newID(t)); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("a closed store says %v", err)
	}
}

// What a full Redis refuses leaves nothing behind and works when there is memory again. TestFullRedis has what it does not refuse.
func TestRedisIsFull(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	e := open(t, srv.URL())
	id, _, d := e.full()
	sleeper := e.single()
	e.end(sleeper, statemachine.Complete)
	soon := time.Now().Add(200 * time.Millisecond)
	later := e.create(job.Node{Type: "T", At: soon})
	queued := e.single()
	time.Sleep(time.Until(soon) + 100*time.Millisecond)

	// Redis runs a script that was begun to its end, so the memory must be short before.
	junk := strings.Repeat("x", 10_000)
	for i := 0; ; i++ {
		if err := e.Redis.Set(t.Context(), fmt.Sprint("junk", i), junk, 0).Err(); err != nil {
			break
		}
	}
	run := delta(&store.Snapshot{Info: job.Info{ID: id}, Token: d.Token}, statemachine.Complete)
	for name, try := range map[string]func() error{
		"commit": func() error {
			_, err := e.store.Commit(t.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
			return err
		},
		"commit of nothing": func() error {
			_, err := e.store.Commit(t.Context(), []store.Tx{{Deltas: []store.Delta{run}}})
			return err
		},
		"step": func() error {
			_, _, err := step(t.Context(), e.store, store.Tx{Deltas: []store.Delta{d}}, beginning(), []string{"K"})
			return err
		},
		"create": func() error {
			_, err := e.store.Create(t.Context(), newID(t), &job.Plan{Nodes: tree()}, "")
			return err
		},
		"write": func() error {
			return e.store.Write(t.Context(), sleeper, store.Write{Dir: port.Input, Port: "in", Items: raws("1")})
		},
		"begin": func() error { _, err := e.store.Begin(t.Context(), queued, beginning()); return err },
		"close": func() error { return e.store.ClosePort(t.Context(), sleeper, port.Input, "in") },
		"apply": func() error { return e.store.Apply(t.Context(), sleeper, statemachine.Run) },
	} {
		e.unchanged(name+" in a full Redis", func() {
			if err := try(); err == nil || !strings.Contains(err.Error(), "OOM") {
				e.Errorf("%s: %v", name, err)
			} else if errors.Is(err, job.ErrRefused) {
				e.Errorf("%s: refused for good: %v", name, err)
			}
		})
	}
	e.Check(e.Redis.ConfigSet(t.Context(), "maxmemory", "200mb").Err())
	e.commit(d)
	e.checkFull(id, d)
	e.sweep()
	e.is(statemachine.Queued, later)
	e.write(sleeper, "in", "1")
	e.is(statemachine.Queued, sleeper)
	e.begin(queued)
}

// Who relies on a store is told what may be lost, and nothing of a sound one.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"no append-only file.*appendonly yes": nil,
		"aof-load-truncated yes.*weir doctor": {"--appendonly", "yes"},
		"^$":                                  {"--appendonly", "yes", "--aof-load-truncated", "no"},
	} {
		e := open(t, redistest.Start(t, args...).URL())
		if got := strings.Join(e.store.(*redisstore.Store).Warnings(t.Context()), "\n"); !matches(want, got) || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	s := enginetest.Open(t, redisstore.Config{Embedded: embedded.Start})
	if got := s.Warnings(t.Context()); got != nil {
		t.Errorf("embedded: %q", got)
	}
}
