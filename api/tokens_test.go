package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// An admin makes tokens of his tenant, sees them without their secrets, and ends them; those of others are none to him.
func TestTokensOverHTTP(t *testing.T) {
	t.Parallel()
	s, tenant, tokens := withTokens(t)
	theirs := s.newToken(redisstore.TokenAdmin, tenant, 0)
	s.token = tokens[redisstore.TokenAdmin]
	var made api.MadeToken
	s.ask("POST", "/v1/tokens", `{"role":"read","name":"grafana","ttl":"90d"}`).is(http.StatusCreated, &made)
	if made.Name != "grafana" || made.Role != redisstore.TokenRead || made.Expires.Sub(made.Created).Hours() < 24*89 {
		t.Fatalf("made %+v", made)
	}
	for body, want := range map[string]string{
		`{"role":"reed"}`: "did you mean \"read\"", `{}`: "unknown role", `{"role":"read","ttl":"soon"}`: "90d", `{"role":"read","ttl":"forever"}`: "90d",
		`{"role":"read","name":"a b"}`: "token name", `{"role":"read","tenant":"` + tenant + `"}`: "unknown key",
	} {
		s.ask("POST", "/v1/tokens", body).refuses(http.StatusUnprocessableEntity, "usage", want)
	}
	var all []redisstore.TokenInfo
	answer := s.ask("GET", "/v1/tokens", nil).is(http.StatusOK, &all)
	if len(all) != len(tokens)+1 || strings.Contains(string(answer.body), strings.Split(made.Token, "_")[2]) {
		t.Errorf("listed %s", answer.body)
	}

	s.token = made.Token
	s.ask("GET", "/v1/jobs", nil).is(http.StatusOK, nil)
	s.token = theirs
	if s.ask("GET", "/v1/tokens", nil).is(http.StatusOK, &all); len(all) != 1 || all[0].Tenant != tenant {
		t.Errorf("another tenant lists %+v", all)
	}
	s.ask("DELETE", "/v1/tokens/"+made.ID, nil).refuses(http.StatusNotFound, "not_found", "no token")
	var other api.MadeToken
	if s.ask("POST", "/v1/tokens", `{"role":"admin"}`).is(http.StatusCreated, &other); other.Tenant != tenant {
		t.Errorf("made %+v for another tenant", other)
	}
	s.token = tokens[redisstore.TokenAdmin]
	s.ask("DELETE", "/v1/tokens/"+made.ID, nil).is(http.StatusNoContent, nil)
	s.ask("DELETE", "/v1/tokens/"+made.ID, nil).refuses(http.StatusNotFound, "not_found", "no token")
	s.token = made.Token
	s.ask("GET", "/v1/jobs", nil).refuses(http.StatusUnauthorized, "unauthorized", "not known") // at once, of the server that ended it
}

// A server that demands no tokens makes none: whoever reaches it today could come back when it does.
func TestNoTokensWithoutTokens(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("GET", "/v1/tokens", nil).is(http.StatusOK, nil)
	s.ask("POST", "/v1/tokens", `{"role":"admin"}`).refuses(http.StatusForbidden, "forbidden", "--tokens")
	s.newToken(redisstore.TokenRead, "", 0)
	var all []redisstore.TokenInfo
	s.ask("GET", "/v1/tokens", nil).is(http.StatusOK, &all)
	s.ask("DELETE", "/v1/tokens/"+all[0].ID, nil).refuses(http.StatusForbidden, "forbidden", "--tokens")
}

// The audit log is read by who did something, by what it was, and page by page.
func TestAuditPages(t *testing.T) {
	t.Parallel()
	s, _, tokens := withTokens(t)
	s.token = tokens[redisstore.TokenOperate]
	for range 3 {
		s.ask("POST", "/v1/jobs", `{"type":"collect"}`).is(http.StatusCreated, nil)
	}
	s.ask("POST", "/v1/queues/default/pause", nil).is(http.StatusOK, nil)
	s.ask("POST", "/v1/queues/default/resume", nil).is(http.StatusOK, nil)
	s.token = tokens[redisstore.TokenAdmin]
	s.ask("POST", "/v1/jobs", `{"type":"collect"}`).is(http.StatusCreated, nil)
	read := func(query string) (all []redisstore.AuditEntry, did []string) {
		s.ask("GET", "/v1/audit"+query, nil).is(http.StatusOK, &all)
		for _, e := range all {
			did = append(did, string(e.Role)+" "+e.Operation)
		}
		return all, did
	}
	whole, did := read("")
	if want := []string{"admin create-job", "operate resume-queue", "operate pause-queue", "operate create-job", "operate create-job", "operate create-job"}; !slices.Equal(did, want) {
		t.Fatalf("acts %q, want %q", did, want)
	}
	if _, did := read("?operation=create-job&principal=" + whole[1].Principal); len(did) != 3 {
		t.Errorf("by one, of one kind: %q", did)
	}
	var paged []redisstore.AuditEntry
	for until := ""; ; {
		page, _ := read("?limit=4&until=" + until)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		until = page[len(page)-1].At.Format("2006-01-02T15:04:05.999999999Z07:00")
	}
	if !slices.Equal(paged, whole) {
		t.Errorf("in pages %+v, at once %+v", paged, whole)
	}
}
