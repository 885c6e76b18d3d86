package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/metrics"
	"github.com/weirworks/weir/web"
	"github.com/weirworks/weir/worker"
)

const (
	defaultAddr    = "127.0.0.1:8080"
	defaultBedrock = "127.0.0.1:8888"
	// apiDrain is how long requests in progress may take when the program is told to stop.
	apiDrain = 10 * time.Second
)

// apiFlags say how the HTTP API is served.
type apiFlags struct {
	addr, cert, key string
	tokens          bool
	hosts           []string
	maxBody         int64
	requests        bool
	noCozy          bool
	noPage          bool
	traceURL        string
	reserved        []string
	maxPending      int
	maxRate         int
	bedrock         string
	journal         string
	journalLimit    int64
	oidc            oidcFlags
}

func (f *apiFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.addr, "addr", defaultAddr, "`ADDRESS` of the HTTP API; port 0 picks a free one")
	flags.BoolVar(&f.tokens, "tokens", false, "demand a token that weir token create made with each request")
	f.oidc.add(c)
	flags.StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate, for HTTPS")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` with its private key")
	flags.StringArrayVar(&f.hosts, "host", nil, "`NAME` that the server is reached by, if not as localhost or by an IP address; repeated: any of them")
	flags.Int64Var(&f.maxBody, "max-body", api.DefaultMaxBody, "greatest body of a request, in `BYTES`")
	flags.IntVar(&f.maxRate, "max-rate", 0, "requests that each token, or subject of an issuer, may send in a second, at `MOST` (default no limit)")
	flags.BoolVar(&f.noPage, "no-page", false, "leave out the page at /: there is the reference of the API then")
	flags.StringVar(&f.traceURL, "trace-url", "", "`URL` of a trace in the viewer of traces, with {trace_id} in it, such as https://tracing.example.com/trace/{trace_id}: the page links to it")
	flags.BoolVar(&f.noCozy, "no-cozy", false, "leave out the routes under /jobs, which are those of Cozy's jobs")
	flags.StringArrayVar(&f.reserved, "reserve", nil, "`TYPE` of which the routes under /jobs make no jobs; repeated: all of them")
	flags.IntVar(&f.maxPending, "max-pending", api.DefaultMaxPending, "ready jobs of a queue, also those that wait for a limit, before the routes under /jobs make no more, at `MOST`")
	flags.StringVar(&f.bedrock, "bedrock", "", "`ADDRESS` where Bedrock's job commands are served as lines of text, like :8888; they are under /bedrock in any case (default nowhere)")
	flags.StringVar(&f.journal, "journal", "", "`DIR` of this machine where payloads of /{client}/job/{type}/add are kept until they are moved to Redis; one server has it at a time (default none: they go to Redis at once)")
	flags.Int64Var(&f.journalLimit, "journal-limit", journal.DefaultLimit, "`BYTES` that the journal of a namespace may have; more payloads are answered with 429")
	flags.BoolVar(&f.requests, "log-requests", false, "log each request on standard error")
}

// check refuses what would let anybody in the network do all.
func (f *apiFlags) check() error {
	if err := f.oidc.check(); err != nil {
		return err
	}
	f.tokens = f.tokens || f.oidc.issuer != ""
	if err := f.checkAddress("--addr", f.addr, defaultAddr); err != nil {
		return err
	}
	if f.bedrock != "" {
		if strings.HasPrefix(f.bedrock, ":") && !f.tokens { // what needs no token is for this machine
			f.bedrock = "127.0.0.1" + f.bedrock
		}
		if err := f.checkAddress("--bedrock", f.bedrock, defaultBedrock); err != nil {
			return err
		}
	}
	if err := f.checkHosts(); err != nil {
		return err
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return usageError{errors.New("--tls-cert and --tls-key belong together: give both")}
	case f.cert != "" && f.checkTLS() != nil:
		return usageError{f.checkTLS()}
	case f.traceURL != "" && web.CheckTraceURL(f.traceURL) != nil:
		return usageError{fmt.Errorf("--trace-url %w", web.CheckTraceURL(f.traceURL))}
	case f.traceURL != "" && f.noPage:
		return usageError{errors.New("--trace-url is for the page, and --no-page leaves that out: leave one of them away")}
	case f.maxBody < 1:
		return usageError{fmt.Errorf("--max-body %d: use a positive number of bytes", f.maxBody)}
	case f.maxRate < 0:
		return usageError{fmt.Errorf("--max-rate %d: use a positive number of requests a second", f.maxRate)}
	case f.journalLimit < 2*journal.DefaultSegment:
		return usageError{fmt.Errorf("--journal-limit %d: use at least %d bytes", f.journalLimit, 2*journal.DefaultSegment)}
	case f.maxPending < 1:
		return usageError{fmt.Errorf("--max-pending %d: use a positive number of jobs", f.maxPending)}
	}
	if f.journal != "" {
		if err := os.MkdirAll(f.journal, 0o700); err != nil {
			return usageError{fmt.Errorf("--journal %s: %w", f.journal, err)}
		}
	}
	return nil
}

