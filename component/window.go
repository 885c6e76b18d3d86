package component

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"time"

	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// DefaultMaxItems is how many messages Window keeps unless told otherwise.
const DefaultMaxItems = 10_000

// Window writes {"start", "end", "items"} for windows of time or of that many messages.
// Windows of time begin at multiples of slide since 1970 in UTC, and a message is in those
// that are open when a run first sees it; windows without messages are not written.
// Windows of messages have the times of their first and last one. At the end of in, open
// windows are written as they are.
//
// Order is kept. Windows of messages are the same however runs fall. A window is one
// message: it has at most 1 MiB.
type Window struct {
	pure
	// Every is how long windows of time are.
	Every Duration `json:"every,omitempty" doc:"length of windows of time; or give count"`
	// Slide is how long after one window of time the next begins. Zero means Every.
	Slide Duration `json:"slide,omitempty" doc:"how long after a window of time the next begins, default when it ends"`
	// Count is how many messages a window has.
	Count int `json:"count,omitempty" doc:"messages of a window; or give every"`
	// Step is how many messages after the begin of one window the next begins. Zero means Count.
	Step int `json:"step,omitempty" doc:"how many messages after a window begins the next begins, default count"`
	// MaxItems is how many messages are kept at a time. Zero means DefaultMaxItems.
	MaxItems int                       `json:"max_items,omitempty" doc:"messages kept at a time, default 10000; more fail the job"`
	In       port.In[json.RawMessage]  `port:"in,required"`
	Out      port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Window) JobType() string { return "window" }

// Describe implements Component.
func (*Window) Describe() string {
	return "writes the messages of a given time, or N of them, together"
}

// Validate implements Component.
func (w *Window) Validate() error {
	var c check
	c.is((w.Every != 0) != (w.Count != 0), "give either every or count")
	c.span("every", w.Every)
	c.span("slide", w.Slide)
	c.count("count", w.Count)
	c.count("step", w.Step)
	c.count("max_items", w.MaxItems)
	c.is(w.Slide <= w.Every, "slide %s is longer than every: messages between windows would be lost", time.Duration(w.Slide))
	c.is(w.Step <= w.Count, "step %d is more than count: messages between windows would be lost", w.Step)
	return c.err(w)
}

// windowed is what Window writes.
type windowed struct {
	Start time.Time       `json:"start"`
	End   time.Time       `json:"end"`
	Items json.RawMessage `json:"items"`
}

// stamped is a message and when it was first seen, in milliseconds.
type stamped struct {
	At   int64           `json:"at"`
	Data json.RawMessage `json:"data"`
}

// windowHead says what was written. In milliseconds or messages, as the windows are.
type windowHead struct {
	Next int64 `json:"next"` // no window that begins before was left unwritten
	Seen int64 `json:"seen"` // messages before were in a window that was written
}

// windowing is one run of Window.
type windowing struct {
	*Window
	ctx  context.Context //nolint:containedctx // of the run that this is
	run  *worker.Run
	held *buffer
	head windowHead
	old  windowHead
	pace *pace
	last int64 // time of the message that came last
	// items are those held, once they were read.
	raw   []json.RawMessage
	items []stamped
}

// Run implements worker.Worker.
func (w *Window) Run(ctx context.Context, run *worker.Run) error {
	if err := w.Validate(); err != nil {
		return err
	}
	r := windowing{Window: w, ctx: ctx, run: run}
	r.pace = &pace{run: run, save: r.save}
	var err error
	if r.held, err = openBuffer(run, "held"); err != nil {
		return err
	}
	if _, err := run.State().Get("window", &r.head); err != nil {
		return err
	}
	r.old = r.head
	write := r.counts
	if w.Every > 0 {
		write = r.times
		if err := write(false); err != nil { // windows that ended before what comes now
			return err
		}
	}
	var q quota
	err = q.drain(ctx, w.In, func(raw json.RawMessage) error {
		if err := r.push(raw); err != nil || w.Every > 0 {
			return err
		}
		return write(false)
	})
	if err == nil && w.In.Done() {
		err = write(true)
	}
	if err == nil {
		err = r.save()
	}
	if err != nil || r.held.len() == 0 || w.In.Len() > 0 {
		return err
	}
	if w.Every > 0 && !w.In.Done() {
		if err := r.wake(); err != nil {
			return err
		}
	}
	if w.In.Done() {
		return nil
	}
	return worker.ErrSuspend
}

