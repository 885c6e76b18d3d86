package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirworks/weir/job"
)

// State implements job.Inspector and job.RunReader.
func (s *Store) State(ctx context.Context, id job.ID, keys ...string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	key := s.keys.job(id, stateSuffix)
	if len(keys) == 0 {
		all, err := s.rdb.HGetAll(ctx, key).Result()
		for k, v := range all {
			out[k] = json.RawMessage(v)
		}
		if err != nil {
			return nil, s.explain(err)
		}
		return out, s.secrets.showState(id, out)
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
	return out, s.secrets.showState(id, out)
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
		s.secrets.showFailure(id, &out[i])
	}
	return out, nil
}

// SetState implements job.Control.
func (s *Store) SetState(ctx context.Context, id job.ID, set map[string]json.RawMessage, unset []string) error {
	set, err := s.secrets.hideState(id, set)
	if err != nil {
		return err
	}
	args := []any{string(id), rand.Text(), len(set)}
	for k, v := range set {
		args = append(args, k, []byte(v))
	}
	args = append(args, len(unset))
	for _, k := range unset {
		args = append(args, k)
	}
	return s.act(ctx, scriptState, id, "", args...)
}
