package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

type frame struct {
	Width int      `json:"width"`
	Tags  []string `json:"tags"`
}

// framer has arguments and messages with parts.
type framer struct {
	Frame frame
	Steps int
	In    port.In[frame] `port:"in"`
	Out   port.Out[int]  `port:"out"`
}

func (*framer) Run(context.Context, *worker.Run) error { return nil }

// A message with a field that the port's type does not have is refused, unless it is a line of many.
func TestSendRefusesUnknownFields(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil, &framer{})
	var made struct{ ID string }
	s.ask("POST", "/v1/jobs", map[string]any{"type": "framer", "args": map[string]any{"Frame": frame{Tags: []string{}}, "Steps": 1}}).is(http.StatusCreated, &made)
	write := "/v1/jobs/" + made.ID + "/ports/in/in/messages"
	for _, header := range [][]string{nil, {"Idempotency-Key", "k"}} {
		s.ask("POST", write, `{"messages":[{"width":1},{"widht":2}]}`, header...).refuses(http.StatusUnprocessableEntity, "usage", `message 2: `)
		s.ask("POST", write, `{"messages":[{"widht":2}]}`, header...).refuses(http.StatusUnprocessableEntity, "usage", `has no field /widht: did you mean "width"?`)
	}
	s.ask("POST", write, `{"messages":[{"width":2}]}`).is(http.StatusOK, nil)
	s.ask("POST", write, `{"width":2,"later":true}`, "Content-Type", "application/x-ndjson").is(http.StatusOK, nil)
}

// Types come with the JSON Schemas of their arguments and ports; arguments that do not fit are refused, with a pointer.
func TestSchemasOfTypes(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil, &framer{})
	var all []api.Type
	s.ask("GET", "/v1/types", nil).is(http.StatusOK, &all)
	for _, one := range all {
		for _, schema := range append([]json.RawMessage{one.Args}, schemasOf(one)...) {
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
			if err != nil {
				t.Fatalf("%s: %v", one.Type, err)
			}
			c := jsonschema.NewCompiler()
			if err := c.AddResource("s.json", doc); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Compile("s.json"); err != nil {
				t.Errorf("%s: %s: %v", one.Type, schema, err)
			}
		}
	}
	var got api.Type
	s.ask("GET", "/v1/types/framer", nil).is(http.StatusOK, &got)
	for _, want := range []string{`"Frame":{"type":"object","properties":{"tags":{"type":"array","items":{"type":"string"}},"width":{"type":"integer","format":"int64"}}}`, `"Steps":{"type":"integer","format":"int64"}`, `"additionalProperties":false`} {
		if !strings.Contains(string(got.Args), want) {
			t.Errorf("args %s, want %s", got.Args, want)
		}
	}
	for _, p := range got.Ports {
		want := map[string]string{"in": `"width":{"type":"integer","format":"int64"}`, "out": `{"type":"integer","format":"int64"}`}[p.Name]
		if want == "" || !strings.Contains(string(p.Schema), want) {
			t.Errorf("port %s: %s", p.Name, p.Schema)
		}
	}
	s.ask("POST", "/v1/jobs", `{"type":"framer","args":{"Frame":{"width":3,"tags":["a"],"more":1}}}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs", `{"type":"framer","args":{"Frame":{"width":"3"}}}`).refuses(http.StatusUnprocessableEntity, "usage", `/Frame/width: "3" is not a whole number`)
	s.ask("POST", "/v1/jobs", `{"type":"framer","args":{"Steps":9223372036854775808}}`).refuses(http.StatusUnprocessableEntity, "usage",
		`/Steps: 9223372036854775808 is out of range: use -9223372036854775808 to 9223372036854775807`)
	s.ask("POST", "/v1/jobs", `{"type":"framer","args":{"Frame":{"tags":["a",1]}}}`).refuses(http.StatusUnprocessableEntity, "usage", `/Frame/tags/1: 1 is not a string`)
	s.ask("GET", "/v1/types/framr", nil).refuses(http.StatusNotFound, "not_found", `did you mean "framer"`)
	s.ask("GET", "/v1/types/framer?queue=other", nil).refuses(http.StatusNotFound, "not_found", "framer")
}

func schemasOf(t api.Type) (all []json.RawMessage) {
	for _, p := range t.Ports {
		all = append(all, p.Schema)
	}
	return all
}

// Workers in other languages send schemas when they register; what is none is refused.
func TestSchemasOfRemoteTypes(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/workers", `{"types":[{"type":"Resize","args":[{"name":"size","kind":"object","schema":{"type":"object","title":"Size","required":["w"],"properties":{"w":{"type":"integer"}}}},{"name":"fast"}],
		"inputs":[{"name":"in","schema":{"type":"string","format":"uri"}}]}]}`).is(http.StatusOK, nil)
	var got api.Type
	s.ask("GET", "/v1/types/Resize", nil).is(http.StatusOK, &got)
	if !strings.Contains(string(got.Args), `"title":"Size"`) || !strings.Contains(string(got.Args), `"fast":{}`) || len(got.Ports) != 1 || !strings.Contains(string(got.Ports[0].Schema), `"uri"`) {
		t.Errorf("%s %+v", got.Args, got.Ports)
	}
	s.ask("POST", "/v1/jobs", `{"type":"Resize","args":{"size":{}}}`).refuses(http.StatusUnprocessableEntity, "usage", `/size: "w" is missing`)
	s.ask("POST", "/v1/jobs", `{"type":"Resize","args":{"size":{"w":3}}}`).is(http.StatusCreated, nil)
	for _, bad := range []string{`3`, `"x"`, `{"properties":3}`, `{"description":"` + strings.Repeat("x", port.MaxSchema) + `"}`} {
		for _, where := range []string{`"args":[{"name":"a","schema":` + bad + `}]`, `"inputs":[{"name":"a","schema":` + bad + `}]`} {
			s.ask("POST", "/v1/workers", `{"types":[{"type":"Other",`+where+`}]}`).refuses(http.StatusUnprocessableEntity, "usage", "schema of")
		}
	}
}

// A port says what messages it takes; of one that leads on, it is what the next one takes of which something is known.
func TestPortSchema(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.ask("POST", "/v1/workers", `{"types":[{"type":"Count","inputs":[{"name":"n","kind":"integer"}]}]}`).is(http.StatusOK, nil)
	s.ask("POST", "/v1/graphs", `{"alias":"g","graph":{"weir":1,"nodes":{"sub":{"type":"inner"},"any":{"type":"map","args":{"expr":"it"}}},"inputs":{"n":["any.in","sub.n"],"rest":"any.in"},`+
		`"outputs":{"out":"any.out"},"graphs":{"inner":{"nodes":{"count":{"type":"Count"}},"inputs":{"n":"count.n"}}}}}`).is(http.StatusCreated, nil)
	for path, want := range map[string]string{"g%2Fsub%2Fcount/ports/in/n": "integer", "g%2Fsub/ports/in/n": "integer", "g/ports/in/n": "integer", "g/ports/in/rest": "", "g/ports/out/out": ""} {
		var got struct {
			Schema struct {
				Type string `json:"type"`
			} `json:"schema"`
		}
		if s.ask("GET", "/v1/jobs/"+path+"/schema", nil).is(http.StatusOK, &got); got.Schema.Type != want {
			t.Errorf("%s: type %q, want %q", path, got.Schema.Type, want)
		}
	}
	s.ask("GET", "/v1/jobs/g/ports/in/none/schema", nil).refuses(http.StatusUnprocessableEntity, "usage", `no in port "none"`)
}
