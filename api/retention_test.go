package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"

	"github.com/weirworks/weir/api"
)

// TestRetentionOverHTTP: retention is shown and set, a part that is left out stays, and a job says when it is removed.
func TestRetentionOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	for _, step := range []struct {
		body string
		want api.Retention
	}{
		{"", api.Retention{Ended: "7d", Failed: "30d", Log: "forever"}},
		{`{"ended":"12h"}`, api.Retention{Ended: "12h0m0s", Failed: "30d", Log: "forever"}},
		{`{"failed":"forever"}`, api.Retention{Ended: "12h0m0s", Failed: "forever", Log: "forever"}},
		{`{"log":"2d"}`, api.Retention{Ended: "12h0m0s", Failed: "forever", Log: "2d"}},
	} {
		var got api.Retention
		if step.body != "" {
			s.ask("PUT", "/v1/retention", step.body).is(http.StatusOK, &got)
			if got != step.want {
				t.Errorf("%s answers %+v, want %+v", step.body, got, step.want)
			}
		}
		if s.ask("GET", "/v1/retention", nil).is(http.StatusOK, &got); got != step.want {
			t.Errorf("retention is %+v, want %+v", got, step.want)
		}
	}
	s.ask("PUT", "/v1/retention", `{"ended":"soon"}`).refuses(http.StatusUnprocessableEntity, "usage", "is not a retention")
	s.ask("POST", "/v1/jobs", `{"type":"collect","alias":"c"}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/c/ports/in/in/close", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/jobs/c/wait?for=completed&timeout=10s", nil).is(http.StatusOK, nil)
	var tree api.Job
	if s.ask("GET", "/v1/jobs/c/tree", nil).is(http.StatusOK, &tree); tree.ExpiresAt == nil {
		t.Errorf("a tree does not say when it is removed: %+v", tree)
	}
}

// A log that has lost its first entries says so, and so does the stream of events to who comes back too late.
func TestPoint12TrimmedLogOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/jobs", `{"type":"collect","alias":"c"}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/c/ports/in/in/messages", `{"messages":[1]}`).is(http.StatusOK, nil)
	var before, page api.LogPage
	s.ask("GET", "/v1/jobs/c/log?tree=true", nil).is(http.StatusOK, &before)
	if len(before.Trimmed) != 0 || before.Position == "" {
		t.Fatalf("a log of one entry: %+v", before)
	}
	s.ask("PUT", "/v1/retention", `{"log":"1ms"}`).is(http.StatusOK, nil)
	for end := time.Now().Add(30 * time.Second); len(page.Trimmed) == 0 || page.Trimmed[0].Entries < 9; {
		if time.Now().After(end) {
			t.Fatalf("old entries stay: %+v", page.Trimmed)
		}
		s.ask("POST", "/v1/jobs/c/ports/in/in/messages", `{"messages":[1]}`).is(http.StatusOK, nil)
		s.ask("GET", "/v1/jobs/c/log?tree=true&limit=1", nil).is(http.StatusOK, &page)
	}
	if got := page.Trimmed[0]; len(page.Trimmed) != 1 || got.Since.IsZero() || string(got.Tree) == "" {
		t.Errorf("trimmed: %+v", page.Trimmed)
	}
	s.listen("/v1/jobs/c/events?tree=true", before.Position, func(e event) bool {
		if e.kind != "trimmed" || e.id != "" || !strings.HasPrefix(string(e.data), `{"entries":`) {
			t.Errorf("the first event is %s %q %s", e.kind, e.id, e.data)
		}
		return true
	})
}
