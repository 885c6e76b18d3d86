package schedule_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/weirworks/weir/schedule"
)

// base is Tuesday 10 March 2026.
var base = at("2026-03-10T13:45:30Z")

// at reads a moment: RFC 3339, or a date and time in UTC.
func at(text string) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	panic("no moment: " + text)
}

func parse(t *testing.T, kind Kind, text, zone string, now time.Time) Schedule {
	t.Helper()
	s, err := Parse(kind, text, zone, now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// firstOf lists the first n times.
func firstOf(s Schedule, m Moments, n int) []time.Time {
	var out []time.Time
	for t := range s.Upcoming(m) {
		if out = append(out, t); len(out) == n {
			break
		}
	}
	return out
}

// comes checks the next times of a schedule.
func comes(t *testing.T, s Schedule, m Moments, want ...string) {
	t.Helper()
	got := firstOf(s, m, len(want))
	if len(got) != len(want) {
		t.Fatalf("%s comes %d times, %v, want %v", s, len(got), got, want)
	}
	for i := range want {
		if !got[i].Equal(at(want[i])) {
			t.Errorf("%s: time %d is %s, want %s", s, i+1, got[i].Format(time.RFC3339), want[i])
		}
	}
}

// never checks that there is no next time.
func never(t *testing.T, s Schedule, m Moments) {
	t.Helper()
	if next, ok := s.Next(m); ok {
		t.Errorf("%s comes at %s", s, next)
	}
}

// refused checks that a text is refused, in a field, with a reason that has some words.
func refused(t *testing.T, kind Kind, text, zone, field, words string) {
	t.Helper()
	_, err := Parse(kind, text, zone, base)
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%s:%s is not refused: %v", kind, text, err)
		return
	}
	if e.Field != field || !strings.Contains(e.Reason, words) || e.Kind != kind || e.Text != text {
		t.Errorf("%s:%s: field %q, %v; want field %q and %q", kind, text, e.Field, err, field, words)
	}
}

// every dialect, with something that comes.
var samples = map[Kind][]string{
	Cron:    {"0 0 1 1 *", "*/5 * * * * *", "@daily", "3-59/15 9-17 * * MON,wed"},
	Cron7:   {"* * * 0/2,3 9-17 * */5", "2028 2 29 * 0 0 0"},
	Every:   {"1.5h", "90s"},
	Repeat:  {"FINISHED, +1 DAY, START OF DAY, +4 HOURS", "daily", "scheduled,+1 month"},
	At:      {"2026-03-12T07:00:00+02:00", "2026-03-12 07:00"},
	RRule:   {"FREQ=DAILY", "DTSTART:20260101T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=50\nEXDATE:20260316T090000Z", "freq=monthly;byday=-1fr"},
	Natural: {"every weekday at 9am", "in 5 minutes", "every 2 weeks on monday at 9:30", "every 90s"},
}

// TestStored: a schedule is the same after it was stored, without a clock.
func TestStored(t *testing.T) {
	t.Parallel()
	if len(samples) != len(Kinds()) {
		t.Fatal("a dialect has no samples")
	}
	for kind, texts := range samples {
		for _, text := range texts {
			for _, zone := range []string{"", "Europe/Berlin"} {
				if kind == Cron7 && zone != "" || strings.Contains(text, "Z\n") && zone != "" {
					continue
				}
				s := parse(t, kind, text, zone, base)
				raw, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				var back Schedule
				if err := json.Unmarshal(raw, &back); err != nil {
					t.Fatalf("%s: %v", raw, err)
				}
				m := Moments{Now: base.AddDate(0, 1, 3)}
				if got, want := firstOf(back, m, 5), firstOf(s, m, 5); !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Errorf("%s: comes at %v, before it was stored at %v", raw, got, want)
				}
				if back.Kind() != kind || back.Text() != text || back.Zone() != zone || back.Understood() != s.Understood() || back.Resolved() != s.Resolved() || back.String() != string(kind)+":"+text {
					t.Errorf("%s became %#v", raw, back)
				}
			}
		}
	}
}

