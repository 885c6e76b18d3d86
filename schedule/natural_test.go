package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/weirworks/weir/schedule"
)

// TestNatural: what English becomes on Tuesday 10 March 2026 at 13:45:30.
func TestNatural(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"now":                                 "at:2026-03-10T13:45:30Z",
		"in 5 minutes":                        "at:2026-03-10T13:50:30Z",
		"In 5 Minutes":                        "at:2026-03-10T13:50:30Z",
		"in 10m":                              "at:2026-03-10T13:55:30Z",
		"in an hour":                          "at:2026-03-10T14:45:30Z",
		"in 2 hours and 30 minutes":           "at:2026-03-10T16:15:30Z",
		"in two weeks":                        "at:2026-03-24T13:45:30Z",
		"in 3 days at 9am":                    "at:2026-03-13T09:00:00Z",
		"in 1d":                               "at:2026-03-11T13:45:30Z",
		"in 2W1d12h":                          "at:2026-03-26T01:45:30Z",
		"in 3d at 9am":                        "at:2026-03-13T09:00:00Z",
		"in a month":                          "at:2026-04-10T13:45:30Z",
		"in 1 year":                           "at:2027-03-10T13:45:30Z",
		"7pm tomorrow":                        "at:2026-03-11T19:00:00Z",
		"tomorrow at 19:00":                   "at:2026-03-11T19:00:00Z",
		"tomorrow 7:30 pm":                    "at:2026-03-11T19:30:00Z",
		"at 6pm":                              "at:2026-03-10T18:00:00Z",
		"at 6am":                              "at:2026-03-11T06:00:00Z",
		"today at 17:30:15":                   "at:2026-03-10T17:30:15Z",
		"12am tomorrow":                       "at:2026-03-11T00:00:00Z",
		"12pm tomorrow":                       "at:2026-03-11T12:00:00Z",
		"at noon on friday":                   "at:2026-03-13T12:00:00Z",
		"on friday at noon":                   "at:2026-03-13T12:00:00Z",
		"tuesday at 2pm":                      "at:2026-03-10T14:00:00Z",
		"tuesday at noon":                     "at:2026-03-17T12:00:00Z",
		"next tuesday at 2pm":                 "at:2026-03-17T14:00:00Z",
		"march 12 at 10:00":                   "at:2026-03-12T10:00:00Z",
		"12 March at 10:00":                   "at:2026-03-12T10:00:00Z",
		"on the 12th of march, 2027 at 10:00": "",
		"12 march 2027 at 10:00":              "at:2027-03-12T10:00:00Z",
		"march 1 at 10:00":                    "at:2027-03-01T10:00:00Z",
		"feb 29 at noon":                      "at:2028-02-29T12:00:00Z",
		"the 15th at 8am":                     "at:2026-03-15T08:00:00Z",
		"2026-04-01 at midnight":              "at:2026-04-01T00:00:00Z",
		"every day":                           "cron:0 0 0 * * *",
		"daily at 9am":                        "cron:0 0 9 * * *",
		"every day at 9am and 5pm":            "cron:0 0 9,17 * * *",
		"every weekday at 9am":                "cron:0 0 9 * * 1-5",
		"weekdays at 9am":                     "cron:0 0 9 * * 1-5",
		"at 9am every weekday":                "cron:0 0 9 * * 1-5",
		"every weekend at 10:00":              "cron:0 0 10 * * 0,6",
		"every monday and friday at 17:30":    "cron:0 30 17 * * 1,5",
		"every monday, wednesday and fri at noon": "cron:0 0 12 * * 1,3,5",
		"mondays and fridays at noon":             "cron:0 0 12 * * 1,5",
		"every mon-thu at 6:05pm":                 "cron:0 5 18 * * 1-4",
		"every saturday to monday at 8am":         "cron:0 0 8 * * 0,1,6",
		"every week at 9am":                       "cron:0 0 9 * * 2",
		"every week on sunday at 9am":             "cron:0 0 9 * * 0",
		"every month on the 1st at 06:00":         "cron:0 0 6 1 * *",
		"every month on the 1st and the 15th":     "cron:0 0 0 1,15 * *",
		"every year on march 12 at 10am":          "cron:0 0 10 12 3 *",
		"every december 24 at 18:00":              "cron:0 0 18 24 12 *",
		"every second":                            "every:1s",
		"every minute":                            "every:1m",
		"every 2 hours":                           "every:2h",
		"every two hours":                         "every:2h",
		"every other hour":                        "every:2h",
		"every 90m":                               "every:1h30m",
		"every hour and 30 minutes":               "every:1h30m",
		"every 2 days at 9am":                     "rrule:DTSTART:20260311T090000\nRRULE:FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0;INTERVAL=2",
		"every other friday at 9am":               "rrule:DTSTART:20260313T090000\nRRULE:FREQ=WEEKLY;BYDAY=FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0;INTERVAL=2",
		"every 2 weeks on monday and friday":      "rrule:DTSTART:20260313T000000\nRRULE:FREQ=WEEKLY;BYDAY=MO,FR;BYHOUR=0;BYMINUTE=0;BYSECOND=0;INTERVAL=2",
		"every month on the last day at 23:00":    "rrule:DTSTART:20260331T230000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=23;BYMINUTE=0;BYSECOND=0",
		"every 3 months on the 2nd tuesday":       "rrule:DTSTART:20260414T000000\nRRULE:FREQ=MONTHLY;BYDAY=2TU;BYHOUR=0;BYMINUTE=0;BYSECOND=0;INTERVAL=3",
		"every last friday of the month at 5pm":   "rrule:DTSTART:20260327T170000\nRRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0",
		"first monday of every month at 9am":      "rrule:DTSTART:20260406T090000\nRRULE:FREQ=MONTHLY;BYDAY=1MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
		"on the 15th of every month at noon":      "rrule:DTSTART:20260315T120000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=15;BYHOUR=12;BYMINUTE=0;BYSECOND=0",
		"every 1st of the month at 9:00":          "rrule:DTSTART:20260401T090000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
		"at 11pm on the last day of each month":   "rrule:DTSTART:20260331T230000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=23;BYMINUTE=0;BYSECOND=0",
		"weekly on monday at 9am":                 "cron:0 0 9 * * 1",
		"monthly on the 1st at 6am":               "cron:0 0 6 1 * *",
		"yearly on march 12":                      "cron:0 0 0 12 3 *",
		"the day after tomorrow at 9am":           "at:2026-03-12T09:00:00Z",
		"on the 15th at noon":                     "at:2026-03-15T12:00:00Z",
		"every first day of every month at noon":  "rrule:DTSTART:20260401T120000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=1;BYHOUR=12;BYMINUTE=0;BYSECOND=0",
	} {
		s, err := Parse(Natural, text, "", base)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q becomes %s", text, s.Resolved())
		case want == "":
		case err != nil:
			t.Error(err)
		case s.Resolved() != want || s.Text() != text || s.Kind() != Natural:
			t.Errorf("%q becomes %s, want %s", text, s.Resolved(), want)
		}
	}
}

