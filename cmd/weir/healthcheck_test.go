package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A process says whether it is ready, or why not; what else answers there, or nothing, is told apart.
func TestHealthcheck(t *testing.T) {
	t.Parallel()
	ready := http.StatusOK
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(ready)
		_, _ = w.Write([]byte("as it is\n"))
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	server := httptest.NewServer(mux)
	ask := func(code int, want string, args ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		got := run(t.Context(), append([]string{"healthcheck"}, args...), &stdout, &stderr)
		if text := stdout.String() + stderr.String(); got != code || !strings.Contains(text, want) {
			t.Errorf("weir healthcheck %q: exit code %d, want %d with %q\n%s", args, got, code, want, text)
		}
	}
	ask(0, "as it is", server.URL)
	ask(0, `"ready": true`, server.URL, "-o", "json")
	ask(0, `"url": "`+server.URL+`/healthz"`, server.URL+"/", "-o", "json", "--alive")
	ask(0, "as it is", "--server", server.URL)
	ready = http.StatusServiceUnavailable
	ask(1, server.URL+"/readyz: as it is", server.URL)
	ask(0, "ok", server.URL, "--alive")
	ask(1, "404 Not Found: it is not of weir serve", server.URL+"/elsewhere")
	ask(2, "is not a URL of a server", "127.0.0.1:8080")
	server.Close()
	ask(7, "nothing answers at "+server.URL+"/readyz: ", server.URL)
	ask(7, `"code":"unreachable"`, server.URL, "-o", "json")
}
