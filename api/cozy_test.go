package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// sendmail is a worker whose jobs do what their message says: {"fail": true} fails, {"sleep": true} takes longer than any timeout, {"hold":
// true} waits for a message of its port go.
type sendmail struct {
	In   port.In[map[string]any]
	Go   port.In[string] `port:"go"`
	Sent port.Out[string]
}

// Run implements worker.Worker.
func (m *sendmail) Run(ctx context.Context, run *worker.Run) error {
	told := map[string]any{}
	if _, err := run.State().Get("told", &told); err != nil {
		return err
	}
	for one, err := range m.In.All() {
		if err != nil {
			return err
		}
		told = one
	}
	if all, ok := told["payloads"].([]any); ok { // messages that were joined
		var to []any
		for _, one := range all {
			to = append(to, one.(map[string]any)["to"])
		}
		told["to"] = to
	}
	switch {
	case told["fail"] == true:
		return errors.New("no such mailbox")
	case told["sleep"] == true:
		<-ctx.Done()
		return ctx.Err()
	case told["hold"] == true:
		if _, ok, err := m.Go.Read(); !ok || err != nil {
			return errors.Join(err, run.State().Set("told", told), worker.ErrSuspend)
		}
	case told["to"] != nil:
		return m.Sent.Write(fmt.Sprint("sent to ", told["to"]))
	}
	return nil
}

// cozySchema is what answers under /jobs must be.
var cozySchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	raw, err := os.ReadFile("testdata/jsonapi.schema.json")
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("jsonapi.schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("jsonapi.schema.json")
})

type (
	oneJob       = api.CozyOne[api.CozyJob]
	manyJobs     = api.CozyMany[api.CozyJob]
	oneLauncher  = api.CozyOne[api.CozyLauncher]
	manyLaunched = api.CozyMany[api.CozyLauncher]
)

// cozy sends a request of JSON:API; the answer must be valid JSON:API.
func (s *service) cozy(method, path string, body any) *answer {
	s.Helper()
	a := s.ask(method, path, body, "Accept", "application/vnd.api+json", "Content-Type", "application/vnd.api+json")
	if a.status == http.StatusNoContent && len(a.body) == 0 {
		return a
	}
	schema, err := cozySchema()
	if err != nil {
		s.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	if err == nil {
		err = schema.Validate(doc)
	}
	if kind := a.header.Get("Content-Type"); err != nil || kind != "application/vnd.api+json" {
		s.Fatalf("%s %s: %d %s %v\n%s", method, path, a.status, kind, err, a.body)
	}
	return a
}

// enqueue queues a job of sendmail.
func (s *service) enqueue(body string) (j oneJob) {
	s.Helper()
	s.cozy("POST", "/jobs/queue/sendmail", body).is(http.StatusAccepted, &j)
	return j
}

// job shows a job.
func (s *service) job(id any) (j oneJob) {
	s.Helper()
	s.cozy("GET", fmt.Sprintf("/jobs/%v", id), nil).is(http.StatusOK, &j)
	return j
}

// launcher makes one of sendmail.
func (s *service) launcher(body string) (l oneLauncher) {
	s.Helper()
	s.cozy("POST", "/jobs/launchers/sendmail", body).is(http.StatusCreated, &l)
	return l
}

// until waits for the state of a job.
func (s *service) until(id any, state string) oneJob {
	s.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		j := s.job(id)
		if j.Data.Attributes.State == state {
			return j
		}
		if time.Now().After(deadline) {
			s.Fatalf("not %s: %+v", state, j)
		}
	}
}

// still is a service beside an engine whose clock the test moves.
func still(t *testing.T, change func(*api.Config), more ...worker.Worker) (*service, *weirtest.Engine) {
	t.Helper()
	t.Parallel()
	e := weirtest.New(t, append(more, trigger.New(), &sendmail{})...)
	cfg := api.Config{Store: e.Store()}
	if change != nil {
		change(&cfg)
	}
	server, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return &service{T: t, api: server, store: e.Store(), url: web.URL}, e
}

