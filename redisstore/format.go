package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// Versions of the key layout. A store refuses a namespace of any other one.
const (
	// format is that of new namespaces: small trees may be one record.
	format = "3"
	// formatHashes is one in which each job has a hash, as programs of before are at work that know nothing else: see Migrate.
	formatHashes = "2"
	// formatBefore is one that a store turns into formatHashes when it is opened: its programs knew no ready sets.
	formatBefore = "1"
)

// checkNamespace stores the layout of a new namespace and compares that of an old one.
func (s *Store) checkNamespace(ctx context.Context, shards int) error {
	key := s.keys.meta()
	meta, err := s.rdb.HGetAll(ctx, key).Result()
	if err == nil && (meta["format"] == "" || meta["shards"] == "") { // else a user who may only read could not open it
		if _, err = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.HSetNX(ctx, key, "format", format)
			p.HSetNX(ctx, key, "shards", cmp.Or(shards, DefaultShards))
			return nil
		}); err == nil {
			meta, err = s.rdb.HGetAll(ctx, key).Result()
		}
	}
	if err != nil {
		return s.explain(err)
	}
	if !slices.Contains([]string{format, formatHashes, formatBefore}, meta["format"]) {
		return fmt.Errorf("%w: namespace %s at %s has layout %q, this program knows layout %s; use a matching version of Weir or another namespace",
			job.ErrConfig, s.keys.namespace, s.where, meta["format"], format)
	}
	have, err := strconv.Atoi(meta["shards"])
	if err != nil || have < 1 {
		return fmt.Errorf("%w: namespace %s at %s says it has %q shards", job.ErrConfig, s.keys.namespace, s.where, meta["shards"])
	}
	if shards != 0 && shards != have {
		return fmt.Errorf("%w: namespace %s at %s has %d shards, not %d; the number cannot change: leave Shards 0 or use another namespace",
			job.ErrConfig, s.keys.namespace, s.where, have, shards)
	}
	s.keys.shards = have
	s.records.Store(meta["format"] == format)
	if meta["format"] == formatBefore {
		return s.upgrade(ctx)
	}
	return nil
}

// upgrade puts all jobs that are ready into their ready sets, and notes that they are there. It may be done twice.
func (s *Store) upgrade(ctx context.Context) error {
	for shard := range s.keys.shards {
		due := s.keys.due(shard)
		for from, n := 0, int64(sweepBatch); n == sweepBatch; from += sweepBatch {
			reply, err := s.run(ctx, scriptFill, due, from, sweepBatch)
			if errors.Is(err, job.ErrConfig) {
				return nil // who may only read leaves that to others
			}
			if err != nil {
				return err
			}
			var d decoder
			l := d.list(reply)
			n = d.int(d.at(l, 0))
			if d.err != nil {
				return d.err
			}
			_ = s.broker.Ring(ctx, d.todo(d.at(l, 1), shard).notifications) // else the sweeper does
		}
	}
	_, err := s.relayout(ctx, formatBefore, formatHashes)
	return err
}

// newLayout says that a namespace has another layout, if it still has that one.
var newLayout = redis.NewScript("return redis.call('HGET', KEYS[1], 'format') == ARGV[1] and redis.call('HSET', KEYS[1], 'format', ARGV[2]) + 1 or 0")

// relayout does so, and tells whether it had that one: another program may have changed it meanwhile.
func (s *Store) relayout(ctx context.Context, from, to string) (changed bool, err error) {
	n, err := newLayout.Run(ctx, s.rdb, []string{s.keys.meta()}, from, to).Int()
	return n == 1, s.explain(err)
}

// enginesLive says why a namespace is not migrated.
type enginesLive struct {
	n         int
	namespace string
}

func (e *enginesLive) Error() string {
	return fmt.Sprintf("engines that live in namespace %s: %d; one of an older version would lose jobs: stop them (one that was killed counts for another 10 s), or force it if all are of this version",
		e.namespace, e.n)
}

func (e *enginesLive) Unwrap() error { return job.ErrServed }

// Migrate gives a namespace that an older version of Weir has made the layout of this one, in which small trees take less memory and
// cost Redis less. Programs of older versions refuse it then; one that has it open already would lose jobs, so Migrate fails with
// job.ErrServed while engines live, unless force says that all of them are of this version. Stores that are open know of it once they
// are opened anew. It tells whether the namespace had another layout.
func (s *Store) Migrate(ctx context.Context, force bool) (changed bool, err error) {
	before, err := s.rdb.HGet(ctx, s.keys.meta(), "format").Result()
	if err != nil || before == format {
		return false, s.explain(err)
	}
	if before != formatHashes { // who has opened it could not write
		return false, fmt.Errorf("%w: namespace %s has layout %q: open it as a user of Redis who may write first", job.ErrConfig, s.keys.namespace, before)
	}
	engines, err := s.Engines(ctx)
	if err != nil {
		return false, err
	}
	if len(engines) > 0 && !force {
		return false, &enginesLive{n: len(engines), namespace: s.keys.namespace}
	}
	changed, err = s.relayout(ctx, formatHashes, format)
	if changed {
		s.records.Store(true)
	}
	return changed, err
}
