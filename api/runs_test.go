package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/trigger"
)

// register says that workers run a type, as one in Python would.
func (s *service) register(typ string) {
	s.Helper()
	s.ask("POST", "/v1/workers", map[string]any{"types": []any{map[string]any{
		"type": typ, "inputs": []any{map[string]any{"name": "in", "kind": "integer"}}, "outputs": []any{map[string]any{"name": "out"}},
		"args": []any{map[string]any{"name": "by", "kind": "integer"}}, "version": "7",
	}}}).is(http.StatusOK, nil)
}

// lease takes runs of a type, for which it waits.
func (s *service) lease(typ string) api.RemoteRun {
	s.Helper()
	var got api.Runs
	s.ask("POST", "/v1/runs/lease", map[string]any{"types": []string{typ}, "wait": "1m"}).is(http.StatusOK, &got)
	if len(got.Runs) != 1 {
		s.Fatalf("got %d runs, want 1", len(got.Runs))
	}
	return got.Runs[0]
}

// A worker that speaks HTTP registers a type, and runs jobs of it beside components in one graph.
func TestRemoteWorker(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.register("Times")
	s.ask("POST", "/v1/jobs", map[string]any{"type": "Times", "args": map[string]any{"bye": 3}}).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "by"?`)
	s.ask("POST", "/v1/jobs", map[string]any{"type": "Times", "args": map[string]any{"by": 3}, "alias": "thrice"}).is(http.StatusCreated, nil)
	first := s.lease("Tim*")
	if string(first.Args) != `{"by":3}` || first.Type != "Times" || first.Try != 1 || first.Step != 0 || len(first.Inputs["in"].Messages) != 0 || fmt.Sprint(first.Outputs) != "[out]" {
		t.Errorf("the run is %+v", first)
	}
	s.ask("POST", "/v1/runs/commit", map[string]any{"run": first.Run, "status": "suspend"}).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/jobs/thrice/ports/in/in/messages", map[string]any{"messages": []int{1, 2}}).is(http.StatusOK, nil)
	run := s.lease("Times")
	in := run.Inputs["in"]
	if len(in.Messages) != 2 || string(in.Messages[1].Data) != "2" || in.More != 0 || in.Closed {
		t.Errorf("the run sees %+v", in)
	}
	var until api.Prolonged
	s.ask("POST", "/v1/runs/heartbeat", map[string]any{"run": run.Run, "lease": "10m"}).is(http.StatusOK, &until)
	if left := time.Until(until.ExpiresAt); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("the lease lasts for %s", left)
	}
	work := map[string]any{
		"run": run.Run, "read": map[string]int{"in": 2}, "write": []any{map[string]any{"port": "out", "messages": []int{3, 6}}},
		"state": map[string]any{"set": map[string]any{"n": 2}}, "log": []any{"times"}, "status": "suspend",
		"spawn": []any{map[string]any{"name": "kid", "type": "Times", "args": map[string]any{"by": 2}}},
	}
	work["writ"] = 1
	s.ask("POST", "/v1/runs/commit", work).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "write"?`)
	delete(work, "writ")
	work["status"] = "don"
	s.ask("POST", "/v1/runs/commit", work).refuses(http.StatusUnprocessableEntity, "usage", "done")
	work["status"] = "suspend"
	children := work["spawn"]
	work["spawn"] = []any{map[string]any{"name": "kid", "type": trigger.Type, "args": map[string]any{"on": "@hourly"}}}
	s.ask("POST", "/v1/runs/commit", work).refuses(http.StatusForbidden, "forbidden", `child "kid"`) // and the run goes on
	work["spawn"] = children
	s.ask("POST", "/v1/runs/commit", work).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/runs/commit", work).is(http.StatusNoContent, nil)
	s.ask("POST", "/v1/runs/fail", map[string]any{"run": first.Run, "error": "late"}).refuses(http.StatusConflict, "fenced", "")
	var out api.Messages
	s.ask("GET", "/v1/jobs/thrice/ports/out/out/messages", nil).is(http.StatusOK, &out)
	if len(out.Messages) != 2 || string(out.Messages[1].Data) != "6" {
		t.Errorf("written: %+v", out)
	}
	kid := s.lease("Times")
	if kid.Name != "kid" || kid.Parent != run.Job {
		t.Errorf("the next run is of %+v", kid)
	}
	s.ask("POST", "/v1/runs/fail", map[string]any{"run": kid.Run}).refuses(http.StatusUnprocessableEntity, "usage", "error")
	s.ask("POST", "/v1/runs/fail", map[string]any{"run": kid.Run, "error": "boom", "retry_in": "1ms"}).is(http.StatusNoContent, nil)
	parent := s.lease("Times") // which is told of the failure
	if len(parent.Children) != 1 || parent.Children[0].Name != "kid" || parent.Children[0].Job != kid.Job {
		t.Errorf("the parent was woken by %+v", parent.Children)
	}
	s.ask("POST", "/v1/runs/commit", map[string]any{"run": parent.Run, "status": "suspend"}).is(http.StatusNoContent, nil)
	if kid = s.lease("Times"); kid.Try != 2 {
		t.Errorf("it is try %d, want 2: %+v", kid.Try, kid)
	}
	s.ask("POST", "/v1/runs/release", map[string]any{"run": kid.Run}).is(http.StatusNoContent, nil)
	if kid = s.lease("Times"); kid.Try != 2 {
		t.Errorf("after a release it is try %d, want 2", kid.Try)
	}
	s.ask("POST", "/v1/runs/fail", map[string]any{"run": kid.Run, "error": "boom", "stack": "kid.py:7"}).is(http.StatusNoContent, nil)
	var job api.Job
	s.ask("GET", "/v1/jobs/"+string(kid.Job), nil).is(http.StatusOK, &job)
	if job.Status != "failed" || job.Reason == nil || *job.Reason != "boom" {
		t.Errorf("the kid is %+v", job)
	}
}

