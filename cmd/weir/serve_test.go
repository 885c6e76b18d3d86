package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
)

// servedAt runs weir serve until the test is over, and returns its address.
func servedAt(t *testing.T, args ...string) (address string) {
	t.Helper()
	return servedWith(t, 1, args...)[0]
}

// servedWith does so, and returns that many addresses.
func servedWith(t *testing.T, addresses int, args ...string) (all []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r, w := io.Pipe()
	code := make(chan int, 1)
	var stderr lockedBuffer
	go func() {
		code <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), w, &stderr)
		_ = w.Close()
	}()
	lines := bufio.NewReader(r)
	var err error
	for range addresses {
		var line string
		if line, err = lines.ReadString('\n'); err != nil {
			break
		}
		all = append(all, strings.TrimSpace(line))
	}
	t.Cleanup(func() {
		cancel()
		if c := <-code; c != 0 {
			t.Errorf("weir serve ended with code %d: %s", c, stderr.String())
		}
	})
	if err != nil || !strings.HasPrefix(all[0], "http://127.0.0.1:") {
		t.Fatalf("weir serve printed %q, %v; %s", all, err, stderr.String())
	}
	return all
}

// lockedBuffer is a buffer that one goroutine may write while another reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns what was written.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestAPIPages: docs/api.md, docs/cozy.md and docs/bedrock.md show what curl, nc and weir print when their commands are run in order.
func TestAPIPages(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]int{"api.md": 15, "cozy.md": 10, "bedrock.md": 12} {
		t.Run(name, func(t *testing.T) { replayPage(t, name, least) })
	}
}

func replayPage(t *testing.T, name string, least int) {
	t.Helper()
	t.Parallel()
	for _, program := range []string{"curl", "nc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is missing: make test installs it", program)
		}
	}
	url := redistest.Start(t).URL()
	addresses := servedWith(t, 2, "--redis", url, "--bedrock", "127.0.0.1:0")
	address, lines := addresses[0], strings.TrimPrefix(addresses[1], "bedrock://")
	for started := time.Now(); !strings.Contains(weir(t, url, "types"), "zip"); time.Sleep(10 * time.Millisecond) {
		if time.Since(started) > time.Minute {
			t.Fatal("the engine does not register its types")
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	enginetest.Check(t, err)
	commands := 0
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		if block[1] != "console" {
			continue
		}
		for _, one := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			line, want, _ := strings.Cut(one, "\n")
			line = strings.ReplaceAll(line, "http://127.0.0.1:8080", address)
			line = strings.ReplaceAll(line, "127.0.0.1 8888", strings.ReplaceAll(lines, ":", " "))
			var out []byte
			var err error
			if args, ours := strings.CutPrefix(line, "weir "); ours {
				var said bytes.Buffer
				if code := run(t.Context(), strings.Fields(args), &said, &said); code != 0 {
					err = fmt.Errorf("exit code %d: %s", code, said.String())
				}
				out = said.Bytes()
			} else {
				out, err = exec.CommandContext(t.Context(), "sh", "-c", line).Output()
			}
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			pattern := "^(?s)" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), "…", ".*") + "$"
			if !regexp.MustCompile(pattern).MatchString(strings.TrimSpace(string(out))) {
				t.Errorf("$ %s\ngot:\n%s\nwant:\n%s", line, out, want)
			}
			commands++
		}
	}
	if commands < least {
		t.Errorf("only %d commands were run", commands)
	}
}

// A server with a journal that starts before its Redis accepts payloads, and does all else when Redis is there.
func TestServeBeforeItsRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Kill()
	address := servedAt(t, "--redis", redis.URL(), "--journal", t.TempDir())
	ask := func(method, path, body string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
		enginetest.Check(t, err)
		resp, err := http.DefaultClient.Do(r)
		enginetest.Check(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		enginetest.Check(t, err)
		return resp.StatusCode, string(text)
	}
	status, text := ask("POST", "/acme/job/mail/add", "l1\n")
	var added struct{ IDs []string }
	if err := json.Unmarshal([]byte(text), &added); status != http.StatusOK || err != nil || len(added.IDs) != 1 {
		t.Fatalf("payloads while Redis is away: %d %s", status, text)
	}
	if status, _ := ask("GET", "/healthz", ""); status != http.StatusOK {
		t.Errorf("/healthz while Redis is away: %d", status)
	}
	if status, text := ask("GET", "/v1/jobs/"+added.IDs[0], ""); status != http.StatusServiceUnavailable || !strings.Contains(text, "Redis has not answered") {
		t.Errorf("a job while Redis is away: %d %s", status, text)
	}
	redis.Restart()
	enginetest.Until(t, "the payload is a job", func() bool {
		status, _ := ask("GET", "/v1/jobs/"+added.IDs[0], "")
		return status == http.StatusOK
	})
	enginetest.Until(t, "the server is ready", func() bool {
		status, _ := ask("GET", "/readyz", "")
		return status == http.StatusOK
	})
}

// No request is dropped while the handler of a server is replaced, and what has begun is answered before.
func TestRelay(t *testing.T) {
	t.Parallel()
	r := &relay{}
	begun, end := make(chan struct{}), make(chan struct{})
	r.first = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-end
		_, _ = io.WriteString(w, "first")
	})
	ask := func() <-chan string {
		said := make(chan string, 1)
		go func() {
			out := httptest.NewRecorder()
			r.ServeHTTP(out, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
			said <- out.Body.String()
		}()
		return said
	}
	early := ask()
	<-begun
	held := make(chan struct{})
	go func() {
		r.hold()
		close(held)
	}()
	select {
	case <-held:
		t.Fatal("the first handler was replaced while it answered")
	case <-time.After(20 * time.Millisecond):
	}
	close(end)
	<-held
	if said := <-early; said != "first" {
		t.Errorf("a request that had begun: %q", said)
	}
	late := ask()
	r.become(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "next") }))
	if said := <-late; said != "next" {
		t.Errorf("a request that waited: %q", said)
	}
}

