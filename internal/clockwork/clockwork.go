// Package clockwork says which ticks of a schedule are due in a run, for jobs that follow one: the components cron and
// every, and triggers.
package clockwork

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/worker"
)

// What becomes of ticks that were due while no run could be, and what counts as late: see package schedule.
const (
	MissedOne  = schedule.MissedOne // the default
	MissedAll  = schedule.MissedAll
	MissedSkip = schedule.MissedSkip
	Late       = schedule.Late
	MaxMissed  = schedule.MaxMissed
)

// CheckMissed says what is wrong with a policy for missed ticks; nil: nothing.
func CheckMissed(value string) error {
	_, err := schedule.ParseMissed(cmp.Or(value, MissedOne))
	return err
}

// Parse reads a schedule: a cron expression, or one of another dialect with its tag. Repeat is none, as it counts from runs.
func Parse(text, zone string, now time.Time) (schedule.Schedule, error) {
	kind, tagged := schedule.Cron, false
	if tag, rest, ok := strings.Cut(text, ":"); ok && slices.Contains(schedule.Kinds(), schedule.Kind(tag)) {
		kind, text, tagged = schedule.Kind(tag), rest, true
	}
	if kind == schedule.Repeat {
		return schedule.Schedule{}, errors.New("repeat counts from the runs of a job that repeats: use another dialect here")
	}
	s, err := schedule.Parse(kind, text, zone, now)
	if err != nil && !tagged {
		err = hint(err, text, zone, now)
	}
	return s, err
}

// hint adds to why a text without a tag is no cron expression what it is instead.
func hint(err error, text, zone string, now time.Time) error {
	kind, rest := schedule.Detect(text)
	if kind == schedule.Cron || kind == schedule.Repeat {
		return err
	}
	if _, other := schedule.Parse(kind, rest, zone, now); other != nil {
		return err
	}
	return fmt.Errorf("%w; without a tag a text is read as cron: did you mean %s:%s", err, kind, rest)
}

// Clock follows a schedule from run to run.
type Clock struct {
	Name        string // another one starts the schedule anew
	Count       int    // ticks to take; 0: no end
	Missed      string
	Immediately bool // the first tick is due at once
	// Parse reads the schedule, in the first run.
	Parse func(now time.Time) (schedule.Schedule, error)
}

// State is what a clock remembers, besides its schedule.
type State struct {
	Name   string `json:"name"`
	Next   int64  `json:"next"`             // when the next tick is due, in milliseconds; 0 if there is none
	N      int    `json:"n"`                // ticks taken
	Burst  int    `json:"burst,omitempty"`  // of these, late ones one after the other
	Passed int    `json:"passed,omitempty"` // ticks passed over since the last
}

// Tick is a time of the schedule that has come.
type Tick struct {
	N      int       // counts from 1
	At     time.Time // when it was due
	Missed int       // ticks that were passed over before it, up to MaxMissed
}

// The keys of a job's state that a clock has.
const (
	StateKey    = "ticks"
	ScheduleKey = "schedule"
)

// Load reads the state and the schedule; the first run of a schedule makes them fresh.
func (c *Clock) Load(run *worker.Run) (s State, sched schedule.Schedule, fresh bool, err error) {
	ok, err := run.State().Get(StateKey, &s)
	if err != nil {
		return s, sched, false, err
	}
	if ok && s.Name == c.Name {
		_, err = run.State().Get(ScheduleKey, &sched)
		return s, sched, false, err
	}
	now := run.Now()
	if sched, err = c.Parse(now); err != nil {
		return s, sched, false, err
	}
	s = State{Name: c.Name, N: s.N, Next: now.UnixMilli()}
	if !c.Immediately {
		s.Next = milli(sched.Next(schedule.Moments{Now: now}))
	}
	return s, sched, true, run.State().Set(ScheduleKey, sched)
}

// milli is a time in milliseconds; 0 if there is none.
func milli(t time.Time, ok bool) int64 {
	if !ok {
		return 0
	}
	return t.UnixMilli()
}

// Take takes the next tick that is due, and moves the state behind it.
func (c *Clock) Take(now time.Time, s *State, sched schedule.Schedule) (t Tick, ok bool) {
	missed, err := schedule.ParseMissed(cmp.Or(c.Missed, MissedOne))
	if err != nil { // which CheckMissed has refused
		missed = schedule.Missed{Most: 1}
	}
	for !c.Over(s) && s.Next <= now.UnixMilli() {
		due := time.UnixMilli(s.Next).UTC()
		if missed.Skip && now.Sub(due) > Late {
			s.Passed++
			s.passOver(sched, due, now.Add(-Late))
			continue
		}
		s.N++
		s.Burst++
		t = Tick{N: s.N, At: due, Missed: s.Passed}
		s.Passed = 0
		if s.Burst == missed.Most {
			s.passOver(sched, due, now)
		} else {
			s.Next = milli(sched.Next(schedule.Moments{Now: due, Scheduled: due}))
		}
		return t, true
	}
	if s.Next > now.UnixMilli() {
		s.Burst = 0
	}
	return t, false
}

// Over tells whether no tick is to come.
func (c *Clock) Over(s *State) bool { return s.Next == 0 || c.Count > 0 && s.N >= c.Count }

// passOver goes on with the first tick after a time, and counts those before it, up to MaxMissed in all.
func (s *State) passOver(sched schedule.Schedule, last, until time.Time) {
	next, passed, ok := sched.PassOver(last, until)
	s.Passed, s.Next = min(s.Passed+passed, MaxMissed), milli(next, ok)
}

// timerKey is where the state has the time of the run that was asked for last.
const timerKey = "timer"

// WakeAt asks for a run at a time, unless one before is still to come: that will ask again. So a job has one
// timer, however often it runs.
func WakeAt(run *worker.Run, at time.Time) error {
	var pending time.Time
	if _, err := run.State().Get(timerKey, &pending); err != nil {
		return err
	}
	if pending.After(run.Now()) && !pending.After(at) {
		return nil
	}
	if err := run.State().Set(timerKey, at.UTC()); err != nil {
		return err
	}
	return run.WakeAfter(at.Sub(run.Now()))
}
