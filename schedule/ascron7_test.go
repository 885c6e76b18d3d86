package schedule_test

import (
	"strings"
	"testing"

	. "github.com/weirworks/weir/schedule"
)

// What other dialects mean is written in cron7, and comes at the same times.
func TestCron7Of(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind       Kind
		text, zone string
		want       string
	}{
		{Natural, "in 5 minutes", "", "2026 3 10 * 13 50 30"},
		{Natural, "7pm tomorrow", "", "2026 3 11 * 19 0 0"},
		{Natural, "7pm tomorrow", "Asia/Tokyo", "2026 3 11 * 10 0 0"},
		{Natural, "every weekday at 9am", "", "* * * 1-5 9 0 0"},
		{Natural, "every 5 seconds", "", "* * * * * * */5"},
		{At, "2026-03-12T07:00:00.2Z", "", "2026 3 12 * 7 0 1"},
		{Cron, "*/10 3-59/15 9-17 * * MON,WED", "", "* * * 1,3 9-17 3-59/15 */10"},
		{Cron, "30 9 1 */2 *", "", "* */2 1 * 9 30 0"},
		{Cron7, "2014 3 * 0/2,3 9-17 * */5", "", "2014 3 * 0/2,3 9-17 * */5"},
		{Natural, "every 2nd sunday of the month at 9am", "", "* * * 0/2 9 0 0"},
		{Natural, "the 2nd sunday of every month at 9am", "", "* * * 0/2 9 0 0"},
		{Natural, "every month on the second wednesday at 12:00", "", "* * * 3/2 12 0 0"},
		{RRule, "FREQ=DAILY;BYHOUR=7,19;BYMINUTE=30;BYSECOND=0", "", "* * * * 7,19 30 0"},
		{RRule, "FREQ=WEEKLY;BYDAY=MO,FR;BYHOUR=6;BYMINUTE=0;BYSECOND=0", "", "* * * 1,5 6 0 0"},
		{RRule, "FREQ=YEARLY;BYMONTH=3,9;BYMONTHDAY=1;BYHOUR=0;BYMINUTE=0;BYSECOND=0", "", "* 3,9 1 * 0 0 0"},
		{Every, "1s", "", "* * * * * * *"},
		{Every, "15m", "", "* * * * * */15 0"},
		{Every, "6h", "", "* * * * */6 0 0"},
		{Every, "24h", "", "* * * * 0 0 0"},
	} {
		s, err := Parse(c.kind, c.text, c.zone, base)
		if c.kind == Cron7 {
			s, err = Parse(c.kind, c.text, c.zone, at("2014-01-01"))
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Cron7()
		if err != nil || got != c.want {
			t.Errorf("%s is %q, %v, want %q", s, got, err, c.want)
			continue
		}
		if c.kind == Every || c.kind == Cron7 || c.kind == At || strings.Contains(c.text, "seconds") { // counted from elsewhere, itself, or rounded
			continue
		}
		again := parse(t, Cron7, got, "", base)
		m := Moments{Now: base, Scheduled: base}
		for range 3 {
			a, fine := s.Next(m)
			b, too := again.Next(m)
			if fine != too || fine && !a.Equal(b) {
				t.Errorf("%s comes at %s, %s at %s", s, a, again, b)
			}
			if !fine {
				break
			}
			m = Moments{Now: a, Scheduled: a}
		}
	}
}

// What cron7 cannot say is refused.
func TestCron7OfOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind             Kind
		text, zone, want string
	}{
		{Cron, "0 9 1 * MON", "", "use one of them"},
		{Cron, "0 9 * * *", "Europe/Berlin", "always UTC"},
		{Every, "7s", "", "divides"},
		{Every, "48h", "", "divides"},
		{RRule, "FREQ=DAILY;INTERVAL=3", "", "cannot say"},
		{RRule, "FREQ=DAILY;COUNT=3", "", "cannot say"},
		{RRule, "FREQ=MONTHLY;BYDAY=-1FR", "", "cannot say"},
		{RRule, "FREQ=MONTHLY;BYMONTHDAY=-1", "", "cannot say"},
		{RRule, "FREQ=YEARLY;BYDAY=2SU", "", "cannot say"},
		{RRule, "FREQ=DAILY", "Europe/Berlin", "always UTC"},
		{Repeat, "FINISHED, +1 HOUR", "", "cannot say"},
	} {
		s := parse(t, c.kind, c.text, c.zone, base)
		if text, err := s.Cron7(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s is %q, %v", s, text, err)
		}
	}
}
