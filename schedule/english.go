package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// How values of a field are called.
func monthWord(n int) string   { return time.Month(n).String() }
func weekdayWord(n int) string { return time.Weekday(n).String() }

// ordinal is 1st, 2nd and so on; negative numbers count from the end.
func ordinal(n int) string {
	if n == -1 {
		return "last"
	}
	if n < 0 {
		return ordinal(-n) + " last"
	}
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// english lists values: "9 to 17", "1, 3 and 5", "every 15th from 3 to 59".
func (v values) english(word func(int) string) string {
	parts := make([]string, 0, len(v.spans))
	for _, s := range v.spans {
		switch {
		case s.lo+s.step > s.hi:
			parts = append(parts, word(s.lo))
		case s.step > 1:
			parts = append(parts, fmt.Sprintf("every %s from %s to %s", ordinal(s.step), word(s.lo), word(s.hi)))
		default:
			parts = append(parts, word(s.lo)+" to "+word(s.hi))
		}
	}
	return listed(parts, "and")
}

// understood implements rule.
func (c *clock) understood() string {
	parts := append([]string{c.times()}, c.dates()...)
	return strings.Join(parts, ", ") + "," + zoneWord(c.loc)
}

// times says at which times of day it fires.
func (c *clock) times() string {
	second, oneSecond := c.second.single()
	minute, oneMinute := c.minute.single()
	if oneSecond && oneMinute && c.hour.plain() {
		list := make([]string, 0, len(c.hour.spans))
		for _, s := range c.hour.spans {
			list = append(list, timeOfDay(s.lo, minute, second))
		}
		return "at " + listed(list, "and")
	}
	var parts []string
	if !oneSecond || second != 0 {
		parts = append(parts, c.second.every("second"))
	}
	if !c.minute.any || len(parts) == 0 {
		parts = append(parts, c.minute.every("minute"))
	}
	if !c.hour.any || oneMinute {
		parts = append(parts, c.hour.every("hour"))
	}
	return strings.Join(parts, ", ")
}

// plain tells whether there are values only, no ranges.
func (v values) plain() bool {
	for _, s := range v.spans {
		if s.lo+s.step <= s.hi {
			return false
		}
	}
	return true
}

// every says which of the seconds, minutes or hours there are.
func (v values) every(unit string) string {
	s := v.spans[0]
	switch {
	case v.any:
		return "every " + unit
	case v.plain():
		return "at " + unit + " " + v.english(strconv.Itoa)
	case len(v.spans) == 1 && v.star:
		return fmt.Sprintf("every %d %ss", s.step, unit)
	case len(v.spans) == 1 && s.step > 1:
		return fmt.Sprintf("every %d %ss from %d to %d", s.step, unit, s.lo, s.hi)
	}
	return "in " + unit + "s " + v.english(strconv.Itoa)
}

// timeOfDay is 15:04, with seconds if there are any.
func timeOfDay(h, m, s int) string {
	if s == 0 {
		return fmt.Sprintf("%02d:%02d", h, m)
	}
	return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
}

// dates says on which days it fires.
func (c *clock) dates() []string {
	var parts []string
	var weekdays []string
	if len(c.weekday.spans) > 0 {
		weekdays = append(weekdays, c.weekday.english(weekdayWord))
	}
	for w, set := range c.nth {
		for n := next(uint64(set), 1); n > 0; n = next(uint64(set), n+1) {
			weekdays = append(weekdays, "the "+ordinal(n)+" "+weekdayWord(w)+" of the month")
		}
	}
	day, weekday := "on day "+c.day.english(strconv.Itoa)+" of the month", "on "+listed(weekdays, "and")
	switch {
	case c.day.any && c.weekday.any:
	case c.day.any:
		parts = append(parts, weekday)
	case c.weekday.any:
		parts = append(parts, day)
	case c.either:
		parts = append(parts, day+" or "+weekday)
	default:
		parts = append(parts, day+" if that is "+weekday)
	}
	if !c.month.any {
		parts = append(parts, "in "+c.month.english(monthWord))
	}
	if !c.year.any {
		parts = append(parts, "in "+c.year.english(strconv.Itoa))
	}
	return parts
}