// A type that is registered with a limit keeps to it, and the limit shows.
func TestRemoteTypeWithALimit(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/workers", `{"types":[{"type":"One","max_running":1}]}`).is(http.StatusOK, nil)
	var limits []api.Limit
	if s.ask("GET", "/v1/limits", nil).is(http.StatusOK, &limits); len(limits) != 1 || limits[0].Limit != "type:One" || limits[0].Places != 1 || limits[0].Running != 0 {
		t.Errorf("limits: %+v", limits)
	}
	for range 2 {
		s.ask("POST", "/v1/jobs", `{"type":"One"}`).is(http.StatusCreated, nil)
	}
	first := s.lease("One")
	var none api.Runs
	if s.ask("POST", "/v1/runs/lease", `{"types":["*"],"max":3,"wait":"300ms"}`).is(http.StatusOK, &none); len(none.Runs) != 0 {
		t.Errorf("%d more runs at once", len(none.Runs))
	}
	s.ask("POST", "/v1/runs/commit", map[string]any{"run": first.Run, "status": "done"}).is(http.StatusNoContent, nil)
	s.lease("One")
}

// A type that is registered with a rate keeps to it, whoever leases its runs, and the rate shows.
func TestRemoteTypeWithARate(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/workers", `{"types":[{"type":"One","max_runs":1,"max_runs_per":"700ms"}]}`).is(http.StatusOK, nil)
	var limits []api.Limit
	if s.ask("GET", "/v1/limits", nil).is(http.StatusOK, &limits); len(limits) != 1 || limits[0].Limit != "rate:One" || limits[0].Places != 1 || limits[0].Per != "700ms" {
		t.Errorf("limits: %+v", limits)
	}
	for range 2 {
		s.ask("POST", "/v1/jobs", `{"type":"One"}`).is(http.StatusCreated, nil)
	}
	began := time.Now()
	first := s.lease("One")
	s.ask("POST", "/v1/runs/commit", map[string]any{"run": first.Run, "status": "done"}).is(http.StatusNoContent, nil)
	s.lease("One")
	if took := time.Since(began); took < 600*time.Millisecond { // the first may have begun a little before the test was told so
		t.Errorf("a second run began after %s", took)
	}
}

