package schedule

import (
	"slices"
	"sort"
	"time"
)

// Frequencies, from the longest.
const (
	yearly = iota
	monthly
	weekly
	daily
	hourly
	minutely
	secondly
)

// nthDay is a weekday, or the n-th of a month or year if n is not 0.
type nthDay struct{ weekday, n int }

// recurrence is a rule of RFC 5545, with the times added and taken away.
//
// The libraries that there are generate all times from DTSTART on, so that the next one costs
// more from year to year, and rules that never match keep some of them busy without end. Here a
// period is found by division, and what is tried is bounded.
type recurrence struct {
	freq, interval, weekStart    int
	byMonth, byWeekNo, byYearDay []int
	byMonthDay, bySetPos         []int
	byDay                        []nthDay
	byHour, byMinute, bySecond   []int // never empty where the frequency is longer than the unit
	times                        []int // of a day, in seconds, where the frequency is a day or longer
	start                        time.Time
	until                        time.Time // wall time of the last; zero if there is no end
	count                        int
	added, without               []time.Time
	loc                          *time.Location
	never                        bool // only what was added
}

// maxSteps is how many periods or days without a match are tried: more than there are days until the
// year 9999.
const maxSteps = 3_000_000

// cycleDays is how many days pass until the calendar repeats itself, weekdays included: 400 years.
const cycleDays = 146_097

// cycles are as many years, months, weeks and days: what did not match in that many periods never does.
var cycles = [...]int{yearly: 400, monthly: 4800, weekly: cycleDays / 7, daily: cycleDays}

// next implements rule.
func (r *recurrence) next(m Moments) (time.Time, bool) {
	now := m.Now
	for {
		t, ok := r.ruled(now)
		if i := sort.Search(len(r.added), func(i int) bool { return r.added[i].After(now) }); i < len(r.added) && (!ok || r.added[i].Before(t)) {
			t, ok = r.added[i], true
		}
		if !ok || !slices.ContainsFunc(r.without, t.Equal) {
			return t, ok
		}
		now = t
	}
}

// ruled is the next time of the rule.
func (r *recurrence) ruled(now time.Time) (time.Time, bool) {
	if r.never {
		return time.Time{}, false
	}
	if r.freq >= hourly {
		return passing(now, r.loc, r.find)
	}
	return fixed(now, r.loc, true, r.find)
}

// check implements rule.
func (r *recurrence) check(now time.Time) *Error {
	if _, ok := r.next(Moments{Now: now}); ok {
		return nil
	}
	switch {
	case r.count > 0:
		return refuse("COUNT", "the last of %d times has passed; the start, %s, counts where it matches", r.count, r.start.Format(time.DateTime))
	case !r.until.IsZero():
		return refuse("UNTIL", "there is no time between %s and %s", wallOf(now, r.loc).Format(time.DateTime), r.until.Format(time.DateTime))
	}
	return refuse("", "no time matches all of its parts")
}

// find is the search for the next wall time of the rule.
func (r *recurrence) find(after time.Time) (time.Time, bool) {
	if after.Before(r.start) {
		after = r.start.Add(-time.Second)
	}
	var w time.Time
	var ok bool
	if r.freq >= hourly {
		w, ok = r.findWithin(after)
	} else {
		w, ok = r.findPeriod(after)
	}
	if !ok || !r.until.IsZero() && w.After(r.until) {
		return time.Time{}, false
	}
	return w, true
}

// findPeriod searches a rule by the day or longer.
func (r *recurrence) findPeriod(after time.Time) (time.Time, bool) {
	first := max(0, r.period(after))
	first -= first % r.interval
	var days []int
	for i, steps := first, 0; steps <= cycles[r.freq]; i, steps = i+r.interval, steps+1 {
		lo, hi := r.bounds(i)
		if r.ended(lo) {
			break
		}
		days = days[:0]
		for d := lo; d < hi; d++ {
			if r.matches(d) {
				days = append(days, d)
			}
		}
		if len(days) == 0 {
			continue
		}
		if w, ok := r.pick(days, r.times, after); ok {
			return w, true
		}
	}
	return time.Time{}, false
}

