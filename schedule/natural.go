package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sentence is English that is being read, word by word. What follows from it is the same for
// the same text, zone and now; every word has to be used.
type sentence struct {
	words []string // in small letters; a comma is a word
	at    int      // the next one
	zone  string
	loc   *time.Location
	now   time.Time
	here  time.Time // now, on the wall
}

// hyphen stands between two names: mon-fri.
var hyphen = regexp.MustCompile(`([a-z])-([a-z])`)

// inShort is a number of days or weeks as flags have it: 2d, 1d12h, 2w.
var inShort = regexp.MustCompile(`^([0-9]+)([dw])([0-9].*)?$`)

// wordsOf are the words of a text. Days and weeks in short are two words, as "2 days" is, which is not 48 hours when
// clocks are changed.
func wordsOf(text string) (words []string) {
	for _, w := range strings.Fields(text) {
		for {
			m := inShort.FindStringSubmatch(w)
			if m == nil {
				words = append(words, w)
				break
			}
			words = append(words, m[1], m[2])
			if w = m[3]; w == "" {
				break
			}
			words = append(words, ",")
		}
	}
	return words
}

// parseNatural reads English, and returns the schedule that stands for it, with its tag.
func parseNatural(text, zone string, loc *time.Location, now time.Time) (rule, string, *Error) {
	if now.IsZero() {
		return nil, "", refuse("", "what it stands for is missing")
	}
	lower := hyphen.ReplaceAllString(strings.ReplaceAll(strings.ToLower(text), ",", " , "), "$1 to $2")
	s := &sentence{words: wordsOf(lower), zone: zone, loc: loc, now: now, here: wallOf(now, loc)}
	kind, became, err := s.schedule()
	if err == nil && s.at < len(s.words) {
		err = s.lost("nothing can follow here: leave it out")
	}
	if err != nil {
		return nil, "", err
	}
	out, err := compile(kind, became, zone, now)
	if err != nil {
		return nil, "", err
	}
	return out.rule, out.String(), nil
}

// peek is the next word; empty at the end.
func (s *sentence) peek() string {
	if s.at < len(s.words) {
		return s.words[s.at]
	}
	return ""
}

// take goes on if the next word is one of some, and tells whether it was.
func (s *sentence) take(words ...string) bool {
	if w := s.peek(); w == "" || !slices.Contains(words, w) {
		return false
	}
	s.at++
	return true
}

// lost is the error that the next word is not understood.
func (s *sentence) lost(format string, args ...any) *Error {
	hint := fmt.Sprintf(format, args...)
	w := s.peek()
	if w == "" {
		return refuse("", "something is missing at the end: %s", hint)
	}
	e := refuse("word "+strconv.Itoa(s.at+1), "%s is not understood: %s", quote(w), hint)
	if e.Word = w; len(w) > 2 && w[0] > '9' && !slices.Contains(vocabulary, w) { // else it is not misspelled but misplaced
		e.Known = vocabulary
	}
	return e
}

// schedule reads a whole text.
func (s *sentence) schedule() (Kind, string, *Error) {
	const begin = `begin with every, in, at, a day or a time, as in "every weekday at 9am", "in 5 minutes" or "7pm tomorrow"`
	switch {
	case len(s.words) == 0:
		return "", "", s.lost(begin)
	case s.take("now"):
		return s.once(s.now)
	case s.take("in"):
		return s.later()
	case s.take("every", "each"):
		return s.every(nil)
	case s.take("daily"):
		return s.onDays(nil, nil)
	case s.take("weekly"):
		return s.weekly(1, nil)
	case s.take("monthly"):
		return s.monthly(1, nil)
	case s.take("yearly"):
		return s.yearly(nil)
	}
	if kind, text, err := s.repeated(nil); kind != "" || err != nil {
		return kind, text, err
	}
	if !s.starts() {
		return "", "", s.lost(begin)
	}
	return s.single()
}

// repeated reads what comes again and again without "every".
func (s *sentence) repeated(times []time.Duration) (Kind, string, *Error) {
	if kind, text, err := s.ordinals(times); kind != "" || err != nil {
		return kind, text, err
	}
	return s.plural(times)
}

// starts tells whether the next word may begin a day or a time.
func (s *sentence) starts() bool {
	w := s.peek()
	_, weekday := weekdayOf(w)
	_, month := monthOf(w)
	digit := w != "" && w[0] >= '0' && w[0] <= '9'
	return weekday || month || digit || slices.Contains([]string{"at", "on", "the", "day", "next", "this", "today", "tomorrow", "noon", "midnight"}, w)
}

// once is a schedule for one moment.
func (s *sentence) once(t time.Time) (Kind, string, *Error) {
	return At, t.In(s.loc).Format(time.RFC3339Nano), nil
}

// later reads a span of time behind "in".
func (s *sentence) later() (Kind, string, *Error) {
	sum, err := s.span()
	if err != nil {
		return "", "", err
	}
	if sum.months == 0 && sum.days == 0 {
		return s.once(s.now.Add(sum.time))
	}
	w := addMonths(s.here, sum.months).AddDate(0, 0, sum.days)
	if len(s.words) > s.at && sum.time == 0 {
		times, err := s.times(true)
		if err != nil {
			return "", "", err
		}
		if len(times) != 1 {
			return "", "", refuse("", "it is once: give one time")
		}
		w = midnight(w).Add(times[0])
	}
	t, _ := onClock(w, s.loc)
	return s.once(t.Add(sum.time))
}