// What is wrong with a request for runs is said, and nothing begins.
func TestRemoteBadRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	for _, c := range []struct{ path, body, text string }{
		{"/v1/workers", `{}`, "types"},
		{"/v1/workers", `{"types":[{"type":"a b"}]}`, "type"},
		{"/v1/workers", `{"types":[{"type":"T","inputs":[{"name":"in"},{"name":"in"}]}]}`, "two"},
		{"/v1/workers", `{"types":[{"type":"T","inputs":[{"name":"a b"}]}]}`, "a b"},
		{"/v1/workers", `{"types":[{"type":"T","inputs":[{"name":"in","kind":"text"}]}]}`, "string"},
		{"/v1/workers", `{"types":[{"type":"T","args":[{"name":"a","kind":"strin"}]}]}`, `did you mean "string"?`},
		{"/v1/workers", `{"types":[{"type":"T","priority":5000}]}`, "5000"},
		{"/v1/workers", `{"types":[{"type":"T","max_running_by":"customer"}]}`, "MaxRunningBy"},
		{"/v1/workers", `{"types":[{"type":"T","max_runs":5}]}`, "MaxRunsPer"},
		{"/v1/workers", `{"types":[{"type":"T","args":[{"name":"customer"}],"max_running":5,"max_running_by":"custmer"}]}`, `did you mean "customer"?`},
		{"/v1/workers", `{"types":[{"type":"T","max_runs":5,"max_runs_per":"often"}]}`, "often"},
		{"/v1/runs/lease", `{}`, "Types is empty"},
		{"/v1/runs/lease", `{"types":["T"],"wait":"1h"}`, "at most 5m"},
		{"/v1/runs/lease", `{"types":["T"],"wait":"soon"}`, "soon"},
		{"/v1/runs/lease", `{"types":["["]}`, "pattern"},
		{"/v1/runs/lease", `{"types":["T"],"lease":"1ms"}`, "Lease 1ms"},
		{"/v1/runs/commit", `{"run":"x"}`, "no run"},
		{"/v1/runs/commit", `{"run":""}`, "no run"},
		{"/v1/runs/heartbeat", `{"run":"x","lease":"30s"}`, "no run"},
		{"/v1/runs/release", `{"run":"x"}`, "no run"},
	} {
		s.ask("POST", c.path, c.body).refuses(http.StatusUnprocessableEntity, "usage", c.text)
	}
}

// A type that Go programs run is theirs.
func TestRemoteTypeOfOthers(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	s.ask("POST", "/v1/workers", `{"types":[{"type":"map","queue":"other"}]}`).refuses(http.StatusConflict, "exists", "this server's own")
	s.ask("POST", "/v1/workers", `{"types":[{"type":"Mine"}]}`).is(http.StatusOK, nil)
	plain := serve(t, redistest.SharedRedis(t), func(c *api.Config) { c.Prototypes = nil })
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if all, err := plain.store.Engines(t.Context()); err == nil && len(all) > 0 || time.Now().After(deadline) {
			break
		}
	}
	plain.ask("POST", "/v1/workers", `{"types":[{"type":"map"}]}`).refuses(http.StatusConflict, "exists", "run by process")
	plain.ask("POST", "/v1/workers", `{"types":[{"type":"map","queue":"other"}]}`).is(http.StatusOK, nil)
}

// Many workers wait for one job: exactly one gets it, at once.
func TestOneOfManyGetsIt(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.register("Times")
	const clients = 50
	var group sync.WaitGroup
	got := make(chan int, clients)
	for range clients {
		group.Go(func() {
			var runs api.Runs
			s.ask("POST", "/v1/runs/lease", map[string]any{"types": []string{"Times"}, "wait": "3s"}).is(http.StatusOK, &runs)
			got <- len(runs.Runs)
		})
	}
	time.Sleep(100 * time.Millisecond) // most of them wait by now
	s.ask("POST", "/v1/jobs", map[string]any{"type": "Times"}).is(http.StatusCreated, nil)
	group.Wait()
	close(got)
	sum := 0
	for n := range got {
		sum += n
	}
	if sum != 1 {
		t.Errorf("%d clients got the job, want 1", sum)
	}
}

