package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Keyed implements store.Sequences.
func (s *Store) Keyed(id job.ID, key string) job.ID { return id.InShardOf(key, s.keys.shards) }

// checkHome refuses a root that does not lie in the shard of its key.
func (s *Store) checkHome(root job.ID, plan *job.Plan) error {
	kind := "sequential"
	if plan.SequentialKey == "" {
		kind = "unique"
	}
	if key := plan.Home(); key != "" && s.Keyed(root, key) != root {
		return fmt.Errorf("%w: tree %s was to have another %s key than %.80q, or none, when its ID was chosen: use another alias or key", job.ErrID, root, kind, key)
	}
	if plan.Unique != nil && plan.Unique.Key == "" {
		return fmt.Errorf("%w: the unique key of tree %s is empty", job.ErrName, root)
	}
	return nil
}

// Turn implements store.Sequences.
func (s *Store) Turn(ctx context.Context, id job.ID) (t job.Turn, err error) {
	all, err := s.readFields(ctx, []job.ID{id}, "status", "key", "sequence")
	if err != nil {
		return t, err
	}
	status, key, number := all[0][0], all[0][1], all[0][2]
	if status == "" {
		return t, id.Missing()
	}
	if t.Key = key; number == "" || t.Key == "" {
		return t, nil
	}
	shard := id.Shard(s.keys.shards)
	var holder *redis.StringCmd
	var waits *redis.FloatCmd
	var before, behind *redis.IntCmd
	_, err = s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		set := s.keys.waitsForKey(shard, t.Key)
		holder, waits = p.HGet(ctx, s.keys.keyHolders(shard), t.Key), p.ZScore(ctx, set, string(id))
		before, behind = p.ZCount(ctx, set, "-inf", "("+number), p.ZCount(ctx, set, "("+number, "+inf")
		return nil
	})
	if err != nil && !isNil(err) {
		return t, s.explain(err)
	}
	t.Holder = job.ID(holder.Val())
	switch {
	case waits.Err() == nil:
		t.Before, t.Behind = before.Val()+1, behind.Val()
	case t.Holder == id:
		t.Behind = before.Val() + behind.Val()
	}
	return t, nil
}

// SequenceKeys returns the sequential keys that are held, those that most trees wait for first, then by name: at most that many of each
// shard, or all if that is 0.
func (s *Store) SequenceKeys(ctx context.Context, most int) ([]store.SequenceKey, error) {
	var all []store.SequenceKey
	for shard := range s.keys.shards {
		found, err := s.keysOf(ctx, shard, most)
		if err != nil {
			return nil, s.explain(err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b store.SequenceKey) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Key, b.Key))
	})
	return all, nil
}

// keysOf returns those of a shard.
func (s *Store) keysOf(ctx context.Context, shard, most int) ([]store.SequenceKey, error) {
	holders := map[string]string{}
	for cursor := uint64(0); ; {
		page, next, err := s.rdb.HScan(ctx, s.keys.keyHolders(shard), cursor, "", scanFields).Result()
		if err != nil {
			return nil, err
		}
		for n := 0; n+1 < len(page); n += 2 {
			holders[page[n]] = page[n+1]
		}
		if cursor = next; cursor == 0 || most > 0 && len(holders) >= most {
			break
		}
	}
	all := make([]store.SequenceKey, 0, len(holders))
	for key, holder := range holders {
		all = append(all, store.SequenceKey{Key: key, Holder: job.ID(holder)})
	}
	if most > 0 {
		all = all[:min(len(all), most)]
	}
	counts := make([]*redis.IntCmd, len(all))
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range all {
			counts[i] = p.ZCard(ctx, s.keys.waitsForKey(shard, all[i].Key))
		}
		return nil
	})
	for i := range all {
		all[i].Waiting = counts[i].Val()
	}
	return all, err
}
