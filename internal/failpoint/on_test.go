//go:build failpoints

package failpoint

import (
	"path/filepath"
	"testing"
)

func TestFailAtTheNthHit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "counts")
	a, err := arm("commitSentReplyLost:fail:3", "", file)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 5; n++ {
		if err := a.hit(CommitSentReplyLost); (err != nil) != (n == 3) {
			t.Errorf("hit %d: %v", n, err)
		}
	}
	c, err := OpenCounters(file)
	if err != nil {
		t.Fatal(err)
	}
	if hits, failed := c.Hits(CommitSentReplyLost), c.Happened(CommitSentReplyLost, Fails); hits != 5 || failed != 1 {
		t.Errorf("%d hits and %d failures were counted, want 5 and 1", hits, failed)
	}
}

func TestChanceFollowsTheSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed string) (pattern string) {
		a, err := arm("afterBegin:fail:1/3", seed, "")
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			if a.hit(AfterBegin) != nil {
				pattern += "x"
			} else {
				pattern += "."
			}
		}
		return pattern
	}
	if draw("1") != draw("1") || draw("1") == draw("2") {
		t.Errorf("seed 1 gives %s and %s, seed 2 gives %s", draw("1"), draw("1"), draw("2"))
	}
}

func TestUnknownPointIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := arm("nowhere:kill:1", "", ""); err == nil {
		t.Error("a point that does not exist is accepted")
	}
}
