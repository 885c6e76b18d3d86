package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// What a person does with curl, from creating a job to deleting it.
func TestJobOverHTTP(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, url string) {
		s := serve(t, url, nil)
		var job api.Job
		a := s.ask("POST", "/v1/jobs", map[string]any{"type": "map", "args": map[string]any{"expr": "it * 2"}, "alias": "double", "labels": map[string]string{"team": "a"}}).is(http.StatusCreated, &job)
		if got := a.header.Get("Location"); got != "/v1/jobs/"+string(job.ID) {
			t.Errorf("Location %q of job %s", got, job.ID)
		}
		s.ask("POST", "/v1/jobs", map[string]any{"type": "map", "args": map[string]any{"expr": "it"}, "alias": "double"}).refuses(http.StatusConflict, "exists", "double")
		s.ask("POST", "/v1/jobs", `{"type":"mapp"}`).refuses(http.StatusUnprocessableEntity, "unknown_type", "map")

		var sent api.Sent
		s.ask("POST", "/v1/jobs/double/ports/in/in/messages", `{"messages":[1,4503599627370497],"context":{"by":"me"}}`).is(http.StatusOK, &sent)
		for range 3 { // the answer was lost
			s.ask("POST", "/v1/jobs/double/ports/in/in/messages", "3\n\n4\n", "Content-Type", "application/x-ndjson", "Idempotency-Key", "k").is(http.StatusOK, &sent)
		}
		s.ask("POST", "/v1/jobs/double/ports/in/in/close", nil).is(http.StatusNoContent, nil)
		var w api.Waited
		if s.ask("GET", "/v1/jobs/double/wait?timeout=20s", nil).is(http.StatusOK, &w); !w.Reached || w.Job.Status != "completed" {
			t.Fatalf("waited: %+v", w)
		}
		s.ask("POST", "/v1/jobs/double/ports/in/in/messages", `{"messages":[1]}`).refuses(http.StatusConflict, "closed", "in")

		var m api.Messages
		s.ask("GET", "/v1/jobs/double/ports/out/out/messages?limit=2", nil).is(http.StatusOK, &m)
		if len(m.Messages) != 2 || string(m.Messages[1].Data) != "9007199254740994" {
			t.Fatalf("messages %s", m.Messages)
		}
		s.ask("GET", "/v1/jobs/double/ports/out/out/messages?limit=2&skip=1", nil).is(http.StatusOK, &m)
		if m.From != 1 || len(m.Messages) != 2 || string(m.Messages[0].Data) != "9007199254740994" {
			t.Fatalf("the page behind one message is %d %s", m.From, m.Messages)
		}
		ack := "/v1/jobs/double/ports/out/out/messages?from=0&n=2"
		s.ask("DELETE", ack, nil, "Idempotency-Key", "k1").is(http.StatusNoContent, nil)
		s.ask("DELETE", ack, nil, "Idempotency-Key", "k1").is(http.StatusNoContent, nil) // the answer was lost
		s.ask("DELETE", ack, nil).refuses(http.StatusConflict, "moved", "")
		var taken api.Taken
		s.ask("POST", "/v1/jobs/double/ports/out/out/take?limit=10", nil).is(http.StatusOK, &taken)
		if len(taken.Messages) != 2 || string(taken.Messages[0].Data) != "6" {
			t.Fatalf("taken %s", taken.Messages)
		}

		s.ask("DELETE", "/v1/jobs/double", nil).refuses(http.StatusConflict, "status", "")
		s.ask("POST", "/v1/jobs/double/terminate", nil).is(http.StatusNoContent, nil)
		s.ask("GET", "/v1/jobs/double/wait?for=terminated&timeout=20s", nil).is(http.StatusOK, &w)
		s.ask("DELETE", "/v1/jobs/double", nil).is(http.StatusNoContent, nil)
		s.ask("GET", "/v1/jobs/double", nil).refuses(http.StatusNotFound, "not_found", "double")
	})
}

func TestFailurePolicyOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	var made api.Job
	s.ask("POST", "/v1/jobs", `{"type":"collect","failure":"dead_letter"}`).is(http.StatusCreated, &made)
	info, err := s.store.Info(t.Context(), made.ID)
	if enginetest.Check(t, err); info.Policy != job.DeadLetter {
		t.Errorf("policy %q", info.Policy)
	}
	if _, has := info.Port(port.Output, job.ErrorsPort); !has {
		t.Errorf("no port for dead letters: %+v", info.Ports)
	}
	s.ask("POST", "/v1/jobs", `{"type":"collect","failure":"ignore"}`).refuses(http.StatusUnprocessableEntity, "usage", "root job")
	s.ask("POST", "/v1/jobs", `{"type":"collect","failure":"retry"}`).refuses(http.StatusUnprocessableEntity, "usage", "dead_letter")
}

func TestStateOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/jobs", `{"type":"collect","alias":"c"}`).is(http.StatusCreated, nil)
	s.ask("PATCH", "/v1/jobs/c/state", `{"a":1,"b":{"x":12345678901234567890}}`).is(http.StatusNoContent, nil)
	s.ask("PUT", "/v1/jobs/c/state/d%2Fe", `"text"`).is(http.StatusNoContent, nil)
	s.ask("PATCH", "/v1/jobs/c/state", `{"a":null}`).is(http.StatusNoContent, nil)
	var all map[string]json.RawMessage
	s.ask("GET", "/v1/jobs/c/state", nil).is(http.StatusOK, &all)
	if string(all["b"]) != `{"x":12345678901234567890}` || string(all["d/e"]) != `"text"` || all["a"] != nil {
		t.Fatalf("state %s", all)
	}
	s.ask("DELETE", "/v1/jobs/c/state/b", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/jobs/c/state/b", nil).refuses(http.StatusNotFound, "not_found", `"b"`)
	s.ask("PATCH", "/v1/jobs/c/state", `{}`).refuses(http.StatusUnprocessableEntity, "usage", "no keys")
	s.ask("PATCH", "/v1/jobs/c/state", `[1]`).refuses(http.StatusUnprocessableEntity, "usage", "object")
}

const doubling = `{"weir":1,"nodes":{"twice":{"type":"map","args":{"expr":"it * factor"}}},"params":{"factor":2},"inputs":{"in":"twice.in"},"outputs":{"out":"twice.out"}}`

func TestGraphOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	text := strings.ReplaceAll(doubling, "it * factor", "it * ${factor}")
	var c api.Checked
	var started api.Job
	s.ask("POST", "/v1/graphs/check", `{"graph":`+text+`}`).is(http.StatusOK, &c)
	if c.Jobs != 1 || len(c.Inputs) != 1 || c.Outputs[0] != "out" {
		t.Fatalf("checked %+v", c)
	}
	s.ask("POST", "/v1/graphs/check", `{"alias":"first","labels":{"team":"a"},"existing":"patch","retain":"1h","graph":`+text+`}`).is(http.StatusOK, &c)
	s.ask("POST", "/v1/graphs/check", `{"existing":"patsh","graph":`+text+`}`).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "patch"`)
	s.ask("POST", "/v1/graphs/check", `{"alias":"019e1f0e","graph":`+text+`}`).refuses(http.StatusUnprocessableEntity, "usage", "alias")
	bad := s.ask("POST", "/v1/graphs/check", `{"graph":"weir: 1\nnodes:\n  a: {type: mapp}\n  b: {type: emmit}\n"}`)
	bad.refuses(http.StatusUnprocessableEntity, "usage", "did you mean")
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"repeat":{"schedul":"DAILY"}}`).refuses(http.StatusUnprocessableEntity, "usage", `"schedul": did you mean "schedule"`)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"sourc":{"repeat":{"zone":"UTC"}}}`).refuses(http.StatusUnprocessableEntity, "usage", `"sourc": use one of: type`)
	s.ask("POST", "/v1/graphs", `{"alias":"first","graph":`+text+`}`).is(http.StatusCreated, &started)
	if len(started.Aliases) != 1 || started.Errors == nil {
		t.Errorf("started %+v", started)
	}
	var p api.Problem
	if bad.is(http.StatusUnprocessableEntity, &p); len(p.Errors) != 2 || !strings.HasPrefix(p.Errors[0].Where, "3:") {
		t.Errorf("errors %+v", p.Errors)
	}

	start := `{"graph":` + text + `,"alias":"g","labels":{"team":"a"}`
	var first, second api.Job
	s.ask("POST", "/v1/graphs", start+`}`).is(http.StatusCreated, &first)
	s.ask("POST", "/v1/graphs", start+`}`).is(http.StatusOK, &second)
	if first.ID != second.ID {
		t.Errorf("the same request made %s and %s", first.ID, second.ID)
	}
	s.ask("POST", "/v1/graphs", start+`,"params":{"factor":3}}`).refuses(http.StatusConflict, "exists", `has another definition: change it into this one with "existing": "patch", or take it as it is with "existing": "take"`)
	s.ask("POST", "/v1/graphs", `{"graph":`+strings.Replace(text, `"type"`, `"queue":"slow","type"`, 1)+`}`).refuses(http.StatusUnprocessableEntity, "unknown_type", "; start its engine first")
	s.ask("POST", "/v1/graphs", start+`,"params":{"factor":3},"existing":"patch"}`).is(http.StatusOK, nil)
	s.ask("POST", "/v1/jobs/g/ports/in/in/messages", `{"messages":[7]}`).is(http.StatusOK, nil)
	s.ask("POST", "/v1/jobs/g/ports/in/in/close", nil).is(http.StatusNoContent, nil)
	s.ask("GET", "/v1/jobs/g/wait?timeout=20s", nil).is(http.StatusOK, nil)
	var taken api.Taken
	if s.ask("POST", "/v1/jobs/g/ports/out/out/take", nil).is(http.StatusOK, &taken); len(taken.Messages) != 1 || string(taken.Messages[0].Data) != "21" {
		t.Fatalf("taken %s", taken.Messages)
	}
	var tree api.Job
	if s.ask("GET", "/v1/jobs/g/tree", nil).is(http.StatusOK, &tree); len(tree.Edges) != 2 {
		t.Errorf("tree %+v", tree)
	}
	for format, begin := range map[string]string{"svg": "<svg", "mermaid": "---", "dot": "digraph"} {
		if got := string(s.ask("GET", "/v1/jobs/g/picture?format="+format, nil).is(http.StatusOK, nil).body); !strings.HasPrefix(strings.TrimSpace(got), begin) {
			t.Errorf("%s: %.60s", format, got)
		}
	}
	s.ask("POST", "/v1/jobs/g/run", nil).refuses(http.StatusConflict, "status", "graph")
}

func TestListOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	for _, team := range []string{"a", "b", "a", "a"} {
		s.ask("POST", "/v1/jobs", map[string]any{"type": "collect", "labels": map[string]string{"team": team}}).is(http.StatusCreated, nil)
	}
	seen := map[string]bool{}
	for after := ""; ; {
		var page api.JobPage
		s.ask("GET", "/v1/jobs?label=team%3Da&limit=2&after="+after, nil).is(http.StatusOK, &page)
		for _, j := range page.Jobs {
			if seen[string(j.ID)] || j.Labels["team"] != "a" {
				t.Errorf("job %s with labels %v again, or not asked for", j.ID, j.Labels)
			}
			seen[string(j.ID)] = true
		}
		if after = string(page.Next); after == "" {
			break
		}
	}
	var n api.Count
	if s.ask("GET", "/v1/count?label=team", nil).is(http.StatusOK, &n); len(seen) != 3 || n.Count != 4 {
		t.Errorf("%d jobs of team a, and %d with a team", len(seen), n.Count)
	}
	for query, want := range map[string]int{"path=@latest/**": 1, "path=@latest": 1, "name=n*": 0, "state=none&all=true": 0, "path=*": 0} {
		var page api.JobPage
		if s.ask("GET", "/v1/jobs?"+query, nil).is(http.StatusOK, &page); len(page.Jobs) != want || page.Next != "" {
			t.Errorf("%s: %d jobs, and more behind %q", query, len(page.Jobs), page.Next)
		}
	}
	s.ask("GET", "/v1/jobs?path=nobody/*", nil).refuses(http.StatusNotFound, "not_found", "nobody")
	s.ask("GET", "/v1/jobs?path=a//b", nil).refuses(http.StatusUnprocessableEntity, "usage", "shop/pay")
	s.ask("GET", "/v1/jobs?status=complete", nil).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "completed"`)
	s.ask("GET", "/v1/jobs?stats=failed", nil).refuses(http.StatusUnprocessableEntity, "usage", "stats")

	one := "/v1/jobs/" + slices.Sorted(maps.Keys(seen))[0]
	s.ask("GET", one+"/wait?for=suspended&timeout=20s", nil).is(http.StatusOK, nil)
	a := s.ask("GET", one, nil).is(http.StatusOK, nil)
	s.ask("GET", one, nil, "If-None-Match", a.header.Get("ETag")).is(http.StatusNotModified, nil)
	s.ask("PATCH", one+"/state", `{"x":1}`).is(http.StatusNoContent, nil)
	s.ask("GET", one, nil, "If-None-Match", a.header.Get("ETag")).is(http.StatusOK, nil)
}

func TestLockOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"m","in":"1h"}`).is(http.StatusCreated, nil)
	var l api.Locked
	s.ask("PUT", "/v1/jobs/m/priority", `{"priority":0}`).is(http.StatusNoContent, nil)
	for _, bad := range []string{`{}`, `{"priority":null}`, `{"priority":1001}`, `{"priority":"first"}`, `null`} {
		s.ask("PUT", "/v1/jobs/m/priority", bad).refuses(http.StatusUnprocessableEntity, "usage", "priority")
	}
	s.ask("PUT", "/v1/jobs/m/lock", `{"ttl":"1m"}`).is(http.StatusOK, &l)
	s.ask("PUT", "/v1/jobs/m/lock", nil).refuses(http.StatusLocked, "locked", "")
	s.ask("PUT", "/v1/jobs/m/lock", `{"ttl":"10ms"}`).refuses(http.StatusUnprocessableEntity, "usage", "a second")
	s.ask("PUT", "/v1/jobs/m/lock", `{"ttl":"soon"}`).refuses(http.StatusUnprocessableEntity, "usage", "30s")
	s.ask("DELETE", "/v1/jobs/m/lock", nil).refuses(http.StatusUnprocessableEntity, "usage", "token")
	s.ask("DELETE", "/v1/jobs/m/lock?token="+l.Token, nil).is(http.StatusNoContent, nil)
	s.ask("DELETE", "/v1/jobs/m/lock?force=true", nil).refuses(http.StatusConflict, "status", "")
}

func TestSystemOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"}}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/queues/default/pause", nil).is(http.StatusOK, nil)
	var all []api.Queue
	if s.ask("GET", "/v1/queues", nil).is(http.StatusOK, &all); len(all) != 1 || !all[0].Paused {
		t.Fatalf("queues %+v", all)
	}
	var p api.Pausing
	if s.ask("POST", "/v1/queues/default/pause", nil).is(http.StatusOK, &p); p.Changed {
		t.Error("paused twice")
	}
	s.ask("POST", "/v1/queues/default/resume", nil).is(http.StatusOK, nil)
	s.ask("POST", "/v1/queues/defaul/pause", nil).refuses(http.StatusNotFound, "not_found", `did you mean "default"`)
	s.ask("POST", "/v1/channels/publish", `{"channel":"/orders","messages":[1]}`).is(http.StatusOK, nil)
	s.ask("POST", "/v1/channels/publish", `{"channel":"","messages":[1]}`).is(http.StatusUnprocessableEntity, nil)
	s.ask("GET", "/v1/engines", nil).is(http.StatusOK, nil)
	s.ask("GET", "/v1/types", nil).is(http.StatusOK, nil)
	page := s.ask("GET", "/", nil).is(http.StatusOK, nil)
	for _, r := range s.api.Routes() {
		if !strings.Contains(string(page.body), r.Path) {
			t.Errorf("the reference page lacks %s", r.Path)
		}
	}
}
