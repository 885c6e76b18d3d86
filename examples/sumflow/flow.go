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

// Flow has a child add its Numbers and writes what the child answers.
type Flow struct {
	Numbers []*big.Int
	Out     port.Out[*big.Int]
}

// WorkerOptions implements worker.Configured.
func (*Flow) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run makes the child the first time, and then sleeps until it has an answer: what a
// child writes wakes its parent.
func (f *Flow) Run(_ context.Context, run *worker.Run) error {
	c, err := run.Child("sum")
	if errors.Is(err, job.ErrNotFound) {
		return f.begin(run)
	}
	if err != nil {
		return err
	}
	info, err := c.Info()
	if err != nil {
		return err
	}
	sum := new(big.Int)
	ok, err := c.Read("total", sum)
	switch {
	case err != nil:
		return err
	case ok:
		return f.Out.Write(sum)
	case info.Status == statemachine.Completed:
		return nil // an earlier run has passed the sum on
	case info.Status == statemachine.Failed, info.Status == statemachine.Terminated:
		return fmt.Errorf("job sum is %s: %s", info.Status, info.Reason)
	}
	return worker.ErrSuspend
}

// begin makes the child and sends it all it needs. Child, numbers and word are there
// together when the run commits.
func (f *Flow) begin(run *worker.Run) error {
	c, err := run.Spawn("sum", job.Single(&Sum{}, ""))
	if err != nil {
		return err
	}
	for _, n := range f.Numbers {
		if err := c.Write("in", n); err != nil {
			return err
		}
	}
	if err := c.Write("ready", true); err != nil {
		return err
	}
	return worker.ErrSuspend
}

// Sum adds what it was sent up to the word that all numbers are there.
type Sum struct {
	In    port.In[*big.Int]
	Ready port.In[bool]
	Total port.Out[*big.Int]
}

// WorkerOptions implements worker.Configured.
func (*Sum) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run reads nothing before it is ready: the numbers stay in their port.
func (s *Sum) Run(context.Context, *worker.Run) error {
	_, ready, err := s.Ready.Read()
	if err != nil {
		return err
	}
	if !ready {
		return worker.ErrSuspend
	}
	sum := new(big.Int)
	for n, err := range s.In.All() {
		if err != nil {
			return err
		}
		sum.Add(sum, n)
	}
	return s.Total.Write(sum)
}
