package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// soon demands that something comes before too long.
func soon[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not come", what)
	}
	return v
}

// hear follows a stream in the background: it returns its events, and what ends it.
func (s *service) hear(path, last string) (<-chan event, context.CancelFunc) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	s.Cleanup(cancel)
	events := make(chan event, 1000)
	opened := make(chan struct{})
	go func() {
		defer close(events)
		s.stream(ctx, path, last, func() { close(opened) }, func(e event) { events <- e })
	}()
	soon(s.T, "the stream "+path, opened)
	return events, cancel
}

// hears returns the first event of a kind whose data has a field with a value.
func (s *service) hears(events <-chan event, kind, field string, value any) event {
	s.Helper()
	var seen []string
	for {
		e := soon(s.T, fmt.Sprintf("event %s with %s %v, after %v", kind, field, value, seen), events)
		var data map[string]any
		if e.kind == "" && e.id == "" {
			s.Fatalf("the stream ended, after %v", seen)
		}
		if e.kind == kind && json.Unmarshal(e.data, &data) == nil && fmt.Sprint(data[field]) == fmt.Sprint(value) {
			return e
		}
		seen = append(seen, e.kind+string(e.data))
	}
}

// remove ends a job, and removes it.
func (s *service) remove(name string) {
	s.Helper()
	s.ask("POST", "/v1/jobs/"+name+"/terminate", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/jobs/"+name+"/wait?for=terminated", nil).is(http.StatusOK, nil)
	s.ask("DELETE", "/v1/jobs/"+name, nil).is(http.StatusNoContent, nil)
}

// Who follows the list of jobs hears of each that is created, changes and goes, and after a pause of what happened meanwhile.
func TestEventsOfJobs(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		s := serve(t, url, nil)
		events, stop := s.hear("/v1/events/jobs", "")
		var one, two, three api.Job
		s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"one"}`).is(http.StatusCreated, &one)
		s.hears(events, "job", "id", one.ID)
		s.ask("POST", "/v1/jobs/one/ports/in/in/close", nil).is(http.StatusNoContent, nil)
		last := s.hears(events, "job", "status", "completed").id
		if last == "" {
			t.Fatal("an event has no ID")
		}
		stop()
		s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"two"}`).is(http.StatusCreated, &two)
		s.remove("two")
		s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"three"}`).is(http.StatusCreated, &three)
		events, _ = s.hear("/v1/events/jobs", last)
		seen := map[string]bool{}
		for !seen["job"+string(three.ID)] || !seen["gone"+string(two.ID)] {
			e := soon(t, fmt.Sprintf("what happened meanwhile, after %v", seen), events)
			var data struct{ ID string }
			if e.kind == "" {
				continue
			}
			if err := json.Unmarshal(e.data, &data); err != nil || e.kind == "reset" {
				t.Fatal(e.kind, string(e.data), err)
			}
			seen[e.kind+data.ID] = true
		}
	})
}

// Only jobs that pass the filters are told; those below others when they are asked for.
func TestEventsOfJobsThatPass(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	labelled, _ := s.hear("/v1/events/jobs?label=team%3Dblue", "")
	below, _ := s.hear("/v1/events/jobs?all=true&type=collect", "")
	var graph, job api.Job
	s.ask("POST", "/v1/graphs", `{"graph":{"weir":1,"nodes":{"c":{"type":"collect"}},"inputs":{"in":"c.in"},"outputs":{"out":"c.out"}}}`).is(http.StatusCreated, &graph)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"labels":{"team":"blue"}}`).is(http.StatusCreated, &job)
	if e := soon(t, "the job", skipIDs(labelled)); e.kind != "job" || !jsonHas(t, e.data, "id", string(job.ID)) {
		t.Errorf("the first event is %s %s", e.kind, e.data)
	}
	if e := soon(t, "the child", skipIDs(below)); e.kind != "job" || !jsonHas(t, e.data, "parent", string(graph.ID)) {
		t.Errorf("the first event is %s %s", e.kind, e.data)
	}
	for query, want := range map[string]string{"alias=x": "cannot be followed", "path=a%2Fb": "cannot be followed", "state=k": "cannot be followed", "status=quiet": "unknown status"} {
		s.ask("GET", "/v1/events/jobs?"+query, nil).refuses(http.StatusUnprocessableEntity, "usage", want)
	}
	s.ask("GET", "/v1/events/jobs", nil, "Last-Event-ID", "nonsense").refuses(http.StatusUnprocessableEntity, "usage", "not a place")
}

func jsonHas(t *testing.T, raw json.RawMessage, field, value string) bool {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal(raw, &data); err != nil {
		t.Fatal(err)
	}
	return data[field] == value
}

// skipIDs leaves out what only says where the stream is.
func skipIDs(events <-chan event) <-chan event {
	out := make(chan event, 1000)
	go func() {
		defer close(out)
		for e := range events {
			if e.kind != "" {
				out <- e
			}
		}
	}()
	return out
}

