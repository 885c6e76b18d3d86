package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// repeatRule is a moment of the last run, and what is done to it.
type repeatRule struct {
	base  string
	steps []modifier
	loc   *time.Location
}

// modifier changes a time, as SQLite's modifiers of the same names do.
type modifier struct {
	op   string // add, start, weekday
	unit string
	n    int
}

// The words of the language.
var (
	bases     = []string{"SCHEDULED", "STARTED", "FINISHED"}
	units     = []string{"SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"}
	startable = []string{"HOUR", "DAY", "MONTH", "YEAR"}

	// canned are schedules that have a name.
	canned = map[string]string{"HOURLY": "FINISHED, + 1 HOUR", "DAILY": "FINISHED, + 1 DAY", "WEEKLY": "FINISHED, + 7 DAYS"}
)

// parseRepeat reads a base and its modifiers.
func parseRepeat(text string, loc *time.Location) (rule, *Error) {
	whole := strings.ToUpper(strings.TrimSpace(text))
	parts := strings.Split(cmp.Or(canned[whole], whole), ",")
	r := &repeatRule{base: strings.TrimSpace(parts[0]), loc: loc}
	if !slices.Contains(bases, r.base) {
		e := refuse("base", "%s is not understood: begin with SCHEDULED, STARTED or FINISHED and a comma, or use HOURLY, DAILY or WEEKLY alone", quote(strings.TrimSpace(parts[0])))
		e.Word, e.Known = r.base, append([]string{"HOURLY", "DAILY", "WEEKLY"}, bases...)
		return nil, e
	}
	if len(parts) < 2 {
		return nil, refuse("modifier", "%s alone does not say when: add a modifier, such as %s, +1 HOUR", r.base, r.base)
	}
	for _, p := range parts[1:] {
		m, err := parseModifier(p)
		if err != nil {
			return nil, err
		}
		r.steps = append(r.steps, m)
	}
	return r, nil
}

// parseModifier reads one modifier in capitals.
func parseModifier(text string) (modifier, *Error) {
	text = strings.TrimSpace(text)
	parts := strings.Fields(text)
	if text == "" {
		return modifier{}, refuse("modifier", "there is none between two commas, or after the last")
	}
	switch {
	case text[0] == '+' || text[0] == '-':
		return parseShift(text)
	case parts[0] == "WEEKDAY":
		if len(parts) == 2 {
			if n, ok := number(parts[1]); ok && n <= 6 {
				return modifier{op: "weekday", n: n}, nil
			}
		}
		return modifier{}, refuse("modifier", "%s: use WEEKDAY 0 (Sunday) to WEEKDAY 6 (Saturday)", quote(text))
	case parts[0] == "START":
		if len(parts) == 3 && parts[1] == "OF" {
			if !slices.Contains(startable, parts[2]) {
				return modifier{}, unknown("modifier", parts[2], "has no start", startable)
			}
			return modifier{op: "start", unit: parts[2]}, nil
		}
		return modifier{}, refuse("modifier", "%s: use START OF %s", quote(text), listed(startable, "or"))
	case text[0] >= '0' && text[0] <= '9':
		return modifier{}, refuse("modifier", "%s has no sign: did you mean +%s?", quote(text), text)
	}
	return modifier{}, unknown("modifier", text, "is not understood", []string{"+1 HOUR", "START OF DAY", "WEEKDAY 1"})
}

// parseShift reads a sign, a number and a unit.
func parseShift(text string) (modifier, *Error) {
	parts := strings.Fields(text[1:])
	if len(parts) != 2 {
		return modifier{}, refuse("modifier", "%s: use a sign, a number and a unit, such as +1 HOUR", quote(text))
	}
	n, ok := number(parts[0])
	if !ok || n > maxShift {
		return modifier{}, refuse("modifier", "%s in %s is not a whole number from 0 to %d", quote(parts[0]), quote(text), maxShift)
	}
	unit := strings.TrimSuffix(parts[1], "S")
	if !slices.Contains(units, unit) || strings.HasSuffix(unit, "S") {
		if unit == "WEEK" {
			return modifier{}, refuse("modifier", "%s is not a unit: did you mean %c%d DAYS?", parts[1], text[0], 7*n)
		}
		return modifier{}, unknown("modifier", parts[1], "is not a unit", units)
	}
	if text[0] == '-' {
		n = -n
	}
	return modifier{op: "add", unit: unit, n: n}, nil
}

// maxShift is how many units a modifier may move: no sum of them overflows.
const maxShift = 99_999_999

// next implements rule.
func (r *repeatRule) next(m Moments) (time.Time, bool) {
	base := m.Finished
	switch r.base {
	case "SCHEDULED":
		base = m.Scheduled
	case "STARTED":
		base = m.Started
	}
	if base.IsZero() {
		base = m.Now
	}
	t := base.In(r.loc).Truncate(time.Second)
	set := false // START OF has set the time of day: hours move the clock, not the time that passes
	for _, step := range r.steps {
		t = step.apply(t, r.loc, set)
		set = set || step.op == "start"
		if y := t.Year(); y < 0 || y > horizon.Year() {
			return time.Time{}, false
		}
	}
	return t, true
}

// apply changes a time. A day, month or year keeps the time on the clock.
func (m modifier) apply(t time.Time, loc *time.Location, set bool) time.Time {
	w := wallOf(t, loc)
	switch {
	case m.op == "weekday":
		w = w.AddDate(0, 0, (m.n-int(w.Weekday())+7)%7)
	case m.op == "start":
		w = startOf(w, m.unit)
	case m.unit == "YEAR":
		w = w.AddDate(m.n, 0, 0)
	case m.unit == "MONTH":
		w = w.AddDate(0, m.n, 0)
	case m.unit == "DAY":
		w = w.AddDate(0, 0, m.n)
	default:
		d := time.Duration(m.n) * map[string]time.Duration{"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour}[m.unit]
		if !set {
			return t.Add(d)
		}
		w = w.Add(d)
	}
	if w.Year() > horizon.Year() || w.Year() < 0 {
		return w
	}
	t, _ = onClock(w, loc)
	return t
}

// startOf goes back to the start of a unit.
func startOf(w time.Time, unit string) time.Time {
	year, month, day := w.Date()
	switch unit {
	case "YEAR":
		return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	case "MONTH":
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	case "DAY":
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	}
	return w.Truncate(time.Hour)
}

// check implements rule.
func (r *repeatRule) check(now time.Time) *Error {
	if _, ok := r.next(Moments{Now: now}); !ok {
		return refuse("modifier", "the time it leads to is not in the years 0 to %d", horizon.Year())
	}
	return nil
}

// understood implements rule.
func (r *repeatRule) understood() string {
	var b strings.Builder
	b.WriteString("when the last run " + map[string]string{"SCHEDULED": "was due", "STARTED": "started", "FINISHED": "finished"}[r.base])
	for _, m := range r.steps {
		b.WriteString(", " + m.english())
	}
	if r.loc != time.UTC {
		b.WriteString(", on the clock" + zoneWord(r.loc))
	}
	return b.String()
}

func (m modifier) english() string {
	switch m.op {
	case "weekday":
		return "then forward to " + time.Weekday(m.n).String()
	case "start":
		return "then back to the start of the " + strings.ToLower(m.unit)
	}
	if m.n < 0 {
		return "minus " + amount(-m.n, strings.ToLower(m.unit))
	}
	return "plus " + amount(m.n, strings.ToLower(m.unit))
}

// amount is a number of units.
func amount(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
