package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
)

// What is wrong with a body is told, all of it, with where it is; nothing is made.
func TestCozyErrors(t *testing.T) {
	s, _ := still(t, func(c *api.Config) { c.MaxPending = 1 })
	for body, pointers := range map[string][]string{
		`{"priority":0,"timeout":-1,"retry_delay":-1,"retry_max_count":0}`: {"/priority", "/timeout", "/retry_delay", "/retry_max_count"},
		`{"priority":"3","prio":3}`:                                        {"/priority", "/prio"},
		`{"retry_max_count":2,"max_exec_count":3}`:                         {"/max_exec_count"},
		`{"options":{"priority":101,"a/b~c":1},"timeout":1e9}`:             {"/timeout", "/options/priority", "/options/a~1b~0c"},
		`{"options":[]}`: {"/options"},
		`{"arguments":{},"options":{"arguments":{}}}`:                     {"/options/arguments"},
		`{"data":{"attributes":{"options":{"priority":0},"argument":1}}}`: {"/data/attributes/options/priority", "/data/attributes/argument"},
		`{"data":[]}`:                        {"/data"},
		`{"data":{"attributes":7}}`:          {"/data/attributes"},
		`{"data":{"attribute":{}},"more":1}`: {"/more", "/data/attribute"},
		`[]`:                                 {""},
		`7`:                                  {""},
		`{"arguments":"text"}`:               {"/arguments"},
		`{"data":{"attributes":{"options":{"arguments":[1]}}}}`:                                       {"/data/attributes/options/arguments"},
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1}`: {"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j"},
	} {
		s.wrongAt("/jobs/queue/sendmail", body, http.StatusUnprocessableEntity, pointers...)
	}
	for body, pointers := range map[string][]string{
		`{}`: {"/type"},
		`{"type":"@cronn","arguments":7,"options":{"priority":0},"limits":{"parallel":-1},"message":1}`: {"/type", "/arguments", "/limits/parallel", "/options/priority", "/message"},
		`{"type":"@in","arguments":"1h","limits":{"parallels":1}}`:                                      {"/limits/parallels"},
		`{"type":"@in","arguments":"1h","worker":"other"}`:                                              {"/worker"},
		`{"type":"@in","arguments":"1h","options":{"arguments":7}}`:                                     {"/options/arguments"},
	} {
		s.wrongAt("/jobs/launchers/sendmail", body, http.StatusUnprocessableEntity, pointers...)
	}
	s.wrongAt("/jobs/queue/sendmail", `{"data":{"type":"io.cozy.files"}}`, http.StatusConflict, "/data/type")
	s.wrongAt("/jobs/queue/sendmail", `{"data":{"id":"7"}}`, http.StatusForbidden, "/data/id")
	for body, status := range map[string]int{`{`: http.StatusBadRequest, `{"a":1,"a":2}`: http.StatusBadRequest} {
		s.cozy("POST", "/jobs/queue/sendmail", body).refuses(status, "malformed", "the body")
	}
	s.ask("POST", "/jobs/queue/sendmail", `{}`, "Content-Type", "text/xml").refuses(http.StatusUnsupportedMediaType, "malformed", "application/json")
	s.ask("POST", "/v1/jobs", `{}`, "Content-Type", "application/vnd.api+json").refuses(http.StatusUnsupportedMediaType, "malformed", "application/json")
	s.cozy("GET", "/jobs", nil).refuses(http.StatusNotFound, "no_route", "")
	s.cozy("PUT", "/jobs/queue/sendmail", `{}`).refuses(http.StatusMethodNotAllowed, "no_route", "use POST")
	s.ask("POST", "/jobs/queue/sendmail", `{}`, "Sec-Fetch-Site", "cross-site").refuses(http.StatusForbidden, "forbidden", "another origin")
	var n api.Count
	if s.ask("GET", "/v1/count?all=true", nil).is(http.StatusOK, &n); n.Count != 0 {
		t.Errorf("%d jobs were made", n.Count)
	}
	// A queue that is full.
	s.ask("POST", "/jobs/queue/sendmail", nil).is(http.StatusAccepted, nil)
	s.cozy("POST", "/jobs/queue/sendmail", `{}`).refuses(http.StatusTooManyRequests, "full", "limit 1")
	if s.ask("GET", "/v1/count?all=true", nil).is(http.StatusOK, &n); n.Count != 1 {
		t.Errorf("%d jobs were made", n.Count)
	}
}

// wrongAt wants a request to be refused for just these parts of its body.
func (s *service) wrongAt(path, body string, status int, pointers ...string) {
	s.Helper()
	var all api.ErrorDocument
	s.cozy("POST", path, body).is(status, &all)
	var got []string
	for _, e := range all.Errors {
		if e.Source != nil && e.Source.Pointer != nil {
			got = append(got, *e.Source.Pointer)
		}
	}
	slices.Sort(got)
	slices.Sort(pointers)
	if !slices.Equal(got, pointers) {
		s.Errorf("%s: wrong at %q, want %q: %+v", body, got, pointers, all)
	}
}

// Whatever is sent, nothing fails, all answers are JSON:API, and what is refused makes nothing.
func TestCozyGenerated(t *testing.T) {
	s, e := still(t, nil)
	seed := uint64(time.Now().UnixNano())
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
	var value func(depth int) any
	value = func(depth int) any {
		switch n := g.IntN(9); {
		case n == 0 && depth < 4:
			return []any{value(depth + 1)}
		case n < 4 && depth < 4:
			out := map[string]any{}
			for range g.IntN(4) {
				names := []string{"data", "attributes", "options", "priority", "timeout", "retry_max_count", "retry_delay", "arguments", "type", "limits", "id", "meta", g.junk()}
				out[names[g.IntN(len(names))]] = value(depth + 1)
			}
			return out
		case n == 4:
			return g.junk()
		case n == 5:
			return []any{nil, true, -1, 0.5, 1e300, "io.cozy.jobs", "io.cozy.launchers", "1h"}[g.IntN(8)]
		}
		return 1 + g.IntN(120)
	}
	count := func() (n api.Count) {
		s.ask("GET", "/v1/count?all=true", nil).is(http.StatusOK, &n)
		return n
	}
	made, statuses := 0, map[int]int{}
	for range 3_000 {
		raw := must(json.Marshal(value(0)))
		if g.IntN(10) == 0 {
			raw = raw[:g.IntN(len(raw)+1)]
		}
		path := []string{"/jobs/queue/sendmail", "/jobs/launchers/sendmail", "/jobs/queue/" + url.PathEscape(g.junk())}[g.IntN(3)]
		a := s.cozy("POST", path, string(raw))
		if statuses[a.status/100]++; a.status >= 500 {
			t.Fatalf("seed %d: %s %s: %d %s", seed, path, raw, a.status, a.body)
		}
		if a.status < 300 {
			made++
		}
	}
	if n := count().Count; n != made || made < 20 || statuses[4] < 100 {
		t.Errorf("seed %d: %d were made, %d jobs; statuses %v", seed, made, n, statuses)
	}
	e.MaxRuns = 100_000
	e.Advance(time.Hour)
}

// A request that is repeated with a key makes one job, and one launcher.
func TestCozyKeys(t *testing.T) {
	s, _ := still(t, nil)
	for path, body := range map[string]string{"/jobs/queue/sendmail": `{}`, "/jobs/launchers/sendmail": `{"type":"@interval","arguments":"1h"}`} {
		var ids []string
		for range 3 {
			var one struct{ Data struct{ ID string } }
			if a := s.ask("POST", path, body, "Idempotency-Key", "k"); a.status >= 300 {
				t.Fatalf("%d %s", a.status, a.body)
			} else if err := json.Unmarshal(a.body, &one); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, one.Data.ID)
		}
		if ids[0] != ids[1] || ids[1] != ids[2] {
			t.Errorf("%s: %q", path, ids)
		}
		s.ask("POST", path, `{"type":"@in","arguments":"1h"}`, "Idempotency-Key", "k").is(http.StatusUnprocessableEntity, nil)
	}
}

// Without the routes of Cozy there is nothing under /jobs.
func TestNoCozy(t *testing.T) {
	t.Parallel()
	s := serve(t, "", func(c *api.Config) { c.NoCozy = true })
	a := s.ask("GET", "/jobs/queue", nil)
	if a.status != http.StatusNotFound || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if _, err := api.New(api.Config{Store: s.store, MaxPending: -1}); err == nil || !strings.Contains(err.Error(), "MaxPending") {
		t.Error(err)
	}
}