// checkHosts refuses what no request can be meant for.
func (f *apiFlags) checkHosts() error {
	for _, host := range f.hosts {
		if net.ParseIP(host) != nil || host != "" && !strings.ContainsAny(host, "/: ") {
			continue
		}
		like := "weir.example.com"
		if u, err := url.Parse(host); err == nil && u.Hostname() != "" {
			like = u.Hostname()
		} else if name, _, err := net.SplitHostPort(host); err == nil && name != "" {
			like = name
		}
		return usageError{fmt.Errorf("--host %s: give the name alone, like %s", host, like)}
	}
	return nil
}

// checkTLS reads the certificate: a wrong one is told before there is an address.
func (f *apiFlags) checkTLS() error {
	if _, err := tls.LoadX509KeyPair(f.cert, f.key); err != nil {
		return fmt.Errorf("reading --tls-cert and --tls-key: %w", err)
	}
	return nil
}

// checkAddress refuses an address that other machines can reach without a token.
func (f *apiFlags) checkAddress(flag, addr, like string) error {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return usageError{fmt.Errorf("%s %q: write it as HOST:PORT, like %s", flag, addr, like)}
	}
	if n, err := strconv.Atoi(p); errors.Is(err, strconv.ErrRange) || err == nil && (n < 0 || n > 65535) {
		return usageError{fmt.Errorf("%s %s: a port is a number up to 65535", flag, addr)}
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && !f.tokens {
		return usageError{fmt.Errorf("%s %s can be reached from other machines, and without --tokens anybody there could do all: add --tokens (weir token create makes one), or use %s", flag, addr, like)}
	}
	return nil
}

// listenBedrock opens the address for Bedrock's commands; nil if there is none.
func (f *apiFlags) listenBedrock(c *cobra.Command) (net.Listener, error) {
	if f.bedrock == "" {
		return nil, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(c.Context(), "tcp", f.bedrock)
	if err != nil {
		return nil, fmt.Errorf("Bedrock's commands: %w; choose another address with --bedrock", err) //nolint:staticcheck // a name
	}
	if f.cert == "" {
		return l, nil
	}
	cert, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading --tls-cert and --tls-key: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}), nil
}

// listen opens the address. If nobody chose it, and it is taken, elsewhere allows any other port.
func (f *apiFlags) listen(c *cobra.Command, elsewhere bool) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(c.Context(), "tcp", f.addr)
	if err != nil && elsewhere && !c.Flags().Changed("addr") {
		fmt.Fprintf(c.ErrOrStderr(), "weir: %s is taken, so the page is elsewhere; --addr chooses where\n", f.addr)
		return lc.Listen(c.Context(), "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("the HTTP API: %w; choose another address with --addr", err)
	}
	return l, nil
}

// server makes the API of a store.
func (f *apiFlags) server(c *cobra.Command, s *settings, store *redisstore.Store, prototypes []worker.Worker, hooks []worker.Hooks) (*api.Server, error) {
	cfg := api.Config{Store: store, Hooks: hooks, Tokens: f.tokens, Hosts: f.hosts, MaxBody: f.maxBody, Version: buildVersion(), NoCozy: f.noCozy, Reserved: f.reserved, MaxPending: f.maxPending, MaxRate: f.maxRate, Journal: f.journal, JournalLimit: f.journalLimit, CheckHandler: runner.CheckCode}
	for _, w := range prototypes {
		cfg.Prototypes = append(cfg.Prototypes, w)
	}
	if f.requests {
		cfg.Logger = logger(c.ErrOrStderr())
	}
	if f.tokens {
		cfg.Open = func(ctx context.Context, namespace string) (*redisstore.Store, error) {
			other, err := s.config()
			if err != nil {
				return nil, err
			}
			other.Namespace = namespace
			return redisstore.Open(ctx, other)
		}
	}
	if err := f.oidc.into(c, &cfg); err != nil {
		return nil, err
	}
	return api.New(cfg)
}

// run answers requests until the context ends, and then those that are in progress.
func (f *apiFlags) run(ctx context.Context, at *place, handler *api.Server, root http.Handler) error {
	at.root.become(root)
	f.serve(at)
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiDrain)
		defer cancel()
		stopped <- errors.Join(handler.Close(), at.server.Shutdown(late))
	})
	err := <-at.served
	if stop() { // it ended by itself
		return errors.Join(err, handler.Close())
	}
	return <-stopped
}

