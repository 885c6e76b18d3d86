package component_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// httpWorker is the prototype of HTTPRequest under a policy.
func httpWorker(p HTTPPolicy) worker.Worker {
	for _, c := range Components(Policy{HTTP: p}) {
		if c.JobType() == "http_request" {
			return c
		}
	}
	return nil
}

// ask makes requests under a policy and returns the responses, the rejected and the error.
func ask(t *testing.T, p HTTPPolicy, params *HTTPRequest, in ...string) (stream, string) {
	t.Helper()
	e := weirtest.New(t, httpWorker(p))
	h := e.StartWorker(params)
	e.Feed(h, "in", raws(in)...)
	e.Advance(time.Minute)
	failure := ""
	if fs := e.Failures(h); len(fs) > 0 {
		failure = fs[0].Error
	}
	return outputs(t, h, "out", "err"), failure
}

var local = HTTPPolicy{AllowPrivate: true}

// echo answers with what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("X-Test", "yes")
	w.Header()["Date"] = nil
	switch r.URL.Path {
	case "/json":
		w.Header().Set("Content-Type", "application/problem+json")
		fmt.Fprintf(w, `{"n":12345678901234567890,"k":%q}`, r.Header.Get("K"))
	case "/binary":
		_, _ = w.Write([]byte{0xff, 0})
	case "/large":
		_, _ = w.Write(make([]byte, 100_000))
	case "/missing":
		http.Error(w, "not here", http.StatusNotFound)
	case "/slow":
		<-r.Context().Done()
	default:
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), body)
	}
}

func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(s.Close) // after the parallel tests
	for name, c := range map[string]struct {
		params   HTTPRequest
		in       string
		status   int
		body     string
		fail     string
		rejected bool
	}{
		"get":         {in: `{"url":"` + s.URL + `/a"}`, status: 200, body: `"GET /a  "`},
		"post":        {in: `{"url":"` + s.URL + `/a","body":"<x>"}`, status: 200, body: `"POST /a text/plain; charset=utf-8 <x>"`},
		"params":      {params: HTTPRequest{URL: s.URL + "/p", Method: "PUT", Body: json.RawMessage(`{"a":1}`)}, in: `{}`, status: 200, body: `"PUT /p application/json {\"a\":1}"`},
		"headers":     {params: HTTPRequest{Headers: map[string]string{"K": "a", "content-type": "x/y"}}, in: `{"url":"` + s.URL + `/json","headers":{"k":"b"}}`, status: 200, body: `{"n":12345678901234567890,"k":"b"}`},
		"binary":      {in: `{"url":"` + s.URL + `/binary"}`, status: 200, body: `null`},
		"status":      {in: `{"url":"` + s.URL + `/missing"}`, status: 404, body: `"not here\n"`},
		"strict":      {params: HTTPRequest{Strict: true}, in: `{"url":"` + s.URL + `/missing"}`, fail: "/missing answers 404 Not Found: not here"},
		"large":       {params: HTTPRequest{MaxBody: 1000}, in: `{"url":"` + s.URL + `/large"}`, fail: "more than 1000 bytes, and max_body allows no more"},
		"slow":        {params: HTTPRequest{Timeout: Duration(20 * time.Millisecond)}, in: `{"url":"` + s.URL + `/slow"}`, fail: "no end after 20ms"},
		"to err":      {params: HTTPRequest{OnError: OnErrorPort}, in: `{"url":"ftp://x"}`, fail: "use http://host/", rejected: true},
		"no url":      {params: HTTPRequest{OnError: OnErrorPort}, in: `{}`, fail: "url is missing", rejected: true},
		"no request":  {in: `{"uri":"x"}`, fail: `unknown field \"uri\"`},
		"own header":  {in: `{"url":"` + s.URL + `","headers":{"host":"x"}}`, fail: "header host follows from the request"},
		"bad header":  {in: `{"url":"` + s.URL + `","headers":{"a b":"x"}}`, fail: "cannot be the name of a header"},
		"two headers": {in: `{"url":"` + s.URL + `","headers":{"a":"x\r\nB: y"}}`, fail: "header a has characters that are not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, failure := ask(t, local, &c.params, c.in)
			if c.rejected {
				failure = strings.Join(got["err"], "")
			}
			if c.fail != "" || failure != "" {
				if c.fail == "" || !strings.Contains(failure, c.fail) && !strings.Contains(fmt.Sprintf("%q", failure), c.fail) {
					t.Errorf("failed with %q, want %q", failure, c.fail)
				}
				return
			}
			var res Response
			if len(got["out"]) != 1 || json.Unmarshal([]byte(got["out"][0]), &res) != nil {
				t.Fatalf("got %v", got)
			}
			if res.Status != c.status || string(res.Body) != c.body || res.Headers["x-test"] != "yes" || (res.Base64 == "/wA=") != (name == "binary") {
				t.Errorf("got %+v with body %s", res, res.Body)
			}
		})
	}
}

