// Package oidctest is an OpenID Connect issuer for tests.
package oidctest

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Audience is that of the tokens of an Issuer.
const Audience = "weir"

// Issuer publishes keys, as an http.Handler, and makes tokens. It is safe for concurrent use.
type Issuer struct {
	URL string // what it is known by, set before it is used

	t    testing.TB
	mu   sync.Mutex
	keys map[string]*rsa.PrivateKey // by their IDs
	asks int
}

// New returns one that has the key "one".
func New(t testing.TB, url string) *Issuer {
	t.Helper()
	i := &Issuer{URL: url, t: t, keys: map[string]*rsa.PrivateKey{}}
	i.Add("one")
	return i
}

// Add makes a key.
func (i *Issuer) Add(id string) {
	i.t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[id] = k
}

// Remove forgets a key.
func (i *Issuer) Remove(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.keys, id)
}

// Key returns one of its keys.
func (i *Issuer) Key(id string) *rsa.PrivateKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[id]
}

// Asks is how often its keys were asked for.
func (i *Issuer) Asks() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asks
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	case "/keys":
		i.asks++
		var set jose.JSONWebKeySet
		for id, k := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Public(), KeyID: id, Algorithm: "RS256", Use: "sig"})
		}
		_ = json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}

// Claims are right ones, with some changed; nil leaves one out.
func (i *Issuer) Claims(change map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{
		"iss": i.URL, "aud": Audience, "sub": "ann", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(),
		"weir_role": "operate", "weir_namespace": "shop",
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// Token is one that a key of the issuer has signed.
func (i *Issuer) Token(id string, change map[string]any) string {
	i.t.Helper()
	return Sign(i.t, jose.RS256, i.Key(id), id, i.Claims(change))
}

// Sign makes a token with a key of whoever.
func Sign(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
