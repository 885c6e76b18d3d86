package term_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// A job that waits for a time says when it runs; others say nothing.
func TestNext(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	next := now.Add(90 * time.Minute)
	for want, i := range map[string]job.Info{
		"next run in 1h30m":                        {Type: "trigger", Status: statemachine.Suspended, Next: next},
		"next run in 1h30m, completed 1,204 times": {Type: "report", Status: statemachine.Scheduled, Next: next, Repeat: &job.Repeats{Count: 1204}},
		"next run at 2026-03-10T13:30:00Z":         {Type: "report", Status: statemachine.Scheduled, Next: next, Repeat: &job.Repeats{}},
		"next run in 1s":                           {Type: "report", Status: statemachine.Scheduled, Next: now.Add(300 * time.Millisecond)},
		"next run now":                             {Type: "report", Status: statemachine.Scheduled, Next: now.Add(-time.Second)},
		"completed once":                           {Type: "report", Status: statemachine.Scheduled, Next: next, Repeat: &job.Repeats{Count: 1}},
		"":                                         {Type: "report", Status: statemachine.Running, Next: next},
	} {
		var out bytes.Buffer
		i.ID = "019e1f0e-5a3c-7c1d-9f7e-0a4b7c2d8e11"
		style := term.Style{Now: now, ISO: strings.Contains(want, " at ")}
		if err := term.Tree(&out, []*job.Info{&i}, style); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, want) || want == "" && strings.Contains(got, "next run") {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
}
