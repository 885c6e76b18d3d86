package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
)

// A graph says in weir jobs that a job in it is throttled, and no other graph does.
func TestJobsNamesThrottledMemberOfGraph(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	throttled, well := s.graph("report", "one ", "two"), s.graph("ages", 12)
	now, err := s.store.Now(t.Context())
	enginetest.Check(s, err)
	if left := now.Truncate(time.Minute).Add(time.Minute).Sub(now); left < 10*time.Second {
		time.Sleep(left) // a job is throttled until the minute is over, which must not be now
	}
	tree, err := throttled.Tree(t.Context())
	enginetest.Check(s, err)
	for _, i := range tree {
		if i.Name == "trim" {
			s.crawl(s.client.At(i.ID))
		}
	}
	for _, i := range tree {
		if i.Name != "trim" {
			continue
		}
		if out := weir(t, s.url, "run", string(i.ID)); !strings.Contains(out, "is throttled: it ran 2 times this minute, as often as MaxRunsPerMinute") {
			t.Errorf("weir run says of a throttled job: %s", out)
		}
	}
	var shown []struct {
		ID     job.ID
		Reason *string
	}
	enginetest.Check(s, json.Unmarshal([]byte(s.play("weir jobs -o json")), &shown))
	if len(shown) != 2 {
		t.Fatalf("jobs: %+v", shown)
	}
	for _, i := range shown {
		switch {
		case i.ID == well.ID() && i.Reason != nil:
			t.Errorf("the graph whose jobs are well: %s", *i.Reason)
		case i.ID == throttled.ID() && (i.Reason == nil || !strings.HasPrefix(*i.Reason, "trim: rate: it ran 2 times this minute")):
			t.Errorf("the graph with a throttled job: %v", i.Reason)
		}
	}
	if out := s.play("weir jobs"); !strings.Contains(out, "trim: rate: it ran 2 times") {
		t.Errorf("weir jobs does not name the throttled job:\n%s", out)
	}
}