// launched are the jobs of a launcher.
func (s *service) launched(id any) (all []api.CozyJob) {
	s.Helper()
	var jobs manyJobs
	s.cozy("GET", fmt.Sprintf("/jobs/launchers/%v/jobs", id), nil).is(http.StatusOK, &jobs)
	for _, j := range jobs.Data {
		all = append(all, s.job(j.ID).Data.Attributes)
	}
	return all
}

func TestC35Enqueue(t *testing.T) {
	s, e := still(t, nil)
	want := api.CozyOptions{Priority: 3, Timeout: new(60.0), RetryMaxCount: 3, MaxExecCount: 3, RetryDelay: new(10.0), Arguments: json.RawMessage(`{"to":"me"}`)}
	bare := `{"priority":3,"timeout":60,"retry_max_count":3,"retry_delay":10,"arguments":{"to":"me"}}`
	for _, body := range []string{
		bare, `{"data":{"type":"io.cozy.jobs","attributes":` + bare + `}}`,
		`{"data":{"attributes":{"arguments":{"to":"me"},"options":{"priority":3,"timeout":60,"max_exec_count":3,"retry_delay":10}}}}`,
	} {
		j := s.enqueue(body).Data
		if j.Type != "io.cozy.jobs" || j.Attributes.Worker != "sendmail" || j.Attributes.State != "queued" || j.Attributes.TryCount != 0 || j.Attributes.StartedAt != nil {
			t.Errorf("%s: %+v", body, j)
		}
		if got, _ := json.Marshal(j.Attributes.Options); string(got) != string(must(json.Marshal(want))) {
			t.Errorf("%s: options %s", body, got)
		}
		var same oneJob
		if s.cozy("GET", j.Links.Self, nil).is(http.StatusOK, &same); same.Data.ID != j.ID || same.Data.Rev != j.Rev {
			t.Errorf("%s leads to %+v", j.Links.Self, same)
		}
		if info, err := e.Client().At(j.ID).Info(t.Context()); err != nil || *info.Priority != 30 || info.Options.Tries != 3 ||
			info.Options.Timeout != time.Minute || info.Options.Backoff != 10*time.Second || info.Options.MaxBackoff != 10*time.Second {
			t.Errorf("options %+v, %v", info.Options, err)
		}
		e.RunUntilIdle()
		done := s.job(j.ID).Data
		if a := done.Attributes; a.State != "done" || a.TryCount != 1 || string(a.Output["sent"][0]) != `"sent to me"` || a.StartedAt == nil || done.Rev == j.Rev || !bytes.Equal(a.Options.Arguments, want.Arguments) {
			t.Errorf("done: %+v", done)
		}
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

func TestC36UnknownWorker(t *testing.T) {
	s, _ := still(t, func(c *api.Config) { c.Reserved = []string{"sendmail"} })
	for _, path := range []string{"/jobs/queue/", "/jobs/launchers/"} {
		s.cozy("POST", path+"sendmal", `{}`).refuses(http.StatusNotFound, "not_found", `did you mean "sendmail"`)
		s.cozy("POST", path+"a%2Fb", `{}`).refuses(http.StatusNotFound, "not_found", "a/b")
		for _, reserved := range []string{"trigger", "sendmail"} {
			s.cozy("POST", path+reserved, `{}`).refuses(http.StatusForbidden, "forbidden", "reserved")
		}
	}
}

func TestC37UnknownJob(t *testing.T) {
	s, e := still(t, nil)
	launcher := s.launcher(`{"type":"@interval","arguments":"1h"}`).Data.ID
	for _, id := range []string{"123123", "00000000-0000-7000-8000-000000000000", "00000000-0000-7000-8000-000000000000.1", string(launcher), "%00"} {
		s.cozy("GET", "/jobs/"+id, nil).refuses(http.StatusNotFound, "not_found", "no job")
	}
	// One that has finished is done while it is kept, and then not found.
	s.ask("PUT", "/v1/retention", `{"ended":"1h"}`).is(http.StatusOK, nil)
	j := s.enqueue(`{}`)
	e.RunUntilIdle()
	if got := s.job(j.Data.ID).Data.Attributes; got.State != "done" || string(got.Options.Arguments) != `{}` {
		t.Errorf("%+v", got)
	}
	e.Advance(59 * time.Minute)
	s.job(j.Data.ID)
	e.Advance(2 * time.Minute)
	s.cozy("GET", "/jobs/"+string(j.Data.ID), nil).refuses(http.StatusNotFound, "not_found", string(j.Data.ID))
}

func TestC38Pages(t *testing.T) {
	s, e := still(t, nil)
	s.launcher(`{"type":"@interval","arguments":"1h"}`)
	var want []string
	for n := range 120 {
		want = append(want, string(s.enqueue(fmt.Sprintf(`{"arguments":{"n":%d}}`, n)).Data.ID))
	}
	for first, pages := range map[string]int{"/jobs/queue": 3, "/jobs/queue/?page[limit]=7": 18} {
		var got []string
		n := 0
		for path := first; path != ""; n++ {
			var page manyJobs
			s.cozy("GET", path, nil).is(http.StatusOK, &page)
			for _, j := range page.Data {
				got = append(got, string(j.ID))
			}
			path = page.Links.Next
		}
		if !slices.Equal(got, want) || n != pages {
			t.Errorf("%s: %d jobs on %d pages", first, len(got), n)
		}
	}
	e.RunUntilIdle()
	var page manyJobs
	if s.cozy("GET", "/jobs/queue", nil).is(http.StatusOK, &page); len(page.Data) != 0 || page.Links.Next != "" {
		t.Errorf("finished jobs are queued: %+v", page)
	}
	s.cozy("GET", "/jobs/queue?page[cursor]=nonsense", nil).refuses(http.StatusBadRequest, "usage", "links.next")
}

func TestC39Launchers(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil, &sendmail{})
	l := s.launcher(`{"type":"@interval","arguments":"30m10s","options":{"priority":3,"timeout":60,"retry_max_count":3,"retry_delay":10,"arguments":{}}}`).Data
	a := l.Attributes
	options, _ := json.Marshal(a.Options)
	if l.Type != "io.cozy.launchers" || l.Links.Self != "/jobs/launchers/"+string(l.ID) || a.Type != "@interval" || a.Arguments != "30m10s" || a.Worker != "sendmail" ||
		string(options) != `{"priority":3,"timeout":60,"retry_max_count":3,"max_exec_count":3,"retry_delay":10,"arguments":{}}` {
		t.Errorf("made %+v", l)
	}
	var one oneLauncher
	if s.cozy("GET", l.Links.Self, nil).is(http.StatusOK, &one); one.Data.ID != l.ID {
		t.Errorf("%+v", one)
	}
	for _, path := range []string{"/jobs/launchers/", "/jobs/launchers"} {
		var all manyLaunched
		if s.cozy("GET", path, nil).is(http.StatusOK, &all); len(all.Data) != 1 || all.Data[0].ID != l.ID {
			t.Errorf("listed %+v", all)
		}
	}
	var v1 api.Trigger // it is the same under /v1
	if s.ask("GET", "/v1/triggers/"+string(l.ID), nil).is(http.StatusOK, &v1); v1.Kind != "schedule" {
		t.Errorf("trigger %+v", v1)
	}
	if a := s.cozy("DELETE", l.Links.Self, nil).is(http.StatusNoContent, nil); len(a.body) != 0 {
		t.Errorf("body %q", a.body)
	}
	for _, method := range []string{"DELETE", "GET"} {
		s.cozy(method, l.Links.Self, nil).refuses(http.StatusNotFound, "not_found", "launcher")
	}
	// A trigger of /v1 is a launcher; a job is none.
	s.ask("POST", "/v1/triggers", `{"definition":{"schedule":"0 0 9 * * *","launch":{"type":"sendmail"}}}`).is(http.StatusCreated, &v1)
	if s.cozy("GET", "/jobs/launchers/"+string(v1.ID), nil).is(http.StatusOK, &one); one.Data.Attributes.Type != "@cron" || one.Data.Attributes.Arguments != "0 0 9 * * *" {
		t.Errorf("%+v", one)
	}
	j := s.enqueue(`{}`)
	s.cozy("DELETE", "/jobs/launchers/"+string(j.Data.ID), nil).refuses(http.StatusNotFound, "not_found", "launcher")
}

func TestC14C18Unparsable(t *testing.T) {
	s, _ := still(t, nil)
	for typ, all := range map[string][]string{
		"@cron": {
			"60 * * * * *", "0 */0 * * * *", "0 0 0 0 * *", "0 0 0 * * 7", "0 0 0 * * 5-1", "0 0 0 L * *", "0 0 0 * * * *", "0 0 * * *", "@daily", "",
			"0 0 0 30 2 *", "TZ=UTC 0 0 0 * * *",
		},
		"@interval": {"1d", "90", "", "abc", "500ms", "0s", "-1h"},
		"@at":       {"", "tomorrow", "2026-03-12", "2025-12-30T00:00:00Z"},
		"@in":       {"", "10", "-5m", "soon"},
		"@event":    {"", "files"},
		"@webhook":  {"now"},
		"@hourly":   {"on monday", "5"},
		"@daily":    {"on monday", "between 8am", "between 8 and 9", "before 12am", "after 13pm", "between 8am and 8am", "before 5am after 6pm", "at 5am"},
		"@weekly":   {"on someday", "on", "monday", "between 8am and 6pm on monday"},
		"@monthly":  {"on 3", "on the", "on the 0", "on the 32", "on the 5-1", "on the 1-x"},
	} {
		for _, text := range all {
			bare := string(must(json.Marshal(map[string]string{"type": typ, "arguments": text})))
			for pointer, body := range map[string]string{"/arguments": bare, "/data/attributes/arguments": `{"data":{"attributes":` + bare + `}}`} {
				var got api.ErrorDocument
				a := s.cozy("POST", "/jobs/launchers/sendmail", body)
				a.refuses(http.StatusBadRequest, "usage", "Trigger unparsable")
				if a.is(http.StatusBadRequest, &got); got.Errors[0].Source == nil || *got.Errors[0].Source.Pointer != pointer {
					t.Errorf("%s: %s", body, a.body)
				}
			}
		}
	}
	for _, typ := range []string{"cron", "@yearly", "@intervall"} {
		s.cozy("POST", "/jobs/launchers/sendmail", `{"type":"`+typ+`","arguments":"1h"}`).refuses(http.StatusUnprocessableEntity, "usage", "is not known")
	}
	var none manyLaunched
	if s.cozy("GET", "/jobs/launchers", nil).is(http.StatusOK, &none); len(none.Data) != 0 {
		t.Errorf("launchers %+v", none)
	}
}

// One-shot launchers fire, and are gone; their jobs tell who launched them.
func TestC19C20OneShot(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil, &sendmail{})
	for _, c := range []struct {
		typ, arguments string
		after          time.Duration
	}{{"@at", "", -time.Hour}, {"@at", "", 1500 * time.Millisecond}, {"@in", "1500ms", 1500 * time.Millisecond}} {
		began := time.Now()
		if c.arguments == "" {
			c.arguments = began.Add(c.after).Format(time.RFC3339Nano)
		}
		l := s.launcher(fmt.Sprintf(`{"type":%q,"arguments":%q,"options":{"arguments":{"to":"you"}}}`, c.typ, c.arguments)).Data
		if l.Attributes.Type != c.typ || l.Attributes.Arguments != c.arguments {
			t.Errorf("made %+v", l)
		}
		var page api.JobPage
		for deadline := began.Add(30 * time.Second); len(page.Jobs) == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s %s launches nothing", c.typ, c.arguments)
			}
			s.ask("GET", "/v1/jobs?label=trigger%3D"+string(l.ID), nil).is(http.StatusOK, &page)
		}
		if page.Jobs[0].CreatedAt.Before(began.Add(c.after).Add(-time.Millisecond)) {
			t.Errorf("%s %s: launched at %s", c.typ, c.arguments, page.Jobs[0].CreatedAt)
		}
		j := s.until(page.Jobs[0].ID, "done").Data.Attributes
		if j.Launcher != c.typ || j.LauncherID != string(l.ID) || string(j.Output["sent"][0]) != `"sent to you"` || string(j.Options.Arguments) != `{"to":"you"}` || *j.Options.Timeout != 60 {
			t.Errorf("%s %s: %+v", c.typ, c.arguments, j)
		}
		for _, method := range []string{"GET", "DELETE"} {
			s.cozy(method, l.Links.Self, nil).refuses(http.StatusNotFound, "not_found", "launcher")
		}
	}
}

