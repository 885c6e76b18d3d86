package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/localredis"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Clock is the time of an embedded Redis in tests: it stands still until it is set. It
// may be shared by several stores and is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	now     time.Time
	servers []localredis.Server
}

// NewClock returns a clock that stands at start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set moves the clock. Keys whose time is over expire; timers fire at the next Sweep.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		s.Advance(t, t.Sub(c.now))
	}
	c.now = t
}

// drive takes a Redis off the machine's clock.
func (c *Clock) drive(s localredis.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Hold(c.now)
	c.servers = append(c.servers, s)
}

// Due is a job that Sweep will look at, and when: a timer, the end of a lease, or a
// second after the job became queued, in case its wake is lost.
type Due struct {
	Job    job.ID
	Type   string
	Needs  job.Needs // of an engine, besides the type
	Status statemachine.Status
	At     time.Time
	Claims bool // a place of a limit: it may begin when it has got it, and looks again at At
}

// Due returns all jobs that Sweep will look at, soonest first, and of each shard when the first of what has settled is past
// its retention: for tests that run jobs one by one and go from timer to timer with a Clock.
func (s *Store) Due(ctx context.Context) ([]Due, error) {
	shards, ends := make([]*redis.ZSliceCmd, s.keys.shards), make([]*redis.ZSliceCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range shards {
			shards[i] = p.ZRangeWithScores(ctx, s.keys.due(i), 0, -1)
			ends[i] = p.ZRangeWithScores(ctx, s.keys.retained(i), 0, 0)
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var all []Due
	for n, shard := range shards {
		head := ends[n].Val()
		for _, z := range shard.Val() {
			id, _ := z.Member.(string)
			all = append(all, Due{Job: job.ID(id), At: time.UnixMilli(int64(z.Score)).UTC()})
			if id == retainMember {
				head = nil
			}
		}
		for _, z := range head { // which the sweeper looks for
			all = append(all, Due{Job: retainMember, At: time.UnixMilli(int64(z.Score)).UTC()})
		}
	}
	ids := make([]job.ID, len(all))
	for i := range all {
		ids[i] = all[i].Job
	}
	jobs, err := s.readFields(ctx, ids, "type", "status", "claim")
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		all[i].Needs = job.ParseNeeds(j[0], "")
		all[i].Type = all[i].Needs.Type
		all[i].Status = statemachine.Status(j[1])
		all[i].Claims = j[2] != "" && all[i].Status == statemachine.Queued
	}
	slices.SortStableFunc(all, func(a, b Due) int { return a.At.Compare(b.At) })
	return all, nil
}
