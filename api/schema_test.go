package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
)

// What is answered is what the OpenAPI document says; each operation is in it, with its role.
func TestAnswersFitTheDocument(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/graphs", `{"alias":"g","labels":{"a":"b"},"graph":{"weir":1,"nodes":{"a":{"type":"map","args":{"expr":"it.x"},"failure":"fail"}},"inputs":{"in":"a.in"},"outputs":{"out":"a.out"}}}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/g/ports/in/in/messages", `{"messages":[{"x":1},{"x":2}]}`).is(http.StatusOK, nil)
	s.ask("GET", "/v1/jobs/g/wait?for=suspended&timeout=10s", nil).is(http.StatusOK, nil)
	var job oneJob
	s.cozy("POST", "/jobs/queue/collect", `{"arguments":1}`).is(http.StatusAccepted, &job)
	var launcher oneLauncher
	s.cozy("POST", "/jobs/launchers/collect", `{"type":"@webhook"}`).is(http.StatusCreated, &launcher)
	s.ask("POST", "/v1/triggers/"+string(launcher.Data.ID)+"/send", `1`).is(http.StatusNoContent, nil)
	raw := s.ask("GET", "/openapi.json", nil).is(http.StatusOK, nil).body
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			Role      string `json:"x-role"`
			Responses map[string]struct {
				Content map[string]struct {
					Schema json.RawMessage `json:"schema"`
				} `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &parsed); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(parsed.OpenAPI, "3.1") {
		t.Errorf("OpenAPI %s", parsed.OpenAPI)
	}
	fill := strings.NewReplacer("{job}", "g", "{dir}", "in", "{port}", "in", "{key}", "k", "{type}", "map")
	checked := 0
	for _, r := range s.api.Routes() {
		op, ok := parsed.Paths[r.Path][strings.ToLower(r.Method)]
		if !ok || op.Role != string(r.Role) {
			t.Errorf("%s %s is not in the document with role %s", r.Method, r.Path, r.Role)
			continue
		}
		if r.Method != http.MethodGet || strings.Contains(r.Path, "/events") || strings.HasSuffix(r.Path, "/live") || strings.HasSuffix(r.Path, "/picture") {
			continue
		}
		path := fill.Replace(r.Path)
		switch {
		case strings.HasPrefix(r.Path, "/jobs/launchers/{job}"):
			path = strings.Replace(path, "/g", "/"+string(launcher.Data.ID), 1)
		case strings.HasPrefix(r.Path, "/jobs/{job}"):
			path = "/jobs/" + string(job.Data.ID)
		}
		if strings.HasSuffix(path, "/wait") {
			path += "?timeout=50ms"
		}
		a := s.ask("GET", path, nil)
		kind, pointer := "application~1json", "#/components/schemas/Problem"
		if strings.HasPrefix(r.Path, "/jobs") {
			kind, pointer = "application~1vnd.api+json", "#/components/schemas/ErrorDocument"
		}
		if a.status < 400 {
			pointer = "#/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(r.Path) + "/get/responses/200/content/" + kind + "/schema"
		}
		schema, err := compiler.Compile("openapi.json" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
		if err != nil {
			t.Fatal(err)
		}
		body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(body); err != nil {
			t.Errorf("GET %s: %v\n%s", r.Path, err, a.body)
		}
		checked++
	}
	if checked < 12 {
		t.Errorf("only %d answers were checked", checked)
	}
	for _, code := range []string{"usage", "not_found", "full", "unauthorized"} {
		if !strings.Contains(strings.Join(api.Codes(), " "), code) {
			t.Errorf("no code %s", code)
		}
	}
}

// Each name in the path of an operation is among its parameters: one that is missing would be empty with each request.
func TestPathsHaveTheirParameters(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string } `json:"parameters"`
		} `json:"paths"`
	}
	s.ask("GET", "/openapi.json", nil).is(http.StatusOK, &doc)
	names := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			for _, part := range strings.Split(path, "{")[1:] {
				name, _, _ := strings.Cut(part, "}")
				names++
				has := false
				for _, p := range op.Parameters {
					has = has || p.In == "path" && p.Name == name
				}
				if !has {
					t.Errorf("%s %s has no parameter %q", method, path, name)
				}
			}
		}
	}
	if names == 0 {
		t.Error("no path has a parameter")
	}
}

// The limit of a queue is set over HTTP, and taken away.
func TestLimitOfAQueueOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	for _, name := range []string{"limit", "places"} { // places is what it was called before
		for n, want := range []int{0, 1} {
			s.ask("PUT", "/v1/queues/default/limit", map[string]int{name: n}).is(http.StatusNoContent, nil)
			var all []api.Limit
			s.ask("GET", "/v1/limits", nil).is(http.StatusOK, &all)
			if len(all) != want || want == 1 && (all[0].Limit != "queue:default" || all[0].Places != 1) {
				t.Errorf("limits %+v, want %d", all, want)
			}
		}
		var queues []api.Queue
		s.ask("GET", "/v1/queues", nil).is(http.StatusOK, &queues)
		if len(queues) != 1 || queues[0].Limit != 1 {
			t.Errorf("queues %+v, want the limit 1", queues)
		}
	}
	for _, body := range []string{`{}`, `{"limit":1,"places":1}`, `{"limit":-1}`} {
		s.ask("PUT", "/v1/queues/default/limit", body).refuses(http.StatusUnprocessableEntity, "usage", "limit")
	}
}

// A queue that nobody knows gets no limit, but one that it has can end.
func TestLimitOfAnUnknownQueue(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	for n := range 2 {
		s.ask("PUT", "/v1/queues/defaultx/limit", map[string]int{"limit": n}).refuses(http.StatusNotFound, "not_found", `did you mean "default"`)
	}
	enginetest.Check(t, s.store.SetQueueLimit(t.Context(), "defaultx", 3)) // as an engine does
	s.ask("PUT", "/v1/queues/defaultx/limit", map[string]int{"limit": 2}).refuses(http.StatusNotFound, "not_found", "defaultx")
	s.ask("PUT", "/v1/queues/defaultx/limit", map[string]int{"limit": 0}).is(http.StatusNoContent, nil)
	if all, err := s.store.QueueLimits(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("limits %v, %v", all, err)
	}
}