func newHTTPServer(root http.Handler) *http.Server {
	return &http.Server{
		Handler: root, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 6 * time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
}

// serveOn answers requests until the server is shut down.
func (f *apiFlags) serveOn(server *http.Server, l net.Listener) error {
	if f.cert != "" {
		return server.ServeTLS(l, f.cert, f.key)
	}
	return server.Serve(l)
}

// scheme is that of URLs of the API.
func (f *apiFlags) scheme() string {
	if f.cert != "" {
		return "https"
	}
	return "http"
}

// buildVersion is that of this program.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}

// serveFlags are those of weir serve.
type serveFlags struct {
	workerFlags
	web      apiFlags
	noEngine bool
}

func newServe(s *settings) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the page and the HTTP API, and run jobs of components, until stopped",
		Long: `Serve the page and the HTTP API of the namespace, and run jobs of components as weir worker
does, until stopped with Ctrl-C or SIGTERM. The first line on standard output is the address;
there, a browser shows running jobs on a page, which acts on them, too. /reference is the
reference of the API, and /openapi.json describes it for programs. /healthz, /readyz and
/metrics are those of weir worker --listen; with --tokens, metrics need one.

With --tokens jobs may use no files of this machine unless --root names a directory for
them: others than its owner create them.

Without --tokens whoever reaches the address may do all, so it must be one of this machine
alone. With --tokens each request needs one: weir token create makes them, each for a role
and a namespace. With --oidc-issuer and --oidc-audience the tokens of an OpenID Connect issuer
are good, too, with the role and the namespace that their claims weir_role and
weir_namespace say.

With --bedrock the job commands of Bedrock are served there, too, as nc sends them: GetJob,
FinishJob and so on; the second line is that address. Without --tokens :8888 means
127.0.0.1:8888.

With --journal payloads that come in bulk are accepted on the disk of this machine, also while
Redis is away, and moved to Redis, each once: docs/journal.md tells how.

` + traceHelp,
		Example: "  weir serve --redis redis://localhost:6379\n  weir serve --addr 0.0.0.0:8443 --tokens --tls-cert cert.pem --tls-key key.pem\n  weir serve --oidc-issuer https://login.example.com --oidc-audience weir --oidc-role-claim roles\n  weir serve --bedrock :8888\n  weir serve --journal /var/lib/weir\n  curl -s http://127.0.0.1:8080/v1/jobs?status=failed",
		Args:    usage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c, s) },
	}
	f.add(s, c)
	f.handlers.add(c, false)
	f.web.add(c)
	c.Flags().BoolVar(&f.noEngine, "no-engine", false, "run no jobs here: only answer requests")
	return c
}

func (f *serveFlags) run(c *cobra.Command, s *settings) error {
	f.handlers.none = f.noEngine
	if err := errors.Join(f.checkRoot(), f.handlers.check(), f.web.check()); err != nil {
		return err
	}
	if f.noEngine && len(f.workkit) > 0 {
		return usageError{errors.New("--no-engine and --workkit: what is due there is launched by a process with an engine")}
	}
	f.handlers.off = f.handlers.off || f.noEngine
	f.noFiles = f.web.tokens
	store, at, err := f.web.connect(c, s)
	if err != nil {
		return err
	}
	defer at.Close()
	defer store.Close()
	m := newMetrics(store)
	hooks, flush, err := hooksOf(c, store, m)
	if err != nil {
		return err
	}
	defer flush()
	var engine *worker.Engine
	if !f.noEngine {
		var stop func()
		if engine, stop, err = f.engine(c, store, hooks); err != nil {
			return err
		}
		defer stop()
	}
	handler, err := f.web.server(c, s, store, f.workers(), hooks)
	if err != nil {
		return err
	}
	if err := at.tell(); err != nil {
		return err
	}
	if engine != nil {
		if err := f.welcome(c, fact{"Redis", store.Where()}, f.runs()); err != nil {
			return err
		}
	}
	return f.handlers.beside(c, store, f.http(), func() error { return f.web.beside(c, store, at, handler, engine, m) }, m)
}

// beside serves the API, and runs an engine beside it unless that is nil. If one of them ends, the other one is stopped.
func (f *apiFlags) beside(c *cobra.Command, store *redisstore.Store, at *place, handler *api.Server, engine *worker.Engine, m *metrics.Metrics) error {
	lines, err := f.listenBedrock(c)
	if err != nil {
		return err
	}
	if lines != nil {
		if _, err := fmt.Fprintf(c.OutOrStdout(), "bedrock://%s\n", lines.Addr()); err != nil {
			return errors.Join(err, lines.Close())
		}
	}
	both, ctx := errgroup.WithContext(c.Context())
	root := f.observing(handler, store, engine, m)
	both.Go(func() error { return f.run(ctx, at, handler, root) })
	if lines != nil {
		both.Go(func() error { return handler.ServeBedrock(ctx, lines) })
	}
	if engine == nil {
		interruptsOf(c.Context()).add(func() { os.Exit(exitInterrupted) }, nothing)
	} else {
		both.Go(func() error { return serve(ctx, c, store, engine) })
	}
	return both.Wait()
}
