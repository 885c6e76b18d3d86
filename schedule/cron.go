package schedule

import (
	"strings"
	"time"
)

// The fields of cron expressions.
var (
	secondField  = field{name: "second", max: 59, from: true}
	minuteField  = field{name: "minute", max: 59, from: true}
	hourField    = field{name: "hour", max: 23, from: true}
	dayField     = field{name: "day of month", min: 1, max: 31, question: true, from: true}
	monthField   = field{name: "month", min: 1, max: 12, names: monthNames, from: true}
	weekdayField = field{name: "day of week", max: 6, names: dayNames, question: true, from: true}
)

// cronFields are in the order in which they stand in an expression.
var cronFields = []field{secondField, minuteField, hourField, dayField, monthField, weekdayField}

// macros are expressions that have a name.
var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// clock is what cron and cron7 have in common: times at which all fields match.
type clock struct {
	year, month, day, weekday, hour, minute, second values
	nth                                             [7]uint8 // of weekdays: a bit for each time it may come in a month
	either                                          bool     // if both are restricted, the day or the weekday is enough
	seven                                           bool     // it is cron7
	loc                                             *time.Location

	months, days, weekdays, hours, minutes, seconds uint64 // the same, as bits
}

// parseCron reads a cron expression of five or six fields.
func parseCron(text string, loc *time.Location) (rule, *Error) {
	parts := strings.Fields(text)
	if len(parts) > 0 && strings.HasPrefix(parts[0], "@") {
		full, ok := macros[strings.ToLower(text)]
		if !ok {
			return nil, unknown("", text, "is not a name of an expression", []string{"@yearly", "@monthly", "@weekly", "@daily", "@hourly"})
		}
		parts = strings.Fields(full)
	}
	for _, p := range parts {
		if name, _, ok := strings.Cut(p, "="); ok && (name == "TZ" || name == "CRON_TZ") {
			return nil, refuse("zone", "%s= in the expression is not allowed: the zone is a field of its own", name)
		}
	}
	switch len(parts) {
	case 5:
		parts = append([]string{"0"}, parts...)
	case 6:
	case 7:
		return nil, refuse("", "it has 7 fields: use 5 (minute hour day-of-month month day-of-week), or 6 with the second first; 7 fields with the year first are the dialect cron7")
	default:
		return nil, refuse("", "it has %s: use 5 (minute hour day-of-month month day-of-week), or 6 with the second first", fieldCount(len(parts)))
	}
	c := &clock{either: true, loc: loc, year: values{spans: []span{{1, 9999, 1}}, any: true}}
	for i, to := range []*values{&c.second, &c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		v, err := cronFields[i].parse(parts[i])
		if err != nil {
			return nil, err
		}
		*to = v
	}
	if !c.day.open && !c.weekday.open && (c.day.any || c.weekday.any) { // either is enough, and one matches each day
		c.day, c.weekday = dayField.all(), weekdayField.all()
	}
	return c, c.prepare()
}

// prepare computes the bits, and refuses a date that no calendar has.
func (c *clock) prepare() *Error {
	c.months, c.days, c.weekdays = c.month.bits(), c.day.bits(), c.weekday.bits()
	c.hours, c.minutes, c.seconds = c.hour.bits(), c.minute.bits(), c.second.bits()
	if c.day.any || c.either && !c.weekday.any {
		return nil
	}
	longest := 0
	for m := 1; m <= 12; m++ {
		if c.months&(1<<m) != 0 {
			longest = max(longest, lengthOf(2000, m))
		}
	}
	if first := next(c.days, 1); first > longest {
		return refuse(dayField.name, "day %d never comes in %s", first, c.month.english(monthWord))
	}
	return nil
}

// lengthOf is how many days a month has.
func lengthOf(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// next implements rule.
func (c *clock) next(m Moments) (time.Time, bool) {
	now := m.Now
	if c.seven { // it may fire at Now itself, but not again
		if now = now.Add(-time.Nanosecond); m.Scheduled.After(now) {
			now = m.Scheduled
		}
	}
	if c.hour.star {
		return passing(now, c.loc, c.find)
	}
	return fixed(now, c.loc, false, c.find)
}

// check implements rule.
func (c *clock) check(now time.Time) *Error {
	if _, ok := c.next(Moments{Now: now}); ok {
		return nil
	}
	here := wallOf(now, c.loc)
	last := 0
	for _, s := range c.year.spans {
		last = max(last, s.hi-(s.hi-s.lo)%s.step)
	}
	switch {
	case last < here.Year():
		return refuse(yearField.name, "%d has passed: it is %d", last, here.Year())
	case c.seven:
		return refuse("day of month and day of week", "there is no such day in the years and months given, from %s on", here.Format(time.DateTime))
	}
	return refuse(dayField.name, "there is no such day")
}

// find is the search for the next wall time: it steps from field to field, never through time.
func (c *clock) find(after time.Time) (time.Time, bool) {
	t := after.Truncate(time.Second).Add(time.Second)
	year, month, day := t.Date()
	from := t.Hour()*3600 + t.Minute()*60 + t.Second()
	for y := year; y <= horizon.Year(); y++ {
		if !c.year.has(y) {
			month, day, from = 1, 1, 0
			continue
		}
		for m := next(c.months, int(month)); m > 0; m = next(c.months, m+1) {
			if m != int(month) {
				day, from = 1, 0
			}
			set := c.daysOf(y, m)
			for d := next(set, day); d > 0; d = next(set, d+1) {
				if d != day {
					from = 0
				}
				if s := c.timeFrom(from); s >= 0 {
					return time.Date(y, time.Month(m), d, 0, 0, s, 0, time.UTC), true
				}
			}
			month, day, from = 0, 1, 0
		}
		if y-year > 400 && c.year.any { // the calendar repeats itself
			break
		}
		month, day, from = 1, 1, 0
	}
	return time.Time{}, false
}

// daysOf has a bit for each day of a month that matches.
func (c *clock) daysOf(year, month int) uint64 {
	all := uint64(1)<<(lengthOf(year, month)+1) - 2
	if c.day.any && c.weekday.any {
		return all
	}
	first := int(time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC).Weekday())
	var byWeekday uint64
	for d := 1; d <= 31; d++ {
		w := (first + d - 1) % 7
		if c.weekdays&(1<<w) != 0 || c.nth[w]&(1<<((d-1)/7+1)) != 0 {
			byWeekday |= 1 << d
		}
	}
	if c.either && !c.day.any && !c.weekday.any {
		return all & (c.days | byWeekday)
	}
	return all & c.days & byWeekday
}

// timeFrom is the first time of day that matches, from one on, in seconds; -1 if there is none.
func (c *clock) timeFrom(from int) int {
	hour, minute, second := from/3600, from/60%60, from%60
	for h := next(c.hours, hour); h >= 0; h = next(c.hours, h+1) {
		if h != hour {
			minute, second = 0, 0
		}
		for m := next(c.minutes, minute); m >= 0; m = next(c.minutes, m+1) {
			if m != minute {
				second = 0
			}
			if s := next(c.seconds, second); s >= 0 {
				return h*3600 + m*60 + s
			}
		}
		hour, minute, second = -1, 0, 0
	}
	return -1
}
