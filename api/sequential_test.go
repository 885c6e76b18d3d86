package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
)

// Jobs and graphs with a sequential key follow each other; a child is refused one.
func TestSequentialKeyOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	text := strings.ReplaceAll(doubling, "it * factor", "it * ${factor}")
	var first, second, third api.Job
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"first","in":"1h","sequential_key":"k"}`).is(http.StatusCreated, &first)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"sequential_key":"k"}`).is(http.StatusCreated, &second)
	s.ask("POST", "/v1/graphs", `{"graph":`+text+`,"alias":"third","sequential_key":"k"}`).is(http.StatusCreated, &third)
	if second.Status != "waiting" || third.Status != "waiting" || second.Turn == nil ||
		second.Turn.Holder != first.ID || second.Turn.Before != 1 {
		t.Fatalf("second %+v, third %+v, turn %+v", second, third, second.Turn)
	}
	var found api.JobPage
	if s.ask("GET", "/v1/jobs?status=waiting", nil).is(http.StatusOK, &found); len(found.Jobs) != 2 || *found.Jobs[0].SequentialKey != "k" {
		t.Errorf("waiting: %+v", found.Jobs)
	}
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"parent":"first","name":"c","sequential_key":"k"}`).refuses(http.StatusUnprocessableEntity, "usage", "a child cannot have")
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"sequential_key":"a\nb"}`).refuses(http.StatusUnprocessableEntity, "usage", "control character")

	s.ask("POST", "/v1/jobs/first/terminate", nil).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/jobs/third/ports/in/in/close", nil).is(http.StatusNoContent, nil)
	var w api.Waited
	if s.ask("GET", "/v1/jobs/third/wait?timeout=20s", nil).is(http.StatusOK, &w); !w.Reached {
		t.Errorf("the graph is %s", w.Job.Status)
	}
}
