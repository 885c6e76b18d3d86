package component

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// Values of Debounce's parameter keep.
const (
	KeepLast  = "last"  // the default
	KeepFirst = "first" // of the messages since the last that was written
	KeepAll   = "all"   // a list of them
)

// maxDebounced is how many messages a list of Debounce has at most; with more it is written early.
const maxDebounced = 1000

// Debounce waits until no message came for the time wait, and then writes one: the last
// of them, the first, or a list of all. A list of 1,000 messages or nearly 1 MiB is written early.
//
// Waiting counts from the first run that sees a message. The end of in, when what is held was
// written, is the end of out. Messages that are not passed on are counted in the state, under "debounce".
type Debounce struct {
	pure
	// Wait is how long no message must come. Required.
	Wait Duration `json:"wait,omitempty" doc:"how long no message must come before one is written"`
	// MaxWait is how long after its first message one is written at the latest. Zero means no limit.
	MaxWait Duration `json:"max_wait,omitempty" doc:"how long after the first message one is written at the latest, default no limit"`
	// Keep is which message is written.
	Keep string                    `json:"keep,omitempty" doc:"last (default), first or all: which messages are written, all as a list"`
	In   port.In[json.RawMessage]  `port:"in,required"`
	Out  port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Debounce) JobType() string { return "debounce" }

// Describe implements Component.
func (*Debounce) Describe() string { return "writes one message when no more come for some time" }

// Validate implements Component.
func (d *Debounce) Validate() error {
	var c check
	c.positive("wait", d.Wait)
	c.span("max_wait", d.MaxWait)
	c.is(d.MaxWait == 0 || d.MaxWait >= d.Wait, "max_wait %s is shorter than wait", time.Duration(d.MaxWait))
	c.oneOf("keep", d.Keep, KeepLast, KeepFirst, KeepAll)
	return c.err(d)
}

// debounced is the state of Debounce.
type debounced struct {
	First   int64 `json:"first,omitempty"` // when the first message that is held came, in milliseconds
	Last    int64 `json:"last,omitempty"`  // and the last
	Dropped int64 `json:"dropped"`         // messages that were not passed on
}

// debouncing is one run of Debounce. What is held is in the state if it was read by an earlier
// run, and in fresh if by this one.
type debouncing struct {
	*Debounce
	run   *worker.Run
	s     debounced
	held  *buffer
	fresh []json.RawMessage
	bytes int
}

// Run implements worker.Worker.
func (d *Debounce) Run(ctx context.Context, run *worker.Run) error {
	if err := d.Validate(); err != nil {
		return err
	}
	held, err := openBuffer(run, "held")
	if err != nil {
		return err
	}
	w := debouncing{Debounce: d, run: run, held: held, bytes: held.head.Bytes}
	if _, err := run.State().Get("debounce", &w.s); err != nil {
		return err
	}
	before := w.s
	var q quota
	if err := q.drain(ctx, d.In, w.take); err != nil {
		return err
	}
	more := d.In.Len() > 0
	if d.In.Done() || !more && run.Now().UnixMilli() >= w.due() {
		err = w.flush()
	} else {
		err = w.hold()
	}
	if err == nil {
		err = held.save()
	}
	if err == nil && w.s != before {
		err = run.State().Set("debounce", w.s)
	}
	if err != nil || more || w.len() == 0 {
		return err
	}
	return sleep(run, w.due())
}

func (w *debouncing) len() int { return w.held.len() + len(w.fresh) }

// due is when what is held is written, if no more comes.
func (w *debouncing) due() int64 {
	due := w.s.Last + time.Duration(w.Wait).Milliseconds()
	if w.MaxWait > 0 {
		due = min(due, w.s.First+time.Duration(w.MaxWait).Milliseconds())
	}
	return due
}

// take adds a message to those that are held, or puts it in their place.
func (w *debouncing) take(raw json.RawMessage) error {
	if w.Keep == KeepAll && (w.len() >= maxDebounced || w.bytes+w.len()+len(raw)+2 > worker.MaxMessage) {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.s.Last = w.run.Now().UnixMilli()
	switch {
	case w.len() == 0:
		w.s.First = w.s.Last
	case w.Keep == KeepFirst:
		w.s.Dropped++
		return nil
	case w.Keep != KeepAll:
		w.s.Dropped++
		w.fresh = w.fresh[:0]
		if err := w.forget(); err != nil {
			return err
		}
	}
	w.fresh = append(w.fresh, raw)
	w.bytes += len(raw)
	return nil
}

// forget drops what earlier runs hold.
func (w *debouncing) forget() error {
	if w.held.len() == 0 {
		return nil
	}
	old, err := w.held.all()
	w.held.drop(old)
	return err
}

// hold keeps what this run read for later ones.
func (w *debouncing) hold() error {
	for _, raw := range w.fresh {
		if err := w.held.push(raw); err != nil {
			return err
		}
	}
	w.fresh = nil
	return nil
}

// flush writes what is held.
func (w *debouncing) flush() error {
	if w.len() == 0 {
		return nil
	}
	old, err := w.held.all()
	if err != nil {
		return err
	}
	w.held.drop(old)
	list := slices.Concat(old, w.fresh)
	w.fresh, w.bytes, w.s.First, w.s.Last = nil, 0, 0, 0
	if w.Keep != KeepAll {
		return w.Out.Write(list[0])
	}
	raw := array(list)
	if len(raw) > worker.MaxMessage {
		return fmt.Errorf("a message has %d bytes: a list of it is larger than the %d that are allowed", len(raw)-2, worker.MaxMessage)
	}
	return w.Out.Write(raw)
}
