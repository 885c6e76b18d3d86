package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// HandlerName is the type of a handler in a path.
type HandlerName struct {
	Type string `path:"type" maxLength:"512" doc:"the type of its jobs; a / is written as %2F"`
}

// HandlerOf is a handler of a client, in a path.
type HandlerOf struct {
	Client string `path:"client" maxLength:"128" doc:"with tokens the namespace of the token; without, any name, whose types are stored as {client}-{type}"`
	HandlerName
}

// StoredHandler is what was stored.
type StoredHandler struct {
	Type    string `json:"type" doc:"the type of worker, for jobs and graphs"`
	Version int64  `json:"version" doc:"counts up"`
}

// handlerOperations are those on handlers.
func (s *Server) handlerOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/handlers", id: "list-handlers", group: groupHandlers, role: read, summary: "List the handlers, each in its newest version",
	}, func(ctx context.Context, s *session, _ *struct{}) (*reply[[]handler.Stored], error) {
		all, err := handler.List(ctx, s.store)
		return answer(some(all), err)
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/handlers/{type}", id: "get-handler", group: groupHandlers, role: read, summary: "Show the handler of a type, with its code",
	}, func(ctx context.Context, s *session, in *struct {
		HandlerName
		Version int64 `query:"version" minimum:"1" doc:"an older one, of the last 20; the newest if it is missing"`
	},
	) (*reply[handler.Stored], error) {
		return answer(handler.Get(ctx, s.store, in.Type, in.Version))
	})
	add(s, operation{
		method: http.MethodPut, path: "/v1/handlers/{type}", id: "set-handler", group: groupHandlers, role: admin, summary: "Store a new version of the handler of a type",
		about: "Engines with handlers run it within a second, without a restart. The code runs on their machines, in a sandbox: docs/handlers.md. A type whose code some program has is refused.",
	}, func(ctx context.Context, s *session, in *struct {
		HandlerName
		Body handler.Definition
	},
	) (*reply[StoredHandler], error) {
		return s.setHandler(ctx, in.Type, "", in.Body)
	})
	add(s, operation{
		method: http.MethodDelete, path: "/v1/handlers/{type}", id: "delete-handler", group: groupHandlers, role: admin, status: http.StatusNoContent, summary: "Delete the handler of a type",
		about: "Its jobs are tried again until there is another one, or their time is up.",
	}, func(ctx context.Context, s *session, in *HandlerName) (*nothing, error) {
		return done(handler.Delete(ctx, s.store, in.Type))
	})
	s.clientHandlerOperations()
}

// setHandler stores a handler whose lines name types with a prefix in front.
func (s *session) setHandler(ctx context.Context, typ, prefix string, d handler.Definition) (*reply[StoredHandler], error) {
	if d.Prefix != "" && d.Prefix != prefix {
		return nil, wrong("body.prefix is not yours to set: leave it out")
	}
	d.Prefix = prefix
	if check := s.cfg.CheckHandler; check != nil && d.Validate() == nil { // else Set says what is wrong
		if err := check(ctx, &d); err != nil {
			return nil, err
		}
	}
	version, err := handler.Set(ctx, s.store, typ, d)
	return answer(StoredHandler{typ, version}, err)
}

// clientHandlerOperations are those on handlers of a client.
func (s *Server) clientHandlerOperations() {
	for _, route := range [][2]string{{"/{client}/handler/add/{type}", "add-client-handler"}, {"/{client}/handler/add/{type}/add", "add-client-handler-long"}} {
		add(s, operation{
			method: http.MethodPost, path: route[0], id: route[1], group: groupHandlers, role: admin, summary: "Store a new version of a client's handler",
			about: "Types that its output names are the client's, too.",
		}, addClientHandler)
	}
	add(s, operation{
		method: http.MethodGet, path: "/{client}/handler/get/{type}", id: "get-client-handler", group: groupHandlers, role: read, summary: "Show a client's handler",
	}, func(ctx context.Context, s *session, in *HandlerOf) (*reply[handler.Stored], error) {
		name, prefix, err := s.clientType(in.Client, in.Type)
		if err != nil {
			return nil, err
		}
		h, err := handler.Get(ctx, s.store, name, 0)
		return answer(h, in.missing(ctx, s, prefix, err))
	})
	for _, o := range []operation{
		{method: http.MethodPost, path: "/{client}/handler/del/{type}", id: "post-delete-client-handler"},
		{method: http.MethodDelete, path: "/{client}/handler/del/{type}", id: "delete-client-handler"},
		{method: http.MethodPost, path: "/{client}/handler/del/{type}/delete", id: "post-delete-client-handler-long"},
		{method: http.MethodDelete, path: "/{client}/handler/del/{type}/delete", id: "delete-client-handler-long"},
	} {
		o.group, o.role, o.status, o.summary = groupHandlers, admin, http.StatusNoContent, "Delete a client's handler"
		add(s, o, func(ctx context.Context, s *session, in *HandlerOf) (*nothing, error) {
			name, prefix, err := s.clientType(in.Client, in.Type)
			if err == nil {
				err = in.missing(ctx, s, prefix, handler.Delete(ctx, s.store, name))
			}
			return done(err)
		})
	}
}

func addClientHandler(ctx context.Context, s *session, in *struct {
	HandlerOf
	Method string `query:"method" maxLength:"16" doc:"how the URL of a handler of lang http is asked: *, post or nothing, which all mean POST"`
	Body   handler.Definition
},
) (*reply[StoredHandler], error) {
	if m := strings.ToLower(in.Method); m != "" && m != "*" && m != "post" {
		return nil, wrong("query.method %q: handlers are asked by POST only: use * or post, or leave it out", in.Method)
	}
	name, prefix, err := s.clientType(in.Client, in.Type)
	if err != nil {
		return nil, err
	}
	return s.setHandler(ctx, name, prefix, in.Body)
}

// missing says that a client has no such handler, and which ones it has, without the names of others.
func (in *HandlerOf) missing(ctx context.Context, s *session, prefix string, err error) error {
	if !errors.Is(err, job.ErrNotFound) {
		return err
	}
	all, err := handler.List(ctx, s.store)
	if err != nil {
		return err
	}
	var names []string
	for _, h := range all {
		if name, own := strings.CutPrefix(h.Type, prefix); own {
			names = append(names, name)
		}
	}
	return problem(KindOf(job.ErrNotFound), "handler not found: client %s has none for type %.80q: %s", in.Client, in.Type, port.Suggest(in.Type, names))
}

// clientType returns the worker type that a client means by a name, and what the names of all its types have in front.
func (s *session) clientType(client, name string) (typ, prefix string, err error) {
	if typ, err = ClientType(s.cfg.Tokens, s.principal.Tenant, client, name); err != nil {
		return "", "", err
	}
	return typ, typ[:len(typ)-len(name)], nil
}