// ended tells whether a day is after the last.
func (r *recurrence) ended(day int) bool {
	return day > dayOf(horizon) || !r.until.IsZero() && day > dayOf(r.until)
}

// period is the number of the period of a wall time, counted from that of start.
func (r *recurrence) period(w time.Time) int {
	switch r.freq {
	case yearly:
		return w.Year() - r.start.Year()
	case monthly:
		return (w.Year()-r.start.Year())*12 + int(w.Month()) - int(r.start.Month())
	case weekly:
		return (dayOf(w) - r.weekOf(dayOf(r.start))) / 7
	}
	return dayOf(w) - dayOf(r.start)
}

// bounds are the first day of a period, and the day after its last.
func (r *recurrence) bounds(i int) (int, int) {
	year, month, _ := r.start.Date()
	switch r.freq {
	case yearly:
		return dayNumber(year+i, 1, 1), dayNumber(year+i+1, 1, 1)
	case monthly:
		return dayNumber(year, int(month)+i, 1), dayNumber(year, int(month)+i+1, 1)
	case weekly:
		lo := r.weekOf(dayOf(r.start)) + 7*i
		return lo, lo + 7
	}
	return dayOf(r.start) + i, dayOf(r.start) + i + 1
}

// timesOfDay lists the times of a day, in seconds.
func timesOfDay(hours, minutes, seconds []int) []int {
	out := make([]int, 0, len(hours)*len(minutes)*len(seconds))
	for _, h := range hours {
		for _, m := range minutes {
			for _, s := range seconds {
				out = append(out, h*3600+m*60+s)
			}
		}
	}
	return out
}

// pick is the first time of a period after another: of all days and times of day, or of the
// positions that BYSETPOS names.
func (r *recurrence) pick(days, times []int, after time.Time) (time.Time, bool) {
	at := func(i int) time.Time { return timeOn(days[i/len(times)], times[i%len(times)]) }
	n := len(days) * len(times)
	if n == 0 {
		return time.Time{}, false
	}
	if len(r.bySetPos) == 0 {
		i := sort.Search(n, func(i int) bool { return at(i).After(after) })
		if i == n {
			return time.Time{}, false
		}
		return at(i), true
	}
	var best time.Time
	for _, p := range r.bySetPos {
		if p < 0 {
			p += n + 1
		}
		if p < 1 || p > n {
			continue
		}
		if w := at(p - 1); w.After(after) && (best.IsZero() || w.Before(best)) {
			best = w
		}
	}
	return best, !best.IsZero()
}

// findWithin searches a rule by the hour, minute or second, whose periods lie within a day.
func (r *recurrence) findWithin(after time.Time) (time.Time, bool) {
	unit := r.unit()
	perDay := 86400 / unit
	origin := dayOf(r.start)*perDay + secondOf(r.start)/unit
	aligned := func(p int) int { // the first period from p on
		return p + ((origin-p)%r.interval+r.interval)%r.interval
	}
	budget, dry := maxSteps, 0
	from := secondOf(after) / unit // the period of after itself may have more
	for day := dayOf(after); !r.ended(day) && budget > 0; day, from, budget = day+1, 0, budget-1 {
		if !r.matches(day) {
			if dry++; dry > cycleDays {
				break
			}
			continue
		}
		dry = 0
		zero := day * perDay
		for p := aligned(zero + from); p < zero+perDay && budget > 0; budget-- {
			times, skip := r.clockWithin((p - zero) * unit)
			if w, ok := r.pick([]int{day}, times, after); ok {
				return w, true
			}
			p = aligned(max(p+1, zero+skip/unit))
		}
	}
	return time.Time{}, false
}

// unit is how many seconds a period within a day has.
func (r *recurrence) unit() int {
	switch r.freq {
	case hourly:
		return 3600
	case minutely:
		return 60
	}
	return 1
}

