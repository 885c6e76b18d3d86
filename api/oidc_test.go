package api_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/api/oidc"
	"github.com/weirworks/weir/internal/oidctest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// withIssuer is a service that believes an issuer, which stops when its server is closed.
func withIssuer(t *testing.T, change func(*api.Config)) (s *service, i *oidctest.Issuer, login *httptest.Server) {
	t.Helper()
	i = oidctest.New(t, "")
	login = httptest.NewServer(i)
	t.Cleanup(login.Close)
	i.URL = login.URL
	v, err := oidc.New(oidc.Config{Issuer: login.URL, Audience: oidctest.Audience})
	if err != nil {
		t.Fatal(err)
	}
	url := redistest.SharedRedis(t)
	s = serve(t, url, func(c *api.Config) {
		c.Tokens, c.Verify = true, v.Verify
		c.Open = func(ctx context.Context, namespace string) (*redisstore.Store, error) {
			return redisstore.Open(ctx, redisstore.Config{URL: url, Namespace: namespace, Shards: 1})
		}
		if change != nil {
			change(c)
		}
	})
	return s, i, login
}

// issued is a token for the namespace that a service serves.
func (s *service) issued(i *oidctest.Issuer, role redisstore.TokenRole, change map[string]any) string {
	s.Helper()
	all := map[string]any{"weir_role": role, "weir_namespace": s.store.Namespace()}
	for k, v := range change {
		all[k] = v
	}
	return i.Token("one", all)
}

// What a token of an issuer may do is what its claims say, as with Weir's own, which are good beside it: each operation, for each role.
func TestIssuedRoles(t *testing.T) {
	t.Parallel()
	s, i, _ := withIssuer(t, nil)
	tokens := map[redisstore.TokenRole]string{}
	for _, role := range redisstore.TokenRoles {
		tokens[role] = s.issued(i, role, nil)
	}
	fill := strings.NewReplacer("{job}", "nobody", "{dir}", "in", "{port}", "in", "{key}", "k", "{name}", "n", "{alias}", "a", "{queue}", "default", "{worker}", "nobody", "{type}", "map", "{client}", s.store.Namespace())
	for _, r := range s.api.Routes() {
		path := fill.Replace(r.Path)
		if r.Path == "/v1/events/jobs" {
			path += "?alias=a" // which is refused: else it would answer indefinitely
		}
		s.token = s.issued(i, redisstore.TokenAdmin, map[string]any{"aud": "other"})
		s.ask(r.Method, path, `{}`).refuses(http.StatusUnauthorized, "unauthorized", "audience")
		for role, token := range tokens {
			s.token = token
			a := s.ask(r.Method, path, `{}`)
			if refused := a.status == http.StatusForbidden || a.status == http.StatusUnauthorized; refused == api.Allowed(role, r.Role) {
				t.Errorf("%s %s, which needs %s, as %s: %d %s", r.Method, r.Path, r.Role, role, a.status, a.body)
			}
		}
	}
	if i.Asks() > 2 {
		t.Errorf("the issuer was asked %d times for its keys", i.Asks())
	}
	s.token = s.newToken(redisstore.TokenRead, "", 0)
	s.ask("GET", "/v1/me", nil).is(http.StatusOK, nil)
	s.token = ""
	s.ask("GET", "/v1/me", nil).refuses(http.StatusUnauthorized, "unauthorized", "or one of the issuer")
	s.token = s.issued(i, "root", nil)
	s.ask("GET", "/v1/me", nil).refuses(http.StatusForbidden, "forbidden", "unknown role")
	if _, err := api.New(api.Config{Store: s.store, Verify: func(context.Context, string) (api.Identity, error) { return api.Identity{}, nil }}); err == nil || !strings.Contains(err.Error(), "Tokens") {
		t.Error(err)
	}
}

