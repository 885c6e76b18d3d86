package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// What says that code is wrong refuses it, on each route, and nothing is stored.
func TestHandlersAreChecked(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), func(cfg *api.Config) {
		cfg.CheckHandler = func(_ context.Context, d *handler.Definition) error {
			if d.Body == "(" {
				return fmt.Errorf("%w of a handler: body, line 1", job.ErrValue)
			}
			return nil
		}
	})
	s.ask("PUT", "/v1/handlers/upper", `{"lang":"node","body":"("}`).refuses(http.StatusUnprocessableEntity, "usage", "body, line 1")
	s.ask("PUT", "/v1/handlers/upper", `{"lang":"nod","body":"1"}`).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "node"`)
	s.ask("POST", "/acme/handler/add/mail", `{"lang":"node","body":"("}`).refuses(http.StatusUnprocessableEntity, "usage", "body, line 1")
	var all []handler.Stored
	if s.ask("GET", "/v1/handlers", nil).is(http.StatusOK, &all); len(all) > 0 {
		t.Errorf("stored: %+v", all)
	}
	s.ask("PUT", "/v1/handlers/upper", `{"lang":"node","body":"1"}`).is(http.StatusOK, nil)
}

func TestHandlersOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	var all []handler.Stored
	if s.ask("GET", "/v1/handlers", nil).is(http.StatusOK, &all); all == nil || len(all) > 0 {
		t.Errorf("at first: %+v", all)
	}
	var made api.StoredHandler
	for version := int64(1); version <= 2; version++ {
		s.ask("PUT", "/v1/handlers/upper", `{"lang":"node","body":"return 1","options":{"timeout":"3s"}}`).is(http.StatusOK, &made)
		if made.Version != version || made.Type != "upper" {
			t.Errorf("made %+v", made)
		}
	}
	for body, want := range map[string]string{
		`{"lang":"node"}`: "body is missing", `{"body":"x"}`: "lang is missing", `{"lang":"nod","body":"x"}`: `did you mean "node"`,
		`{"lang":"node","body":"x","boby":1}`: "unknown key", `{"lang":"node","body":"x","prefix":"acme-"}`: "prefix",
	} {
		s.ask("PUT", "/v1/handlers/upper", body).refuses(http.StatusUnprocessableEntity, "usage", want)
	}
	var one handler.Stored
	s.ask("GET", "/v1/handlers/upper?version=1", nil).is(http.StatusOK, &one)
	s.ask("GET", "/v1/handlers/upper?version=9", nil).refuses(http.StatusNotFound, "not_found", `handler not found: type "upper" has no version 9`)
	if one.Version != 1 || one.Definition.Body != "return 1" {
		t.Errorf("version 1: %+v", one)
	}
	s.ask("GET", "/v1/handlers/uper", nil).refuses(http.StatusNotFound, "not_found", `handler not found: type "uper" has none: did you mean "upper"`)
	s.ask("POST", "/v1/jobs", `{"type":"upper"}`).is(http.StatusCreated, nil) // though no engine runs
	s.ask("DELETE", "/v1/handlers/upper", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/handlers/upper", nil).refuses(http.StatusNotFound, "not_found", "handler not found: type \"upper\" has none")
	s.ask("DELETE", "/v1/handlers/upper", nil).refuses(http.StatusNotFound, "not_found", "handler not found: type \"upper\" has none")
}

func TestM28ClientsOnThisMachine(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	var made api.StoredHandler
	s.ask("POST", "/acme/handler/add/mail", `{"lang":"node","body":"return 1"}`).is(http.StatusOK, &made)
	if made.Type != "acme-mail" {
		t.Errorf("made %+v", made)
	}
	var one handler.Stored
	if s.ask("GET", "/acme/handler/get/mail", nil).is(http.StatusOK, &one); one.Definition.Prefix != "acme-" {
		t.Errorf("got %+v", one)
	}
	s.ask("POST", "/other/handler/add/post", `{"lang":"node","body":"return 1"}`).is(http.StatusOK, nil)
	s.ask("GET", "/acme/handler/get/mai", nil).refuses(http.StatusNotFound, "not_found", `did you mean "mail"?`)
	s.ask("GET", "/acme/handler/get/invoice", nil).refuses(http.StatusNotFound, "not_found", "use one of: mail")
	s.ask("POST", "/other/handler/del/post", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/other/handler/get/mail", nil).refuses(http.StatusNotFound, "not_found", "handler not found: client other has none for type \"mail\": there are none")
	s.ask("DELETE", "/other/handler/del/mail", nil).refuses(http.StatusNotFound, "not_found", "handler not found: client other has none for type \"mail\": there are none")
	s.ask("GET", "/acme-mail/handler/get/x", nil).refuses(http.StatusUnprocessableEntity, "usage", "client")
	s.ask("POST", "/acme/handler/del/mail", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/acme/handler/get/mail", nil).refuses(http.StatusNotFound, "not_found", "handler not found: client acme has none")
}

// TestLongRoutesOfHandlers are those of the short ones, with the method by which a URL is asked.
func TestLongRoutesOfHandlers(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	const code = `{"lang":"http","body":"http://example.org/"}`
	for n, method := range []string{"", "?method=*", "?method=post"} {
		var made api.StoredHandler
		if s.ask("POST", "/acme/handler/add/mail/add"+method, code).is(http.StatusOK, &made); made.Type != "acme-mail" || made.Version != int64(n+1) {
			t.Errorf("made %+v", made)
		}
	}
	s.ask("POST", "/acme/handler/add/mail/add?method=get", code).refuses(http.StatusUnprocessableEntity, "usage", "use * or post")
	s.ask("DELETE", "/acme/handler/del/mail/delete", nil).is(http.StatusNoContent, nil)
	s.ask("POST", "/acme/handler/del/mail/delete", nil).refuses(http.StatusNotFound, "not_found", "handler not found: client acme has none")
}

func TestM28TenantsOfTokens(t *testing.T) {
	t.Parallel()
	s, tenant, tokens := withTokens(t)
	s.token = s.newToken(redisstore.TokenAdmin, tenant, 0)
	var made api.StoredHandler
	s.ask("POST", "/"+tenant+"/handler/add/mail", `{"lang":"node","body":"return 1"}`).is(http.StatusOK, &made)
	if made.Type != "mail" {
		t.Errorf("made %+v", made)
	}
	s.token = tokens[redisstore.TokenAdmin]
	for _, request := range [][2]string{{"GET", "get"}, {"DELETE", "del"}} {
		s.ask(request[0], "/"+tenant+"/handler/"+request[1]+"/mail", nil).refuses(http.StatusForbidden, "forbidden", tenant)
	}
	s.ask("POST", "/"+tenant+"/handler/add/mail", `{"lang":"node","body":"return 2"}`).refuses(http.StatusForbidden, "forbidden", tenant)
	s.ask("GET", "/v1/handlers/mail", nil).refuses(http.StatusNotFound, "not_found", "handler not found: type \"mail\" has none")
}

// TestOtherSitesStoreNoCode has a page that another site serves try to store code, which engines would run here, and to delete what is
// stored: by a form, and under a name of its own.
func TestOtherSitesStoreNoCode(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	const code = `{"lang":"node","body":"return 1"}`
	for _, typ := range []string{"acme-mail", "mine"} {
		s.ask("PUT", "/v1/handlers/"+typ, code).is(http.StatusOK, nil)
	}
	for _, route := range [][2]string{
		{"PUT", "/v1/handlers/mine"},
		{"DELETE", "/v1/handlers/mine"},
		{"POST", "/acme/handler/add/mail"},
		{"POST", "/acme/handler/del/mail"},
		{"DELETE", "/acme/handler/del/mail"},
	} {
		for _, header := range [][]string{
			{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
			{"Sec-Fetch-Site", "same-site"}, // of another port, say
			{"Origin", "https://evil.example"},
			{"Origin", "null"},
		} {
			s.ask(route[0], route[1], code, header...).refuses(http.StatusForbidden, "forbidden", "another origin")
		}
	}
	for _, route := range [][2]string{
		{"GET", "/v1/handlers"},
		{"GET", "/v1/handlers/mine"},
		{"PUT", "/v1/handlers/mine"},
		{"DELETE", "/v1/handlers/mine"},
		{"GET", "/acme/handler/get/mail"},
		{"POST", "/acme/handler/add/mail"},
		{"POST", "/acme/handler/del/mail"},
		{"DELETE", "/acme/handler/del/mail"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), route[0], s.url+route[1], strings.NewReader(code))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example:80"
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s %s for evil.example: %d, %v", route[0], route[1], resp.StatusCode, err)
		}
	}
	var all []handler.Stored
	s.ask("GET", "/v1/handlers", nil).is(http.StatusOK, &all)
	if len(all) != 2 || all[0].Version != 1 || all[1].Version != 1 {
		t.Errorf("there is now %+v", all)
	}
}
