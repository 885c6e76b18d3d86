package worker_test

import (
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// TestLimitOutlivesAnotherEngine: an engine of a program that has no limit for a type registers last and is gone; the limit of the engine
// that lives counts again.
func TestLimitOutlivesAnotherEngine(t *testing.T) {
	b := onRedis(t)
	serve := func(n int) *enginetest.Engine {
		return b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Narrow{max: n, meter: &meter{}}} })
	}
	registered := func(n int) func() bool {
		return func() bool {
			all, err := b.Store.Types(b.Ctx)
			b.Check(err)
			return len(all) == 1 && all[0].MaxRunning == n
		}
	}
	serve(2)
	b.Until("the limit is registered", registered(2))
	other := serve(0)
	b.Until("what was registered last counts", registered(0))
	other.Stop()
	b.Until("the limit counts again", registered(2))
	limits, err := b.Store.Limits(b.Ctx)
	b.Check(err)
	if len(limits) != 1 || limits[0].Max != 2 {
		b.Errorf("limits: %+v", limits)
	}
}

// TestLostLimits says which engine registers its limit again, and when.
func TestLostLimits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	engine := func(id string, age time.Duration, max int) store.EngineInfo {
		e := store.EngineInfo{ID: id, Concurrency: 1, Queues: map[string]int{"default": 1}, Types: []string{"T"}, Started: now.Add(-age), Seen: now}
		if max > 0 {
			e.Limits = map[string]job.TypeLimit{"T": {Max: max}}
		}
		return e
	}
	me, client := engine("me", time.Hour, 2), engine("client", 0, 0)
	client.Concurrency = 0 // clients have registered what they have
	for name, c := range map[string]struct {
		registered int
		age        time.Duration // of the registration
		others     []store.EngineInfo
		want       int // the limit that is registered again; 0: none
	}{
		"whoever registered it is gone":       {0, time.Minute, nil, 2},
		"it is as it should be":               {2, time.Minute, nil, 0},
		"its engine may not have told yet":    {0, time.Second, nil, 0},
		"its engine lives":                    {0, time.Minute, []store.EngineInfo{engine("x", time.Minute, 0)}, 0},
		"an older engine declares it":         {5, time.Minute, []store.EngineInfo{engine("x", 2*time.Hour, 5)}, 0},
		"a later engine is to do it":          {0, time.Minute, []store.EngineInfo{engine("x", time.Minute, 3)}, 0},
		"an earlier engine has another limit": {0, time.Minute, []store.EngineInfo{engine("x", 2*time.Hour, 3)}, 2},
		"clients declare nothing":             {0, time.Minute, []store.EngineInfo{client}, 2},
	} {
		types := []job.TypeInfo{{Type: "T", Queue: "default", MaxRunning: c.registered, Registered: now.Add(-c.age)}}
		got := 0
		for _, lost := range worker.LostLimits(types, append(c.others, me), "me") {
			got = lost.MaxRunning
		}
		if got != c.want {
			t.Errorf("%s: %d is registered again, want %d", name, got, c.want)
		}
	}
}
