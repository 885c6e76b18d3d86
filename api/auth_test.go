package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// withTokens is a service that demands tokens, with a tenant besides its own, and a token of each role.
func withTokens(t *testing.T) (s *service, tenant string, tokens map[redisstore.TokenRole]string) {
	t.Helper()
	url := redistest.SharedRedis(t)
	tenant = redistest.Namespace(t)
	s = serve(t, url, func(c *api.Config) {
		c.Tokens = true
		c.Open = func(ctx context.Context, namespace string) (*redisstore.Store, error) {
			return redisstore.Open(ctx, redisstore.Config{URL: url, Namespace: namespace, Shards: 1})
		}
	})
	tokens = map[redisstore.TokenRole]string{}
	for _, role := range redisstore.TokenRoles {
		tokens[role] = s.newToken(role, "", 0)
	}
	return s, tenant, tokens
}

func (s *service) newToken(role redisstore.TokenRole, tenant string, ttl time.Duration) string {
	s.Helper()
	text, _, err := s.store.CreateToken(s.Context(), "", role, tenant, ttl)
	if err != nil {
		s.Fatal(err)
	}
	return text
}

// Each operation asks for a token, and one of a role that may do it; what the role allows is not refused for it.
func TestRoles(t *testing.T) {
	t.Parallel()
	s, _, tokens := withTokens(t)
	fill := strings.NewReplacer("{job}", "nobody", "{dir}", "in", "{port}", "in", "{key}", "k", "{name}", "n", "{alias}", "a", "{queue}", "default", "{worker}", "nobody", "{type}", "map", "{client}", s.store.Namespace())
	for _, r := range s.api.Routes() {
		path := fill.Replace(r.Path)
		if r.Path == "/v1/events/jobs" {
			path += "?alias=a" // which is refused: else it would answer indefinitely
		}
		s.token = ""
		a := s.ask(r.Method, path, `{}`)
		a.refuses(http.StatusUnauthorized, "unauthorized", "weir token create")
		if a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s: no WWW-Authenticate", r.Method, r.Path)
		}
		s.token = "weir_abc_def"
		s.ask(r.Method, path, `{}`).refuses(http.StatusUnauthorized, "unauthorized", "not known")
		for role, token := range tokens {
			s.token = token
			a := s.ask(r.Method, path, `{}`)
			if refused := a.status == http.StatusForbidden || a.status == http.StatusUnauthorized; refused == api.Allowed(role, r.Role) {
				t.Errorf("%s %s, which needs %s, as %s: %d %s", r.Method, r.Path, r.Role, role, a.status, a.body)
			}
		}
	}
	if !api.Allowed(redisstore.TokenRead, redisstore.TokenRead) || api.Allowed(redisstore.TokenRead, redisstore.TokenOperate) ||
		api.Allowed(redisstore.TokenWork, redisstore.TokenOperate) || !api.Allowed(redisstore.TokenAdmin, redisstore.TokenWork) {
		t.Error("roles may do what they must not, or must not what they may")
	}
}

