package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// embeddedTick is how often the clock of the embedded Redis moves: by so much a key may
// expire early or late.
const embeddedTick = 10 * time.Millisecond

// embedded is a Redis inside this process, for trying things out: it lives in memory
// only. It listens on a loopback port and asks for a password that nobody else knows, so
// that other users of the machine cannot read it.
type embedded struct {
	server   *miniredis.Miniredis
	password string
	stop     chan struct{}
	stopped  chan struct{}
	halt     func() // ends tick and waits for it
}

// startEmbedded starts an empty Redis. The caller must close it.
func startEmbedded() (*embedded, error) {
	e := &embedded{
		server:   miniredis.NewMiniRedis(),
		password: rand.Text(),
		stop:     make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	e.halt = sync.OnceFunc(func() {
		close(e.stop)
		<-e.stopped
	})
	e.server.RequireAuth(e.password) // before it listens
	if err := e.server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("starting the embedded Redis: %w", err)
	}
	go e.tick()
	return e, nil
}

// url returns the URL of the Redis, with its password.
func (e *embedded) url() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", e.password), Host: e.server.Addr()}
	return u.String()
}

// close ends the Redis and its connections and waits for them. To be called once.
func (e *embedded) close() {
	e.halt()
	e.server.Close()
}

// tick lets keys expire, which miniredis does only when it is told how time passes. Its
// own clock (ClockTTL) would do it at every command, and so in the middle of a script,
// which a Redis never does.
func (e *embedded) tick() {
	defer close(e.stopped)
	timer := time.NewTimer(embeddedTick)
	defer timer.Stop()
	last := time.Now()
	for {
		select {
		case <-e.stop:
			return
		case <-timer.C:
		}
		now := time.Now()
		e.server.FastForward(now.Sub(last))
		last = now
		// A tick looks at every key and nothing else can happen meanwhile: with very
		// many keys tick less often, so that it takes at most a twentieth of the time.
		timer.Reset(max(embeddedTick, 20*time.Since(now)))
	}
}

// Clock is the time of an embedded Redis in tests: it stands still until it is set. It
// may be shared by several stores and is safe for concurrent use.
type Clock struct {
	mu      sync.Mutex
	now     time.Time
	servers []*miniredis.Miniredis
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
		s.SetTime(t)
		s.FastForward(t.Sub(c.now))
	}
	c.now = t
}

// drive takes a Redis off the machine's clock.
func (c *Clock) drive(e *embedded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.halt()
	e.server.SetTime(c.now)
	c.servers = append(c.servers, e.server)
}

// Due is a job that Sweep will look at, and when: a timer, the end of a lease, or a
// second after the job became queued, in case its wake is lost.
type Due struct {
	Job    job.ID
	Type   string
	Needs  job.Needs // of an engine, besides the type
	Status statemachine.Status
	At     time.Time
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
	jobs := make([]*redis.SliceCmd, len(all))
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range all {
			jobs[i] = p.HMGet(ctx, s.keys.job(all[i].Job, ""), "type", "status")
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	for i, j := range jobs {
		typ, _ := j.Val()[0].(string)
		all[i].Needs = job.ParseNeeds(typ, "")
		all[i].Type = all[i].Needs.Type
		status, _ := j.Val()[1].(string)
		all[i].Status = statemachine.Status(status)
	}
	slices.SortStableFunc(all, func(a, b Due) int { return a.At.Compare(b.At) })
	return all, nil
}
