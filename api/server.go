package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/internal/strict"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// Config says what a Server serves.
type Config struct {
	// Store is that of the namespace that is served, and of the tokens. Required. The server does not close it.
	Store *redisstore.Store
	// Open opens the store of another namespace, for tokens of that tenant. Nil: there are no other tenants.
	Open func(ctx context.Context, namespace string) (*redisstore.Store, error)
	// Tokens demands a bearer token with each request. Without, whoever reaches the server
	// may do all: let it listen on the loopback interface alone.
	Tokens bool
	// CheckHandler says what is wrong with the code of a handler that is to be stored, such as runner.CheckCode. Nil: all is stored.
	CheckHandler func(ctx context.Context, d *handler.Definition) error
	// Verify says whom a bearer token names that is not one of Weir's own: that of another issuer, as package api/oidc verifies
	// them. An error that wraps job.ErrUnavailable is answered with 503, one that wraps job.ErrForbidden with 403, all others with
	// 401; their texts are told. Nil: there are no others. It needs Tokens.
	Verify func(ctx context.Context, token string) (Identity, error)
	// Hosts are the names that requests may be meant for besides localhost and IP addresses, without port; the others are
	// refused, so that no page in a browser can reach the server under a name of its own. Empty: there are no others without
	// tokens, and any name will do with them.
	Hosts []string
	// Prototypes are the workers of which graphs in files may be made, such as those of component.All.
	Prototypes []any
	// MaxBody is the greatest body of a request in bytes; zero means DefaultMaxBody.
	MaxBody int64
	// NoCozy leaves out the routes under /jobs, which are those of Cozy's jobs.
	NoCozy bool
	// Reserved are types of which the routes under /jobs create no jobs: they answer 403.
	Reserved []string
	// MaxPending is how many jobs of a queue may be ready, those that wait for a limit among them: the routes under /jobs create
	// no more, and answer 429. Zero means DefaultMaxPending.
	MaxPending int
	// MaxRate is how many requests each token may send in a second, of one server, with as many at once after a second without any;
	// without tokens all together. More answer 429. Zero means no limit.
	MaxRate int
	// Journal is a directory of this machine where payloads of POST /{client}/job/{type}/add are kept until they are moved to Redis, see package
	// journal: one server has it at a time. Empty: they go to Redis at once.
	Journal string
	// JournalLimit is how many bytes the journal of a namespace may have. Zero means journal.DefaultLimit.
	JournalLimit int64
	// Hooks are told of the runs of workers that lease them from this server, of the Store alone: see worker.LeaseConfig.
	Hooks []worker.Hooks
	// Version is shown in the description of the API.
	Version string
	// Logger gets a line for each request; nil means none. Panics are told to slog.Default then.
	Logger *slog.Logger
}

// DefaultMaxBody is the greatest body of a request, in bytes, unless the Config says otherwise.
const DefaultMaxBody = 1 << 20

// DefaultMaxPending is how many jobs of a queue may be ready before the routes under /jobs create no more, unless the Config says
// otherwise.
const DefaultMaxPending = 100_000

// Server is the HTTP API of a namespace. It holds no state of jobs: any number of servers may
// serve one namespace. It is safe for concurrent use.
type Server struct {
	cfg      Config
	panics   *slog.Logger // what should not happen is told though no requests are
	mux      *http.ServeMux
	api      huma.API
	handler  http.Handler
	tenants  tenants
	rates    rates
	leasing  leasing
	watched  watched
	writers  writers
	feeds    feeds
	routes   []route
	lines    map[string]bool // patterns of operations that take a value a line
	raw      map[string]bool // patterns of operations that take text
	signed   map[string]bool // patterns of operations that take a signature in place of a token
	journals journals
	expected expected
	closing  chan struct{}
	closed   func() error   // end, once
	serving  sync.WaitGroup // connections that are not of HTTP
}

// route is one operation, for tests that try all of them.
type route struct {
	method, path string
	role         Role
}

// New returns a server, or says what is wrong with its Config: the error wraps job.ErrConfig.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Store == nil:
		return nil, fmt.Errorf("%w of the API: Store is required", job.ErrConfig)
	case cfg.MaxBody < 0:
		return nil, fmt.Errorf("%w of the API: MaxBody %d: use a positive number of bytes, or 0 for %d", job.ErrConfig, cfg.MaxBody, DefaultMaxBody)
	case cfg.MaxPending < 0:
		return nil, fmt.Errorf("%w of the API: MaxPending %d: use a positive number of jobs, or 0 for %d", job.ErrConfig, cfg.MaxPending, DefaultMaxPending)
	}
	if cfg.Verify != nil && !cfg.Tokens {
		return nil, fmt.Errorf("%w of the API: Verify without Tokens: nobody would have to send what it verifies; set Tokens", job.ErrConfig)
	}
	if cfg.MaxRate < 0 {
		return nil, fmt.Errorf("%w of the API: MaxRate %d: use a positive number of requests a second, or 0 for no limit", job.ErrConfig, cfg.MaxRate)
	}
	cfg.MaxBody, cfg.MaxPending = cmp.Or(cfg.MaxBody, DefaultMaxBody), cmp.Or(cfg.MaxPending, DefaultMaxPending)
	panics := cmp.Or(cfg.Logger, slog.Default())
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, panics: panics, mux: http.NewServeMux(), tenants: newTenants(cfg), lines: map[string]bool{}, raw: map[string]bool{}, signed: map[string]bool{}, closing: make(chan struct{})}
	s.closed = sync.OnceValue(s.end)
	s.rates = rates{perSecond: cfg.MaxRate, spent: map[string]time.Time{}}
	s.api = humago.New(s.mux, s.description())
	s.operations()
	s.document()
	s.mux.HandleFunc("/", s.noRoute)
	s.handler = ofOneOrigin(s.mux)
	if err := s.journals.start(s); err != nil {
		return nil, err
	}
	return s, nil
}

