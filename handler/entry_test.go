package handler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/job"
)

func TestM01PhasesOfAnEntry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 13, 45, 30, 0, time.UTC)
	for want, e := range map[handler.Phase]handler.Entry{
		handler.Deferred:  {DT: now.Add(time.Second)},
		handler.Ready:     {DT: now},
		handler.Running:   {DT: now.Add(time.Second), Lock: "ENGINE01"},
		handler.Abandoned: {DT: now.Add(-time.Second), Lock: "ENGINE01"},
		handler.Archived:  {DT: now.AddDate(1000, 0, 0), Lock: handler.Done},
	} {
		if got := e.Phase(now); got != want {
			t.Errorf("%+v is %s, want %s", e, got, want)
		}
	}
}

// TestM09CodesOfJobsThatFailed are read from the reason that is kept.
func TestM09CodesOfJobsThatFailed(t *testing.T) {
	t.Parallel()
	text := handler.FailureText(handler.Retry, 199, "busy: error 500: no")
	for reason, want := range map[string]string{
		text: "retry 199", "tried 4 times, as often as it may: " + text: "retry 199",
		"tried for 6h0m1s, as long as it may: " + handler.FailureText(handler.Error, 503, "oh"): "error 503",
		"failed by hand: error 500: x": " 0", "retry 500: x": " 0", "": " 0",
		"tried for 6h0m0s, as long as it may: type t: the type has no handler now": " 0",
	} {
		e := handler.EntryOf(&job.Info{Status: job.Failed, Reason: reason})
		if got := fmt.Sprint(e.Code, " ", e.Status); got != want {
			t.Errorf("%q: %s, want %s", reason, got, want)
		}
	}
}

// TestM05ADoneJobIsArchivedForAThousandYears has the time that the scenario names.
func TestM05ADoneJobIsArchivedForAThousandYears(t *testing.T) {
	t.Parallel()
	ended := time.Date(2026, 3, 10, 13, 45, 30, 0, time.UTC)
	for _, status := range []job.Status{job.Completed, job.Failed, job.Terminated} {
		e := handler.EntryOf(&job.Info{ID: "x", Type: "t", Status: status, Ended: ended})
		if want := time.Date(3026, 3, 10, 13, 45, 30, 0, time.UTC); !e.DT.Equal(want) || e.Lock != "__done" {
			t.Errorf("%s: %+v, want %s", status, e, want)
		}
	}
}
