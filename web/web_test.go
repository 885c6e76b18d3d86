package web_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/weirworks/weir/web"
)

// asked is what a handler answers to one request.
func asked(t *testing.T, h http.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// echo is an API that says what it was asked.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Method+" "+r.URL.Path) })

// loaded is all of index.html and what it names, as it goes over the wire.
func loaded(t *testing.T, h http.Handler, prefix string) (files map[string]int) {
	t.Helper()
	files = map[string]int{}
	index := asked(t, h, http.MethodGet, prefix)
	files[prefix] = index.Body.Len()
	z, err := gzip.NewReader(index.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="\./([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		a := asked(t, h, http.MethodGet, prefix+m[1])
		if a.Code != http.StatusOK || a.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: status %d, %v", m[1], a.Code, a.Header())
		}
		files[m[1]] = a.Body.Len()
	}
	if strings.Contains(string(text), "<script>") || strings.Contains(string(text), "://") {
		t.Errorf("index.html has a script in it, or loads from elsewhere: %s", text)
	}
	return files
}

// The first load stays within 300 kB, and nothing in it comes from elsewhere; below any prefix.
func TestFirstLoad(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"/", "/ops/jobs/"} {
		h := http.StripPrefix(strings.TrimSuffix(prefix, "/"), web.Handler(web.Config{API: echo}))
		files, sum := loaded(t, h, prefix), 0
		for _, n := range files {
			sum += n
		}
		t.Logf("first load: %d bytes of %d files", sum, len(files))
		if len(files) < 4 || sum > 300_000 {
			t.Errorf("%d bytes of %v, want at most 300,000 of 4 files or more", sum, files)
		}
		if got := asked(t, h, http.MethodPost, prefix+"v1/jobs").Body.String(); got != "POST /v1/jobs" {
			t.Errorf("the API was asked %q", got)
		}
	}
}

func TestReadOnlyLetsNoActPass(t *testing.T) {
	t.Parallel()
	h := web.Handler(web.Config{API: echo, ReadOnly: true})
	if got := asked(t, h, http.MethodGet, "/page.json").Body.String(); !strings.Contains(got, `"read_only":true`) {
		t.Errorf("page.json: %s", got)
	}
	if got := asked(t, h, http.MethodGet, "/v1/jobs"); got.Code != http.StatusOK {
		t.Errorf("GET: status %d", got.Code)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if got := asked(t, h, method, "/v1/jobs/a"); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "read-only") {
			t.Errorf("%s: status %d: %s", method, got.Code, got.Body)
		}
	}
}

func TestAuthorizeIsAskedForEverything(t *testing.T) {
	t.Parallel()
	h := web.Handler(web.Config{API: echo, Authorize: func(r *http.Request) error {
		if r.Header.Get("Cookie") == "" {
			return errors.New("log in first")
		}
		return nil
	}})
	for _, path := range []string{"/", "/page.json", "/icon.svg", "/v1/jobs"} {
		if got := asked(t, h, http.MethodGet, path); got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), "log in first") {
			t.Errorf("%s: status %d: %s", path, got.Code, got.Body)
		}
	}
}

func TestAssetsAreCached(t *testing.T) {
	t.Parallel()
	h := web.Handler(web.Config{})
	first := asked(t, h, http.MethodGet, "/")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	again := httptest.NewRecorder()
	h.ServeHTTP(again, r)
	if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("the same index again: status %d, %d bytes", again.Code, again.Body.Len())
	}
	if got := asked(t, h, http.MethodGet, "/v1/jobs"); got.Code != http.StatusNotFound {
		t.Errorf("without an API: status %d", got.Code)
	}
}

// The page is told where traces are shown, if that is a URL that can be linked to.
func TestTraceURL(t *testing.T) {
	t.Parallel()
	for text, fault := range map[string]string{
		"https://tracing.example.com/trace/{trace_id}": "", "http://127.0.0.1:16686/search?id={trace_id}": "",
		"https://tracing.example.com/trace/": "write {trace_id}", "javascript:alert('{trace_id}')": "use a URL", "/trace/{trace_id}": "use a URL", "http://[::1": "use a URL",
	} {
		err := web.CheckTraceURL(text)
		if (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v, want %q", text, err, fault)
		}
		told := asked(t, web.Handler(web.Config{API: echo, TraceURL: text}), http.MethodGet, "/page.json").Body.String()
		if strings.Contains(told, "trace_url") != (fault == "") {
			t.Errorf("%s: the page is told %s", text, told)
		}
	}
}
