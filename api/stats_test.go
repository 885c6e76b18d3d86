package api_test

import (
	"net/http"
	"testing"
	"time"

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
		var o api.Origin
		s.ask("GET", path+query, nil).is(http.StatusOK, &o)
		if lines := o.Entries; len(lines) != 2 || len(lines[0].Run.Read) != 1 || lines[1].Run.By != "local" || len(o.Missing) != 0 || o.Trimmed != nil || o.More {
			t.Errorf("%s: %+v", query, o)
		}
	}
	s.ask("GET", path+"?message=2", nil).refuses(http.StatusNotFound, "not_found", "has had 2 messages")
	s.ask("GET", path+"?message=first", nil).refuses(http.StatusUnprocessableEntity, "usage", "the first is 0")
	s.ask("GET", "/v1/jobs/twice/ports/out/outt/trace", nil).refuses(http.StatusUnprocessableEntity, "usage", `has no out port "outt": did you mean "out"?`)
	if s.ask("GET", "/v1/stats", nil).is(http.StatusOK, &stats); stats.Roots != 1 || stats.Retained+stats.Kept != 1 || len(stats.Queues) == 0 {
		t.Errorf("stats %+v", stats)
	}
}

// What runs did is counted for a quarter of an hour, also when the engine that ran them has stopped.
func TestActivity(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it * 2"},"alias":"twice"}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/twice/ports/in/in/messages", `{"messages":[1,2,3]}`).is(http.StatusOK, nil)
	s.ask("POST", "/v1/jobs/twice/ports/in/in/messages", `{"messages":["no number"]}`).is(http.StatusOK, nil)
	var stats api.Stats
	for end := time.Now().Add(20 * time.Second); stats.Recent.Failed == 0 || stats.Recent.Read == 0; time.Sleep(100 * time.Millisecond) {
		if s.ask("GET", "/v1/stats", nil).is(http.StatusOK, &stats); time.Now().After(end) {
			t.Fatalf("no activity after 20 s: %+v", stats.Activity)
		}
	}
	var sum api.Activity
	for _, a := range stats.Activity {
		sum.Runs, sum.Failed, sum.Read, sum.Written = sum.Runs+a.Runs, sum.Failed+a.Failed, sum.Read+a.Read, sum.Written+a.Written
		if a.Took.P95 <= 0 || a.Took.P95 > 20 || a.Waited.P95 > 20 {
			t.Errorf("durations %+v", a)
		}
	}
	if sum.Read != 3 || sum.Written < 3 || sum.Failed != 1 || sum.Runs < 1 || sum.Runs > 5 {
		t.Errorf("activity %+v", sum)
	}
	if since := stats.At.Sub(stats.Recent.Since); since < 10*time.Second || since > 20*time.Second {
		t.Errorf("recent is of %s", since)
	}
}