// TestNaturalZone: times of day are those of the zone, spans of time are not.
func TestNaturalZone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"7pm tomorrow":         "2026-03-11T19:00:00-04:00",
		"in 5 minutes":         "2026-03-10T13:50:30Z",
		"every weekday at 9am": "2026-03-11T09:00:00-04:00",
		"tomorrow at midnight": "2026-03-11T00:00:00-04:00",
	} {
		comes(t, parse(t, Natural, text, "America/New_York", base), Moments{Now: base}, want)
	}
}

// TestNaturalInShort: days and weeks in short are those by their names, also where clocks are changed.
func TestNaturalInShort(t *testing.T) {
	t.Parallel()
	before := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) // a day before they are, in Berlin
	for short, long := range map[string]string{
		"in 1d": "in 1 day", "in 2d": "in 2 days", "in 1w": "in a week", "in 1d12h": "in 1 day and 12 hours", "in 1d and 12h": "in 1 day and 12 hours",
		"every 1d": "every day", "every 2d": "every 2 days", "every 2d at 9am": "every 2 days at 9am", "every 3w on monday": "every 3 weeks on monday",
		"every 1d12h": "every 36 hours", "every 1 day and 12 hours": "every 36 hours", "every 12h and 1d": "every 36 hours", "every 1w2d": "every 9 days",
		"every 1w2d12h": "every 228 hours", "every 1w2d at 9am": "every 9 days at 9am", "every 1w1d and 6d": "every 14 days",
	} {
		a, b := parse(t, Natural, short, "Europe/Berlin", before), parse(t, Natural, long, "Europe/Berlin", before)
		if a.Resolved() != b.Resolved() || a.Understood() != b.Understood() {
			t.Errorf("%q is %s, and %q is %s", short, a.Understood(), long, b.Understood())
		}
	}
}

