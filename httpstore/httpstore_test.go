package httpstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/httpstore"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// Echo is a worker that no engine runs here.
type Echo struct {
	In  port.In[int]  `port:"in"`
	Out port.Out[int] `port:"out"`
}

// served is a namespace with a server before it.
type served struct {
	*testing.T
	store  *redisstore.Store
	server *httptest.Server
}

func serve(t *testing.T, configure func(*api.Config)) *served {
	t.Helper()
	store := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t), Shards: 2})
	cfg := api.Config{Store: store}
	if configure != nil {
		configure(&cfg)
	}
	handler, err := api.New(cfg)
	enginetest.Check(t, err)
	s := &served{T: t, store: store, server: httptest.NewServer(handler)}
	t.Cleanup(func() {
		_ = handler.Close()
		s.server.Close()
	})
	return s
}

// open opens the store behind the server.
func (s *served) open(token string) *httpstore.Store {
	s.Helper()
	store, err := httpstore.Open(s.Context(), httpstore.Config{URL: s.server.URL, Token: token})
	enginetest.Check(s, err)
	s.Cleanup(func() { _ = store.Close() })
	return store
}

func (s *served) token(role redisstore.TokenRole, tenant string) string {
	s.Helper()
	text, _, err := s.store.CreateToken(s.Context(), "ann", role, tenant, 0)
	enginetest.Check(s, err)
	return text
}

// Each call asks for a token, and for one of a role that may make it; only its own tenant's jobs are in its reach.
func TestRolesAndTenants(t *testing.T) {
	t.Parallel()
	other := redistest.Namespace(t)
	s := serve(t, func(c *api.Config) {
		c.Tokens = true
		c.Open = func(ctx context.Context, namespace string) (*redisstore.Store, error) {
			return redisstore.Open(ctx, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: namespace, Shards: 1})
		}
	})
	h, err := client.New(s.store).Start(t.Context(), job.Single(&Echo{}, ""), job.Alias("secret"))
	enginetest.Check(s, err)
	info, err := h.Info(t.Context())
	enginetest.Check(s, err)
	for _, c := range storecall.All() {
		for _, role := range append(api.Roles(), "") {
			token := ""
			if role != "" {
				token = s.token(role, "")
			}
			status, _ := s.post(c.Name, token, []byte{0xff}) // it is no request
			want := http.StatusUnprocessableEntity
			if role == "" {
				want = http.StatusUnauthorized
			} else if role != c.Role && role != redisstore.TokenAdmin && c.Role != redisstore.TokenRead {
				want = http.StatusForbidden
			}
			if status != want && (want != http.StatusUnprocessableEntity || status == http.StatusUnauthorized || status == http.StatusForbidden) {
				t.Errorf("%s, which needs %s, as %q: %d, want %d", c.Name, c.Role, role, status, want)
			}
		}
	}
	theirs := s.open(s.token(redisstore.TokenAdmin, other))
	if theirs.Namespace() != other {
		t.Errorf("namespace %s, want %s", theirs.Namespace(), other)
	}
	client := client.New(theirs)
	if _, err := client.Find(t.Context(), "secret"); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("another tenant's job: %v", err)
	}
	if err := client.At(h.ID()).Write(t.Context(), "in", 1); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("a write to another tenant's job: %v", err)
	}
	if err := client.At(h.ID()).Terminate(t.Context()); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("terminating another tenant's job: %v", err)
	}
	after, err := h.Info(t.Context())
	enginetest.Check(s, err)
	if after.Version != info.Version || after.Status != info.Status {
		t.Errorf("another tenant changed the job: %+v", after)
	}
	_, err = httpstore.Open(t.Context(), httpstore.Config{URL: s.server.URL})
	if !errors.Is(err, job.ErrForbidden) || !strings.Contains(err.Error(), "weir token create") {
		t.Errorf("without a token: %v", err)
	}
}

func (s *served) post(call, token string, body []byte) (int, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.server.URL+storecall.Path+call, strings.NewReader(string(body)))
	enginetest.Check(s, err)
	req.Header.Set("Content-Type", storecall.ContentType)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(req)
	enginetest.Check(s, err)
	defer answer.Body.Close()
	var p api.Problem
	_ = json.NewDecoder(answer.Body).Decode(&p)
	return answer.StatusCode, p.Detail
}