// addMonths keeps the day of the month, or takes the last if the month is shorter.
func addMonths(w time.Time, n int) time.Time {
	year, month, day := w.Date()
	first := time.Date(year, month+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	day = min(day, lengthOf(first.Year(), int(first.Month())))
	return first.AddDate(0, 0, day-1).Add(w.Sub(midnight(w)))
}

func midnight(w time.Time) time.Time { return startOf(w, "DAY") }

// single reads a time, a day, or both: "7pm tomorrow", "at noon on friday". Times may
// also stand before the days of a schedule: "at 9am every weekday".
func (s *sentence) single() (Kind, string, *Error) {
	times, err := s.times(false)
	if err != nil {
		return "", "", err
	}
	if times != nil {
		if s.take("every", "each") {
			return s.every(times)
		}
		if kind, text, err := s.repeated(times); kind != "" || err != nil {
			return kind, text, err
		}
	}
	var on *date
	if s.at < len(s.words) {
		if on, err = s.date(); err == nil && times == nil {
			times, err = s.times(false)
		}
	}
	switch {
	case err != nil:
		return "", "", err
	case s.at < len(s.words) && times == nil:
		return "", "", s.lost("say at what time, such as at 9am or at 17:30, or begin with every")
	case s.at < len(s.words):
		return "", "", s.lost("use one time and one day, such as 7pm tomorrow")
	case times == nil:
		return "", "", refuse("", "it does not say at what time: add one, such as at 9am")
	case len(times) > 1:
		return "", "", refuse("", "it is once: give one time, or every day")
	}
	return s.resolve(on, times[0])
}

// resolve finds the moment of a day, or of the next one, at a time.
func (s *sentence) resolve(on *date, at time.Duration) (Kind, string, *Error) {
	if on == nil {
		on = &date{any: true}
	}
	for i := range 366 * 9 {
		day := midnight(s.here).AddDate(0, 0, i)
		if !on.is(day, midnight(s.here)) {
			continue
		}
		t, gap := onClock(day.Add(at), s.loc)
		if gap > 0 {
			return "", "", refuse("time", "%s does not exist in %s on %s: clocks are put forward", timeWord(at), s.loc, day.Format(time.DateOnly))
		}
		if t.After(s.now) {
			return s.once(t)
		}
		if on.exact {
			return "", "", refuse("", "%s has passed", t.Format("Monday 2 January 2006 15:04:05"))
		}
	}
	return "", "", refuse("", "there is no such day to come")
}

// timeWord is a time of day.
func timeWord(at time.Duration) string {
	return timeOfDay(int(at.Hours()), int(at.Minutes())%60, int(at.Seconds())%60)
}

// date is a day of a sentence.
type date struct {
	any     bool // each day
	exact   bool // of one year: it does not come again
	weekday int  // with byWeekday
	by      int  // one of by…
	after   bool // not today
	day     time.Time
}

// What a date is by.
const (
	byDay = iota
	byWeekday
	byMonthDay
	byYear
)

// is tells whether a day is the date.
func (d *date) is(day, today time.Time) bool {
	switch {
	case d.any:
		return true
	case d.by == byWeekday:
		return int(day.Weekday()) == d.weekday && (!d.after || day.After(today))
	case d.by == byMonthDay:
		return day.Day() == d.day.Day()
	case d.by == byYear:
		return day.Day() == d.day.Day() && day.Month() == d.day.Month()
	}
	return day.Equal(d.day)
}

// date reads a day.
func (s *sentence) date() (*date, *Error) {
	s.take("on")
	today := midnight(s.here)
	switch {
	case s.take("today"):
		return &date{exact: true, day: today}, nil
	case s.take("tomorrow"):
		return &date{exact: true, day: today.AddDate(0, 0, 1)}, nil
	}
	mark := s.at
	if s.take("the"); s.take("day") && s.take("after") && s.take("tomorrow") {
		return &date{exact: true, day: today.AddDate(0, 0, 2)}, nil
	}
	s.at = mark
	next := s.take("next")
	if !next {
		s.take("this")
	}
	if w, ok := weekdayOf(s.peek()); ok {
		s.at++
		return &date{by: byWeekday, weekday: w, after: next}, nil
	}
	if next {
		return nil, s.lost("use next and a weekday, such as next monday")
	}
	if day, err := time.Parse(time.DateOnly, s.peek()); err == nil {
		s.at++
		if day.Before(today) {
			return nil, refuse("", "%s has passed", day.Format(time.DateOnly))
		}
		return s.far(day)
	}
	month, day, ok := s.monthDay()
	if !ok {
		return nil, s.lost("use a day, such as tomorrow, friday, march 12 or 2026-03-12")
	}
	d := &date{by: byYear, day: time.Date(2000, time.Month(month), day, 0, 0, 0, 0, time.UTC)}
	if month == 0 {
		d.by, d.day = byMonthDay, time.Date(2000, 1, day, 0, 0, 0, 0, time.UTC)
	} else if day > lengthOf(2000, month) {
		return nil, refuse("day", "%s has no day %d", monthWord(month), day)
	}
	if year, ok := number(s.peek()); ok && month > 0 && len(s.peek()) == 4 {
		s.at++
		if day > lengthOf(year, month) {
			return nil, refuse("day", "%s %d has no day %d", monthWord(month), year, day)
		}
		d.day = time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
		if d.day.Before(today) {
			return nil, refuse("", "%s has passed", d.day.Format(time.DateOnly))
		}
		return s.far(d.day)
	}
	return d, nil
}

// far is a day of one year, which may not be further off than is looked.
func (s *sentence) far(day time.Time) (*date, *Error) {
	if day.After(midnight(s.here).AddDate(9, 0, 0)) {
		return nil, refuse("year", "%d is more than nine years off: use at:%s", day.Year(), day.Format(time.RFC3339))
	}
	return &date{exact: true, day: day}, nil
}
