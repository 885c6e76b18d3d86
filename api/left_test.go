package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// gone is the connection of a client that has left.
type gone struct{ *httptest.ResponseRecorder }

func (gone) Write([]byte) (int, error) { return 0, &brokenPipe{syscall.EPIPE} }

type brokenPipe struct{ error }

func (b *brokenPipe) Unwrap() error { return b.error }

// panicking is a connection that makes the server panic.
type panicking struct{ *httptest.ResponseRecorder }

func (panicking) Write([]byte) (int, error) { panic("a bug") }

// TestClientLeaves: a client that leaves before it has its answer is no panic of the server, which goes into its log; other panics are.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := serve(t, redistest.SharedRedis(t), func(c *api.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	ask := func(w http.ResponseWriter) string {
		log.Reset()
		s.api.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost/v1/types", nil))
		return log.String()
	}
	if got := ask(gone{httptest.NewRecorder()}); strings.Contains(got, "panic") || !strings.Contains(got, "msg=request") {
		t.Errorf("the log of a client that left: %s", got)
	}
	if got := ask(panicking{httptest.NewRecorder()}); !strings.Contains(got, `level=ERROR msg="panic in a request"`) {
		t.Errorf("the log of a panic: %s", got)
	}
}