// A type of a remote worker stands in a graph beside components; its arguments and ports are checked.
func TestRemoteTypeInGraph(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.Start(t).URL(), nil)
	s.register("Times")
	graph := func(args, edge string) map[string]any {
		return map[string]any{"alias": "sums", "graph": "weir: 1\nname: sums\nnodes:\n  a: {type: map, args: {expr: it + 1}}\n  b: {type: Times, args: " + args +
			"}\nedges:\n  - a.out -> " + edge + "\ninputs: {n: a.in}\noutputs: {r: b.out}\n"}
	}
	s.ask("POST", "/v1/graphs", graph("{bye: 3}", "b.in")).refuses(http.StatusUnprocessableEntity, "usage", `did you mean "by"?`)
	s.ask("POST", "/v1/graphs", graph("{by: three}", "b.in")).refuses(http.StatusUnprocessableEntity, "usage", "by")
	s.ask("POST", "/v1/graphs", graph("{by: 3}", "b.inn")).refuses(http.StatusUnprocessableEntity, "usage", "inn")
	s.ask("POST", "/v1/graphs", graph("{by: 3}", "b.in")).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/sums/ports/in/n/messages", map[string]any{"messages": []int{1, 2}}).is(http.StatusOK, nil)
	s.ask("POST", "/v1/jobs/sums/ports/in/n/close", nil).is(http.StatusNoContent, nil)
	for got := 0; got < 2; {
		run := s.lease("Times")
		var write []string
		for _, m := range run.Inputs["in"].Messages {
			write = append(write, "3"+string(m.Data))
			got++
		}
		body := map[string]any{"run": run.Run}
		if len(write) > 0 {
			body["read"], body["write"] = map[string]int{"in": len(write)}, []any{map[string]any{"port": "out", "messages": write}}
		}
		s.ask("POST", "/v1/runs/commit", body).is(http.StatusNoContent, nil)
	}
	var out api.Messages
	s.ask("GET", "/v1/jobs/sums/ports/out/r/messages", nil).is(http.StatusOK, &out)
	if len(out.Messages) != 2 || string(out.Messages[1].Data) != `"33"` {
		t.Errorf("the graph wrote %+v", out)
	}
}

// What Go programs run is not for workers that speak HTTP, though no program has it just now, until one of these registers it.
func TestLeasesLeaveWhatEnginesRun(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	enginetest.Check(t, s.store.Register(t.Context(), []job.TypeInfo{{Type: "Gone", Queue: job.DefaultQueue, Engine: true}}))
	s.ask("POST", "/v1/runs/lease", `{"types":["trigger"]}`).refuses(http.StatusUnprocessableEntity, "usage", "type trigger of queue default is for programs in Go")
	s.ask("POST", "/v1/jobs", `{"type":"Gone"}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/runs/lease", `{"types":["Times","Gone@2"]}`).refuses(http.StatusUnprocessableEntity, "usage", "type Gone")
	var runs api.Runs
	if s.ask("POST", "/v1/runs/lease", `{"types":["*"],"wait":"300ms"}`).is(http.StatusOK, &runs); len(runs.Runs) != 0 {
		t.Errorf("a worker was given %+v", runs.Runs)
	}
	s.register("Gone")
	if run := s.lease("Gone"); run.Type != "Gone" {
		t.Errorf("the run is %+v", run)
	}
}

func TestTypesAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, redistest.SharedRedis(t), nil)
	large := fmt.Sprintf(`{"types":[{"type":"Large","outputs":[{"name":"out","schema":{"description":%q}}]}]}`, strings.Repeat("x", 20_000))
	s.ask("POST", "/v1/workers", large).refuses(http.StatusUnprocessableEntity, "usage", "at most 16384")
	var types []job.TypeInfo
	for i := range job.MaxTypes - 10 {
		types = append(types, job.TypeInfo{Type: fmt.Sprint("T", i), Queue: "many"})
	}
	before, err := s.store.Types(t.Context())
	enginetest.Check(t, err)
	enginetest.Check(t, s.store.Register(t.Context(), types[len(before):]))
	for i := range 10 {
		s.register(fmt.Sprint("U", i))
	}
	s.ask("POST", "/v1/workers", `{"types":[{"type":"One"}]}`).refuses(http.StatusRequestEntityTooLarge, "too_large", "5000 types of jobs are registered, and 1 are to come")
	s.register("U3")
}
