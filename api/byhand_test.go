package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/httpstore"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Acts over HTTP are in the log of their job, by whoever the server knows; those of a Go client behind the server if it names somebody.
func TestActsAreLogged(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	text := strings.ReplaceAll(doubling, "it * factor", "it * ${factor}")
	var notes []string
	told := func(job string) {
		t.Helper()
		notes = nil
		var log api.LogPage
		s.ask("GET", "/v1/jobs/"+job+"/log?tree=true", nil).is(http.StatusOK, &log)
		for _, l := range log.Entries {
			if l.Note != nil {
				notes = append(notes, string(l.Note))
			}
		}
	}
	s.ask("POST", "/v1/graphs", `{"alias":"g","graph":`+text+`}`).is(http.StatusCreated, nil)
	s.ask("PATCH", "/v1/jobs/g%2Ftwice/state", `{"a":1,"b":null}`).is(http.StatusNoContent, nil)
	s.ask("PUT", "/v1/jobs/g%2Ftwice/priority", `{"priority":700}`).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/jobs/g/patch", `{"graph":`+text+`,"params":{"factor":3}}`).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/jobs/g/terminate", nil).is(http.StatusNoContent, nil)
	if told("g"); !slices.Equal(notes, []string{
		`{"state":"by hand (local): removed b; set a"}`, `{"priority":"by hand (local): 700"}`, `{"patched":"by hand (local)"}`, `{"terminated":"by hand (local)"}`,
	}) {
		t.Errorf("over HTTP: %q", notes)
	}

	store, err := httpstore.Open(t.Context(), httpstore.Config{URL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s.ask("POST", "/v1/graphs", `{"alias":"h","graph":`+text+`}`).is(http.StatusCreated, nil)
	h, err := client.New(store).Find(t.Context(), "h")
	if err != nil {
		t.Fatal(err)
	}
	anna := job.WithContext(t.Context(), port.Context{port.ContextBy: "anna, é"})
	for _, err := range []error{h.SetPriority(t.Context(), 300), h.SetPriority(anna, 400), h.Close(anna, "in"), h.TerminateAll(anna)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if told("h"); !slices.Equal(notes, []string{
		`{"priority":"by hand (anna, é): 400"}`, `{"closed":"by hand (anna, é): in port in"}`, `{"terminated":"by hand (anna, é)"}`,
	}) {
		t.Errorf("through a server: %q", notes)
	}
}
