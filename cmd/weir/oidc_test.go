package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/oidctest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// TestServeOIDC: a token of an issuer lets in whom its claims say, also commands behind --server, before and after the issuer is there.
func TestServeOIDC(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	issuer := oidctest.New(t, "")
	login := httptest.NewUnstartedServer(issuer)
	issuer.URL = "http://" + login.Listener.Addr().String()
	t.Cleanup(login.Close)
	address := servedAt(t, "--redis", url, "--no-engine", "--oidc-issuer", issuer.URL, "--oidc-audience", oidctest.Audience, "--oidc-role-claim", "roles")
	ask := func(token string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/v1/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	token := issuer.Token("one", map[string]any{"roles": []string{"operate"}, "weir_role": nil, "weir_namespace": redisstore.DefaultNamespace})
	if got := ask(token); got != http.StatusServiceUnavailable {
		t.Errorf("%d before the issuer answers", got)
	}
	if got := ask(strings.TrimSpace(weir(t, url, "token", "create", "--role", "read"))); got != http.StatusOK {
		t.Errorf("%d for a token of Weir's own", got)
	}
	login.Start()
	for started := time.Now(); ask(token) != http.StatusOK; time.Sleep(100 * time.Millisecond) {
		if time.Since(started) > time.Minute {
			t.Fatalf("%d a minute after the issuer has come", ask(token))
		}
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"queue", "pause", "mail", "--force", "--server", address, "--token-file", file}, &out, &errs); code != 0 {
		t.Errorf("weir queue pause: %d %s", code, errs.String())
	}
	if got := weir(t, url, "audit"); !strings.Contains(got, issuer.URL+"#ann") {
		t.Errorf("audit:\n%s", got)
	}
	if got := weir(t, url, "queues"); strings.Contains(got, token) {
		t.Error("a token is shown")
	}
}
