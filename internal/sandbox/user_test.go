//go:build linux

package sandbox_test

import (
	"testing"

	"github.com/weirworks/weir/internal/sandbox"
)

// Two that ask at a time get users of their own, and one that is given back is there for the next.
func TestTakeUser(t *testing.T) {
	t.Parallel()
	take := func() sandbox.User {
		u, err := sandbox.TakeUser()
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	a, b := take(), take()
	if a.ID == b.ID {
		t.Errorf("both are %d", a.ID)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	c := take()
	if c.ID == b.ID {
		t.Errorf("both are %d", c.ID)
	}
	_, _ = b.Close(), c.Close()
}
