package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Fib writes the N-th Fibonacci number.
type Fib struct {
	N   int
	Out port.Out[*big.Int]
}

// WorkerOptions implements worker.Configured.
func (*Fib) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run spawns the two children the first time, and adds what they wrote when both are
// completed. Until then the job sleeps; a child that ends a run wakes it.
func (f *Fib) Run(_ context.Context, run *worker.Run) error {
	if f.N < 2 {
		return f.Out.Write(big.NewInt(int64(f.N)))
	}
	first, err := f.child(run, f.N-1)
	if err != nil {
		return err
	}
	second, err := f.child(run, f.N-2)
	if err != nil {
		return err
	}
	if first == nil || second == nil {
		return worker.ErrSuspend
	}
	a, err := read(first)
	if err != nil {
		return err
	}
	b, err := read(second)
	if err != nil {
		return err
	}
	if a == nil || b == nil {
		return nil // an earlier run has read and added them
	}
	return f.Out.Write(a.Add(a, b))
}

// child returns the child for n if it is completed, and spawns it if there is none.
func (f *Fib) child(run *worker.Run, n int) (*worker.Child, error) {
	name := fmt.Sprintf("fib_%d", n)
	c, err := run.Child(name)
	if errors.Is(err, job.ErrNotFound) {
		_, err = run.Spawn(name, job.Single(&Fib{N: n}, ""))
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	info, err := c.Info()
	switch {
	case err != nil:
		return nil, err
	case info.Status == statemachine.Completed:
		return c, nil
	case info.Status == statemachine.Failed, info.Status == statemachine.Terminated:
		return nil, fmt.Errorf("job %s is %s: %s", name, info.Status, info.Reason)
	}
	return nil, nil
}

// read takes what a completed child wrote; nil if it was taken before.
func read(c *worker.Child) (*big.Int, error) {
	n := new(big.Int)
	ok, err := c.Read("out", n)
	if !ok {
		return nil, err
	}
	return n, err
}
