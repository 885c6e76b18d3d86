package api

import (
	"net/http"
	"strconv"
	"strings"
)

// apiType is the media type of JSON:API, which the routes under /jobs speak.
const apiType = "application/vnd.api+json"

// ErrorDocument are the problems of a request, as JSON:API has them.
type ErrorDocument struct {
	Errors []ErrorObject `json:"errors" minItems:"1"`
}

// ErrorObject is one problem.
type ErrorObject struct {
	Status string       `json:"status" doc:"the HTTP status"`
	Code   string       `json:"code" doc:"the kind of problem, in one word"`
	Title  string       `json:"title" doc:"the status in words"`
	Detail string       `json:"detail" doc:"what was wrong, and what to do"`
	Source *ErrorSource `json:"source,omitempty"`
}

// ErrorSource says which part of the request an error is about.
type ErrorSource struct {
	Pointer   *string `json:"pointer,omitempty" doc:"a JSON pointer into the body; empty: all of it"`
	Parameter string  `json:"parameter,omitempty" doc:"of the query"`
	Header    string  `json:"header,omitempty"`
}

// wholeBody is where something is wrong with all of a body.
const wholeBody = "body"

// apiErrorsOf is a problem as JSON:API has it.
func apiErrorsOf(p *Problem) *ErrorDocument {
	details := p.Errors
	if len(details) == 0 {
		details = []Detail{{Message: p.Detail}}
	}
	all := make([]ErrorObject, 0, len(details))
	for _, d := range details {
		all = append(all, ErrorObject{
			Status: strconv.Itoa(p.Status), Code: p.Code, Title: http.StatusText(p.Status), Detail: d.Message, Source: sourceOf(d.Where),
		})
	}
	return &ErrorDocument{all}
}

// sourceOf is where a Detail says that something is wrong; nil: it does not say.
func sourceOf(where string) *ErrorSource {
	switch kind, name, _ := strings.Cut(where, "."); {
	case where == wholeBody:
		return &ErrorSource{Pointer: new(string)}
	case strings.HasPrefix(where, "/"):
		return &ErrorSource{Pointer: &where}
	case kind == "query":
		return &ErrorSource{Parameter: name}
	case kind == "header":
		return &ErrorSource{Header: name}
	}
	return nil
}

// isCozy tells whether a request is for the routes under /jobs.
func (s *Server) isCozy(r *http.Request) bool {
	return !s.cfg.NoCozy && (r.URL.Path == "/jobs" || strings.HasPrefix(r.URL.Path, "/jobs/"))
}

// inCozy tells the same of the answer to one.
func inCozy(w http.ResponseWriter) bool {
	rec, ok := w.(*recorder)
	return ok && rec.cozy
}

// cozyPath lets lists be asked for with a slash at the end, as Cozy does.
func (s *Server) cozyPath(r *http.Request) *http.Request {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == r.URL.Path || path == "" || !s.isCozy(r) {
		return r
	}
	same, at := *r, *r.URL
	at.Path, at.RawPath = path, strings.TrimSuffix(at.RawPath, "/")
	same.URL = &at
	return &same
}
