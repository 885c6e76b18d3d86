package schedule

import (
	"strings"
	"time"
)

// interval fires again and again after the same time.
type interval time.Duration

// day is one on which clocks are not changed.
const day = 24 * time.Hour

// longest is the longest interval: a hundred years.
const longest = 100 * 365 * day

// parseEvery reads a Go duration of whole seconds.
func parseEvery(text string) (rule, *Error) {
	const use = "use hours, minutes and seconds, such as 1h30m, 1.5h or 90s"
	body := strings.TrimLeft(strings.TrimSpace(text), "+-")
	rest := strings.TrimLeft(body, "0123456789.hms")
	switch {
	case body == "":
		return nil, refuse("", "there is no duration: %s", use)
	case rest != "":
		hint := ""
		if strings.HasPrefix(rest, "d") || strings.HasPrefix(rest, "w") {
			hint = "; " + daysAdvice(body)
		}
		e := refuse("", "%s is not understood: %s%s", quote(rest), use, hint)
		e.Word = rest
		return nil, e
	case strings.Contains(body, "ms"):
		return nil, refuse("", "milliseconds are not allowed: %s", use)
	}
	d, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil && strings.Trim(body, "0123456789.") == "":
		return nil, refuse("", "it has no unit: did you mean %ss or %sm?", body, body)
	case err != nil:
		return nil, refuse("", "it is not a duration: %s", use)
	case d < time.Second:
		return nil, refuse("", "%s is too short: at least 1s", d)
	case d > longest:
		return nil, refuse("", "%s is too long: at most %s", short(d), short(longest))
	case d%time.Second != 0:
		return nil, refuse("", "%s is not a whole number of seconds", d)
	}
	return interval(d), nil
}

// daysAdvice is what to write for an interval with days or weeks.
func daysAdvice(text string) string {
	s := sentence{words: wordsOf(text)}
	if sum, err := s.span(); err == nil && s.at == len(s.words) && sum.days <= maxEvery {
		return "write " + short(time.Duration(sum.days)*day+sum.time) + ", or in English: every " + text
	}
	return "a day is 24h, or the schedule cron:0 0 * * *, or in English: every 2 days"
}

// next implements rule.
func (i interval) next(m Moments) (time.Time, bool) {
	d := time.Duration(i)
	if m.Scheduled.IsZero() {
		return m.Now.Add(d), true
	}
	steps := max(0, m.Now.Sub(m.Scheduled)/d)
	return m.Scheduled.Add(steps * d).Add(d), true
}

// check implements rule.
func (interval) check(time.Time) *Error { return nil }

// understood implements rule.
func (i interval) understood() string { return "every " + short(time.Duration(i)) }

// short is a duration without the units that are zero.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
