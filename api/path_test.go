package api_test

import (
	"net/http"
	"testing"

	"github.com/weirworks/weir/api"
)

// TestPlainPaths: a path that is not plain is answered with the one that is meant, as a problem and not as a page.
func TestPlainPaths(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	client := *http.DefaultClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for given, plain := range map[string]string{
		"//v1/jobs?limit=1": "/v1/jobs?limit=1", "/v1//jobs": "/v1/jobs", "/v1/../v1/me/": "/v1/me/", "/%5Cexample.com//": "/%5Cexample.com/", "//example.com": "/example.com",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+given, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusTemporaryRedirect || kind != "application/problem+json" || resp.Header.Get("Location") != plain {
			t.Errorf("%s: %d, %s, to %s, want %s", given, resp.StatusCode, kind, resp.Header.Get("Location"), plain)
		}
	}
	var list struct{ Jobs []api.Job }
	s.ask("POST", "//v1/jobs", `{"type":"collect","alias":"c"}`).is(http.StatusCreated, nil) // the client follows
	if s.ask("GET", "/v1//jobs", nil).is(http.StatusOK, &list); len(list.Jobs) != 1 {
		t.Errorf("%d jobs", len(list.Jobs))
	}
}
