package schedule

import (
	"strings"
	"time"
)

// moment fires once.
type moment struct{ t time.Time }

// latePast is how long ago the moment of a new schedule may be: it fires at once.
const latePast = 24 * time.Hour

// layouts of moments that are in the schedule's zone.
var layouts = []string{
	"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly,
}

// parseAt reads RFC 3339, or a date and time in the zone.
func parseAt(text string, loc *time.Location) (rule, *Error) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return within(t.In(loc))
	}
	for _, layout := range layouts {
		w, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		t, gap := onClock(w, loc)
		if gap > 0 {
			return nil, refuse("time", "%s does not exist in %s: clocks are put forward there by %s", w.Format("15:04:05"), loc, short(gap))
		}
		return within(t)
	}
	return nil, refuse("", "it is not a moment: use RFC 3339, such as 2026-03-12T07:00:00Z, or a date and time in the zone, such as 2026-03-12 07:00")
}

// within refuses years that RFC 3339 cannot write.
func within(t time.Time) (rule, *Error) {
	if y := t.UTC().Year(); y < 1 || y > horizon.Year() {
		return nil, refuse("year", "%d is out of range", y)
	}
	return moment{t.Truncate(time.Millisecond)}, nil // what follows a schedule keeps milliseconds: it would come again and again behind them
}

// next implements rule.
func (a moment) next(m Moments) (time.Time, bool) {
	if !m.Scheduled.IsZero() && !m.Scheduled.Before(a.t) {
		return time.Time{}, false
	}
	return a.t, true
}

// check implements rule.
func (a moment) check(now time.Time) *Error {
	if late := now.Sub(a.t); late > latePast {
		return refuse("", "%s has passed: it may be at most %s ago, and then fires at once", a.t.Format(time.RFC3339), short(latePast))
	}
	return nil
}

// understood implements rule.
func (a moment) understood() string {
	return "once, on " + a.t.Format("Monday 2 January 2006 at 15:04:05") + zoneWord(a.t.Location())
}

// zoneWord names a zone behind a time.
func zoneWord(loc *time.Location) string {
	if loc == time.UTC {
		return " UTC"
	}
	return " in " + loc.String()
}
