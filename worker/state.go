package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// State is a job's durable memory: JSON values by key. A run sees its own changes at
// once, everybody else sees them when the run commits. Only what changed is written.
type State struct {
	run     *Run
	known   map[string]json.RawMessage // as in the store
	whole   bool                       // known is all there is
	changed map[string]json.RawMessage // nil value: unset
	older   map[string]json.RawMessage // what else is to be stored with the next change, as an older version wrote it
	needs   *job.Needs                 // what the job needs from then on; nil: as before
}

// Get decodes the value of a key into v. ok is false if there is none.
func (s *State) Get(key string, v any) (ok bool, err error) {
	vals, err := s.GetMany([]string{key})
	if err != nil {
		return false, err
	}
	raw, ok := vals[key]
	if !ok {
		return false, nil
	}
	if err := port.Decode(raw, v); err != nil {
		return false, fmt.Errorf("state %q: %w", key, err)
	}
	return true, nil
}

// GetMany returns the values of those keys that have one, in one round trip at most.
func (s *State) GetMany(keys []string) (map[string]json.RawMessage, error) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	out := make(map[string]json.RawMessage, len(keys))
	var ask []string
	for _, k := range keys {
		if raw, ok := s.changed[k]; ok {
			if raw != nil {
				out[k] = raw
			}
		} else if raw, ok := s.known[k]; ok {
			out[k] = raw
		} else if !s.whole {
			ask = append(ask, k)
		}
	}
	if len(ask) == 0 {
		return out, nil
	}
	// Only the run that owns the job changes its state, so what is read now is what
	// was there at begin.
	got, err := s.read(ask)
	if err != nil {
		return nil, err
	}
	for k, raw := range got {
		out[k] = raw
	}
	return out, nil
}

// All returns the whole state. With many keys it costs a round trip.
func (s *State) All() (map[string]json.RawMessage, error) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	out := map[string]json.RawMessage{}
	known := s.known
	if !s.whole {
		var err error
		if known, err = s.read(nil); err != nil {
			return nil, err
		}
	}
	for k, raw := range known {
		out[k] = raw
	}
	for k, raw := range s.changed {
		if raw == nil {
			delete(out, k)
		} else {
			out[k] = raw
		}
	}
	return out, nil
}

// read asks the store for some keys, or for all of them.
func (s *State) read(keys []string) (got map[string]json.RawMessage, err error) {
	err = s.run.ask(func(ctx context.Context) error {
		got, err = s.run.store.State(ctx, s.run.info.ID, keys...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading state: %w", err)
	}
	return got, nil
}

// Set stores v, encoded as JSON, under key, which must be valid UTF-8. An error for what cannot be
// stored so wraps port.ErrEncoding.
func (s *State) Set(key string, v any) error {
	if err := job.CheckStateKey(key); err != nil {
		return err
	}
	raw, err := port.Encode(v)
	if err != nil {
		return fmt.Errorf("state %q: %w", key, err)
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if err := s.run.grow(len(key) + len(raw)); err != nil {
		return fmt.Errorf("state %q: %w", key, err)
	}
	s.change(key, raw)
	return nil
}

// Unset removes keys when the run commits. Those that are not there are no error.
func (s *State) Unset(keys ...string) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	for _, k := range keys {
		s.change(k, nil)
	}
}

func (s *State) change(key string, raw json.RawMessage) {
	if s.changed == nil {
		s.changed = map[string]json.RawMessage{}
	}
	s.changed[key] = raw
}

// changes returns what changed since the last commit and counts it as known. The run's
// lock is held.
func (s *State) changes() (set map[string]json.RawMessage, unset []string) {
	if len(s.changed) == 0 {
		return nil, nil
	}
	set = make(map[string]json.RawMessage, len(s.changed))
	for k, raw := range s.changed {
		if raw == nil {
			unset = append(unset, k)
			delete(s.known, k)
			continue
		}
		set[k] = raw
		if s.whole {
			if s.known == nil {
				s.known = map[string]json.RawMessage{}
			}
			s.known[k] = raw
		}
	}
	s.changed = nil
	return set, unset
}
