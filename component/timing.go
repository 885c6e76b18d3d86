package component

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// group is messages that came, or left, at about the same time.
type group struct {
	First int64 `json:"first"` // time of its first message, in milliseconds
	Last  int64 `json:"last"`  // and of its last
	N     int   `json:"n"`
}

// groups are messages by time. Those close together share one, so that there are few
// however many messages there are; what counts is the time of the last.
type groups []group

// grain is how many groups a span of time is cut into, at least.
const grain = 128

// add counts n messages at a time.
func (g groups) add(at int64, n int, span Duration) groups {
	if n <= 0 {
		return g
	}
	if k := len(g) - 1; k >= 0 {
		at = max(at, g[k].Last) // the clock may have been set back
		if at-g[k].First <= time.Duration(span).Milliseconds()/grain {
			g[k].Last = at
			g[k].N += n
			return g
		}
	}
	return append(g, group{First: at, Last: at, N: n})
}

// take removes the n oldest messages.
func (g groups) take(n int) groups {
	for n > 0 && len(g) > 0 {
		k := min(n, g[0].N)
		n -= k
		if g[0].N -= k; g[0].N == 0 {
			g = g[1:]
		}
	}
	return g
}

func (g groups) count() int {
	n := 0
	for _, x := range g {
		n += x.N
	}
	return n
}

// sleep ends a run that left messages until a time.
func sleep(run *worker.Run, until int64) error {
	if err := clockwork.WakeAt(run, time.UnixMilli(until)); err != nil {
		return err
	}
	return worker.ErrSuspend
}

// Throttle passes on at most rate messages in any span of time of length per; others wait
// in the port, or are dropped.
//
// Order is kept, and nothing is lost unless drop says so: then the state counts under "dropped"
// what was. The end of in, when all have left, is the end of out.
// To save state, departures within 1/128 of per count as if all were at the last of them.
type Throttle struct {
	pure
	// Rate is how many messages pass in Per. Required.
	Rate int `json:"rate,omitempty" doc:"messages that pass in the time per"`
	// Per is the span of time. Zero means one second.
	Per Duration `json:"per,omitempty" doc:"the span of time, default 1s"`
	// Drop drops messages beyond the rate: the first of a span of time counts.
	Drop bool                      `json:"drop,omitempty" doc:"messages beyond the rate are dropped instead of waiting"`
	In   port.In[json.RawMessage]  `port:"in,required"`
	Out  port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Throttle) JobType() string { return "throttle" }

// Describe implements Component.
func (*Throttle) Describe() string { return "passes on at most N messages in a given time" }

// Validate implements Component.
func (t *Throttle) Validate() error {
	var c check
	c.is(t.Rate > 0, "rate %d: let at least 1 message pass", t.Rate)
	c.span("per", t.Per)
	return c.err(t)
}

// Run implements worker.Worker.
func (t *Throttle) Run(ctx context.Context, run *worker.Run) error {
	if err := t.Validate(); err != nil {
		return err
	}
	per := t.Per
	if per == 0 {
		per = Duration(time.Second)
	}
	var sent groups
	if _, err := run.State().Get("sent", &sent); err != nil {
		return err
	}
	before := slices.Clone(sent)
	now, span := run.Now().UnixMilli(), time.Duration(per).Milliseconds()
	for len(sent) > 0 && sent[0].Last+span <= now {
		sent = sent[1:]
	}
	var q quota
	free := t.Rate - sent.count()
	for free > 0 && t.In.Len() > 0 && !q.spent() {
		if err := pass(ctx, &q, t.In, t.Out); err != nil {
			return err
		}
		free--
	}
	if sent = sent.add(now, q.messages, per); !slices.Equal(sent, before) {
		if err := run.State().Set("sent", sent); err != nil {
			return err
		}
	}
	if free > 0 || t.In.Len() == 0 {
		return nil
	}
	if t.Drop {
		return t.drop(ctx, run, &q)
	}
	return sleep(run, sent[0].Last+span)
}

