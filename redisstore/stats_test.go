package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

func TestStatsCount(t *testing.T) {
	each(t, func(e *env) {
		s, ctx := e.store.(*redisstore.Store), e.Context()
		stats := func() redisstore.Stats {
			e.Helper()
			st, err := s.Stats(ctx)
			e.Check(err)
			if len(st.Servers) == 0 || st.Servers[0].Keys < 0 || st.Servers[0].Address == "" {
				e.Errorf("servers %+v", st.Servers)
			}
			if strings.HasPrefix(e.URL, "redis+cluster:") != (len(st.Servers) > 1) {
				e.Errorf("%d servers at %s", len(st.Servers), e.URL)
			}
			out := *st
			if out.Late >= redisstore.Lag != (out.Overdue > 0) {
				e.Errorf("%d entries are overdue, the first since %s", out.Overdue, out.Late)
			}
			out.At, out.Servers, out.Queues, out.Engines, out.Late = time.Time{}, nil, nil, nil, 0
			return out
		}
		e.equal("a new namespace", stats(), redisstore.Stats{Namespace: e.Namespace, Shards: shards})

		first, second := e.single(), e.single()
		e.end(second, statemachine.Complete)
		third := e.single()
		e.end(third, statemachine.Fail)
		_, err := e.store.Claim(ctx, "first", first)
		e.Check(err)
		e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "A"}))
		// The first job is due; the retention of the others ends in days.
		e.equal("three jobs", stats(), redisstore.Stats{Namespace: e.Namespace, Shards: shards, Roots: 3, Failed: 1, Due: 1, Aliases: 1, Retained: 2})

		e.Check(e.Redis.ZAdd(ctx, e.due(first), redis.Z{Score: 1, Member: string(first)}).Err())
		shard := strings.TrimSuffix(e.due(first), "due")
		e.Check(e.Redis.RPush(ctx, shard+"chores", "delete x", "delete y").Err())
		e.Check(e.Redis.XAdd(ctx, &redis.XAddArgs{Stream: shard + "outbox", Values: []string{"to", "hub", "order", "x"}}).Err())
		e.equal("work left to do", stats(), redisstore.Stats{
			Namespace: e.Namespace, Shards: shards, Roots: 3, Failed: 1, Due: 1, Overdue: 1, Aliases: 1, Retained: 2, Orders: 1, BackgroundTasks: 2,
		})
		st, err := s.Stats(ctx)
		e.Check(err)
		e.equal("engines, queues", []int{len(st.Engines), len(st.Queues)}, []int{1, 1})
	})
}