// TestHTTPGuard: by default no request gets to this machine, however its address is
// written and whoever names it.
func TestHTTPGuard(t *testing.T) {
	t.Parallel()
	asked := false
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = true
	}))
	t.Cleanup(s.Close) // after the parallel tests
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "2130706433", "0x7f000001", "127.1", "017700000001",
		"169.254.169.254", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "[fe80::1]", "[fc00::1]", "224.0.0.1", "255.255.255.255", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			got, _ := ask(t, HTTPPolicy{}, &HTTPRequest{OnError: OnErrorPort, Timeout: Duration(5 * time.Second)}, `{"url":"http://`+host+port+`/"}`)
			if len(got["err"]) != 1 || len(got["out"]) != 0 {
				t.Fatalf("got %v", got)
			}
			// Names that only some resolvers take for an address may be unknown instead.
			if e := got["err"][0]; !strings.Contains(e, "not allowed by the policy") && !strings.Contains(e, "no such host") && !strings.Contains(e, "lookup") {
				t.Errorf("got %s", e)
			}
		})
	}
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if asked {
			t.Error("the server was asked")
		}
	})
}

// TestHTTPRedirects: the policy holds for each hop, and keys stay with whom they are for.
func TestHTTPRedirects(t *testing.T) {
	t.Parallel()
	var got http.Header
	last := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer last.Close()
	hops := 0
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/out":
			http.Redirect(w, r, last.URL, http.StatusTemporaryRedirect)
		case "/host":
			http.Redirect(w, r, strings.Replace(last.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
		case "/scheme":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			hops++
			http.Redirect(w, r, "/again", http.StatusFound)
		}
	}))
	defer first.Close()
	key := &HTTPRequest{Headers: map[string]string{"X-Api-Key": "secret", "Authorization": "secret"}}
	if _, failure := ask(t, local, key, `{"url":"`+first.URL+`/out"}`); failure != "" || got.Get("X-Api-Key") != "" || got.Get("Authorization") != "" {
		t.Errorf("failed with %q; the other server got %v", failure, got)
	}
	if _, failure := ask(t, HTTPPolicy{AllowPrivate: true, Hosts: []string{"127.0.0.1"}}, &HTTPRequest{}, `{"url":"`+first.URL+`/host"}`); !strings.Contains(failure, `host "localhost" is not in the list`) {
		t.Errorf("a redirect to another host: %q", failure)
	}
	if _, failure := ask(t, local, &HTTPRequest{}, `{"url":"`+first.URL+`/scheme"}`); !strings.Contains(failure, "unsupported protocol scheme") {
		t.Errorf("a redirect to a file: %q", failure)
	}
	if _, failure := ask(t, local, &HTTPRequest{MaxRedirects: 2}, `{"url":"`+first.URL+`/"}`); !strings.Contains(failure, "more than 2 redirects") || hops%3 != 0 {
		t.Errorf("endless redirects: %q after %d", failure, hops)
	}
	if out, failure := ask(t, local, &HTTPRequest{MaxRedirects: -1}, `{"url":"`+first.URL+`/"}`); failure != "" || !strings.HasPrefix(out["out"][0], `{"status":302,`) {
		t.Errorf("no redirects: %v, %q", out, failure)
	}
}

func TestHTTPHosts(t *testing.T) {
	t.Parallel()
	for host, allowed := range map[string]bool{"api.example.org": true, "API.example.org.": true, "x.test.example": true, "test.example": false, "example.org": false, "evilapi.example.org": false} {
		p := HTTPPolicy{Hosts: []string{"api.example.org", ".test.example"}}
		got, _ := ask(t, p, &HTTPRequest{OnError: OnErrorPort, Timeout: Duration(time.Second)}, `{"url":"http://`+host+`:1/"}`)
		if refused := strings.Contains(strings.Join(got["err"], ""), "is not in the list"); refused == allowed {
			t.Errorf("%s: %v", host, got)
		}
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "2606:4700::1111": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "::ffff:10.0.0.1": false, "100.127.255.255": false, "100.128.0.1": true, "192.0.0.1": false,
		"198.19.0.1": false, "203.0.113.9": false, "240.0.0.1": false, "fe80::1%eth0": false, "fec0::1": false, "ff02::1": false,
		"2001::1": false, "2001:db8::1": false, "64:ff9b::101:101": false, "::1.1.1.1": false, "2002:0101:0101::1": false,
	} {
		if got := Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// TestHTTPRepeats: a request that is made again has the key that it had, the next one
// another, and what was answered is not asked again.
func TestHTTPRepeats(t *testing.T) {
	t.Parallel()
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.URL.Path+r.Header.Get("Idempotency-Key"))
		if len(keys) == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	out, _ := ask(t, local, &HTTPRequest{Strict: true, URL: s.URL}, `{"url":"`+s.URL+`/a"}`, `{"url":"`+s.URL+`/b"}`, `{"url":"`+s.URL+`/c"}`)
	if len(keys) != 4 || len(out["out"]) != 3 || keys[0][:2] != "/a" || keys[1] != keys[2] || keys[2][2:] == keys[3][2:] || keys[0][2:] == keys[1][2:] {
		t.Errorf("requests %q, responses %v", keys, out)
	}
}