// drop reads what is beyond the rate, and counts it.
func (t *Throttle) drop(ctx context.Context, run *worker.Run, q *quota) error {
	var n int
	if _, err := run.State().Get("dropped", &n); err != nil {
		return err
	}
	before := n
	err := q.drain(ctx, t.In, func(json.RawMessage) error { n++; return nil })
	if err != nil || n == before {
		return err
	}
	return run.State().Set("dropped", n)
}

// Delay lets each message leave no earlier than some time after it arrived, that is after
// the first run that sees it. Meanwhile it waits in the port.
//
// Order is kept. The end of in, when all have left, is the end of out. To save state,
// arrivals within 1/128 of the delay count as if all were at the last of them.
type Delay struct {
	pure
	// By is the delay. Required.
	By  Duration                  `json:"by,omitempty" doc:"how long each message waits"`
	In  port.In[json.RawMessage]  `port:"in,required"`
	Out port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Delay) JobType() string { return "delay" }

// Describe implements Component.
func (*Delay) Describe() string { return "passes on each message some time after it came" }

// Validate implements Component.
func (d *Delay) Validate() error {
	var c check
	c.positive("by", d.By)
	return c.err(d)
}

// Run implements worker.Worker.
func (d *Delay) Run(ctx context.Context, run *worker.Run) error {
	if err := d.Validate(); err != nil {
		return err
	}
	var came arrivals
	if _, err := run.State().Get("came", &came); err != nil {
		return err
	}
	before := arrivals{came.Head, slices.Clone(came.Groups)}
	now, span := run.Now().UnixMilli(), time.Duration(d.By).Milliseconds()
	info := run.Info()
	p, _ := info.Port(port.Input, d.In.Name())
	came.skip(int(p.Total-p.Waiting) - came.Head) // somebody drained the port
	came.Groups = came.Groups.add(now, d.In.Len()-came.Groups.count(), d.By)
	var q quota
	for came.due(now-span) && !q.spent() {
		if err := pass(ctx, &q, d.In, d.Out); err != nil {
			return err
		}
		came.skip(1)
	}
	if came.Head != before.Head || !slices.Equal(came.Groups, before.Groups) {
		if err := run.State().Set("came", came); err != nil {
			return err
		}
	}
	if d.In.Len() == 0 || came.due(now-span) {
		return nil
	}
	return sleep(run, came.Groups[0].Last+span)
}

// arrivals are the messages of a port by the time at which they were seen first.
type arrivals struct {
	Head   int    `json:"head"` // messages that left the port before them
	Groups groups `json:"groups,omitempty"`
}

// skip forgets the n oldest.
func (a *arrivals) skip(n int) {
	a.Head += n
	a.Groups = a.Groups.take(n)
}

// due tells whether the oldest came at a time or before.
func (a *arrivals) due(at int64) bool { return len(a.Groups) > 0 && a.Groups[0].Last <= at }

// Gate passes messages on while it is open. Messages of its port open, true or false,
// open and close it; of several that a run finds the last counts, and they count before
// the messages of in that the run finds. While it is closed, messages wait in the port.
//
// Order is kept. The end of in, when all have left, is the end of out. If open is at its
// end while messages wait at the closed gate, the job fails.
type Gate struct {
	pure
	// Opened is whether the gate is open at first.
	Opened bool                      `json:"opened,omitempty" doc:"the gate is open at first"`
	In     port.In[json.RawMessage]  `port:"in,required"`
	Open   port.In[bool]             `port:"open"`
	Out    port.Out[json.RawMessage] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Gate) JobType() string { return "gate" }

// Describe implements Component.
func (*Gate) Describe() string { return "passes messages on while it is open" }

// Validate implements Component.
func (*Gate) Validate() error { return nil }

