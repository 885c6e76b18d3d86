package schedule

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// vocabulary is what a word may have been meant to be.
var vocabulary = []string{
	"every", "each", "in", "at", "on", "the", "of", "and", "to", "now", "after", "this", "through", "until", "today", "tomorrow", "next", "noon", "midnight", "daily", "weekly", "monthly", "yearly", "other",
	"second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years",
	"weekday", "weekdays", "weekend", "first", "last", "am", "pm",
	"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
	"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
}

var (
	counts = []string{
		"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
	}
	ordinals = []string{"zeroth", "first", "second", "third", "fourth", "fifth"}
)

// weekdayOf reads the name of a weekday, whole or its first three letters or more.
func weekdayOf(w string) (int, bool) { return prefixed(w, 7, weekdayWord) }

// monthOf is the same for months.
func monthOf(w string) (int, bool) {
	n, ok := prefixed(w, 12, func(i int) string { return monthWord(i + 1) })
	return n + 1, ok
}

func prefixed(w string, n int, name func(int) string) (int, bool) {
	w = strings.TrimSuffix(w, ".")
	for i := range n {
		full := strings.ToLower(name(i))
		if w == full || w == full[:3] || len(w) > 3 && len(w) < 6 && strings.HasPrefix(full, w) {
			return i, true
		}
	}
	return 0, false
}

// ordinalOf reads 1st, first, or last, which is -1.
func ordinalOf(w string) (int, bool) {
	if w == "last" {
		return -1, true
	}
	if i := slices.Index(ordinals, w); i > 0 {
		return i, true
	}
	if len(w) < 3 || len(w) > 4 {
		return 0, false
	}
	n, ok := number(w[:len(w)-2])
	return n, ok && n > 0 && w == ordinal(n)
}

// count reads a number of units: 5, five, a, an, other.
func (s *sentence) count() (int, bool) {
	w := s.peek()
	n, ok := number(w)
	if i := slices.Index(counts, w); i >= 0 {
		n, ok = i, true
	}
	switch {
	case ok && n > 0:
		s.at++
		return n, true
	case s.take("a", "an"):
		return 1, true
	case s.take("other"):
		return 2, true
	}
	return 1, false
}

// spans of time.
type spanOf struct {
	months, days int
	time         time.Duration
}

// unitOf reads a unit, in singular, plural or as a letter.
func unitOf(w string) (spanOf, bool) {
	switch strings.TrimSuffix(w, "s") {
	case "second", "sec", "":
		return spanOf{time: time.Second}, w != ""
	case "minute", "min", "m":
		return spanOf{time: time.Minute}, true
	case "hour", "hr", "h":
		return spanOf{time: time.Hour}, true
	case "day", "d":
		return spanOf{days: 1}, true
	case "week", "w":
		return spanOf{days: 7}, true
	case "month":
		return spanOf{months: 1}, true
	case "year":
		return spanOf{months: 12}, true
	}
	return spanOf{}, false
}

// maxSpan is how many units of time a sentence may have.
const maxSpan = 100_000

// span reads a span of time: "5 minutes", "2 hours and 30 minutes", "1h30m".
func (s *sentence) span() (spanOf, *Error) {
	const use = "use a number and a unit, such as 5 minutes, an hour or 1h30m"
	var sum spanOf
	for {
		w := s.peek()
		if d, err := time.ParseDuration(w); err == nil && d > 0 && d <= longest && w != "" && strings.Trim(w, "0123456789.") != "" {
			s.at++
			sum.time += d
		} else {
			n, ok := s.count()
			if !ok {
				return sum, s.lost(use)
			}
			u, ok := unitOf(s.peek())
			if !ok {
				return sum, s.lost("use second, minute, hour, day, week, month or year")
			}
			if n > maxSpan {
				return sum, refuse("", "%d is too many: at most %d", n, maxSpan)
			}
			s.at++
			sum.months, sum.days, sum.time = sum.months+n*u.months, sum.days+n*u.days, sum.time+time.Duration(n)*u.time
		}
		if sum.months > maxSpan || sum.days > maxSpan || sum.time > longest {
			return sum, refuse("", "that is too long")
		}
		if mark := s.at; !s.take("and", ",") {
			return sum, nil
		} else if _, err := time.ParseDuration(s.peek()); err != nil && !s.counts() {
			s.at = mark
			return sum, nil
		}
	}
}

