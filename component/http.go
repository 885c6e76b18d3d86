package component

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Defaults of HTTPRequest.
const (
	DefaultTimeout      = 30 * time.Second
	DefaultMaxBody      = 512 << 10
	DefaultMaxRedirects = 5
)

// Request is a message that HTTPRequest reads. Fields that it leaves out come from the
// parameters.
type Request struct {
	Method  string            `json:"method,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is sent as it is if it is a text, else as JSON.
	Body json.RawMessage `json:"body,omitempty"`
}

// Response is what HTTPRequest writes.
type Response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	// Body is JSON if the server says so and it is, else a text.
	Body json.RawMessage `json:"body"`
	// Base64 is the body if it is neither.
	Base64 string `json:"base64,omitempty"`
}

// HTTPRequest makes a request for each message and writes the response. Any status is a
// response; with strict those outside 200 to 299 are errors.
//
// It asks only servers that the Policy allows: by default those with public addresses. The
// address is checked when a connection is made, so neither names nor redirects lead
// elsewhere. A body has at most max_body bytes, after decompression. A request that fails
// with on_error = fail is tried three times.
//
// Requests are made one after the other, and each is committed before the next; more
// instances in a graph make more at a time. A request may be made twice if a process dies
// between its response and the commit: it carries the header Idempotency-Key, the same both
// times. Order is kept, and the end of in is the end of out.
type HTTPRequest struct {
	// Method, URL, Headers and Body are those of requests that have none themselves; of
	// headers in both the request's count.
	Method  string            `json:"method,omitempty" doc:"method of requests without one, default GET, with a body POST"`
	URL     string            `json:"url,omitempty" doc:"address of requests without one"`
	Headers map[string]string `json:"headers,omitempty" doc:"headers to add to requests"`
	Body    json.RawMessage   `json:"body,omitempty" doc:"body of requests without one"`
	// Timeout is for one request with its response. Zero means DefaultTimeout.
	Timeout Duration `json:"timeout,omitempty" doc:"time for one request and its response, default 30s"`
	// MaxBody is how many bytes a response may have. Zero means DefaultMaxBody.
	MaxBody int `json:"max_body,omitempty" doc:"bytes that a response may have, default 524288"`
	// MaxRedirects is how many are followed. Zero means DefaultMaxRedirects, -1 none: then a
	// redirect is a response.
	MaxRedirects int `json:"max_redirects,omitempty" doc:"redirects to follow, default 5; -1 for none"`
	// Strict makes statuses outside 200 to 299 errors.
	Strict bool `json:"strict,omitempty" doc:"statuses outside 200 to 299 are errors"`
	// OnError is what becomes of requests that fail.
	OnError string             `json:"on_error,omitempty" doc:"fail (default), skip or err: what becomes of messages that cannot be worked on"`
	In      port.In[Request]   `port:"in,required"`
	Out     port.Out[Response] `port:"out"`
	Err     port.Out[Rejected] `port:"err"`

	policy HTTPPolicy
}

// WorkerOptions implements worker.Configured: servers fail and come back.
func (*HTTPRequest) WorkerOptions() worker.Options {
	return worker.Options{Tries: 3, CommitEachRun: true}
}

// JobType implements job.TypeNamer.
func (*HTTPRequest) JobType() string { return "http_request" }

// Describe implements Component.
func (*HTTPRequest) Describe() string { return "makes an HTTP request for each message" }

// Validate implements Component.
func (h *HTTPRequest) Validate() error {
	var c check
	if h.URL != "" {
		if err := checkURL(h.URL); err != nil {
			c.add("url: %v", err)
		}
	}
	if err := checkHeaders(h.Headers); err != nil {
		c.add("headers: %v", err)
	}
	c.is(h.Method == "" || token(h.Method), "method %q is none", h.Method)
	c.span("timeout", h.Timeout)
	c.is(h.MaxBody >= 0 && h.MaxBody <= worker.MaxMessage, "max_body %d: use 1 to %d", h.MaxBody, worker.MaxMessage)
	c.is(h.MaxRedirects >= -1, "max_redirects %d: use -1 for none", h.MaxRedirects)
	if len(h.Body) > 0 {
		if err := port.Check(h.Body); err != nil {
			c.add("body: %v", err)
		}
	}
	c.onError(h.OnError)
	return c.err(h)
}

// Run implements worker.Worker.
func (h *HTTPRequest) Run(ctx context.Context, run *worker.Run) error {
	if err := h.Validate(); err != nil {
		return err
	}
	client := h.policy.Client(h.redirects())
	defer client.CloseIdleConnections()
	in, err := run.In(h.In.Name())
	if err != nil {
		return err
	}
	return effects(ctx, run, in, func(raw json.RawMessage) error {
		res, err := h.ask(ctx, client, run.IdempotencyKey("request"), raw)
		if err == nil {
			err = h.Out.Write(*res)
		}
		return reject(ctx, h.OnError, h.Err, raw, err)
	})
}

func (h *HTTPRequest) redirects() int {
	switch h.MaxRedirects {
	case 0:
		return DefaultMaxRedirects
	case -1:
		return 0
	}
	return h.MaxRedirects
}

// effects gives each message to fn, which does something outside of Weir, and commits it
// before the next one. A run ends after some time, so that others get their turn.
func effects(ctx context.Context, run *worker.Run, in port.Reader, fn func(json.RawMessage) error) error {
	const turn = time.Second
	for begin := time.Now(); in.Len() > 0 && time.Since(begin) < turn; {
		if err := ctx.Err(); err != nil {
			return err
		}
		raw, _, err := in.Read()
		if err == nil {
			err = fn(raw)
		}
		if err != nil {
			return err
		}
		if in.Len() > 0 {
			if err := run.Checkpoint(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask makes one request.
func (h *HTTPRequest) ask(ctx context.Context, client *http.Client, key string, raw json.RawMessage) (*Response, error) {
	want, err := h.request(raw)
	if err != nil {
		return nil, fault(err)
	}
	ctx, cancel := timeout(ctx, time.Duration(h.Timeout), DefaultTimeout)
	defer cancel()
	req, err := want.request(ctx, key)
	if err != nil {
		return nil, fault(err)
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, fault(err)
	}
	defer res.Body.Close()
	most := cmp.Or(h.MaxBody, DefaultMaxBody)
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(most)+1))
	switch {
	case err != nil:
		return nil, fault(fmt.Errorf("reading the response of %s: %w", req.URL.Redacted(), err))
	case len(body) > most:
		return nil, fault(fmt.Errorf("the response of %s has more than %d bytes, and max_body allows no more", req.URL.Redacted(), most))
	case h.Strict && (res.StatusCode < 200 || res.StatusCode > 299):
		return nil, fault(fmt.Errorf("%s answers %s: %s", req.URL.Redacted(), res.Status, clip(strings.ToValidUTF8(string(body), "\uFFFD"), 500)))
	}
	out := response(res, body)
	text, err := port.Encode(out)
	if err == nil {
		err = checkSize(text)
	}
	return out, fault(err)
}

// request fills in what a message leaves out.
func (h *HTTPRequest) request(raw json.RawMessage) (*Request, error) {
	var r Request
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return nil, fmt.Errorf("the message is no request: %w", err)
	}
	r.URL = cmp.Or(r.URL, h.URL)
	if len(r.Body) == 0 || string(r.Body) == "null" {
		r.Body = h.Body
	}
	r.Method = cmp.Or(r.Method, h.Method)
	if r.Method == "" {
		r.Method = http.MethodGet
		if len(r.Body) > 0 {
			r.Method = http.MethodPost
		}
	}
	headers := maps.Clone(h.Headers)
	for name, value := range r.Headers {
		if headers == nil {
			headers = map[string]string{}
		}
		for other := range headers {
			if strings.EqualFold(other, name) {
				delete(headers, other)
			}
		}
		headers[name] = value
	}
	r.Headers = headers
	return &r, errors.Join(checkURL(r.URL), checkHeaders(r.Headers))
}

// request makes the request, which carries the key.
func (r *Request) request(ctx context.Context, key string) (*http.Request, error) {
	var body io.Reader
	kind := ""
	if len(r.Body) > 0 {
		text, isText := "", r.Body[0] == '"'
		if isText {
			if err := port.Decode(r.Body, &text); err != nil {
				return nil, err
			}
			kind = "text/plain; charset=utf-8"
		} else {
			text, kind = string(r.Body), "application/json"
		}
		body = strings.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("User-Agent", "weir")
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	return req, nil
}

// response turns a response into a message.
func response(res *http.Response, body []byte) *Response {
	out := &Response{Status: res.StatusCode, Headers: map[string]string{}, Body: json.RawMessage("null")}
	for name, values := range res.Header {
		out.Headers[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	if len(body) == 0 {
		return out
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if (kind == "application/json" || strings.HasSuffix(kind, "+json")) && port.Check(body) == nil {
		out.Body = body
		return out
	}
	if utf8.Valid(body) {
		if text, err := port.Encode(string(body)); err == nil {
			out.Body = text
			return out
		}
	}
	out.Base64 = base64.StdEncoding.EncodeToString(body)
	return out
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("url is missing")
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Errorf("url %q: use http://host/… or https://host/…", clip(text, 100))
	}
	return nil
}

// ownHeaders follow from the request and are not to be set.
var ownHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Proxy-Authorization", "Proxy-Connection"}

func checkHeaders(headers map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch {
		case !token(name):
			return fmt.Errorf("%q cannot be the name of a header", clip(name, 60))
		case slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)):
			return fmt.Errorf("header %s follows from the request and cannot be set", name)
		case strings.ContainsFunc(headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return fmt.Errorf("header %s has characters that are not allowed", name)
		}
	}
	return nil
}

// token tells whether a text is one in the sense of HTTP.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
