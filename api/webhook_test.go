package api_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

const webhookSecret = "a secret of a webhook"

func signed(secret string, parts ...string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(strings.Join(parts, "")))
	return h.Sum(nil)
}

// hub is how GitHub signs.
func hub(secret, body string) []string {
	return []string{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(signed(secret, body))}
}

// standard is how Standard Webhooks do.
func standard(secret, id string, at time.Time, body string) []string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	return []string{"Webhook-Id", id, "Webhook-Timestamp", stamp, "Webhook-Signature", "v1,bm8= v1," + base64.StdEncoding.EncodeToString(signed(secret, id, ".", stamp, ".", body))}
}

// addHook makes a webhook trigger that verifies by a scheme.
func (s *service) addHook(alias, scheme string) {
	s.Helper()
	s.ask("POST", "/v1/triggers", map[string]any{
		"alias": alias, "secret": webhookSecret,
		"definition": map[string]any{"verify": map[string]any{"scheme": scheme}, "launch": map[string]any{"type": "collect"}},
	}).is(http.StatusCreated, nil)
}

// fired waits until a trigger has fired so often.
func (s *service) fired(alias string, want int64) {
	s.Helper()
	var t api.Trigger
	for deadline := time.Now().Add(20 * time.Second); t.Firings != want; time.Sleep(20 * time.Millisecond) {
		if s.ask("GET", "/v1/triggers/"+alias, nil).is(http.StatusOK, &t); time.Now().After(deadline) || t.Firings > want {
			s.Fatalf("%s has fired %d times, want %d", alias, t.Firings, want)
		}
	}
}

