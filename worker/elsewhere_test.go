package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// choosy runs where it may.
type choosy struct {
	Out port.Out[int]

	settings string
	may      *atomic.Bool // nil: it may not
}

func (*choosy) JobType() string { return "Choosy" }

func (c *choosy) Settings() string { return c.settings }

var errNotHere = errors.New("not here")

func (c *choosy) Run(context.Context, *worker.Run) error {
	if c.may == nil || !c.may.Load() {
		return worker.Elsewhere(errNotHere)
	}
	return c.Out.Write(1)
}

// live waits until so many engines are known to live.
func (b *bench) live(n int) {
	b.Helper()
	b.Until("engines are known to live", func() bool {
		engines, err := b.Store.Engines(b.Ctx)
		b.Check(err)
		return len(engines) == n
	})
}

// A job that engines may not run is left to one that may, if it lives, however many may not.
func TestElsewhere(t *testing.T) {
	each(t, func(b *bench) {
		may := &atomic.Bool{}
		may.Store(true)
		for n := range 10 {
			b.serve(only(&choosy{settings: fmt.Sprint(n)}))
		}
		b.serve(only(&choosy{settings: "may", may: may}))
		b.live(11)
		for range 20 {
			h := b.single(&choosy{})
			if info := b.Completed(h, 1); info.Tries != 0 {
				b.Errorf("%d tries", info.Tries)
			}
			b.same(h, 1)
		}
	})
	if worker.Elsewhere(nil) != nil || !errors.Is(worker.Elsewhere(errNotHere), errNotHere) {
		t.Error("Elsewhere does not keep errors")
	}
}

// A job that no engine may run fails, and is tried by each of them once somebody retries it.
func TestNowhere(t *testing.T) {
	each(t, func(b *bench) {
		may := &atomic.Bool{}
		b.serve(only(&choosy{settings: "first", may: may}))
		second := b.serve(only(&choosy{settings: "second"}))
		b.live(2)
		all := make([]*client.Handle, 20) // the last that refused some of them was the first engine, and of others the second one
		for i := range all {
			all[i] = b.single(&choosy{})
			if info := b.Reach(all[i], 0, statemachine.Failed); !strings.Contains(info.Reason, errNotHere.Error()) {
				b.Errorf("reason %q", info.Reason)
			}
		}
		may.Store(true)
		second.Stop()
		b.live(1)
		for _, h := range all {
			b.Check(h.Retry(b.Ctx))
			b.Completed(h, 1)
		}
	})
}
