package worker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Pages prints the pages of a book, and commits after each.
type Pages struct {
	Pages   int
	Printed port.Out[int]
}

func (p *Pages) WorkerOptions() worker.Options {
	return worker.Options{Tries: 2, Backoff: worker.ExponentialBackoff(time.Millisecond, time.Hour)}
}

func (p *Pages) Run(_ context.Context, run *worker.Run) error {
	var done int
	if _, err := run.State().Get("done", &done); err != nil {
		return err
	}
	for page := done + 1; page <= p.Pages; page++ {
		if page == 3 && run.Info().Tries == 0 {
			return errors.New("out of paper")
		}
		fmt.Println("page", page)
		if err := errors.Join(p.Printed.Write(page), run.State().Set("done", page)); err != nil {
			return err
		}
		if err := run.Checkpoint(); err != nil {
			return err
		}
	}
	return nil
}

// A run that fails is repeated from its last checkpoint on.
func ExampleRun_Checkpoint() {
	ctx, client, stop := onEmbedded(&Pages{})
	defer stop()

	book, err := client.Start(ctx, job.Single(&Pages{Pages: 4}, ""))
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := book.Wait(ctx)
	fmt.Println(info.Status, err)
	failures, err := book.Failures(ctx)
	fmt.Println(len(failures), failures[0].Error, err)
	// Output:
	// page 1
	// page 2
	// page 3
	// page 4
	// completed <nil>
	// 1 out of paper <nil>
}
