package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"github.com/netresearch/go-cron"
	robfig "github.com/robfig/cron/v3"

	. "github.com/weirworks/weir/schedule"
)

// The oracle of this file knows nothing of how schedules are computed: it looks at each second.

// allows tells whether a field of a cron expression allows a value, from the text.
func allows(text string, n, least, most int) bool {
	for item := range strings.SplitSeq(text, ",") {
		whole, step, stepped := strings.Cut(item, "/")
		lo, hi := least, most
		if low, high, ranged := strings.Cut(whole, "-"); ranged {
			lo, hi = atoi(low), atoi(high)
		} else if whole != "*" && whole != "?" {
			if lo = atoi(whole); !stepped {
				hi = lo
			}
		}
		every := 1
		if stepped {
			every = atoi(step)
		}
		if n >= lo && n <= hi && (n-lo)%every == 0 {
			return true
		}
	}
	return false
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// weekdayAllows is allows for cron7's day of week, where v/n is the n-th of the month.
func weekdayAllows(text string, day time.Time) bool {
	for item := range strings.SplitSeq(text, ",") {
		v, n, ok := strings.Cut(item, "/")
		if ok && v != "*" {
			if int(day.Weekday()) == atoi(v) && (day.Day()+6)/7 == atoi(n) {
				return true
			}
		} else if allows(item, int(day.Weekday()), 0, 6) {
			return true
		}
	}
	return false
}

// matcher tells whether an expression allows what clocks show.
func matcher(kind Kind, text string) func(w time.Time) bool {
	f := strings.Fields(text)
	if kind == Cron {
		f = []string{"*", f[4], f[3], f[5], f[2], f[1], f[0]}
	}
	var tables [7][]bool // of all fields but the year and the weekday
	for i, r := range [][2]int{{0, -1}, {1, 12}, {1, 31}, {0, -1}, {0, 23}, {0, 59}, {0, 59}} {
		for v := range r[1] + 1 {
			tables[i] = append(tables[i], allows(f[i], v, r[0], r[1]))
		}
	}
	return func(w time.Time) bool {
		hour, minute, second := w.Clock()
		if !tables[6][second] || !tables[5][minute] || !tables[4][hour] {
			return false
		}
		year, month, day := w.Date()
		if !tables[1][month] || kind == Cron7 && !allows(f[0], year, 1970, 9999) {
			return false
		}
		if kind == Cron7 {
			return tables[2][day] && weekdayAllows(f[3], w)
		}
		byDay, byWeekday := tables[2][day], allows(f[3], int(w.Weekday()), 0, 6)
		if any := []string{"*", "?"}; slices.Contains(any, f[2]) || slices.Contains(any, f[3]) {
			return byDay && byWeekday
		}
		return byDay || byWeekday
	}
}

// secondBySecond lists when an expression fires after one moment, up to another.
func secondBySecond(kind Kind, text string, from, to time.Time, loc *time.Location) []time.Time {
	shows := matcher(kind, text)
	passing := kind == Cron && strings.HasPrefix(strings.Fields(text)[2], "*")
	wall := func(t time.Time) time.Time {
		t = t.In(loc)
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	var out []time.Time
	begin := from.Add(-3 * time.Hour) // before any change of clocks that still matters
	seen := wall(begin)               // the latest that clocks showed
	for t := begin; !t.After(to); t = t.Add(time.Second) {
		w := wall(t)
		fires := false
		if passing {
			fires = shows(w)
		} else {
			for ; seen.Before(w) && !fires; seen = seen.Add(time.Second) { // more than once at the end of a gap
				fires = shows(seen.Add(time.Second))
			}
			if seen.Before(w) {
				seen = w
			}
		}
		if fires && t.After(from) {
			out = append(out, t)
		}
	}
	return out
}

// randomField makes a field that is rarely far off.
func randomField(r *rand.Rand, least, most int, wild float64, from bool) string {
	value := func() int { return least + r.IntN(most-least+1) }
	item := func() string {
		switch r.IntN(5) {
		case 0:
			a, b := value(), value()
			return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		case 1:
			if a, b := value(), value(); a != b {
				return fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), 1+r.IntN(max(a, b)-min(a, b)))
			}
		case 2:
			if from {
				return fmt.Sprintf("%d/%d", value(), 1+r.IntN(20))
			}
		}
		return strconv.Itoa(value())
	}
	if r.Float64() < wild {
		if r.IntN(3) == 0 {
			return fmt.Sprintf("*/%d", 2+r.IntN(10))
		}
		return "*"
	}
	text := item()
	for r.IntN(3) == 0 {
		text += "," + item()
	}
	return text
}

func randomCron(r *rand.Rand, days float64, from bool) string {
	return strings.Join([]string{
		randomField(r, 0, 59, 0.1, from), randomField(r, 0, 59, 0.3, from), randomField(r, 0, 23, 0.4, from),
		randomField(r, 1, 31, days, from), randomField(r, 1, 12, days, from), randomField(r, 0, 6, days, from),
	}, " ")
}

