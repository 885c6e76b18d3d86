package schedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/weirworks/weir/schedule"
)

// The tests of this file are scenarios of systems whose languages Weir reads, by their numbers:
// B repeat, C cron and intervals, W cron7.

// lastRun was due at 13:00, started at 13:15 and finished at 13:45.
var lastRun = Moments{
	Scheduled: at("2026-03-10 13:00:00"), Started: at("2026-03-10 13:15:00"), Finished: at("2026-03-10 13:45:00"), Now: at("2026-03-10 13:45:00"),
}

func repeats(t *testing.T, text, want string) {
	t.Helper()
	comes(t, parse(t, Repeat, text, "", base), lastRun, want)
}

func repeatsFrom(t *testing.T, text, finished, want string) {
	t.Helper()
	comes(t, parse(t, Repeat, text, "", base), Moments{Finished: at(finished), Now: at(finished)}, want)
}

func TestB01Scheduled(t *testing.T) { repeats(t, "SCHEDULED, +1 HOUR", "2026-03-10 14:00:00") }
func TestB02Started(t *testing.T)   { repeats(t, "STARTED, +1 HOUR", "2026-03-10 14:15:00") }
func TestB03Finished(t *testing.T)  { repeats(t, "FINISHED, +1 HOUR", "2026-03-10 14:45:00") }

func TestB04StartOfDay(t *testing.T) {
	repeats(t, "FINISHED, +1 DAY, START OF DAY, +4 HOURS", "2026-03-11 04:00:00")
}

func TestB05Weekday(t *testing.T) {
	repeats(t, "FINISHED, +1 DAY, WEEKDAY 1, START OF DAY, +6 HOURS", "2026-03-16 06:00:00")
}

func TestB08WeekdayKeepsTime(t *testing.T) {
	repeats(t, "FINISHED, WEEKDAY 0", "2026-03-15 13:45:00")
}

func TestB09SameWeekday(t *testing.T) { repeats(t, "FINISHED, WEEKDAY 2", "2026-03-10 13:45:00") }

func TestB12LastDayOfMonth(t *testing.T) {
	repeatsFrom(t, "FINISHED, START OF MONTH, +2 MONTHS, -1 DAY", "2026-01-31 10:20:30", "2026-02-28 00:00:00")
}

func TestB14StartOfYear(t *testing.T) {
	repeats(t, "FINISHED, START OF YEAR, +1 YEAR", "2027-01-01 00:00:00")
}

func TestB15Hourly(t *testing.T) { repeats(t, "HOURLY", "2026-03-10 14:45:00") }
func TestB16Daily(t *testing.T)  { repeats(t, "DAILY", "2026-03-11 13:45:00") }
func TestB17Weekly(t *testing.T) { repeats(t, "Weekly", "2026-03-17 13:45:00") }

func TestB18BlankAfterSign(t *testing.T) {
	repeats(t, "FINISHED, + 1 HOUR", "2026-03-10 14:45:00")
}

func TestB19SmallLetters(t *testing.T) {
	repeats(t, "finished, +1 minute", "2026-03-10 13:46:00")
}

func TestB20Malformed(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		"SCHEDULED": "modifier", "+1 HOUR": "base", "blabla": "base", "LATER, +1 HOUR": "base",
		"FINISHED, WEEKDAY 7": "modifier", "FINISHED, +1 FORTNIGHT": "modifier", "FINISHED, 1 HOUR": "modifier",
	} {
		refused(t, Repeat, text, "", field, "")
	}
}

func TestB21CatchesUp(t *testing.T) {
	t.Parallel()
	s := parse(t, Repeat, "SCHEDULED, +1 HOUR", "", base)
	now := at("2026-03-10 13:45:00")
	m := Moments{Scheduled: at("2026-03-10 08:00:00"), Started: at("2026-03-10 13:44:00"), Finished: now, Now: now}
	var late []string
	for {
		next, ok := s.Next(m)
		if !ok {
			t.Fatal("it never comes")
		}
		if next.After(now) {
			if want := at("2026-03-10 14:00:00"); !next.Equal(want) {
				t.Errorf("then it waits for %s, want %s", next, want)
			}
			break
		}
		late = append(late, next.Format("15"))
		m.Scheduled, m.Started, m.Finished = next, now, now
	}
	if got := strings.Join(late, " "); got != "09 10 11 12 13" {
		t.Errorf("it catches up at %s", got)
	}
}

