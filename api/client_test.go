package api_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
)

func TestClientType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tokens       bool
		client, name string
		want         string
		status       int
	}{
		{false, "acme", "mail", "acme-mail", 0},
		{false, "acme", "mail-v2", "acme-mail-v2", 0},
		{true, "shop", "mail", "mail", 0},
		{true, "acme", "mail", "", http.StatusForbidden},
		{false, "acme-eu", "mail", "", http.StatusUnprocessableEntity},
		{false, "acme", "ma,il", "", http.StatusUnprocessableEntity},
		{false, "a|b", "mail", "", http.StatusUnprocessableEntity},
		{false, "acme", "", "", http.StatusUnprocessableEntity},
		{false, "acme", strings.Repeat("x", job.MaxName), "", http.StatusUnprocessableEntity},
	} {
		got, err := api.ClientType(c.tokens, "shop", c.client, c.name)
		if c.status == 0 {
			if err != nil || got != c.want {
				t.Errorf("%+v: %q, %v", c, got, err)
			}
			continue
		}
		status := api.KindOf(err).Status
		if p := new(api.Problem); errors.As(err, &p) {
			status = p.Status
		}
		if status != c.status {
			t.Errorf("%+v: %q, status %d, %v", c, got, status, err)
		}
	}
}

// TestClientsAreNotNamedAsRoutes: what paths of other routes begin with is no client, whichever of its routes is asked.
func TestClientsAreNotNamedAsRoutes(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	names := []string{"healthz", "readyz", "metrics", "page.json", "reference", "openapi.json", "V1"} // those that are no operations
	for _, r := range s.api.Routes() {
		if first, _, _ := strings.Cut(r.Path[1:], "/"); first != "{client}" {
			names = append(names, first)
		}
	}
	files, err := os.ReadDir("../web/dist") // of the page
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.Name())
	}
	for _, name := range names {
		if _, err := api.ClientType(false, "shop", name, "mail"); err == nil || !strings.Contains(err.Error(), "is reserved") {
			t.Errorf("client %s: %v", name, err)
		}
	}
	for _, route := range [][2]string{{"POST", "/job/x/add"}, {"GET", "/job/x/list"}, {"POST", "/handler/add/x"}, {"GET", "/handler/get/x"}} {
		body := any(nil)
		if route[0] == "POST" {
			body = `{"lang":"node","body":"1"}`
		}
		s.ask(route[0], "/v1"+route[1], body).refuses(http.StatusUnprocessableEntity, "usage", `client "v1" is reserved`)
	}
}
