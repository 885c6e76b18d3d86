package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
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
