package client_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

func TestDeadLettersError(t *testing.T) {
	t.Parallel()
	e := &client.DeadLettersError{Doing: "requeuing", All: 12}
	for i, n := range []int{1, 4, 3, 1, 1} { // of each reason
		for range n {
			e.Failed = append(e.Failed, &client.DeadLetterError{Letter: "5f3a", In: job.PortRef{Job: "a.1"}, Err: fmt.Errorf("reason %d: %w", i, job.ErrClosed)})
		}
	}
	const want = "10 of 12 dead letters were not requeued: reason 1: port is closed (4); reason 2: port is closed (3); reason 0: port is closed (1); and 2 more"
	if e.Error() != want || !errors.Is(e, job.ErrClosed) {
		t.Errorf("said %q\nwant %q", e, want)
	}
	e.Failed = e.Failed[1:3]
	if got := e.Error(); got != "2 of 12 dead letters were not requeued: reason 1: port is closed" {
		t.Errorf("of one reason: %q", got)
	}
	e.Failed = e.Failed[:1]
	if got := e.Error(); got != "requeuing dead letter 5f3a of job a.1: reason 1: port is closed" {
		t.Errorf("of one dead letter: %q", got)
	}
}
