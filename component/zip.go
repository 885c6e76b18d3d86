package component

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Values of Zip's parameter rest.
const (
	RestDrop = "drop" // leave them out; the default
	RestFail = "fail" // the job fails
	RestPad  = "pad"  // pair them with null
)

// Zip writes the first messages of all ports as one list, then the second ones, and so
// on.
//
// The result is the same however runs fall. With rest = drop or fail the lists end with
// the shortest port, but out only when all ports are at their end. A list is one message:
// it has at most 1 MiB.
type Zip struct {
	pure
	// From names the In ports in the order of the list. At least one is required.
	From []string `json:"from,omitempty" doc:"names of the In ports, in the order of the list"`
	// Rest is what becomes of messages when another port is at its end.
	Rest string                    `json:"rest,omitempty" doc:"drop (default), fail or pad: what becomes of messages when another port is at its end"`
	Out  port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Zip) JobType() string { return "zip" }

// Describe implements Component.
func (*Zip) Describe() string { return "pairs the i-th messages of several ports" }

// Ports implements job.PortDeclarer.
func (z *Zip) Ports() []port.Spec { return needed(z.From) }

// Validate implements Component.
func (z *Zip) Validate() error {
	var c check
	c.ports("from", z.From, 1)
	c.oneOf("rest", z.Rest, RestDrop, RestFail, RestPad)
	return c.err(z)
}

// Run implements worker.Worker.
func (z *Zip) Run(ctx context.Context, run *worker.Run) error {
	if err := z.Validate(); err != nil {
		return err
	}
	ins, err := insOf(run, z.From)
	if err != nil {
		return err
	}
	var q quota
	for !q.spent() {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, done := waiting(ins)
		empty, ended := z.look(ins)
		switch {
		case n == 0 || done:
			return nil
		case ended == "" && empty, ended != "" && empty && z.Rest == RestPad:
			return worker.ErrSuspend
		case ended != "" && z.Rest == RestFail:
			return fmt.Errorf("port %q is at its end and other ports have %d messages more: use rest = drop or pad to go on", ended, n)
		}
		row, err := z.row(&q, ins)
		if err != nil {
			return err
		}
		if ended != "" && z.Rest != RestPad {
			continue // left out
		}
		if err := z.Out.Write(array(row)); err != nil {
			return err
		}
	}
	return nil
}

// look tells whether a port must be waited for, and which is at its end.
func (z *Zip) look(ins []port.Reader) (empty bool, ended string) {
	for i, in := range ins {
		if in.Done() {
			ended = z.From[i]
		} else if in.Len() == 0 {
			empty = true
		}
	}
	return empty, ended
}

// row takes one message of each port that has one; null stands for others.
func (z *Zip) row(q *quota, ins []port.Reader) ([]json.RawMessage, error) {
	row := make([]json.RawMessage, len(ins))
	for i, in := range ins {
		row[i] = json.RawMessage("null")
		if in.Len() == 0 {
			continue
		}
		var err error
		if row[i], err = q.take(in); err != nil {
			return nil, err
		}
	}
	return row, nil
}