// The namespace is that of the token, who acts is told with the issuer, and each subject has its share of requests.
func TestIssuedTenants(t *testing.T) {
	t.Parallel()
	s, i, login := withIssuer(t, func(c *api.Config) { c.MaxRate = 50 })
	tenant := redistest.Namespace(t)
	ann := login.URL + "#ann"
	s.token = s.issued(i, redisstore.TokenOperate, nil)
	var me api.Me
	if s.ask("GET", "/v1/me", nil).is(http.StatusOK, &me); me.Name != ann || me.Role != redisstore.TokenOperate || me.Tenant != s.store.Namespace() {
		t.Errorf("me: %+v", me)
	}
	s.ask("POST", "/v1/jobs", `{"type":"collect","alias":"secret"}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/secret/ports/in/in/messages", `{"messages":[1]}`).is(http.StatusOK, nil)
	s.cozy("POST", "/jobs/launchers/collect", `{"type":"@interval","arguments":"24h"}`).is(http.StatusCreated, nil)
	send := s.lines()
	create := func(token string) string { return send("CreateJob", "authorization: Bearer "+token, "name: foo") }
	if got := create(s.token); got != "200 OK" {
		t.Errorf("a command of Bedrock: %s", got)
	}
	if got := create(s.issued(i, redisstore.TokenRead, nil)); !strings.Contains(got, "403") {
		t.Errorf("a command of Bedrock by a reader: %s", got)
	}
	if got := create(s.issued(i, redisstore.TokenAdmin, map[string]any{"aud": "x"})); !strings.Contains(got, "401") {
		t.Errorf("a command of Bedrock for another audience: %s", got)
	}
	var all []redisstore.AuditEntry
	s.token = s.newToken(redisstore.TokenAdmin, "", 0)
	s.ask("GET", "/v1/audit", nil).is(http.StatusOK, &all)
	seen := map[string]string{}
	for _, e := range all {
		seen[e.Operation] = e.Principal
	}
	for _, op := range []string{"create-job", "send", "cozy-launch", "bedrock-CreateJob"} {
		if seen[op] != ann {
			t.Errorf("%s was done by %q, want %q; all: %v", op, seen[op], ann, seen)
		}
	}
	s.token = i.Token("one", map[string]any{"weir_role": "admin", "weir_namespace": tenant})
	s.ask("GET", "/v1/jobs/secret", nil).refuses(http.StatusNotFound, "not_found", "")
	s.token = s.issued(i, redisstore.TokenRead, map[string]any{"sub": "bob"})
	refused := 0
	for n := range 2000 { // other tokens of bob do not give him another share
		if n%2 == 1 {
			s.token = s.issued(i, redisstore.TokenRead, map[string]any{"sub": "bob", "jti": fmt.Sprint(n % 20)})
		}
		if s.ask("GET", "/v1/me", nil).status == http.StatusTooManyRequests {
			refused++
			break
		}
	}
	if refused == 0 {
		t.Error("bob may ask as often as he likes")
	}
	s.token = s.issued(i, redisstore.TokenRead, nil)
	s.ask("GET", "/v1/me", nil).is(http.StatusOK, nil)
}

// Streams, and what waits, end with the token, also of a job that is never quiet.
func TestIssuedTokenEnds(t *testing.T) {
	t.Parallel()
	s, i, _ := withIssuer(t, nil)
	s.token = s.issued(i, redisstore.TokenAdmin, nil)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"busy"}`).is(http.StatusCreated, nil)
	live := s.token
	s.token = s.issued(i, redisstore.TokenRead, map[string]any{"exp": time.Now().Add(3 * time.Second).Unix()})
	over := make(chan string, 4)
	paths := []string{"/v1/jobs/busy/events", "/v1/events/jobs", "/v1/jobs/busy/ports/in/in/events", "/v1/jobs/busy/live"}
	for _, path := range paths {
		reader := *s
		opened := make(chan struct{})
		go func() {
			reader.stream(t.Context(), path, "", func() { close(opened) }, func(event) {})
			over <- path
		}()
		soon(t, "the stream "+path, opened)
	}
	ended := s.token
	s.token = live
	for deadline := time.Now().Add(30 * time.Second); len(over) < len(paths); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d streams have ended with the token", len(over), len(paths))
		}
		s.ask("POST", "/v1/jobs/busy/ports/in/in/messages", `{"messages":[1,2,3]}`).is(http.StatusOK, nil)
	}
	s.token = ended
	s.ask("GET", "/v1/me", nil).refuses(http.StatusUnauthorized, "unauthorized", "has expired at")
}

// An issuer that is away is no reason to say that a token is wrong, nor to refuse Weir's own.
func TestIssuerDown(t *testing.T) {
	t.Parallel()
	s, i, login := withIssuer(t, nil)
	login.Close()
	s.token = s.issued(i, redisstore.TokenRead, nil)
	s.ask("GET", "/v1/me", nil).refuses(http.StatusServiceUnavailable, "unavailable", "does not tell its keys")
	s.cozy("GET", "/jobs/queue", nil).refuses(http.StatusServiceUnavailable, "unavailable", "does not tell its keys")
	if got := s.lines()("GetJob", "authorization: Bearer "+s.token, "name: *"); !strings.Contains(got, "503") {
		t.Errorf("a command of Bedrock: %s", got)
	}
	s.token = s.newToken(redisstore.TokenRead, "", 0)
	s.ask("GET", "/v1/me", nil).is(http.StatusOK, nil)
	out, err := exec.CommandContext(t.Context(), "curl", "-s", s.url+"/v1/me", "-H", "Authorization: Bearer a.b.c").Output()
	if err != nil || !strings.Contains(string(out), `"status":401`) {
		t.Errorf("what is no token at all: %s, %v", out, err)
	}
}
