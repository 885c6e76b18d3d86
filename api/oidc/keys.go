package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	lib "github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/weirworks/weir/job"
)

const (
	// keysAsked is the time between two requests for the keys of an issuer, whatever tokens come.
	keysAsked = 5 * time.Second
	// keysFresh is how long keys are used before they are asked for again; keysKept, how long if the issuer does not answer then.
	keysFresh = 5 * time.Minute
	keysKept  = time.Hour
	// issuerTimeout is how long an issuer may take to tell its keys, and issuerAnswer the greatest answer in bytes.
	issuerTimeout = 5 * time.Second
	issuerAnswer  = 1 << 20
	redirects     = 3 // that are followed
)

// algorithms are those that tokens may be signed with: all have a public key, which is what an issuer publishes.
var algorithms = []string{
	lib.RS256, lib.RS384, lib.RS512, lib.PS256, lib.PS384, lib.PS512, lib.ES256, lib.ES384, lib.ES512, lib.EdDSA,
}

// keys are those that an issuer has published. The library's own would ask for them with each token that has another signature, and
// keep one that was withdrawn for as long as none has.
type keys struct {
	issuer string
	client *http.Client
	asking chan struct{} // has an element while somebody asks the issuer

	mu      sync.Mutex
	known   []jose.JSONWebKey
	fetched time.Time // when the issuer told them
	asked   time.Time // when it was asked last
	failed  error     // what that led to
}

func newKeys(issuer string, transport http.RoundTripper) *keys {
	if transport == nil {
		transport = http.DefaultTransport
	}
	client := &http.Client{Transport: bounded{transport}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > redirects {
			return errors.New("it redirects again and again")
		}
		return checkURL("the address that it redirects to,", r.URL.String())
	}}
	return &keys{issuer: issuer, client: client, asking: make(chan struct{}, 1)}
}

// attempt is the library's KeySet for one token. It keeps what the library does not wrap.
type attempt struct {
	keys *keys
	err  error
}

// VerifySignature implements the library's KeySet.
func (a *attempt) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	payload, a.err = a.keys.payload(ctx, token)
	return payload, a.err
}

// payload returns what one of the keys has signed.
func (k *keys) payload(ctx context.Context, token string) ([]byte, error) {
	allowed := make([]jose.SignatureAlgorithm, len(algorithms))
	for i, a := range algorithms {
		allowed[i] = jose.SignatureAlgorithm(a)
	}
	signed, err := jose.ParseSigned(token, allowed)
	if err != nil {
		return nil, err
	}
	known, fetched := k.current()
	if age := time.Since(fetched); age > keysFresh { // while they are still good, one request waits for the issuer, and others do not
		if err := k.refresh(ctx, fetched, age > keysKept); err != nil && age > keysKept {
			return nil, err
		}
		known, fetched = k.current()
	}
	if payload, ok := verified(signed, known); ok {
		return payload, nil
	}
	if err := k.refresh(ctx, fetched, true); err != nil {
		return nil, err
	}
	known, _ = k.current()
	if payload, ok := verified(signed, known); ok {
		return payload, nil
	}
	return nil, errors.New("none of the issuer's keys has signed it")
}

// verified returns what was signed, if one of the keys did that.
func verified(signed *jose.JSONWebSignature, known []jose.JSONWebKey) ([]byte, bool) {
	id := signed.Signatures[0].Header.KeyID // the library has seen that there is one signature
	for i := range known {
		if id == "" || known[i].KeyID == id {
			if payload, err := signed.Verify(&known[i]); err == nil {
				return payload, true
			}
		}
	}
	return nil, false
}

func (k *keys) current() (known []jose.JSONWebKey, fetched time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known, k.fetched
}

// refresh asks the issuer for keys that are newer than those of a time, unless it was asked lately. Who is not patient does not wait
// while somebody else does so.
func (k *keys) refresh(ctx context.Context, than time.Time, patient bool) error {
	if !patient && len(k.asking) > 0 {
		return nil
	}
	select {
	case k.asking <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", job.ErrUnavailable, ctx.Err())
	}
	defer func() { <-k.asking }()
	k.mu.Lock()
	newer, lately, failed := k.fetched.After(than), time.Since(k.asked) < keysAsked, k.failed
	k.mu.Unlock()
	if newer || lately {
		return failed
	}
	known, err := k.ask(ctx)
	if err != nil {
		err = fmt.Errorf("%w: the issuer of tokens, %s, does not tell its keys: %w", job.ErrUnavailable, k.issuer, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked, k.failed = time.Now(), err
	if err == nil {
		k.known, k.fetched = known, k.asked
	}
	return err
}

// ask does so. Whoever began it may be gone meanwhile: others wait for it, too.
func (k *keys) ask(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(lib.ClientContext(context.WithoutCancel(ctx), k.client), issuerTimeout)
	defer cancel()
	provider, err := lib.NewProvider(ctx, k.issuer)
	if err != nil {
		return nil, err
	}
	var where struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&where); err != nil {
		return nil, err
	}
	if err := checkURL("jwks_uri", where.Keys); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, where.Keys, nil)
	if err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", where.Keys, resp.Status)
	}
	var set jose.JSONWebKeySet
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("GET %s: %w", where.Keys, err)
	}
	known := slices.DeleteFunc(set.Keys, func(key jose.JSONWebKey) bool { return key.Use == "enc" || !key.IsPublic() })
	if len(known) == 0 {
		return nil, fmt.Errorf("GET %s: there is no public key for signatures", where.Keys)
	}
	return known, nil
}

// bounded limits answers, so that an issuer cannot fill the memory.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, issuerAnswer), resp.Body}
	}
	return resp, err
}
