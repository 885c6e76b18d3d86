package httpstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
)

// Config says how to reach a server.
type Config struct {
	// URL is the address that weir serve prints, such as http://127.0.0.1:8080; a path before /v1 belongs to it. Required.
	URL string
	// Token is one that weir token create made, or a JWT of the issuer that the server believes. Empty: the server demands none.
	Token string
	// HTTP sends the requests. Nil means a client of its own, which follows no redirects.
	HTTP *http.Client
}

// Store is a namespace behind an HTTP server. It is safe for concurrent use, and holds no state but connections.
type Store struct {
	url   string // ends with /v1/store/
	shown string
	token string
	http  *http.Client
	place storecall.Place
}

// Open asks the server which namespace it serves. The error wraps job.ErrConfig if cfg is wrong, and job.ErrUnreachable if the
// server does not answer.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := newStore(cfg)
	if err != nil {
		return nil, err
	}
	if s.place, err = ask(ctx, s, storecall.Where, struct{}{}); err != nil {
		return nil, err
	}
	return s, nil
}

// Validate says what is wrong with it: the error wraps job.ErrConfig.
func (c Config) Validate() error {
	_, err := newStore(c)
	return err
}

func newStore(cfg Config) (*Store, error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%w: the URL of the server is incomplete or malformed: use one like http://127.0.0.1:8080 or https://weir.example.com", job.ErrConfig)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%w: the URL of the server has a name, a password, a query or a fragment: a token is given beside it", job.ErrConfig)
	case strings.ContainsAny(cfg.Token, " \r\n\t"):
		return nil, fmt.Errorf("%w: the token for the server has blanks: use the text that weir token create printed", job.ErrConfig)
	}
	shown := strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/v1")
	client := cfg.HTTP
	if client == nil {
		transport := &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 10 * time.Second,
		}
		client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Store{url: shown + storecall.Path, shown: shown, token: cfg.Token, http: client}, nil
}

// Close closes connections that are not in use.
func (s *Store) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// Namespace is that of the jobs.
func (s *Store) Namespace() string { return s.place.Namespace }

// Shards are how many shards the namespace has.
func (s *Store) Shards() int { return s.place.Shards }

// Where is the URL of the server.
func (s *Store) Where() string { return s.shown }

// post sends a request and returns the answer, of which the status is 200.
func (s *Store) post(ctx context.Context, call string, request any) (*http.Response, error) {
	body, err := storecall.Encode(request)
	if err != nil {
		return nil, fmt.Errorf("%w: what is sent to %s: %w", job.ErrName, s.shown, err)
	}
	answer, err := s.send(ctx, http.MethodPost, s.url+call, storecall.ContentType, body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		return nil, s.refusal(answer)
	}
	return answer, nil
}

// send sends a request with the token, and who acts, and returns the answer.
func (s *Store) send(ctx context.Context, method, to, contentType string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", job.ErrConfig, err)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", contentType)
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	if by := job.Actor(ctx); by != "" {
		req.Header.Set(storecall.ActorHeader, url.QueryEscape(by))
	}
	answer, err := s.http.Do(req)
	if err != nil {
		return nil, s.unreachable(ctx, err)
	}
	return answer, nil
}

// unreachable says that the server did not answer.
func (s *Store) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // without the path of the call
	}
	return &storecall.Refusal{Text: fmt.Sprintf("cannot reach the server %s: %v", s.shown, err), Wraps: []string{"unreachable"}}
}

// maxProblem is how much is read of an answer that is none of ours.
const maxProblem = 1 << 20

// refusal reads why a request was not carried out.
func (s *Store) refusal(answer *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	if err != nil {
		return s.unreachable(answer.Request.Context(), err)
	}
	var p struct {
		Code    string             `json:"code"`
		Detail  string             `json:"detail"`
		Refusal *storecall.Refusal `json:"refusal"`
	}
	ours := strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") && json.Unmarshal(raw, &p) == nil && p.Detail != ""
	switch {
	case ours && p.Refusal != nil:
		return p.Refusal
	case !ours:
		return &storecall.Refusal{Text: fmt.Sprintf("%s answers %s, and not as weir serve does: check its URL", s.shown, answer.Status), Wraps: wraps(answer.StatusCode)}
	}
	return &storecall.Refusal{Text: fmt.Sprintf("%s: %s", s.shown, p.Detail), Wraps: append(wraps(answer.StatusCode), p.Code)}
}

// wraps are the errors that an HTTP status stands for.
func wraps(status int) []string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest:
		return []string{"forbidden"}
	case http.StatusRequestEntityTooLarge:
		return []string{"too_large"}
	case http.StatusUnprocessableEntity:
		return []string{"name"}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return []string{"unavailable"}
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return []string{"unreachable"}
	}
	return nil
}

// ask makes a call.
func ask[O, I any](ctx context.Context, s *Store, call storecall.Method[I, O], request I) (out O, err error) {
	answer, err := s.post(ctx, call.Name, request)
	if err != nil {
		return out, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return out, s.unreachable(ctx, err)
	}
	if err := storecall.Decode(raw, &out); err != nil {
		return out, s.strange(answer, err)
	}
	return out, nil
}

// strange says that an answer cannot be read.
func (s *Store) strange(answer *http.Response, err error) error {
	if kind := answer.Header.Get("Content-Type"); kind != storecall.ContentType {
		return fmt.Errorf("%w: %s answers %s, and not as weir serve does: check its URL", job.ErrRefused, s.shown, cmp.Or(kind, "nothing"))
	}
	return fmt.Errorf("%w: the answer of %s cannot be read: %w; is the server of another version than this program?", job.ErrRefused, s.shown, err)
}

// follow makes a call that has a stream of answers.
func follow[O, I any](ctx context.Context, s *Store, call storecall.Stream[I, O], request I) iter.Seq2[O, error] {
	return func(yield func(O, error) bool) {
		var zero O
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		answer, err := s.post(ctx, call.Name, request)
		if err != nil {
			yield(zero, err)
			return
		}
		defer answer.Body.Close()
		for d := storecall.Decoder(answer.Body); ; {
			var item storecall.Item
			var out O
			err := d.Decode(&item)
			if err == nil && item.Value != nil {
				err = storecall.Decode(item.Value, &out)
			}
			switch {
			case ctx.Err() != nil:
				yield(zero, context.Cause(ctx))
				return
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), err != nil && answer.Header.Get("Content-Type") == storecall.ContentType:
				yield(zero, s.unreachable(ctx, fmt.Errorf("the answer broke off: %w", err)))
				return
			case err != nil:
				yield(zero, s.strange(answer, err))
				return
			case item.Refusal != nil:
				yield(zero, item.Refusal)
				return
			case item.End || !yield(out, nil):
				return
			}
		}
	}
}
