package schedule

import (
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a schedule that was stored means the same on a machine without a zone database
)

// Kind is the dialect that a schedule is written in, its tag.
type Kind string

// The dialects.
const (
	Cron    Kind = "cron"
	Cron7   Kind = "cron7"
	Every   Kind = "every"
	Repeat  Kind = "repeat"
	At      Kind = "at"
	RRule   Kind = "rrule"
	Natural Kind = "natural"
)

// Kinds lists the dialects.
func Kinds() []Kind { return []Kind{Cron, Cron7, Every, Repeat, At, RRule, Natural} }

// Moments are what the next time is computed from.
type Moments struct {
	// Now is the moment of asking.
	Now time.Time
	// Scheduled is when the last run was due; zero if there was none.
	Scheduled time.Time
	// Started and Finished are when that run began and ended. Only repeat looks at them; one
	// that is zero counts as Now.
	Started, Finished time.Time
}

// Schedule is when something runs. The zero Schedule never does. Schedules are values: they
// do not change, and may be used concurrently.
type Schedule struct {
	kind     Kind
	text     string
	zone     string
	resolved string // the schedule that a text without all of its meaning became, with its tag
	rule     rule
}

// rule is what a text of a dialect means.
type rule interface {
	// next is the next time, if there is one.
	next(m Moments) (time.Time, bool)
	// check refuses a rule of which nothing comes after now.
	check(now time.Time) *Error
	// understood says in English what the rule is.
	understood() string
}

// Parse reads a schedule. Zone is a name of the IANA database, such as Europe/Berlin; empty
// is UTC. Now is the moment of creation: what "in 5 minutes" counts from, and where a
// recurrence rule without DTSTART begins. A text that is not understood, and a schedule that never
// comes after now, are refused with an [*Error] that names the field.
func Parse(kind Kind, text, zone string, now time.Time) (Schedule, error) {
	s, err := compile(kind, text, zone, now)
	if err == nil {
		err = s.rule.check(now)
	}
	if err != nil {
		return Schedule{}, err.about(kind, text)
	}
	return s, nil
}

// compile reads a schedule, whether or not it comes again.
func compile(kind Kind, text, zone string, now time.Time) (Schedule, *Error) {
	s := Schedule{kind: kind, text: text, zone: zone}
	if len(text) > maxText {
		return s, refuse("", "the text has %d bytes, at most %d are allowed", len(text), maxText)
	}
	loc, err := zoneOf(zone)
	if err != nil {
		return s, err
	}
	switch kind {
	case Cron:
		s.rule, err = parseCron(text, loc)
	case Cron7:
		s.rule, err = parseCron7(text, loc)
	case Every:
		s.rule, err = parseEvery(text)
	case Repeat:
		s.rule, err = parseRepeat(text, loc)
	case At:
		s.rule, err = parseAt(text, loc)
	case RRule:
		s.rule, s.resolved, err = parseRRule(text, zone, loc, now)
	case Natural:
		s.rule, s.resolved, err = parseNatural(text, zone, loc, now)
	default:
		err = unknown("", string(kind), "is not a dialect", words(Kinds()))
	}
	return s, err
}

// maxText is how long a text may be.
const maxText = 4096

func words(kinds []Kind) []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = string(k)
	}
	return out
}

// zoneOf finds a zone. Local is none: it is another one on each machine.
func zoneOf(name string) (*time.Location, *Error) {
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		e := refuse("zone", "%q is not a time zone: use a name such as UTC, Europe/Berlin or America/New_York", name)
		e.Word = name
		return nil, e
	}
	return loc, nil
}

// IsZero reports whether s is no schedule.
func (s Schedule) IsZero() bool { return s.rule == nil }

// Kind is the dialect.
func (s Schedule) Kind() Kind { return s.kind }

// Text is the text as it was given, without the tag.
func (s Schedule) Text() string { return s.text }

// Zone is the zone as it was given; empty is UTC.
func (s Schedule) Zone() string { return s.zone }

