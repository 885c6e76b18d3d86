package store_test

import (
	"errors"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

func TestMatchType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, typ string
		want         bool
	}{
		{"Resize", "Resize", true},
		{"Resize", "Resized", false},
		{"Res*", "Resize", true},
		{"*", "team/image.Resize", true},
		{"team/*", "team/image/Resize", true},
		{"team?Resize", "team/Resize", true},
		{"Fetch[0-9]", "Fetch7", true},
		{"Fetch[0-9]", "FetchX", false},
		{"", "Fetch", false},
		{"[", "Fetch", false},
	} {
		if got := store.MatchType(c.pattern, c.typ); got != c.want {
			t.Errorf("MatchType(%q, %q) = %t", c.pattern, c.typ, got)
		}
		if err := store.CheckPattern(c.pattern); (err != nil) != (c.pattern == "" || c.pattern == "[") || err != nil && !errors.Is(err, job.ErrName) {
			t.Errorf("CheckPattern(%q) = %v", c.pattern, err)
		}
	}
}