func (r *windowing) save() error {
	if err := r.held.save(); err != nil || r.head == r.old {
		return err
	}
	r.old = r.head
	return r.run.State().Set("window", r.head)
}

// push keeps a message.
func (r *windowing) push(raw json.RawMessage) error {
	if most := cmp.Or(r.MaxItems, DefaultMaxItems); r.held.len() >= most {
		return fmt.Errorf("a window has more than %d messages, and max_items allows no more", most)
	}
	if r.held.head.Bytes > 2*worker.MaxMessage {
		return fmt.Errorf("open windows have more than %d bytes: make them shorter", 2*worker.MaxMessage)
	}
	r.raw, r.items = nil, nil
	// A clock that was set back must not bring messages for windows that are written.
	at := max(r.run.Now().UnixMilli(), r.last)
	if r.Every > 0 {
		at = max(at, r.head.Next)
	}
	r.last = at
	return r.held.push(stamped{At: at, Data: raw})
}

// load reads what is held.
func (r *windowing) load() error {
	if len(r.items) == r.held.len() {
		return nil
	}
	var err error
	if r.raw, err = r.held.all(); err != nil {
		return err
	}
	r.items = make([]stamped, len(r.raw))
	for i, raw := range r.raw {
		if err := port.Decode(raw, &r.items[i]); err != nil {
			return err
		}
	}
	return nil
}

// drop forgets the n oldest messages.
func (r *windowing) drop(n int) {
	r.held.drop(r.raw[:n])
	r.raw, r.items = r.raw[n:], r.items[n:]
}

// write writes a window.
func (r *windowing) write(start, end int64, items []stamped) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	data := make([]json.RawMessage, len(items))
	for i, item := range items {
		data[i] = item.Data
	}
	raw, err := port.Encode(windowed{Start: time.UnixMilli(start).UTC(), End: time.UnixMilli(end).UTC(), Items: array(data)})
	if err != nil {
		return err
	}
	if len(raw) > worker.MaxMessage {
		return fmt.Errorf("a window of %d messages has %d bytes, a message at most %d: make windows shorter", len(items), len(raw), worker.MaxMessage)
	}
	if err := r.Out.Write(raw); err != nil {
		return err
	}
	return r.pace.wrote(len(raw))
}

// counts writes the windows of messages that are full, and at the end the last one.
func (r *windowing) counts(last bool) error {
	size, step := r.Count, cmp.Or(r.Step, r.Count)
	for r.held.len() >= size || last && int64(r.held.head.Next) > r.head.Seen {
		if err := r.load(); err != nil {
			return err
		}
		items := r.items[:min(size, len(r.items))]
		r.head.Seen = int64(r.held.head.First + len(items))
		r.drop(min(step, len(items)))
		if err := r.write(items[0].At, items[len(items)-1].At, items); err != nil {
			return err
		}
	}
	return nil
}

// lengths returns how long windows of time are, and how long after one the next begins.
func (r *windowing) lengths() (every, slide int64) {
	return time.Duration(r.Every).Milliseconds(), time.Duration(cmp.Or(r.Slide, r.Every)).Milliseconds()
}

// first returns when the earliest window begins that is not written and has a message.
func (r *windowing) first() (int64, error) {
	var oldest stamped
	if err := r.held.oldest(&oldest); err != nil {
		return 0, err
	}
	every, slide := r.lengths()
	at := oldest.At - every // the window that begins then has just not the message
	begin := at - at%slide
	if begin > at { // before 1970
		begin -= slide
	}
	return max(begin+slide, r.head.Next), nil
}

// times writes the windows of time that are over, and at the end all.
func (r *windowing) times(last bool) error {
	every, slide := r.lengths()
	for r.held.len() > 0 {
		start, err := r.first()
		if err != nil {
			return err
		}
		end := start + every
		if end > r.run.Now().UnixMilli() && !last {
			return nil
		}
		if err := r.load(); err != nil {
			return err
		}
		// They came in the order of their times.
		n := sort.Search(len(r.items), func(i int) bool { return r.items[i].At >= end })
		gone := sort.Search(len(r.items), func(i int) bool { return r.items[i].At >= start+slide })
		items := r.items[:n]
		r.head.Next = start + slide
		r.drop(gone)
		if err := r.write(start, end, items); err != nil {
			return err
		}
	}
	return nil
}

// wake asks for a run when the earliest window ends.
func (r *windowing) wake() error {
	start, err := r.first()
	if err != nil {
		return err
	}
	every, _ := r.lengths()
	return clockwork.WakeAt(r.run, time.UnixMilli(start+every))
}
