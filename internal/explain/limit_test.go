package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// A job that waits for a place of a limit says of which, and how many run.
func TestWhyLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tree := explain.NewTree([]*job.Info{{
		ID: "t", Type: "T", Status: statemachine.Queued, Queued: now.Add(-time.Minute), Reason: "limit: type:T has no free place",
	}}, now)
	tree.Limit = func(name string) (running, places int, ok bool) { return 4, 4, name == "type:T" }
	got := tree.Why("t")
	if len(got) != 1 || !strings.Contains(got[0].Text, "waits for a place of limit type:T: 4 of 4 running") || got[0].Command != "weir limits" {
		t.Errorf("why: %+v", got)
	}
}
