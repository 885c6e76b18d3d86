// Package web is the page on which people see jobs and act on them. It is one http.Handler that serves built assets, which are
// part of the program, and passes what the page asks on to the HTTP API of package api:
//
//	server, err := api.New(api.Config{Store: store})
//	mux.Handle("/ops/", http.StripPrefix("/ops", web.Handler(web.Config{API: server, ReadOnly: true})))
//
// The page knows nothing but what the API answers. docs/page.md describes it.
package web

import (
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
)

//go:embed all:dist
var embedded embed.FS

// policy lets the page load what its server serves, and nothing else. Elements that the tree is made of are placed through the
// object model, which it allows.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Config says what a page shows, and to whom.
type Config struct {
	// API answers what the page asks, below v1/; such as an api.Server. Nil: something else serves v1/ beside the page.
	API http.Handler
	// ReadOnly shows no acts, and lets none pass to the API: only GET and HEAD do.
	ReadOnly bool
	// Authorize is asked before each request, for the page and for the API. Its error refuses the request with 403 and
	// its text. Nil: nobody is refused here; tokens of the API count in any case.
	Authorize func(r *http.Request) error
	// TraceURL is where the viewer of distributed traces shows one: a URL with {trace_id} in it, as CheckTraceURL demands. The page
	// links the traces of jobs and messages to it. Empty, or not such a URL: it shows their IDs alone.
	TraceURL string
}

// CheckTraceURL tells what is wrong with a TraceURL: the page would link to anything that is in it.
func CheckTraceURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%.200q: use a URL like https://tracing.example.com/trace/{trace_id}", text)
	case !strings.Contains(text, "{trace_id}"):
		return fmt.Errorf("%.200q: write {trace_id} where the ID of the trace belongs", text)
	}
	return nil
}

// asset is a file of the page.
type asset struct {
	kind, tag   string
	plain, gzip []byte
}

// settings are what the page is told of its Config.
type settings struct {
	ReadOnly bool   `json:"read_only"`
	TraceURL string `json:"trace_url,omitempty"`
}

// page is the handler.
type page struct {
	cfg    Config
	assets map[string]asset // by path, without a slash in front
}

// Handler serves the page at "/", and the API at "/v1/". It can be mounted below any prefix with http.StripPrefix.
func Handler(cfg Config) http.Handler {
	if CheckTraceURL(cfg.TraceURL) != nil {
		cfg.TraceURL = ""
	}
	return &page{cfg: cfg, assets: assets()}
}

// Serves tells whether a path is one of the page itself, and not of the API behind it.
func (p *page) serves(path string) bool {
	_, ok := p.assets[name(path)]
	return ok || path == "/page.json"
}

// name is that of the asset at a path.
func name(path string) string {
	path = strings.TrimPrefix(path, "/")
	if path == "" {
		return "index.html"
	}
	return path
}

// assets are the files of the page, compressed once.
func assets() map[string]asset {
	all := map[string]asset{}
	root, err := fs.Sub(embedded, "dist")
	if err == nil {
		err = fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := fs.ReadFile(root, file)
			all[file] = newAsset(file, raw)
			return err
		})
	}
	if err != nil {
		panic(err) //nolint:forbidigo // what is embedded can be read
	}
	return all
}

func newAsset(file string, raw []byte) asset {
	sum := sha256.Sum256(raw)
	kind := mime.TypeByExtension(path.Ext(file))
	switch path.Ext(file) { // what the machine's tables say must not matter
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".css":
		kind = "text/css; charset=utf-8"
	case ".html":
		kind = "text/html; charset=utf-8"
	case ".svg":
		kind = "image/svg+xml"
	}
	var b strings.Builder
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = z.Write(raw)
	_ = z.Close()
	return asset{kind: kind, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, plain: raw, gzip: []byte(b.String())}
}

// ServeHTTP implements http.Handler.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	looks := r.Method == http.MethodGet || r.Method == http.MethodHead
	if p.cfg.Authorize != nil {
		if err := p.cfg.Authorize(r); err != nil {
			refuse(w, http.StatusForbidden, "forbidden", err.Error())
			return
		}
	}
	switch {
	case looks && r.URL.Path == "/page.json":
		answer(w, http.StatusOK, "application/json", settings{p.cfg.ReadOnly, p.cfg.TraceURL})
	case looks && p.serves(r.URL.Path):
		p.asset(w, r)
	case p.cfg.API == nil:
		refuse(w, http.StatusNotFound, "no_route", "there is nothing at "+r.URL.Path)
	case p.cfg.ReadOnly && !looks:
		refuse(w, http.StatusForbidden, "forbidden", "this page is read-only: nothing can be changed through it")
	default:
		p.cfg.API.ServeHTTP(w, r)
	}
}

func (p *page) asset(w http.ResponseWriter, r *http.Request) {
	file := name(r.URL.Path)
	a := p.assets[file]
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("ETag", a.tag)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", policy)
	h.Set("Vary", "Accept-Encoding")
	if strings.HasPrefix(file, "assets/") { // its name has the digest of what is in it
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.gzip
	}
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

// refuse answers with a problem as the API does.
func refuse(w http.ResponseWriter, status int, code, detail string) {
	answer(w, status, "application/problem+json", map[string]any{
		"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code, "detail": detail,
	})
}

func answer(w http.ResponseWriter, status int, kind string, v any) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
