package oidc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/api/oidc"
	"github.com/weirworks/weir/internal/oidctest"
	"github.com/weirworks/weir/job"
)

// kinds are the errors that callers tell apart.
var kinds = []error{job.ErrUnavailable, job.ErrForbidden}

func TestVerify(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	v := i.verifier()
	for name, change := range map[string]map[string]any{
		"plain":              nil,
		"one of audiences":   {"aud": []string{"other", oidctest.Audience}},
		"lists with one":     {"weir_role": []string{"operate"}, "weir_namespace": []string{"shop"}},
		"clocks that differ": {"nbf": time.Now().Add(time.Minute).Unix()},
	} {
		ends := time.Now().Add(time.Hour).Truncate(time.Second)
		if change == nil {
			change = map[string]any{}
		}
		change["exp"] = ends.Unix()
		who, err := v.Verify(t.Context(), i.Token("one", change))
		if err != nil || who.Name != issuerURL+"#ann" || who.Role != "operate" || who.Tenant != "shop" || !who.Expires.Equal(ends) {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	if i.Asks() != 1 {
		t.Errorf("the keys were asked for %d times", i.Asks())
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	v := i.verifier()
	for _, c := range []struct {
		change map[string]any
		kind   error
		detail string
	}{
		{map[string]any{"iss": "https://other.test"}, nil, "different provider"},
		{map[string]any{"aud": "other"}, nil, `expected audience "weir"`},
		{map[string]any{"aud": nil}, nil, `expected audience "weir"`},
		{map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}, nil, "has expired at"},
		{map[string]any{"exp": nil}, nil, "does not say when it expires"},
		{map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, nil, "not before"},
		{map[string]any{"sub": nil}, nil, "subject"},
		{map[string]any{"sub": "ann\nadmin"}, nil, "subject"},
		{map[string]any{"sub": strings.Repeat("a", 256)}, nil, "subject"},
		{map[string]any{"weir_role": nil}, job.ErrForbidden, "claim weir_role is missing"},
		{map[string]any{"weir_role": "opperate"}, job.ErrForbidden, `did you mean "operate"`},
		{map[string]any{"weir_role": "Admin"}, job.ErrForbidden, "unknown role"},
		{map[string]any{"weir_role": []string{"read", "admin"}}, job.ErrForbidden, "a list with one"},
		{map[string]any{"weir_role": 7}, job.ErrForbidden, "must be a string"},
		{map[string]any{"weir_namespace": nil}, job.ErrForbidden, "claim weir_namespace is missing"},
		{map[string]any{"weir_namespace": ""}, job.ErrForbidden, "is not a namespace"},
		{map[string]any{"weir_namespace": "shop}:x"}, job.ErrForbidden, "is not a namespace"},
	} {
		i.refuses(v, i.Token("one", c.change), c.kind, c.detail)
	}
}

// What the issuer did not sign is refused, whatever it says of itself.
func TestForged(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	v := i.verifier()
	public, err := x509.MarshalPKIXPublicKey(i.Key("one").Public())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(i.Claims(map[string]any{"weir_role": "admin"}))
	if err != nil {
		t.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	right := strings.Split(i.Token("one", nil), ".")
	other := newIssuer(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"alg none":                   part([]byte(`{"alg":"none"}`)) + "." + part(plain) + ".",
		"alg None with a signature":  part([]byte(`{"alg":"None"}`)) + "." + part(plain) + "." + right[2],
		"HS256 with the public key":  oidctest.Sign(t, jose.HS256, public, "one", i.Claims(nil)),
		"another key of that name":   other.Token("one", nil),
		"another kind of key":        oidctest.Sign(t, jose.ES256, curve, "one", i.Claims(nil)),
		"no key ID, and another key": oidctest.Sign(t, jose.RS256, other.Key("one"), "", i.Claims(nil)),
		"other claims":               right[0] + "." + part(plain) + "." + right[2],
		"no signature":               right[0] + "." + right[1] + ".",
		"a part missing":             right[0] + "." + right[1],
		"two signatures":             `{"payload":"` + right[1] + `","signatures":[{"protected":"` + right[0] + `","signature":"` + right[2] + `"},{"protected":"` + right[0] + `","signature":"` + right[2] + `"}]}`,
		"nothing":                    "",
		"no token at all":            "hello",
		"much":                       strings.Repeat("a", 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			other := *i
			other.T = t
			other.refuses(v, token, nil, "the token is not valid")
		})
	}
}

// Keys that the issuer has since are found, and those that it no longer has are forgotten; it is not asked more often for that than
// every five seconds, whatever tokens come.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		v := i.verifier()
		verify := func(token string) error {
			_, err := v.Verify(context.Background(), token)
			return err
		}
		old := i.Token("one", nil)
		if err := verify(old); err != nil {
			t.Fatal(err)
		}
		stray := newIssuer(t)
		stray.Add("stray")
		time.Sleep(6 * time.Second)
		for range 1000 {
			i.refuses(v, stray.Token("stray", nil), nil, "none of the issuer's keys")
		}
		if i.Asks() != 2 {
			t.Errorf("asked %d times for keys, want 2", i.Asks())
		}
		i.Remove("one")
		i.Add("two")
		fresh := i.Token("two", nil)
		time.Sleep(6 * time.Second)
		if err := verify(fresh); err != nil {
			t.Errorf("a token with a new key: %v", err)
		}
		i.refuses(v, old, nil, "none of the issuer's keys")
		i.Remove("two")
		i.Add("three")
		time.Sleep(6 * time.Minute)
		i.refuses(v, fresh, nil, "none of the issuer's keys")
	})
}