func TestC24Webhooks(t *testing.T) {
	s, e := still(t, nil)
	for payload, want := range map[string]string{"original": "sent to 1", "append": "sent to [1 2 3]"} {
		l := s.launcher(`{"type":"@webhook","limits":{"debounce":"10s","payload":"` + payload + `"},"options":{"arguments":{}}}`).Data
		for n := range 3 {
			s.cozy("POST", "/jobs/webhooks/"+string(l.ID), fmt.Sprintf(`{"to":%d}`, n+1)).is(http.StatusNoContent, nil)
			e.RunUntilIdle()
			e.Advance(time.Second)
		}
		e.Advance(time.Minute)
		got := s.launched(l.ID)
		if len(got) != 1 || got[0].State != "done" || got[0].Launcher != "@webhook" || string(got[0].Output["sent"][0]) != `"`+want+`"` {
			t.Fatalf("%s: launched %+v", payload, got)
		}
		arguments := map[string]string{"original": `{"to":1}`, "append": `{"payloads":[{"to":1},{"to":2},{"to":3}]}`}[payload]
		if string(got[0].Options.Arguments) != arguments {
			t.Errorf("%s: its arguments are %s, want %s", payload, got[0].Options.Arguments, arguments)
		}
	}
	other := s.launcher(`{"type":"@interval","arguments":"1h"}`).Data
	s.cozy("POST", "/jobs/webhooks/"+string(other.ID), `{}`).refuses(http.StatusUnprocessableEntity, "usage", "use fire")
	s.cozy("POST", "/jobs/webhooks/nobody", `{}`).refuses(http.StatusNotFound, "not_found", "launcher")
	s.cozy("POST", "/jobs/webhooks/"+string(other.ID), nil).refuses(http.StatusUnprocessableEntity, "usage", "use fire")
	bare := s.launcher(`{"type":"@webhook"}`).Data
	s.cozy("POST", "/jobs/webhooks/"+string(bare.ID), nil).is(http.StatusNoContent, nil)
	e.RunUntilIdle()
	if got := s.launched(bare.ID); len(got) != 1 || string(got[0].Options.Arguments) != "null" {
		t.Errorf("a webhook without a body launched %+v", got)
	}
	s.cozy("POST", "/jobs/launchers/sendmail", `{"type":"@webhook","options":{"arguments":{"a":1}}}`).refuses(http.StatusUnprocessableEntity, "usage", "leave them out")
}

