package api_test

import (
	"net/http"
	"testing"

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
		{"", api.Retention{Ended: "7d", Failed: "30d"}},
		{`{"ended":"12h"}`, api.Retention{Ended: "12h0m0s", Failed: "30d"}},
		{`{"failed":"forever"}`, api.Retention{Ended: "12h0m0s", Failed: "forever"}},
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
