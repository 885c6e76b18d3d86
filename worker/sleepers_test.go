package worker

import (
	"strconv"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// Jobs end in other engines, too: what is not used is forgotten, what is used is not.
func TestSleepersAreForgotten(t *testing.T) {
	var s sleepers
	now := time.Now()
	put := func(id string) {
		s.put(sleeper{snap: &store.Snapshot{Info: job.Info{ID: job.ID(id)}}}, now)
	}
	put("once")
	for n := range 4 {
		put("used")
		put(strconv.Itoa(n))
		now = now.Add(unused)
		if one, _ := s.take("used", now); one.snap == nil {
			t.Fatalf("what was used %v ago is forgotten", unused)
		}
		now = now.Add(1)
	}
	if one, _ := s.take("once", now); one.snap != nil {
		t.Errorf("what was not used for %v is still known", 4*unused)
	}
	if n := len(s.jobs) + len(s.older); n > 3 {
		t.Errorf("%d jobs are known, want 3: the one that is used and the last two", n)
	}
}

// However many jobs sleep, an engine knows of no more than its share, and of the last ones.
func TestSleepersAreBounded(t *testing.T) {
	var s sleepers
	now := time.Now()
	for n := range 3 * known {
		s.put(sleeper{snap: &store.Snapshot{Info: job.Info{ID: job.ID(strconv.Itoa(n))}}}, now)
	}
	if n := len(s.jobs) + len(s.older); n > known {
		t.Errorf("%d jobs are known, want %d at most", n, known)
	}
	if one, _ := s.take(job.ID(strconv.Itoa(3*known-1)), now); one.snap == nil {
		t.Error("the last one is not known")
	}
}
