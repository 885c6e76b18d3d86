package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/worker"
)

// far is how far a job says that it is.
func (b *bench) far(h *client.Handle) string {
	b.Helper()
	info := b.Info(h)
	if info.Progress == nil {
		return "nothing"
	}
	return fmt.Sprintf("%q", info.Progress)
}

// A run tells how far it is while it goes on, also behind a checkpoint; what it told last is there when it is over, until zeros end that.
func TestProgress(t *testing.T) {
	each(t, func(b *bench) {
		var first, second enginetest.Gate
		b.serve()
		h := b.single(call(b, func(ctx context.Context, run *worker.Run, w *Call) error {
			n, ok, err := w.In.Read()
			switch {
			case err != nil || !ok:
				return errors.Join(err, worker.ErrSuspend)
			case n == 2:
				return run.Progress(5, 5, "")
			case n == 3:
				return run.Progress(0, 0, "")
			}
			if err := errors.Join(run.Progress(1, 5, "files"), first.Pass(ctx), run.Checkpoint(), run.Progress(2, 5, "files"), second.Pass(ctx)); err != nil {
				return err
			}
			return run.Progress(3, 5, "files")
		}))
		b.Check(h.Write(b.Ctx, "in", 1))
		b.Until("told while it runs", func() bool { return b.far(h) == `"1/5 files"` })
		first.Open()
		b.Until("told behind a checkpoint", func() bool { return b.far(h) == `"2/5 files"` })
		second.Open()
		b.Until("committed", func() bool { return b.far(h) == `"3/5 files"` })
		b.Check(h.Write(b.Ctx, "in", 2))
		b.Until("the next run", func() bool { return b.far(h) == `"5/5"` })
		b.Check(h.Write(b.Ctx, "in", 3))
		b.Until("ended", func() bool { return b.far(h) == "nothing" })
	})
}

// What a run tells is refused as it is told.
func TestProgressRefused(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		var got []error
		h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			got = []error{
				run.Progress(-1, 2, ""), run.Progress(1, -2, ""), run.Progress(1, 2, strings.Repeat("x", job.MaxProgressText+1)),
				run.Progress(1, 2, "a\nb"), run.Progress(1, 2, "\xff"), run.Progress(3, 2, "more than there were"),
			}
			return nil
		}))
		b.Completed(h, 1)
		for n, want := range []string{"use numbers from 0 on", "use numbers from 0 on", "at most 200 are allowed", "of one line", "valid UTF-8", ""} {
			if text := fmt.Sprint(got[n]); want == "" && got[n] != nil || !strings.Contains(text, want) {
				b.Errorf("%d: %s, want %s", n, text, want)
			}
		}
	})
}

// A run that fails tells nothing more than it told before.
func TestProgressOfFailedRun(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		h := b.single(call(b, func(_ context.Context, run *worker.Run, _ *Call) error {
			if err := errors.Join(run.Progress(1, 2, ""), run.Checkpoint(), run.Progress(2, 2, "")); err != nil {
				return err
			}
			return errors.New("no")
		}))
		b.Failure(h)
		if got := b.far(h); got != `"1/2"` {
			b.Error(got)
		}
	})
}

// Each job of a chain, and each run of a batch, tells its own.
func TestProgressOfChain(t *testing.T) {
	each(t, func(b *bench) {
		b.serve()
		g := graph.New("row")
		first, second := graph.Add(g, "first", &Hop{}), graph.Add(g, "second", &Hop{})
		graph.Connect(graph.Input[int](g, "in"), first.In)
		graph.Connect(first.Out, second.In)
		h := b.Start(g)
		b.Check(h.Write(b.Ctx, "in", 1, 2, 3, 4, 5))
		b.Until("all have told", func() bool {
			tree, err := h.Tree(b.Ctx)
			b.Check(err)
			return !slices.ContainsFunc(tree[1:], func(i *job.Info) bool {
				return i.Progress == nil || *i.Progress != job.Progress{Done: 5, Text: "hops"}
			})
		})
	})
}
