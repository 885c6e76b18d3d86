package health_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/health"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// Hold runs until it is told to end.
type Hold struct{ running, end chan struct{} }

func (w *Hold) Run(context.Context, *worker.Run) error {
	close(w.running)
	<-w.end
	return nil
}

func get(h http.Handler, path string) (int, string) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec.Code, rec.Body.String()
}

// until asks for readiness until it is as wanted.
func until(t *testing.T, h http.Handler, code int, text string) {
	t.Helper()
	for deadline := time.Now().Add(enginetest.Patience); ; time.Sleep(enginetest.PollInterval) {
		got, body := get(h, "/readyz")
		if got == code && strings.Contains(body, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still %d %q, want %d %q", got, body, code, text)
		}
	}
}

// TestReady: a process is ready while its engine takes jobs and Redis is reached, and lives all the time.
func TestReady(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store := enginetest.Open(t, redisstore.Config{URL: server.URL()})
	hold := &Hold{make(chan struct{}), make(chan struct{})}
	engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{hold}, Logger: slog.New(slog.DiscardHandler)})
	enginetest.Check(t, err)
	h := health.Handler(health.Config{Store: store, Engine: engine, Timeout: 100 * time.Millisecond})
	until(t, h, http.StatusServiceUnavailable, "not ready: the engine has not started")

	service := enginetest.Run(t, engine.Run)
	until(t, h, http.StatusOK, "ok")

	server.Pause()
	until(t, h, http.StatusServiceUnavailable, "not ready: Redis did not answer within 100ms")
	if code, body := get(h, "/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("healthz without Redis: %d %q", code, body)
	}
	server.Resume()
	until(t, h, http.StatusOK, "ok")

	if _, err := client.New(store).Start(t.Context(), job.Single(hold, "")); err != nil {
		t.Fatal(err)
	}
	<-hold.running
	service.End()
	until(t, h, http.StatusServiceUnavailable, "not ready: the engine is stopping")
	if code, _ := get(h, "/healthz"); code != http.StatusOK {
		t.Errorf("healthz while the engine drains: %d", code)
	}
	close(hold.end)
	service.Stop()
}

// TestRoutes: there are metrics if the Config has some, and nothing else.
func TestRoutes(t *testing.T) {
	t.Parallel()
	m := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("weir_up 1")) })
	if code, body := get(health.Handler(health.Config{Metrics: m}), "/metrics"); code != http.StatusOK || body != "weir_up 1" {
		t.Errorf("%d %q", code, body)
	}
	for _, path := range []string{"/metrics", "/", "/healthz/x"} {
		if code, _ := get(health.Handler(health.Config{}), path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
}
