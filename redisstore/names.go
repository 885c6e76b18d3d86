package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// Claim implements job.Names.
func (s *Store) Claim(ctx context.Context, alias string, id job.ID) (job.ID, error) {
	return s.alias(ctx, "add", alias, id)
}

// Unclaim implements job.Names.
func (s *Store) Unclaim(ctx context.Context, alias string, id job.ID) error {
	holder, err := s.alias(ctx, "remove", alias, id)
	if err == nil && holder != id {
		return fmt.Errorf("%w: job %s has no alias %q", job.ErrNotFound, id, alias)
	}
	return err
}

// alias binds or removes an alias and returns whose it is, or was.
func (s *Store) alias(ctx context.Context, what, alias string, id job.ID) (job.ID, error) {
	reply, err := s.run(ctx, scriptAlias, s.keys.hub(), what, alias, string(id), rand.Text())
	if err != nil {
		return "", err
	}
	var d decoder
	return job.ID(d.str(reply)), d.err
}

// Resolve implements job.Names.
func (s *Store) Resolve(ctx context.Context, alias string) (job.ID, error) {
	id, err := s.rdb.HGet(ctx, s.keys.aliases(), alias).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("%w: no job has the alias %q", job.ErrNotFound, alias)
	}
	if err != nil {
		return "", s.explain(err)
	}
	return job.ParseID(id)
}

// Aliases implements job.Names.
func (s *Store) Aliases(ctx context.Context, id job.ID) ([]string, error) {
	names, err := s.rdb.SMembers(ctx, s.keys.aliasesOf(id)).Result()
	sort.Strings(names)
	return names, s.explain(err)
}

// Prefixed implements job.Index.
func (s *Store) Prefixed(ctx context.Context, prefix string, limit int) ([]job.ID, error) {
	ids, err := s.indexed(ctx, &redis.ZRangeBy{Min: "[" + prefix, Max: "[" + prefix + "\xff", Count: int64(limit)})
	if err != nil {
		return nil, err
	}
	return ids[:min(limit, len(ids))], nil
}

// Roots implements job.Index.
func (s *Store) Roots(ctx context.Context, after job.ID, limit int) ([]*job.Info, error) {
	from := "-"
	if after != "" {
		from = "(" + string(after)
	}
	ids, err := s.indexed(ctx, &redis.ZRangeBy{Min: from, Max: "+", Count: int64(limit)})
	if err != nil {
		return nil, err
	}
	return s.infos(ctx, ids[:min(limit, len(ids))])
}

// Newest implements job.Index.
func (s *Store) Newest(ctx context.Context, limit int) ([]*job.Info, error) {
	ids, err := s.ofShards(ctx, func(p redis.Pipeliner, index string) *redis.StringSliceCmd {
		return p.ZRevRangeByLex(ctx, index, &redis.ZRangeBy{Min: "-", Max: "+", Count: int64(limit)})
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(ids)
	return s.infos(ctx, ids[:min(limit, len(ids))])
}

// infos reads jobs; one that is gone has no status.
func (s *Store) infos(ctx context.Context, ids []job.ID) ([]*job.Info, error) {
	infos := make([]*job.Info, 0, len(ids))
	for _, id := range ids {
		i, err := s.Info(ctx, id)
		if errors.Is(err, job.ErrNotFound) {
			i = &job.Info{ID: id} // deleted meanwhile: callers skip it, and know where they are
		} else if err != nil {
			return nil, err
		}
		infos = append(infos, i)
	}
	return infos, nil
}

// indexed returns jobs without parent, of all shards, in order.
func (s *Store) indexed(ctx context.Context, by *redis.ZRangeBy) ([]job.ID, error) {
	return s.ofShards(ctx, func(p redis.Pipeliner, index string) *redis.StringSliceCmd { return p.ZRangeByLex(ctx, index, by) })
}

// ofShards asks for jobs without parent in all shards and returns them in order.
func (s *Store) ofShards(ctx context.Context, ask func(p redis.Pipeliner, index string) *redis.StringSliceCmd) ([]job.ID, error) {
	parts := make([]*redis.StringSliceCmd, s.keys.shards)
	if _, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range parts {
			parts[i] = ask(p, s.keys.index(i))
		}
		return nil
	}); err != nil {
		return nil, s.explain(err)
	}
	var ids []job.ID
	for _, part := range parts {
		for _, id := range part.Val() {
			ids = append(ids, job.ID(id))
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Register implements job.Types.
func (s *Store) Register(ctx context.Context, types []job.TypeInfo) error {
	now, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return s.explain(err)
	}
	var fields []any
	for _, t := range types {
		t.Registered = now.UTC()
		raw, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("registering type %q: %w", t.Type, err)
		}
		fields = append(fields, t.Queue+" "+t.Type, raw)
	}
	if len(fields) == 0 {
		return nil
	}
	return s.explain(s.rdb.HSet(ctx, s.keys.types(), fields...).Err())
}

// Types implements job.Types.
func (s *Store) Types(ctx context.Context) ([]job.TypeInfo, error) {
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
	return out, nil
}

// Type implements job.Types.
func (s *Store) Type(ctx context.Context, queue, name string) (*job.TypeInfo, error) {
	raw, err := s.rdb.HGet(ctx, s.keys.types(), queue+" "+name).Result()
	if errors.Is(err, redis.Nil) {
		return nil, s.unknownType(ctx, queue, name)
	}
	if err != nil {
		return nil, s.explain(err)
	}
	t := &job.TypeInfo{}
	if err := json.Unmarshal([]byte(raw), t); err != nil {
		return nil, fmt.Errorf("reading the registered type %q: %w", name, err)
	}
	return t, nil
}

// Engines implements job.Types.
func (s *Store) Engines(ctx context.Context, queue string) (int, error) {
	if err := ctx.Err(); err != nil { // asynq does not look at it
		return 0, err
	}
	n, err := s.broker.Servers(queue)
	return n, s.explain(err)
}

// unknownType says which types there are instead.
func (s *Store) unknownType(ctx context.Context, queue, name string) error {
	types, err := s.Types(ctx)
	if err != nil {
		return err
	}
	var here, elsewhere []string
	for _, t := range types {
		if t.Queue == queue {
			here = append(here, t.Type)
		}
		if t.Type == name {
			elsewhere = append(elsewhere, t.Queue)
		}
	}
	switch {
	case len(elsewhere) > 0:
		return fmt.Errorf("%w: queue %q has no worker of type %q, but queue %s has", job.ErrUnknownType, queue, name, strings.Join(elsewhere, ", "))
	case len(here) > 0:
		return fmt.Errorf("%w: queue %q has no worker of type %q; it has %s", job.ErrUnknownType, queue, name, strings.Join(here, ", "))
	}
	return fmt.Errorf("%w: no engine has registered workers for queue %q; start one", job.ErrUnknownType, queue)
}
