package redisstore_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/statemachine"
)

// TestRetainCostsNothingIdle: trees that are to be removed in days cost a sweeper no more commands than none.
func TestRetainCostsNothingIdle(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.Start(t).URL())
	commands := func() int {
		text, err := e.Redis.Info(t.Context(), "stats").Result()
		e.Check(err)
		_, rest, _ := strings.Cut(text, "total_commands_processed:")
		n, err := strconv.Atoi(strings.Fields(rest)[0])
		e.Check(err)
		return n
	}
	const rounds = 100
	watch := func() int { // commands of a sweeper that looks at each shard so often
		const every = 10 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), rounds*5*every)
		defer cancel()
		before := commands()
		e.store.Watch(ctx, every, func(err error) { t.Error(err) })
		return commands() - before
	}
	empty := watch()
	for range 1000 {
		e.end(e.retained(7*24*time.Hour, lone()), statemachine.Complete)
	}
	if full := watch(); full > empty+rounds {
		t.Errorf("%d commands with 1,000 trees that are retained, %d with none", full, empty)
	}
}

// TestRetainComesNear: what was far from its end is removed at its time, though nothing was told of it meanwhile.
func TestRetainComesNear(t *testing.T) {
	t.Parallel()
	clock := redisstore.NewClock(time.UnixMilli(1e12))
	e := openBy(t, redisstore.Config{Embedded: embedded.Start, Clock: clock, Shards: 1})
	s := e.Store
	first, second := e.retained(time.Hour, lone()), e.retained(2*time.Hour, lone())
	for _, id := range []job.ID{second, first} {
		e.end(id, statemachine.Complete)
	}
	for _, step := range []struct {
		after time.Duration
		gone  []job.ID
	}{{59 * time.Minute, nil}, {2 * time.Minute, []job.ID{first}}, {50 * time.Minute, nil}, {10 * time.Minute, []job.ID{second}}} {
		clock.Set(clock.Now().Add(step.after))
		due, err := s.Due(t.Context())
		e.Check(err)
		e.equal("something is due", len(due) > 0 && !due[0].At.After(clock.Now()), len(step.gone) > 0)
		e.sweep()
		for _, id := range step.gone {
			_, err := s.Info(t.Context(), id)
			e.fails(err, job.ErrNotFound)
		}
	}
}
