package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/weirworks/weir/job"
)

// State implements store.Inspector and store.RunReader. A large state is read in pieces, anew if it changes meanwhile; after
// some times it is what each key was when it was read.
func (s *Store) State(ctx context.Context, id job.ID, keys ...string) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	key := s.keys.job(id, stateSuffix)
	if len(keys) == 0 {
		all, err := s.allState(ctx, id, key)
		if err != nil {
			return nil, s.explain(err)
		}
		for k, v := range all {
			out[k] = json.RawMessage(v)
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

// allState reads the whole state of a job, one of several pieces until two readings find the same version of the job.
func (s *Store) allState(ctx context.Context, id job.ID, key string) (all map[string]string, err error) {
	version := func() string {
		var v []any
		if err == nil {
			v, err = s.rdb.HMGet(ctx, s.keys.job(id, ""), "version", "touched").Result()
		}
		return fmt.Sprint(v)
	}
	for before, tries := "", 0; tries < pageTries && err == nil; tries++ {
		all = map[string]string{}
		var pages int
		if pages, err = s.scan(ctx, key, all); pages == 1 || err != nil {
			break
		}
		after := version()
		if after == before {
			break
		}
		before = after
	}
	return all, err
}

// scanFields is how many fields of a large hash one command reads at first, then as many as have about pageBytes.
const scanFields = 500

// scan reads a hash into a map with one command after another, and returns how many these were.
func (s *Store) scan(ctx context.Context, key string, all map[string]string) (pages int, err error) {
	count, size := int64(scanFields), 0
	for from := uint64(0); pages == 0 || from > 0; pages++ {
		var some []string
		if some, from, err = s.rdb.HScan(ctx, key, from, "", count).Result(); err != nil {
			return pages, err
		}
		for i := 0; i+1 < len(some); i += 2 {
			all[some[i]] = some[i+1]
			size += len(some[i]) + len(some[i+1])
		}
		count = int64(min(pageItems, max(1, pageBytes*len(all)/max(size, 1))))
	}
	return pages, nil
}

// Children implements store.Family. Those that come or go while it reads may be among them or not.
func (s *Store) Children(ctx context.Context, id job.ID) (map[string]job.ID, error) {
	family, all := s.keys.job(id, childrenSuffix), map[string]string{}
	for known := -1; ; known = len(all) {
		pages, err := s.scan(ctx, family, all)
		if err != nil {
			return nil, s.explain(err)
		}
		if len(all) == 0 {
			found, err := s.recordedChildren(ctx, []job.ID{id}, "*")
			if found[id] == nil {
				return map[string]job.ID{}, err
			}
			return found[id], err
		}
		if pages == 1 {
			return children(all), nil
		}
		// Are they all? A cursor means nothing to the next server that has the hash, after a failover or a move of its slot.
		n, err := s.rdb.HLen(ctx, family).Result()
		if err != nil || int(n) <= len(all) || known == len(all) {
			return children(all), s.explain(err)
		}
	}
}

// Child implements store.Inspector and store.RunReader.
func (s *Store) Child(ctx context.Context, parent job.ID, name string) (job.ID, error) {
	id, err := s.child(ctx, parent, name)
	if err == nil && id == "" {
		err = fmt.Errorf("%w: job %s has no child %q", job.ErrNotFound, parent, name)
	}
	return id, err
}

func children(all map[string]string) map[string]job.ID {
	out := make(map[string]job.ID, len(all))
	for name, id := range all {
		out[name] = job.ID(id)
	}
	return out
}

// child returns the child of that name, or none.
func (s *Store) child(ctx context.Context, parent job.ID, name string) (job.ID, error) {
	id, err := s.rdb.HGet(ctx, s.keys.job(parent, childrenSuffix), name).Result()
	if isNil(err) {
		found, err := s.recordedChildren(ctx, []job.ID{parent}, "*")
		return found[parent][name], err
	}
	return job.ID(id), s.explain(err)
}

// Failures implements store.Inspector.
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

// SetState implements store.Control.
func (s *Store) SetState(ctx context.Context, id job.ID, set map[string]json.RawMessage, unset []string) error {
	set, err := s.secrets.hideState(id, set)
	if err != nil {
		return err
	}
	entry, err := s.byHand(ctx, id, "state", changedKeys(set, unset))
	if err != nil {
		return err
	}
	args := []any{string(id), rand.Text(), entry, len(set)}
	for k, v := range set {
		args = append(args, k, []byte(v))
	}
	args = append(args, len(unset))
	for _, k := range unset {
		args = append(args, k)
	}
	return s.act(ctx, scriptState, id, "", args...)
}
