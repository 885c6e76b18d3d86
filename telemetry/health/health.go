// Package health tells whoever runs a worker process whether it lives, and whether it can do its work:
//
//	server := &http.Server{Addr: ":9090", Handler: health.Handler(health.Config{Store: store, Engine: engine, Metrics: m.Handler()})}
package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weirworks/weir/worker"
)

// DefaultTimeout is how long readiness waits for Redis.
const DefaultTimeout = time.Second

// Config says what a Handler looks at.
type Config struct {
	// Store is asked for the time: a *redisstore.Store. Required.
	Store interface {
		Now(ctx context.Context) (time.Time, error)
	}
	// Engine is that of the process. Nil: it has none, and is ready when Redis is reached.
	Engine *worker.Engine
	// Metrics answers at /metrics, such as the Handler of telemetry/metrics. Nil: there is nothing.
	Metrics http.Handler
	// Timeout is how long readiness waits for Redis; zero means DefaultTimeout.
	Timeout time.Duration
}

// Handler answers GET and HEAD at
//
//   - /healthz: 200 while the process answers at all. Restart it if it does not. Redis has no part in it: a restart would not help;
//   - /readyz: 200 if Redis is reached and the engine takes jobs, else 503 with the reason: before the engine serves, when Redis is away,
//     and when the engine drains;
//   - /metrics, if there are any.
func Handler(cfg Config) http.Handler {
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { answer(w, cfg.ready(r.Context())) })
	if cfg.Metrics != nil {
		mux.Handle("GET /metrics", cfg.Metrics)
	}
	return mux
}

func (c *Config) ready(ctx context.Context) error {
	if c.Engine != nil {
		if err := c.Engine.Ready(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	_, err := c.Store.Now(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("Redis did not answer within %s: %w", c.Timeout, err) //nolint:staticcheck // it is a name
	}
	return err
}

func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	text := "ok"
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = "not ready: " + err.Error()
	}
	_, _ = fmt.Fprintln(w, text) // nobody is there any more to be told of an error
}