// Who follows a port hears what it has had at once, and whenever that changes; who comes back with the last ID only what is new.
func TestEventsOfAPort(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		s := serve(t, url, nil)
		var made api.Job
		s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"m"}`).is(http.StatusCreated, &made)
		s.ask("POST", "/v1/jobs/m/ports/in/in/messages", `{"messages":[1,2,3]}`).is(http.StatusOK, nil)
		events, stop := s.hear("/v1/jobs/m/ports/out/out/events", "")
		e := s.hears(events, "port", "waiting", 3)
		stop()
		events, _ = s.hear("/v1/jobs/m/ports/out/out/events", e.id)
		s.ask("POST", "/v1/jobs/m/ports/out/out/take?limit=2", nil).is(http.StatusOK, nil)
		if e := soon(t, "the next event", events); e.kind != "port" || string(e.data) != `{"written":3,"read":2,"waiting":1,"closed":false}` {
			t.Errorf("event %s %s", e.kind, e.data)
		}
		s.ask("POST", "/v1/jobs/m/ports/out/out/take?limit=1", nil).is(http.StatusOK, nil)
		s.hears(events, "port", "read", 3)
		s.remove("m")
		s.hears(events, "deleted", "id", made.ID)
		if _, more := <-events; more {
			t.Error("the stream goes on")
		}
		s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"n"}`).is(http.StatusCreated, nil)
		s.ask("GET", "/v1/jobs/n/ports/out/ou/events", nil).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "out"`)
	})
}

// What all listeners want is read once for all of them, and not at all when there are none.
func TestEventsCostOneReading(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := serve(t, server.URL(), nil)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"m"}`).is(http.StatusCreated, nil)
	client := server.Client(t)
	calls := func() int64 {
		t.Helper()
		text, err := client.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for _, found := range regexp.MustCompile(`cmdstat_(?:zrangebyscore|hgetall):calls=(\d+)`).FindAllStringSubmatch(text, -1) {
			calls, err := strconv.ParseInt(found[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += calls
		}
		return n
	}
	settle := func(path string, listeners int) int64 {
		var group sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		for range listeners {
			opened := make(chan struct{})
			group.Go(func() { s.stream(ctx, path, "", func() { close(opened) }, func(event) {}) })
			soon(t, path, opened)
		}
		before, began := calls(), time.Now()
		for time.Since(began) < 2*time.Second {
			time.Sleep(50 * time.Millisecond)
		}
		n := calls() - before
		cancel()
		group.Wait()
		return n
	}
	for _, path := range []string{"/v1/events/jobs", "/v1/jobs/m/ports/out/out/events"} {
		one, many, none := settle(path, 1), settle(path, 50), settle(path, 0)
		if many > 2*one+20 || none > one {
			t.Errorf("%s: %d commands for one listener, %d for 50, %d for none", path, one, many, none)
		}
	}
}

// A stream ends soon after its token.
func TestStreamsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	s, _, _ := withTokens(t)
	s.token = s.newToken(redisstore.TokenOperate, "", time.Minute)
	s.ask("POST", "/v1/graphs", shop).is(http.StatusCreated, nil)
	s.token = s.newToken(redisstore.TokenRead, "", time.Second)
	deadline := time.After(50 * time.Second)
	ended := map[string]<-chan event{}
	for _, path := range []string{"/v1/events/jobs", "/v1/jobs/shop/live"} {
		ended[path], _ = s.hear(path, "")
	}
	for path, events := range ended {
		for open := true; open; {
			select {
			case _, open = <-events:
			case <-deadline:
				t.Fatalf("the stream %s goes on after its token has ended", path)
			}
		}
	}
}

// When more changes than can be told, listeners are told to read the list again, and go on from there.
func TestEventsOfTooManyJobs(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	events, stop := s.hear("/v1/events/jobs", "")
	last := soon(t, "the first place", events).id
	stop()
	var batch struct {
		Jobs []api.NewJob `json:"jobs"`
	}
	for range 1000 {
		batch.Jobs = append(batch.Jobs, api.NewJob{Type: "map", Args: json.RawMessage(`{"expr":"it"}`)})
	}
	s.ask("POST", "/v1/jobs:batch", batch).is(http.StatusOK, nil)
	events, _ = s.hear("/v1/events/jobs", last)
	if e := soon(t, "an event", events); e.kind != "reset" || e.id == "" {
		t.Errorf("the first event is %s %s", e.kind, e.data)
	}
	for told, tries := false, 0; !told; tries++ { // while the thousand begin and rest, a reset may stand for the one, too
		if tries == 100 {
			t.Fatal("there is no end of resets")
		}
		var one api.Job
		s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"}}`).is(http.StatusCreated, &one)
		for e := (event{}); !told && e.kind != "reset"; {
			e = soon(t, "an event of job "+string(one.ID)+", or a reset", events)
			told = e.kind == "job" && bytes.Contains(e.data, []byte(one.ID))
		}
	}
}
