package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/redisstore/embedded"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// service is a server of the API over a real connection, with an engine of components beside it.
type service struct {
	*testing.T
	api   *api.Server
	store *redisstore.Store
	url   string
	token string
}

// serve starts one on a Redis, in a namespace of its own.
func serve(t *testing.T, redisURL string, change func(*api.Config), more ...worker.Worker) *service {
	t.Helper()
	store := open(t, redisURL, redistest.Namespace(t))
	workers := append(append(component.All(component.Policy{}), trigger.New()), more...)
	cfg := api.Config{Store: store, Version: "test"}
	for _, w := range workers {
		cfg.Prototypes = append(cfg.Prototypes, w)
	}
	if change != nil {
		change(&cfg)
	}
	server, err := api.New(cfg)
	enginetest.Check(t, err)
	enginetest.Serve(t, worker.Config{Store: store, Workers: workers})
	enginetest.Until(t, "the engine starts", func() bool {
		engines, err := store.Engines(t.Context())
		return err == nil && len(engines) == 1 // it tells so behind its types
	})
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return &service{T: t, api: server, store: store, url: web.URL}
}

func open(t *testing.T, redisURL, namespace string) *redisstore.Store {
	t.Helper()
	return enginetest.Open(t, redisstore.Config{URL: redisURL, Embedded: embedded.Start, Namespace: namespace, Shards: 2})
}

// answer is what came back.
type answer struct {
	*testing.T
	status int
	header http.Header
	body   []byte
	path   string
}

// ask sends a request; a body that is a string is sent as it is, anything else as JSON.
func (s *service) ask(method, path string, body any, header ...string) *answer {
	s.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			s.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, in)
	if err != nil {
		s.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Timeout: time.Minute, Transport: http.DefaultTransport}).Do(r)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	return &answer{s.T, resp.StatusCode, resp.Header, raw, path}
}

// is demands a status, and returns the body read into v unless that is nil.
func (a *answer) is(status int, v any) *answer {
	a.Helper()
	if a.status != status {
		a.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if v != nil {
		if err := json.Unmarshal(a.body, v); err != nil {
			a.Fatalf("%v: %s", err, a.body)
		}
	}
	return a
}

// refuses demands a problem with a code whose detail has a text; of the routes under /jobs that is as JSON:API has it.
func (a *answer) refuses(status int, code, detail string) {
	a.Helper()
	var p api.Problem
	if strings.HasPrefix(a.path, "/jobs") {
		var all api.ErrorDocument
		if a.is(status, &all); len(all.Errors) == 0 || a.header.Get("Content-Type") != "application/vnd.api+json" {
			a.Fatalf("Content-Type %q, %s", a.header.Get("Content-Type"), a.body)
		}
		one := all.Errors[0]
		if one.Code != code || one.Status != strconv.Itoa(status) || !strings.Contains(one.Detail, detail) {
			a.Fatalf("error %+v, want code %s and a detail with %q", one, code, detail)
		}
		return
	}
	a.is(status, &p)
	if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
		a.Errorf("Content-Type %q of a problem", kind)
	}
	if p.Code != code || p.Status != status || !strings.Contains(p.Detail, detail) {
		a.Fatalf("problem %+v, want code %s and a detail with %q", p, code, detail)
	}
}
