package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/metrics"
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
	reserved        []string
	maxPending      int
	maxRate         int
	bedrock         string
}

func (f *apiFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.addr, "addr", defaultAddr, "`ADDRESS` of the HTTP API; port 0 picks a free one")
	flags.BoolVar(&f.tokens, "tokens", false, "demand a token that weir token create made with each request")
	flags.StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate, for HTTPS")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` with its private key")
	flags.StringArrayVar(&f.hosts, "host", nil, "`NAME` that the server is reached by, if not as localhost or by an IP address; repeated: any of them")
	flags.Int64Var(&f.maxBody, "max-body", api.DefaultMaxBody, "greatest body of a request, in `BYTES`")
	flags.IntVar(&f.maxRate, "max-rate", 0, "requests that each token may send in a second, at `MOST` (default no limit)")
	flags.BoolVar(&f.noPage, "no-page", false, "leave out the page at /: there is the reference of the API then")
	flags.BoolVar(&f.noCozy, "no-cozy", false, "leave out the routes under /jobs, which are those of Cozy's jobs")
	flags.StringArrayVar(&f.reserved, "reserve", nil, "`TYPE` of which the routes under /jobs make no jobs; repeated: all of them")
	flags.IntVar(&f.maxPending, "max-pending", api.DefaultMaxPending, "ready jobs of a queue before the routes under /jobs make no more, at `MOST`")
	flags.StringVar(&f.bedrock, "bedrock", "", "`ADDRESS` where Bedrock's job commands are served as lines of text, like :8888; they are under /bedrock in any case (default nowhere)")
	flags.BoolVar(&f.requests, "log-requests", false, "log each request on standard error")
}

// check refuses what would let anybody in the network do all.
func (f *apiFlags) check() error {
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
	switch {
	case (f.cert == "") != (f.key == ""):
		return usageError{errors.New("--tls-cert and --tls-key belong together: give both")}
	case f.maxBody < 1:
		return usageError{fmt.Errorf("--max-body %d: use a positive number of bytes", f.maxBody)}
	case f.maxRate < 0:
		return usageError{fmt.Errorf("--max-rate %d: use a positive number of requests a second", f.maxRate)}
	case f.maxPending < 1:
		return usageError{fmt.Errorf("--max-pending %d: use a positive number of jobs", f.maxPending)}
	}
	return nil
}

// checkAddress refuses an address that other machines can reach without a token.
func (f *apiFlags) checkAddress(flag, addr, like string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return usageError{fmt.Errorf("%s %q: write it as HOST:PORT, like %s", flag, addr, like)}
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
		return lc.Listen(c.Context(), "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("the HTTP API: %w; choose another address with --addr", err)
	}
	return l, nil
}

// server makes the API of a store.
func (f *apiFlags) server(c *cobra.Command, s *settings, store *redisstore.Store, prototypes []worker.Worker) (*api.Server, error) {
	cfg := api.Config{Store: store, Tokens: f.tokens, Hosts: f.hosts, MaxBody: f.maxBody, Version: buildVersion(), NoCozy: f.noCozy, Reserved: f.reserved, MaxPending: f.maxPending, MaxRate: f.maxRate}
	for _, w := range prototypes {
		cfg.Prototypes = append(cfg.Prototypes, w)
	}
	if f.requests {
		cfg.Logger = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
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
	return api.New(cfg)
}

// run answers requests until the context ends, and then those that are in progress.
func (f *apiFlags) run(ctx context.Context, l net.Listener, handler *api.Server, root http.Handler) error {
	server := &http.Server{
		Handler: root, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 6 * time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiDrain)
		defer cancel()
		stopped <- errors.Join(handler.Close(), server.Shutdown(late))
	})
	var err error
	if f.cert != "" {
		err = server.ServeTLS(l, f.cert, f.key)
	} else {
		err = server.Serve(l)
	}
	if stop() { // it ended by itself
		return errors.Join(err, handler.Close())
	}
	return <-stopped
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

func newServe(s *settings) *cobra.Command {
	var f workerFlags
	var web apiFlags
	var noEngine bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the page and the HTTP API, and run jobs of components, until stopped",
		Long: `Serve the page and the HTTP API of the namespace, and run jobs of components as weir worker does, until
stopped with Ctrl-C or SIGTERM. The first line on standard output is the address; there, a
browser shows jobs at work on a page, which acts on them, too. /reference is the reference of
the API, and /openapi.json describes it for programs. /healthz, /readyz and /metrics are those
of weir worker --listen; with --tokens, metrics need one.

Without --tokens whoever reaches the address may do all, so it must be one of this machine
alone. With --tokens each request needs one: weir token create makes them, each for a role
and a namespace.

With --bedrock the job commands of Bedrock are served there, too, as nc sends them: GetJob,
FinishJob and so on; the second line is that address. Without --tokens :8888 means
127.0.0.1:8888.

` + traceHelp,
		Example: "  weir serve --redis redis://localhost:6379\n  weir serve --addr 0.0.0.0:8443 --tokens --tls-cert cert.pem --tls-key key.pem\n  weir serve --bedrock :8888\n  curl -s http://127.0.0.1:8080/v1/jobs?status=failed",
		Args:    usage(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(f.checkRoot(), web.check()); err != nil {
				return err
			}
			if noEngine && len(f.workkit) > 0 {
				return usageError{errors.New("--no-engine and --workkit: what is due there is launched by a process with an engine")}
			}
			return s.besideRedis(c, func(_ context.Context, store *redisstore.Store) error {
				l, err := web.listen(c, false)
				if err != nil {
					return err
				}
				defer l.Close()
				m := newMetrics(store)
				var engine *worker.Engine
				if !noEngine {
					var flush func()
					if engine, flush, err = f.engine(c, store, m); err != nil {
						return err
					}
					defer flush()
				}
				handler, err := web.server(c, s, store, f.workers())
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%s://%s\n", web.scheme(), l.Addr()); err != nil {
					return err
				}
				return web.beside(c, store, l, handler, engine, m)
			})
		},
	}
	f.add(s, c)
	web.add(c)
	c.Flags().BoolVar(&noEngine, "no-engine", false, "run no jobs here: only answer requests")
	return c
}

// beside serves the API, and runs an engine beside it unless that is nil. If one of them ends, the other one is stopped.
func (f *apiFlags) beside(c *cobra.Command, store *redisstore.Store, l net.Listener, handler *api.Server, engine *worker.Engine, m *metrics.Metrics) error {
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
	both.Go(func() error { return f.run(ctx, l, handler, root) })
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
