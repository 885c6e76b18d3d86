package client

import (
	"reflect"
	"testing"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// What was sent is taken out of what is wanted, wherever it overlaps.
func TestWanted(t *testing.T) {
	t.Parallel()
	move := func(name string, from int64, n int) job.Movement {
		return job.Movement{Job: "t", Dir: port.Input, Port: name, From: from, N: n}
	}
	w := wanted{}
	w.add(move("in", 10, 10))
	w.add(move("in", 30, 0))
	for i, c := range []struct {
		sent  job.Movement
		found bool
		left  []job.Movement
	}{
		{move("other", 10, 10), false, []job.Movement{move("in", 10, 10)}},
		{move("in", 0, 10), false, []job.Movement{move("in", 10, 10)}},
		{move("in", 20, 5), false, []job.Movement{move("in", 10, 10)}},
		{move("in", 13, 2), true, []job.Movement{move("in", 10, 3), move("in", 15, 5)}},
		{move("in", 5, 7), true, []job.Movement{move("in", 12, 1), move("in", 15, 5)}},
		{move("in", 0, 100), true, nil},
		{move("in", 0, 100), false, nil},
	} {
		if found := w.sent([]job.Movement{c.sent}); found != c.found {
			t.Errorf("%d: found is %v", i, found)
		}
		if got := w.all(); !reflect.DeepEqual(got, c.left) {
			t.Errorf("%d: %+v are left, want %+v", i, got, c.left)
		}
	}
	if len(w) != 0 {
		t.Errorf("%+v is left", w)
	}
	w.read(&job.RunEntry{Read: []job.Movement{move("a", 1, 1)}, Groups: []job.RunEntry{{Read: []job.Movement{move("b", 2, 2)}}}})
	if got, want := w.all(), []job.Movement{move("a", 1, 1), move("b", 2, 2)}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
