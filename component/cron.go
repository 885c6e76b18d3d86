package component

import (
	"context"
	"time"

	"github.com/weirworks/weir/internal/clockwork"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/worker"
)

// Values of the parameter missed of Cron and Every, besides MissedSkip and a number.
const (
	MissedOne = clockwork.MissedOne // the first of them is written, the others are passed over; the default
	MissedAll = clockwork.MissedAll // all are written, one after the other
)

// Cron writes {"n", "at"} at the times of a schedule: n counts the ticks written from 1, at is
// the time at which the tick was due. A tick is one run, so that it is written exactly once,
// however many engines there are and whatever crashes.
//
// A tick is written by the first run after it is due, usually within a second. Ticks that were due
// while nothing ran are written or passed over: by default the first of them is written, with missed
// skip those that are less than a minute late, with all each of them, with a number that many from the
// first on. How many were passed over before a tick, up to 10,000, is its "missed". The job ends
// after count ticks, or after the last time of the schedule.
type Cron struct {
	pure
	// Schedule is a cron expression, or a schedule of another dialect with its tag. Required.
	Schedule string `json:"schedule,omitempty" doc:"when, as docs/schedules.md says: a cron expression, or another dialect with its tag, such as natural:every weekday at 9am"`
	// Zone is the time zone of the schedule. Empty means UTC.
	Zone string `json:"zone,omitempty" doc:"time zone of the schedule, such as Europe/Berlin, default UTC"`
	// Count is how many ticks are written. Zero means no end.
	Count int `json:"count,omitempty" doc:"ticks to write, default as many as the schedule has"`
	// Missed is what becomes of ticks that were due while no run could be.
	Missed string         `json:"missed,omitempty" doc:"one (default), skip, all, or the most to write: what becomes of ticks while no engine ran"`
	Out    port.Out[Tick] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Cron) JobType() string { return "cron" }

// Describe implements Component.
func (*Cron) Describe() string { return "writes a message at the times of a schedule" }

// Validate implements Component.
func (c *Cron) Validate() error { return c.validate(time.Now()) }

func (c *Cron) validate(now time.Time) error {
	var k check
	if c.Schedule == "" {
		k.add("schedule is missing")
	} else if _, err := c.parse(now); err != nil {
		k.add("schedule: %v", err)
	}
	k.count("count", c.Count)
	k.missed(c.Missed)
	return k.err(c)
}

// parse reads the schedule.
func (c *Cron) parse(now time.Time) (schedule.Schedule, error) {
	return clockwork.Parse(c.Schedule, c.Zone, now)
}

// Run implements worker.Worker.
func (c *Cron) Run(ctx context.Context, run *worker.Run) error {
	return follow(ctx, run, clockwork.Clock{
		Count: c.Count, Missed: c.Missed, Name: c.Zone + " " + c.Schedule,
		Parse: func(now time.Time) (s schedule.Schedule, err error) {
			if err = c.validate(now); err == nil {
				s, err = c.parse(now)
			}
			return s, err
		},
	}, c.Out)
}

// Every writes {"n", "at"} again and again after the same time, as Cron does with another schedule. Times
// follow from the begin of the first run, without drift.
type Every struct {
	pure
	// Every is the time between ticks, in whole seconds. Required.
	Every Duration `json:"every,omitempty" doc:"time between ticks, in whole seconds"`
	// Immediately makes the first tick due at once.
	Immediately bool `json:"immediately,omitempty" doc:"the first tick is due at once"`
	// Count is how many ticks are written. Zero means no end.
	Count int `json:"count,omitempty" doc:"ticks to write, default without end"`
	// Missed is what becomes of ticks that were due while no run could be.
	Missed string         `json:"missed,omitempty" doc:"one (default), skip, all, or the most to write: what becomes of ticks while no engine ran"`
	Out    port.Out[Tick] `port:"out"`
}

// JobType implements job.TypeNamer.
func (*Every) JobType() string { return "every" }

// Describe implements Component.
func (*Every) Describe() string { return "writes a message again and again after the same time" }

// Validate implements Component.
func (e *Every) Validate() error { return e.validate(time.Now()) }

func (e *Every) validate(now time.Time) error {
	var k check
	if e.Every == 0 {
		k.add("every is missing")
	} else if _, err := e.parse(now); err != nil {
		k.add("%v", err)
	}
	k.count("count", e.Count)
	k.missed(e.Missed)
	return k.err(e)
}

func (e *Every) parse(now time.Time) (schedule.Schedule, error) {
	return schedule.Parse(schedule.Every, time.Duration(e.Every).String(), "", now)
}

// Run implements worker.Worker.
func (e *Every) Run(ctx context.Context, run *worker.Run) error {
	return follow(ctx, run, clockwork.Clock{
		Count: e.Count, Missed: e.Missed, Immediately: e.Immediately, Name: time.Duration(e.Every).String(),
		Parse: func(now time.Time) (s schedule.Schedule, err error) {
			if err = e.validate(now); err == nil {
				s, err = e.parse(now)
			}
			return s, err
		},
	}, e.Out)
}