func TestC29Defaults(t *testing.T) {
	s, e := still(t, nil)
	j := s.enqueue(`{"arguments":{"fail":true}}`).Data
	e.Advance(time.Minute)
	got := s.job(j.ID).Data.Attributes
	if got.State != "errored" || got.TryCount != 3 || len(got.Errors) != 3 || *got.Options.Timeout != 60 || got.Options.RetryMaxCount != 3 {
		t.Errorf("%+v", got)
	}
	for n, f := range got.Errors {
		if f.TryCount != n+1 || f.Message != "no such mailbox" {
			t.Errorf("error %d: %+v", n, f)
		}
	}
}

func TestC30Timeout(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil, &sendmail{})
	began := time.Now()
	j := s.enqueue(`{"timeout":0.5,"retry_max_count":2,"retry_delay":0,"arguments":{"sleep":true}}`).Data
	if d := j.Attributes.Options.RetryDelay; d == nil || *d != 0 {
		t.Errorf("the delay of 0 is told as %v", d)
	}
	running := s.until(j.ID, "running").Data.Attributes
	if running.TryCount < 1 || running.StartedAt == nil {
		t.Errorf("running: %+v", running)
	}
	got := s.until(j.ID, "errored").Data.Attributes
	took := time.Since(began)
	if len(got.Errors) != 2 || !strings.Contains(got.Errors[0].Message, "deadline") || !strings.Contains(got.Errors[0].Message, "timeout of 500ms") || got.TryCount != 2 {
		t.Errorf("%+v", got)
	}
	if first := got.Errors[0].At.Sub(*got.StartedAt); took < time.Second || first < 400*time.Millisecond || first > 5*time.Second || !got.StartedAt.Equal(*running.StartedAt) {
		t.Errorf("the first execution began %s before its timeout, both took %s", first, took)
	}
}

