package schedule

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Cron7 writes the schedule in the dialect cron7, for programs that know no other: a moment, the times of a cron expression, a rule
// that comes at certain times of certain days of each month, or an interval that divides a minute, an hour or a day, counted from its
// beginning. What has no such text is refused with an [*Error]. A moment is rounded up to whole seconds; when a rule begins is
// left out.
func (s Schedule) Cron7() (string, error) {
	var text string
	var err *Error
	switch r := s.rule.(type) {
	case *clock:
		text, err = r.cron7()
	case moment:
		text = Cron7Once(r.t.Add(time.Second - 1))
	case interval:
		text, err = r.cron7()
	case *recurrence:
		text, err = r.cron7()
	default:
		err = cannotSay()
	}
	if err != nil {
		return "", err.about(s.kind, s.text)
	}
	return text, nil
}

// cannotSay refuses what cron7 has no text for.
func cannotSay() *Error {
	return refuse("", "cron7 cannot say it: use a moment, times of certain days of a month in UTC, or an interval such as every:10m")
}

// cron7 is the text of a rule: it says which days of which months, and at which times of a day.
func (r *recurrence) cron7() (string, *Error) {
	switch {
	case r.loc != time.UTC:
		return "", refuse("zone", "%s is not allowed: cron7 is always UTC", quote(r.loc.String()))
	case r.never || r.interval != 1 || r.count != 0 || !r.until.IsZero() || len(r.added)+len(r.without) > 0,
		len(r.byWeekNo)+len(r.byYearDay)+len(r.bySetPos) > 0, r.freq >= hourly,
		r.freq == yearly && (len(r.byMonth) == 0 || len(r.byDay) > 0), slices.ContainsFunc(r.byMonthDay, func(n int) bool { return n < 0 }):
		return "", cannotSay()
	}
	days := make([]string, len(r.byDay))
	for i, d := range r.byDay {
		days[i] = strconv.Itoa(d.weekday)
		if d.n < 0 {
			return "", cannotSay()
		}
		if d.n > 0 {
			days[i] += "/" + strconv.Itoa(d.n)
		}
	}
	return strings.Join([]string{
		"*", cron7Numbers(r.byMonth), cron7Numbers(r.byMonthDay), orStar(days), cron7Numbers(r.byHour), cron7Numbers(r.byMinute), cron7Numbers(r.bySecond),
	}, " "), nil
}

// cron7Numbers is a list as a field of cron7; a star if it is empty.
func cron7Numbers(list []int) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return orStar(texts)
}

// orStar is the text of a field.
func orStar(items []string) string {
	if len(items) == 0 {
		return "*"
	}
	return strings.Join(items, ",")
}

// cron7 is the text of an expression.
func (c *clock) cron7() (string, *Error) {
	switch {
	case c.loc != time.UTC:
		return "", refuse("zone", "%s is not allowed: cron7 is always UTC", quote(c.loc.String()))
	case c.either && !c.day.any && !c.weekday.any:
		return "", refuse("", "cron7 has no either: it wants the day of month and the day of week to match; use one of them")
	}
	year := c.year
	if !c.seven {
		year = values{any: true}
	}
	fields := []string{
		year.cron7(yearField), c.month.cron7(monthField), c.day.cron7(dayField), c.cron7Weekdays(), c.hour.cron7(hourField),
		c.minute.cron7(minuteField), c.second.cron7(secondField),
	}
	return strings.Join(fields, " "), nil
}

// cron7Weekdays is the text of the field day of week.
func (c *clock) cron7Weekdays() string {
	var items []string
	for day, set := range c.nth {
		for n := 1; n <= 5; n++ {
			if set&(1<<n) != 0 {
				items = append(items, strconv.Itoa(day)+"/"+strconv.Itoa(n))
			}
		}
	}
	if len(c.weekday.spans) > 0 {
		items = append(items, c.weekday.cron7(weekdayField))
	}
	return strings.Join(items, ",")
}

// cron7 is the text of a field.
func (v values) cron7(f field) string {
	if v.any {
		return "*"
	}
	var items []string
	for _, s := range v.spans {
		item := strconv.Itoa(s.lo) + "-" + strconv.Itoa(s.hi)
		switch {
		case s.lo == s.hi:
			item = strconv.Itoa(s.lo)
		case s.lo == f.min && s.hi == f.max:
			item = "*"
		}
		if s.step > 1 && s.lo != s.hi {
			item += "/" + strconv.Itoa(s.step)
		}
		items = append(items, item)
	}
	return strings.Join(items, ",")
}

// cron7 is the text of an interval that divides the next unit of time.
func (i interval) cron7() (string, *Error) {
	every := func(n time.Duration) string {
		if n == 1 {
			return "*"
		}
		return "*/" + strconv.Itoa(int(n))
	}
	switch d := time.Duration(i); {
	case time.Minute%d == 0 && d < time.Minute:
		return "* * * * * * " + every(d/time.Second), nil
	case time.Hour%d == 0 && d%time.Minute == 0 && d < time.Hour:
		return "* * * * * " + every(d/time.Minute) + " 0", nil
	case 24*time.Hour%d == 0 && d%time.Hour == 0 && d < 24*time.Hour:
		return "* * * * " + every(d/time.Hour) + " 0 0", nil
	case d == 24*time.Hour:
		return "* * * * 0 0 0", nil
	}
	return "", refuse("", "cron7 cannot say it: use an interval that divides a minute, an hour or a day, such as 5s, 10m or 6h")
}
