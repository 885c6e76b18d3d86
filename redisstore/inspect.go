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

// familyPage is about how many children one command reads.
const familyPage = 1000

// Children implements job.Family. Those that come or go while it reads may be among them or not.
func (s *Store) Children(ctx context.Context, id job.ID) (map[string]job.ID, error) {
	family, all := s.keys.job(id, childrenSuffix), map[string]job.ID{}
	for known := -1; ; known = len(all) {
		pages := 0
		for from := uint64(0); pages == 0 || from > 0; pages++ {
			some, next, err := s.rdb.HScan(ctx, family, from, "", familyPage).Result()
			if err != nil {
				return nil, s.explain(err)
			}
			for i := 0; i+1 < len(some); i += 2 {
				all[some[i]] = job.ID(some[i+1])
			}
			from = next
		}
		if pages == 1 {
			return all, nil
		}
		// Are they all? A cursor means nothing to the next server that has the hash, after a failover or a move of its slot.
		n, err := s.rdb.HLen(ctx, family).Result()
		if err != nil || int(n) <= len(all) || known == len(all) {
			return all, s.explain(err)
		}
	}
}

// Child implements job.Inspector and job.RunReader.
func (s *Store) Child(ctx context.Context, parent job.ID, name string) (job.ID, error) {
	id, err := s.child(ctx, parent, name)
	if err == nil && id == "" {
		err = fmt.Errorf("%w: job %s has no child %q", job.ErrNotFound, parent, name)
	}
	return id, err
}

// child returns the child of that name, or none.
func (s *Store) child(ctx context.Context, parent job.ID, name string) (job.ID, error) {
	id, err := s.rdb.HGet(ctx, s.keys.job(parent, childrenSuffix), name).Result()
	if err != nil && !isNil(err) {
		return "", s.explain(err)
	}
	return job.ID(id), nil
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
