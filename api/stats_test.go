package api_test

import (
	"net/http"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// A message is traced back to who sent what it was made of; the counters are those of the namespace.
func TestTraceAndStats(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	var stats api.Stats
	if s.ask("GET", "/v1/stats", nil).is(http.StatusOK, &stats); stats.Roots != 0 || len(stats.Engines) != 1 || stats.Shards != 2 {
		t.Errorf("stats %+v", stats)
	}
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it * 2"},"alias":"twice"}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/twice/ports/in/in/messages", `{"messages":[4,5]}`).is(http.StatusOK, nil)
	s.ask("POST", "/v1/jobs/twice/ports/in/in/close", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/jobs/twice/wait?timeout=20s", nil).is(http.StatusOK, nil)
	const path = "/v1/jobs/twice/ports/out/out/trace"
	for _, query := range []string{"", "?message=1"} {
		var lines []api.LogLine
		s.ask("GET", path+query, nil).is(http.StatusOK, &lines)
		if len(lines) != 2 || len(lines[0].Run.Read) != 1 || lines[1].Run.By != "local" {
			t.Errorf("%s: %+v", query, lines)
		}
	}
	s.ask("GET", path+"?message=2", nil).refuses(http.StatusNotFound, "not_found", "has had 2 messages")
	s.ask("GET", path+"?message=first", nil).refuses(http.StatusUnprocessableEntity, "usage", "the first is 0")
	s.ask("GET", "/v1/jobs/twice/ports/out/nowhere/trace", nil).refuses(http.StatusUnprocessableEntity, "usage", "no such port")
	if s.ask("GET", "/v1/stats", nil).is(http.StatusOK, &stats); stats.Roots != 1 || stats.Retained+stats.Kept != 1 || len(stats.Queues) == 0 {
		t.Errorf("stats %+v", stats)
	}
}