// The delay between tries is the same each time.
func TestC31RetryDelay(t *testing.T) {
	s, e := still(t, nil)
	j := s.enqueue(`{"retry_delay":10,"arguments":{"fail":true}}`).Data
	e.RunUntilIdle()
	for n, want := range []int{1, 1, 2, 2, 3, 3} {
		got := s.job(j.ID).Data.Attributes
		if state := map[bool]string{true: "queued", false: "errored"}[want < 3]; got.TryCount != want || got.State != state || !got.StartedAt.Equal(weirtest.Epoch) {
			t.Errorf("after %d s: %+v", n*5, got)
		}
		e.Advance(5 * time.Second)
	}
}

// Priorities hold across workers.
func TestPrioritiesOfWorkers(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/workers", `{"types":[{"type":"sendmail","inputs":[{"name":"in"}]},{"type":"thumbnail","inputs":[{"name":"in"}]}]}`).is(http.StatusOK, nil)
	for _, job := range []string{"sendmail 1", "thumbnail 100", "sendmail 50", "sendmail 90", "thumbnail 7", "thumbnail 70"} {
		worker, priority, _ := strings.Cut(job, " ")
		s.cozy("POST", "/jobs/queue/"+worker, `{"arguments":1,"priority":`+priority+`}`).is(http.StatusAccepted, nil)
	}
	var got []int
	for range 6 {
		var l struct{ Runs []struct{ Run, Job string } }
		if s.ask("POST", "/v1/runs/lease", `{"types":["sendmail","thumbnail"],"wait":"10s"}`).is(http.StatusOK, &l); len(l.Runs) != 1 {
			t.Fatalf("leased %+v", l)
		}
		got = append(got, s.job(l.Runs[0].Job).Data.Attributes.Options.Priority)
		s.ask("POST", "/v1/runs/commit", map[string]any{"run": l.Runs[0].Run, "read": map[string]int{"in": 1}}).is(http.StatusNoContent, nil)
	}
	if want := []int{100, 90, 70, 50, 7, 1}; !slices.Equal(got, want) {
		t.Errorf("ran in the order %v, want %v", got, want)
	}
}

