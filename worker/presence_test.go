package worker_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/worker"
)

// An engine tells that it lives, what it runs now, and that it stops.
func TestEngineTellsOfItself(t *testing.T) {
	each(t, func(b *bench) {
		let := make(chan struct{})
		h := b.single(call(b, func(context.Context, *worker.Run, *Call) error {
			<-let
			return nil
		}))
		s := b.serve(func(c *worker.Config) { c.Queues = map[string]int{"default": 3, "other": 1} })
		one := func(what string, ok func(e store.EngineInfo) bool) {
			b.Helper()
			b.Until(what, func() bool {
				all, err := b.Store.Engines(b.Ctx)
				b.Check(err)
				return len(all) == 1 && ok(all[0])
			})
		}
		one("it says what it runs", func(e store.EngineInfo) bool {
			return e.PID == os.Getpid() && e.Concurrency == 4 && e.Queues["default"] == 3 && slices.Contains(e.Types, "Call") &&
				!e.Stopping && e.Running == 1 && len(e.Runs) == 1 && e.Runs[0].Job == h.ID() && e.Runs[0].Type == "Call" && !e.Runs[0].Since.IsZero()
		})
		s.End()
		one("it says that it stops", func(e store.EngineInfo) bool { return e.Stopping && e.Running == 1 })
		close(let)
		s.Stop()
		all, err := b.Store.Engines(b.Ctx)
		b.Check(err)
		if len(all) != 0 {
			b.Errorf("after its end: %+v", all)
		}
	})
}