// A webhook that is called without a body gets null: who calls it may have nothing to say, and may sign that.
func TestWebhookWithoutABody(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.addHook("signed", "github")
	s.ask("POST", "/v1/triggers", `{"alias":"open","definition":{"filter":"it == nil","launch":{"type":"collect"}}}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/triggers/open/send", nil).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/triggers/signed/send", nil, hub(webhookSecret, "")...).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/triggers/signed/send", nil).is(http.StatusUnauthorized, nil)
	s.fired("open", 1)
	s.fired("signed", 1)
}

// A message that is signed as its trigger demands is taken, with or without a token, and no other; nothing shows the secret.
func TestSignedWebhooks(t *testing.T) {
	t.Parallel()
	s, tenant, tokens := withTokens(t)
	s.token = tokens[redisstore.TokenOperate]
	s.addHook("github", "github")
	s.addHook("standard", "standard")
	s.ask("POST", "/v1/triggers", `{"alias":"open","definition":{"launch":{"type":"collect"}}}`).is(http.StatusCreated, nil)
	const body = ` {"n": 1.0}`
	now := time.Now()
	anybody := s.with("")
	for n, token := range []string{"", s.token} {
		with := s.with(token)
		with.ask("POST", "/v1/triggers/github/send", body, hub(webhookSecret, body)...).is(http.StatusNoContent, nil)
		with.ask("POST", "/v1/triggers/standard/send", body, standard(webhookSecret, "m"+strconv.Itoa(n), now, body)...).is(http.StatusNoContent, nil)
		for name, header := range map[string][]string{
			"github not at all":      nil,
			"github another secret":  hub("another secret!!", body),
			"github another body":    hub(webhookSecret, `{"n":2}`),
			"github no secret":       hub("", body),
			"github half":            {"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(signed(webhookSecret, body))[:32]},
			"github sha1":            {"X-Hub-Signature-256", "sha1=" + hex.EncodeToString(signed(webhookSecret, body))},
			"github standard":        standard(webhookSecret, "m", now, body),
			"standard hub":           hub(webhookSecret, body),
			"standard old":           standard(webhookSecret, "m", now.Add(-6*time.Minute), body),
			"standard of the future": standard(webhookSecret, "m", now.Add(6*time.Minute), body),
			"standard another id":    append(standard(webhookSecret, "m", now, body), "Webhook-Id", "other"),
			"standard no id":         standard(webhookSecret, "", now, body),
			"nobody's":               hub(webhookSecret, body),
		} {
			alias, _, _ := strings.Cut(name, " ")
			if alias == "nobody's" {
				continue
			}
			with.ask("POST", "/v1/triggers/"+alias+"/send", body, header...).refuses(http.StatusUnauthorized, "unauthorized", "")
		}
	}
	// Who has no token learns nothing of what there is.
	want := string(anybody.ask("POST", "/v1/triggers/github/send", body, hub("another secret!!", body)...).body)
	for _, name := range []string{"nobody", "open", "standard"} {
		if got := string(anybody.ask("POST", "/v1/triggers/"+name+"/send", body, hub(webhookSecret, body)...).body); got != want {
			t.Errorf("of %s: %s, want %s", name, got, want)
		}
	}
	anybody.ask("POST", "/v1/triggers/open/send", body).refuses(http.StatusUnauthorized, "unauthorized", "weir token create")
	anybody.ask("POST", "/v1/triggers/github/fire", body, hub(webhookSecret, body)...).refuses(http.StatusUnauthorized, "unauthorized", "")
	anybody.ask("GET", "/v1/triggers/github", nil, hub(webhookSecret, body)...).refuses(http.StatusUnauthorized, "unauthorized", "")
	s.with(s.newToken(redisstore.TokenAdmin, tenant, 0)).ask("POST", "/v1/triggers/github/send", body, hub(webhookSecret, body)...).refuses(http.StatusNotFound, "not_found", "")
	// A message that comes again does nothing.
	anybody.ask("POST", "/v1/triggers/standard/send", body, standard(webhookSecret, "m0", now.Add(time.Second), body)...).is(http.StatusNoContent, nil)
	s.fired("github", 2)
	s.fired("standard", 2)
	// The secret changes at once, and is nowhere to be seen.
	s.ask("PUT", "/v1/triggers/github/secret", `{"secret":"another secret, 24 bytes"}`).is(http.StatusNoContent, nil)
	anybody.ask("POST", "/v1/triggers/github/send", body, hub(webhookSecret, body)...).refuses(http.StatusUnauthorized, "unauthorized", "")
	anybody.ask("POST", "/v1/triggers/github/send", body, hub("another secret, 24 bytes", body)...).is(http.StatusNoContent, nil)
	s.ask("PUT", "/v1/triggers/standard/secret", `{"secret":"whsec_`+base64.StdEncoding.EncodeToString([]byte("another secret, 24 bytes"))+`"}`).is(http.StatusNoContent, nil)
	anybody.ask("POST", "/v1/triggers/standard/send", body, standard("another secret, 24 bytes", "m9", now, body)...).is(http.StatusNoContent, nil)
	s.token = tokens[redisstore.TokenAdmin]
	for _, path := range []string{"/v1/triggers/standard", "/v1/triggers", "/v1/jobs/standard", "/v1/jobs/standard/tree", "/v1/jobs/standard/log", "/v1/jobs/standard/state", "/v1/jobs/standard/why", "/v1/audit", "/v1/jobs?all=true"} {
		if got := s.ask("GET", path, nil).is(http.StatusOK, nil).text(); strings.Contains(got, webhookSecret) || strings.Contains(got, base64.RawStdEncoding.EncodeToString([]byte(webhookSecret))) {
			t.Errorf("GET %s shows the secret: %s", path, got)
		}
	}
	var log []redisstore.AuditEntry
	s.ask("GET", "/v1/audit?limit=1000", nil).is(http.StatusOK, &log)
	for _, e := range log {
		if e.Principal == "webhook" && e.Status == http.StatusUnauthorized {
			t.Errorf("who has no token fills the audit log: %+v", e)
		}
	}
}

// What is wrong with how a trigger is to verify is refused when it is made, and a secret that is no good; the refusal does not have it.
func TestWebhooksThatCannotVerify(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	const launch = `"launch":{"type":"collect"}`
	for body, want := range map[string]string{
		`{"secret":"` + webhookSecret + `","definition":{` + launch + `}}`:                                                 "go together",
		`{"definition":{"verify":{"scheme":"github"},` + launch + `}}`:                                                     "go together",
		`{"secret":"` + webhookSecret + `","definition":{"verify":{"scheme":"githib"},` + launch + `}}`:                    `did you mean "github"`,
		`{"secret":"` + webhookSecret + `","definition":{"verify":{"scheme":"github","tolerance":"1m"},` + launch + `}}`:   "tolerance is for the scheme standard",
		`{"secret":"` + webhookSecret + `","definition":{"verify":{"scheme":"standard","tolerance":"1h"},` + launch + `}}`: "use a time up to 30m",
		`{"secret":"` + webhookSecret + `","definition":{"channel":"/a","verify":{"scheme":"github"},` + launch + `}}`:     "fires for a event",
		`{"secret":"short","definition":{"verify":{"scheme":"github"},` + launch + `}}`:                                    "5 bytes: use 16 to 512",
		`{"secret":"whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!","definition":{"verify":{"scheme":"github"},` + launch + `}}`:        "base64",
	} {
		a := s.ask("POST", "/v1/triggers", body)
		a.refuses(http.StatusUnprocessableEntity, "usage", want)
		if strings.Contains(string(a.body), webhookSecret) || strings.Contains(string(a.body), "!!!") {
			t.Errorf("%s shows the secret", a.body)
		}
	}
	s.ask("POST", "/v1/triggers", `{"alias":"open","definition":{`+launch+`}}`).is(http.StatusCreated, nil)
	s.ask("PUT", "/v1/triggers/open/secret", `{"secret":"`+webhookSecret+`"}`).refuses(http.StatusUnprocessableEntity, "usage", "does not verify")
	s.ask("PATCH", "/v1/triggers/open", `{"verify":{"scheme":"github"}}`).is(http.StatusNoContent, nil)
}
