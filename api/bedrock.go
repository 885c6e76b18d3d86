package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/bedrock"
	"github.com/weirworks/weir/redisstore"
)

// bedrockPath is what the paths of Bedrock's commands begin with.
const bedrockPath = "/bedrock/"

// bedrock returns what carries out commands on the jobs of the session's namespace.
func (s *session) bedrock() *bedrock.Service { return bedrock.New(s.store, s.leases()) }

// bedrockOperation is a command as an operation. What runs do is in the log of their jobs, and not in the audit log.
func bedrockOperation(c bedrock.Command) operation {
	return operation{
		method: http.MethodPost, path: bedrockPath + c.Name, id: "bedrock-" + c.Name, group: groupBedrock, role: Role(c.Role), summary: c.Summary,
		unaudited: c.Role != bedrock.Operate, on: new(string),
	}
}

// bedrockOperations are those under /bedrock.
func (s *Server) bedrockOperations() {
	object := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "its parameters by their names"}
	for _, c := range bedrock.Commands() {
		op := bedrockOperation(c)
		s.routes = append(s.routes, route{op.method, op.path, op.role})
		s.mux.HandleFunc(op.method+" "+op.path, s.bedrockCall(c))
		s.api.OpenAPI().AddOperation(&huma.Operation{
			Method: op.method, Path: op.path, OperationID: op.id, Tags: []string{op.group}, Summary: op.summary,
			Description: "A command of Bedrock::Jobs. What is wrong is told as any problem, with Bedrock's status.",
			RequestBody: &huma.RequestBody{Content: map[string]*huma.MediaType{jsonType: {Schema: object}}},
			Security:    []map[string][]string{{"token": {}}}, Extensions: map[string]any{"x-role": op.role},
			Responses: map[string]*huma.Response{"200": {Description: "what Bedrock answers; nothing if there is nothing to tell", Content: map[string]*huma.MediaType{jsonType: {Schema: &huma.Schema{Type: huma.TypeObject}}}}},
		})
	}
}

// bedrockCall serves one of them over HTTP.
func (s *Server) bedrockCall(c bedrock.Command) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		op := bedrockOperation(c)
		s.admit(w, r, op, func(session *session) {
			q := &bedrock.Request{Method: c.Name, Params: map[string]string{}}
			raw, err := io.ReadAll(r.Body) // it was read as a whole before
			if err == nil {
				err = q.Add(raw)
			}
			if err != nil {
				_ = writeBedrock(w, bedrock.Refused(err))
				return
			}
			*op.on = q.Subject()
			ctx, cancel := session.until(r.Context())
			defer cancel()
			service := session.bedrock()
			a := session.give(ctx, service, service.Do(ctx, c, q))
			if writeBedrock(w, a) == nil && ctx.Err() == nil {
				service.Delivered(ctx, a)
			} else {
				service.Undelivered(ctx, a)
			}
		})
	}
}

// give returns an answer, or a refusal if who asked may no longer have the jobs in it: they are ready again.
func (s *session) give(ctx context.Context, service *bedrock.Service, a *bedrock.Response) *bedrock.Response {
	if !a.Gives() {
		return a
	}
	err := s.still(ctx)
	if err == nil {
		return a
	}
	service.Undelivered(ctx, a)
	p := problemOf(err)
	return &bedrock.Response{Status: p.Status, Text: p.Detail}
}

// writeBedrock sends an answer.
func writeBedrock(w http.ResponseWriter, a *bedrock.Response) error {
	if a.Status != http.StatusOK {
		code := map[int]string{http.StatusNotFound: "not_found", http.StatusMethodNotAllowed: "status"}[a.Status]
		if code == "" {
			code = kindUsage.Code
		}
		if a.Status >= http.StatusInternalServerError {
			code = kindOther.Code
		}
		writeProblem(w, problem(Kind{code, a.Status, 1}, "%s", a.Text))
		return nil
	}
	if a.Body != nil {
		w.Header().Set("Content-Type", jsonType)
	}
	w.WriteHeader(a.Status)
	if _, err := w.Write(a.Body); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// ServeBedrock answers the commands of Bedrock::Jobs on the connections to a listener, as lines of text, until ctx ends or the server is
// closed. It closes the listener.
func (s *Server) ServeBedrock(ctx context.Context, l net.Listener) error {
	s.serving.Add(1)
	defer s.serving.Done()
	ctx, cancel := (&session{Server: s}).until(ctx)
	defer cancel()
	return bedrock.Serve(ctx, l, bedrockLines{s})
}

// bedrockLines carries out commands that come as lines of text.
type bedrockLines struct{ *Server }

// Serve implements bedrock.Handler.
func (s bedrockLines) Serve(ctx context.Context, from string, q *bedrock.Request, send func(*bedrock.Service, *bedrock.Response)) {
	c, err := bedrock.CommandOf(q.Method)
	if err != nil {
		send(nil, bedrock.Refused(err))
		return
	}
	op := bedrockOperation(c)
	session, p := s.enter(ctx, q.Params["authorization"], op.role)
	var a *bedrock.Response
	var service *bedrock.Service
	if p != nil {
		a = &bedrock.Response{Status: p.Status, Text: p.Detail}
	} else {
		service = session.bedrock()
		a = session.give(ctx, service, service.Do(ctx, c, q))
	}
	if session != nil && (!op.unaudited || p != nil) {
		s.audit(ctx, session.store, redisstore.AuditEntry{
			At: time.Now().UTC(), Principal: session.principal.Name, Role: session.principal.Role, Operation: op.id, Path: op.path, On: q.Subject(),
			Status: a.Status, From: from,
		})
	}
	send(service, a)
}

// enter returns the session of who sends a request, if he may do what a role may. Of one that is known and refused both are returned.
func (s *Server) enter(ctx context.Context, authorization string, needs Role) (*session, *Problem) {
	who, err := s.tenants.principal(ctx, authorization)
	if err != nil {
		return nil, problemOf(err)
	}
	if wait := s.rates.take(who.id, time.Now()); wait > 0 {
		return nil, rateProblem(wait, s.cfg.MaxRate)
	}
	store, err := s.tenants.store(ctx, who.Tenant)
	if err != nil {
		return nil, problemOf(err)
	}
	in := &session{Server: s, store: store, principal: who, auth: authorization}
	if !allowed(who.Role, needs) {
		return in, problem(Kind{"forbidden", http.StatusForbidden, 8}, "this needs a token of role %s: yours has role %s", needs, who.Role)
	}
	return in, nil
}
