package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/schedule"
)

// RepeatRule says when a root job runs again that has completed, see Repeat.
type RepeatRule struct {
	// Schedule is a text of the dialect repeat, such as "FINISHED, +1 DAY", or of another one with its tag, such as
	// "cron:30 9 * * *", "every:10m" or "natural:every monday at 9am": see package schedule. With repeat and every the job
	// runs first when it is created; with the others at the first time of the schedule.
	Schedule string
	// Zone is the time zone of the schedule. Empty means UTC.
	Zone string
	// Missed is what becomes of times that came while the job could not run, or ran too long: schedule.MissedOne,
	// MissedSkip, MissedAll or a number, the most to take. Empty means MissedAll for the dialect repeat, where only
	// SCHEDULED can miss any, and MissedOne for the others.
	Missed string
}

// Repeat has a job run again after it has completed, under its own ID, with its state and what waits in its In ports: the same
// transaction that ends the run schedules the next one. It is for a root job that is no graph and has no children when it is
// started; a trigger starts other trees again and again. The repetition ends when the job fails, until it is retried, when it is
// terminated, and when the schedule has no further time: then the job is completed. Messages that arrive meanwhile
// wait for the next run. Of messages in an Out port that nobody has read those are kept of the last repetition that wrote any there.
//
// A repetition that makes no sense is refused with an error that wraps ErrValue.
func Repeat(r RepeatRule) Option {
	return option(func(o *Choices) { o.repeat = &r })
}

// parse reads the schedule, which begins now.
func (r *RepeatRule) parse(now time.Time) (schedule.Schedule, error) {
	kind, text := schedule.Repeat, r.Schedule
	if tag, rest, ok := strings.Cut(text, ":"); ok && slices.Contains(schedule.Kinds(), schedule.Kind(tag)) {
		kind, text = schedule.Kind(tag), rest
	}
	s, err := schedule.Parse(kind, text, r.Zone, now)
	if field := new(schedule.Error); err != nil && kind == schedule.Repeat && errors.As(err, &field) && field.Field == "base" {
		err = fmt.Errorf("%w; another dialect needs its tag, as in cron:30 9 * * *", err)
	}
	if err == nil && strings.HasPrefix(s.Resolved(), string(schedule.At)+":") {
		err = fmt.Errorf("%s comes once: give the job a time to run at instead", s)
	}
	return s, err
}

// Repeats makes of a repetition, which begins now, what a job has. The error wraps ErrValue.
func (r *RepeatRule) Repeats(now time.Time) (*Repeats, error) {
	s, err := r.parse(now)
	if err != nil {
		return nil, fmt.Errorf("%w: repeat: %w", ErrValue, err)
	}
	all := &Repeats{Schedule: s, Missed: r.Missed}
	if _, err := schedule.ParseMissed(all.missed()); err != nil {
		return nil, fmt.Errorf("%w: repeat: %w", ErrValue, err)
	}
	return all, nil
}

// Repeats is what a job has that repeats: its schedule, and how far it is.
type Repeats struct {
	Schedule schedule.Schedule `json:"schedule"`
	Missed   string            `json:"missed,omitempty"`

	Count     int64     `json:"count"`              // how often it has completed
	Passed    int64     `json:"passed,omitempty"`   // times that were passed over, as Missed says
	Scheduled time.Time `json:"scheduled,omitzero"` // when the present repetition was due, or the next one is; zero: when the job was created
	Ended     time.Time `json:"ended,omitzero"`     // when it completed last

	burst   int   // repetitions in a row that were due before the one before them ended
	version int64 // of the job, when it was scheduled last
}

// Like tells whether two jobs repeat in the same way.
func (r *Repeats) Like(other *Repeats) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.Schedule.String() == other.Schedule.String() && r.Schedule.Zone() == other.Schedule.Zone() && r.missed() == other.missed()
}

// missed is the policy for missed times.
func (r *Repeats) missed() string {
	if r.Schedule.Kind() == schedule.Repeat {
		return cmp.Or(r.Missed, schedule.MissedAll)
	}
	return cmp.Or(r.Missed, schedule.MissedOne)
}

// storedRepeat is what of Repeats does not change.
type storedRepeat struct {
	Schedule schedule.Schedule `json:"repeat"`
	Missed   string            `json:"missed,omitempty"`
}

// Text is what does not change of it, as RepeatsOf reads it. It is for stores.
func (r *Repeats) Text() (string, error) {
	raw, err := json.Marshal(storedRepeat{r.Schedule, r.Missed})
	return string(raw), err
}

