package conformance_test

import (
	"context"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// A job that is failed, or retried with new data, while an engine runs it: nothing of that run is stored, and the next one has the
// new data.
func TestB40ByHandWhileItRuns(t *testing.T) {
	each(t, func(e *env) {
		began, goOn := make(chan int, 1), make(chan struct{})
		a := does(e.T, func(_ context.Context, run *worker.Run, w *Do) error {
			if err := run.State().Set("n", w.N); err != nil {
				return err
			}
			began <- w.N
			<-goOn
			return nil
		})
		e.serve(&Do{})
		h := e.job("Do", a)
		for n, act := range []func() error{
			func() error { return h.Fail(e.Ctx, "enough") },
			func() error {
				other := a
				other.N = 7
				return h.Retry(e.Ctx, client.RetryArgs(other), client.RetryName("seven"), client.RetryRunning())
			},
		} {
			if got := <-began; got != 0 {
				e.Fatalf("run %d has N %d", n, got)
			}
			e.Check(act())
			if n == 0 {
				e.reach(h, statemachine.Failed)
			}
			goOn <- struct{}{}
			if n == 0 {
				e.failedWith(h, "by hand: enough")
				e.Check(h.Retry(e.Ctx))
			}
		}
		if got := <-began; got != 7 {
			e.Fatalf("the last run has N %d", got)
		}
		goOn <- struct{}{}
		i := e.reach(h, statemachine.Completed)
		state, err := h.State(e.Ctx)
		e.Check(err)
		if string(state["n"]) != "7" || i.Steps != 1 || i.Name != "seven" {
			e.Errorf("state %s, %d steps, name %q", state, i.Steps, i.Name)
		}
	})
}