// ofOneOrigin refuses what pages of another origin would change.
func ofOneOrigin(h http.Handler) http.Handler {
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, problem(Kind{"forbidden", http.StatusForbidden, 8}, "a page of another origin, %.100q, may not change anything here", r.Header.Get("Origin")))
	}))
	return origins.Handler(h)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	r = s.cozyPath(r)
	rec := &recorder{ResponseWriter: w, cozy: s.isCozy(r)}
	defer func() {
		if p := recover(); p != nil && !rec.left(r, p) {
			s.panics.Error("panic in a request", "method", r.Method, "path", r.URL.Path, "panic", p)
			if rec.status == 0 {
				writeProblem(rec, problem(kindOther, "the server failed; its log has more"))
			}
		}
		s.cfg.Logger.Info("request", "method", r.Method, "path", r.URL.Path, "status", rec.status, "bytes", rec.bytes,
			"seconds", time.Since(started).Seconds(), "from", r.RemoteAddr)
	}()
	rec.Header().Set("X-Content-Type-Options", "nosniff")
	rec.Header().Set("Cache-Control", "no-store")
	if p := s.cfg.checkHost(r); p != nil {
		writeProblem(rec, p)
		return
	}
	if toPlain(rec, r) {
		return
	}
	if p := s.readBody(rec, r); p != nil {
		writeProblem(rec, p)
		return
	}
	if !strings.HasPrefix(r.URL.Path, storecall.Path) { // programs that make these calls close nothing before they have the answer
		var cancel context.CancelFunc
		r, cancel = finishing(r)
		defer cancel()
	}
	s.handler.ServeHTTP(rec, traced(r))
}

// finishTime is how long a request that was read goes on when its client has gone, or has said all that it has to say and waits
// for the answer, as nc -N does: net/http cannot tell one from the other.
const finishTime = 5 * time.Second

// goneKey is that of the context of a request that ends when its client has gone.
type goneKey struct{}

// finishing returns a request whose context outlives its client by finishTime.
func finishing(r *http.Request) (*http.Request, context.CancelFunc) {
	gone := r.Context()
	ctx, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(gone), goneKey{}, gone))
	stop := context.AfterFunc(gone, func() {
		late := time.AfterFunc(finishTime, cancel)
		context.AfterFunc(ctx, func() { late.Stop() })
	})
	return r.WithContext(ctx), func() { stop(); cancel() }
}

// left returns a channel that is closed when the client of a request has gone.
func left(ctx context.Context) <-chan struct{} {
	if gone, ok := ctx.Value(goneKey{}).(context.Context); ok {
		return gone.Done()
	}
	return nil
}

// traced lets what a request creates and writes belong to the trace that it names.
func traced(r *http.Request) *http.Request {
	parent := r.Header.Get("Traceparent")
	if parent == "" {
		return r
	}
	t, ok := job.ParseTrace(parent, strings.Join(r.Header.Values("Tracestate"), ","))
	if !ok {
		return r // as the standard wants it
	}
	return r.WithContext(client.WithTrace(r.Context(), t))
}

// Close ends what answers for long, such as streams of events, and closes the stores of tenants. Calls after the first return what that
// one did.
func (s *Server) Close() error { return s.closed() }

func (s *Server) end() error {
	close(s.closing)
	s.leasing.close()
	s.feeds.close()
	s.serving.Wait()
	return errors.Join(s.journals.close(), s.tenants.close())
}

// recorder knows what was answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	failed error // of the first write that failed
	cozy   bool  // problems are told as JSON:API does
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	if r.failed == nil {
		r.failed = err
	}
	return n, err
}

