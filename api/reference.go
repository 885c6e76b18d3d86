package api

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

//go:embed reference.html
var referenceText string

var referencePage = template.Must(template.New("reference").Parse(referenceText))

// shownOperation is an operation on the reference page.
type shownOperation struct {
	Method, Path string
	Role         any
	*huma.Operation
}

// document completes the OpenAPI document and serves the reference page.
func (s *Server) document() {
	doc := s.api.OpenAPI()
	schema, apiSchema := doc.Components.Schemas.Schema(problemType, true, "Problem"), (*huma.Schema)(nil)
	if !s.cfg.NoCozy {
		apiSchema = doc.Components.Schemas.Schema(apiErrorsType, true, "ErrorDocument")
	}
	var all []shownOperation
	for _, r := range s.routes {
		item := doc.Paths[r.path]
		op := map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodPatch: item.Patch, http.MethodDelete: item.Delete,
		}[r.method]
		op.Responses["default"] = &huma.Response{
			Description: "What was wrong, where, and what to do",
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: schema}},
		}
		if op.Tags[0] == groupCozy {
			op.Responses["default"].Content = map[string]*huma.MediaType{apiType: {Schema: apiSchema}}
			if op.RequestBody != nil {
				op.RequestBody.Content[apiType] = op.RequestBody.Content[jsonType]
			}
		}
		for _, p := range op.Parameters { // a header that another field of the document says already
			if p.Name == "Content-Type" {
				op.Parameters = slices.DeleteFunc(op.Parameters, func(q *huma.Param) bool { return q.Name == p.Name })
				break
			}
		}
		if op.OperationID == "send" {
			op.RequestBody.Content = map[string]*huma.MediaType{
				jsonType:  {Schema: doc.Components.Schemas.Schema(sendingType, true, "Sending")},
				linesType: {Schema: &huma.Schema{Type: huma.TypeString, Description: "a message, which is JSON, in each line"}},
			}
		}
		all = append(all, shownOperation{r.method, r.path, r.role, op})
	}
	delete(doc.Components.Schemas.Map(), "ErrorModel")
	delete(doc.Components.Schemas.Map(), "ErrorDetail")
	var page bytes.Buffer
	groups := map[string][]shownOperation{}
	for _, o := range all {
		groups[o.Tags[0]] = append(groups[o.Tags[0]], o)
	}
	err := referencePage.Execute(&page, map[string]any{"Info": doc.Info, "Groups": groups, "Codes": Codes()})
	show := func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			writeProblem(w, problem(kindOther, "%v", err))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = w.Write(page.Bytes())
	}
	s.mux.HandleFunc("GET /reference", show)
	s.mux.HandleFunc("GET /{$}", show) // where no page stands in front
}

// The types of which huma is not told by an operation.
var (
	problemType   = reflect.TypeFor[Problem]()
	apiErrorsType = reflect.TypeFor[ErrorDocument]()
	sendingType   = reflect.TypeFor[Sending]()
)