// changes are moments around which clocks are changed, or not.
var changes = map[string][]string{
	"UTC":                 {"2026-03-10T13:45:30Z", "2027-12-31T20:00:00Z"},
	"Europe/Berlin":       {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
	"America/New_York":    {"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"},
	"Australia/Lord_Howe": {"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"},
	"America/Sao_Paulo":   {"2018-11-04T03:00:00Z", "2018-02-18T02:00:00Z"}, // at midnight
	"Pacific/Apia":        {"2011-12-30T10:00:00Z"},                         // a day that never was
}

// TestSecondBySecond: schedules come when a look at each second says, where clocks are put forward and back, too.
func TestSecondBySecond(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(24, 1))
	cases := 0
	for zone, around := range changes {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range around {
			for range 8 {
				from := at(change).Add(-time.Duration(r.IntN(30*3600)) * time.Second)
				checkBySecond(t, Cron, randomCron(r, 0.9, true), zone, from, loc)
				cases++
			}
			if zone != "UTC" {
				continue
			}
			for range 24 {
				f := strings.Fields(randomCron(r, 0.9, false))
				weekday := []string{"*", "0/2,3", "*/2", "5/1", "1-5", "2/2,3/3,4/4"}[r.IntN(6)]
				text := strings.Join([]string{"*", "*", f[3], weekday, f[2], f[1], f[0]}, " ")
				checkBySecond(t, Cron7, text, "", at(change).Add(-time.Duration(r.IntN(30*3600))*time.Second), loc)
				cases++
			}
		}
	}
	t.Log(cases, "cases")
}

// checkBySecond compares all that comes within a day and a half.
func checkBySecond(t *testing.T, kind Kind, text, zone string, from time.Time, loc *time.Location) {
	t.Helper()
	s, err := Parse(kind, text, zone, from)
	if err != nil {
		return // no such day
	}
	to := from.Add(36 * time.Hour)
	want := secondBySecond(kind, text, from, to, loc)
	i := 0
	for next := range s.Upcoming(Moments{Now: from}) {
		if kind == Cron7 && next.Equal(from) {
			continue
		}
		if i == len(want) {
			if !next.After(to) {
				t.Errorf("%s in %s after %s comes at %s, too", s, zone, from, next)
			}
			return
		}
		if !next.Equal(want[i]) {
			t.Errorf("%s in %s after %s comes at %s, want %s", s, zone, from, next, want[i].In(loc))
			return
		}
		i++
	}
	if i < len(want) {
		t.Errorf("%s in %s after %s ends after %d times, want %d", s, zone, from, i, len(want))
	}
}

// TestLikeOtherCrons: two cron libraries see the same next times, in UTC. They do not agree with each other about steps of the days,
// so that there are none.
func TestLikeOtherCrons(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(24, 2))
	parser := cron.MustNewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom)
	compared := 0
	for range 400 {
		text := randomCron(r, 0.6, false)
		if f := strings.Fields(text); strings.HasPrefix(f[3], "*/") || strings.HasPrefix(f[5], "*/") {
			continue
		}
		from := base.Add(time.Duration(r.IntN(5*365*86400)) * time.Second)
		s, err := Parse(Cron, text, "", from)
		if err != nil {
			continue // no such day
		}
		other, err := parser.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		next, _ := s.Next(Moments{Now: from})
		if want := other.Next(from); !next.Equal(want) {
			t.Errorf("%s after %s comes at %s, go-cron says %s", text, from, next, want)
		}
		if next.Sub(from) < 4*365*24*time.Hour {
			want, err := gronx.NextTickAfter(text, from, false)
			if err != nil || !next.Equal(want) {
				t.Errorf("%s after %s comes at %s, gronx says %s, %v", text, from, next, want, err)
			}
		}
		compared++
	}
	if compared < 250 {
		t.Errorf("%d cases", compared)
	}
}

// TestStepOfDays: a step restricts a day field, so that either field is enough. Cron programs differ in that; here it is as in the
// library that Cozy uses.
func TestStepOfDays(t *testing.T) {
	t.Parallel()
	parser := robfig.NewParser(robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month | robfig.Dow)
	for _, text := range []string{"0 0 */10 * MON", "0 0 13 * */3", "0 0 */2 * *", "0 0 * * */2", "0 0 1-31 * 1", "0 0 15 * 0-6", "0 0 15 * SUN-SAT", "0 0 31 2 0-6"} {
		other, err := parser.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s := parse(t, Cron, text, "", base)
		for from, i := base, 0; i < 20; i++ {
			next, _ := s.Next(Moments{Now: from})
			if want := other.Next(from); !next.Equal(want) {
				t.Errorf("%s after %s comes at %s, robfig/cron says %s", text, from, next, want)
			}
			from = next
		}
	}
}
