package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Type is a type of workers as other programs see it.
type Type struct {
	job.TypeInfo
	Ports []TypePort `json:"ports"`
	// Args stands for the arguments all together.
	Args json.RawMessage `json:"args" doc:"the JSON Schema of the arguments; an object of any, if they are not known"`
}

// TypePort is a port of a type.
type TypePort struct {
	port.Spec
	Schema json.RawMessage `json:"schema" doc:"the JSON Schema of its messages"`
}

// TypeOf is a type of workers as other programs see it.
func TypeOf(t *job.TypeInfo) Type {
	v := Type{TypeInfo: *t, Ports: []TypePort{}}
	for _, p := range t.Ports {
		key := port.TypeKey(p.Dir, p.Name)
		v.Ports = append(v.Ports, TypePort{p, port.SchemaText(t.Kinds[key], t.Schemas[key])})
	}
	args := map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}
	if t.Params != nil {
		properties := map[string]json.RawMessage{}
		for _, p := range t.Params {
			properties[p.Name] = port.SchemaText(p.Kind, p.Schema)
		}
		args["properties"], args["additionalProperties"] = properties, false
	}
	v.Args, _ = json.Marshal(args) // which always can be
	return v
}

// typeOperations are those on types of workers.
func (s *Server) typeOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/types", id: "list-types", group: groupSystem, role: read, summary: "List the types of workers that engines have registered",
		about: "`args` and the `schema` of each port are JSON Schemas, made from the types of Go programs, or what a worker in another language has said. null fits all that a Go program decodes.",
	}, func(ctx context.Context, s *session, _ *struct{}) (*reply[[]Type], error) {
		all, err := s.client.Types(ctx)
		views := make([]Type, len(all))
		for i := range all {
			views[i] = TypeOf(&all[i])
		}
		return answer(views, err)
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/types/{type}", id: "show-type", group: groupSystem, role: read, summary: "Show a type of workers: its ports and arguments, with their JSON Schemas",
	}, func(ctx context.Context, s *session, in *struct {
		Type  string `path:"type"`
		Queue string `query:"queue" doc:"default if it is not given"`
	},
	) (*reply[Type], error) {
		t, err := s.store.Type(ctx, cmp.Or(in.Queue, job.DefaultQueue), in.Type)
		if errors.Is(err, job.ErrUnknownType) {
			return nil, problem(KindOf(job.ErrNotFound), "%v", err)
		}
		if err != nil {
			return nil, err
		}
		return answer(TypeOf(t), nil)
	})
	add(s, operation{
		method: http.MethodDelete, path: "/v1/types/{type}", id: "forget-type", group: groupSystem, role: operate, status: http.StatusNoContent,
		summary: "Forget a type of workers that no engine has any more",
		about:   "It is refused while an engine that lives has the type for the queue. An engine that registers it again brings it back.",
	}, func(ctx context.Context, s *session, in *struct {
		Type  string `path:"type"`
		Queue string `query:"queue" doc:"default if it is not given"`
	},
	) (*nothing, error) {
		err := s.store.ForgetType(ctx, cmp.Or(in.Queue, job.DefaultQueue), in.Type)
		if errors.Is(err, job.ErrUnknownType) {
			return nil, problem(KindOf(job.ErrNotFound), "%v", err)
		}
		return done(err)
	})
}
