package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/redistest"
)

// TestWhyAlias: why names jobs by the alias of their root, which can be asked for, and not by the name of the graph.
func TestWhyAlias(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/graphs", map[string]any{"alias": "demo", "graph": map[string]any{
		"weir": 1, "name": "shop", "nodes": map[string]any{"orders": map[string]any{"type": "map", "args": map[string]any{"expr": "it"}}},
		"inputs": map[string]any{"in": "orders.in"},
	}}).is(http.StatusCreated, nil)
	for _, path := range []string{"/v1/jobs/demo%2Forders/why", "/v1/jobs/@latest%2Forders/why"} {
		var got []explain.Because
		if s.ask("GET", path, nil).is(http.StatusOK, &got); len(got) == 0 || !strings.Contains(got[0].Text, "job demo/orders ") {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
