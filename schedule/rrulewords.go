package schedule

import (
	"strconv"
	"strings"
	"time"
)

// understood implements rule.
func (r *recurrence) understood() string {
	if r.never {
		return "at " + amount(len(r.added), "time") + " from " + r.added[0].Format(time.DateTime) + " on" + zoneWord(r.loc)
	}
	unit := []string{"year", "month", "week", "day", "hour", "minute", "second"}[r.freq]
	parts := []string{"every " + unit}
	if r.interval > 1 {
		parts[0] = "every " + amount(r.interval, unit)
	}
	add := func(before string, list []int, word func(int) string, after string) {
		if len(list) == 0 {
			return
		}
		texts := make([]string, len(list))
		for i, n := range list {
			texts[i] = word(n)
		}
		parts = append(parts, before+listed(texts, "and")+after)
	}
	if len(r.byDay) > 0 {
		texts := make([]string, len(r.byDay))
		for i, d := range r.byDay {
			texts[i] = r.dayWord(d)
		}
		parts = append(parts, "on "+listed(texts, "and"))
	}
	add("on ", r.byMonthDay, dayOrdinal, " of the month")
	add("on ", r.byYearDay, dayOrdinal, " of the year")
	add("in ", r.byWeekNo, weekOrdinal, " of the year")
	add("in ", r.byMonth, monthWord, "")
	parts = append(parts, r.timeWords()...)
	add("of these the ", r.bySetPos, ordinal, " of the "+unit)
	parts = append(parts, "from "+r.start.Format(time.DateTime)+" on")
	switch {
	case r.count > 0:
		parts = append(parts, amount(r.count, "time"))
	case !r.until.IsZero():
		parts = append(parts, "until "+r.until.Format(time.DateTime))
	}
	if len(r.added) > 0 {
		parts = append(parts, "and at "+amount(len(r.added), "other time"))
	}
	if len(r.without) > 0 {
		parts = append(parts, "but not at "+amount(len(r.without), "excluded time"))
	}
	return strings.Join(parts, ", ") + "," + zoneWord(r.loc)
}

// dayOrdinal is "day 5", or "the last day".
func dayOrdinal(n int) string {
	if n < 0 {
		return "the " + ordinal(n) + " day"
	}
	return "day " + strconv.Itoa(n)
}

// weekOrdinal is "week 5", or "the last week".
func weekOrdinal(n int) string {
	if n < 0 {
		return "the " + ordinal(n) + " week"
	}
	return "week " + strconv.Itoa(n)
}

// dayWord names a day of BYDAY.
func (r *recurrence) dayWord(d nthDay) string {
	if d.n == 0 {
		return weekdayWord(d.weekday)
	}
	of := "month"
	if r.freq == yearly && len(r.byMonth) == 0 {
		of = "year"
	}
	return "the " + ordinal(d.n) + " " + weekdayWord(d.weekday) + " of the " + of
}

// timeWords says at which times of day it fires.
func (r *recurrence) timeWords() []string {
	if r.freq < hourly && len(r.byMinute) == 1 && len(r.bySecond) == 1 {
		texts := make([]string, len(r.byHour))
		for i, h := range r.byHour {
			texts[i] = timeOfDay(h, r.byMinute[0], r.bySecond[0])
		}
		return []string{"at " + listed(texts, "and")}
	}
	var parts []string
	for _, p := range []struct {
		unit string
		list []int
	}{{"hour", r.byHour}, {"minute", r.byMinute}, {"second", r.bySecond}} {
		texts := make([]string, len(p.list))
		for i, n := range p.list {
			texts[i] = strconv.Itoa(n)
		}
		if len(texts) > 0 {
			parts = append(parts, "at "+p.unit+" "+listed(texts, "and"))
		}
	}
	return parts
}
