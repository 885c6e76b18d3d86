package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
)

// A job or a graph that is the same work is answered with, and not created: 200.
func TestUniqueKeyOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	text := strings.ReplaceAll(doubling, "it * factor", "it * ${factor}")
	create := func(body string, status int) (j api.Job) {
		t.Helper()
		s.ask("POST", "/v1/jobs", body).is(status, &j)
		return j
	}
	const unique = `{"type":"map","args":{"expr":"it"},"in":"1h","unique":`
	first := create(unique+`{}}`, http.StatusCreated)
	if again := create(`{"type":"map","args":{ "expr": "it" },"unique":{}}`, http.StatusOK); again.ID != first.ID || len(*again.UniqueKey) != 40 {
		t.Errorf("instead of %s: %s, unique by %s", first.ID, again.ID, *again.UniqueKey)
	}
	keyed := create(unique+`{"key":"k","for":"1h"}}`, http.StatusCreated)
	s.ask("POST", "/v1/jobs/"+string(keyed.ID)+"/terminate", nil).is(http.StatusNoContent, nil)
	if again := create(unique+`{"key":"k","for":"1h"}}`, http.StatusOK); again.ID != keyed.ID || *again.UniqueKey != "k" {
		t.Errorf("instead of %s: %s, unique by %s", keyed.ID, again.ID, *again.UniqueKey)
	}
	var graph, same api.Job
	s.ask("POST", "/v1/graphs", `{"graph":`+text+`,"unique":{}}`).is(http.StatusCreated, &graph)
	s.ask("POST", "/v1/graphs", `{"graph":`+text+`,"unique":{}}`).is(http.StatusOK, &same)
	if same.ID != graph.ID {
		t.Errorf("instead of %s: %s", graph.ID, same.ID)
	}
	var many api.CreatedJobs
	s.ask("POST", "/v1/jobs:batch", `{"jobs":[`+unique+`{"key":"m"}},`+unique+`{"key":"m"}},`+unique+`{}}]}`).is(http.StatusOK, &many)
	if got := many.Jobs; many.Failed > 0 || !got[0].Created || got[1].Created || got[1].ID != got[0].ID || got[2].ID != first.ID {
		t.Errorf("many: %+v", many)
	}

	const merge = `{"type":"map","args":{"expr":"it+1"},"in":"1h","unique":{"key":"merged","merge":true}}`
	merged := create(merge, http.StatusCreated)
	again := create(strings.ReplaceAll(merge, "it+1", "it+2"), http.StatusOK)
	if got := []string{first.Outcome, same.Outcome, merged.Outcome, again.Outcome}; !slices.Equal(got, []string{"created", "found", "created", "merged"}) {
		t.Errorf("outcomes %q", got)
	}
	if args := string(again.Args); !strings.Contains(args, "it+2") {
		t.Errorf("the answer shows args %s", args)
	}
	var found api.JobPage
	if s.ask("GET", "/v1/jobs?unique_key=merged", nil).is(http.StatusOK, &found); len(found.Jobs) != 1 || found.Jobs[0].ID != merged.ID || found.Jobs[0].NextAt == nil {
		t.Errorf("jobs with the key: %+v", found.Jobs)
	}
	if info, err := s.store.Info(t.Context(), merged.ID); err != nil || !strings.Contains(string(info.Args), "it+2") {
		t.Errorf("after merging: %+v, %v", info, err)
	}
	for _, bad := range []struct{ body, says string }{
		{unique + `{"merge":true}}`, "must be given as a text"},
		{unique + `{"key":""}}`, "unique.key is empty"},
		{unique + `{"for":"0s"}}`, "unique.for"},
		{unique + `{"key":"a\nb"}}`, "control character"},
		{unique + `{},"alias":"x"}`, "both say which tree is there"},
		{unique + `{},"parent":"` + string(first.ID) + `","name":"c"}`, "a child cannot have a unique key"},
		{`{"type":"map","args":{"expr":"it"},"sequential_key":""}`, "sequential_key is empty"},
		{`{"type":"map","args":{"expr":"it"},"alias":""}`, "alias is empty: give a text, or leave it out"},
		{`{"type":"map","args":{"expr":"it"},"parent":"","name":"x"}`, "parent is empty"},
		{`{"type":"map","args":{"expr":"it"},"name":""}`, "name is empty"},
	} {
		s.ask("POST", "/v1/jobs", bad.body).refuses(http.StatusUnprocessableEntity, "usage", bad.says)
	}
	s.ask("POST", "/v1/graphs", `{"graph":`+text+`,"sequential_key":""}`).refuses(http.StatusUnprocessableEntity, "usage", "sequential_key is empty")
	s.ask("POST", "/v1/graphs", `{"graph":`+text+`,"alias":""}`).refuses(http.StatusUnprocessableEntity, "usage", "alias is empty")
	s.ask("POST", "/v1/triggers", `{"alias":"","definition":{"launch":{"type":"collect"}}}`).refuses(http.StatusUnprocessableEntity, "usage", "alias is empty")
	s.ask("POST", "/v1/graphs", `{"graph":`+text+`,"unique":{"key":""}}`).refuses(http.StatusUnprocessableEntity, "usage", "unique.key is empty")
}
