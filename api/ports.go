package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/strict"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// portOperations are those on the ports of a job.
func (s *Server) portOperations() {
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/ports", id: "show-ports", group: groupPorts, role: read, summary: "Show the ports of a job, with how much waits in them",
	}, func(ctx context.Context, s *session, in *JobPath) (*reply[Sides], error) {
		h, err := s.find(ctx, in.Job)
		if err != nil {
			return nil, err
		}
		info, err := h.Info(ctx)
		if err != nil {
			return nil, err
		}
		v := JobOf(info)
		return answer(Sides{v.In, v.Out}, nil)
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/ports/{dir}/{port}/schema", id: "port-schema", group: groupPorts, role: read, summary: "Show the JSON Schema of the messages of a port",
		about: "Of a port that leads to others, such as an In port of a graph, it is that of the first port on their way of which one is known.",
	}, func(ctx context.Context, s *session, in *PortPath) (*reply[PortSchema], error) {
		h, dir, err := s.port(ctx, in)
		if err != nil {
			return nil, err
		}
		schema, err := h.Schema(ctx, dir, in.Port)
		return answer(PortSchema{schema}, err)
	})
	add(s, operation{
		method: http.MethodGet, path: "/v1/jobs/{job}/ports/{dir}/{port}/messages", id: "peek", group: groupPorts, role: read, summary: "Show the oldest messages of a port, without removing them",
		about: "Without `skip`, with DELETE of the same `from` and the number of messages, this reads each message at least once, and removes none that was not read.",
	}, peek)
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/ports/{dir}/{port}/messages", id: "send", group: groupPorts, role: operate, lines: true, summary: "Write messages to a port",
		about: "To an In port, which wakes the job; to an Out port as if the job had written them. All are written, or none; with an Idempotency-Key, a repeat within an hour does nothing. " +
			"The body is {\"messages\": […]}, or of the type application/x-ndjson: a message a line. A message with a field that the Go type of the port does not have is refused with 422, " +
			"and with the nearest that it has; those of lines may have more.",
	}, send)
	add(s, operation{
		method: http.MethodDelete, path: "/v1/jobs/{job}/ports/{dir}/{port}/messages", id: "discard", group: groupPorts, role: operate, status: http.StatusNoContent, summary: "Remove messages that were read",
		about: "If somebody else has removed messages since, nothing is removed: 409. A repeat with the same Idempotency-Key does nothing more.",
	}, discard)
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/ports/{dir}/{port}/take", id: "take", group: groupPorts, role: operate, summary: "Remove the oldest messages of a port, and answer with them",
		about: "If the answer is lost, so are they: GET and DELETE lose none.",
	}, take)
	add(s, operation{
		method: http.MethodPost, path: "/v1/jobs/{job}/ports/{dir}/{port}/close", id: "close-port", group: groupPorts, role: operate, status: http.StatusNoContent, summary: "Close an In port: nothing more comes",
	}, func(ctx context.Context, s *session, in *PortPath) (*nothing, error) {
		h, dir, err := s.port(ctx, in)
		switch {
		case err != nil:
		case dir != port.Input:
			err = wrong("path.dir: only In ports are closed from outside")
		default:
			err = h.Close(s.acting(ctx), in.Port)
		}
		return done(err)
	})
	add(s, operation{
		method: http.MethodPut, path: "/v1/jobs/{job}/ports/{dir}/{port}/default", id: "set-default", group: groupPorts, role: operate, status: http.StatusNoContent, summary: "Set the default of a port",
		about: "The body is the value, any JSON.",
	}, setDefault)
	add(s, operation{
		method: http.MethodDelete, path: "/v1/jobs/{job}/ports/{dir}/{port}/default", id: "clear-default", group: groupPorts, role: operate, status: http.StatusNoContent, summary: "Remove the default of a port",
	}, func(ctx context.Context, s *session, in *PortPath) (*nothing, error) {
		h, dir, err := s.port(ctx, in)
		if err == nil {
			err = h.ClearDefault(ctx, dir, in.Port)
		}
		return done(err)
	})
}

// Sides are the ports of a job.
type Sides struct {
	In  map[string]Port `json:"in"`
	Out map[string]Port `json:"out"`
}

// PortPath is the input of operations on one port.
type PortPath struct {
	JobPath
	Dir  string `path:"dir" enum:"in,out"`
	Port string `path:"port"`
}

// port returns the job and the direction that a path names.
func (s *session) port(ctx context.Context, in *PortPath) (*client.Handle, port.Dir, error) {
	h, err := s.find(ctx, in.Job)
	if in.Dir == "in" {
		return h, port.Input, err
	}
	return h, port.Output, err
}

// PortSchema says what messages a port takes.
type PortSchema struct {
	Schema json.RawMessage `json:"schema" doc:"a JSON Schema; of any JSON, if nothing is known of the messages"`
}

type peekInput struct {
	PortPath
	Limit int `query:"limit" default:"100" minimum:"1" maximum:"1000"`
	Skip  int `query:"skip" minimum:"0" maximum:"1000000000" doc:"leave out this many of the oldest: the next page"`
}

