package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// payloadOf waits for the job of a payload, and returns its type and message.
func (s *service) payloadOf(id job.ID) (typ, message string) {
	s.Helper()
	h := client.New(s.store).At(id)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		info, err := h.Info(s.Context())
		if err == nil {
			all, err := h.Messages(s.Context(), port.Input, "in", 5)
			if err != nil || len(all) != 1 {
				s.Fatalf("job %s has messages %v, %v", id, all, err)
			}
			return info.Type, string(all[0].Data)
		}
		if time.Now().After(deadline) {
			s.Fatalf("job %s: %v", id, err)
		}
	}
}

func TestM15AddPayloads(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", t.TempDir()} {
		t.Run(fmt.Sprintf("journal=%v", dir != ""), func(t *testing.T) {
			t.Parallel()
			s := serve(t, redistest.SharedRedis(t), func(c *api.Config) { c.Journal = dir })
			var added api.AddedPayloads
			s.ask("POST", "/acme/job/mail/add", "l1\nl2\r\n\r\n\n# no payload\na|b|c").is(http.StatusOK, &added)
			if added.Count != 3 || len(added.IDs) != 3 {
				t.Fatalf("%+v", added)
			}
			for i, want := range []string{"l1", "l2", "a|b|c"} {
				if typ, got := s.payloadOf(added.IDs[i]); typ != "acme-mail" || got != `"`+want+`"` {
					t.Errorf("payload %d became a job %s with %s", i, typ, got)
				}
			}
			for _, nothing := range []string{"# nothing\n\n", "\n", ""} {
				if s.ask("POST", "/acme/job/mail/add", nothing).is(http.StatusOK, &added); added.Count != 0 || added.IDs == nil {
					t.Errorf("of %q: %+v", nothing, added)
				}
			}
			s.ask("POST", "/acme/job/mail/add", "ok\nno \xff\n").refuses(http.StatusUnprocessableEntity, "usage", "line 2 of the body is not valid UTF-8")
			s.ask("POST", "/acme/job/mail/add", strings.Repeat("x", job.MaxMessage)).refuses(http.StatusRequestEntityTooLarge, "too_large", "line 1")
			s.ask("POST", "/acme-eu/job/mail/add", "x").refuses(http.StatusUnprocessableEntity, "usage", "{client}-{type}")
			s.ask("POST", "/acme/job/ma,il/add", "x").refuses(http.StatusUnprocessableEntity, "usage", "type")
			s.ask("GET", "/acme/job/mail/add", nil).refuses(http.StatusMethodNotAllowed, "no_route", "POST")
			s.ask("POST", "/acme/job/mail/ad", "x").refuses(http.StatusNotFound, "no_route", "there is nothing at /acme/job/mail/ad")
			var state api.JournalState
			if s.ask("GET", "/v1/journal", nil).is(http.StatusOK, &state); state.Enabled != (dir != "") || state.Enabled && (!state.Held || state.Moved != 3) {
				t.Errorf("the journal: %+v", state)
			}
		})
	}
}

// Of two servers one has a directory.
func TestM24JournalsHaveOneServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, redistest.SharedRedis(t), func(c *api.Config) { c.Journal = dir })
	if _, err := api.New(api.Config{Store: s.store, Journal: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a second server: %v", err)
	}
}

// With tokens the client is the tenant of the token.
func TestM28PayloadsStayInTheirTenant(t *testing.T) {
	t.Parallel()
	s, tenant, tokens := withTokens(t)
	s.token = tokens[redisstore.TokenAdmin]
	s.ask("POST", "/"+tenant+"/job/mail/add", "x").refuses(http.StatusForbidden, "forbidden", s.store.Namespace())
	var added api.AddedPayloads
	s.ask("POST", "/"+s.store.Namespace()+"/job/mail/add", "x").is(http.StatusOK, &added)
	if typ, _ := s.payloadOf(added.IDs[0]); typ != "mail" {
		t.Errorf("type %s", typ)
	}
}

// A journal that is full, and a disk that fails, refuse with when to try again.
func TestJournalRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := redistest.Start(t)
	s := serve(t, server.URL(), func(c *api.Config) { c.Journal, c.JournalLimit = dir, 32<<20 })
	server.Kill()
	body, accepted := strings.Repeat(strings.Repeat("x", 1<<16)+"\n", 100), 0
	for {
		a := s.ask("POST", "/acme/job/mail/add", body)
		if a.status == http.StatusOK {
			accepted++
			continue
		}
		a.refuses(http.StatusTooManyRequests, "full", "limit 33554432")
		if a.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
		break
	}
	if accepted < 4 {
		t.Errorf("%d requests were accepted", accepted)
	}
	server.Restart()
	deadline := time.Now().Add(time.Minute)
	for s.ask("POST", "/acme/job/mail/add", body).status != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("with Redis back there is no room")
		}
		time.Sleep(20 * time.Millisecond)
	}
	files, _ := filepath.Glob(filepath.Join(dir, s.store.Namespace(), "*.journal"))
	if raw, err := os.ReadFile(files[0]); err != nil || !strings.HasPrefix(string(raw), "#:Batch date=") {
		t.Errorf("the file begins with %.80s, %v", raw, err)
	}
}

