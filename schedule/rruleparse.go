package schedule

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	freqNames = []string{"YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"}
	dayCodes  = []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}
	partNames = []string{
		"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS",
	}
	properties = []string{"DTSTART", "RRULE", "EXDATE", "RDATE"}
)

// Limits of what a rule may say.
const (
	maxCount    = 10_000
	maxInterval = 1_000_000
)

// Layouts of moments in RFC 5545.
const (
	icalTime = "20060102T150405"
	icalDate = "20060102"
)

// parseRRule reads the lines DTSTART, RRULE, EXDATE and RDATE, or a rule alone. It
// also returns the text with the DTSTART that it was given, if it had none.
func parseRRule(text, zone string, loc *time.Location, now time.Time) (rule, string, *Error) {
	r := &recurrence{loc: loc, interval: 1, weekStart: 1, never: true}
	lines := strings.Fields(strings.ToUpper(text))
	zones := strings.Fields(text) // the same lines: names of zones are not in capitals
	var main string
	var later []int // lines that may need the zone of DTSTART
	for i, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok && strings.Contains(line, "FREQ=") {
			name, value = "RRULE", line
		}
		switch name, _, _ = strings.Cut(name, ";"); name {
		case "RRULE":
			if main != "" {
				return nil, "", refuse("RRULE", "there are two rules: use two schedules")
			}
			main = value
		case "DTSTART":
			if err := r.parseStart(zones[i], zone); err != nil {
				return nil, "", err
			}
		case "EXDATE", "RDATE":
			later = append(later, i)
		default:
			return nil, "", unknown("", name, "is not understood", properties)
		}
	}
	resolved := ""
	if r.start.IsZero() {
		if now.IsZero() {
			return nil, "", refuse("DTSTART", "there is none")
		}
		r.start = wallOf(now, r.loc).Truncate(time.Second)
		resolved = string(RRule) + ":DTSTART:" + r.start.Format(icalTime) + "\n" + strings.TrimSpace(text)
	}
	for _, i := range later {
		if err := r.parseDates(zones[i]); err != nil {
			return nil, "", err
		}
	}
	if main == "" && len(r.added) == 0 {
		return nil, "", refuse("RRULE", "there is no rule: it begins with FREQ=, such as FREQ=WEEKLY;BYDAY=MO")
	}
	if main == "" {
		return r, resolved, nil
	}
	r.never = false
	if err := r.parseRule(main); err != nil {
		return nil, "", err
	}
	return r, resolved, r.prepare()
}

// parseStart reads DTSTART, whose zone is that of the schedule.
func (r *recurrence) parseStart(line, zone string) *Error {
	head, value, _ := strings.Cut(line, ":")
	loc, err := zoneParam("DTSTART", head, r.loc)
	if err != nil {
		return err
	}
	if zone != "" && loc != r.loc && loc.String() != r.loc.String() {
		return refuse("DTSTART", "its zone is %s, that of the schedule is %s", loc, zone)
	}
	r.loc = loc
	t, err := moments("DTSTART", value, loc)
	if err != nil {
		return err
	}
	if len(t) != 1 || !r.start.IsZero() {
		return refuse("DTSTART", "there is more than one")
	}
	r.start = wallOf(t[0], loc)
	return nil
}

// zoneParam is the zone that a property names, or another.
func zoneParam(property, head string, loc *time.Location) (*time.Location, *Error) {
	_, params, _ := strings.Cut(head, ";")
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		switch strings.ToUpper(name) {
		case "", "VALUE":
		case "TZID":
			found, err := zoneOf(value)
			if err != nil {
				err.Field = property
				return nil, err
			}
			loc = found
		default:
			return nil, unknown(property, name, "is not understood", []string{"TZID", "VALUE"})
		}
	}
	return loc, nil
}

// parseDates reads EXDATE and RDATE.
func (r *recurrence) parseDates(line string) *Error {
	head, value, _ := strings.Cut(line, ":")
	property := strings.ToUpper(head[:strings.IndexAny(head+";", ";")])
	loc, err := zoneParam(property, head, r.loc)
	if err != nil {
		return err
	}
	list, err := moments(property, value, loc)
	if err != nil {
		return err
	}
	if property == "EXDATE" {
		r.without = append(r.without, list...)
		return nil
	}
	for _, t := range list {
		r.added = append(r.added, t.In(r.loc))
	}
	slices.SortFunc(r.added, time.Time.Compare)
	return nil
}

// moments reads moments that commas separate.
func moments(property, text string, loc *time.Location) ([]time.Time, *Error) {
	var out []time.Time
	for v := range strings.SplitSeq(strings.ToUpper(text), ",") {
		local := strings.TrimSuffix(v, "Z")
		w, err := time.Parse(icalTime, local)
		if err != nil {
			w, err = time.Parse(icalDate, local)
		}
		if err != nil {
			return nil, refuse(property, "%s is not a moment: use 20260310T090000, with Z behind it for UTC, or 20260310", quote(v))
		}
		if w.Year() < 1 {
			return nil, refuse(property, "the year 0 is out of range")
		}
		t := w
		if local == v {
			t, _ = onClock(w, loc)
		}
		out = append(out, t)
	}
	return out, nil
}

