package api_test

import (
	"net/http"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// TestTraceparent: what a request creates and writes belongs to the trace that it names.
func TestTraceparent(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var created api.Job
	body := map[string]any{"type": "map", "args": map[string]any{"expr": "it"}, "in": "1h"}
	s.ask("POST", "/v1/jobs", body, "Traceparent", parent, "Tracestate", `vendor="1"`).is(http.StatusCreated, &created)
	messages := "/v1/jobs/" + string(created.ID) + "/ports/out/out/messages"
	s.ask("POST", messages, map[string]any{"messages": []int{1}, "context": map[string]any{"tenant": "a"}}, "Traceparent", parent, "Tracestate", `vendor="1"`).is(http.StatusOK, nil)
	s.ask("POST", messages, map[string]any{"messages": []int{2}}, "Traceparent", "00-no-trace-01").is(http.StatusOK, nil)

	info, err := s.store.Info(t.Context(), created.ID)
	if err != nil || info.Trace != (job.Trace{Parent: parent, State: `vendor="1"`}) {
		t.Errorf("the job has trace %+v, error %v", info.Trace, err)
	}
	var shown api.Job
	if s.ask("GET", "/v1/jobs/"+string(created.ID), nil).is(http.StatusOK, &shown); shown.Trace != parent[3:35] {
		t.Errorf("the job is shown with trace %q", shown.Trace)
	}
	var got api.Messages
	s.ask("GET", messages, nil).is(http.StatusOK, &got)
	if len(got.Messages) != 2 {
		t.Fatalf("messages %+v", got)
	}
	if c := got.Messages[0].Context; c[port.ContextTrace] != parent || c[port.ContextTraceState] != `vendor="1"` || c["tenant"] != "a" {
		t.Errorf("context %v", c)
	}
	if c := got.Messages[1].Context; c[port.ContextTrace] != nil {
		t.Errorf("context %v of a request whose header is wrong", c)
	}
}
