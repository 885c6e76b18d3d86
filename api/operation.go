package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/redisstore"
)

// unwrap returns the request and the answer of an operation.
func unwrap(hc huma.Context) (*http.Request, http.ResponseWriter) { return humago.Unwrap(hc) }

// operation is what an operation is, besides its code.
type operation struct {
	method, path string
	id           string // its name in the OpenAPI document
	group        string
	role         Role
	summary      string
	about        string
	status       int     // of the answer if all went well; zero means 200
	unaudited    bool    // what was refused alone goes into the audit log
	signed       bool    // who sends no token may sign the body instead, which may be empty and which the operation looks at
	lines        bool    // the body may be of linesType
	raw          bool    // the body is text, whatever its type is said to be, and as large as a journal takes it
	on           *string // what it is done to, for the audit log, if the path does not say it; nil for nothing
}

// Groups of operations.
const (
	groupJobs     = "jobs"
	groupPorts    = "ports"
	groupState    = "state"
	groupGraphs   = "graphs"
	groupRuns     = "runs"
	groupSystem   = "system"
	groupTriggers = "triggers"
	groupCozy     = "cozy"
	groupBedrock  = "bedrock"
	groupPayloads = "payloads"
	groupHandlers = "handlers"
)

// The roles that operations ask for.
const (
	read    = redisstore.TokenRead
	operate = redisstore.TokenOperate
	work    = redisstore.TokenWork
	admin   = redisstore.TokenAdmin
)

// add makes an operation known.
func add[I, O any](s *Server, o operation, fn func(ctx context.Context, s *session, in *I) (*O, error)) {
	op := huma.Operation{
		Method: o.method, Path: o.path, OperationID: o.id, Tags: []string{o.group}, Summary: o.summary, Description: o.about,
		DefaultStatus: o.status, MaxBodyBytes: s.cfg.MaxBody + 1, BodyReadTimeout: -1, SkipValidateBody: true,
		Middlewares: huma.Middlewares{s.guard(o)},
		Security:    []map[string][]string{{"token": {}}},
		Extensions:  map[string]any{"x-role": o.role},
	}
	if o.raw {
		op.MaxBodyBytes = max(s.cfg.MaxBody, journal.MaxBody) + 1
		s.raw[o.method+" "+o.path] = true
	}
	if o.raw || o.signed {
		op.RequestBody = &huma.RequestBody{}
		defer func() { op.RequestBody.Required = false }() // Register says that it is, and reads this with each request
	}
	s.routes = append(s.routes, route{o.method, o.path, o.role})
	s.lines[o.method+" "+o.path] = o.lines
	s.signed[o.method+" "+o.path] = o.signed
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := fn(ctx, ctx.Value(sessionKey{}).(*session), in) //nolint:forcetypeassert // guard put it there
		if err == nil || errors.As(err, new(notModified)) {
			return out, err
		}
		return nil, problemOf(err)
	})
}

// operations makes all of them known.
func (s *Server) operations() {
	s.jobOperations()
	s.calledOperations()
	s.actOperations()
	s.portOperations()
	s.deadOperations()
	s.stateOperations()
	s.graphOperations()
	s.runOperations()
	s.triggerOperations()
	s.handlerOperations()
	s.entryOperations()
	if !s.cfg.NoCozy {
		s.cozyOperations()
	}
	s.bedrockOperations()
	s.payloadOperations()
	s.systemOperations()
	s.typeOperations()
	s.statsOperations()
	s.eventOperations()
	s.changeOperations()
	s.portEventOperations()
	s.liveOperations()
	s.storeOperations()
}

// reply is an answer with nothing but a body.
type reply[T any] struct{ Body T }

func answer[T any](body T, err error) (*reply[T], error) {
	if err != nil {
		return nil, err
	}
	return &reply[T]{body}, nil
}

// nothing is an answer without body: 204.
type nothing struct{}

func done(err error) (*nothing, error) { return nil, err }

// given is a body, or an empty one if there was none.
func given[T any](body *T) (b T) {
	if body != nil {
		b = *body
	}
	return b
}

// JobPath is the input of operations on one job.
type JobPath struct {
	Job string `path:"job" doc:"an ID, the beginning of one (4 characters or more), or an alias; @latest is the newest; names of children may follow, as in shop%2Fpay"`
}

// duration is a time in a query or in a body, such as 1m30s.
type duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *duration) UnmarshalText(text []byte) error {
	t, err := time.ParseDuration(string(text))
	if err != nil || t < 0 {
		return wrong("%.40q is no time: write it like 500ms, 30s or 1h30m", text)
	}
	*d = duration(t)
	return nil
}

// Schema implements huma.SchemaProvider.
func (duration) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "a time such as 500ms, 30s or 1h30m", Examples: []any{"30s"}}
}

// tagOf is the ETag of an answer.
func tagOf(body any) (string, error) {
	raw, err := json.Marshal(body)
	sum := sha256.Sum256(raw)
	return `"` + hex.EncodeToString(sum[:12]) + `"`, err
}

// notModified answers 304.
type notModified struct{ tag string }

// Error implements error.
func (n notModified) Error() string { return "not modified" }

// GetStatus implements huma.StatusError.
func (n notModified) GetStatus() int { return http.StatusNotModified }

// GetHeaders implements huma.HeadersError.
func (n notModified) GetHeaders() http.Header { return http.Header{"Etag": {n.tag}} }