// TestNaturalRefused: the word that is not understood is named, with what could be there.
func TestNaturalRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                           "something is missing at the end: begin with every",
		"evry day":                   `word 1: "evry" is not understood: begin with every`,
		"every":                      "something is missing at the end",
		"every mondy at 9am":         `word 2: "mondy" is not understood`,
		"every 2 fortnights":         `word 3: "fortnights" is not understood: use second, minute`,
		"every day at 25:00":         `word 4: "25:00" is not understood: there is no such time`,
		"every day at 13pm":          `word 4: "13pm" is not understood`,
		"every day at 9":             "9am, 9pm or a time such as 17:00",
		"every day at":               "something is missing at the end: use a time",
		"every day 9am":              `word 3: "9am" is not understood: use at`,
		"every day at 9am and 17:30": "09:00 and 17:30 differ in more than the hour",
		"every day at 9am sharp":     `word 5: "sharp" is not understood: nothing can follow`,
		"every monday and":           "something is missing at the end: use a weekday",
		"every monday friday":        `word 3: "friday" is not understood: put and`,
		"every monday and noon":      `word 4: "noon" is not understood: use a weekday`,
		"every 2 hours at 9am":       `word 4: "at" is not understood: nothing can follow an interval`,
		"every month at 9am":         `word 3: "at" is not understood: say on which day`,
		"every month on the 32nd":    "say on which day",
		"every year on the 1st":      "use a day of the year",
		"every 2 years on march 1":   "FREQ=YEARLY;INTERVAL=2",
		"every 2nd day at 9am":       "add of the month",
		"every 5000 days":            "at most 1000",
		"every february 30":          "day of month: day 30 never comes in February",
		"in":                         "use a number and a unit",
		"in 5":                       "use second, minute",
		"in 5 parsecs":               `word 3: "parsecs" is not understood`,
		"every 1d12h at 9am":         `"at" is not understood: nothing can follow an interval`,
		"every 1001d1h":              "1001 is too many",
		"every 900w1d":               "is too many",
		"every month and 2 days":     "say on which day",
		"in 99999999999999999999d":   "use a number and a unit",
		"in 5 minutes please":        `word 4: "please" is not understood`,
		"in 5000000 years":           "too many",
		"tomorrow":                   "does not say at what time",
		"friday at noon please":      `word 4: "please" is not understood`,
		"today at 6am":               "has passed",
		"2026-03-01 at noon":         "2026-03-01 has passed",
		"1 march 2026 at noon":       "2026-03-01 has passed",
		"30 february at noon":        "February has no day 30",
		"next week at noon":          `word 2: "week" is not understood: use next and a weekday`,
		"noon tomorrow on friday":    `word 3: "on" is not understood`,
		"march 12 2040 at noon":      "more than nine years off",
	} {
		_, err := Parse(Natural, text, "", base)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) || e.Kind != Natural || e.Text != text {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	refused(t, Natural, "2026-03-29 at 2:30am", "Europe/Berlin", "time", "does not exist")
}

