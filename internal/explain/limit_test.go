package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// A job that waits for a place of a limit, or for its turn in a rate, says of which, and how it is used.
func TestWhyLimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	used := map[string]redisstore.LimitInfo{
		"type:T":         {Max: 4, Running: 4},
		"rate:T=a has b": {Max: 50, Per: time.Second, Running: 50},
		"rate:V":         {Max: 4, Per: time.Second},
		"rate:U":         {Max: 1, Per: time.Minute, Running: 1, Free: 41 * time.Second},
	}
	for reason, want := range map[string]string{
		"type:T has no free place":        "waits for a place of limit type:T: 4 of 4 running",
		"type:U has no free place":        "waits for a place of limit type:U:",
		"rate:T=a has b has had its runs": "waits for its turn, as at most 50 runs begin of rate:T=a has b within 1s: 50 did, or are about to",
		"rate:V has had its runs":         "waits for its turn, as at most 4 runs begin of rate:V within 1s: none did lately, so it is next",
		"rate:U has had its runs":         "waits for its turn, as at most 1 run begins of rate:U within 1m0s: 1 did, or are about to; the next place is free in 41s, at 12:00:41Z",
	} {
		tree := explain.NewTree([]*job.Info{{
			ID: "t", Type: "T", Status: statemachine.Queued, Queued: now.Add(-time.Minute), Reason: "limit: " + reason,
		}}, now)
		tree.Limit = func(name string) (redisstore.LimitInfo, bool) { l, ok := used[name]; return l, ok }
		got := tree.Why("t")
		if len(got) != 1 || !strings.Contains(got[0].Text, want) || got[0].Command != "weir limits" {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}
