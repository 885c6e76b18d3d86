package api_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/api"
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
	fill := strings.NewReplacer("{job}", "g", "{dir}", "in", "{port}", "in", "{key}", "k")
	checked := 0
	for _, r := range s.api.Routes() {
		op, ok := parsed.Paths[r.Path][strings.ToLower(r.Method)]
		if !ok || op.Role != string(r.Role) {
			t.Errorf("%s %s is not in the document with role %s", r.Method, r.Path, r.Role)
			continue
		}
		if r.Method != http.MethodGet || strings.HasSuffix(r.Path, "/events") || strings.HasSuffix(r.Path, "/picture") {
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
