package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// LimitInfo is how a limit of runs at once is used.
type LimitInfo struct {
	// Name is `type:` and a type, with a `:` and the value of an argument behind it if there is a limit for each, or `queue:` and
	// a queue.
	Name    string
	Max     int
	Running int64    // places that are taken
	Waiting int64    // jobs that wait for one
	Holders []job.ID // the first of those that have a place
	Next    []job.ID // the first of those that wait
}

// holdersShown is how many jobs a LimitInfo names.
const holdersShown = 10

// SetQueueLimit implements job.Limits.
func (s *Store) SetQueueLimit(ctx context.Context, queue string, n int) error {
	if err := job.CheckName("queue", queue); err != nil {
		return err
	}
	switch {
	case n < 0:
		return fmt.Errorf("%w: a limit of %d runs at once in queue %q: use at least 1, or 0 for none", job.ErrName, n, queue)
	case n == 0:
		return s.explain(s.rdb.HDel(ctx, s.keys.queueLimits(), queue).Err())
	}
	return s.explain(s.rdb.HSet(ctx, s.keys.queueLimits(), queue, n).Err())
}

// QueueLimits implements job.Limits.
func (s *Store) QueueLimits(ctx context.Context) (map[string]int, error) {
	all, err := s.rdb.HGetAll(ctx, s.keys.queueLimits()).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	var d decoder
	out := make(map[string]int, len(all))
	for queue, n := range all {
		out[queue] = int(d.int(n))
	}
	return out, d.err
}

// Limits returns the limits of runs at once of which places are taken, by name.
func (s *Store) Limits(ctx context.Context) ([]LimitInfo, error) {
	maxima := make([]*redis.MapStringStringCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range maxima {
			maxima[i] = p.HGetAll(ctx, s.keys.limits(i))
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	type sets struct {
		held, waits *redis.IntCmd
		first, next *redis.StringSliceCmd
	}
	var all []LimitInfo
	var found []sets
	var d decoder
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, m := range maxima {
			for name, n := range m.Val() {
				held, waits := s.keys.held(i, name), s.keys.waits(i, name)
				all = append(all, LimitInfo{Name: name, Max: int(d.int(n))})
				found = append(found, sets{
					p.ZCard(ctx, held), p.ZCard(ctx, waits), p.ZRange(ctx, held, 0, holdersShown-1), p.ZRange(ctx, waits, 0, holdersShown-1),
				})
			}
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	for i, f := range found {
		all[i].Running, all[i].Waiting = f.held.Val(), f.waits.Val()
		all[i].Holders, all[i].Next = jobsOf(f.first.Val()), jobsOf(f.next.Val())
	}
	slices.SortFunc(all, func(a, b LimitInfo) int { return cmp.Compare(a.Name, b.Name) })
	return all, d.err
}

// jobsOf returns the jobs of members of a limit's sets, which have a shard behind them.
func jobsOf(members []string) []job.ID {
	ids := make([]job.ID, len(members))
	for i, m := range members {
		id, _, _ := strings.Cut(m, " ")
		ids[i] = job.ID(id)
	}
	return ids
}

// placesArg encodes limits as places.read() in place.lua reads them. The home of a limit follows from its type or queue.
func placesArg(limits []job.RunLimit, shards int) string {
	if len(limits) == 0 {
		return ""
	}
	texts := make([]string, len(limits))
	for i, l := range limits {
		kind, name := "t", l.Type
		if l.Type == "" {
			kind, name = "q", l.Queue
		}
		home := strconv.Itoa(int(job.Hash(kind+name) % uint32(shards))) //nolint:gosec // there are few
		texts[i] = strings.Join([]string{kind, home, strconv.Itoa(l.Max), l.By, name}, " ")
	}
	return strings.Join(texts, "\x1f")
}
