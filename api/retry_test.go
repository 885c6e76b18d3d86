package api_test

import (
	"net/http"
	"testing"

	"github.com/weirworks/weir/api"
	"github.com/weirworks/weir/job"
)

// A job is failed, and retried with new data at a time, over HTTP.
func TestB40RetryOverHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	get := func() (j api.Job) {
		t.Helper()
		s.ask("GET", "/v1/jobs/m", nil).is(http.StatusOK, &j)
		return j
	}
	s.ask("POST", "/v1/jobs", `{"type":"map","args":{"expr":"it"},"alias":"m","in":"1h"}`).is(http.StatusCreated, nil)
	s.ask("POST", "/v1/jobs/m/fail", `{"reason":"the camera is broken"}`).is(http.StatusNoContent, nil)
	j := get()
	id := j.ID
	if j.Status != "failed" || j.Reason == nil || *j.Reason != "by hand (local): the camera is broken" {
		t.Fatalf("%s, %v", j.Status, j.Reason)
	}
	s.ask("POST", "/v1/jobs/m/fail", nil).refuses(http.StatusConflict, "status", "is failed")
	for body, want := range map[string]string{
		`{"args":[1]}`:                           "args: use an object",
		`{"args":{"exprr":"it"}}`:                "did you mean",
		`{"priority":1001}`:                      "1001",
		`{"in":"-5s"}`:                           "-5s",
		`{"name":""}`:                            "name",
		`{"ignore_repeat":true}`:                 "ignore_repeat goes with in or at",
		`{"tree":true,"args":{"expr":"it + 1"}}`: "of one job",
	} {
		if a := s.ask("POST", "/v1/jobs/m/retry", body); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		} else {
			a.refuses(http.StatusUnprocessableEntity, "usage", want)
		}
	}
	var n api.Retried
	s.ask("POST", "/v1/jobs/m/retry", `{"args":{"expr":"it * 2"},"name":"twice","priority":9,"in":"1s","at":"2050-01-02T03:04:05Z"}`).is(http.StatusOK, &n)
	i, err := s.store.Info(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if n.Retried != 1 || i.Status != job.Scheduled || i.Next.Year() != 2050 || *i.Priority != 9 || i.Name != "twice" || string(i.Args) != `{"expr":"it * 2"}` {
		t.Errorf("%d, %+v", n.Retried, i)
	}
	s.ask("POST", "/v1/jobs/m/retry", nil).is(http.StatusOK, nil)
	s.ask("GET", "/v1/jobs/m/wait?for=completed&timeout=20s", nil).is(http.StatusOK, nil)
	s.ask("POST", "/v1/jobs/m/retry", nil).refuses(http.StatusConflict, "status", "is ")
}
