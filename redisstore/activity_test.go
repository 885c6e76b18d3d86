package redisstore_test

import (
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/redisstore"
)

// What engines tell of their runs is added up once, however often it is told, and kept when they are gone.
func TestActivity(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		heartbeat := func(engine string, a store.Activity) {
			e.Helper()
			e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: engine, Activity: a}))
		}
		sum := func() (all store.Activity) {
			e.Helper()
			st, err := e.store.(*redisstore.Store).Stats(ctx)
			e.Check(err)
			for i := range st.Activity {
				if at := st.Activity[i].At; at.After(st.At) || st.At.Sub(at) > 2*store.ActivitySpan {
					e.Errorf("span at %s, now it is %s", at, st.At)
				}
				all.Add(&st.Activity[i])
			}
			return all
		}
		e.equal("of nobody", sum(), store.Activity{})
		heartbeat("A", store.Activity{})
		heartbeat("B", store.Activity{Runs: 1000}) // which is where the counting begins
		e.equal("of engines that did nothing since", sum(), store.Activity{})

		did := store.Activity{Runs: 3, Failed: 1, Read: 20, Written: 1 << 40}
		did.Waited[0], did.Took[19] = 2, 3
		heartbeat("A", did)
		heartbeat("A", did)
		e.equal("of what is told twice", sum(), did)
		heartbeat("A", store.Activity{Runs: 1}) // a late copy of an older one
		heartbeat("B", store.Activity{Runs: 1004})
		want := did
		want.Runs += 4
		e.equal("of two", sum(), want)
		e.Check(e.store.Leave(ctx, "A"))
		e.equal("when one is gone", sum(), want)
	})
}

// Only that many spans are kept: each takes the place of the one that began a quarter of an hour before it.
func TestActivityIsBounded(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		key := "weir:{" + e.Namespace + "}:activity"
		old := "7" + strings.Repeat(" 5", 44) // of 1970
		for slot := range store.ActivitySpans {
			e.Check(e.Redis.HSet(ctx, key, slot, old).Err())
		}
		e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "A"}))
		e.Check(e.store.Heartbeat(ctx, store.EngineInfo{ID: "A", Activity: store.Activity{Runs: 2}}))
		n, err := e.Redis.HLen(ctx, key).Result()
		e.Check(err)
		e.equal("spans", n, int64(store.ActivitySpans))
		st, err := e.store.(*redisstore.Store).Stats(ctx)
		e.Check(err)
		if len(st.Activity) != 1 || st.Activity[0].Runs != 2 {
			e.Errorf("activity %+v", st.Activity)
		}
		e.Check(e.Redis.HSet(ctx, key, 0, "7 5").Err())
		if _, err := e.store.(*redisstore.Store).Stats(ctx); err == nil || !strings.Contains(err.Error(), "has 2 numbers in place of 45") {
			e.Errorf("a span of two numbers: %v", err)
		}
	})
}
