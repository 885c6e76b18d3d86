package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// choosy runs where it may.
type choosy struct {
	Out port.Out[int]

	may bool
}

func (*choosy) JobType() string { return "Choosy" }

func (c *choosy) Settings() string { return map[bool]string{true: "may", false: "may not"}[c.may] }

var errNotHere = errors.New("not here")

func (c *choosy) Run(context.Context, *worker.Run) error {
	if !c.may {
		return worker.Elsewhere(errNotHere)
	}
	return c.Out.Write(1)
}

// A job that an engine may not run is left to one that may, if it lives, and else fails.
func TestElsewhere(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(only(&choosy{}))
		alone := b.single(&choosy{})
		info := b.Reach(alone, 0, statemachine.Failed)
		if !strings.Contains(info.Reason, errNotHere.Error()) {
			b.Errorf("reason %q", info.Reason)
		}
		second := b.serve(only(&choosy{may: true}))
		live := func(n int) {
			b.Helper()
			b.Until("engines are known to live", func() bool {
				engines, err := b.Store.Engines(b.Ctx)
				b.Check(err)
				return len(engines) == n
			})
		}
		live(2)
		for range 30 {
			h := b.single(&choosy{})
			if info := b.Completed(h, 1); info.Tries != 0 {
				b.Errorf("%d tries", info.Tries)
			}
			b.same(h, 1)
		}
		b.Check(alone.Retry(b.Ctx))
		b.Completed(alone, 1)
		second.Stop()
		live(1)
		b.Reach(b.single(&choosy{}), 0, statemachine.Failed)
	})
	if worker.Elsewhere(nil) != nil || !errors.Is(worker.Elsewhere(errNotHere), errNotHere) {
		t.Error("Elsewhere does not keep errors")
	}
}