// TestUnderstood: schedules in English.
func TestUnderstood(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"30 9 * * MON-FRI":               "at 09:30, on Monday to Friday, UTC",
		"15 30 9,17 * * *":               "at 09:30:15 and 17:30:15, UTC",
		"*/5 * * * * *":                  "every 5 seconds, UTC",
		"* * * * *":                      "every minute, UTC",
		"*/15 9-17 * * *":                "every 15 minutes, in hours 9 to 17, UTC",
		"0 0 3-20/15 * * *":              "at minute 0, every 15 hours from 3 to 20, UTC",
		"0 0 13 * FRI":                   "at 00:00, on day 13 of the month or on Friday, UTC",
		"0 0 1,15 jan-mar *":             "at 00:00, on day 1 and 15 of the month, in January to March, UTC",
		"@hourly":                        "at minute 0, every hour, UTC",
		"2027 3 * 0/2,3 9-17 * */5":      "every 5 seconds, in hours 9 to 17, on Wednesday and the 2nd Sunday of the month, in March, in 2027, UTC",
		"cron7:* * 13 5 0 0 0":           "at 00:00, on day 13 of the month if that is on Friday, UTC",
		"1.5h":                           "every 1h30m",
		"2026-03-12":                     "once, on Thursday 12 March 2026 at 00:00:00 UTC",
		"SCHEDULED, -2 DAYS, +1 HOUR":    "when the last run was due, minus 2 days, plus 1 hour",
		"STARTED, START OF DAY":          "when the last run started, then back to the start of the day",
		"hourly":                         "when the last run finished, plus 1 hour",
		"finished, weekday 1":            "when the last run finished, then forward to Monday",
		"FREQ=MONTHLY;BYDAY=-1FR":        "every month, on the last Friday of the month, at 13:45:30, from 2026-03-10 13:45:30 on, UTC",
		"FREQ=HOURLY;INTERVAL=2;COUNT=3": "every 2 hours, at minute 45, at second 30, from 2026-03-10 13:45:30 on, 3 times, UTC",
		"FREQ=YEARLY;BYWEEKNO=-1;BYDAY=MO;UNTIL=20300101":                         "every year, on Monday, in the last week of the year, at 13:45:30, from 2026-03-10 13:45:30 on, until 2030-01-01 00:00:00, UTC",
		"FREQ=MONTHLY;BYMONTHDAY=-2,1;BYSETPOS=-1;BYHOUR=9;BYMINUTE=0;BYSECOND=0": "every month, on the 2nd last day and day 1 of the month, at 09:00, of these the last of the month, from 2026-03-10 13:45:30 on, UTC",
		"DTSTART:20260310\nRDATE:20260401,20260501":                               "at 2 times from 2026-04-01 00:00:00 on UTC",
		"DTSTART:20260310\nRRULE:FREQ=DAILY\nEXDATE:20260401\nRDATE:20260401T12":  "",
		"every weekday at 9am": "at 09:00, on Monday to Friday, UTC",
	} {
		kind, rest := Detect(text)
		s, err := Parse(kind, rest, "", base)
		if got := s.Understood(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s means %q, want %q; %v", text, got, want, err)
		}
	}
}

// TestExceptions: times that are taken away, and added.
func TestExceptions(t *testing.T) {
	t.Parallel()
	s := parse(t, RRule, "DTSTART;TZID=Europe/Berlin:20260310T090000\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE;TZID=Europe/Berlin:20260311T090000,20260312T090000\nRDATE:20260312T120000Z,20260401T090000Z,20260310T080000Z", "", at("2026-03-10"))
	comes(t, s, Moments{Now: at("2026-03-10")},
		"2026-03-10T09:00:00+01:00", "2026-03-12T12:00:00Z", "2026-03-13T09:00:00+01:00", "2026-04-01T09:00:00Z")
	never(t, s, Moments{Now: at("2026-04-01 09:00:00")})
}