// left tells whether a panic is only that an answer could not be written, as its client has gone: huma panics then.
func (r *recorder) left(req *http.Request, panicked any) bool {
	err, ok := panicked.(error)
	return ok && (r.failed != nil && errors.Is(err, r.failed) || req.Context().Err() != nil && errors.Is(err, context.Canceled))
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// checkHost refuses requests for a host that the server is not known by.
func (c *Config) checkHost(r *http.Request) *Problem {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	switch {
	case slices.Contains(c.Hosts, host), host == "localhost", net.ParseIP(host) != nil: // no page in a browser is of one of these by a trick
		return nil
	case len(c.Hosts) == 0 && c.Tokens:
		return nil
	}
	return problem(Kind{"forbidden", http.StatusMisdirectedRequest, 8}, "this server is not known as host %.100q: use one of its names, or start it with that one", host)
}

// readBody reads the whole body before anything is done, so that one that breaks off changes nothing.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) *Problem {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	pattern := s.pattern(r)
	if pattern == "" || pattern == "/" { // whatever it has: noRoute answers
		return nil
	}
	calls, most := strings.HasPrefix(r.URL.Path, storecall.Path), s.cfg.MaxBody
	text := s.raw[pattern]
	if calls {
		most = max(most, storecall.MaxBody)
	} else if text {
		most = max(most, journal.MaxBody)
	}
	if s.cfg.Tokens && !s.signed[pattern] { // nothing is kept of who may not come in
		if _, err := s.tenants.principal(r.Context(), r.Header.Get("Authorization")); err != nil {
			return problemOf(err)
		}
	}
	raw, p := readWhole(w, r, most)
	if p != nil {
		return p
	}
	switch kind := mediaType(r); {
	case len(raw) == 0 || text:
	case !inUTF8(r):
		return problem(Kind{"malformed", http.StatusUnsupportedMediaType, 2}, "Content-Type %.80q: send UTF-8", r.Header.Get("Content-Type"))
	case kind == storecall.ContentType && calls:
	case kind == linesType && s.lines[pattern]:
		r.Header.Set("Content-Type", linesType)
	case kind == jsonType, kind == formType, kind == apiType && s.isCozy(r): // curl says the second of its own accord
		if err := strict.Check(raw); err != nil {
			return malformed("the body %v", err)
		}
		r.Header.Set("Content-Type", jsonType)
	default:
		return problem(Kind{"malformed", http.StatusUnsupportedMediaType, 2}, "Content-Type %.80q: send %s", kind, jsonType)
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return nil
}

// readWhole reads the body of a request, which may have that many bytes.
func readWhole(w http.ResponseWriter, r *http.Request, most int64) (raw []byte, p *Problem) {
	var err error
	if r.ContentLength <= most {
		raw, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	}
	if errors.As(err, new(*http.MaxBytesError)) || r.ContentLength > most {
		return nil, problem(Kind{"too_large", http.StatusRequestEntityTooLarge, 1}, "the body has more than %d bytes: send less at a time", most)
	}
	if err != nil {
		return nil, malformed("the body could not be read to its end: %v", err)
	}
	return raw, nil
}

// pattern is that of the operation that a request is for.
func (s *Server) pattern(r *http.Request) string {
	_, pattern := s.mux.Handler(r)
	return pattern
}

const (
	jsonType  = "application/json"
	linesType = "application/x-ndjson"
	formType  = "application/x-www-form-urlencoded"
)

// mediaType is what the body of a request is said to be; JSON if nothing is said.
func mediaType(r *http.Request) string {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return cmp.Or(strings.ToLower(strings.TrimSpace(kind)), jsonType)
}

// inUTF8 tells whether the body of a request is said to be in no other character set.
func inUTF8(r *http.Request) bool {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	return err != nil || charset == "" || charset == "utf-8" || charset == "us-ascii"
}

// noRoute answers requests that are for no operation.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		writeProblem(w, problem(Kind{"no_route", http.StatusMethodNotAllowed, 2}, "%s is not possible here: use %s", r.Method, list))
		return
	}
	writeProblem(w, problem(Kind{"no_route", http.StatusNotFound, 2}, "there is nothing at %.200s: GET /reference lists the operations", r.URL.Path))
}

// description is what the OpenAPI document begins with.
func (s *Server) description() huma.Config {
	cfg := huma.DefaultConfig("Weir", cmp.Or(s.cfg.Version, "devel"))
	cfg.Info.Description = "Durable dataflow jobs: what a run of a job reads, writes and changes happens together, once, or not at all."
	cfg.CreateHooks = nil
	cfg.DocsPath, cfg.SchemasPath = "", ""
	cfg.OpenAPIPath = "/openapi"
	cfg.RejectUnknownQueryParameters = true
	cfg.Transformers = []huma.Transformer{problems}
	cfg.Formats = map[string]huma.Format{jsonType: {Marshal: encode, Unmarshal: decode}, "json": {Marshal: encode, Unmarshal: decode}}
	cfg.DefaultFormat = jsonType
	cfg.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "a token that weir token create made, or a JWT of the OpenID Connect issuer that the server believes"}}
	return cfg
}

// encode writes an answer.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// decode reads a body, of which all keys must be known.
func decode(raw []byte, v any) error { return strict.Decode(raw, v) }
