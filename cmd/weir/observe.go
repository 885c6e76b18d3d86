package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/health"
	"github.com/weirworks/weir/telemetry/metrics"
	"github.com/weirworks/weir/web"
	"github.com/weirworks/weir/worker"
)

// newMetrics returns those of a store, with some of this process.
func newMetrics(store *redisstore.Store) *metrics.Metrics {
	m := metrics.New(store)
	m.Registry().MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observed runs jobs until the program is told to stop, and answers at an address how that goes, until the last run is over.
func (f *workerFlags) observed(c *cobra.Command, store *redisstore.Store, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return usageError{fmt.Errorf("--listen %q: write it as HOST:PORT, like 127.0.0.1:9090", address)}
	}
	m := newMetrics(store)
	hooks, flush, err := hooksOf(c, store, m)
	if err != nil {
		return err
	}
	defer flush()
	engine, stop, err := f.engine(c, store, hooks)
	if err != nil {
		return err
	}
	defer stop()
	var lc net.ListenConfig
	l, err := lc.Listen(c.Context(), "tcp", address)
	if err != nil {
		return fmt.Errorf("--listen: %w; choose another address", err)
	}
	defer l.Close()
	server := &http.Server{
		Handler:           health.Handler(health.Config{Store: store, Engine: engine, Metrics: m.Handler()}),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	if _, err := fmt.Fprintf(c.ErrOrStderr(), "weir: health and metrics at http://%s\n", l.Addr()); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	err = f.handlers.beside(c, store, f.http(), func() error { return serve(c.Context(), c, store, engine) }, m)
	last, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), time.Second)
	defer cancel()
	_ = server.Shutdown(last) // who asks for longer is cut off
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// observing answers at /healthz, /readyz and /metrics, and leaves the rest to the API. Who has to show a token there has to do so for
// the metrics, too: one of the tenant that is served. The page stands in front of the API, unless it is left out.
func (f *apiFlags) observing(server http.Handler, store *redisstore.Store, engine *worker.Engine, m *metrics.Metrics) http.Handler {
	probes := health.Handler(health.Config{Store: store, Engine: engine, Metrics: m.Handler()})
	mux := http.NewServeMux()
	root := server
	if !f.noPage {
		root = web.Handler(web.Config{API: server, TraceURL: f.traceURL})
	}
	mux.Handle("/", root)
	mux.Handle("GET /healthz", probes)
	mux.Handle("GET /readyz", probes)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		me := r.Clone(r.Context())
		me.URL.Path, me.URL.RawQuery = "/v1/me", ""
		asked := &answered{header: http.Header{}}
		if server.ServeHTTP(asked, me); asked.status != http.StatusOK {
			server.ServeHTTP(w, me) // which says why
			return
		}
		var who api.Me
		if err := json.Unmarshal(asked.body, &who); err != nil || who.Tenant != store.Namespace() {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(api.Problem{
				Type: "about:blank", Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Code: "forbidden",
				Detail: "the metrics are of namespace " + store.Namespace() + ": use a token of that tenant",
			})
			return
		}
		probes.ServeHTTP(w, r)
	})
	return api.PlainPaths(mux)
}

// answered keeps an answer.
type answered struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (a *answered) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answered) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	a.body = append(a.body, p...)
	return len(p), nil
}
