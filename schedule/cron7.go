package schedule

import (
	"fmt"
	"strings"
	"time"
)

// The fields of cron7 take numbers only, and a step needs a range.
var (
	yearField   = field{name: "year", min: 1970, max: 9999}
	cron7Fields = []field{
		yearField,
		{name: monthField.name, min: 1, max: 12},
		{name: dayField.name, min: 1, max: 31},
		{name: weekdayField.name, max: 6},
		{name: hourField.name, max: 23},
		{name: minuteField.name, max: 59},
		{name: secondField.name, max: 59},
	}
)

// parseCron7 reads WorkKit's seven fields, which are in UTC.
func parseCron7(text string, loc *time.Location) (rule, *Error) {
	if loc != time.UTC {
		return nil, refuse("zone", "%s is not allowed: cron7 is always UTC", quote(loc.String()))
	}
	parts := strings.Fields(text)
	if len(parts) != len(cron7Fields) {
		return nil, refuse("", "it has %s: use 7 (year month day-of-month day-of-week hour minute second)", fieldCount(len(parts)))
	}
	c := &clock{seven: true, loc: loc}
	for i, to := range []*values{&c.year, &c.month, &c.day, nil, &c.hour, &c.minute, &c.second} {
		var err *Error
		if to == nil {
			err = c.parseWeekdays(cron7Fields[i], parts[i])
		} else {
			*to, err = cron7Fields[i].parse(parts[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return c, c.prepare()
}

// parseWeekdays reads the field day of week, where v/n is the n-th weekday v of the month.
func (c *clock) parseWeekdays(f field, text string) *Error {
	var plain []string
	for item := range strings.SplitSeq(text, ",") {
		day, nth, ok := strings.Cut(item, "/")
		if !ok || day == "*" || strings.Contains(day, "-") {
			plain = append(plain, item)
			continue
		}
		w, err := f.value(day)
		if err != nil {
			return err
		}
		n, ok := number(nth)
		if !ok || n < 1 || n > 5 {
			return f.refuse(item, "%s: a weekday comes 1 to 5 times in a month", quote(item))
		}
		c.nth[w] |= 1 << n
	}
	if len(plain) == 0 {
		return nil
	}
	var err *Error
	c.weekday, err = f.parse(strings.Join(plain, ","))
	return err
}

// Cron7Once is the text of the dialect cron7 for one moment, in whole seconds.
func Cron7Once(t time.Time) string {
	t = t.UTC()
	return fmt.Sprintf("%d %d %d * %d %d %d", t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second())
}
