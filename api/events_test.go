package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
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
				enginetest.Check(t, json.Unmarshal(e.data, &line))
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

// Many follow a graph from its beginning, and come while it works: each is told each run once, in the same order, and one reads for all.
func TestEventsAreShared(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/graphs", `{"alias":"g","graph":{"weir":1,"nodes":{"a":{"type":"map","args":{"expr":"it"}}},"inputs":{"in":"a.in"},"outputs":{"out":"a.out"}}}`).is(http.StatusCreated, nil)
	var log api.LogPage
	s.ask("GET", "/v1/jobs/g/log", nil).is(http.StatusOK, &log)
	const listeners, messages = 12, 60
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	told := make([][]string, listeners)
	var group sync.WaitGroup
	listening := make(chan bool, listeners)
	for i := range listeners {
		if i > 0 {
			for range messages / (listeners - 1) {
				s.ask("POST", "/v1/jobs/g/ports/in/in/messages", `{"messages":[1]}`).is(http.StatusOK, nil)
			}
		}
		group.Go(func() {
			within, enough := context.WithCancel(ctx)
			defer enough()
			reads := 0
			s.stream(within, "/v1/jobs/g/events", log.Position, func() { listening <- true }, func(e event) {
				var line api.LogLine
				if e.kind != "run" || within.Err() != nil {
					return
				}
				if err := json.Unmarshal(e.data, &line); err != nil {
					t.Error(err)
				}
				told[i] = append(told[i], e.id)
				for _, r := range line.Run.Read {
					reads += r.N
				}
				if reads >= messages/(listeners-1)*(listeners-1) {
					enough()
				}
			})
		})
		<-listening
		if n := s.api.Followed(); n > 1 {
			t.Errorf("%d logs are read", n)
		}
	}
	group.Wait()
	for i := range told {
		if len(told[i]) == 0 || !slices.Equal(told[i], told[0]) {
			t.Errorf("listener %d was told %v, the first %v", i, told[i], told[0])
		}
	}
	enginetest.Until(t, "nothing to be read", func() bool { return s.api.Followed() == 0 })
}

// The stream of a job that is deleted says so and ends.
func TestEventsOfDeletedJob(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"m"}`).is(http.StatusCreated, nil)
	s.listen("/v1/jobs/m/events", "", func(e event) bool {
		var job api.Job
		enginetest.Check(t, json.Unmarshal(e.data, &job))
		switch {
		case e.kind == "status" && job.Status == "terminated":
			s.ask("DELETE", "/v1/jobs/m", nil).is(http.StatusNoContent, nil)
		case e.kind == "status" && job.Status == "completed":
			s.ask("POST", "/v1/jobs/m/terminate", nil).is(http.StatusNoContent, nil)
		}
		return e.kind == "deleted"
	})
}