func TestB23StartOfHour(t *testing.T) {
	t.Parallel()
	s := parse(t, Repeat, "SCHEDULED, +1 HOUR, START OF HOUR", "", base)
	comes(t, s, Moments{Scheduled: at("2026-03-10 13:30:00")}, "2026-03-10 14:00:00")
	repeatsFrom(t, "FINISHED, START OF DAY, +30 MINUTES, START OF HOUR, +5 MINUTES", "2026-03-10 13:45:33", "2026-03-10 00:05:00")
}

func crons(t *testing.T, text string, want ...string) {
	t.Helper()
	comes(t, parse(t, Cron, text, "", base), Moments{Now: base}, want...)
}

func TestC01Yearly(t *testing.T)  { crons(t, "0 0 0 1 1 *", "2027-01-01", "2028-01-01") }
func TestC02Monthly(t *testing.T) { crons(t, "0 0 0 1 * *", "2026-04-01", "2026-05-01") }
func TestC03Weekly(t *testing.T)  { crons(t, "0 0 0 * * 0", "2026-03-15", "2026-03-22") }

func TestC04DailyAndHourly(t *testing.T) {
	crons(t, "0 0 0 * * *", "2026-03-11", "2026-03-12")
	crons(t, "0 0 * * * *", "2026-03-10 14:00:00", "2026-03-10 15:00:00")
}

func TestC05Steps(t *testing.T) {
	crons(t, "3-59/15 * * * * *", "2026-03-10 13:45:33", "2026-03-10 13:45:48")
	crons(t, "0 3-59/15 * * * *", "2026-03-10 13:48:00", "2026-03-10 14:03:00")
}

func TestC05FromToTheEnd(t *testing.T) { // N/S is N-max/S
	crons(t, "0 50/5 * * * *", "2026-03-10 13:50:00", "2026-03-10 13:55:00", "2026-03-10 14:50:00")
	crons(t, "0 0 0 29/2 * *", "2026-03-29", "2026-03-31", "2026-04-29", "2026-05-29")
}

func TestC07RangesAndNames(t *testing.T) {
	crons(t, "0 0 9-17 * * *", "2026-03-10 14:00:00", "2026-03-10 15:00:00")
	crons(t, "0 0 0 * * MON,WED,FRI", "2026-03-11", "2026-03-13")
}

func TestC08QuestionMark(t *testing.T) {
	crons(t, "0 0 0 13 * ?", "2026-03-13", "2026-04-13")
	crons(t, "0 0 0 ? * FRI", "2026-03-13", "2026-03-20")
}

func TestC08BothDays(t *testing.T) { // either is enough
	crons(t, "0 0 0 15 * MON", "2026-03-15", "2026-03-16", "2026-03-23")
	crons(t, "0 0 15 * MON", "2026-03-15", "2026-03-16", "2026-03-23")
	crons(t, "0 0 0 30 2 MON", "2027-02-01", "2027-02-08")
}

func TestC11RareDays(t *testing.T) {
	crons(t, "0 0 0 31 * *", "2026-03-31", "2026-05-31")
	crons(t, "0 0 0 29 2 *", "2028-02-29", "2032-02-29")
}

func TestC11AroundACenturyWithoutLeapDay(t *testing.T) {
	s := parse(t, Cron, "0 0 29 2 *", "", at("2095-01-01"))
	comes(t, s, Moments{Now: at("2095-01-01")}, "2096-02-29", "2104-02-29")
}

func TestC13NamesOfAnyCase(t *testing.T) { crons(t, "0 0 0 * jan-mar sun", "2026-03-15", "2026-03-22") }

