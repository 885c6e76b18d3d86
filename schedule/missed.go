package schedule

import (
	"fmt"
	"strconv"
	"time"
)

// What becomes of times that came while nothing could run, besides a number: the most that are taken.
const (
	MissedOne  = "one"  // the first of them is taken, the others are passed over
	MissedAll  = "all"  // all are taken, one after the other
	MissedSkip = "skip" // those that are less than Late late are taken
)

const (
	// Late is after how long MissedSkip passes a time over.
	Late = time.Minute
	// MaxMissed is how many times are counted when they are passed over, and how many a number may take.
	MaxMissed = 10_000
)

// Missed is what becomes of times that came while nothing could run.
type Missed struct {
	Most int  // how many of them are taken; 0: all
	Skip bool // those that are more than Late late are not taken
}

// ParseMissed reads one, skip, all or a number from 1 to MaxMissed.
func ParseMissed(text string) (Missed, error) {
	switch text {
	case MissedOne:
		return Missed{Most: 1}, nil
	case MissedSkip:
		return Missed{Skip: true}, nil
	case MissedAll:
		return Missed{}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxMissed {
		return Missed{}, fmt.Errorf("missed %q: use %s, %s, %s or a number from 1 to %d", text, MissedOne, MissedSkip, MissedAll, MaxMissed)
	}
	return Missed{Most: n}, nil
}

// PassOver returns the first time after until, and how many times come behind last and before that, up to MaxMissed.
func (s Schedule) PassOver(last, until time.Time) (next time.Time, passed int, ok bool) {
	for t := range s.Upcoming(Moments{Now: last, Scheduled: last}) {
		if t.After(until) {
			return t, passed, true
		}
		if passed++; passed == MaxMissed {
			break
		}
	}
	after := until.Add(time.Nanosecond) // some dialects count the moment itself
	if s.kind == Repeat {
		last = until // it counts from there
	}
	next, ok = s.Next(Moments{Now: after, Scheduled: last})
	return next, passed, ok
}
