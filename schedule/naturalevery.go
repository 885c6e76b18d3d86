package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// every reads what comes again and again, behind the word. Times that stood before it are given.
func (s *sentence) every(times []time.Duration) (Kind, string, *Error) {
	if kind, text, err := s.ordinals(times); kind != "" || err != nil {
		return kind, text, err
	}
	if _, ok := ordinalOf(s.peek()); ok && s.peek() != "second" {
		return "", "", s.lost("add of the month, as in every 2nd tuesday of the month, or use a number, as in every 2 weeks on monday")
	}
	if days, ok, err := s.weekdays(); ok || err != nil {
		if err != nil {
			return "", "", err
		}
		return s.onDays(days, times)
	}
	if _, ok := monthOf(s.peek()); ok {
		return s.yearly(times)
	}
	if d, err := time.ParseDuration(s.peek()); err == nil && d > 0 {
		return s.interval(times)
	}
	mark := s.at
	if sum, compound := s.compound(); compound && sum.months == 0 {
		if s.at = mark; sum.time > 0 {
			return s.interval(times)
		}
		_, _ = s.span()
		return s.everyDays(sum.days, times)
	}
	n, counted := s.count()
	if _, weekday := weekdayOf(s.peek()); counted && weekday {
		return s.weekly(n, times)
	}
	u, ok := unitOf(s.peek())
	switch {
	case !ok && s.at > mark:
		return "", "", s.lost("use second, minute, hour, day, week, month or year")
	case !ok:
		return "", "", s.lost("use a weekday, weekday, weekend, day, week, month, or a number and a unit, such as every 2 hours")
	case u.time > 0:
		if s.at == mark {
			s.words = slices.Insert(slices.Clone(s.words), s.at, "1")
		}
		s.at = mark
		return s.interval(times)
	}
	s.at++
	if n > maxEvery {
		return "", "", tooMany(n)
	}
	switch {
	case u.days == 1:
		return s.everyDays(n, times)
	case u.days == 7:
		return s.weekly(n, times)
	case u.months == 1:
		return s.monthly(n, times)
	case n > 1:
		return "", "", refuse("", "every %d years is not understood: use a recurrence rule, such as FREQ=YEARLY;INTERVAL=%d", n, n)
	}
	return s.yearly(times)
}

// maxEvery is of how many days, weeks and months an interval is at most.
const maxEvery = 1000

func tooMany(n int) *Error { return refuse("", "%d is too many: at most %d", n, maxEvery) }

// compound tells whether a span of more than one unit comes next, such as 1d12h, and which.
func (s *sentence) compound() (spanOf, bool) {
	mark := s.at
	defer func() { s.at = mark }()
	sum, err := s.span()
	return sum, err == nil && slices.ContainsFunc(s.words[mark:s.at], func(word string) bool { return word == "," || word == "and" })
}

// interval reads days, hours, minutes and seconds. Days of an interval have 24 hours: with others it has no time of day.
func (s *sentence) interval(times []time.Duration) (Kind, string, *Error) {
	sum, err := s.span()
	if err != nil {
		return "", "", err
	}
	switch {
	case sum.months > 0 || times != nil:
		return "", "", refuse("", "an interval has weeks, days, hours, minutes and seconds only, and no time of day")
	case sum.days > maxEvery:
		return "", "", tooMany(sum.days)
	}
	if s.at < len(s.words) {
		return "", "", s.lost("nothing can follow an interval; a cron expression can say more, such as 0 */2 * * MON-FRI")
	}
	return Every, short(time.Duration(sum.days)*day + sum.time), nil
}