// Progress is how far it is, as RepeatsOf reads it, without the version of the job that a store adds.
func (r *Repeats) Progress() string {
	return fmt.Sprintf("%d %d %d %d %d", milli(r.Scheduled), milli(r.Ended), r.Count, r.Passed, r.burst)
}

// RepeatsOf reads what Text and Progress wrote; without progress the job was never scheduled. It is for stores.
func RepeatsOf(text, progress string) (*Repeats, error) {
	var in storedRepeat
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, err
	}
	r := &Repeats{Schedule: in.Schedule, Missed: in.Missed, version: -1}
	if progress == "" {
		return r, nil
	}
	var scheduled, ended int64
	if _, err := fmt.Sscan(progress, &scheduled, &ended, &r.Count, &r.Passed, &r.burst, &r.version); err != nil {
		return nil, fmt.Errorf("progress of the repeats %q: %w", progress, err)
	}
	r.Scheduled, r.Ended = fromMilli(scheduled), fromMilli(ended)
	return r, nil
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// After returns what comes after a run of the job that began and completed then; false: that was the last one. It is for engines.
func (r *Repeats) After(i *Info, finished time.Time) (*Repeats, bool) {
	n, again := r.next(i, finished)
	if !again {
		last := *r // a job that is woken later is not to begin anew
		if n != nil {
			last.Passed = n.Passed
		}
		n = &last
	}
	n.Count++
	n.Ended = finished
	return n, again
}

// DueAt is the repetition when it is due at a time that its schedule does not say.
func (r *Repeats) DueAt(at time.Time) *Repeats {
	n := *r
	n.Scheduled = at.Truncate(time.Millisecond).UTC()
	return &n
}

// Retried returns what comes after the last run of the job if that, which did not complete, ends now; false: no further time.
func (r *Repeats) Retried(i *Info, now time.Time) (*Repeats, bool) {
	ran := *i
	if ran.Ran.IsZero() {
		ran.Ran = now
	}
	return r.next(&ran, now)
}

// next is After, but for what counts repetitions; false: no further time.
func (r *Repeats) next(i *Info, finished time.Time) (*Repeats, bool) {
	n, due := *r, r.Scheduled
	if due.IsZero() {
		due = i.Created
	}
	t, ok := r.Schedule.Next(schedule.Moments{Now: finished, Scheduled: due, Started: i.Ran, Finished: finished})
	if r.Schedule.Kind() != schedule.Repeat {
		if due.After(finished) { // it was run before its time, which is still to come
			due = finished
		}
		t, ok = r.Schedule.Next(schedule.Moments{Now: due, Scheduled: due})
	}
	if !ok {
		return nil, false
	}
	if !t.After(due) && !t.After(i.Ran) { // it leads to no later time: once a second
		t = finished.Add(time.Second)
	}
	if n.burst == 0 && !t.After(i.Ran) { // this run was late, too
		n.burst = 1
	}
	missed, err := schedule.ParseMissed(r.missed())
	switch {
	case err != nil: // which Repeats has refused
		return nil, false
	case t.After(finished):
		n.burst = 0
	case missed.Skip && finished.Sub(t) > schedule.Late:
		return n.passOver(t, finished.Add(-schedule.Late))
	case missed.Most > 0 && n.burst >= missed.Most:
		return n.passOver(t, finished)
	default:
		n.burst++
	}
	n.Scheduled = t.UTC()
	return &n, true
}

// passOver goes on with the first time after until, and counts t and those that follow it before that.
func (r *Repeats) passOver(t, until time.Time) (*Repeats, bool) {
	n := *r
	next, passed, ok := r.Schedule.PassOver(t, until)
	n.Scheduled, n.Passed, n.burst = next.UTC(), r.Passed+int64(passed)+1, 0
	return &n, ok
}

// Waits returns what is to come instead of a run that has just begun: of a job that was created before the first time of its
// schedule, or is too late for the one that it was scheduled for. nil, true: it is to run now; nil, false: there is no further
// time. It is for engines.
func (r *Repeats) Waits(i *Info) (*Repeats, bool) {
	now, kind, created := i.Ran, r.Schedule.Kind(), r.version < 0
	if created && kind != schedule.Repeat && kind != schedule.Every {
		t, ok := r.Schedule.Next(schedule.Moments{Now: now})
		n := *r
		n.Scheduled = t.UTC()
		return &n, ok
	}
	late := !r.Scheduled.IsZero() && now.Sub(r.Scheduled) > schedule.Late
	first := r.version == i.Version || created && i.Version == 0 // run of the repetition
	if missed, err := schedule.ParseMissed(r.missed()); err != nil || !missed.Skip || !late || !first {
		return nil, true
	}
	return r.passOver(r.Scheduled, now.Add(-schedule.Late))
}