// clockWithin lists the times of a day, in seconds, in the period that begins at one. If there
// are none as its hour or minute is not allowed, skip is the end of that.
func (r *recurrence) clockWithin(begin int) (times []int, skip int) {
	h, m, s := begin/3600, begin/60%60, begin%60
	minutes, seconds := r.byMinute, r.bySecond
	switch {
	case !allowed(r.byHour, h):
		return nil, (h + 1) * 3600
	case r.freq >= minutely && !allowed(minutes, m):
		return nil, begin - s + 60
	case r.freq >= secondly && !allowed(seconds, s):
		return nil, 0
	}
	if r.freq >= minutely {
		minutes = []int{m}
	}
	if r.freq >= secondly {
		seconds = []int{s}
	}
	return timesOfDay([]int{h}, minutes, seconds), 0
}

// allowed tells whether a part without values, or one of its values, allows n.
func allowed(list []int, n int) bool { return len(list) == 0 || slices.Contains(list, n) }

// matches tells whether a day matches all parts about days.
func (r *recurrence) matches(day int) bool {
	t := timeOn(day, 0)
	year, month, mday := t.Date()
	if !allowed(r.byMonth, int(month)) {
		return false
	}
	if len(r.byMonthDay) > 0 && !slices.Contains(r.byMonthDay, mday) && !slices.Contains(r.byMonthDay, mday-1-lengthOf(year, int(month))) {
		return false
	}
	if len(r.byYearDay) > 0 {
		n := t.YearDay()
		if !slices.Contains(r.byYearDay, n) && !slices.Contains(r.byYearDay, n-1-daysIn(year)) {
			return false
		}
	}
	if len(r.byWeekNo) > 0 {
		n, of := r.weekNo(day)
		if !slices.Contains(r.byWeekNo, n) && !slices.Contains(r.byWeekNo, n-1-of) {
			return false
		}
	}
	return len(r.byDay) == 0 || slices.ContainsFunc(r.byDay, func(d nthDay) bool { return r.isNth(d, t) })
}

// isNth tells whether a day is the n-th of its weekday in its month or year.
func (r *recurrence) isNth(d nthDay, t time.Time) bool {
	if int(t.Weekday()) != d.weekday {
		return false
	}
	if d.n == 0 {
		return true
	}
	n, of := t.Day(), lengthOf(t.Year(), int(t.Month()))
	if r.freq == yearly && len(r.byMonth) == 0 {
		n, of = t.YearDay(), daysIn(t.Year())
	}
	if d.n > 0 {
		return (n-1)/7+1 == d.n
	}
	return (of-n)/7+1 == -d.n
}

// weekOf is the first day of the week of a day.
func (r *recurrence) weekOf(day int) int {
	return day - (int(timeOn(day, 0).Weekday())-r.weekStart+7)%7
}

// weekNo is the number of the week of a day in the year that the week belongs to, and how many weeks that year has. Week 1
// is the first with four days in the year.
func (r *recurrence) weekNo(day int) (n, of int) {
	week := r.weekOf(day)
	year := timeOn(week+3, 0).Year()
	first := r.weekOf(dayNumber(year, 1, 4))
	return (week-first)/7 + 1, (r.weekOf(dayNumber(year+1, 1, 4)) - first) / 7
}

// Days are counted from the first of January 1970.

func dayOf(w time.Time) int {
	s := w.Unix()
	if s < 0 {
		s -= 86399
	}
	return int(s / 86400)
}

func secondOf(w time.Time) int { return int(w.Unix()) - dayOf(w)*86400 }

func timeOn(day, second int) time.Time {
	return time.Unix(int64(day)*86400+int64(second), 0).UTC()
}

func dayNumber(year, month, day int) int {
	return dayOf(time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC))
}

func daysIn(year int) int { return dayNumber(year+1, 1, 1) - dayNumber(year, 1, 1) }
