package worker

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// ErrNotYet is what Await returns while the child may still bring a result. It wraps ErrSuspend: a Run that returns it
// suspends the job, and what the run did is kept. The child's next run wakes the job.
var ErrNotYet = fmt.Errorf("%w: the child has no result yet", ErrSuspend)

// ChildError is what Await returns of a child that brings no result any more. It wraps job.ErrFailed.
type ChildError struct {
	Name   string              // of the child
	ID     job.ID              // of the child
	Status statemachine.Status // failed, terminated, or completed without a result
	Reason string              // why
}

// Error implements error.
func (e *ChildError) Error() string {
	s := fmt.Sprintf("child %q (job %s) is %s", e.Name, e.ID, e.Status)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Unwrap makes errors.Is(err, job.ErrFailed) true.
func (e *ChildError) Unwrap() error { return job.ErrFailed }

// Await returns the result of a child: the first message in its Out port, of which it has only one. While there is none
// the error is ErrNotYet, and when none can come any more a *ChildError, which says why. The message stays where it is:
// the next run of the job that awaits the child gets it, too. So Run is written as if Await waited:
//
//	receipt, err := worker.Await[Receipt](run, "pay-1")
//	if err != nil {
//		return err // suspends, or fails with the child
//	}
//
// What Run did before it returns ErrNotYet is kept, and done again by the next run: await what is needed first, and write
// then.
//
// A run behind that one gets the same result once more: something else may wake the job, such as a message, a timer, or the end
// of an input that closes late. A job with an In port, or with several children, remembers in its state, or in what it has read, what it has
// done with a result, so that it does so once. example_await_input_test.go shows that.
//
// A child that was spawned with job.Release is gone after the run that was told of its end: later runs get an error that
// wraps job.ErrNotFound.
//
// A child with several Out ports is awaited with AwaitPort. A child without any, or one that completes and writes
// nothing, has no result but its end: await it as Await[struct{}].
func Await[T any](run *Run, name string) (T, error) { return AwaitPort[T](run, name, "") }

// AwaitPort is Await for one of several Out ports of the child.
func AwaitPort[T any](run *Run, name, out string) (result T, err error) {
	c, err := run.Child(name)
	if err != nil {
		return result, err
	}
	_, onlyEnd := any(result).(struct{})
	raw, err := c.result(out, onlyEnd)
	if err == nil && !onlyEnd {
		if err = port.DecodeStored(raw, &result); err != nil {
			err = fmt.Errorf("the result of child %q: %w", name, err)
		}
	}
	return result, err
}

// result returns the first message of an Out port of the child, or nil if only its end matters.
func (c *Child) result(out string, onlyEnd bool) ([]byte, error) {
	info, err := c.Info()
	if errors.Is(err, job.ErrNotFound) && c.fresh != nil {
		return nil, ErrNotYet // it comes with the commit
	}
	if err != nil {
		return nil, fmt.Errorf("awaiting child %q: %w", c.name, err)
	}
	var waiting int64
	if !onlyEnd || out != "" {
		p, err := c.resultPort(info, out)
		if err != nil {
			return nil, err
		}
		out, waiting = p.Name, p.Waiting
	}
	switch {
	case waiting > 0:
		items, _, err := c.run.page(c.id, port.Output, out, 0, 1)
		if err != nil {
			return nil, fmt.Errorf("awaiting child %q: %w", c.name, err)
		}
		if len(items) > 0 { // else somebody has just taken it
			return items[0], nil
		}
	case info.Status == statemachine.Failed, info.Status == statemachine.Terminated:
		return nil, &ChildError{c.name, c.id, info.Status, info.Reason}
	case info.Status == statemachine.Completed && onlyEnd:
		return nil, nil
	case info.Status == statemachine.Completed:
		return nil, &ChildError{c.name, c.id, info.Status, fmt.Sprintf("it wrote nothing to port %q, or somebody has taken it", out)}
	}
	return nil, ErrNotYet
}

// resultPort returns the Out port of that name, or the only one.
func (c *Child) resultPort(info *job.Info, out string) (found job.PortInfo, err error) {
	var names []string
	for _, p := range info.Ports {
		if p.Dir != port.Output || p.Name == port.Any {
			continue
		}
		if p.Name == out {
			return p, nil
		}
		if p.Name != job.ErrorsPort {
			found = p
			names = append(names, p.Name)
		}
	}
	switch {
	case out != "":
		return found, fmt.Errorf("awaiting child %q: %w: job %s has no Out port %q: %s", c.name, job.ErrPort, c.id, out, port.Suggest(out, names))
	case len(names) == 0:
		return found, fmt.Errorf("awaiting child %q: %w: job %s has no Out port, and so no result: await its end as Await[struct{}]", c.name, job.ErrPort, c.id)
	case len(names) > 1:
		return found, fmt.Errorf("awaiting child %q: %w: job %s has several Out ports, %s: name one with AwaitPort", c.name, job.ErrPort, c.id, strings.Join(names, ", "))
	}
	return found, nil
}