// With tokens jobs use files only where a directory was named for them.
func TestServeFiles(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	root := t.TempDir()
	enginetest.Check(t, os.WriteFile(filepath.Join(root, "a"), []byte("1\n"), 0o600))
	for namespace, c := range map[string]struct {
		flags []string
		look  string
		want  string
	}{
		"none":  {nil, "why ID", "jobs may use no files here"},
		"named": {[]string{"--root", root}, "peek ID out", `"1"`},
	} {
		servedAt(t, append([]string{"--redis", url, "--namespace", namespace, "--tokens"}, c.flags...)...)
		enginetest.Until(t, "the engine has registered its types", func() bool {
			return strings.Contains(weir(t, url, "types", "--namespace", namespace), "read_file")
		})
		id := strings.TrimSpace(weir(t, url, "create", "read_file", "--args", `{"path":"a"}`, "--namespace", namespace))
		enginetest.Until(t, "the job of "+namespace+" says "+c.want, func() bool {
			return strings.Contains(weir(t, url, append(strings.Fields(strings.Replace(c.look, "ID", id, 1)), "--namespace", namespace)...), c.want)
		})
	}
}

// TestServeTokens: a token lets in whom it is for, until it is revoked.
func TestServeTokens(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	address := servedAt(t, "--redis", url, "--tokens", "--no-engine")
	ask := func(token, method, path string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, address+path, nil)
		enginetest.Check(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		enginetest.Check(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	get := func(token string) int { return ask(token, http.MethodGet, "/v1/me") }
	var made tokenView
	if err := json.Unmarshal([]byte(weir(t, url, "token", "create", "--role", "read", "--name", "ci", "--ttl", "1d", "-o", "json")), &made); err != nil {
		t.Fatal(err)
	}
	plain := strings.TrimSpace(weir(t, url, "token", "create", "--role", "admin", "--tenant", "other"))
	if got := []int{get(made.Token), get(plain), get("x")}; got[0] != 200 || got[1] != 200 || got[2] != 401 {
		t.Errorf("statuses %v", got)
	}
	if got := ask(made.Token, http.MethodPost, "/v1/queues/default/pause"); got != http.StatusForbidden {
		t.Errorf("a reader who pauses a queue: %d", got)
	}
	if got := weir(t, url, "audit"); !strings.Contains(got, "pause-queue") || !strings.Contains(got, "ci") || strings.Contains(got, "/v1/me") {
		t.Errorf("audit:\n%s", got)
	}
	schema := schemaOf(t)
	for name, line := range map[string][]string{"tokens": {"token", "list"}, "audit": {"audit"}} {
		out := weir(t, url, append(line, "-o", "json")...)
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err != nil || schema(name).Validate(v) != nil {
			t.Errorf("weir %q: %v, %v\n%s", line, err, schema(name).Validate(v), out)
		}
	}
	list := weir(t, url, "token", "list")
	if !strings.Contains(list, made.ID) || strings.Contains(list, made.Token) || !strings.Contains(list, "other") {
		t.Errorf("list:\n%s", list)
	}
	weir(t, url, "token", "revoke", made.ID)
	for started := time.Now(); get(made.Token) != 401; time.Sleep(50 * time.Millisecond) {
		if time.Since(started) > time.Minute {
			t.Fatal("a token that was revoked is good for a minute")
		}
	}
}

// What is wrong with the flags of weir serve is said before an address is taken: also where that is in use.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"serve", "--addr", "0.0.0.0:0"}, exitUsage, "--tokens"},
		{[]string{"serve", "--addr", "8080"}, exitUsage, "HOST:PORT"},
		{[]string{"serve", "--tls-cert", "x.pem"}, exitUsage, "--tls-key"},
		{[]string{"serve", "--tls-cert", "x.pem", "--tls-key", "y.pem"}, exitUsage, "reading --tls-cert and --tls-key: open x.pem"},
		{[]string{"serve", "--addr", "127.0.0.1:99999"}, exitUsage, "--addr 127.0.0.1:99999: a port is a number up to 65535"},
		{[]string{"serve", "--host", "https://weir.example.com"}, exitUsage, "--host https://weir.example.com: give the name alone, like weir.example.com"},
		{[]string{"serve", "--journal", "/proc/x"}, exitUsage, "--journal /proc/x"},
		{[]string{"serve", "--max-body", "0"}, exitUsage, "--max-body"},
		{[]string{"serve", "--max-rate", "-1"}, exitUsage, "--max-rate"},
		{[]string{"serve", "--max-pending", "0"}, exitUsage, "--max-pending"},
		{[]string{"serve", "--oidc-issuer", "https://login.example.com"}, exitUsage, "--oidc-audience"},
		{[]string{"serve", "--oidc-audience", "weir"}, exitUsage, "--oidc-issuer"},
		{[]string{"serve", "--oidc-issuer", "http://login.example.com", "--oidc-audience", "weir"}, exitUsage, "https"},
		{[]string{"token", "create"}, exitUsage, "--role"},
		{[]string{"token", "create", "--role", "reed"}, exitUsage, `did you mean "read"`},
		{[]string{"token", "create", "--role", "read", "--tenant", "A B"}, exitUsage, "namespace"},
		{[]string{"token", "revoke", "nobody"}, exitNotFound, "nobody"},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), append(c.args, "--redis", url), &out, &out); code != c.code || !strings.Contains(out.String(), c.says) {
			t.Errorf("weir %q: code %d, %s", c.args, code, out.String())
		}
	}
}