// String is the tag and the text, such as "cron:30 9 * * MON-FRI".
func (s Schedule) String() string {
	if s.IsZero() {
		return ""
	}
	return string(s.kind) + ":" + s.text
}

// Resolved is the schedule that stands for this one: what English became, and a recurrence
// rule with the DTSTART it was given. It is String where the text says all.
func (s Schedule) Resolved() string { return cmp.Or(s.resolved, s.String()) }

// Understood says in English what the schedule means.
func (s Schedule) Understood() string {
	if s.IsZero() {
		return "never"
	}
	return s.rule.understood()
}

// Next is the next time, and whether there is one.
//
// cron, rrule: the first time after Now. cron7: the first that is not before Now, and after
// Scheduled. every: Scheduled and as many intervals as lead past Now, or an interval after Now
// if nothing ran yet. at: its time, until it was Scheduled. repeat: what its modifiers make of the moments of
// the last run. A time of at and repeat may be in the past: it is due at once. There is none after the year 9999, in UTC or in
// the schedule's zone, as JSON cannot write it.
func (s Schedule) Next(m Moments) (time.Time, bool) {
	if s.IsZero() {
		return time.Time{}, false
	}
	t, ok := s.rule.next(m)
	return t, ok && !t.After(horizon) && t.Year() <= horizon.Year()
}

// Upcoming yields the next times, as if each run begins and ends at once when it is due. It
// ends after the last time, or before one that is not later than the one before it.
func (s Schedule) Upcoming(m Moments) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for last := (time.Time{}); ; {
			t, ok := s.Next(m)
			if !ok || !last.IsZero() && !t.After(last) || !yield(t) {
				return
			}
			last = t
			if m.Now.Before(t) {
				m.Now = t
			}
			m = Moments{Now: m.Now, Scheduled: t, Started: m.Now, Finished: m.Now}
		}
	}
}

// stored is a schedule in JSON.
type stored struct {
	Schedule string `json:"schedule"`
	Zone     string `json:"zone,omitempty"`
	Resolved string `json:"resolved,omitempty"`
}

// MarshalJSON writes the tag, the text, the zone, and what the text became.
func (s Schedule) MarshalJSON() ([]byte, error) {
	if s.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(stored{s.String(), s.zone, s.resolved})
}

// MarshalBinary returns what MarshalJSON does, for encodings other than JSON.
func (s Schedule) MarshalBinary() ([]byte, error) { return s.MarshalJSON() }

// UnmarshalBinary reads what MarshalBinary wrote, as UnmarshalJSON does.
func (s *Schedule) UnmarshalBinary(raw []byte) error { return s.UnmarshalJSON(raw) }

// UnmarshalJSON reads what MarshalJSON wrote. It needs no clock: a schedule whose last time
// has passed is read, too.
func (s *Schedule) UnmarshalJSON(raw []byte) error {
	var in *stored
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	if in == nil {
		*s = Schedule{}
		return nil
	}
	kind, text, ok := strings.Cut(in.Schedule, ":")
	if !ok || !slices.Contains(Kinds(), Kind(kind)) {
		return errors.New("schedule: " + quote(in.Schedule) + " has no tag of a dialect, such as cron:")
	}
	out, err := reload(Kind(kind), text, in.Zone, in.Resolved)
	if err != nil {
		return err.about(Kind(kind), text)
	}
	*s = out
	return nil
}

// reload makes a schedule of what was stored.
func reload(kind Kind, text, zone, resolved string) (Schedule, *Error) {
	if resolved == "" {
		return compile(kind, text, zone, time.Time{})
	}
	of, rest, _ := strings.Cut(resolved, ":")
	if Kind(of) == Natural {
		return Schedule{}, refuse("resolved", "%s is not what English becomes", quote(resolved))
	}
	s, err := compile(Kind(of), rest, zone, time.Time{})
	s.kind, s.text, s.resolved = kind, text, resolved
	return s, err
}
