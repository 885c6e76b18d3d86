package component

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// DefaultBatch is the size of a batch without parameters.
const DefaultBatch = 100

// sinceKey is where the state has when the oldest held message came.
const sinceKey = "since"

// Batch writes lists of messages: full ones, what has waited max_wait, and what is left at
// the end of in. A list that would pass 1 MiB is written before it is full.
//
// Order is kept. Without max_wait the result is the same however runs fall; waiting
// counts from the first run that sees a message. The end of in is the end of out.
type Batch struct {
	pure
	// Size is how many messages make a list. Zero means DefaultBatch.
	Size int `json:"size,omitempty" doc:"messages of a full list, default 100"`
	// MaxWait is how long a message waits for its list to get full. Zero means indefinitely.
	MaxWait Duration                  `json:"max_wait,omitempty" doc:"how long a message waits for its list to get full; without it as long as it takes"`
	In      port.In[json.RawMessage]  `port:"in,required"`
	Out     port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Batch) JobType() string { return "batch" }

// Describe implements Component.
func (*Batch) Describe() string {
	return "writes lists of N messages, or of those that came within a time"
}

// Validate implements Component.
func (b *Batch) Validate() error {
	var c check
	c.count("size", b.Size)
	c.span("max_wait", b.MaxWait)
	return c.err(b)
}

// batching is one run of Batch. What is held is in the state if it was read by an earlier
// run, and in fresh if by this one.
type batching struct {
	*Batch
	run   *worker.Run
	held  *buffer
	fresh []json.RawMessage
	bytes int
	since time.Time
}

// Run implements worker.Worker.
func (b *Batch) Run(ctx context.Context, run *worker.Run) error {
	if err := b.Validate(); err != nil {
		return err
	}
	held, err := openBuffer(run, "held")
	if err != nil {
		return err
	}
	w := batching{Batch: b, run: run, held: held, bytes: held.head.Bytes}
	if _, err := run.State().Get(sinceKey, &w.since); err != nil {
		return err
	}
	before := w.since
	if w.late() {
		if err := w.flush(); err != nil {
			return err
		}
	}
	var q quota
	if err := q.drain(ctx, b.In, w.add); err != nil {
		return err
	}
	if b.In.Done() {
		err = w.flush()
	} else {
		err = w.hold()
	}
	if err != nil {
		return err
	}
	if err := w.saveSince(before); err != nil {
		return err
	}
	if w.len() > 0 && b.In.Len() == 0 {
		return worker.ErrSuspend
	}
	return nil
}

func (w *batching) len() int { return w.held.len() + len(w.fresh) }

// late tells whether what is held has waited long enough.
func (w *batching) late() bool {
	return w.MaxWait > 0 && w.len() > 0 && !w.run.Now().Before(w.since.Add(time.Duration(w.MaxWait)))
}

// add adds a message to the list, and writes it when it is full.
func (w *batching) add(raw json.RawMessage) error {
	if w.bytes+w.len()+len(raw)+2 > worker.MaxMessage {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.len() == 0 {
		w.since = w.run.Now().UTC()
	}
	w.fresh = append(w.fresh, raw)
	w.bytes += len(raw)
	if w.len() < cmp.Or(w.Size, DefaultBatch) {
		return nil
	}
	return w.flush()
}

// flush writes what is held.
func (w *batching) flush() error {
	if w.len() == 0 {
		return nil
	}
	old, err := w.held.all()
	if err != nil {
		return err
	}
	w.held.drop(old)
	list := array(append(old, w.fresh...))
	w.fresh, w.bytes, w.since = nil, 0, time.Time{}
	if len(list) > worker.MaxMessage {
		return fmt.Errorf("a message has %d bytes: a list of it is larger than the %d that are allowed", len(list)-2, worker.MaxMessage)
	}
	return w.Out.Write(list)
}

// hold keeps what was read for the next run.
func (w *batching) hold() error {
	for _, raw := range w.fresh {
		if err := w.held.push(raw); err != nil {
			return err
		}
	}
	w.fresh = nil
	if w.len() > 0 && w.MaxWait > 0 {
		if err := clockwork.WakeAt(w.run, w.since.Add(time.Duration(w.MaxWait))); err != nil {
			return err
		}
	}
	return nil
}

func (w *batching) saveSince(before time.Time) error {
	if err := w.held.save(); err != nil || w.since.Equal(before) {
		return err
	}
	if w.since.IsZero() {
		w.run.State().Unset(sinceKey)
		return nil
	}
	return w.run.State().Set(sinceKey, w.since)
}

// Collect writes all messages as one list at the end of in, an empty one if there were
// none. The list is one message: more than 1 MiB fails the job, as soon as it is known.
//
// The result is the same however runs fall.
type Collect struct {
	pure
	// MaxItems is how many messages are allowed. Zero means as many as fit.
	MaxItems int                       `json:"max_items,omitempty" doc:"messages allowed; more fail the job; default as many as fit into 1 MiB"`
	In       port.In[json.RawMessage]  `port:"in,required"`
	Out      port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Collect) JobType() string { return "collect" }

// Describe implements Component.
func (*Collect) Describe() string { return "writes all messages as one list at the end" }

// Validate implements Component.
func (k *Collect) Validate() error {
	var c check
	c.count("max_items", k.MaxItems)
	return c.err(k)
}

// Run implements worker.Worker.
func (k *Collect) Run(ctx context.Context, run *worker.Run) error {
	if err := k.Validate(); err != nil {
		return err
	}
	held, err := openBuffer(run, "held")
	if err != nil {
		return err
	}
	var q quota
	err = q.drain(ctx, k.In, func(raw json.RawMessage) error {
		if err := held.push(raw); err != nil {
			return err
		}
		if size := held.head.Bytes + held.len() + 1; size > worker.MaxMessage {
			return fmt.Errorf("%d messages have %d bytes as a list, a message has at most %d: use batch", held.len(), size, worker.MaxMessage)
		}
		if k.MaxItems > 0 && held.len() > k.MaxItems {
			return fmt.Errorf("there are more than %d messages, and max_items allows no more", k.MaxItems)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if k.In.Done() {
		err = once(run, func() error {
			items, err := held.all()
			if err != nil {
				return err
			}
			held.drop(items)
			return k.Out.Write(array(items))
		})
	} else if k.In.Len() == 0 {
		err = worker.ErrSuspend
	}
	if failed := held.save(); failed != nil {
		return failed
	}
	return err
}
