package component

import (
	"context"
	"strconv"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/worker"
)

const (
	tickLate  = time.Minute // with MissedSkip a tick that is later is passed over
	maxMissed = 10_000      // ticks that are counted when they are passed over, and written at most with a number
)

// missed checks the parameter of that name.
func (c *check) missed(value string) {
	if _, _, ok := missedPolicy(value); !ok {
		c.add("missed %q: use %s, %s, %s or a number from 1 to %d", value, MissedOne, MissedSkip, MissedAll, maxMissed)
	}
}

// missedPolicy says how many missed ticks are written; most 0 is all. With skip those that are late are not.
func missedPolicy(value string) (most int, skip, ok bool) {
	switch value {
	case "", MissedOne:
		return 1, false, true
	case MissedSkip:
		return 0, true, true
	case MissedAll:
		return 0, false, true
	}
	most, err := strconv.Atoi(value)
	return most, false, err == nil && most >= 1 && most <= maxMissed
}

// clockwork writes ticks at the times of a schedule.
type clockwork struct {
	out         port.Out[Tick]
	count       int
	missed      string
	immediately bool
	name        string // another one starts the schedule anew
	parse       func(now time.Time) (schedule.Schedule, error)
	validate    func(now time.Time) error
}

// ticked is what a clockwork remembers, besides its schedule.
type ticked struct {
	Name   string `json:"name"`
	Next   int64  `json:"next"`             // when the next tick is due, in milliseconds; 0 if there is none
	N      int    `json:"n"`                // ticks written
	Burst  int    `json:"burst,omitempty"`  // of these, late ones one after the other
	Passed int    `json:"passed,omitempty"` // ticks passed over since the last
}

// run writes the ticks that are due and asks for a run when the next is.
func (c clockwork) run(ctx context.Context, run *worker.Run) error {
	s, sched, fresh, err := c.load(run)
	if err != nil {
		return err
	}
	before, now := s, run.Now()
	if err := c.write(ctx, run, &s, sched); err != nil {
		return err
	}
	if s.Next > now.UnixMilli() {
		s.Burst = 0
	}
	if fresh || s != before {
		if err := run.State().Set("ticks", s); err != nil {
			return err
		}
	}
	if s.Next == 0 || c.count > 0 && s.N >= c.count {
		return nil
	}
	return sleep(run, s.Next)
}

// load reads the state; the first run of a schedule makes it fresh.
func (c clockwork) load(run *worker.Run) (s ticked, sched schedule.Schedule, fresh bool, err error) {
	ok, err := run.State().Get("ticks", &s)
	if err != nil {
		return s, sched, false, err
	}
	if ok && s.Name == c.name {
		_, err = run.State().Get("schedule", &sched)
		return s, sched, false, err
	}
	now := run.Now()
	if err := c.validate(now); err != nil {
		return s, sched, false, err
	}
	if sched, err = c.parse(now); err != nil {
		return s, sched, false, err
	}
	s = ticked{Name: c.name, N: s.N, Next: now.UnixMilli()}
	if !c.immediately {
		s.Next = milli(sched.Next(schedule.Moments{Now: now}))
	}
	return s, sched, true, run.State().Set("schedule", sched)
}

// milli is a time in milliseconds; 0 if there is none.
func milli(t time.Time, ok bool) int64 {
	if !ok {
		return 0
	}
	return t.UnixMilli()
}

// write writes the ticks that are due.
func (c clockwork) write(ctx context.Context, run *worker.Run, s *ticked, sched schedule.Schedule) error {
	most, skip, _ := missedPolicy(c.missed)
	p := pace{run: run, save: func() error { return run.State().Set("ticks", s) }}
	now := run.Now()
	for s.Next > 0 && s.Next <= now.UnixMilli() && (c.count == 0 || s.N < c.count) {
		if err := ctx.Err(); err != nil {
			return err
		}
		due := time.UnixMilli(s.Next).UTC()
		if skip && now.Sub(due) > tickLate {
			s.Passed++
			s.passOver(sched, due, now.Add(-tickLate))
			continue
		}
		s.N++
		s.Burst++
		if err := c.out.Write(Tick{N: s.N, At: due, Missed: s.Passed}); err != nil {
			return err
		}
		s.Passed = 0
		if s.Burst == most {
			s.passOver(sched, due, now)
		} else {
			s.Next = milli(sched.Next(schedule.Moments{Now: due, Scheduled: due}))
		}
		if err := p.wrote(0); err != nil {
			return err
		}
	}
	return nil
}

// passOver goes on with the first tick after a time, and counts those before it.
func (s *ticked) passOver(sched schedule.Schedule, last, until time.Time) {
	for t := range sched.Upcoming(schedule.Moments{Now: last, Scheduled: last}) {
		if t.After(until) || s.Passed == maxMissed {
			break
		}
		s.Passed++
	}
	after := until.Add(time.Nanosecond) // some dialects count the moment itself
	s.Next = milli(sched.Next(schedule.Moments{Now: after, Scheduled: last}))
}
