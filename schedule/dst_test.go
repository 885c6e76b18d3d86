package schedule_test

import (
	"strconv"
	"testing"
	"time"

	. "github.com/weirworks/weir/schedule"
)

// TestClocksChange: the rule of the package's description, by example. In Berlin clocks go from 02:00 to 03:00 on 29 March 2026,
// and from 03:00 back to 02:00 on 25 October.
func TestClocksChange(t *testing.T) {
	t.Parallel()
	const spring, autumn = "2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z"
	for _, c := range []struct {
		kind       Kind
		text, from string
		want       []string
	}{
		{Cron, "30 2 * * *", spring, []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{Cron, "*/15 2 * * *", spring, []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00", "2026-03-30T02:15:00+02:00"}},
		{Cron, "0,30 1-3 * * *", spring, []string{
			"2026-03-29T01:00:00+01:00", "2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00", "2026-03-30T01:00:00+02:00",
		}},
		{Cron, "30 2 * * *", autumn, []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{Cron, "30 2,3 * * *", "2026-10-25T02:15:00+01:00", []string{"2026-10-25T03:30:00+01:00", "2026-10-26T02:30:00+01:00"}},
		{Cron, "30 * * * *", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"}},
		{Cron, "30 * * * *", "2026-10-24T23:40:00Z", []string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"}},
		{Cron, "0 */2 * * *", "2026-03-28T22:30:00Z", []string{"2026-03-29T00:00:00+01:00", "2026-03-29T04:00:00+02:00"}},
		{Every, "1h", "2026-03-29T00:30:00Z", []string{"2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		{RRule, "DTSTART:20260301T023000\nRRULE:FREQ=DAILY", spring, []string{"2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{RRule, "DTSTART:20260301T000000\nRRULE:FREQ=DAILY;BYHOUR=2,3;BYMINUTE=10,50", spring, []string{
			"2026-03-29T03:10:00+02:00", "2026-03-29T03:50:00+02:00", "2026-03-30T02:10:00+02:00", "2026-03-30T02:50:00+02:00", "2026-03-30T03:10:00+02:00",
		}},
		{RRule, "DTSTART:20260301T000000\nRRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=10,50", "2026-03-29T03:20:00+02:00", []string{"2026-03-29T03:50:00+02:00", "2026-03-30T02:10:00+02:00"}},
		{RRule, "DTSTART:20260301T023000\nRRULE:FREQ=DAILY", autumn, []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}},
		{RRule, "DTSTART:20260301T003000\nRRULE:FREQ=HOURLY", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"}},
		{RRule, "DTSTART:20260301T003000\nRRULE:FREQ=HOURLY", "2026-10-24T23:40:00Z", []string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"}},
		{RRule, "DTSTART:20260301T090000\nRRULE:FREQ=WEEKLY;UNTIL=20260330T070000Z", spring, []string{"2026-03-29T09:00:00+02:00"}},
		{Natural, "every day at 2:30am", spring, []string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
		{Natural, "in 1 day", spring, []string{"2026-03-29T13:00:00+02:00"}},
		{Natural, "in 24 hours", spring, []string{"2026-03-29T14:00:00+02:00"}},
		{At, "2026-10-25 02:30", spring, []string{"2026-10-25T02:30:00+02:00"}},
		// Hours pass, days keep the time on the clock, and START OF sets it.
		{Repeat, "FINISHED, +24 HOURS", spring, []string{"2026-03-29T14:00:00+02:00"}},
		{Repeat, "FINISHED, +1 DAY", spring, []string{"2026-03-29T13:00:00+02:00"}},
		{Repeat, "FINISHED, +1 DAY, START OF DAY, +4 HOURS", spring, []string{"2026-03-29T04:00:00+02:00", "2026-03-30T04:00:00+02:00"}},
		{Repeat, "FINISHED, +1 DAY, START OF DAY, +150 MINUTES", spring, []string{"2026-03-29T03:00:00+02:00"}},
	} {
		s := parse(t, c.kind, c.text, "Europe/Berlin", at(c.from))
		comes(t, s, Moments{Now: at(c.from)}, c.want...)
	}
}

// TestNoMidnight: where clocks are put forward at midnight, a daily schedule fires at the first moment of the day.
func TestNoMidnight(t *testing.T) {
	t.Parallel()
	from := at("2018-11-03T12:00:00Z")
	s := parse(t, Cron, "@daily", "America/Sao_Paulo", from)
	comes(t, s, Moments{Now: from}, "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00")
}

// TestBounded: the next time is found, however rare or far it is, and so is that there is none. How fast is no matter of a test, but
// a search without a bound takes hours.
func TestBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind Kind
		text string
		ok   bool
	}{
		{Cron, "59 59 23 29 2 *", true},
		{Cron7, "9999 12 31 * 23 59 59", true},
		{Cron7, "* 2 29 1 0 0 0", true},
		{Cron7, "2027-9999 2 31 1/5 0 0 0", false},
		{Cron7, "9000-9999/3 2 30 * * * *", false},
		{RRule, "DTSTART:19700101\nRRULE:FREQ=SECONDLY", true},
		{RRule, "DTSTART:19700101\nRRULE:FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=23;BYMINUTE=59;BYSECOND=59", true},
		{RRule, "DTSTART:19700101\nRRULE:FREQ=SECONDLY;INTERVAL=86399;BYHOUR=23;BYMINUTE=59;BYSECOND=59;BYMONTH=2;BYMONTHDAY=29", false},
		{RRule, "FREQ=SECONDLY;INTERVAL=604800;BYDAY=WE", false},
		{RRule, "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", false},
		{RRule, "FREQ=HOURLY;INTERVAL=2;BYHOUR=3", false},
		{RRule, "FREQ=YEARLY;INTERVAL=1000000;BYMONTH=2;BYMONTHDAY=29", false},
		{RRule, "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=2", false},
		{RRule, "FREQ=MONTHLY;BYDAY=5MO,5TU;BYSETPOS=2;BYMONTH=2", false},
		{RRule, "FREQ=DAILY;COUNT=10000", true},
		{RRule, "FREQ=YEARLY;COUNT=10000;BYHOUR=" + upTo(23) + ";BYMINUTE=" + upTo(59) + ";BYSECOND=" + upTo(59), true},
	} {
		began := time.Now()
		s, err := Parse(c.kind, c.text, "Europe/Berlin", base)
		if c.kind == Cron7 {
			s, err = Parse(c.kind, c.text, "", base)
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.text, err)
		}
		s.Next(Moments{Now: base})
		if d := time.Since(began); d > time.Minute {
			t.Errorf("%s takes %s", c.text, d)
		}
	}
}

// upTo lists the numbers to one.
func upTo(n int) string {
	text := "0"
	for i := range n {
		text += "," + strconv.Itoa(i+1)
	}
	return text
}

// BenchmarkNext is the cost of a next time.
func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		kind       Kind
		text, zone string
	}{
		{Cron, "*/5 * * * *", ""},
		{Cron, "30 9 * * MON-FRI", "Europe/Berlin"},
		{Cron, "0 0 29 2 *", ""},
		{Cron7, "* * * 0/2,3 9-17 * */5", ""},
		{Every, "90s", ""},
		{Repeat, "FINISHED, +1 DAY, START OF DAY, +4 HOURS", ""},
		{RRule, "DTSTART:19700101T090000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", ""},
		{RRule, "DTSTART:19700101T090000\nRRULE:FREQ=MINUTELY", ""},
	} {
		s, err := Parse(c.kind, c.text, c.zone, base)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(c.kind)+"/"+c.text+c.zone, func(b *testing.B) {
			for b.Loop() {
				s.Next(Moments{Now: base})
			}
		})
	}
}

// TestEndOfLeapYear: the bounds that package time gives for the last day of a leap year end before it.
func TestEndOfLeapYear(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Sydney"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, year := range []int{2028, 2040, 2096} {
			from := time.Date(year, 12, 30, 12, 0, 0, 0, loc)
			for _, text := range []string{"cron:30 0 * * *", "cron:30 * * * *", "rrule:FREQ=HOURLY;BYHOUR=0;BYMINUTE=30;BYSECOND=0", "rrule:FREQ=DAILY;BYHOUR=0;BYMINUTE=30;BYSECOND=0", "rrule:FREQ=HOURLY;INTERVAL=604800;BYSECOND=0"} {
				kind, rest := Detect(text)
				s := parse(t, kind, rest, zone, from)
				now := from
				for range 4 * 24 {
					next, ok := s.Next(Moments{Now: now})
					if !ok {
						break
					}
					if w := next.In(loc); w.Minute() != 30 && w.Second() != 0 || !next.After(now) {
						t.Fatalf("%s in %s: %s after %s", text, zone, w, now)
					}
					now = next
				}
			}
			want := time.Date(year+1, 1, 1, 0, 30, 0, 0, loc)
			s := parse(t, Cron, "30 0 * * *", zone, from)
			comes(t, s, Moments{Now: want.AddDate(0, 0, -1)}, want.Format(time.RFC3339))
		}
	}
}