// While the issuer is away its keys are used for an hour; without any the error says so, until it is back.
func TestIssuerAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := newIssuer(t)
		v := i.verifier()
		token := i.Token("one", map[string]any{"exp": time.Now().Add(24 * time.Hour).Unix()})
		i.away = true
		i.refuses(v, token, job.ErrUnavailable, "does not tell its keys")
		i.refuses(v, "hello", nil, "the token is not valid")
		if err := v.Fetch(t.Context()); err == nil {
			t.Error("no error while the issuer is away")
		}
		i.away = false
		i.refuses(v, token, job.ErrUnavailable, "connection refused") // it was asked a moment ago
		for _, answer := range []string{"null", "<html>", `{"issuer":"https://other.test","jwks_uri":"https://login.test/keys"}`, `{"issuer":"https://login.test"}`, `{"issuer":"https://login.test","jwks_uri":"http://login.test/keys"}`, `{"issuer":"https://login.test","jwks_uri":"https://login.test/keys"}`} {
			i.answer = answer
			time.Sleep(6 * time.Second)
			i.refuses(v, token, job.ErrUnavailable, issuerURL)
		}
		i.answer = ""
		time.Sleep(6 * time.Second)
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("the issuer is back: %v", err)
		}
		i.hangs = true
		for range 9 {
			time.Sleep(6 * time.Minute)
			began := time.Now()
			if _, err := v.Verify(t.Context(), token); err != nil || time.Since(began) > 6*time.Second {
				t.Errorf("while the issuer hangs: %v after %s", err, time.Since(began))
			}
		}
		time.Sleep(10 * time.Minute)
		i.refuses(v, token, job.ErrUnavailable, "does not tell its keys")
		i.hangs = false
		time.Sleep(6 * time.Second)
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("the issuer is back again: %v", err)
		}
	})
}

// TestRedirects: the keys of an issuer that redirects are followed, but not to where they could be anybody's.
func TestRedirects(t *testing.T) {
	t.Parallel()
	for to, detail := range map[string]string{"https://elsewhere.test": "", "http://elsewhere.test": "use https"} {
		i := newIssuer(t)
		i.moved = to
		if token := i.Token("one", nil); detail != "" {
			i.refuses(i.verifier(), token, job.ErrUnavailable, detail)
		} else if _, err := i.verifier().Verify(t.Context(), token); err != nil {
			t.Errorf("redirected to %s: %v", to, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg    oidc.Config
		detail string
	}{
		{oidc.Config{}, "issuer"},
		{oidc.Config{Issuer: "https://login.test"}, "audience is missing"},
		{oidc.Config{Issuer: "login.test", Audience: "a"}, "like https://login.example.com"},
		{oidc.Config{Issuer: "http://login.test", Audience: "a"}, "use https"},
		{oidc.Config{Issuer: "https://login.test?x=1", Audience: "a"}, "like https://login.example.com"},
		{oidc.Config{Issuer: "https://ann:secret@login.test", Audience: "a"}, "has a user"},
	} {
		if _, err := oidc.New(c.cfg); err == nil || !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	for _, issuer := range []string{"http://127.0.0.1:8081", "http://localhost/realms/a", "https://login.test/"} {
		if _, err := oidc.New(oidc.Config{Issuer: issuer, Audience: "a"}); err != nil {
			t.Errorf("%s: %v", issuer, err)
		}
	}
	if _, err := api.New(api.Config{Verify: (&oidc.Verifier{}).Verify}); err == nil {
		t.Error("a server without a store")
	}
}
