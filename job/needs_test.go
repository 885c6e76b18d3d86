package job_test

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// What is stored of needs is read as it was.
func TestNeedsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		build := rapid.StringMatching(`[0-9a-f]{1,10}`)
		n := job.Needs{
			Type: rapid.StringMatching(`[a-zA-Z0-9][\w:./-]{0,10}`).Draw(t, "type"), Version: rapid.IntRange(1, job.MaxVersion).Draw(t, "version"),
			Args: rapid.IntRange(1, job.MaxVersion).Draw(t, "args"), State: rapid.IntRange(1, job.MaxVersion).Draw(t, "state"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "refused") {
			n.Refused = append(n.Refused, build.Draw(t, "build"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "unread") {
			n.Unread = append(n.Unread, build.Draw(t, "build"))
		}
		if got := job.ParseNeeds(n.String(), n.Written()); !reflect.DeepEqual(got, n) {
			t.Fatalf("%+v comes back from %s and %s as %+v", n, n.String(), n.Written(), got)
		}
		if n.Plain() && n.String() != n.Type {
			t.Fatalf("a plain type is stored as %s", n.String())
		}
	})
}

// Engines meet needs when they have the version and are none of those that could not decode it.
func TestNeedsMetBy(t *testing.T) {
	t.Parallel()
	for needs, met := range map[string]bool{
		"a": true, "a@2": true, "a@3": false, "b": true, "b@2": false, "c": false, "a@!x": false, "a@!y": true, "a@2!y?x": false, "a@?y?z": true,
	} {
		n := job.ParseNeeds(needs, "")
		if got := n.MetBy([]string{"a", "b", job.Takes("a", 2), job.Refuses("x")}); got != met {
			t.Errorf("%s: met by what asks = %t", needs, got)
		}
		e := store.EngineInfo{Queues: map[string]int{"q": 1}, Types: []string{"a", "b"}, Versions: map[string]int{"a": 2}, Build: "x"}
		if got := e.Takes("q", needs); got != met {
			t.Errorf("%s: met by the engine = %t", needs, got)
		}
	}
}

// Of very many that could not decode a job the first is forgotten.
func TestNeedsForgetTheFirst(t *testing.T) {
	t.Parallel()
	n, again := job.Needs{Type: "a"}, false
	for _, build := range "abcdefgh" {
		if n, again = n.Refuse(string(build), false); again {
			t.Fatalf("%s is forgotten at %c", n.String(), build)
		}
	}
	if _, again = n.Refuse("a", false); again {
		t.Error("one that could not twice is forgotten")
	}
	if n, again = n.Refuse("i", false); !again || n.String() != "a@!b!c!d!e!f!g!h!i" {
		t.Errorf("%s, %t", n.String(), again)
	}
}

type zeroth struct{}

func (*zeroth) Version() int { return 0 }

func TestVersionOf(t *testing.T) {
	t.Parallel()
	if n, err := job.VersionOf(&struct{}{}); n != 1 || err != nil {
		t.Errorf("without Version: %d, %v", n, err)
	}
	if _, err := job.VersionOf(&zeroth{}); !errors.Is(err, job.ErrConfig) {
		t.Errorf("version 0: %v", err)
	}
}
