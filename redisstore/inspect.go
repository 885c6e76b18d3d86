package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/job"
)

// infoBatch is how many jobs one script reads.
const infoBatch = 200

// Info implements job.Inspector.
func (s *Store) Info(ctx context.Context, id job.ID) (*job.Info, error) {
	infos, err := s.infos(ctx, []job.ID{id})
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, refusal("gone", id)
	}
	return infos[0], nil
}

// Tree implements job.Inspector.
func (s *Store) Tree(ctx context.Context, id job.ID) ([]*job.Info, error) {
	root, err := s.Info(ctx, id.Tree())
	if err != nil {
		return nil, err
	}
	tree := []*job.Info{root}
	for from := 1; from <= root.Size; from += infoBatch {
		var ids []job.ID
		for n := from; n <= min(root.Size, from+infoBatch-1); n++ {
			ids = append(ids, id.Nth(n))
		}
		part, err := s.infos(ctx, ids)
		if err != nil {
			return nil, err
		}
		tree = append(tree, part...)
	}
	return tree, nil
}

// infos reads jobs of one tree; those that do not exist are left out.
func (s *Store) infos(ctx context.Context, ids []job.ID) ([]*job.Info, error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = string(id)
	}
	reply, err := s.run(ctx, scriptInfo, s.keys.dueOf(ids[0]), args...)
	if err != nil {
		return nil, err
	}
	var d decoder
	var out []*job.Info
	for i, v := range d.list(reply) {
		l := d.list(v)
		if info := d.info(ids[i], d.at(l, 0), d.at(l, 1)); info != nil {
			out = append(out, info)
		}
	}
	return out, d.err
}

// State implements job.Inspector and job.RunReader.
func (s *Store) State(ctx context.Context, id job.ID, keys ...string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	key := s.keys.job(id, stateSuffix)
	if len(keys) == 0 {
		all, err := s.rdb.HGetAll(ctx, key).Result()
		for k, v := range all {
			out[k] = json.RawMessage(v)
		}
		return out, s.explain(err)
	}
	for part := range slices.Chunk(keys, 5000) {
		vals, err := s.rdb.HMGet(ctx, key, part...).Result()
		if err != nil {
			return nil, s.explain(err)
		}
		for i, v := range vals {
			if text, ok := v.(string); ok {
				out[part[i]] = json.RawMessage(text)
			}
		}
	}
	return out, nil
}

// Children implements job.RunReader.
func (s *Store) Children(ctx context.Context, id job.ID) (map[string]job.ID, error) {
	all, err := s.rdb.HGetAll(ctx, s.keys.job(id, childrenSuffix)).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	out := make(map[string]job.ID, len(all))
	for name, child := range all {
		out[name] = job.ID(child)
	}
	return out, nil
}

// Reserve implements job.RunReader. A repeat after a lost reply leaves a gap in the
// tree's numbers, which does no harm.
func (s *Store) Reserve(ctx context.Context, tree job.ID, n int) (int, error) {
	last, err := s.rdb.HIncrBy(ctx, s.keys.job(tree.Tree(), ""), "seq", int64(n)).Result()
	return int(last) - n + 1, s.explain(err)
}

// Failures implements job.Inspector.
func (s *Store) Failures(ctx context.Context, id job.ID) ([]job.Failure, error) {
	raws, err := s.rdb.LRange(ctx, s.keys.job(id, errorsSuffix), 0, -1).Result()
	if err != nil {
		return nil, s.explain(err)
	}
	out := make([]job.Failure, len(raws))
	for i, raw := range raws {
		if err := json.Unmarshal([]byte(raw), &out[i]); err != nil {
			return nil, fmt.Errorf("decoding an error of job %s: %w", id, err)
		}
	}
	return out, nil
}

// Logs implements job.Inspector. The log of a shard is one capped stream.
func (s *Store) Logs(ctx context.Context, id job.ID, limit int) ([]job.LogEntry, error) {
	entries, err := s.rdb.XRevRange(ctx, s.keys.log(id), "+", "-").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, s.explain(err)
	}
	var out []job.LogEntry
	for _, e := range entries {
		if e.Values["job"] != string(id) || len(out) == limit {
			continue
		}
		text, _ := e.Values["entry"].(string)
		ms, _, _ := strings.Cut(e.ID, "-")
		at, _ := strconv.ParseInt(ms, 10, 64) // the ID of a stream entry is <ms>-<n>
		out = append(out, job.LogEntry{At: time.UnixMilli(at).UTC(), Job: id, Entry: json.RawMessage(text)})
	}
	slices.Reverse(out)
	return out, nil
}