// TestStoredExpired: what has passed can still be read.
func TestStoredExpired(t *testing.T) {
	t.Parallel()
	s := parse(t, Cron7, "2013 * * * * * *", "", at("2013-01-01"))
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"schedule":"cron7:2013 * * * * * *"}`; string(raw) != want {
		t.Errorf("got %s, want %s", raw, want)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	never(t, s, Moments{Now: base})
	for _, bad := range []string{
		`{"schedule":"daily"}`, `{"schedule":"corn:* * * * *"}`, `{"schedule":"cron:* * * *"}`, `7`, `{"schedule":"natural:in 5 minutes"}`,
		`{"schedule":"natural:x","resolved":"natural:in 5 minutes"}`, `{"schedule":"every:1h","zone":"Mars/Olympus"}`, `{"schedule":"rrule:FREQ=DAILY"}`,
	} {
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s is read as %v", bad, s)
		}
	}
}

// TestZero: the zero schedule never comes, and is null in JSON.
func TestZero(t *testing.T) {
	t.Parallel()
	var s Schedule
	never(t, s, Moments{Now: base})
	raw, err := json.Marshal(s)
	if err != nil || string(raw) != "null" {
		t.Errorf("%s, %v", raw, err)
	}
	if err := json.Unmarshal(raw, &s); err != nil || !s.IsZero() || s.String() != "" || s.Understood() != "never" {
		t.Errorf("%#v, %v", s, err)
	}
}

// TestRefused: a text that is not understood is refused with the field, and says what would be right.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind                     Kind
		text, zone, field, words string
	}{
		{"corn", "* * * * *", "", "", "use cron, cron7"},
		{Cron, "* * * * *", "Mars/Olympus", "zone", "Europe/Berlin"},
		{Cron, "* * * * *", "Local", "zone", "not a time zone"},
		{Cron, strings.Repeat("*", 5000), "", "", "at most 4096"},
		{Cron, "", "", "", "0 fields"},
		{Cron, "* * * *", "", "", "4 fields: use 5"},
		{Cron, "@fortnightly", "", "", "@weekly"},
		{Cron, "TZ=UTC * * * * *", "", "zone", "a field of its own"},
		{Cron, "CRON_TZ=Europe/Berlin * * * * *", "", "zone", "a field of its own"},
		{Cron, "TZ=", "", "zone", "a field of its own"},
		{Cron, "? * * * *", "", "minute", "0 to 59 or *"},
		{Cron, "1,,2 * * * *", "", "minute", "0 to 59"},
		{Cron, "-5 * * * *", "", "minute", "0 to 59"},
		{Cron, "5- * * * *", "", "minute", "0 to 59"},
		{Cron, "* 24 * * *", "", "hour", "24 is out of range: use 0 to 23"},
		{Cron, "* * * foo *", "", "month", "JAN to DEC"},
		{Cron, "* * * * 1#2", "", "day of week", "SUN to SAT"},
		{Cron, "*/-1 * * * *", "", "minute", "not a number from 1 on"},
		{Cron, "*/5/5 * * * *", "", "minute", "not a number from 1 on"},
		{Cron, "99999999999999999999 * * * *", "", "minute", "0 to 59"},
		{Cron, "0 0 31 4,6 *", "", "day of month", "day 31 never comes in April and June"},
		{Cron, "0 0 30-31 feb *", "", "day of month", "day 30 never comes in February"},
		{Cron7, "* * * * * *", "", "", "6 fields: use 7"},
		{Cron7, "* * * * * * *", "Europe/Berlin", "zone", "always UTC"},
		{Cron7, "* * * * 9/2 * *", "", "hour", "a step needs a range"},
		{Cron7, "* * * 3/6 * * *", "", "day of week", "1 to 5 times"},
		{Cron7, "* * * 3/0 * * *", "", "day of week", "1 to 5 times"},
		{Cron7, "* * * 7/2 * * *", "", "day of week", "0 to 6"},
		{Cron7, "* * ? * * * *", "", "day of month", "1 to 31 or *"},
		{Cron7, "* * * * * * * ", "UTC ", "zone", "not a time zone"},
		{Cron7, "2013 * * * * * *", "", "year", "2013 has passed"},
		{Cron7, "2013-2020/7 * * * * * *", "", "year", "2020 has passed"},
		{Cron7, "20133 * * * * * *", "", "year", "1970 to 9999"},
		{Cron7, "2027 2 29 * 0 0 0", "", "day of month and day of week", "no such day"},
		{Cron7, "* 2 30 * 0 0 0", "", "day of month", "day 30 never comes in February"},
		{Cron7, "2026 3 9 * * * *", "", "day of month and day of week", "from 2026-03-10"},
		{Cron7, "* 2 29 0/4 0 0 0", "", "day of month and day of week", "no such day"},
		{Every, "-5m", "", "", "too short"},
		{Every, "1000000h", "", "", "too long"},
		{Every, "1.5s", "", "", "whole number of seconds"},
		{Every, "1h foo", "", "", "1h30m"},
		{Every, "1h1", "", "", "not a duration"},
		{Repeat, "", "", "base", "SCHEDULED, STARTED or FINISHED"},
		{Repeat, "FINISHED,", "", "modifier", "there is none"},
		{Repeat, "FINISHED,,+1 DAY", "", "modifier", "there is none"},
		{Repeat, "FINISHED, +1 WEEK", "", "modifier", "+7 DAYS"},
		{Repeat, "FINISHED, +1", "", "modifier", "such as +1 HOUR"},
		{Repeat, "FINISHED, +1.5 HOURS", "", "modifier", "whole number"},
		{Repeat, "FINISHED, +-1 HOUR", "", "modifier", "whole number"},
		{Repeat, "FINISHED, START OF WEEK", "", "modifier", "has no start"},
		{Repeat, "FINISHED, WEEKDAY", "", "modifier", "WEEKDAY 0 (Sunday)"},
		{Repeat, "FINISHED, +99999999 YEARS", "", "modifier", "years 0 to 9999"},
		{Repeat, "FINISHED, +1 HOURSS", "", "modifier", "not a unit"},
		{At, "", "", "", "RFC 3339"},
		{At, "2026-02-30", "", "", "RFC 3339"},
		{At, "2026-03-09T13:45:29Z", "", "", "has passed"},
		{At, "2026-03-29 02:30", "Europe/Berlin", "time", "does not exist"},
		{RRule, "", "", "RRULE", "FREQ="},
		{RRule, "FREQ=FORTNIGHTLY", "", "FREQ", "YEARLY"},
		{RRule, "FREQ=DAILY;INTERVAL=0", "", "INTERVAL", "1 to"},
		{RRule, "FREQ=DAILY;COUNT=100000", "", "COUNT", "1 to 10000"},
		{RRule, "FREQ=DAILY;COUNT=2;UNTIL=20270101", "", "COUNT", "not both"},
		{RRule, "FREQ=DAILY;UNTIL=20250101", "", "UNTIL", "before the start"},
		{RRule, "FREQ=DAILY;UNTIL=tomorrow", "", "UNTIL", "not a moment"},
		{RRule, "FREQ=DAILY;FREQ=DAILY", "", "FREQ", "twice"},
		{RRule, "FREQ=DAILY;", "", "RRULE", "NAME=VALUE"},
		{RRule, "FREQ=DAILY;BYHOURS=3", "", "RRULE", "BYHOUR"},
		{RRule, "INTERVAL=3;COUNT=1", "", "", "not understood"},
		{RRule, "RRULE:INTERVAL=3", "", "FREQ", "missing"},
		{RRule, "FREQ=DAILY;BYDAY=1MO", "", "BYDAY", "MONTHLY"},
		{RRule, "FREQ=DAILY;BYDAY=XX", "", "BYDAY", "MO"},
		{RRule, "FREQ=WEEKLY;BYMONTHDAY=3", "", "BYMONTHDAY", "WEEKLY"},
		{RRule, "FREQ=MONTHLY;BYYEARDAY=3", "", "BYYEARDAY", "MONTHLY"},
		{RRule, "FREQ=MONTHLY;BYWEEKNO=3", "", "BYWEEKNO", "YEARLY"},
		{RRule, "FREQ=MONTHLY;BYSETPOS=3", "", "BYSETPOS", "another BY"},
		{RRule, "FREQ=DAILY;BYHOUR=24", "", "BYHOUR", "0 to 23"},
		{RRule, "FREQ=MONTHLY;BYMONTHDAY=0", "", "BYMONTHDAY", "from the end"},
		{RRule, "FREQ=DAILY;WKST=XX", "", "WKST", "MO"},
		{RRule, "DTSTART:20260310\nDTSTART:20260310\nRRULE:FREQ=DAILY", "", "DTSTART", "more than one"},
		{RRule, "DTSTART;TZID=Mars:20260310\nRRULE:FREQ=DAILY", "", "DTSTART", "not a time zone"},
		{RRule, "DTSTART;TZID=Asia/Tokyo:20260310\nRRULE:FREQ=DAILY", "Europe/Berlin", "DTSTART", "Asia/Tokyo"},
		{RRule, "RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY", "", "RRULE", "two rules"},
		{RRule, "RRULE:FREQ=DAILY\nEXRULE:FREQ=DAILY", "", "", "EXDATE"},
		{RRule, "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "", "BYMONTH and BYMONTHDAY", "no date"},
		{RRule, "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "", "BYMONTH and BYMONTHDAY", "no date"},
		{RRule, "FREQ=HOURLY;INTERVAL=2;BYHOUR=4", "", "BYHOUR", "ever reached"},
		{RRule, "FREQ=MINUTELY;INTERVAL=30;BYMINUTE=3", "", "BYMINUTE", "ever reached"},
		{RRule, "FREQ=MINUTELY;INTERVAL=120;BYHOUR=4", "", "BYHOUR", "ever reached"},
		{RRule, "FREQ=SECONDLY;INTERVAL=86400;BYHOUR=4", "", "BYHOUR and BYMINUTE", "ever reached"},
		{RRule, "FREQ=SECONDLY;INTERVAL=60;BYSECOND=31", "", "BYSECOND", "ever reached"},
		{RRule, "DTSTART:20200101\nRRULE:FREQ=DAILY;COUNT=5", "", "COUNT", "has passed"},
		{RRule, "DTSTART:20200101\nRRULE:FREQ=DAILY;UNTIL=20200201", "", "UNTIL", "no time between"},
	} {
		refused(t, c.kind, c.text, c.zone, c.field, c.words)
	}
}

// TestDetect: what is meant is seen without a tag, and a tag decides.
func TestDetect(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"* * * * *":                         "cron:* * * * *",
		"0 0 0 * jan-mar sun":               "cron:0 0 0 * jan-mar sun",
		"0 0 0 L * *":                       "cron:0 0 0 L * *",
		"* * * *":                           "cron:* * * *",
		"@daily":                            "cron:@daily",
		"@cron 0 0 0 1 1 *":                 "cron:0 0 0 1 1 *",
		"TZ=UTC 0 0 * * *":                  "cron:TZ=UTC 0 0 * * *",
		"2014 3 * 0/2,3 9-17 * */5":         "cron7:2014 3 * 0/2,3 9-17 * */5",
		"cron:* * * * * * *":                "cron:* * * * * * *",
		"CRON: * * * * *":                   "cron:* * * * *",
		"corn:* * * * *":                    "corn:* * * * *",
		"1.5h":                              "every:1.5h",
		"90":                                "every:90",
		"1d":                                "every:1d",
		"@interval 30m10s":                  "every:30m10s",
		"@every 1h":                         "every:1h",
		"finished, +1 minute":               "repeat:finished, +1 minute",
		"SCHEDULED":                         "repeat:SCHEDULED",
		"Hourly":                            "repeat:Hourly",
		"2026-03-12":                        "at:2026-03-12",
		"2026-03-12T07:00:00Z":              "at:2026-03-12T07:00:00Z",
		"2026-03-12 25:00":                  "at:2026-03-12 25:00",
		"@at 2026-03-12T07:00:00Z":          "at:2026-03-12T07:00:00Z",
		"FREQ=DAILY":                        "rrule:FREQ=DAILY",
		"RRULE:FREQ=DAILY":                  "rrule:FREQ=DAILY",
		"rrule:FREQ=DAILY":                  "rrule:FREQ=DAILY",
		"DTSTART:20260101 RRULE:FREQ=DAILY": "rrule:DTSTART:20260101 RRULE:FREQ=DAILY",
		"every weekday at 9:30":             "natural:every weekday at 9:30",
		"7pm tomorrow":                      "natural:7pm tomorrow",
		"2026-03-12 at 7pm":                 "natural:2026-03-12 at 7pm",
		"@in 10m":                           "natural:in 10m",
		"12 march at 10:00":                 "natural:12 march at 10:00",
		"daily at 9am":                      "natural:daily at 9am",
		"":                                  "natural:",
	} {
		if kind, rest := Detect(text); string(kind)+":"+rest != want {
			t.Errorf("%q is read as %s:%s, want %s", text, kind, rest, want)
		}
	}
}

// No schedule goes on after the year 9999, which RFC 3339 cannot write; in its zone that may end before it does in UTC.
func TestLastYear(t *testing.T) {
	t.Parallel()
	from := time.Date(9999, 12, 31, 20, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		kind       Kind
		text, zone string
		want       int
	}{
		{Every, "1h", "", 3},
		{Cron, "0 * * * *", "", 3},
		{Cron, "0 * * * *", "Europe/Berlin", 2},
		{Cron, "0 * * * *", "America/New_York", 3},
		{Repeat, "FINISHED, +1 HOUR", "", 3},
		{RRule, "FREQ=HOURLY", "", 3},
	} {
		s, err := Parse(c.kind, c.text, c.zone, from)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		n := 0
		for next := range s.Upcoming(Moments{Now: from, Scheduled: from, Started: from, Finished: from}) {
			if n++; n > 10 {
				break
			}
			if _, err := next.MarshalJSON(); err != nil {
				t.Errorf("%s in %q: %v", c.text, c.zone, err)
			}
		}
		if n != c.want {
			t.Errorf("%s in %q: %d times, want %d", c.text, c.zone, n, c.want)
		}
	}
}