// With tokens, who acts is whom the token names, whatever the client says; the audit log has it.
func TestWhoActs(t *testing.T) {
	t.Parallel()
	s := serve(t, func(c *api.Config) { c.Tokens = true })
	cl := client.New(s.open(s.token(redisstore.TokenOperate, "")))
	ctx := job.WithContext(t.Context(), port.Context{port.ContextBy: "mallory", "trip": json.Number("12345678901234567890")})
	h, err := cl.Start(ctx, job.Single(&Echo{}, ""), job.By("mallory"))
	enginetest.Check(s, err)
	info, err := h.Info(ctx)
	enginetest.Check(s, err)
	if info.By != "ann" {
		t.Errorf("created by %q", info.By)
	}
	enginetest.Check(s, h.Write(ctx, "in", 1))
	messages, err := h.Messages(ctx, port.Input, "in", 10)
	enginetest.Check(s, err)
	if len(messages) != 1 || messages[0].Context[port.ContextBy] != "ann" || messages[0].Context["trip"] != json.Number("12345678901234567890") {
		t.Errorf("messages: %+v", messages)
	}
	log, err := client.New(s.store).At(h.ID()).Trace(ctx, port.Input, "in", 0)
	enginetest.Check(s, err)
	if !strings.Contains(fmt.Sprintf("%+v", log), "ann") || strings.Contains(fmt.Sprintf("%+v", log), "mallory") {
		t.Errorf("the log says %+v", log)
	}
	acts, err := s.store.AuditLog(ctx, 10)
	enginetest.Check(s, err)
	if len(acts) < 2 || !slices.ContainsFunc(acts, func(e redisstore.AuditEntry) bool {
		return e.Operation == "store-write" && e.Principal == "ann" && e.On == string(h.ID())
	}) {
		t.Errorf("audit log: %+v", acts)
	}
}

// Errors say what was wrong and wrap what they wrap beside Redis.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c := client.New(s.open(""))
	ctx := t.Context()
	if _, err := c.Find(ctx, "nobody"); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("no job: %v", err)
	}
	h, err := c.Start(ctx, job.Single(&Echo{}, ""))
	enginetest.Check(s, err)
	direct := client.New(s.store).At(h.ID())
	for name, act := range map[string]func(*client.Handle) error{
		"no port": func(h *client.Handle) error { return h.Write(ctx, "inn", 1) },
		"status":  func(h *client.Handle) error { return h.Delete(ctx) },
		"unlock":  func(h *client.Handle) error { return h.Unlock(ctx, "x") },
	} {
		far, near := act(h), act(direct)
		if far == nil || near == nil || far.Error() != near.Error() || api.KindOf(far) != api.KindOf(near) {
			t.Errorf("%s:\n%v\nbut beside Redis\n%v", name, far, near)
		}
	}
	if _, err := httpstore.Open(ctx, httpstore.Config{URL: "http://127.0.0.1:1"}); !errors.Is(err, job.ErrUnreachable) || !strings.Contains(err.Error(), "http://127.0.0.1:1") {
		t.Errorf("nobody is there: %v", err)
	}
	for _, bad := range []httpstore.Config{{}, {URL: "redis://x"}, {URL: "http://"}, {URL: "http://u:secret@x"}, {URL: "http://x?token=secret"}, {URL: "http://x/%zzsecret"}, {URL: "http://x", Token: "a secret"}} {
		if _, err := httpstore.Open(ctx, bad); !errors.Is(err, job.ErrConfig) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello")) }))
	defer page.Close()
	if _, err := httpstore.Open(ctx, httpstore.Config{URL: page.URL}); err == nil || !strings.Contains(err.Error(), "check its URL") {
		t.Errorf("a page: %v", err)
	}
	if _, text := s.post("creat", "", nil); !strings.Contains(text, "create") {
		t.Errorf("an unknown call: %s", text)
	}
}

// An ID that no job can have, and a limit below zero, are the same errors behind a server and beside Redis.
func TestBadIDsAndLimits(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	ctx := t.Context()
	far, near := client.New(s.open("")), client.New(s.store)
	h, err := near.Start(ctx, job.Single(&Echo{}, ""))
	enginetest.Check(s, err)
	for id, acts := range map[job.ID]map[string]func(*client.Handle) error{
		"garbage": {
			"Info":      func(h *client.Handle) error { _, err := h.Info(ctx); return err },
			"Tree":      func(h *client.Handle) error { _, err := h.Tree(ctx); return err },
			"State":     func(h *client.Handle) error { _, err := h.State(ctx); return err },
			"Logs":      func(h *client.Handle) error { _, err := h.Logs(ctx, 1); return err },
			"Children":  func(h *client.Handle) error { _, err := h.Children(ctx); return err },
			"Write":     func(h *client.Handle) error { return h.Write(ctx, "in", 1) },
			"Run":       func(h *client.Handle) error { return h.Run(ctx) },
			"Terminate": func(h *client.Handle) error { return h.Terminate(ctx) },
			"SetState":  func(h *client.Handle) error { return h.SetState(ctx, map[string]any{"a": 1}) },
			"AddAlias":  func(h *client.Handle) error { return h.AddAlias(ctx, "one") },
			"Delete":    func(h *client.Handle) error { return h.Delete(ctx) },
			"Retry":     func(h *client.Handle) error { return h.Retry(ctx) },
			"Lock":      func(h *client.Handle) error { _, err := h.Lock(ctx, time.Minute, 0); return err },
		},
		h.ID(): {
			"Logs":     func(h *client.Handle) error { _, err := h.Logs(ctx, -1); return err },
			"Runs":     func(h *client.Handle) error { _, err := h.Runs(ctx, -1); return err },
			"Messages": func(h *client.Handle) error { _, err := h.Messages(ctx, port.Input, "in", -1); return err },
			"Take":     func(h *client.Handle) error { _, err := h.Take(ctx, port.Input, "in", -1); return err },
			"Last": func(h *client.Handle) error {
				r, err := h.OpenLog(ctx, true)
				if err == nil {
					_, err = r.Last(ctx, -1, time.Time{})
				}
				return err
			},
		},
	} {
		want := []string{"value"}
		if id == "garbage" {
			want = []string{"id", "not_found"}
		}
		for name, act := range acts {
			for where, client := range map[string]*client.Client{"behind a server": far, "beside Redis": near} {
				if err := act(client.At(id)); err == nil || !slices.Equal(storecall.RefusalOf(err).Wraps, want) {
					t.Errorf("%s of job %s %s: %v, want %q", name, id, where, err, want)
				}
			}
		}
	}
	for name, client := range map[string]*client.Client{"behind a server": far, "beside Redis": near} {
		if all, err := client.At(h.ID()).Logs(ctx, 0); err != nil || len(all) > 0 {
			t.Errorf("no entries %s: %v, %v", name, all, err)
		}
	}
}

