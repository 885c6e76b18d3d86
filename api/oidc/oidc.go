// Package oidc lets people and programs of an OpenID Connect issuer use the HTTP API with its tokens, beside those that weir token
// create makes: [Verifier.Verify] is what an [api.Config] takes as Verify.
//
//	login, err := oidc.New(oidc.Config{Issuer: "https://login.example.com", Audience: "weir"})
//	server, err := api.New(api.Config{Store: store, Tokens: true, Verify: login.Verify})
//
// A token is a JWT that one of the issuer's published keys has signed, with RSA, ECDSA or EdDSA. Its claims say what its holder may
// do, and where: nothing else in a request does.
package oidc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	lib "github.com/coreos/go-oidc/v3/oidc"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// The claims that are read, unless the Config names others.
const (
	DefaultRoleClaim   = "weir_role"
	DefaultTenantClaim = "weir_namespace"
)

// Config says whose tokens are believed.
type Config struct {
	// Issuer is the URL of the issuer, as its tokens have it in iss. Its keys are found by OpenID Connect Discovery, below
	// /.well-known/openid-configuration. It must begin with https:// unless it is of this machine. Required.
	Issuer string
	// Audience is what aud of a token must have: the name that the issuer knows this service by. Required.
	Audience string
	// RoleClaim is the claim with the role, read, operate, work or admin: a string, or a list with one. Empty means DefaultRoleClaim.
	RoleClaim string
	// TenantClaim is the claim with the namespace, as a string or a list with one. Empty means DefaultTenantClaim.
	TenantClaim string
	// Transport carries requests to the issuer. Nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Verifier verifies the tokens of an issuer. It is safe for concurrent use, and starts no goroutine.
type Verifier struct {
	cfg  Config
	keys *keys
}

// New returns one, or says what is wrong with the Config: the error wraps job.ErrConfig. The issuer is not asked for anything yet.
func New(cfg Config) (*Verifier, error) {
	var wrong []error
	if err := checkURL("issuer", cfg.Issuer); err != nil {
		wrong = append(wrong, err)
	}
	if cfg.Audience == "" {
		wrong = append(wrong, errors.New("the audience is missing: it is the name that the issuer knows this service by"))
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%w of OIDC: %w", job.ErrConfig, errors.Join(wrong...))
	}
	cfg.RoleClaim, cfg.TenantClaim = cmp.Or(cfg.RoleClaim, DefaultRoleClaim), cmp.Or(cfg.TenantClaim, DefaultTenantClaim)
	return &Verifier{cfg, newKeys(cfg.Issuer, cfg.Transport)}, nil
}

// checkURL refuses an address from which keys of anybody on the way could come.
func checkURL(what, text string) error {
	u, err := url.Parse(text)
	switch {
	case err == nil && u.User != nil:
		return fmt.Errorf("%s has a user: leave that out", what)
	case err != nil || u.Host == "" || u.RawQuery != "" && what == "issuer" || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%s %.200q is not a URL that will do: write it like https://login.example.com", what, text)
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s %s: keys that come without TLS could be anybody's: use https", what, text)
	}
	return nil
}

// Fetch asks the issuer for its keys, and returns why that failed; Verify asks again by itself.
func (v *Verifier) Fetch(ctx context.Context) error { return v.keys.refresh(ctx, time.Time{}, true) }

// Verify returns whom a token names. The error wraps job.ErrUnavailable if the issuer has not told its keys and does not answer, and
// job.ErrForbidden if the token is right but does not say what its holder may do here; all others mean that it is not valid.
func (v *Verifier) Verify(ctx context.Context, token string) (who api.Identity, err error) {
	try := &attempt{keys: v.keys}
	t, err := lib.NewVerifier(v.cfg.Issuer, try, &lib.Config{ClientID: v.cfg.Audience, SupportedSigningAlgs: algorithms}).Verify(ctx, token)
	switch {
	case errors.Is(try.err, job.ErrUnavailable):
		return who, try.err
	case err != nil:
		return who, invalid(err)
	}
	if err := checkSubject(t.Subject); err != nil {
		return who, err
	}
	var claims map[string]json.RawMessage
	if err := t.Claims(&claims); err != nil {
		return who, fmt.Errorf("the claims of the token: %w", err)
	}
	who = api.Identity{Name: v.cfg.Issuer + "#" + t.Subject, Expires: t.Expiry}
	role, err := claim(claims, v.cfg.RoleClaim)
	if err == nil && !slices.Contains(api.Roles(), api.Role(role)) {
		err = fmt.Errorf("claim %s: unknown role %.80q: %s", v.cfg.RoleClaim, role, port.Suggest(role, roleNames()))
	}
	who.Role = api.Role(role)
	var other error
	if who.Tenant, other = claim(claims, v.cfg.TenantClaim); err == nil {
		err = other
	}
	if err == nil {
		if other = (redisstore.Config{Namespace: who.Tenant}).Validate(); other != nil || who.Tenant == "" {
			err = fmt.Errorf("claim %s: %.80q is not a namespace: use 1 to 63 lower-case letters, digits and '-'", v.cfg.TenantClaim, who.Tenant)
		}
	}
	if err != nil {
		return api.Identity{}, fmt.Errorf("%w: the token of %.80q is valid, but its %w", job.ErrForbidden, t.Subject, err)
	}
	return who, nil
}

// invalid says in words why a token was refused.
func invalid(err error) error {
	late := new(lib.TokenExpiredError)
	switch {
	case !errors.As(err, &late):
		return fmt.Errorf("the token is not valid: %s", strings.TrimPrefix(err.Error(), "oidc: "))
	case late.Expiry.Unix() <= 0:
		return errors.New("the token does not say when it expires")
	}
	return fmt.Errorf("the token has expired at %s", late.Expiry.UTC().Format(time.RFC3339))
}

// checkSubject refuses a name that could not be told from others in logs.
func checkSubject(name string) error {
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if name == "" || len(name) > 255 || strings.ContainsFunc(name, odd) {
		return fmt.Errorf("the token has the subject %.80q: it must be 1 to 255 ASCII characters without spaces", name)
	}
	return nil
}

// claim returns a claim that is a string, or a list with one.
func claim(all map[string]json.RawMessage, name string) (string, error) {
	raw, ok := all[name]
	if !ok {
		return "", fmt.Errorf("claim %s is missing", name)
	}
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		return one, nil
	}
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		return list[0], nil
	}
	return "", fmt.Errorf("claim %s is %.80s: it must be a string, or a list with one", name, raw)
}

func roleNames() (names []string) {
	for _, r := range api.Roles() {
		names = append(names, string(r))
	}
	return names
}