// counts tells whether a number of units comes next.
func (s *sentence) counts() bool {
	mark := s.at
	_, ok := s.count()
	s.at = mark
	return ok
}

// times reads times of day: "at 9am and 5pm", "noon". Without one it returns nil, or an
// error if there has to be one.
func (s *sentence) times(need bool) ([]time.Duration, *Error) {
	const use = "use a time, such as 9am, 9:30pm, 17:30, noon or midnight"
	at := s.take("at")
	var out []time.Duration
	for {
		t, ok, err := s.time(at || need)
		if err != nil {
			return nil, err
		}
		if !ok {
			if at || need || len(out) > 0 {
				return nil, s.lost(use)
			}
			return nil, nil
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
		mark := s.at
		for s.take(",", "and") {
		}
		if s.at == mark {
			return out, nil
		}
		s.take("at")
	}
}

// time reads one time of day. A number alone is one only where there has to be one, and then
// it says too little.
func (s *sentence) time(need bool) (time.Duration, bool, *Error) {
	w := s.peek()
	switch {
	case s.take("noon"):
		return 12 * time.Hour, true, nil
	case s.take("midnight"):
		return 0, true, nil
	case w == "" || w[0] < '0' || w[0] > '9':
		return 0, false, nil
	}
	clock, half := w, ""
	for _, suffix := range []string{"am", "pm"} {
		if c, ok := strings.CutSuffix(w, suffix); ok {
			clock, half = c, suffix
		}
	}
	used := 1
	if half == "" && s.at+1 < len(s.words) && slices.Contains([]string{"am", "pm"}, s.words[s.at+1]) {
		half, used = s.words[s.at+1], 2
	}
	parts := strings.Split(clock, ":")
	var n [3]int
	for i, p := range parts {
		v, ok := number(p)
		if !ok || i > 2 || i > 0 && len(p) != 2 {
			return 0, false, nil
		}
		n[i] = v
	}
	if len(parts) == 1 && half == "" {
		if need {
			return 0, false, s.lost("is that before or after noon? Write %sam, %spm or a time such as 17:00", clock, clock)
		}
		return 0, false, nil
	}
	most := 23
	if half != "" {
		most = 12
	}
	if n[0] > most || half != "" && n[0] == 0 || n[1] > 59 || n[2] > 59 {
		return 0, false, s.lost("there is no such time of day")
	}
	switch half {
	case "am":
		n[0] %= 12
	case "pm":
		n[0] = n[0]%12 + 12
	}
	s.at += used
	return time.Duration(n[0])*time.Hour + time.Duration(n[1])*time.Minute + time.Duration(n[2])*time.Second, true, nil
}

// monthDay reads a day of a month: "march 12", "the 12th of march", "the 15th". Month is 0 if
// there is none. Without one it reads nothing.
func (s *sentence) monthDay() (month, day int, ok bool) {
	mark := s.at
	s.take("the")
	month, named := monthOf(s.peek())
	if named {
		s.at++
		s.take("the")
	}
	w := s.peek()
	day, isOrdinal := ordinalOf(w)
	if !isOrdinal {
		day, ok = number(w)
	}
	if !isOrdinal && !ok || day < 1 || day > 31 {
		s.at = mark
		return 0, 0, false
	}
	s.at++
	if named {
		return month, day, true
	}
	behind := s.at
	s.take("of")
	if month, named = monthOf(s.peek()); named {
		s.at++
		return month, day, true
	}
	s.at = behind
	if !isOrdinal { // a number alone is no day
		s.at = mark
		return 0, 0, false
	}
	return 0, day, true
}

// joined writes sorted numbers with commas, and three or more in a row as a range.
func joined(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		if k-i < 2 {
			k = i
			parts = append(parts, strconv.Itoa(list[i]))
		} else {
			parts = append(parts, strconv.Itoa(list[i])+"-"+strconv.Itoa(list[k]))
		}
		i = k + 1
	}
	return strings.Join(parts, ",")
}
