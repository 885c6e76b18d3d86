package worker_test

import (
	"testing"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// An idle engine runs a job that its own process writes to in the call that wrote, and goes on with what that
// makes ready.
func TestWritesBeginRuns(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(&Double{})
		b.Reach(h, 1, statemachine.Completed)
		for i := range 3 {
			b.Until("the engine sleeps", func() bool {
				freeSlot := b.Store.Broker().(*delivery.Broker).FreeSlot()
				if freeSlot != nil {
					freeSlot.Leave()
				}
				return freeSlot != nil
			})
			b.Check(h.Write(b.Ctx, "in", i))
			info := b.Info(h)
			if info.Status == statemachine.Queued {
				b.Errorf("the run of message %d did not begin with its write", i)
			}
			b.Reach(h, int64(i)+2, statemachine.Completed)
			var got int
			ok, err := h.Read(b.Ctx, "out", &got)
			b.Check(err)
			if !ok || got != 2*i {
				b.Errorf("message %d became %d, %t", i, got, ok)
			}
		}
		if p, _ := b.Reach(h, 4, statemachine.Completed).Port(port.Input, "in"); p.Total != 3 || p.Waiting != 0 {
			b.Errorf("%d messages passed, %d wait", p.Total, p.Waiting)
		}
	})
}
