package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/weirworks/weir/job"
)

// stateOperations are those on the state of a job.
func (s *Server) stateOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/state", id: "show-state", group: groupState, role: read, summary: "Show the state of a job, or some keys of it",
	}, func(ctx context.Context, s *session, in *struct {
		JobPath
		Key []string `query:"key" doc:"only these keys, with commas between them"`
	},
	) (*reply[map[string]json.RawMessage], error) {
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		return answer(h.State(ctx, in.Key...))
	})
	add(s, operation{
		method: http.MethodPatch, path: "/v1/jobs/{job}/state", id: "change-state", group: groupState, role: operate, status: http.StatusNoContent, summary: "Set and remove keys of a job's state",
		about: "The body is an object: each key gets its value, and one with null is removed. A run in progress may not see them: lock the job first if that matters.",
	}, changeState)
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/state/{key}", id: "show-key", group: groupState, role: read, summary: "Show one key of a job's state",
	}, func(ctx context.Context, s *session, in *KeyPath) (*reply[json.RawMessage], error) {
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		all, err := h.State(ctx, in.Key)
		if _, has := all[in.Key]; err == nil && !has {
			err = problem(KindOf(job.ErrNotFound), "the state of job %s has no %q", h.ID(), in.Key)
		}
		return answer(all[in.Key], err)
	})
	add(s, operation{
		method: http.MethodPut, path: "/v1/jobs/{job}/state/{key}", id: "set-key", group: groupState, role: operate, status: http.StatusNoContent, summary: "Set one key of a job's state",
		about: "The body is the value, any JSON.",
	}, func(ctx context.Context, s *session, in *struct {
		KeyPath
		Body json.RawMessage
	},
	) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = h.SetState(s.acting(ctx), map[string]any{in.Key: in.Body})
		}
		return done(err)
	})
	add(s, operation{
		method: http.MethodDelete, path: "/v1/jobs/{job}/state/{key}", id: "unset-key", group: groupState, role: operate, status: http.StatusNoContent, summary: "Remove one key of a job's state",
	}, func(ctx context.Context, s *session, in *KeyPath) (*nothing, error) {
		h, err := s.find(ctx, in.Job)
		if err == nil {
			err = h.UnsetState(s.acting(ctx), in.Key)
		}
		return done(err)
	})
}

// KeyPath is the input of operations on one key of a state.
type KeyPath struct {
	JobPath
	Key string `path:"key"`
}

func changeState(ctx context.Context, s *session, in *struct {
	JobPath
	Body map[string]json.RawMessage
},
) (*nothing, error) {
	set, unset := map[string]json.RawMessage{}, []string{}
	for key, value := range in.Body {
		if bytes.Equal(value, []byte("null")) {
			unset = append(unset, key)
			continue
		}
		set[key] = value
		if err := job.CheckStateKey(key); err != nil {
			return nil, err
		}
		if err := job.CheckSize("state "+key, len(key)+len(value)); err != nil {
			return nil, err
		}
	}
	if len(in.Body) == 0 {
		return nil, wrong("the body has no keys: there is nothing to change")
	}
	slices.Sort(unset)
	h, err := s.find(ctx, in.Job)
	if err == nil {
		err = s.store.SetState(s.acting(ctx), h.ID(), set, unset)
	}
	return done(err)
}
