package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
)

// event is one that came.
type event struct {
	id, kind string
	data     json.RawMessage
}

// listen calls fn with what comes until that says that it is enough.
func (s *service) listen(path, last string, fn func(e event) (enough bool)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
	defer cancel()
	enough := false
	s.stream(ctx, path, last, func() {}, func(e event) {
		if !enough && e.kind != "" && fn(e) {
			enough = true
			cancel()
		}
	})
	if !enough {
		s.Fatal("the stream ended")
	}
}

// stream calls opened when a stream has begun, and fn with what comes until the context or the stream ends.
func (s *service) stream(ctx context.Context, path, last string, opened func(), fn func(e event)) {
	s.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.Error(err)
		return
	}
	r.Header.Set("Last-Event-ID", last)
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Error(err)
		return
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		s.Errorf("Content-Type %q", kind)
		return
	}
	opened()
	var e event
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = json.RawMessage(value)
		case "":
			if e.kind != "" || e.id != "" {
				fn(e)
			}
			e = event{}
		}
	}
}

// Who follows a graph, is cut off, and comes back with the last ID sees each run once.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		s := serve(t, url, nil)
		s.ask("POST", "/v1/graphs", `{"alias":"g","graph":{"weir":1,"nodes":{"a":{"type":"map","args":{"expr":"it"}},"b":{"type":"map","args":{"expr":"it"}}},"edges":["a.out -> b.in"],"inputs":{"in":"a.in"},"outputs":{"out":"b.out"}}}`).is(http.StatusCreated, nil)
		var log api.LogPage
		s.ask("GET", "/v1/jobs/g/log", nil).is(http.StatusOK, &log)
		const messages = 6
		s.ask("POST", "/v1/jobs/g/ports/in/in/messages", `{"messages":[1,2,3,4]}`).is(http.StatusOK, nil)
		s.ask("POST", "/v1/jobs/g/ports/in/in/messages", `{"messages":[5,6]}`).is(http.StatusOK, nil)
		reads, last := 0, log.Position
		for reads < 2*messages { // each message is read by both jobs
			s.listen("/v1/jobs/g/events", last, func(e event) bool {
				last = e.id
				var line api.LogLine
				if err := json.Unmarshal(e.data, &line); err != nil {
					t.Fatal(err)
				}
				if e.kind != "run" {
					return false
				}
				for _, r := range line.Run.Read {
					reads += r.N
				}
				return true // in the midst of what came together
			})
		}
		if reads != 2*messages {
			t.Errorf("%d messages read in the events, want %d", reads, 2*messages)
		}
		s.ask("GET", "/v1/jobs/g/events?after=nonsense", nil).refuses(http.StatusUnprocessableEntity, "usage", "position")
	})
}