// Of what waits for the only worker, higher priorities come first, and else those that were queued first.
func TestC34Priorities(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/workers", `{"types":[{"type":"sendmail","inputs":[{"name":"letters"},{"name":"other"}]}]}`).is(http.StatusOK, nil)
	var want, got []string
	byPriority := map[int][]string{}
	for _, p := range []int{1, 100, 50, 50, 1, 100, 37} {
		id := string(s.enqueue(fmt.Sprintf(`{"priority":%d,"arguments":[%d]}`, p, p)).Data.ID)
		byPriority[p] = append(byPriority[p], id)
	}
	for _, p := range []int{100, 50, 37, 1} {
		want = append(want, byPriority[p]...)
	}
	for range want {
		var l struct {
			Runs []struct {
				Run, Job string
				Inputs   map[string]struct {
					Messages []struct{ Data json.RawMessage }
					Closed   bool
				}
			}
		}
		if s.ask("POST", "/v1/runs/lease", `{"types":["sendmail"],"wait":"10s"}`).is(http.StatusOK, &l); len(l.Runs) != 1 {
			t.Fatalf("leased %+v", l)
		}
		run := l.Runs[0]
		if in := run.Inputs["letters"]; len(in.Messages) != 1 || !in.Closed {
			t.Errorf("it sees %+v", run.Inputs)
		}
		got = append(got, run.Job)
		s.ask("POST", "/v1/runs/commit", map[string]any{"run": run.Run, "read": map[string]int{"letters": 1}}).is(http.StatusNoContent, nil)
		s.until(run.Job, "done")
	}
	if !slices.Equal(got, want) {
		t.Errorf("ran %q, want %q", got, want)
	}
	for _, p := range []string{"0", "101", "-1", "2.5", `"high"`} {
		s.cozy("POST", "/jobs/queue/sendmail", `{"priority":`+p+`}`).refuses(http.StatusUnprocessableEntity, "usage", "1 to 100")
		s.cozy("POST", "/jobs/launchers/sendmail", `{"type":"@in","arguments":"1m","options":{"priority":`+p+`}}`).refuses(http.StatusUnprocessableEntity, "usage", "1 to 100")
	}
}

