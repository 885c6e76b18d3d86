package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// QueueInfo is what is known of a queue at one moment.
type QueueInfo struct {
	Name       string
	Paused     bool
	Pending    int           // jobs that are ready
	Active     int           // runs in progress, as engines tell each second
	Scheduled  int           // notifications to be sent later
	Retry      int           // notifications whose engine could not begin a run
	Archived   int           // notifications that asynq gave up
	Latency    time.Duration // since when the longest of those is ready that are the next of their type in their shard
	Ready      []ReadyType   // the same by type, sorted; of types that have some
	Types      []string      // that engines have registered for it
	Engines    int           // that live and serve it
	Slots      int           // runs that these can have in progress, of all their queues
	Limit      int           // how many of its jobs run at once at most; 0: any number
	Limited    int           // ready jobs that wait for a place of a limit, its own or one of their types: they are not among Pending
	LimitedFor time.Duration // since when the longest of those is ready
}

// ReadyType tells of the ready jobs of a type in a queue. Those of the type "" are to end, and no engine that lives has their type.
type ReadyType struct {
	Type   string
	Jobs   int
	Oldest time.Duration // since when the longest of those is ready that are the next in their shard
	Needs  []string      // what engines must have for some of them, see job.Needs
}

// Queues returns the queues that are known, sorted by name: those that engines have
// registered types for, serve now, or have ever had jobs in.
func (s *Store) Queues(ctx context.Context) ([]QueueInfo, error) {
	engines, err := s.Engines(ctx)
	if err != nil {
		return nil, err
	}
	return s.queuesOf(ctx, engines)
}

func (s *Store) queuesOf(ctx context.Context, engines []store.EngineInfo) ([]QueueInfo, error) {
	types, err := s.Types(ctx)
	if err != nil {
		return nil, err
	}
	limits, err := s.QueueLimits(ctx)
	if err != nil {
		return nil, err
	}
	names, err := s.broker.QueueNames()
	if err != nil {
		return nil, s.explain(err)
	}
	queues := map[string]*QueueInfo{}
	known := func(name string) *QueueInfo {
		if queues[name] == nil {
			queues[name] = &QueueInfo{Name: name, Types: []string{}}
		}
		return queues[name]
	}
	for _, name := range names {
		known(name)
	}
	for _, t := range types {
		q := known(t.Queue)
		q.Types = append(q.Types, t.Type)
	}
	for i := range engines {
		for name := range engines[i].Queues {
			q := known(name)
			q.Engines++
			q.Slots += engines[i].Concurrency
			q.Active += engines[i].Busy[name]
		}
	}
	out := []QueueInfo{}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		q := queues[name]
		line, err := s.broker.Queue(ctx, name)
		if err != nil {
			return nil, s.explain(err)
		}
		q.Limit = limits[name]
		q.Paused, q.Scheduled, q.Retry, q.Archived = line.Paused, line.Scheduled, line.Retry, line.Archived
		if err := s.waiting(ctx, q); err != nil {
			return nil, err
		}
		out = append(out, *q)
	}
	return out, nil
}

// NewIDIn returns a new ID for the root of a tree in the shard that all trees share whose IDs are made with that word. Of the ready jobs of
// a shard those of a higher priority run first, always, and else those that became ready first.
func (s *Store) NewIDIn(word string) (job.ID, error) {
	shard := int(job.Hash(word) % uint32(s.keys.shards))
	for {
		id, err := job.NewID()
		if err != nil || id.Shard(s.keys.shards) == shard {
			return id, err
		}
	}
}

// Numbers counts under a name, in the whole namespace, from 1 on: it sets n numbers aside, and returns the first.
func (s *Store) Numbers(ctx context.Context, name string, n int64) (first int64, err error) {
	last, err := s.rdb.HIncrBy(ctx, s.keys.numbers(), name, n).Result()
	return last - n + 1, s.explain(err)
}

// Pending returns how many jobs of a queue are ready, those that wait for a place of a limit among them.
func (s *Store) Pending(ctx context.Context, queue string) (int, error) {
	q := QueueInfo{Name: queue}
	err := s.waiting(ctx, &q)
	return q.Pending + q.Limited, err
}

// waiting adds what the sets of ready jobs, and of those that wait for limits, have of a queue.
func (s *Store) waiting(ctx context.Context, q *QueueInfo) error {
	types := make([]*redis.StringSliceCmd, s.keys.shards)
	limited, first := make([]*redis.IntCmd, s.keys.shards), make([]*redis.ZSliceCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for shard := range types {
			types[shard] = p.ZRange(ctx, s.keys.ready(shard, q.Name), 0, -1)
			limited[shard] = p.ZCard(ctx, s.keys.limited(shard, q.Name))
			first[shard] = p.ZRangeWithScores(ctx, s.keys.limited(shard, q.Name), 0, 0)
		}
		return nil
	}); err != nil {
		return s.explain(err)
	}
	var ready []*readySet
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for shard, c := range types {
			for _, typ := range c.Val() {
				set := s.keys.readyOf(shard, q.Name, typ)
				ready = append(ready, &readySet{typ: typ, count: p.ZCard(ctx, set), head: p.ZRange(ctx, set, 0, 0)})
			}
		}
		return nil
	}); err != nil {
		return s.explain(err)
	}
	now, err := s.Now(ctx)
	if err != nil {
		return err
	}
	for shard := range limited {
		q.Limited += int(limited[shard].Val())
		for _, z := range first[shard].Val() {
			q.LimitedFor = max(q.LimitedFor, now.Sub(time.UnixMilli(int64(z.Score))))
		}
	}
	if len(ready) == 0 {
		return nil
	}
	var ids []job.ID
	var of []*readySet
	for _, r := range ready {
		for _, id := range r.head.Val() {
			ids, of = append(ids, job.ID(id)), append(of, r)
		}
	}
	since, err := s.readFields(ctx, ids, "queued")
	if err != nil {
		return err
	}
	for i, r := range of {
		r.since = since[i][0] // some may have gone meanwhile
	}
	q.add(ready, now)
	return nil
}

