package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// A log is read backwards, page by page.
func TestLogPages(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"long","in":"1h"}`).is(http.StatusCreated, nil)
	for n := range 7 {
		s.ask("POST", "/v1/jobs/long/ports/in/in/messages", fmt.Sprintf(`{"messages":[%d]}`, n)).is(http.StatusOK, nil)
	}
	var got []string
	for before, pages := "", 0; ; {
		var page api.LogPage
		s.ask("GET", "/v1/jobs/long/log?limit=3&before="+url.QueryEscape(before), nil).is(http.StatusOK, &page)
		var some []string
		for _, l := range page.Entries {
			if l.Run != nil && len(l.Run.Write) > 0 {
				some = append(some, string(l.Run.Write[0].Data[0]))
			}
		}
		got = append(some, got...)
		if before = page.Earlier; before == "" {
			break
		}
		if pages++; pages > 5 {
			t.Fatal("the log does not end")
		}
	}
	if text, _ := json.Marshal(got); string(text) != `["0","1","2","3","4","5","6"]` {
		t.Errorf("all pages: %s", text)
	}
	s.ask("GET", "/v1/jobs/long/log?before=7", nil).refuses(http.StatusUnprocessableEntity, "usage", "query.before")
}
