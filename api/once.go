package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/weirworks/weir/job"
)

// kindReused is of a key that came with another request.
var kindReused = Kind{"key_reused", http.StatusUnprocessableEntity, 2}

// once acts for a request with a key, unless the key came within the hour with another request in that scope. One that was refused has
// changed nothing: its key may come with a better one.
func (s *session) once(ctx context.Context, scope, key string, request any, act func() error) error {
	if key == "" {
		return act()
	}
	raw, err := json.Marshal(request)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	digest, name := job.ID(hex.EncodeToString(sum[:16])), "request "+scope+" "+key
	known, err := s.store.Once(ctx, name, digest)
	if err != nil {
		return err
	}
	if known != digest {
		return problem(kindReused, "Idempotency-Key %.128q came with another request within the last hour: each request needs a key of its own; nothing was done", key)
	}
	if err = act(); err != nil && problemOf(err).Status < http.StatusInternalServerError {
		_ = s.store.Forget(ctx, name) // it is forgotten within the hour
	}
	return err
}