// parseRule reads the parts of RRULE.
func (r *recurrence) parseRule(text string) *Error {
	seen := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		name, value, ok := strings.Cut(part, "=")
		if !ok || value == "" {
			return refuse("RRULE", "%s is not a part: use NAME=VALUE, with ; between parts", quote(part))
		}
		if !slices.Contains(partNames, name) {
			return unknown("RRULE", name, "is not a part of a rule", partNames)
		}
		if _, twice := seen[name]; twice {
			return refuse(name, "it stands there twice")
		}
		seen[name] = value
	}
	if seen["FREQ"] == "" {
		return refuse("FREQ", "it is missing: use %s", listed(freqNames, "or"))
	}
	if r.freq = slices.Index(freqNames, seen["FREQ"]); r.freq < 0 {
		return unknown("FREQ", seen["FREQ"], "is not a frequency", freqNames)
	}
	for _, name := range partNames { // in this order, so that errors are the same each time
		if value := seen[name]; value != "" {
			if err := r.parsePart(name, value); err != nil {
				return err
			}
		}
	}
	return r.fits()
}

// parsePart reads one part.
func (r *recurrence) parsePart(name, value string) (err *Error) {
	switch name {
	case "INTERVAL":
		r.interval, err = positive(name, value, maxInterval)
	case "COUNT":
		r.count, err = positive(name, value, maxCount)
	case "UNTIL":
		var list []time.Time
		if list, err = moments(name, value, r.loc); err == nil {
			r.until = wallOf(list[0], r.loc)
		}
	case "WKST":
		if r.weekStart = slices.Index(dayCodes, value); r.weekStart < 0 {
			return unknown(name, value, "is not a weekday", dayCodes)
		}
	case "BYMONTH":
		r.byMonth, err = numbers(name, value, 1, 12, false)
	case "BYWEEKNO":
		r.byWeekNo, err = numbers(name, value, 1, 53, true)
	case "BYYEARDAY":
		r.byYearDay, err = numbers(name, value, 1, 366, true)
	case "BYMONTHDAY":
		r.byMonthDay, err = numbers(name, value, 1, 31, true)
	case "BYDAY":
		r.byDay, err = parseDays(value)
	case "BYHOUR":
		r.byHour, err = numbers(name, value, 0, 23, false)
	case "BYMINUTE":
		r.byMinute, err = numbers(name, value, 0, 59, false)
	case "BYSECOND":
		r.bySecond, err = numbers(name, value, 0, 59, false)
	case "BYSETPOS":
		r.bySetPos, err = numbers(name, value, 1, 366, true)
	}
	return err
}

// positive reads a number from 1 on.
func positive(name, value string, most int) (int, *Error) {
	n, ok := number(value)
	if !ok || n < 1 || n > most {
		return 0, refuse(name, "%s is not a number from 1 to %d", quote(value), most)
	}
	return n, nil
}

