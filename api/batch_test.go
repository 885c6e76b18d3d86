package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// TestBatch: many jobs are created, and written to, in one request; what is wrong with one concerns no other one.
func TestBatch(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	line := `{"type": "map", "args": {"expr": "it * 2"}, "alias": "`
	body := line + "a\", \"key\": \"ka\"}\n\n" + line + "b\"}\n" + `{"type": "mapp"}` + "\n" + line + "a\", \"key\": \"kc\"}\n"
	var got, again api.CreatedJobs
	s.ask("POST", "/v1/jobs:batch", body, "Content-Type", "application/x-ndjson").is(http.StatusOK, &got)
	if got.Failed != 2 || len(got.Jobs) != 4 || !got.Jobs[0].Created || !got.Jobs[1].Created || got.Jobs[2].Problem.Code != "unknown_type" || got.Jobs[3].Problem.Code != "exists" {
		t.Fatalf("%+v", got)
	}
	s.ask("POST", "/v1/jobs:batch", body, "Content-Type", "application/x-ndjson").is(http.StatusOK, &again)
	if again.Failed != 3 || again.Jobs[0].ID != got.Jobs[0].ID || again.Jobs[0].Created || again.Jobs[1].Problem.Code != "exists" {
		t.Fatalf("again %+v", again)
	}

	writes := map[string]any{"writes": []any{
		map[string]any{"job": "a", "port": "in", "messages": []int{1, 2}, "key": "k"},
		map[string]any{"job": "nobody", "port": "in", "messages": []int{1}},
		map[string]any{"job": "b", "port": "nowhere", "messages": []int{1}},
		map[string]any{"job": "b", "port": "in", "messages": []int{3}, "context": map[string]any{"tenant": "x"}, "key": "k"},
		map[string]any{"job": "b", "port": "in"},
	}}
	for range 2 {
		var sent api.Wrotes
		s.ask("POST", "/v1/messages:batch", writes).is(http.StatusOK, &sent)
		if sent.Failed != 3 || sent.Writes[0].Sent != 2 || sent.Writes[1].Problem.Code != "not_found" || sent.Writes[2].Problem.Code != "usage" || sent.Writes[3].Sent != 1 || sent.Writes[4].Problem == nil {
			t.Fatalf("%+v", sent)
		}
	}
	for name, want := range map[string]string{"a": "2 4", "b": "6"} {
		s.ask("POST", "/v1/jobs/"+name+"/ports/in/in/close", nil).is(http.StatusNoContent, nil)
		s.ask("GET", "/v1/jobs/"+name+"/wait", nil).is(http.StatusOK, nil)
		var read api.Messages
		s.ask("GET", "/v1/jobs/"+name+"/ports/out/out/messages", nil).is(http.StatusOK, &read)
		var data []string
		for _, m := range read.Messages {
			data = append(data, string(m.Data))
		}
		if strings.Join(data, " ") != want {
			t.Errorf("%s wrote %v, want %s", name, data, want)
		}
	}

	s.ask("POST", "/v1/jobs:batch", `{"jobs": []}`).refuses(http.StatusUnprocessableEntity, "usage", "nothing to do")
	s.ask("POST", "/v1/jobs:batch", `{"type": "map", "arg": 1}`, "Content-Type", "application/x-ndjson").refuses(http.StatusUnprocessableEntity, "usage", `did you mean "args"`)
	s.ask("POST", "/v1/messages:batch", `{"job": "a", "prot": "in"}`, "Content-Type", "application/x-ndjson").refuses(http.StatusUnprocessableEntity, "usage", "line 1")
}
