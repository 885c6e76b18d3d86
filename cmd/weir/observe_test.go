package main

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
)

// curl asks for a URL, and returns the status and the body.
func curl(t *testing.T, url string, args ...string) (status, body string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "curl", append([]string{"-s", "--max-time", "20", "-w", "\n%{http_code}", url}, args...)...).Output()
	if err != nil {
		t.Fatalf("curl %s: %v", url, err)
	}
	all := string(out)
	cut := strings.LastIndexByte(all, '\n')
	return all[cut+1:], all[:cut]
}

// listening runs a command until the test ends, and returns the address that it tells on one of its outputs.
func listening(t *testing.T, args ...string) (url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, args, w, w)
		_ = w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != 0 && c != exitInterrupted {
			t.Errorf("weir %s ended with code %d", strings.Join(args, " "), c)
		}
	})
	address := regexp.MustCompile(`https?://\S+`)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if url = address.FindString(lines.Text()); url != "" {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return url
}

// becomes asks until the answer is as wanted.
func becomes(t *testing.T, url, status, text string) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		got, body := curl(t, url)
		if got == status && strings.Contains(body, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s still answers %s %q, want %s %q", url, got, body, status, text)
		}
	}
}

// TestWorkerListen: weir worker tells over HTTP that it lives, whether it is ready, and what it counts.
func TestWorkerListen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	url := listening(t, "worker", "--listen", "127.0.0.1:0", "--redis", server.URL())
	becomes(t, url+"/readyz", "200", "ok")
	if status, body := curl(t, url+"/metrics"); status != "200" || !strings.Contains(body, "\nweir_store_up{namespace=\"main\"} 1\n") || !strings.Contains(body, "\ngo_goroutines ") {
		t.Errorf("metrics: %s\n%s", status, body)
	}
	server.Pause()
	becomes(t, url+"/readyz", "503", "not ready: ")
	becomes(t, url+"/healthz", "200", "ok")
	server.Resume()
	becomes(t, url+"/readyz", "200", "ok")
}

// TestServeHealth: weir serve has the same beside the API; with tokens, metrics need one, and probes do not.
func TestServeHealth(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	open := listening(t, "serve", "--addr", "127.0.0.1:0", "--redis", server.URL())
	becomes(t, open+"/readyz", "200", "ok")
	becomes(t, open+"/metrics", "200", "weir_store_up")
	becomes(t, open+"/v1/queues", "200", "[")
	if status, body := curl(t, open+"/metrics", "-H", "Host: evil.example"); status != "421" {
		t.Errorf("metrics under a name that the server does not have: %s\n%s", status, body)
	}

	var secret strings.Builder
	if code := run(t.Context(), []string{"token", "create", "--name", "prometheus", "--role", "read", "--redis", server.URL()}, &secret, io.Discard); code != 0 {
		t.Fatalf("weir token create: %d", code)
	}
	closed := listening(t, "serve", "--addr", "127.0.0.1:0", "--tokens", "--no-engine", "--redis", server.URL())
	becomes(t, closed+"/healthz", "200", "ok")
	becomes(t, closed+"/readyz", "200", "ok")
	becomes(t, closed+"/metrics", "401", "token")
	token := strings.TrimSpace(secret.String())
	if status, body := curl(t, closed+"/metrics", "-H", "Authorization: Bearer "+token); status != "200" || !strings.Contains(body, "weir_store_up") {
		t.Errorf("metrics with a token %q: %s\n%s", token, status, body)
	}
	var foreign strings.Builder
	if code := run(t.Context(), []string{"token", "create", "--name", "b", "--role", "admin", "--tenant", "shopb", "--redis", server.URL()}, &foreign, io.Discard); code != 0 {
		t.Fatalf("weir token create: %d", code)
	}
	if status, body := curl(t, closed+"/metrics", "-H", "Authorization: Bearer "+strings.TrimSpace(foreign.String())); status != "403" || strings.Contains(body, "weir_") {
		t.Errorf("metrics with a token of another tenant: %s\n%s", status, body)
	}
}

func TestWorkerListenWrong(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	var stderr strings.Builder
	if code := run(t.Context(), []string{"worker", "--listen", "9090", "--redis", server.URL()}, io.Discard, &stderr); code != 2 || !strings.Contains(stderr.String(), "HOST:PORT") {
		t.Errorf("code %d: %s", code, stderr.String())
	}
}