// Messages are messages that wait in a port.
type Messages struct {
	From     int64         `json:"from" doc:"the number of the first, of all that the port ever had, from 0"`
	Messages []job.Message `json:"messages" doc:"the oldest first"`
}

func peek(ctx context.Context, s *session, in *peekInput) (*reply[Messages], error) {
	h, dir, err := s.port(ctx, &in.PortPath)
	if err != nil {
		return nil, err
	}
	u, err := h.UnreadAfter(ctx, dir, in.Port, in.Skip, in.Limit)
	return answer(Messages(u), err)
}

// Sending is what is written to a port.
type Sending struct {
	Messages []json.RawMessage `json:"messages"`
	Context  port.Context      `json:"context,omitempty" doc:"travels with each of the messages"`
}

type sendInput struct {
	PortPath
	ContentType string `header:"Content-Type" hidden:"true"`
	Key         string `header:"Idempotency-Key" maxLength:"128" doc:"of a write to an In port: a repeat within an hour does nothing"`
	RawBody     []byte `contentType:"application/json"`
}

// Sent is how many messages were written.
type Sent struct {
	Sent int `json:"sent"`
}

func send(ctx context.Context, s *session, in *sendInput) (*reply[Sent], error) {
	var body Sending
	if in.ContentType != linesType {
		if err := decode(in.RawBody, &body); err != nil {
			return nil, wrong("body: %v; messages are sent as {\"messages\": […]}", err)
		}
		ctx = client.WithKnownFields(ctx)
	} else if err := eachLine(in.RawBody, func(_ int, line []byte) error {
		body.Messages = append(body.Messages, line)
		return nil
	}); err != nil {
		return nil, err
	}
	if len(body.Messages) == 0 {
		return nil, wrong("messages is empty: there is nothing to send")
	}
	h, err := s.writer(ctx, in.Job)
	if err != nil {
		return nil, err
	}
	messages := make([]any, len(body.Messages))
	for i, m := range body.Messages {
		messages[i] = m
	}
	ctx = s.acting(ctx)
	if body.Context != nil {
		ctx = job.WithContext(ctx, body.Context)
	}
	switch {
	case in.Dir == "out" && in.Key != "":
		err = wrong("Idempotency-Key: only writes to In ports can have one")
	case in.Dir == "out":
		err = h.WriteOut(ctx, in.Port, messages...)
	case in.Key != "":
		err = s.once(ctx, "write "+string(h.ID())+" "+in.Port, in.Key, body, func() error { return h.WriteOnce(ctx, in.Key, in.Port, messages...) })
	default:
		err = h.Write(ctx, in.Port, messages...)
	}
	return answer(Sent{len(messages)}, err)
}

// eachLine calls use with each line of a body that is not empty, and its number.
func eachLine(body []byte, use func(n int, line []byte) error) error {
	for n, line := range bytes.Split(body, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := strict.Check(line); err != nil {
			return malformed("line %d of the body %v", n+1, err)
		}
		if err := use(n+1, line); err != nil {
			return err
		}
	}
	return nil
}

type discardInput struct {
	PortPath
	From int64  `query:"from" required:"true" minimum:"0" doc:"the number of the first, as GET answered"`
	N    int    `query:"n" required:"true" minimum:"1" doc:"how many were read"`
	Key  string `header:"Idempotency-Key" maxLength:"128"`
}

func discard(ctx context.Context, s *session, in *discardInput) (*nothing, error) {
	h, dir, err := s.port(ctx, &in.PortPath)
	if err != nil {
		return nil, err
	}
	token := in.Key
	if token == "" {
		token = rand.Text()
	}
	err = h.Discard(ctx, dir, in.Port, in.From, in.N, token)
	if errors.Is(err, job.ErrMoved) {
		err = problem(KindOf(err), "the first message of %s port %q is no longer number %d: somebody has removed messages since they were read, or this request was sent before; nothing was removed. GET them again",
			in.Dir, in.Port, in.From)
	}
	return done(err)
}

type takeInput struct {
	PortPath
	Limit int `query:"limit" default:"1" minimum:"1" maximum:"1000"`
}

// Taken are messages that were removed from a port.
type Taken struct {
	Messages []job.Message `json:"messages" doc:"the oldest first"`
}

func take(ctx context.Context, s *session, in *takeInput) (*reply[Taken], error) {
	h, dir, err := s.port(ctx, &in.PortPath)
	if err != nil {
		return nil, err
	}
	all, err := h.Take(ctx, dir, in.Port, in.Limit)
	if all == nil {
		all = []job.Message{}
	}
	return answer(Taken{all}, err)
}

func setDefault(ctx context.Context, s *session, in *struct {
	PortPath
	Body json.RawMessage
},
) (*nothing, error) {
	h, dir, err := s.port(ctx, &in.PortPath)
	if err == nil {
		err = h.SetDefault(ctx, dir, in.Port, in.Body)
	}
	return done(err)
}

var _ huma.StatusError = (*Problem)(nil)
