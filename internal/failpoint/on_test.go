//go:build failpoints

package failpoint

import (
	"path/filepath"
	"testing"
	"time"
)

func TestFailAtTheNthHit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "counts")
	a, err := arm("commitSentReplyLost:fail:3", "", file, "")
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
		a, err := arm("afterBegin:fail:1/3", seed, "", "")
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

func TestSkew(t *testing.T) {
	t.Parallel()
	a, err := arm("", "", "", "-30m")
	if err != nil || a.skew != -30*time.Minute {
		t.Errorf("skew %v, %v", a, err)
	}
}

// A fault that would not happen is an error.
func TestBadOrdersAreErrors(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][4]string{
		"point": {"nowhere:kill:1"}, "seed": {"", "x"}, "counts": {"", "", "/nowhere/counts"}, "skew": {"", "", "", "30"},
	} {
		if _, err := arm(words[0], words[1], words[2], words[3]); err == nil {
			t.Errorf("a wrong %s is accepted: %q", name, words)
		}
	}
}
