package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// A body that breaks off, or is none, is 400 and changes nothing.
func TestBrokenBodies(t *testing.T) {
	t.Parallel()
	s := serve(t, "", func(c *api.Config) { c.MaxBody = 1000 })
	s.ask("POST", "/v1/jobs", `{"type":"collect","alias":"c"}`).is(http.StatusCreated, nil)
	head := "POST /v1/jobs/c/ports/in/in/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
	whole := `{"messages":[1]}`
	for name, request := range map[string]string{
		"truncated":     head + "Content-Length: 500\r\n\r\n" + whole,
		"broken chunk":  head + "Transfer-Encoding: chunked\r\n\r\n10\r\n" + whole + "\r\nzz\r\n",
		"no last chunk": head + "Transfer-Encoding: chunked\r\n\r\n10\r\n" + whole + "\r\n",
	} {
		if status := halfClosed(t, s.url, request); status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
	}
	s.ask("POST", "/v1/jobs/c/ports/in/in/messages", `{"messages":["`+strings.Repeat("x", 2000)+`"]}`).refuses(http.StatusRequestEntityTooLarge, "too_large", "1000")
	s.ask("POST", "/v1/jobs/c/ports/in/in/messages", "{\"messages\":[\"\xff\"]}").refuses(http.StatusBadRequest, "malformed", "UTF-8")
	s.ask("POST", "/v1/jobs/c/ports/in/in/messages", whole, "Content-Type", "text/xml").refuses(http.StatusUnsupportedMediaType, "malformed", "application/json")
	s.ask("POST", "/v1/jobs/c/ports/in/in/messages", whole, "Content-Type", "application/json; charset=utf-16").refuses(http.StatusUnsupportedMediaType, "malformed", "UTF-8")
	s.ask("POST", "/v1/jobs/c/ports/in/in/messages", `{"Messages":[1]}`).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "messages"?`)
	var sides api.Sides
	if s.ask("GET", "/v1/jobs/c/ports", nil).is(http.StatusOK, &sides); sides.In["in"].Size != 0 || sides.Out["out"].Size != 0 {
		t.Errorf("something was written: %+v", sides)
	}
}

// halfClosed sends a request as nc -N does, which says then that no more comes, and returns the status of the answer.
func halfClosed(t *testing.T, url, request string) int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", request, err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// Who closes its side of the connection behind a request gets the answer nevertheless; what waits for something does not wait
// for such a client.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/jobs", `{"type":"collect","alias":"c"}`).is(http.StatusCreated, nil)
	head := " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	for range 20 {
		if status := halfClosed(t, s.url, "POST /v1/jobs/c/ports/in/in/messages"+head+"Content-Length: 16\r\n\r\n"+`{"messages":[1]}`); status != http.StatusOK {
			t.Fatalf("a message: %d", status)
		}
		if status := halfClosed(t, s.url, "GET /v1/jobs/c"+head+"\r\n"); status != http.StatusOK {
			t.Fatalf("a job: %d", status)
		}
	}
	h, err := client.New(s.store).Find(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	info, err := h.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := info.Port(port.Input, "in"); p.Total != 20 {
		t.Errorf("%d messages were written, want 20", p.Total)
	}
	began := time.Now()
	status := halfClosed(t, s.url, "GET /v1/jobs/c/wait?for=completed&timeout=50s"+head+"\r\n")
	if took := time.Since(began); status != http.StatusOK || took > 40*time.Second {
		t.Errorf("a client that may have gone was told how the job is after %s: %d", took, status)
	}
}

// What is said to be too large, or comes from who may not come in, is refused before it is sent.
func TestBodiesThatAreNotRead(t *testing.T) {
	t.Parallel()
	s := serve(t, "", func(c *api.Config) { c.Tokens = true })
	admin := s.newToken(redisstore.TokenAdmin, "", 0)
	for name, c := range map[string]struct {
		path, token, size string
		status            int
	}{
		"too large":           {"/v1/jobs", admin, "99999999999", http.StatusRequestEntityTooLarge},
		"no token":            {"/v1/jobs", "", "1000", http.StatusUnauthorized},
		"no token, for calls": {"/v1/store/where", "", "1000000", http.StatusUnauthorized},
		"no token, too large": {"/v1/jobs", "", "99999999999", http.StatusUnauthorized},
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		head := "POST " + c.path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " + c.size + "\r\n"
		if c.token != "" {
			head += "Authorization: Bearer " + c.token + "\r\n"
		}
		if _, err := io.WriteString(conn, head+"\r\n{"); err != nil { // and nothing more
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s", name, resp.Status)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	}
}

// Thousands of unknown keys are refused at the first.
func TestManyUnknownKeys(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	var keys []string
	for n := range 4000 {
		keys = append(keys, fmt.Sprintf(`"k%d":%d`, n, n))
	}
	started := time.Now()
	a := s.ask("POST", "/v1/jobs", "{"+strings.Join(keys, ",")+"}")
	a.refuses(http.StatusUnprocessableEntity, "usage", "unknown key")
	if took := time.Since(started); took > time.Second || len(a.body) > 2000 {
		t.Errorf("%d bytes after %s", len(a.body), took)
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	if a := s.ask("POST", "/v1/jobs", `{"type":"collect","args":`+deep+`}`); a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity {
		t.Errorf("very deep JSON: %d %.200s", a.status, a.body)
	}
}

// Whatever is sent, nothing fails, nothing takes long, and what is refused changes nothing.
func TestGeneratedRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"a","in":"24h"}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/graphs", `{"alias":"g","graph":`+doubling+`,"params":{"factor":2}}`)
	// Nobody runs jobs of this type: they do not complete, and are not removed after a retention that a request has set.
	s.ask("POST", "/v1/workers", `{"types":[{"type":"idle","inputs":[{"name":"in"}]}]}`).is(http.StatusOK, nil)
	seed := uint64(time.Now().UnixNano())
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), doc: map[string]any{}}
	s.ask("GET", "/openapi.json", nil).is(http.StatusOK, &g.doc)
	count := func() (n api.Count) {
		s.ask("GET", "/v1/count?all=true", nil).is(http.StatusOK, &n)
		return n
	}
	const requests = 10_000
	statuses := map[int]int{}
	paths := g.doc["paths"].(map[string]any)
	names := make([]string, 0, len(paths))
	for name := range paths {
		names = append(names, name)
	}
	slices.Sort(names)
	before := count()
	for range requests {
		method, path, body := g.request(names, paths)
		if strings.Contains(path, "/events") || strings.Contains(path, "/live") || strings.Contains(path, "/wait") || strings.Contains(body, `"wait"`) { // which take their time
			continue
		}
		started := time.Now()
		a := s.ask(method, path, body)
		took := time.Since(started)
		statuses[a.status/100]++
		if a.status >= 500 || took > 5*time.Second {
			t.Fatalf("seed %d: %s %s %q: %d after %s: %s", seed, method, path, body, a.status, took, a.body)
		}
		want := "application/problem+json"
		if strings.HasPrefix(path, "/jobs/") {
			want = "application/vnd.api+json"
		}
		if a.status >= 400 && a.header.Get("Content-Type") != want {
			t.Fatalf("seed %d: %s %s %q: %d as %s: %s", seed, method, path, body, a.status, a.header.Get("Content-Type"), a.body)
		}
		if a.status < 400 && method != http.MethodGet {
			before = count()
		} else if a.status >= 400 && g.IntN(20) == 0 {
			if now := count(); now != before {
				t.Fatalf("seed %d: %s %s %q was refused (%d) and changed the number of jobs from %d to %d", seed, method, path, body, a.status, before.Count, now.Count)
			}
		}
	}
	t.Logf("statuses by hundred: %v", statuses)
	if statuses[4] < requests/4 || statuses[2] < requests/100 {
		t.Errorf("the requests are all of one kind: %v", statuses)
	}
}

// generator makes requests that are nearly right of an OpenAPI document.
type generator struct {
	*rand.Rand
	doc map[string]any
}

func (g *generator) request(names []string, paths map[string]any) (method, path, body string) {
	path = names[g.IntN(len(names))]
	item := paths[path].(map[string]any)
	methods := make([]string, 0, len(item))
	for m := range item {
		methods = append(methods, m)
	}
	slices.Sort(methods)
	method = methods[g.IntN(len(methods))]
	op := item[method].(map[string]any)
	query := url.Values{}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		p := p.(map[string]any)
		name, schema := p["name"].(string), p["schema"].(map[string]any)
		switch p["in"] {
		case "path":
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(g.pathWord(name)))
		case "query":
			if g.IntN(3) == 0 {
				query.Set(name, g.word(schema))
			}
		}
	}
	if g.IntN(20) == 0 {
		query.Set(g.junk(), g.junk())
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if content, ok := op["requestBody"].(map[string]any); ok && g.IntN(15) > 0 {
		body = g.body(content["content"].(map[string]any))
		if g.IntN(10) == 0 {
			body = body[:g.IntN(len(body)+1)]
		}
	}
	return strings.ToUpper(method), path, body
}

// body is JSON of its schema, or some lines where a request is not of JSON.
func (g *generator) body(types map[string]any) string {
	content, ok := types["application/json"].(map[string]any)
	if !ok {
		lines := make([]string, g.IntN(4))
		for i := range lines {
			lines[i] = g.junk()
		}
		return strings.Join(lines, "\n")
	}
	raw, err := json.Marshal(g.value(content["schema"].(map[string]any), 0))
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// pathWord is often one that is there.
func (g *generator) pathWord(name string) string {
	known := map[string][]string{"job": {"a", "g", "g"}, "dir": {"in", "out"}, "port": {"in", "out"}, "queue": {"default"}, "worker": {"idle"}}[name]
	if len(known) > 0 && g.IntN(4) > 0 {
		return known[g.IntN(len(known))]
	}
	return g.junk()
}

var junkWords = []string{
	"0", "-1", "9223372036854775808", "1e999", "null", "true", "..", ".", "%00", "\x00", "'", "\"", "{}", "[]", "*", "?", "a b", "日本", "é\u0301",
	"019e1f0e", "00000000-0000-0000-0000-000000000000", "00000000-0000-7000-8000-000000000000.1", "2026-01-01T00:00:00Z", "2026-13-45", "1h", "-1h", "a/b", "~",
}

func (g *generator) junk() string {
	if g.IntN(30) == 0 {
		return strings.Repeat("x", 1+g.IntN(3000))
	}
	return junkWords[g.IntN(len(junkWords))]
}

// word is a value of a schema as a text.
func (g *generator) word(schema map[string]any) string {
	if g.IntN(3) == 0 {
		return g.junk()
	}
	if values, ok := schema["enum"].([]any); ok {
		return fmt.Sprint(values[g.IntN(len(values))])
	}
	switch schema["type"] {
	case "integer", "number":
		return fmt.Sprint(g.IntN(20))
	case "boolean":
		return "true"
	}
	return g.junk()
}

// value is one of a schema, most of the time.
func (g *generator) value(schema map[string]any, depth int) any {
	if g.IntN(12) == 0 || depth > 4 {
		return []any{nil, true, 1, -1.5, "", "x", []any{}, map[string]any{}, 1e300, g.junk()}[g.IntN(10)]
	}
	if ref, ok := schema["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		return g.value(g.doc["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any), depth)
	}
	kind := schema["type"]
	if several, ok := kind.([]any); ok {
		kind = several[0]
	}
	switch kind {
	case "object":
		out := map[string]any{}
		props, _ := schema["properties"].(map[string]any)
		for name, p := range props {
			if g.IntN(3) > 0 {
				out[name] = g.value(p.(map[string]any), depth+1)
			}
		}
		if more, ok := schema["additionalProperties"].(map[string]any); ok || g.IntN(15) == 0 {
			out[g.junk()] = g.value(more, depth+1)
		}
		return out
	case "array":
		items, _ := schema["items"].(map[string]any)
		out := []any{}
		for range g.IntN(4) {
			out = append(out, g.value(items, depth+1))
		}
		return out
	case "integer", "number":
		return g.IntN(100)
	case "boolean":
		return g.IntN(2) == 0
	case "string":
		return []string{"map", "collect", "default", "a", "1s", "in", g.junk(), g.junk()}[g.IntN(8)]
	}
	return []any{1, "x", map[string]any{"weir": 1}, map[string]any{"expr": "it"}, []any{1}, nil}[g.IntN(6)]
}

// A request whose token could not be verified at first, and could a moment later, is not carried out as one without a body.
func TestVerifiedTooLate(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	var tenant string
	s := serve(t, "", func(c *api.Config) {
		c.Tokens, tenant = true, c.Store.Namespace()
		c.Verify = func(context.Context, string) (api.Identity, error) {
			if asked.Add(1) == 1 {
				return api.Identity{}, fmt.Errorf("%w: the issuer is away", job.ErrUnavailable)
			}
			return api.Identity{Name: "ann", Role: redisstore.TokenAdmin, Tenant: tenant}, nil
		}
	})
	s.token = s.newToken(redisstore.TokenAdmin, "", 0)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"one"}`).is(http.StatusCreated, nil)
	for _, c := range []struct{ path, body, kind string }{
		{"/" + tenant + "/job/map/add", "1\n2\n", "text/plain"},
		{"/v1/jobs/one/run", `{"in":"1h"}`, "application/json"},
		{"/v1/jobs/one/terminate", `{"recursive":true}`, "application/json"},
		{"/bedrock/CreateJob", `{"name":"one"}`, "application/json"},
	} {
		asked.Store(0)
		s.token = "issued for " + c.path // none has been verified before
		s.ask("POST", c.path, c.body, "Content-Type", c.kind).refuses(http.StatusServiceUnavailable, "unavailable", "the issuer is away")
		if asked.Load() == 0 {
			t.Errorf("%s: nobody asked whose token it is", c.path)
		}
	}
}
