package runner_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
)

// TestM23WhatAnAnswerOverHTTPSays of one payload, and of several.
func TestM23WhatAnAnswerOverHTTPSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n      int
		status int
		body   string
		want   string // results, with | between
	}{
		{1, 200, "100 apples", `200 "100 apples"`},
		{1, 200, "150 apples\nand pears\n", `200 "150 apples\nand pears"`},
		{1, 200, "404\nmore", `200 "404\nmore"`},
		{1, 200, "404\n", `404`},
		{1, 200, `200 {"n":1}`, `200 {"n":1}`},
		{1, 200, "200 150", `200 150`},
		{1, 200, "hello\nJ: t|x\n404\n", `404  hello,J: t|x`},
		{1, 404, "200\n", `404 200`},
		{1, 200, "", `200`},
		{2, 404, "gone", `404 "gone"|404 "gone"`},
		{2, 200, "a\n200 one apple\n404\n", `200 "one apple" a|404`},
		{2, 503, "200\n200\n", `500|500`},
		{2, 200, "200\n", `500|500`},
		{1, 429, "slow down", `199`},
		{1, 408, "", `199`},
		{1, 200, "429", `199`},
		{2, 429, "slow down", `199|199`},
		{2, 200, "200\n429 slow down\n", `200|199`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = fmt.Fprint(w, c.body)
		}))
		h := stored("t", handler.Definition{Lang: handler.HTTP, Body: server.URL, Options: handler.Options{Batch: 10}})
		var got []string
		for _, r := range do(t, newPool(t, nil), h, []string{"a", "b"}[:c.n]...) {
			got = append(got, told(r))
		}
		server.Close()
		if strings.Join(got, "|") != c.want {
			t.Errorf("%d payloads, status %d, body %q: got %q, want %q", c.n, c.status, c.body, got, c.want)
		}
	}
}

// TestAnswersOverHTTPAreReasons: what is not done has the status, and the beginning of the body or of what is behind the status of its line, as one line.
func TestAnswersOverHTTPAreReasons(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 600)
	for _, c := range []struct {
		n      int
		status int
		body   string
		want   string
	}{
		{1, 404, "no such\n  order\n", "failed 404: the answer has status 404: no such order"},
		{1, 503, "<html>\n<h1>Out of order</h1>", "error 503: the answer has status 503: <html> <h1>Out of order</h1>"},
		{1, 429, "slow down", "retry 199: the answer has status 429: slow down"},
		{1, 500, "", "error 500: the answer has status 500"},
		{1, 500, long, "error 500: the answer has status 500: " + long[:1024] + "…"},
		{1, 200, `500 "no ink"`, `error 500: the answer has status 500: "no ink"`},
		{2, 502, "bad gateway", "error 500: the answer has status 502: bad gateway"},
		{2, 400, "no such order", "failed 400: the answer has status 400: no such order"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = fmt.Fprint(w, c.body)
		}))
		h := stored("t", handler.Definition{Lang: handler.HTTP, Body: server.URL, Options: handler.Options{Batch: 10}})
		for _, r := range do(t, newPool(t, nil), h, []string{"a", "b"}[:c.n]...) {
			if got := handler.FailureText(handler.CodeOf(r.Status), r.Status, r.Error); got != c.want {
				t.Errorf("%d payloads, status %d, body %.20q: got %q, want %q", c.n, c.status, c.body, got, c.want)
			}
		}
		server.Close()
	}
}

// TestRetryAfter: the next try comes no earlier than an answer asks for.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	var asked []time.Time
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked = append(asked, time.Now()); len(asked) == 1 {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	h := newHouse(t, map[string]handler.Definition{"t": {Lang: handler.HTTP, Body: server.URL, Options: quick(2)}})
	h.ended(h.add("t", "x"))
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 2 || asked[1].Sub(asked[0]) < 1900*time.Millisecond {
		t.Errorf("asked at %v", asked)
	}

	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, "-1": 0, "soon": 0, "1.5": 0, "4294967295": 24 * time.Hour, "99999999999999999999": 0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:00:00 GMT": 0, "Fri, 09 Jan 2026 03:04:05 GMT": 24 * time.Hour,
	} {
		if got := runner.RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("Retry-After %q: %s, want %s", text, got, want)
		}
	}
}