// readySet is what was read of the jobs of a type that are ready in a shard.
type readySet struct {
	typ   string
	count *redis.IntCmd
	head  *redis.StringSliceCmd
	since string // when its first job became ready (ms)
}

// add adds what was read of ready sets.
func (q *QueueInfo) add(ready []*readySet, now time.Time) {
	types := map[string]*ReadyType{}
	for _, r := range ready {
		name := baseType(r.typ)
		t := types[name]
		if t == nil {
			t = &ReadyType{Type: name}
			types[name] = t
		}
		t.Jobs += int(r.count.Val())
		if !slices.Contains(t.Needs, r.typ) {
			t.Needs = append(t.Needs, r.typ)
		}
		if at, err := strconv.ParseInt(r.since, 10, 64); err == nil {
			t.Oldest = max(t.Oldest, now.Sub(time.UnixMilli(at)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		t := types[name]
		q.Pending, q.Latency = q.Pending+t.Jobs, max(q.Latency, t.Oldest)
		q.Ready = append(q.Ready, *t)
	}
}

// PauseQueue keeps engines from beginning runs of jobs of a queue, also of one that nobody
// has heard of yet. Runs in progress end, and what they make ready in the queue waits. An
// engine that has just begun a run may go on from job to job for a tenth of a second, and one
// that has nothing to do may begin runs until it hears of the pause. The pause holds until
// ResumeQueue, also when asynq, which it is told to, loses its keys: the sweeper tells it again
// within seconds. changed is false if the queue was paused already.
func (s *Store) PauseQueue(ctx context.Context, queue string) (changed bool, err error) {
	if err := job.CheckName("queue", queue); err != nil {
		return false, err
	}
	if delivery.IsPrivate(queue) {
		return false, fmt.Errorf("%w: queue %s is private to the program that serves it and cannot be paused: stop that program", job.ErrName, queue)
	}
	added, err := s.rdb.SAdd(ctx, s.keys.paused(), queue).Result()
	if err == nil { // first: the sweeper does the rest if need be, and may do it before this does
		changed, err = s.broker.Pause(ctx, queue)
	}
	if err != nil {
		return false, fmt.Errorf("pausing queue %s: %w", queue, s.explain(err))
	}
	_ = s.unclaim(ctx, queue) // what it leaves the sweeper finds
	return changed || added == 1, nil
}

// unclaimed is how many jobs one call takes out of the lines for limits.
const unclaimed = 50

// unclaim has the jobs of a queue that is paused wait for no places of limits: others may have these meanwhile.
func (s *Store) unclaim(ctx context.Context, queue string) error {
	waiting := make([]*redis.IntCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for shard := range waiting {
			waiting[shard] = p.ZCard(ctx, s.keys.limited(shard, queue))
		}
		return nil
	}); err != nil {
		return s.explain(err)
	}
	for shard, c := range waiting {
		due := s.keys.due(shard)
		for left := c.Val(); left > 0; {
			reply, err := s.run(ctx, scriptUnclaim, due, queue, unclaimed)
			if err != nil {
				return err
			}
			var d decoder
			l := d.list(reply)
			left = d.int(d.at(l, 0))
			if err := s.deliver(ctx, due, &d, d.at(l, 1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ResumeQueue lets jobs of a queue run again: those that became ready meanwhile are in
// line. changed is false if the queue was not paused.
func (s *Store) ResumeQueue(ctx context.Context, queue string) (changed bool, err error) {
	removed, err := s.rdb.SRem(ctx, s.keys.paused(), queue).Result()
	if err == nil { // first: else the sweeper would pause it again
		changed, err = s.broker.Resume(ctx, queue)
	}
	if err != nil {
		return false, fmt.Errorf("resuming queue %s: %w", queue, s.explain(err))
	}
	return changed || removed == 1, nil
}

// keepPaused has asynq pause the queues that are to be paused, and no others, now and then: its keys were lost, a tool of it resumed
// them, or who paused or resumed one died halfway. A pause by a tool of asynq is left alone.
func (s *Store) keepPaused(ctx context.Context, r *round) error {
	if r.at.Sub(r.paused) < pausedEvery {
		return nil
	}
	r.paused = r.at
	known, err := s.broker.QueueNames()
	if err != nil {
		return s.explain(err)
	}
	own, err := s.broker.OwnPauses(ctx, known)
	if err != nil {
		return s.explain(err)
	}
	wanted, err := s.rdb.SMembers(ctx, s.keys.paused()).Result() // last: whoever pauses a queue writes it here first
	if err != nil {
		return s.explain(err)
	}
	open, err := s.broker.Open(ctx, wanted)
	if err != nil {
		return s.explain(err)
	}
	for _, queue := range open {
		if _, err := s.broker.Pause(ctx, queue); err != nil {
			return s.explain(err)
		}
	}
	for queue, pause := range own {
		if slices.Contains(wanted, queue) {
			continue
		}
		if err := s.broker.EndPause(ctx, queue, pause); err != nil {
			return s.explain(err)
		}
	}
	return nil
}
