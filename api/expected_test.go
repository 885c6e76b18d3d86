package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
)

// TestM21PayloadsOfATypeWithoutAHandlerAreExpected: the type is made known, once, so that engines with handlers try its payloads.
func TestM21PayloadsOfATypeWithoutAHandlerAreExpected(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"jobs": "", "journal": t.TempDir(), "journal without Redis": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := redistest.SharedRedis(t)
			var redis *redistest.Server
			if name == "journal without Redis" {
				redis = redistest.Start(t)
				url = redis.URL()
			}
			s := serve(t, url, func(c *api.Config) { c.Journal = dir })
			if err := s.store.Register(t.Context(), []job.TypeInfo{{Type: "acme-linked", Queue: "other", Ports: handler.Ports()}}); err != nil {
				t.Fatal(err)
			}
			if redis != nil {
				redis.Kill()
			}
			var added, linked api.AddedPayloads
			s.ask("POST", "/acme/job/mail/add", "l1\nl2\n").is(http.StatusOK, &added)
			s.ask("POST", "/acme/job/mail/add", "l3\n").is(http.StatusOK, &added)
			s.ask("POST", "/acme/job/linked/add", "l4\n").is(http.StatusOK, &linked)
			if redis != nil {
				redis.Restart()
			}
			s.payloadOf(added.IDs[0])
			s.payloadOf(linked.IDs[0])
			wants := map[string]int{"acme-mail": 1, "acme-linked": 0}
			if redis != nil { // it forgot what was registered just before it was killed
				delete(wants, "acme-linked")
			}
			for typ, want := range wants {
				if all, err := s.store.HandlerVersions(t.Context(), typ); err != nil || len(all) != want {
					t.Errorf("type %s was made known as a handler's %d times, want %d: %v", typ, len(all), want, err)
				}
			}
			if info, err := s.store.Type(t.Context(), job.DefaultQueue, "acme-mail"); err != nil || time.Since(info.Registered) > time.Minute {
				t.Errorf("type acme-mail: %+v, %v", info, err)
			}
		})
	}
}
