package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

func TestEnginesThatLive(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		engines := func() []store.EngineInfo {
			e.Helper()
			all, err := e.store.Engines(ctx)
			e.Check(err)
			return all
		}
		e.equal("engines of a new namespace", engines(), []store.EngineInfo{})

		id := newID(e)
		run := store.RunningJob{Job: id, Type: "T", Queue: "q", Since: time.UnixMilli(1_000).UTC()}
		second := store.EngineInfo{
			ID: "B", Host: "h", PID: 2, Version: "v1", Concurrency: 4, Queues: map[string]int{"q": 6},
			Types: []string{"T"}, Running: 1, Runs: []store.RunningJob{run},
		}
		e.Check(e.store.Heartbeat(ctx, second))
		e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "A", Host: "h", PID: 1}))
		first := engines()[1]
		if first.Started.IsZero() || first.Seen.Before(first.Started) {
			e.Errorf("started %s, seen %s", first.Started, first.Seen)
		}
		second.Started, second.Seen = first.Started, first.Seen
		e.equal("engine", first, second)

		time.Sleep(5 * time.Millisecond) // the clock moves on
		second.Stopping = true
		e.Check(e.store.Heartbeat(ctx, second))
		again := engines()[1]
		e.equal("start of an engine that goes on", again.Started, first.Started)
		if !again.Stopping || !again.Seen.After(first.Seen) {
			e.Errorf("stopping %t, seen %s, before %s", again.Stopping, again.Seen, first.Seen)
		}

		e.Check(e.store.Leave(ctx, "A"))
		e.Check(e.store.Leave(ctx, "A"))
		if all := engines(); len(all) != 1 || all[0].ID != "B" {
			e.Errorf("after one left: %+v", all)
		}

		// One that died is no longer told of, and the next sign of life of another removes it.
		long := float64(time.Now().Add(-2 * store.EngineGone).UnixMilli())
		all := "weir:{" + e.Namespace + "}:engines"
		e.Check(e.Redis.ZAdd(ctx, all, redis.Z{Score: long, Member: "B"}).Err())
		e.equal("engines", engines(), []store.EngineInfo{})
		e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "C"}))
		members, err := e.Redis.ZRange(ctx, all, 0, -1).Result()
		e.Check(err)
		e.equal("members", members, []string{"C"})
		ttl, err := e.Redis.PTTL(ctx, "weir:{"+e.Namespace+"}:engine:B").Result()
		e.Check(err)
		if ttl <= 0 {
			e.Errorf("what the dead one told lasts %s", ttl)
		}
	})
}

// A type that no engine has any more can be forgotten; while one that lives has it, that is refused.
func TestForgetType(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), enginetest.Open(t, redisstore.Config{URL: redistest.Start(t).URL()})
	enginetest.Check(t, s.Register(ctx, []job.TypeInfo{{Type: "T", Queue: "slow"}, {Type: "T", Queue: job.DefaultQueue}}))
	enginetest.Check(t, s.Heartbeat(ctx, store.EngineInfo{ID: "A", PID: 7, Host: "h", Queues: map[string]int{"slow": 1}, Types: []string{"T"}}))
	err := s.ForgetType(ctx, "slow", "T")
	if want := "process 7 on h"; !errors.Is(err, job.ErrServed) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}
	enginetest.Check(t, s.ForgetType(ctx, job.DefaultQueue, "T")) // that engine does not serve this queue
	if err := s.ForgetType(ctx, job.DefaultQueue, "T"); !errors.Is(err, job.ErrUnknownType) {
		t.Errorf("forgetting it again: %v", err)
	}
	enginetest.Check(t, s.Leave(ctx, "A"))
	enginetest.Check(t, s.ForgetType(ctx, "slow", "T"))
	if all, err := s.Types(ctx); err != nil || len(all) > 0 {
		t.Errorf("types %+v, %v", all, err)
	}
}
