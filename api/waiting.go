package api

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
)

// Waiting stands in for a Server until its Redis answers for the first time: it accepts payloads for the journal of the namespace, and answers
// all else with 503. With Tokens it answers all with 503, as nobody knows then whose a token is. It is safe for concurrent use.
type Waiting struct {
	cfg       Config
	namespace string
	journal   *journal.Journal
	handler   http.Handler
}

// NewWaiting returns what stands in for the Server of a Config, of which the Journal is required and the Store is not looked at. Close it before
// that Server is made.
func NewWaiting(cfg Config, namespace string) (*Waiting, error) {
	if cfg.Journal == "" {
		return nil, fmt.Errorf("%w of the API: Journal is required while there is no Redis", job.ErrConfig)
	}
	j, err := journal.Open(journal.Config{Dir: filepath.Join(cfg.Journal, namespace), Limit: cfg.JournalLimit, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	w := &Waiting{cfg: cfg, namespace: namespace, journal: j}
	mux := http.NewServeMux()
	mux.HandleFunc("/", w.later)
	if !cfg.Tokens {
		mux.HandleFunc("POST /{client}/job/{type}/add", w.add)
	}
	w.handler = ofOneOrigin(mux)
	return w, nil
}

// Close closes the journal.
func (w *Waiting) Close() error { return w.journal.Close() }

// ServeHTTP implements http.Handler.
func (w *Waiting) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	out.Header().Set("X-Content-Type-Options", "nosniff")
	out.Header().Set("Cache-Control", "no-store")
	if p := w.cfg.checkHost(r); p != nil {
		writeProblem(out, p)
		return
	}
	w.handler.ServeHTTP(out, r)
}

func (w *Waiting) add(out http.ResponseWriter, r *http.Request) {
	typ, err := ClientType(false, w.namespace, r.PathValue("client"), r.PathValue("type"))
	if err != nil {
		writeLate(out, problemOf(err))
		return
	}
	raw, p := readWhole(out, r, journal.MaxBody)
	if p != nil {
		writeLate(out, p)
		return
	}
	if err := checkPayloads(raw); err != nil {
		writeLate(out, problemOf(err))
		return
	}
	added, err := acceptPayloads(r.Context(), w.journal, typ, raw)
	if err != nil {
		writeLate(out, problemOf(err))
		return
	}
	out.Header().Set("Content-Type", jsonType)
	_ = encode(out, added) // who asked has gone
}

// later answers what needs Redis.
func (w *Waiting) later(out http.ResponseWriter, r *http.Request) {
	p := problem(Kind{"unavailable", http.StatusServiceUnavailable, 1}, "Redis has not answered since the server was started: only payloads in bulk are accepted, on the disk of the server, and only without tokens; try again later")
	p.retry = retryAfter
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		setHeaders(out, p)
		out.Header().Set("Content-Type", "text/html; charset=utf-8")
		out.WriteHeader(p.Status)
		_, _ = io.WriteString(out, waitingPage) // who asked has gone
		return
	}
	writeLate(out, p)
}

// waitingPage is for browsers, which ask again by themselves.
const waitingPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Weir waits for Redis</title>
<body style="font-family: system-ui; margin: 4em auto; max-width: 36em">
<h1>Weir waits for its Redis</h1>
<p>Redis has not answered since the server was started. Payloads in bulk are accepted on the disk of the server meanwhile.
This page opens when Redis answers.</p>
`

// writeLate writes a problem, with when to try again if it knows.
func writeLate(out http.ResponseWriter, p *Problem) {
	setHeaders(out, p)
	writeProblem(out, p)
}

func setHeaders(out http.ResponseWriter, p *Problem) {
	for name, values := range p.GetHeaders() {
		out.Header()[name] = values
	}
}
