package api_test

import (
	"net/http"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// A job and a graph whose requests are repeated with a key are created once.
func TestPoint11KeysOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	graph := map[string]any{"graph": map[string]any{"weir": 1, "name": "g", "nodes": map[string]any{"m": map[string]any{"type": "map", "args": map[string]any{"expr": "it"}}}, "inputs": map[string]any{"n": "m.in"}}}
	for path, body := range map[string]any{"/v1/jobs": map[string]any{"type": "map", "args": map[string]any{"expr": "it"}, "alias": "one"}, "/v1/graphs": graph} {
		var first, again api.Job
		s.ask("POST", path, body, "Idempotency-Key", "k").is(http.StatusCreated, &first)
		if a := s.ask("POST", path, body, "Idempotency-Key", "k"); a.status >= 300 {
			t.Fatalf("%s again: %d %s", path, a.status, a.body)
		} else if a.is(a.status, &again); again.ID != first.ID {
			t.Errorf("%s: two jobs of one key", path)
		}
	}
}
