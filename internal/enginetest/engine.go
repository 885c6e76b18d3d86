package enginetest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/weirworks/weir/worker"
)

// Service is what runs beside a test, until it is stopped or the test ends.
type Service struct {
	End  context.CancelFunc // asks it to end, and does not wait
	Done chan struct{}      // closed when it has ended
	Err  error              // what it ended with; read it when Done is closed
	t    testing.TB
}

// Run starts a service. It must end without an error, within Patience after it was asked to.
func Run(t testing.TB, run func(context.Context) error) *Service {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &Service{End: cancel, Done: make(chan struct{}), t: t}
	go func() {
		defer close(s.Done)
		s.Err = run(ctx)
	}()
	t.Cleanup(s.Stop)
	return s
}

// Stop ends the service and waits for it. It may be called again.
func (s *Service) Stop() {
	s.t.Helper()
	s.End()
	select {
	case <-s.Done:
	case <-time.After(Patience):
		s.t.Fatal("the service does not stop")
	}
	if s.Err != nil {
		s.t.Error(s.Err)
	}
}

// Engine is an engine that runs until it is stopped or the test ends.
type Engine struct {
	*Service
	*worker.Engine
}

// Config is that of an engine with these workers: four worker goroutines, leases of two seconds, no log.
func (e *Env) Config(workers ...worker.Worker) worker.Config {
	return worker.Config{
		Store: e.Store, Workers: workers, Concurrency: 4,
		Lease: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}
}

// Serve starts an engine; without a Logger it logs nothing.
func (e *Env) Serve(cfg worker.Config) *Engine {
	e.Helper()
	return Serve(e, cfg)
}

// Serve starts an engine for a test without an Env; without a Logger it logs nothing.
func Serve(t testing.TB, cfg worker.Config) *Engine {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e, err := worker.New(cfg)
	Check(t, err)
	return &Engine{Service: Run(t, e.Run), Engine: e}
}
