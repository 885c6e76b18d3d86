package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
)

// Jobs are named in one request, children that were removed are left out, and none of that is an error.
func TestNames(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	const wide = `{"alias":"wide","graph":{"weir":1,"name":"wide","nodes":{"all":{"type":"each","args":{"type":"map","args":{"expr":"it"}}}},"inputs":{"in":"all.in"},"outputs":{"out":"all.out"}}}`
	var root, plain api.Job
	s.ask("POST", "/v1/graphs", wide).is(http.StatusCreated, &root)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"}}`).is(http.StatusCreated, &plain)
	s.ask("POST", "/v1/jobs/wide/ports/in/in/messages", `{"messages":[1,2,3]}`).is(http.StatusOK, nil)
	gone := func(id string) bool { return s.ask("GET", "/v1/jobs/"+id, nil).status == http.StatusNotFound }
	var removed string
	enginetest.Until(t, "an item to be removed", func() bool {
		var log api.LogPage
		s.ask("GET", "/v1/jobs/wide/log?tree=true", nil).is(http.StatusOK, &log)
		for _, l := range log.Entries {
			if gone(string(l.Job)) {
				removed = string(l.Job)
			}
		}
		return removed != ""
	})
	var names []api.JobName
	s.ask("GET", "/v1/names?id="+strings.Join([]string{string(root.ID), string(root.ID) + ".1", removed, string(plain.ID)}, ","), nil).is(http.StatusOK, &names)
	want := []api.JobName{{root.ID, "wide", "wide"}, {root.ID + ".1", "all", "each"}, {plain.ID, "map", "map"}}
	if len(names) != len(want) {
		t.Fatalf("names %+v, want %+v", names, want)
	}
	for i, n := range names {
		if n != want[i] {
			t.Errorf("name %+v, want %+v", n, want[i])
		}
	}
	if s.ask("GET", "/v1/names?id="+removed, nil).is(http.StatusOK, &names); len(names) != 0 {
		t.Errorf("a removed job is called %+v", names)
	}
	s.ask("GET", "/v1/names?id=wide", nil).refuses(http.StatusUnprocessableEntity, "usage", "query.id")
	s.ask("GET", "/v1/names", nil).refuses(http.StatusUnprocessableEntity, "usage", "id")
}