// Run implements worker.Worker.
func (g *Gate) Run(ctx context.Context, run *worker.Run) error {
	open := g.Opened
	if _, err := run.State().Get("open", &open); err != nil {
		return err
	}
	before := open
	for o, err := range g.Open.All() {
		if err != nil {
			return err
		}
		open = o
	}
	if open != before {
		if err := run.State().Set("open", open); err != nil {
			return err
		}
	}
	var q quota
	for open && g.In.Len() > 0 && !q.spent() {
		if err := pass(ctx, &q, g.In, g.Out); err != nil {
			return err
		}
	}
	switch {
	case g.In.Done():
		return g.Out.Close() // the job may have to wait for the end of open
	case !open && g.Open.Done() && g.In.Len() > 0:
		return fmt.Errorf("the gate is closed and its port open is at its end: %d messages wait indefinitely", g.In.Len())
	case !open && g.In.Len() > 0:
		return worker.ErrSuspend
	}
	return nil
}

// Values of Ticker's parameter missed.
const (
	MissedSkip    = clockwork.MissedSkip // only the last of them is written; the default; Cron and Every write those less than a minute late
	MissedCatchUp = "catch_up"           // all are written
)

// Ticker writes {"n", "at"} at regular times: n counts the ticks written from 1, at is the
// time at which the tick was due. The first is due after every, or at once.
//
// Times follow from the begin of the first run, without drift. A tick is written by the
// first run after it is due, usually within a second. Without count the ticker does not
// end by itself. Every does the same for whole seconds, with more to choose about missed ticks.
type Ticker struct {
	pure
	// Every is the time between ticks. Required.
	Every Duration `json:"every,omitempty" doc:"time between ticks"`
	// Count is how many ticks are written. Zero means no end.
	Count int `json:"count,omitempty" doc:"ticks to write, default without end"`
	// Immediately makes the first tick due at once.
	Immediately bool `json:"immediately,omitempty" doc:"the first tick is due at once"`
	// Missed is what becomes of ticks that were due while no run could be.
	Missed string         `json:"missed,omitempty" doc:"skip (default) or catch_up: what becomes of ticks while no engine ran"`
	Out    port.Out[Tick] `port:"out"`
}

// Tick is a message of Ticker, Cron and Every.
type Tick struct {
	N      int       `json:"n"`
	At     time.Time `json:"at"`
	Missed int       `json:"missed,omitempty"` // ticks that were passed over before it; not of Ticker
}

// JobType implements job.TypeNamer.
func (*Ticker) JobType() string { return "ticker" }

// Describe implements Component.
func (*Ticker) Describe() string { return "writes a message at regular times" }

// Validate implements Component.
func (t *Ticker) Validate() error {
	var c check
	c.positive("every", t.Every)
	c.count("count", t.Count)
	c.oneOf("missed", t.Missed, MissedSkip, MissedCatchUp)
	return c.err(t)
}

// ticking is the state of Ticker.
type ticking struct {
	Next int64 `json:"next"` // when the next tick is due, in milliseconds
	N    int   `json:"n"`    // ticks written
}

// Run implements worker.Worker.
func (t *Ticker) Run(ctx context.Context, run *worker.Run) error {
	if err := t.Validate(); err != nil {
		return err
	}
	now, every := run.Now().UnixMilli(), time.Duration(t.Every).Milliseconds()
	var s ticking
	ok, err := run.State().Get("ticker", &s)
	if err != nil {
		return err
	}
	if !ok {
		s.Next = now
		if !t.Immediately {
			s.Next += every
		}
	}
	save := func() error { return run.State().Set("ticker", s) }
	p := pace{run: run, save: save}
	for s.Next <= now && (t.Count == 0 || s.N < t.Count) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.Missed != MissedCatchUp {
			s.Next += (now - s.Next) / every * every
		}
		s.N++
		if err := t.Out.Write(Tick{N: s.N, At: time.UnixMilli(s.Next).UTC()}); err != nil {
			return err
		}
		s.Next += every
		if err := p.wrote(0); err != nil {
			return err
		}
	}
	if err := save(); err != nil {
		return err
	}
	if t.Count > 0 && s.N >= t.Count {
		return nil
	}
	return sleep(run, s.Next)
}