// Whoever has a token of a tenant sees and changes nothing of another one, whatever the request says.
func TestTenants(t *testing.T) {
	t.Parallel()
	s, tenant, tokens := withTokens(t)
	mine, theirs := tokens[redisstore.TokenAdmin], s.newToken(redisstore.TokenAdmin, tenant, 0)
	s.token = mine
	var job api.Job
	s.ask("POST", "/v1/graphs", `{"alias":"secret","graph":{"weir":1,"nodes":{"c":{"type":"collect"}},"inputs":{"in":"c.in"},"outputs":{"out":"c.out"}}}`).is(http.StatusCreated, &job)
	before := string(s.ask("GET", "/v1/jobs/secret/tree", nil).body)
	var launcher oneLauncher
	s.cozy("POST", "/jobs/launchers/collect", `{"type":"@interval","arguments":"24h"}`).is(http.StatusCreated, &launcher)

	s.token = theirs
	var me api.Me
	if s.ask("GET", "/v1/me", nil).is(http.StatusOK, &me); me.Tenant != tenant {
		t.Fatalf("me: %+v", me)
	}
	for _, name := range []string{"secret", string(job.ID), string(job.ID) + ".1", string(launcher.Data.ID)} {
		fill := strings.NewReplacer("{job}", name, "{dir}", "in", "{port}", "in", "{key}", "k", "{name}", "c", "{alias}", "taken", "{queue}", "default", "{worker}", "nobody", "{type}", "map")
		for _, r := range s.api.Routes() {
			if !strings.Contains(r.Path, "{job}") {
				continue
			}
			query := ""
			if r.Method == http.MethodDelete {
				query = map[bool]string{true: "?force=true", false: "?from=0&n=1"}[strings.HasSuffix(r.Path, "/lock")]
				if !strings.Contains(r.Path, "lock") && !strings.Contains(r.Path, "messages") {
					query = ""
				}
			}
			body := `{}`
			if strings.HasSuffix(r.Path, "/messages") {
				body = `{"messages":[1]}`
			} else if strings.HasSuffix(r.Path, "/state") {
				body = `{"k":1}`
			}
			a := s.ask(r.Method, fill.Replace(r.Path)+query, body)
			if a.status < 400 || strings.Contains(string(a.body), "collect") {
				t.Errorf("%s %s of another tenant's job: %d %s", r.Method, r.Path, a.status, a.body)
			}
		}
	}
	s.cozy("GET", "/jobs/"+string(job.ID), nil).refuses(http.StatusNotFound, "not_found", "")
	for _, path := range []string{"/jobs/queue/map", "/jobs/launchers/map"} {
		s.cozy("POST", path, `{"type":"@interval","arguments":"1h"}`).refuses(http.StatusNotFound, "not_found", "no worker")
	}
	for _, path := range []string{"/jobs/queue", "/jobs/launchers"} {
		var page manyJobs
		if s.cozy("GET", path, nil).is(http.StatusOK, &page); len(page.Data) != 0 {
			t.Errorf("%s of another tenant: %+v", path, page)
		}
	}
	if s.ask("GET", "/v1/jobs?all=true", nil).is(http.StatusOK, nil); strings.Contains(string(s.ask("GET", "/v1/jobs?all=true", nil).body), "secret") {
		t.Error("another tenant's job is listed")
	}
	s.token = mine
	s.cozy("GET", launcher.Data.Links.Self, nil).is(http.StatusOK, nil)
	if after := string(s.ask("GET", "/v1/jobs/secret/tree", nil).body); after != before {
		t.Errorf("another tenant changed it:\n%s\n%s", before, after)
	}
}

func TestTokensEnd(t *testing.T) {
	t.Parallel()
	s, _, tokens := withTokens(t)
	s.token = s.newToken(redisstore.TokenRead, "", time.Second)
	s.ask("GET", "/v1/me", nil).is(http.StatusOK, nil)
	for deadline := time.Now().Add(20 * time.Second); s.ask("GET", "/v1/me", nil).status == http.StatusOK; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a token of one second is valid after twenty")
		}
	}
	s.token = tokens[redisstore.TokenRead]
	s.ask("GET", "/v1/me", nil).is(http.StatusOK, nil)
	id := strings.Split(s.token, "_")[1]
	if err := s.store.RevokeToken(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); s.ask("GET", "/v1/me", nil).status == http.StatusOK; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a token is valid long after it was revoked")
		}
	}
	// The secret counts, not only the ID.
	s.token = tokens[redisstore.TokenAdmin]
	s.ask("GET", "/v1/me", nil).is(http.StatusOK, nil)
	s.token = s.token[:len(s.token)-1] + "0"
	s.ask("GET", "/v1/me", nil).refuses(http.StatusUnauthorized, "unauthorized", "")
}

// A page in a browser that another site serves reaches nothing, neither by a form nor under a name of its own.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/jobs", `{"type":"collect"}`, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example").is(http.StatusForbidden, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/jobs", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example:80"
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("a request for evil.example: %d", resp.StatusCode)
	}
}