func TestC14Refused(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		"60 * * * * *": "second", "0 */0 * * * *": "minute", "0 0 0 0 * *": "day of month", "0 0 0 * * 7": "day of week",
		"0 0 0 * * 5-1": "day of week", "0 0 0 L * *": "day of month", "0 0 0 1 1 * 2026": "",
	} {
		refused(t, Cron, text, "", field, "")
	}
}

func TestC16StrictlyAfter(t *testing.T) { crons(t, "30 45 13 * * *", "2026-03-11 13:45:30") }

func TestC17Durations(t *testing.T) {
	t.Parallel()
	comes(t, parse(t, Every, "1.5h", "", base), Moments{Now: base}, "2026-03-10 15:15:30", "2026-03-10 16:45:30")
	comes(t, parse(t, Every, "30m10s", "", base), Moments{Now: base}, "2026-03-10 14:15:40", "2026-03-10 14:45:50")
}

func TestC18NotDurations(t *testing.T) {
	t.Parallel()
	for text, words := range map[string]string{"1d": "write 24h, or in English: every 1d", "1d12h": "write 36h, or in English: every 1d12h", "1w2d": "write 216h", "1d-": "24h", "90": "90s", "": "1h30m", "abc": "1h30m", "300ms": "milliseconds", "0s": "at least 1s", "-1h": "at least 1s", "0.5s": "at least 1s"} {
		refused(t, Every, text, "", "", words)
	}
}

func TestC19Once(t *testing.T) {
	t.Parallel()
	past := base.Add(-24 * time.Hour)
	s := parse(t, At, past.Format(time.RFC3339), "", base)
	comes(t, s, Moments{Now: base}, past.Format(time.RFC3339)) // due at once, and never again
	never(t, s, Moments{Now: base, Scheduled: past})
	refused(t, At, past.Add(-time.Second).Format(time.RFC3339), "", "", "has passed")
	refused(t, At, "7 o'clock", "", "", "RFC 3339")
}

func TestC20In(t *testing.T) {
	t.Parallel()
	kind, text := Detect("@in 10m")
	s := parse(t, kind, text, "", base)
	comes(t, s, Moments{Now: base}, "2026-03-10 13:55:30")
	never(t, s, Moments{Now: base.Add(time.Hour), Scheduled: at("2026-03-10 13:55:30")})
}

func cron7s(t *testing.T, text, from string, want ...string) Schedule {
	t.Helper()
	s := parse(t, Cron7, text, "", at(from))
	comes(t, s, Moments{Now: at(from)}, want...)
	return s
}

func TestW01EverySecond(t *testing.T) {
	cron7s(t, "* * * * * * *", "2026-03-10 13:45:30", "2026-03-10 13:45:30", "2026-03-10 13:45:31", "2026-03-10 13:45:32")
}

// beep is the schedule of WorkKit's own example.
const beep = "2014 3 * 0/2,3 9-17 * */5"

// beeps counts how often it comes, by day.
func beeps(t *testing.T) (days []string, perDay map[string]int, first, last time.Time) {
	t.Helper()
	s := parse(t, Cron7, beep, "", at("2014-01-01"))
	perDay = map[string]int{}
	for next := range s.Upcoming(Moments{Now: at("2014-01-01")}) {
		day := next.Format(time.DateOnly)
		if perDay[day] == 0 {
			days = append(days, next.Format("2"))
		}
		if perDay[day]++; first.IsZero() {
			first = next
		}
		last = next
	}
	return days, perDay, first, last
}

func TestW02HourIncluded(t *testing.T) {
	t.Parallel()
	_, perDay, _, _ := beeps(t)
	for day, n := range perDay {
		if n != 6480 || !strings.HasPrefix(day, "2014-03-") {
			t.Errorf("%d times on %s, want 6480 in March 2014", n, day)
		}
	}
}