// weekdays reads a list of weekdays: "monday and friday", "mon to fri", "weekday".
func (s *sentence) weekdays() ([]int, bool, *Error) {
	switch {
	case s.take("weekday", "weekdays", "workday", "workdays"):
		return []int{1, 2, 3, 4, 5}, true, nil
	case s.take("weekend", "weekends"):
		return []int{0, 6}, true, nil
	}
	first, ok := weekdayOf(s.peek())
	if !ok {
		return nil, false, nil
	}
	s.at++
	days := []int{first}
	for {
		mark := s.at
		if s.take("to", "through", "until", "-") {
			last, ok := weekdayOf(s.peek())
			if !ok {
				return nil, false, s.lost("use a weekday, such as monday to friday")
			}
			s.at++
			for w := days[len(days)-1]; w != last; {
				w = (w + 1) % 7
				days = append(days, w)
			}
			continue
		}
		for s.take(",", "and") {
		}
		next, ok := weekdayOf(s.peek())
		if !ok && s.at > mark {
			return nil, false, s.lost("use a weekday here, such as monday and friday")
		}
		if !ok {
			slices.Sort(days)
			return slices.Compact(days), true, nil
		}
		if s.at == mark {
			return nil, false, s.lost("put and, or a comma, between weekdays")
		}
		s.at++
		days = append(days, next)
	}
}

// plural reads schedules without "every": "weekdays at 9am", "mondays and fridays at noon".
func (s *sentence) plural(times []time.Duration) (Kind, string, *Error) {
	s.take("on")
	w := s.peek()
	name, ok := strings.CutSuffix(w, "s")
	_, isDay := weekdayOf(name)
	if !ok || len(name) < 6 || !isDay && name != "weekday" && name != "weekend" && name != "workday" {
		if s.at > 0 && s.words[s.at-1] == "on" {
			s.at--
		}
		return "", "", nil
	}
	s.words = slices.Clone(s.words)
	for i := s.at; i < len(s.words); i++ {
		if name, ok := strings.CutSuffix(s.words[i], "s"); ok {
			if _, isDay := weekdayOf(name); isDay && len(name) >= 6 {
				s.words[i] = name
			}
		}
	}
	days, _, err := s.weekdays()
	if err != nil {
		return "", "", err
	}
	return s.onDays(days, times)
}

// onDays is a cron expression for days of the week; nil is each day.
func (s *sentence) onDays(days []int, times []time.Duration) (Kind, string, *Error) {
	on := "*"
	if days != nil {
		on = joined(days)
	}
	return s.cron("*", "*", on, times)
}

// cron is an expression for the times that come next, or were given; midnight if there are none.
func (s *sentence) cron(day, month, weekday string, times []time.Duration) (Kind, string, *Error) {
	times, err := s.timesOr(times)
	if err != nil {
		return "", "", err
	}
	var hours []int
	for _, t := range times {
		if t%time.Hour != times[0]%time.Hour {
			return "", "", refuse("time", "%s and %s differ in more than the hour: use two schedules", timeWord(times[0]), timeWord(t))
		}
		hours = append(hours, int(t.Hours()))
	}
	slices.Sort(hours)
	rest := times[0] % time.Hour
	return Cron, fmt.Sprintf("%d %d %s %s %s %s", int(rest.Seconds())%60, int(rest.Minutes()), joined(hours), day, month, weekday), nil
}

// timesOr reads times of day, if none were given; midnight if there are none.
func (s *sentence) timesOr(times []time.Duration) ([]time.Duration, *Error) {
	if times != nil {
		return times, nil
	}
	if s.at == len(s.words) {
		return []time.Duration{0}, nil
	}
	s.take(",")
	if s.peek() != "at" {
		return nil, s.lost("use at and a time, such as at 9am, or nothing for midnight")
	}
	return s.times(true)
}

// rrule is a recurrence rule that begins at the first time that comes.
func (s *sentence) rrule(rule string, interval int, times []time.Duration) (Kind, string, *Error) {
	times, err := s.timesOr(times)
	if err != nil {
		return "", "", err
	}
	if len(times) > 1 {
		return "", "", refuse("time", "give one time, or use two schedules")
	}
	t := times[0]
	rule += fmt.Sprintf(";BYHOUR=%d;BYMINUTE=%d;BYSECOND=%d", int(t.Hours()), int(t.Minutes())%60, int(t.Seconds())%60)
	first, _, err := parseRRule(rule, s.zone, s.loc, s.now)
	if err != nil {
		return "", "", err
	}
	start, ok := first.(*recurrence).find(s.here)
	if !ok {
		return "", "", refuse("", "there is no such day")
	}
	if interval > 1 {
		rule += fmt.Sprintf(";INTERVAL=%d", interval)
	}
	return RRule, "DTSTART:" + start.Format(icalTime) + "\nRRULE:" + rule, nil
}