// A journal with payloads that are left of another Redis is refused at the start.
func TestJournalOfAnotherRedis(t *testing.T) {
	t.Parallel()
	dir, namespace := t.TempDir(), redistest.Namespace(t)
	mine, other := redistest.Start(t), redistest.Start(t)
	store := open(t, mine.URL(), namespace)
	server, err := api.New(api.Config{Store: store, Journal: dir})
	if err != nil {
		t.Fatal(err)
	}
	arrived(t, store, accepted(t, server, "a\n"))
	mine.Kill()
	accepted(t, server, "b\n")
	var state api.JournalState
	for deadline := time.Now().Add(30 * time.Second); state.Problem == "" && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if err := json.Unmarshal(sent(t, server, "GET", "/v1/journal", "").Body.Bytes(), &state); err != nil {
			t.Fatal(err)
		}
	}
	if state.Problem == "" {
		t.Error("it does not say why it moves nothing")
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := api.New(api.Config{Store: open(t, other.URL(), namespace), Journal: dir}); !errors.Is(err, journal.ErrOther) || !errors.Is(err, job.ErrConfig) {
		t.Errorf("another Redis: %v", err)
	}
}

// sent asks a handler.
func sent(t *testing.T, h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// accepted sends payloads of type mail of client acme, and returns their IDs.
func accepted(t *testing.T, h http.Handler, body string) []job.ID {
	t.Helper()
	var added api.AddedPayloads
	got := sent(t, h, "POST", "/acme/job/mail/add", body)
	if err := json.Unmarshal(got.Body.Bytes(), &added); got.Code != http.StatusOK || err != nil || added.Count != strings.Count(body, "\n") {
		t.Fatalf("%d: %s, %v", got.Code, got.Body, err)
	}
	return added.IDs
}

// arrived waits until payloads are jobs.
func arrived(t *testing.T, store *redisstore.Store, ids []job.ID) {
	t.Helper()
	for _, id := range ids {
		_, err := client.New(store).At(id).Info(t.Context())
		for deadline := time.Now().Add(30 * time.Second); err != nil; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("job %s: %v", id, err)
			}
			_, err = client.New(store).At(id).Info(t.Context())
		}
	}
}

// RunWhile Redis has not answered yet payloads are accepted, and nothing else.
func TestWaiting(t *testing.T) {
	t.Parallel()
	dir, namespace := t.TempDir(), redistest.Namespace(t)
	w, err := api.NewWaiting(api.Config{Journal: dir}, namespace)
	if err != nil {
		t.Fatal(err)
	}
	ids := accepted(t, w, "l1\nl2\n")
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
		code               string
	}{
		{"GET", "/v1/jobs", "", nil, 503, "unavailable"},
		{"POST", "/acme/job/mail/add", "no \xff", nil, 422, "usage"},
		{"POST", "/acme-eu/job/mail/add", "x", nil, 422, "usage"},
		{"POST", "/acme/job/mail/add", strings.Repeat("x", 9<<20), nil, 413, "too_large"},
		{"POST", "/acme/job/mail/add", "x", []string{"Origin", "http://evil.example"}, 403, "forbidden"},
	} {
		var p api.Problem
		got := sent(t, w, c.method, c.path, c.body, c.header...)
		if err := json.Unmarshal(got.Body.Bytes(), &p); err != nil || got.Code != c.status || p.Code != c.code {
			t.Errorf("%s %s: %d %s, %v", c.method, c.path, got.Code, got.Body, err)
		}
		if (got.Code == http.StatusServiceUnavailable) != (got.Header().Get("Retry-After") == "1") {
			t.Errorf("%s %s: Retry-After %q", c.method, c.path, got.Header().Get("Retry-After"))
		}
	}
	if got := sent(t, w, "GET", "/", "", "Accept", "text/html,*/*"); got.Code != 503 || !strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") || !strings.Contains(got.Body.String(), `http-equiv="refresh"`) || got.Header().Get("Retry-After") != "1" {
		t.Errorf("a browser: %d %v %s", got.Code, got.Header(), got.Body)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	withTokens, err := api.NewWaiting(api.Config{Journal: t.TempDir(), Tokens: true}, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if got := sent(t, withTokens, "POST", "/"+namespace+"/job/mail/add", "x"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("with tokens: %d %s", got.Code, got.Body)
	}
	if err := withTokens.Close(); err != nil {
		t.Error(err)
	}
	if _, err := api.NewWaiting(api.Config{}, namespace); !errors.Is(err, job.ErrConfig) {
		t.Errorf("without a journal: %v", err)
	}
	store := open(t, redistest.SharedRedis(t), namespace)
	server, err := api.New(api.Config{Store: store, Journal: dir})
	if err != nil {
		t.Fatal(err)
	}
	arrived(t, store, ids)
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
