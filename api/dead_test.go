package api_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/redistest"
)

// A graph puts aside what it cannot work on; it is listed, requeued to another job, and discarded.
func TestPoint6DeadOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	graph := map[string]any{"graph": map[string]any{
		"weir": 1, "name": "sums", "nodes": map[string]any{"m": map[string]any{"type": "map", "args": map[string]any{"expr": "it + 1"}, "failure": "dead_letter"}},
		"inputs": map[string]any{"n": "m.in"},
	}, "alias": "sums"}
	s.ask("POST", "/v1/graphs", graph).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs", map[string]any{"type": "map", "args": map[string]any{"expr": "string(it)"}, "alias": "texts"}).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/sums/ports/in/n/messages", `{"messages":["a","b"]}`).is(http.StatusOK, nil)
	s.ask("POST", "/v1/jobs/sums/ports/in/n/close", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/jobs/sums/wait?timeout=20s", nil).is(http.StatusOK, nil)
	var found api.DeadLetters
	s.ask("GET", "/v1/dead?job=sums&type=map", nil).is(http.StatusOK, &found)
	if len(found.Letters) != 2 || found.More || string(found.Letters[1].Messages["in"]) != `"b"` {
		t.Fatalf("found %+v", found)
	}
	if l := found.Letters[0]; l.Name != "sums/m" || l.Refused != `port "in" of its job is closed` {
		t.Errorf("a dead letter of a job that has ended is called %q, refused as %q", l.Name, l.Refused)
	}
	var why []explain.Because
	s.ask("GET", "/v1/jobs/"+string(found.Letters[0].Job)+"/why", nil).is(http.StatusOK, &why)
	if !slices.ContainsFunc(why, func(b explain.Because) bool { return b.Command == "weir dead discard sums/m" }) {
		t.Errorf("commands of %+v do not call the job as a user does", why)
	}
	var n api.DeadCount
	if s.ask("GET", "/v1/dead/count", nil).is(http.StatusOK, &n); n != (api.DeadCount{Letters: 2, Jobs: 1}) {
		t.Errorf("counted %+v, want 2 dead letters of a job", n)
	}
	var st api.Stats
	if s.ask("GET", "/v1/stats", nil).is(http.StatusOK, &st); st.Dead != 1 {
		t.Errorf("%d jobs with dead letters, want 1", st.Dead)
	}
	s.ask("GET", "/v1/dead?port=out", nil).refuses(http.StatusUnprocessableEntity, "usage", "of which job?")
	s.ask("POST", "/v1/dead/requeue", `{}`).refuses(http.StatusUnprocessableEntity, "usage", "say which dead letters are meant")
	s.ask("POST", "/v1/dead/requeue", `{"jobb":"sums"}`).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "job"?`)
	s.ask("POST", "/v1/dead/requeue", `{"job":"sums"}`).refuses(http.StatusConflict, "closed", "in")
	var done api.Settled
	s.ask("POST", "/v1/dead/requeue", map[string]any{"job": "sums", "to": "texts", "letters": []string{found.Letters[1].ID}}).is(http.StatusOK, &done)
	if done.Done != 1 || done.Error != "" {
		t.Errorf("requeued: %+v", done)
	}
	s.ask("POST", "/v1/jobs/texts/ports/in/in/close", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/jobs/texts/wait?timeout=20s", nil).is(http.StatusOK, nil)
	var taken api.Taken
	s.ask("POST", "/v1/jobs/texts/ports/out/out/take?limit=10", nil).is(http.StatusOK, &taken)
	if len(taken.Messages) != 1 || string(taken.Messages[0].Data) != `"b"` {
		t.Errorf("the other job made %+v", taken.Messages)
	}
	s.ask("POST", "/v1/dead/discard", `{"error":"cannot"}`).is(http.StatusOK, &done)
	s.ask("POST", "/v1/dead/discard", `{"job":"sums"}`).is(http.StatusOK, &done)
	s.ask("GET", "/v1/dead", nil).is(http.StatusOK, &found)
	if len(found.Letters) != 0 {
		t.Errorf("left: %+v", found)
	}
	if s.ask("GET", "/v1/dead/count", nil).is(http.StatusOK, &n); n != (api.DeadCount{}) {
		t.Errorf("counted %+v, want none", n)
	}
}