// everyDays reads the times of every n days.
func (s *sentence) everyDays(n int, times []time.Duration) (Kind, string, *Error) {
	switch {
	case n > maxEvery:
		return "", "", tooMany(n)
	case n == 1:
		return s.onDays(nil, times)
	}
	return s.rrule("FREQ=DAILY", n, times)
}

// weekly reads every n weeks on some days; without them it is the weekday of now.
func (s *sentence) weekly(n int, times []time.Duration) (Kind, string, *Error) {
	days := []int{int(s.here.Weekday())}
	if _, weekday := weekdayOf(s.peek()); weekday || s.take("on") {
		list, ok, err := s.weekdays()
		if err != nil {
			return "", "", err
		}
		if !ok {
			return "", "", s.lost("use weekdays, such as on monday and friday")
		}
		days = list
	}
	if n == 1 {
		return s.onDays(days, times)
	}
	codes := make([]string, len(days))
	for i, d := range days {
		codes[i] = dayCodes[d]
	}
	return s.rrule("FREQ=WEEKLY;BYDAY="+strings.Join(codes, ","), n, times)
}

// monthly reads every n months on a day, or on the n-th of a weekday.
func (s *sentence) monthly(n int, times []time.Duration) (Kind, string, *Error) {
	const use = "say on which day, such as on the 1st, on the 1st and the 15th, on the last day or on the 2nd tuesday"
	if !s.take("on") {
		return "", "", s.lost(use)
	}
	s.take("day", "days")
	var days []int
	for {
		s.take("the")
		d, ok := ordinalOf(s.peek())
		if !ok {
			d, ok = number(s.peek())
		}
		if !ok || d == 0 || d > 31 {
			return "", "", s.lost(use)
		}
		s.at++
		if w, ok := weekdayOf(s.peek()); ok && days == nil {
			s.at++
			return s.rrule(fmt.Sprintf("FREQ=MONTHLY;BYDAY=%d%s", d, dayCodes[w]), n, times)
		}
		s.take("day")
		days = append(days, d)
		mark := s.at
		for s.take(",", "and") {
		}
		if s.at == mark {
			break
		}
	}
	slices.Sort(days)
	days = slices.Compact(days)
	if n == 1 && days[0] > 0 {
		return s.cron(joined(days), "*", "*", times)
	}
	list := make([]string, len(days))
	for i, d := range days {
		list[i] = strconv.Itoa(d)
	}
	return s.rrule("FREQ=MONTHLY;BYMONTHDAY="+strings.Join(list, ","), n, times)
}

// ordinals reads "first monday of every month", "the last day of the month", "15th of each month"; nothing if
// it is something else.
func (s *sentence) ordinals(times []time.Duration) (Kind, string, *Error) {
	mark := s.at
	s.take("on")
	s.take("the")
	rule := ""
	if n, ok := ordinalOf(s.peek()); ok && n <= 31 {
		s.at++
		rule = fmt.Sprintf("FREQ=MONTHLY;BYMONTHDAY=%d", n)
		if w, ok := weekdayOf(s.peek()); ok {
			s.at++
			rule = fmt.Sprintf("FREQ=MONTHLY;BYDAY=%d%s", n, dayCodes[w])
		} else {
			s.take("day")
		}
	}
	if rule == "" || !s.take("of") || !s.take("the", "each", "every") || !s.take("month") {
		s.at = mark
		return "", "", nil
	}
	return s.rrule(rule, 1, times)
}

// yearly reads a day of the year.
func (s *sentence) yearly(times []time.Duration) (Kind, string, *Error) {
	s.take("on")
	month, day, ok := s.monthDay()
	if !ok || month == 0 {
		return "", "", s.lost("use a day of the year, such as march 12")
	}
	return s.cron(fmt.Sprint(day), fmt.Sprint(month), "*", times)
}
