package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/job"
)

const (
	// sweepBatch is how many due jobs of a shard one script looks at.
	sweepBatch = 100
	// leadership is for how long a sweeper leads without a sign of life while nothing is due soon, and hurried while
	// something is: so timers are late by that much at most when its process dies. Two that sweep at a time do no harm.
	leadership = 2 * time.Second
	hurried    = 600 * time.Millisecond
	// calmRounds is how many rounds a shard is left alone in which nothing is due.
	calmRounds = 5
	// pausedEvery is how often it is looked whether asynq has lost a pause.
	pausedEvery = 5 * time.Second
	// never is later than anything is due.
	never = math.MaxInt64 / 2
	// sweepRest is the least time from one round to the next. After one that acted on sweepMany it is sweepShare times
	// what that took: when much is due at many times it is done together.
	sweepRest  = 10 * time.Millisecond
	sweepMany  = 20
	sweepShare = 20
)

// Sweep implements store.Sweeper.
func (s *Store) Sweep(ctx context.Context) (int, error) {
	n, err := s.sweep(ctx, &round{})
	s.relays.wait(ctx)
	return n, err
}

// Watch implements store.Sweeper. When not much is due it looks at each shard only now and
// then, and at once when something is due that it saw, or was told of.
func (s *Store) Watch(ctx context.Context, every time.Duration, failed func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	r := &round{every: every}
	for {
		began := time.Now()
		n, err := s.sweep(ctx, r)
		if err != nil && ctx.Err() == nil {
			failed(err)
		}
		pause := sweepRest
		switch {
		case err != nil:
			pause = every
		case n >= sweepMany:
			pause = max(pause, sweepShare*time.Since(began))
		}
		if s.await(ctx, r, tick.C, time.Now().Add(pause)); ctx.Err() != nil {
			return
		}
	}
}

// await waits until the next round, which is not before a time unless it is a whole one, of all that a round
// does, and tells whether it is.
func (s *Store) await(ctx context.Context, r *round, tick <-chan time.Time, earliest time.Time) {
	for {
		first, all := s.broker.AskedDue()
		r.told(first, all)
		if soon := r.wait() < leadership; s.hurry.Swap(soon) != soon && soon {
			select {
			case s.hurries <- struct{}{}:
			default: // it will look anyway
			}
		}
		early := time.NewTimer(max(time.Until(earliest), r.wait()))
		select {
		case <-ctx.Done():
		case <-tick:
		case <-early.C:
		case <-s.broker.MoreDue():
			early.Stop()
			continue
		}
		early.Stop()
		return
	}
}

// round is what a sweeper knows of the shards.
type round struct {
	every time.Duration // from one whole round to the next
	next  []int64       // when to look at each again, in ms by Redis's clock
	first []int64       // when something is due in each, as far as is known; else never
	ends  int64         // when to look at what is soon past its retention
	now   int64         // by that clock
	at    time.Time     // when it was now

	paused time.Time // when it was last looked whether asynq has lost a pause
}

// patience is for how long a shard is left alone in which nothing is due.
func (r *round) patience() int64 { return calmRounds * r.every.Milliseconds() }

// due tells whether it is time to look at a shard, also if the clock was set back.
func (r *round) due(shard int, now int64) bool {
	return r.next[shard] <= now || r.next[shard] > now+r.patience()
}

// found notes what was seen of a shard: when its first reason to look at it is, or -1.
func (r *round) found(shard int, now, first int64) {
	r.next[shard], r.first[shard] = now+r.patience(), never
	if first >= 0 {
		r.next[shard], r.first[shard] = min(r.next[shard], first), first
	}
}

// swept is found for a shard in which something was due: more may come that nobody tells of.
func (r *round) swept(shard int, now, first int64) {
	r.found(shard, now, first)
	r.next[shard] = min(r.next[shard], now+r.every.Milliseconds())
}

// told notes when something is due in shards, or that anything may be anywhere.
func (r *round) told(first map[int]int64, all bool) {
	if all {
		r.next, r.first = nil, nil
	}
	for shard, at := range first {
		if shard < len(r.next) {
			r.next[shard], r.first[shard] = min(r.next[shard], at), min(r.first[shard], at)
		}
	}
}

// wait is for how long nothing is due as far as is known.
func (r *round) wait() time.Duration {
	if len(r.first) == 0 {
		return 0
	}
	return time.Duration(min(slices.Min(r.first)+1-r.now, r.patience()))*time.Millisecond - time.Since(r.at)
}

