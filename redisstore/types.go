package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// knownTypes are the registered types as they were read, sorted, and what Redis said of them just before. Nobody changes them.
type knownTypes struct {
	state typesState
	read  time.Time
	types []job.TypeInfo
}

// typesState tells whether registered types changed. The version is a random text that each registration replaces, so that it
// cannot come back with other types, whatever Redis lost. To forget a type changes the number of types alone, as that needs no
// memory.
type typesState struct {
	version string // empty: no registration has written one
	number  int64
}

// typesKept is for how long types are believed whose state stays the same: what was written by other means than Register, such as
// a version of Weir that writes no state, is seen then.
const typesKept = time.Minute

// typesAtOnce is how many types one script registers.
const typesAtOnce = 500

// Types implements store.Types. What the types refer to, such as their ports, is shared with other callers: it must not be changed.
func (s *Store) Types(ctx context.Context) ([]job.TypeInfo, error) {
	now, err := s.typesState(ctx)
	if err != nil {
		return nil, err
	}
	known := s.types.Load()
	if known == nil || known.state != now || now.version == "" || time.Since(known.read) >= typesKept {
		if known, err = s.readTypes(ctx, now); err != nil {
			return nil, err
		}
		s.types.Store(known)
	}
	return slices.Clone(known.types), nil
}

func (s *Store) typesState(ctx context.Context) (typesState, error) {
	var version *redis.StringCmd
	var number *redis.IntCmd
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		version, number = p.Get(ctx, s.keys.typesVersion()), p.HLen(ctx, s.keys.types())
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return typesState{}, s.explain(err)
	}
	return typesState{version.Val(), number.Val()}, s.explain(number.Err())
}

// readTypes reads all types. The state was read before: if types change in between, the next look finds another one.
func (s *Store) readTypes(ctx context.Context, state typesState) (*knownTypes, error) {
	known := &knownTypes{state: state, read: time.Now()}
	all, err := s.rdb.HVals(ctx, s.keys.types()).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	out := make([]job.TypeInfo, len(all))
	for i, raw := range all {
		if err := json.Unmarshal([]byte(raw), &out[i]); err != nil {
			return nil, fmt.Errorf("reading the registered types: %w", err)
		}
	}
	sort.Slice(out, func(a, b int) bool {
		return out[a].Queue < out[b].Queue || out[a].Queue == out[b].Queue && out[a].Type < out[b].Type
	})
	known.types = out
	return known, nil
}

// writeTypes registers types: names and texts, in turn.
func (s *Store) writeTypes(ctx context.Context, fields []any) error {
	for some := range slices.Chunk(fields, 2*typesAtOnce) {
		if _, err := s.call(ctx, scriptTypes, s.keys.hub(), append([]any{rand.Text(), len(some) / 2}, some...)); err != nil {
			return err
		}
	}
	return nil
}