// A list that breaks off is an error, and no short list; one that nobody reads to its end ends at the server.
func TestStreams(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c := client.New(s.open(""))
	ctx := t.Context()
	for range 300 {
		_, err := c.Start(ctx, job.Single(&Echo{}, ""))
		enginetest.Check(s, err)
	}
	n := 0
	for _, err := range c.Jobs(ctx, job.Filter{}) {
		enginetest.Check(s, err)
		n++
	}
	if n != 300 {
		t.Errorf("%d jobs, want 300", n)
	}
	for _, err := range c.Jobs(ctx, job.Filter{}) {
		enginetest.Check(s, err)
		break
	}
	target, err := url.Parse(s.server.URL)
	enginetest.Check(s, err)
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host, r.RequestURI, r.Host = target.Scheme, target.Host, "", ""
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		raw := make([]byte, 3000)
		k, _ := answer.Body.Read(raw)
		_, _ = w.Write(raw[:k])
	}))
	defer cut.Close()
	broken, err := httpstore.Open(ctx, httpstore.Config{URL: cut.URL})
	enginetest.Check(s, err)
	var last error
	for _, last = range client.New(broken).Jobs(ctx, job.Filter{}) {
		if last != nil {
			break
		}
	}
	if !errors.Is(last, job.ErrUnreachable) || !strings.Contains(last.Error(), "broke off") {
		t.Errorf("a list that breaks off: %v", last)
	}
}

// Listeners hear what is published, until they stop or the server does.
func TestListen(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	store := s.open("")
	ctx, cancel := context.WithCancel(t.Context())
	heard, over := make(chan string, 100), make(chan error, 1)
	go func() {
		over <- store.Listen(ctx, "/news", func(item json.RawMessage) { heard <- string(item) })
	}()
	deadline := time.After(30 * time.Second)
	for first := true; first; {
		enginetest.Check(s, store.Publish(ctx, "/news", []json.RawMessage{json.RawMessage(`{"a": 1}`)}))
		select {
		case text := <-heard:
			if first = false; text != `{"a": 1}` {
				t.Errorf("heard %s", text)
			}
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatal("nothing is heard")
		}
	}
	cancel()
	if err := <-over; err != nil {
		t.Errorf("it was stopped: %v", err)
	}
	if err := store.Listen(t.Context(), "news", func(json.RawMessage) {}); !errors.Is(err, port.ErrName) {
		t.Errorf("a bad channel: %v", err)
	}
}

// A lock that was taken through a server is prolonged and ended through it, by whoever has its token.
func TestLocks(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	ctx := t.Context()
	h, err := client.New(s.open("")).Start(ctx, job.Single(&Echo{}, ""))
	enginetest.Check(s, err)
	lock, err := h.Lock(ctx, time.Second, 0)
	enginetest.Check(s, err)
	enginetest.Check(s, lock.Refresh(ctx, time.Hour))
	held, ok, err := client.New(s.store).At(h.ID()).Locked(ctx)
	enginetest.Check(s, err)
	if !ok || time.Until(held.Until) < 30*time.Minute {
		t.Errorf("the lock is held until %s", held.Until)
	}
	if _, err := h.Lock(ctx, time.Second, 0); !errors.Is(err, job.ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	enginetest.Check(s, lock.Release(ctx))
	if err := lock.Refresh(ctx, time.Hour); !errors.Is(err, job.ErrLocked) {
		t.Errorf("it was released: %v", err)
	}
}
