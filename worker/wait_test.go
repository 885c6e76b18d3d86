package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// A wait whose time is over says what it waited for, and what that is doing.
func TestWaitSaysWhatItWaitsFor(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		broken := &Tried{Call: *call(b, func(context.Context, *worker.Run, *Call) error {
			return worker.RetryAfter(time.Hour, errors.New("the bank is closed"))
		})}
		g := graph.New("shop")
		graph.Add(g, "pay", broken)
		for i := range 3 {
			graph.Connect(graph.Input[int](g, fmt.Sprintf("in%d", i)), graph.Add(g, fmt.Sprintf("ship%d", i), call(b, func(context.Context, *worker.Run, *Call) error { return nil })).In)
		}
		tree, lone := b.Start(g), b.single(broken)
		for _, h := range []*client.Handle{tree, lone} {
			b.Until("the first try has failed", func() bool {
				fs, err := b.failing(h).Failures(b.Ctx)
				b.Check(err)
				return len(fs) > 0
			})
		}
		short := func(h *client.Handle) error {
			ctx, cancel := context.WithTimeout(b.Ctx, 200*time.Millisecond)
			defer cancel()
			_, err := h.Wait(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				b.Errorf("error %v", err)
			}
			return err
		}
		for h, parts := range map[*client.Handle][]string{
			tree: {"waiting for job " + string(tree.ID()) + " (shop), which is suspended", "; in it shop/pay is scheduled after a failed run until 20", ": the bank is closed; shop/ship0 is suspended; shop/ship1 is suspended; and 1 more"},
			lone: {"waiting for job " + string(lone.ID()) + " (Tried), which is scheduled after a failed run until 20", ": the bank is closed: context deadline exceeded"},
		} {
			err := short(h)
			for _, part := range parts {
				if !strings.Contains(err.Error(), part) {
					b.Errorf("error %v\nhas no %q", err, part)
				}
			}
		}
		ctx, cancel := context.WithCancel(b.Ctx)
		cancel()
		if _, err := lone.Wait(ctx); !errors.Is(err, context.Canceled) {
			b.Errorf("cancelled: %v", err)
		}
	})
}

// failing is the job of a tree that fails: the one named pay, or the only one.
func (b *bench) failing(h *client.Handle) *client.Handle {
	b.Helper()
	c, err := h.Child(b.Ctx, "pay")
	if errors.Is(err, job.ErrNotFound) {
		return h
	}
	b.Check(err)
	return c
}