// sweep looks at the shards whose turn it is.
func (s *Store) sweep(ctx context.Context, r *round) (int, error) {
	clock, err := s.Now(ctx)
	if err != nil {
		return 0, err
	}
	now := clock.UnixMilli()
	r.now, r.at = now, time.Now()
	if r.next == nil {
		r.next, r.first = make([]int64, s.keys.shards+1), make([]int64, s.keys.shards+1)
	}
	ended := errors.Join(s.nearEnds(ctx, r), s.keepPaused(ctx, r))
	var shards []int
	for i := range r.next {
		if r.due(i, now) {
			shards = append(shards, i)
		}
	}
	if s.calm(ctx, shards) {
		for _, i := range shards {
			r.found(i, now, -1)
		}
		return 0, ended
	}
	heads := make(map[int]*redis.ZSliceCmd)
	// One shard that cannot be reached or swept keeps none of the others from it.
	_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error
		for _, i := range shards {
			heads[i] = p.ZRangeWithScores(ctx, s.dueAt(i), 0, 0)
		}
		return nil
	})
	total := 0
	errs := []error{ended}
	for i, h := range heads {
		if h.Err() != nil {
			errs = append(errs, s.explain(h.Err()))
			continue
		}
		if z := h.Val(); len(z) == 0 {
			r.found(i, now, -1)
			continue
		} else if first := int64(z[0].Score); first > now {
			r.found(i, now, first)
			continue
		}
		n, first, err := s.sweepShard(ctx, s.dueAt(i))
		if total += n; err == nil {
			r.swept(i, now, first)
		} else {
			errs = append(errs, fmt.Errorf("sweeping %s: %w", s.dueAt(i), err))
		}
	}
	return total, errors.Join(errs...)
}

// calm tells, with one command for all of them, whether nothing will be due in some shards as far
// as is known now: so it is while all jobs sleep. In a cluster it cannot be asked at once.
func (s *Store) calm(ctx context.Context, shards []int) bool {
	if _, cluster := s.rdb.(*redis.ClusterClient); cluster || len(shards) < 2 {
		return false
	}
	keys := make([]string, len(shards))
	for n, i := range shards {
		keys[n] = s.dueAt(i)
	}
	n, err := s.rdb.Exists(ctx, keys...).Result()
	return err == nil && n == 0
}

// SweepOf implements store.Sweeper.
func (s *Store) SweepOf(ctx context.Context, id job.ID) error {
	_, _, err := s.sweepShard(ctx, s.keys.dueOf(id))
	return err
}

// dueAt returns the due key of a shard; behind the last shard, that of the channels.
func (s *Store) dueAt(shard int) string {
	if shard == s.keys.shards {
		return s.keys.hub()
	}
	return s.keys.due(shard)
}

// sweepShard acts on all that is due in a shard, and returns how much that was, and when the next is, or -1.
func (s *Store) sweepShard(ctx context.Context, due string) (total int, next int64, err error) {
	for {
		reply, err := s.run(ctx, scriptSweep, due, sweepBatch)
		if err != nil {
			return total, -1, err
		}
		var d decoder
		l := d.list(reply)
		n, left := int(d.int(d.at(l, 0))), d.todo(d.at(l, 1), s.keys.shardAt(due))
		next = d.int(d.at(l, 2))
		var late []string
		for _, v := range d.list(d.at(l, 3)) {
			late = append(late, d.str(v))
		}
		if d.err != nil {
			return total, -1, d.err
		}
		total += n
		failpoint.Hit(failpoint.SweeperBeforeEnqueue)
		held, err := s.broker.Enqueue(ctx, left.notifications)
		failpoint.Hit(failpoint.SweeperAfterEnqueue)
		if err == nil {
			err = s.renew(ctx, held)
		}
		if err == nil {
			err = s.lack(ctx, due, late)
		}
		if other := s.urgent(ctx, due, left.members); err != nil || other != nil {
			return total, -1, errors.Join(err, other)
		}
		if n < sweepBatch {
			return total, next, nil
		}
	}
}

// Lead implements store.Sweeper.
func (s *Store) Lead(ctx context.Context, fn func(context.Context)) (time.Duration, error) {
	lock, err := redislock.Obtain(ctx, s.rdb, s.keys.sweeper(), leadership, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		left, err := s.rdb.PTTL(ctx, s.keys.sweeper()).Result()
		return max(left, time.Millisecond), s.explain(err)
	}
	if outOfMemory(err) { // what sweeps may free some
		lead, cancel := context.WithTimeout(ctx, leadership)
		defer cancel()
		fn(lead)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("obtaining the sweeper's lock: %w", s.explain(err))
	}
	lead, cancel := context.WithCancel(ctx)
	s.hurry.Store(false) // what is due soon he finds again, and tells of it
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		s.keepLeading(lead, lock)
	}()
	fn(lead)
	cancel()
	<-done
	release, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	_ = lock.Release(release) // else it ends by itself
	return 0, nil
}

// keepLeading prolongs the sweeper's lock until ctx ends, or the lock is lost.
func (s *Store) keepLeading(ctx context.Context, lock *redislock.Lock) {
	held, last := leadership, time.Now()
	for {
		half := time.NewTimer(time.Until(last.Add(held / 2)))
		select {
		case <-half.C:
		case <-s.hurries:
		case <-ctx.Done():
		}
		half.Stop()
		if ctx.Err() != nil {
			return
		}
		span := leadership
		if s.hurry.Load() {
			span = hurried
		}
		if (span == held || held == hurried) && time.Since(last) < held/2 {
			continue
		}
		if lock.Refresh(ctx, span, nil) != nil {
			return
		}
		held, last = span, time.Now()
	}
}