// A server that has names is reached by these, and by IP addresses, which no page has by a trick.
func TestHosts(t *testing.T) {
	t.Parallel()
	s := serve(t, "", func(c *api.Config) { c.Hosts = []string{"jobs.example.com"} })
	for host, want := range map[string]int{
		"jobs.example.com": http.StatusOK, "jobs.example.com:8080": http.StatusOK, "localhost:8080": http.StatusOK, "10.1.2.3:8080": http.StatusOK,
		"[::1]:8080": http.StatusOK, "evil.example": http.StatusMisdirectedRequest, "10.1.2.3.evil.example": http.StatusMisdirectedRequest,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/jobs", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != want {
			t.Errorf("%s: %d, want %d (%v)", host, resp.StatusCode, want, err)
		}
	}
}

// Who changes something, or must not, is remembered in the log of his tenant alone, and readers are not.
func TestAudit(t *testing.T) {
	t.Parallel()
	s, tenant, tokens := withTokens(t)
	s.token = tokens[redisstore.TokenRead]
	s.ask("GET", "/v1/jobs", nil).is(http.StatusOK, nil)
	s.ask("POST", "/v1/queues/default/pause", nil).refuses(http.StatusForbidden, "forbidden", "operate")
	s.token = tokens[redisstore.TokenOperate]
	s.ask("POST", "/v1/jobs", `{"type":"collect","alias":"c"}`).is(http.StatusCreated, nil)
	s.ask("DELETE", "/v1/jobs/c/lock?token=secret", nil)
	s.ask("GET", "/v1/audit", nil).refuses(http.StatusForbidden, "forbidden", "admin")
	s.token = tokens[redisstore.TokenAdmin]
	var all []redisstore.AuditEntry
	s.ask("GET", "/v1/audit", nil).is(http.StatusOK, &all)
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprint(e.Role, " ", e.Operation, " ", e.Status))
	}
	want := []string{"operate audit 403", "operate unlock-job 409", "operate create-job 201", "read pause-queue 403"}
	if !slices.Equal(got, want) || all[1].Path != "/v1/jobs/c/lock" {
		t.Errorf("acts %q, want %q", got, want)
	}
	s.token = s.newToken(redisstore.TokenAdmin, tenant, 0)
	if s.ask("GET", "/v1/audit", nil).is(http.StatusOK, &all); len(all) != 0 {
		t.Errorf("another tenant sees %+v", all)
	}
}

// Each token has its share of requests: one that has used it up has to wait, others have not, and the audit log does not fill up.
func TestMaxRate(t *testing.T) {
	t.Parallel()
	url := redistest.SharedRedis(t)
	s := serve(t, url, func(c *api.Config) { c.Tokens, c.MaxRate = true, 1 })
	mine, theirs := s.newToken(redisstore.TokenOperate, "", 0), s.newToken(redisstore.TokenAdmin, "", 0)
	s.token = mine
	refused := func() bool {
		a := s.ask("GET", "/v1/me", nil)
		if a.status == http.StatusOK {
			return false
		}
		if a.refuses(http.StatusTooManyRequests, "rate", "more than 1 requests a second"); a.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
		}
		return true
	}
	if refused() {
		t.Fatal("the first request is refused")
	}
	for n := 0; !refused(); n++ {
		if n == 1000 {
			t.Fatal("nothing is refused")
		}
	}
	for n := 0; s.cozy("GET", "/jobs/queue", nil).status != http.StatusTooManyRequests; n++ {
		if n == 1000 {
			t.Fatal("nothing is refused under /jobs")
		}
	}
	s.token = theirs
	var all []redisstore.AuditEntry
	if s.ask("GET", "/v1/audit", nil).is(http.StatusOK, &all); len(all) != 0 {
		t.Errorf("audited %+v", all)
	}
	s.token = mine
	for deadline := time.Now().Add(20 * time.Second); refused(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a token is refused for twenty seconds")
		}
	}
	if _, err := api.New(api.Config{Store: s.store, MaxRate: -1}); err == nil || !strings.Contains(err.Error(), "MaxRate") {
		t.Error(err)
	}
}
