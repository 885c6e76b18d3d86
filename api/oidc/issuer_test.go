package oidc_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirworks/weir/api/oidc"
	"github.com/weirworks/weir/internal/oidctest"
)

const issuerURL = "https://login.test"

// issuer is one that is reached without a network, for a clock that tests move.
type issuer struct {
	*testing.T
	*oidctest.Issuer
	away   bool
	hangs  bool
	answer string // instead of its own, unless empty
	moved  string // where it redirects to, unless empty or asked there
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	return &issuer{T: t, Issuer: oidctest.New(t, issuerURL)}
}

// RoundTrip implements http.RoundTripper.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if i.away {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	if i.moved != "" && !strings.HasPrefix(r.URL.String(), i.moved) {
		http.Redirect(w, r, i.moved+r.URL.Path, http.StatusFound)
	} else {
		i.ServeHTTP(w, r)
	}
	resp := w.Result()
	if i.answer != "" {
		resp.Body = io.NopCloser(strings.NewReader(i.answer))
	}
	return resp, nil
}

// verifier believes the issuer.
func (i *issuer) verifier() *oidc.Verifier {
	i.Helper()
	v, err := oidc.New(oidc.Config{Issuer: issuerURL, Audience: oidctest.Audience, Transport: i})
	if err != nil {
		i.Fatal(err)
	}
	return v
}

// refuses demands an error of a kind with a text; a nil kind means: neither unavailable nor forbidden.
func (i *issuer) refuses(v *oidc.Verifier, token string, kind error, detail string) {
	i.Helper()
	who, err := v.Verify(context.Background(), token)
	if err == nil {
		i.Fatalf("accepted as %+v", who)
	}
	for _, k := range kinds {
		if is := errors.Is(err, k); is != errors.Is(kind, k) {
			i.Errorf("%v: wraps %v: %v", err, k, is)
		}
	}
	if !strings.Contains(err.Error(), detail) {
		i.Errorf("%q does not say %q", err, detail)
	}
}
