package api_test

import (
	"net/http"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// TestKeyReused: a key that comes with another request is refused, unless the one before was.
func TestKeyReused(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	job := func(expr string) map[string]any {
		return map[string]any{"type": "map", "args": map[string]any{"expr": expr}}
	}
	graph := map[string]any{"alias": "g", "graph": map[string]any{"weir": 1, "nodes": map[string]any{"m": map[string]any{"type": "map", "args": map[string]any{"expr": "it"}}}, "inputs": map[string]any{"in": "m.in"}}}
	other := map[string]any{"alias": "h", "graph": graph["graph"]}
	for path, bodies := range map[string][2]any{
		"/v1/jobs":                        {job("it"), job("it * 2")},
		"/v1/graphs":                      {graph, other},
		"/v1/jobs/g/ports/in/in/messages": {map[string]any{"messages": []int{1}}, map[string]any{"messages": []int{2}}},
	} {
		if path != "/v1/graphs" {
			s.ask("POST", "/v1/graphs", graph, "Idempotency-Key", "k")
		}
		if a := s.ask("POST", path, bodies[0], "Idempotency-Key", "k"); a.status >= 300 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		s.ask("POST", path, bodies[1], "Idempotency-Key", "k").refuses(http.StatusUnprocessableEntity, "key_reused", "a key of its own")
		if a := s.ask("POST", path, bodies[0], "Idempotency-Key", "k"); a.status >= 300 {
			t.Fatalf("%s again: %d %s", path, a.status, a.body)
		}
	}
	s.ask("POST", "/v1/jobs", map[string]any{"type": "mapp"}, "Idempotency-Key", "new").is(http.StatusUnprocessableEntity, nil)
	s.ask("POST", "/v1/jobs", job("it"), "Idempotency-Key", "new").is(http.StatusCreated, nil)
}

// TestRefusals: what is not to be accepted is refused as a problem that says why.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/jobs", map[string]any{"type": "map", "args": map[string]any{"expr": "it"}, "alias": "m"}).is(http.StatusCreated, nil)
	const messages = "/v1/jobs/m/ports/in/in/messages"
	for _, path := range []string{"/v1/jobs", "/v1/graphs", "/v1/dead/requeue"} {
		s.ask("POST", path, `{}`, "Content-Type", "application/x-ndjson").refuses(http.StatusUnsupportedMediaType, "malformed", "application/json")
	}
	s.ask("PUT", "/v1/jobs/m/priority", `{"priority":1}`, "Content-Type", "text/plain").refuses(http.StatusUnsupportedMediaType, "malformed", "text/plain")
	s.ask("POST", "/v1/jobs", `{}`, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site").refuses(http.StatusForbidden, "forbidden", "https://evil.example")
	s.ask("POST", messages, `{"messages": [1, 1e400]}`).refuses(http.StatusBadRequest, "malformed", "1e400")
	s.ask("POST", messages, `{"messages": [1, 1e-400]}`).refuses(http.StatusBadRequest, "malformed", "would be read as 0")
	s.ask("POST", messages, "1\n-1e999\n", "Content-Type", "application/x-ndjson").refuses(http.StatusBadRequest, "malformed", "line 2")
	s.ask("POST", messages, `{"messages": [{"a": {"b": 1, "b": 2}}]}`).refuses(http.StatusBadRequest, "malformed", `key "b" twice`)
	s.ask("POST", "/v1/jobs", `{"type": "map", "type": "emit"}`).refuses(http.StatusBadRequest, "malformed", `key "type" twice`)
	s.ask("PUT", "/v1/jobs/m/priority", `{"priority": 1001}`).refuses(http.StatusUnprocessableEntity, "usage", "body.priority: 1001: use 0 (last) to 1000")
	for body, says := range map[string]string{
		`"at": "tomorrow"`:        `"tomorrow" is not a moment: use RFC 3339`,
		`"in": 10`:                `in is a number: use a duration in quotes, like "30s"`,
		`"unique": {"for": 3600}`: `unique.for is a number: use a duration in quotes`,
	} {
		s.ask("POST", "/v1/jobs", `{"type": "map", `+body+`}`).refuses(http.StatusUnprocessableEntity, "usage", says)
	}
	s.ask("GET", "/v1/jobs?since=yesterday", nil).refuses(http.StatusUnprocessableEntity, "usage", "query.since: it is not a moment: use RFC 3339")

	out := "/v1/jobs/m/ports/out/out/messages"
	s.ask("POST", out, `{"messages": [1, 12345678901234567890123, 5e-324, {"a": {"b": 1}, "b": [{}]}]}`).is(http.StatusOK, nil)
	var read api.Messages
	s.ask("GET", out, nil).is(http.StatusOK, &read)
	if len(read.Messages) != 4 || string(read.Messages[1].Data) != "12345678901234567890123" {
		t.Errorf("messages %+v", read.Messages)
	}
	s.ask("DELETE", out+"?from=0&n=2", nil).is(http.StatusNoContent, nil)
	s.ask("DELETE", out+"?from=0&n=2", nil).refuses(http.StatusConflict, "moved", "no longer number 0")
}

// TestDoubtfulQueries: a parameter that is given twice, empty or out of its bounds is refused, whatever the job is.
func TestDoubtfulQueries(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/jobs", map[string]any{"type": "map", "args": map[string]any{"expr": "it"}, "alias": "m"}).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/m/ports/in/in/close", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/jobs/m/wait?timeout=20s", nil).is(http.StatusOK, nil)
	for path, says := range map[string]string{
		"/v1/jobs?limit=1&limit=2":                  "query.limit is given 2 times: give it once",
		"/v1/jobs?limit=":                           "query.limit is empty: give it a value",
		"/v1/jobs/m/wait?for=settled&for=completed": "query.for is given 2 times",
		"/v1/jobs/m/wait?timeout=1h":                "query.timeout 1h: at most 5m",
		"/v1/jobs/m/wait?timeout=1h&for=terminated": "query.timeout 1h: at most 5m",
	} {
		s.ask("GET", path, nil).refuses(http.StatusUnprocessableEntity, "usage", says)
	}
	for _, path := range []string{"/v1/jobs?type=", "/v1/jobs?label=a&label=b", "/v1/jobs/m/wait?timeout=5m"} {
		s.ask("GET", path, nil).is(http.StatusOK, nil)
	}
}
