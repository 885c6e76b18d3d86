package worker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Fetch asks a server, which says what to do.
type Fetch struct{ From string }

func (f *Fetch) WorkerOptions() worker.Options {
	return worker.Options{Tries: 5, Backoff: worker.ExponentialBackoff(10*time.Second, time.Minute)}
}

func (f *Fetch) Run(_ context.Context, run *worker.Run) error {
	switch {
	case f.From == "nowhere":
		return worker.Permanent(errors.New("404 Not Found"))
	case run.Info().Tries == 0:
		return worker.RetryAfter(time.Hour, errors.New("429 Too Many Requests"))
	}
	return nil
}

// One error says when to try again, another one that this is of no use.
func ExampleRetryAfter() {
	t := &tester{}
	defer t.end()
	e := weirtest.New(t, &Fetch{})
	busy, lost := e.StartWorker(&Fetch{From: "busy"}), e.StartWorker(&Fetch{From: "nowhere"})
	show := func(h *client.Handle) {
		i, err := h.Info(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(i.Status, i.Reason)
	}
	e.RunUntilIdle()
	show(busy)
	show(lost)
	e.Advance(time.Hour)
	show(busy)
	// Output:
	// scheduled 429 Too Many Requests
	// failed 404 Not Found
	// completed
}

// tester is the test of an example.
type tester struct{ cleanups []func() }

func (*tester) Helper()                           {}
func (*tester) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t *tester) Cleanup(fn func())               { t.cleanups = append(t.cleanups, fn) }

func (t *tester) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
