package api

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Launchers that fire once in each hour, day, week or month, at a moment that follows from what they are: so those of many
// do not all fire at once, and each fires at the same moment of the next month.
const (
	cozyHourly  = "@hourly"
	cozyDaily   = "@daily"
	cozyWeekly  = "@weekly"
	cozyMonthly = "@monthly"
)

var cozyPeriodic = []string{cozyHourly, cozyDaily, cozyWeekly, cozyMonthly}

// lastOfAll is the last day that each month has.
const lastOfAll = 28

// cozyWindow is when a launcher may fire.
type cozyWindow struct {
	hours []int // of the day
	days  []int // of the week, 0 is Sunday, or of the month
}

// newCozyWindow reads the arguments of a launcher, such as "on the 1-5 between 8am and 6pm".
func newCozyWindow(typ, text string) (w cozyWindow, err error) {
	words := strings.Fields(strings.ToLower(text))
	next := func() (word string) {
		if len(words) > 0 {
			word, words = words[0], words[1:]
		}
		return word
	}
	w.hours = span(0, 23)
	switch typ {
	case cozyWeekly:
		w.days = span(0, 6)
	case cozyMonthly:
		w.days = span(1, lastOfAll)
	}
	for first := true; len(words) > 0; first = false {
		word := next()
		switch {
		case typ == cozyHourly:
			return w, fmt.Errorf("%s has no arguments: leave them out", typ)
		case word == "on" && first && w.days != nil:
			if typ == cozyMonthly && next() != "the" {
				return w, fmt.Errorf("write days of the month as in: on the 1-5")
			}
			var list []string
			for len(words) > 0 && !slices.Contains([]string{"between", "before", "after"}, words[0]) {
				list = append(list, next())
			}
			if w.days, err = cozyDays(typ, strings.Join(list, " ")); err != nil {
				return w, err
			}
		case word == "between" || word == "before" || word == "after":
			from, to := 0, 24
			if word != "before" {
				from, err = clockHour(next())
			}
			if word == "between" && next() != "and" {
				return w, fmt.Errorf("write a window as in: between 8am and 6pm")
			}
			if word != "after" && err == nil {
				to, err = clockHour(next())
			}
			if err == nil && (from == to || word == "before" && to == 0) {
				err = fmt.Errorf("no time is %s these hours", word)
			}
			if err != nil {
				return w, err
			}
			if len(words) > 0 {
				return w, fmt.Errorf("nothing comes behind the hours, and %.40q does", words[0])
			}
			if to < from { // across midnight
				w.hours = append(span(0, to-1), span(from, 23)...)
			} else {
				w.hours = span(from, to-1)
			}
		default:
			return w, fmt.Errorf("%.40q is not understood: use %s", word, map[string]string{
				cozyDaily: "between 8am and 6pm, before 5am or after 10pm", cozyWeekly: "on monday and friday, between 8am and 6pm, before 5am or after 10pm",
				cozyMonthly: "on the 1-5, between 8am and 6pm, before 5am or after 10pm",
			}[typ])
		}
	}
	return w, nil
}

// cozyDays reads days of the week or of the month: single ones and ranges, with commas or "and" between them.
func cozyDays(typ, text string) (days []int, err error) {
	first, last := 0, 6
	one := func(word string) (int, error) {
		for d := time.Sunday; d <= time.Saturday; d++ {
			if name := strings.ToLower(d.String()); word == name || word == name[:3] {
				return int(d), nil
			}
		}
		return 0, fmt.Errorf("%.40q is not a day of the week", word)
	}
	if typ == cozyMonthly {
		first, last = 1, 31
		one = func(word string) (int, error) {
			n, err := strconv.Atoi(word)
			if err != nil || n < first || n > last {
				return 0, fmt.Errorf("%.40q is not a day of a month: use %d to %d", word, first, last)
			}
			return n, nil
		}
	}
	for part := range strings.FieldsFuncSeq(strings.ReplaceAll(text, " and ", ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		from, to, ranged := strings.Cut(part, "-")
		a, err := one(from)
		b := a
		if ranged && err == nil {
			b, err = one(to)
		}
		if err != nil {
			return nil, err
		}
		for d := a; ; d++ { // from Friday on to Monday, too
			if d > last && typ == cozyWeekly {
				d = first
			}
			if d > last || typ == cozyMonthly && a > b {
				return nil, fmt.Errorf("%.40q goes back: begin with the earlier day", part)
			}
			if !slices.Contains(days, d) {
				days = append(days, d)
			}
			if d == b {
				break
			}
		}
	}
	if len(days) == 0 {
		return nil, fmt.Errorf("which days? Name some behind on")
	}
	slices.Sort(days)
	if all := slices.IndexFunc(days, func(d int) bool { return d > lastOfAll }); all > 0 { // those that each month has
		days = days[:all]
	} else if all == 0 {
		days = days[:1]
	}
	return days, nil
}

// clockHour reads a full hour, such as 8am or 12pm.
func clockHour(word string) (int, error) {
	n, half := strings.CutSuffix(word, "am")
	late := 0
	if !half {
		if n, half = strings.CutSuffix(word, "pm"); half {
			late = 12
		}
	}
	hour, err := strconv.Atoi(n)
	if !half || err != nil || hour < 1 || hour > 12 {
		return 0, fmt.Errorf("%.40q is not an hour: use one such as 8am or 12pm", word)
	}
	return hour%12 + late, nil
}

// span are the numbers from one to another.
func span(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// cozySlot is the cron expression of a launcher that fires once in each period: the same for the same words that say what it is.
func cozySlot(typ, text string, what ...string) (string, error) {
	w, err := newCozyWindow(typ, text)
	if err != nil {
		return "", err
	}
	seed := sha256.Sum256([]byte(strings.Join(append(what, typ, text), "\x00")))
	pick := func(part int, from []int) string {
		n := binary.BigEndian.Uint32(seed[4*part:])
		return strconv.Itoa(from[int(n%uint32(len(from)))]) //nolint:gosec // of a few
	}
	second, minute, hour, month, week := pick(0, span(0, 59)), pick(1, span(0, 59)), "*", "*", "*"
	if typ != cozyHourly {
		hour = pick(2, w.hours)
	}
	switch typ {
	case cozyMonthly:
		month = pick(3, w.days)
	case cozyWeekly:
		week = pick(3, w.days)
	}
	return strings.Join([]string{second, minute, hour, month, "*", week}, " "), nil
}