func TestW03NthWeekday(t *testing.T) {
	t.Parallel()
	days, perDay, first, last := beeps(t)
	sum := 0
	for _, n := range perDay {
		sum += n
	}
	if got := fmt.Sprint(days); got != "[5 9 12 19 26]" || sum != 32_400 || first.UnixMilli() != 1394010000000 || last.UnixMilli() != 1395856795000 {
		t.Errorf("on %s, %d times, from %s to %s", got, sum, first, last)
	}
}

func TestW05SecondWednesday(t *testing.T) {
	s := cron7s(t, "2014 3 * 3/2 12 0 0", "2014-01-01", "2014-03-12 12:00:00")
	never(t, s, Moments{Now: at("2014-03-12 12:00:01")})
	cron7s(t, "2014 1 * 3/2 12 0 0", "2014-01-01", "2014-01-08 12:00:00")
}

func TestW06OrderOfFields(t *testing.T) {
	cron7s(t, "* 12 25 * 8 0 0", "2026-03-10", "2026-12-25 08:00:00", "2027-12-25 08:00:00")
}

func TestW07RangesAndLists(t *testing.T) {
	cron7s(t, "* * * * 14-16 0 0", "2026-03-10", "2026-03-10 14:00:00", "2026-03-10 15:00:00", "2026-03-10 16:00:00", "2026-03-11 14:00:00")
	cron7s(t, "* * * * 14,19,22 0 0", "2026-03-10", "2026-03-10 14:00:00", "2026-03-10 19:00:00", "2026-03-10 22:00:00", "2026-03-11 14:00:00")
	cron7s(t, "* * * * * * */8", "2026-03-10 00:00:30", "2026-03-10 00:00:32", "2026-03-10 00:00:40", "2026-03-10 00:00:48", "2026-03-10 00:00:56", "2026-03-10 00:01:00")
}

func TestW05BothDays(t *testing.T) { // both have to match, unlike in cron
	cron7s(t, "* * 13 5 0 0 0", "2026-03-10", "2026-03-13", "2026-11-13", "2027-08-13")
	cron7s(t, "* 2 29 0 0 0 0", "2026-03-10", "2032-02-29", "2060-02-29")
}

func TestW09YearPassed(t *testing.T) {
	t.Parallel()
	s := parse(t, Cron7, "2013 * * * * * *", "", at("2013-06-01"))
	never(t, s, Moments{Now: at("2014-03-05")})
	if _, err := Parse(Cron7, "2013 * * * * * *", "", at("2014-03-05")); err == nil || !strings.Contains(err.Error(), "year: 2013 has passed: it is 2014") {
		t.Errorf("got %v", err)
	}
}

func TestW11NowCounts(t *testing.T) {
	s := cron7s(t, "* * * * * * 16", "2026-03-10 09:34:16", "2026-03-10 09:34:16", "2026-03-10 09:35:16")
	// What was scheduled does not come again, however early it is asked.
	comes(t, s, Moments{Now: at("2026-03-10 09:34:15"), Scheduled: at("2026-03-10 09:34:16")}, "2026-03-10 09:35:16")
}

func TestW12In(t *testing.T) {
	t.Parallel()
	s := parse(t, Natural, "in 5 minutes", "", base)
	next, _ := s.Next(Moments{Now: base})
	if next.UnixMilli() != 1773150630000 || Cron7Once(next) != "2026 3 10 * 13 50 30" {
		t.Errorf("%s is %s", next, Cron7Once(next))
	}
	cron7s(t, Cron7Once(next), "2026-03-10 13:45:30", "2026-03-10 13:50:30")
	bare := parse(t, Natural, "in 5 minutes", "Asia/Tokyo", base)
	comes(t, bare, Moments{Now: base}, "2026-03-10 13:50:30")
}

func TestW13At(t *testing.T) {
	t.Parallel()
	s := parse(t, Natural, "7pm tomorrow", "", base)
	next, _ := s.Next(Moments{Now: base})
	if next.UnixMilli() != 1773255600000 || Cron7Once(next) != "2026 3 11 * 19 0 0" {
		t.Errorf("%s is %s", next, Cron7Once(next))
	}
}
