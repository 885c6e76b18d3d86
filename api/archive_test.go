package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// TestM28EntriesOfAClient lists jobs of a client, and purges those that are done; another client sees, and removes, none of them.
func TestM28EntriesOfAClient(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	var added api.AddedPayloads
	s.ask("POST", "/acme/job/mail/add", "one\ntwo\nthree").is(http.StatusOK, &added)
	for n, outcome := range []statemachine.Event{statemachine.Complete, ""} {
		snap, err := s.store.Begin(t.Context(), added.IDs[n], store.Begin{Token: job.RunToken("ENGINE-A"), Lease: time.Hour, Batch: 1, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if outcome == "" {
			continue
		}
		results, err := s.store.Commit(t.Context(), []store.Tx{{Deltas: []store.Delta{{Job: added.IDs[n], Token: snap.Token, Outcome: outcome}}}})
		if err != nil || results[0].Refused != nil {
			t.Fatal(err, results)
		}
	}
	list := func(path string) (text string, next job.ID) {
		t.Helper()
		var page api.Entries
		s.ask("GET", path, nil).is(http.StatusOK, &page)
		for _, e := range page.Entries {
			text += fmt.Sprint(e.Lock, " ", e.State, ", ")
			if e.Type != "acme-mail" || (e.Lock == handler.Done) != (e.DT.Year() > 3000) {
				t.Errorf("entry %+v", e)
			}
		}
		return text, page.Next
	}
	for query, want := range map[string]string{
		"": "__done done, ENGINE-A running,  ready, ", "?done=true": "__done done, ", "?done=false": "ENGINE-A running,  ready, ",
		"?until=2020-01-01T00:00:00Z": "", "?since=2020-01-01T00:00:00Z&done=true": "__done done, ",
	} {
		if got, _ := list("/acme/job/mail/list" + query); got != want {
			t.Errorf("list%s: %q, want %q", query, got, want)
		}
	}
	first, next := list("/acme/job/mail/list?limit=1")
	if rest, _ := list("/acme/job/mail/list?after=" + string(next)); first != "__done done, " || rest != "ENGINE-A running,  ready, " {
		t.Errorf("pages %q, %q", first, rest)
	}
	if got, _ := list("/other/job/mail/list"); got != "" {
		t.Errorf("another client sees %q", got)
	}
	if err := s.store.SetState(t.Context(), added.IDs[0], map[string]json.RawMessage{handler.StateResult: json.RawMessage(`{"code":"failed","exitcode":404,"error":"no such user"}`)}, nil); err != nil {
		t.Fatal(err)
	}
	if why := s.ask("GET", "/v1/jobs/"+string(added.IDs[0])+"/why", nil); !strings.Contains(string(why.body), "its last payload failed, with code 404: no such user") {
		t.Errorf("why: %s", why.body)
	}
	var one api.PhasedEntry
	if s.ask("GET", "/acme/job/mail/get/"+string(added.IDs[0]), nil).is(http.StatusOK, &one); one.Code != handler.Failed || one.Status != 404 || one.State != handler.Archived {
		t.Errorf("got %+v", one)
	}
	var page api.Entries
	if s.ask("GET", "/acme/job/mail/list?done=true", nil).is(http.StatusOK, &page); len(page.Entries) != 1 || page.Entries[0] != one {
		t.Errorf("listed as %+v, shown as %+v", page.Entries, one)
	}
	for _, path := range []string{"/other/job/mail/get/", "/acme/job/post/get/"} {
		s.ask("GET", path+string(added.IDs[0]), nil).refuses(http.StatusNotFound, "not_found", "has no job")
	}
	s.ask("GET", "/acme/job/mail/list?after=x", nil).refuses(http.StatusUnprocessableEntity, "usage", "after")
	for path, want := range map[string]int{"/other/job/mail/purge": 0, "/acme/job/mail/purge?until=2020-01-01T00:00:00Z": 0, "/acme/job/mail/purge": 1} {
		var purged api.Purged
		if s.ask("POST", path, nil).is(http.StatusOK, &purged); purged.Count != want {
			t.Errorf("%s: %+v, want %d", path, purged, want)
		}
	}
}

// TestM28EntriesByCode lists those whose payloads failed, which are completed jobs, page by page.
func TestM28EntriesByCode(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	var added api.AddedPayloads
	s.ask("POST", "/acme/job/mail/add", "1\n2\n3\n4\n5\n6\n").is(http.StatusOK, &added)
	for n, code := range []handler.Code{handler.OK, handler.Failed, handler.OK, handler.Failed, handler.Failed} {
		snap, err := s.store.Begin(t.Context(), added.IDs[n], store.Begin{Token: job.RunToken("ENGINE-A"), Lease: time.Hour, Batch: 1, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		d := store.Delta{Job: added.IDs[n], Token: snap.Token, Outcome: statemachine.Complete, Set: map[string]json.RawMessage{handler.StateResult: json.RawMessage(`{"code":"` + string(code) + `"}`)}}
		if results, err := s.store.Commit(t.Context(), []store.Tx{{Deltas: []store.Delta{d}}}); err != nil || results[0].Refused != nil {
			t.Fatal(err, results)
		}
	}
	for query, want := range map[string][]int{"code=failed": {1, 3, 4}, "code=failed&limit=2": {1, 3, -1, 4}, "code=ok&limit=1": {0, -1, 2, -1}, "code=error": nil, "code=failed&done=false": nil} {
		var got []int
		for after := job.ID(""); ; {
			var page api.Entries
			s.ask("GET", "/acme/job/mail/list?"+query+"&after="+string(after), nil).is(http.StatusOK, &page)
			for _, e := range page.Entries {
				got = append(got, slices.Index(added.IDs, e.ID))
			}
			if after = page.Next; after == "" {
				break
			}
			got = append(got, -1)
		}
		if !slices.Equal(got, want) {
			t.Errorf("list?%s: %v, want %v", query, got, want)
		}
	}
	s.ask("GET", "/acme/job/mail/list?code=lost", nil).refuses(http.StatusUnprocessableEntity, "usage", "code")
}

// TestM28EntriesOfTokens refuses what the token of another namespace asks for.
func TestM28EntriesOfTokens(t *testing.T) {
	t.Parallel()
	s, tenant, tokens := withTokens(t)
	s.token = tokens[redisstore.TokenAdmin]
	s.ask("GET", "/"+tenant+"/job/mail/list", nil).refuses(http.StatusForbidden, "forbidden", tenant)
	s.ask("POST", "/"+tenant+"/job/mail/purge", nil).refuses(http.StatusForbidden, "forbidden", tenant)
}