func TestC42Parallel(t *testing.T) {
	for overflow, dropped := range map[string]int64{"wait": 0, "drop": 3} {
		t.Run(overflow, func(t *testing.T) {
			s, e := still(t, nil)
			l := s.launcher(`{"type":"@webhook","limits":{"parallel":2,"overflow":"` + overflow + `"}}`).Data
			for range 5 {
				s.cozy("POST", "/jobs/webhooks/"+string(l.ID), `{"hold":true}`).is(http.StatusNoContent, nil)
			}
			e.RunUntilIdle()
			ended := 0
			for {
				var jobs manyJobs
				s.cozy("GET", "/jobs/launchers/"+string(l.ID)+"/jobs", nil).is(http.StatusOK, &jobs)
				running := slices.DeleteFunc(jobs.Data, func(j api.CozyResource[api.CozyJob]) bool { return j.Attributes.State == "done" })
				if len(running) > 2 {
					t.Fatalf("%d run", len(running))
				}
				if len(running) == 0 {
					break
				}
				ended++
				e.Feed(e.Client().At(running[0].ID), "go", "on")
				e.RunUntilIdle()
			}
			var one oneLauncher
			s.cozy("GET", l.Links.Self, nil).is(http.StatusOK, &one)
			if a := one.Data.Attributes; int64(ended) != 5-dropped || a.Dropped["parallel"] != dropped || a.Launches != 5-dropped || a.Waiting != 0 {
				t.Errorf("%d ended; %+v", ended, a)
			}
		})
	}
}

func TestC45Limit(t *testing.T) {
	s, e := still(t, nil)
	l := s.launcher(`{"type":"@webhook"}`).Data
	for n := range 60 {
		s.cozy("POST", "/jobs/webhooks/"+string(l.ID), fmt.Sprint(`{"n":`, n, `}`)).is(http.StatusNoContent, nil)
	}
	e.RunUntilIdle()
	path := l.Links.Self + "/jobs?Limit="
	for limit, want := range map[string]int{"0": 50, "51": 50, "-1": 50, "50": 50, "7": 7, "": 50} {
		var jobs manyJobs
		if s.cozy("GET", path+limit, nil).is(http.StatusOK, &jobs); len(jobs.Data) != want || jobs.Links.Next == "" {
			t.Errorf("Limit=%s: %d jobs", limit, len(jobs.Data))
		}
	}
	s.cozy("GET", path+"abc", nil).refuses(http.StatusBadRequest, "usage", "abc")
}