// numbers reads a list, which it sorts.
func numbers(name, text string, least, most int, signed bool) ([]int, *Error) {
	var out []int
	for v := range strings.SplitSeq(text, ",") {
		digits, sign := v, 1
		if signed {
			digits = strings.TrimPrefix(v, "+")
			if rest, ok := strings.CutPrefix(v, "-"); ok {
				digits, sign = rest, -1
			}
		}
		n, ok := number(digits)
		if !ok || n < least || n > most {
			also := ""
			if signed {
				also = ", or from the end -1 to -" + strconv.Itoa(most)
			}
			return nil, refuse(name, "%s is not a number from %d to %d%s", quote(v), least, most, also)
		}
		if !slices.Contains(out, sign*n) {
			out = append(out, sign*n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// parseDays reads BYDAY: MO, 2TU, -1FR.
func parseDays(text string) ([]nthDay, *Error) {
	var out []nthDay
	for v := range strings.SplitSeq(text, ",") {
		cut := max(0, len(v)-2)
		d := nthDay{weekday: slices.Index(dayCodes, v[cut:])}
		if d.weekday < 0 {
			return nil, unknown("BYDAY", v, "is not a weekday", dayCodes)
		}
		if cut > 0 {
			n, err := numbers("BYDAY", v[:cut], 1, 53, true)
			if err != nil {
				return nil, err
			}
			d.n = n[0]
		}
		out = append(out, d)
	}
	return out, nil
}

// fits refuses parts that RFC 5545 does not allow together.
func (r *recurrence) fits() *Error {
	nth := slices.ContainsFunc(r.byDay, func(d nthDay) bool { return d.n != 0 })
	by := len(r.byMonth) + len(r.byWeekNo) + len(r.byYearDay) + len(r.byMonthDay) + len(r.byDay) + len(r.byHour) + len(r.byMinute) + len(r.bySecond)
	freq := freqNames[r.freq]
	switch {
	case r.count > 0 && !r.until.IsZero():
		return refuse("COUNT", "a rule has COUNT or UNTIL, not both")
	case !r.until.IsZero() && r.until.Before(r.start):
		return refuse("UNTIL", "%s is before the start, %s", r.until.Format(time.DateTime), r.start.Format(time.DateTime))
	case nth && r.freq > monthly:
		return refuse("BYDAY", "the n-th weekday needs FREQ=MONTHLY or FREQ=YEARLY, not %s", freq)
	case nth && len(r.byWeekNo) > 0:
		return refuse("BYDAY", "the n-th weekday does not go with BYWEEKNO")
	case len(r.byMonthDay) > 0 && r.freq == weekly:
		return refuse("BYMONTHDAY", "it does not go with FREQ=WEEKLY")
	case len(r.byYearDay) > 0 && r.freq > yearly && r.freq < hourly:
		return refuse("BYYEARDAY", "it does not go with FREQ=%s", freq)
	case len(r.byWeekNo) > 0 && r.freq != yearly:
		return refuse("BYWEEKNO", "it needs FREQ=YEARLY, not %s", freq)
	case len(r.bySetPos) > 0 && by == 0:
		return refuse("BYSETPOS", "it needs another BY part to choose from")
	}
	return nil
}

// prepare adds what a rule takes from DTSTART, and refuses one that never matches.
func (r *recurrence) prepare() *Error {
	h, m, s := r.start.Clock()
	if len(r.byHour) == 0 && r.freq < hourly {
		r.byHour = []int{h}
	}
	if len(r.byMinute) == 0 && r.freq < minutely {
		r.byMinute = []int{m}
	}
	if len(r.bySecond) == 0 && r.freq < secondly {
		r.bySecond = []int{s}
	}
	if r.freq < hourly {
		r.times = timesOfDay(r.byHour, r.byMinute, r.bySecond)
	}
	if len(r.byWeekNo)+len(r.byYearDay)+len(r.byMonthDay)+len(r.byDay) == 0 {
		switch r.freq {
		case yearly:
			if len(r.byMonth) == 0 {
				r.byMonth = []int{int(r.start.Month())}
			}
			r.byMonthDay = []int{r.start.Day()}
		case monthly:
			r.byMonthDay = []int{r.start.Day()}
		case weekly:
			r.byDay = []nthDay{{weekday: int(r.start.Weekday())}}
		}
	}
	if field := r.unreachable(); field != "" {
		return refuse(field, "with FREQ=%s, INTERVAL=%d and a start at %s none of its values is ever reached", freqNames[r.freq], r.interval, r.start.Format(time.TimeOnly))
	}
	last := r.start.Add(-time.Second)
	for n := 0; n < max(1, r.count); n++ {
		w, ok := r.find(last)
		if !ok && n == 0 && r.until.IsZero() {
			return refuse(r.dateParts(), "no date matches it")
		}
		if !ok {
			break
		}
		last = w
	}
	if r.count > 0 {
		r.until = last
	}
	return nil
}

// unreachable is the part that times within a day, that many units after each other, never
// reach: every 2 hours from 04:00 on it is never 5.
func (r *recurrence) unreachable() string {
	h, m, s := r.start.Clock()
	miss := func(list []int, from, around int) bool {
		step := gcd(r.interval, around)
		return len(list) > 0 && !slices.ContainsFunc(list, func(n int) bool { return (n-from)%step == 0 })
	}
	switch {
	case r.freq == hourly && miss(r.byHour, h, 24):
		return "BYHOUR"
	case r.freq == minutely && miss(r.byMinute, m, 60):
		return "BYMINUTE"
	case r.freq == minutely && len(r.byHour) > 0 && miss(r.minutes(), h*60+m, 1440):
		return "BYHOUR"
	case r.freq == secondly && miss(r.bySecond, s, 60):
		return "BYSECOND"
	case r.freq == secondly && len(r.byHour)+len(r.byMinute) > 0 && miss(r.seconds(), h*3600+m*60+s, 86400):
		return "BYHOUR and BYMINUTE"
	}
	return ""
}

// minutes lists the minutes of a day that BYHOUR and BYMINUTE allow.
func (r *recurrence) minutes() []int {
	var out []int
	for n := range 1440 {
		if allowed(r.byHour, n/60) && allowed(r.byMinute, n%60) {
			out = append(out, n)
		}
	}
	return out
}

// seconds lists the seconds of a day that BYHOUR, BYMINUTE and BYSECOND allow.
func (r *recurrence) seconds() []int {
	var out []int
	for _, n := range r.minutes() {
		for s := range 60 {
			if allowed(r.bySecond, s) {
				out = append(out, n*60+s)
			}
		}
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// dateParts names the parts about dates that a rule has.
func (r *recurrence) dateParts() string {
	var parts []string
	for name, has := range map[string]bool{
		"BYMONTH": len(r.byMonth) > 0, "BYWEEKNO": len(r.byWeekNo) > 0, "BYYEARDAY": len(r.byYearDay) > 0, "BYMONTHDAY": len(r.byMonthDay) > 0,
		"BYDAY": len(r.byDay) > 0, "BYSETPOS": len(r.bySetPos) > 0, "INTERVAL": r.interval > 1,
	} {
		if has {
			parts = append(parts, name)
		}
	}
	slices.Sort(parts)
	return listed(parts, "and")
}
