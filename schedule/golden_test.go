package schedule_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teambition/rrule-go"

	. "github.com/weirworks/weir/schedule"
)

// table reads a file of testdata: cells that bars separate. The first line says what computed them.
func table(t *testing.T, name string) [][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "#") {
			rows = append(rows, strings.Split(strings.TrimSpace(line), " | "))
		}
	}
	return rows
}

// TestRepeatLikeSQLite: modifiers do what those of SQLite do. The table was made by Python's module sqlite3, with the same
// modifiers in random order.
func TestRepeatLikeSQLite(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, "repeat.txt") {
		repeatsFrom(t, "FINISHED, "+row[1], row[0], row[2])
	}
}

// TestRRuleLikeDateutil: rules come when python-dateutil says. Random rules; those that it takes without end
// to see are never are not among them.
func TestRRuleLikeDateutil(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, "rrule.txt") {
		start, err := time.Parse("20060102T150405", row[0])
		if err != nil {
			t.Fatal(err)
		}
		s := parse(t, RRule, "DTSTART:"+row[0]+"\nRRULE:"+row[1], "", start.Add(-time.Hour))
		comes(t, s, Moments{Now: start.Add(-time.Hour)}, strings.Split(row[2], ", ")...)
	}
}

// TestRRuleLikeLibrary: from moments far behind DTSTART, rules come when rrule-go says, in a zone whose clocks
// are not changed.
func TestRRuleLikeLibrary(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table(t, "rrule.txt") {
		if strings.Contains(row[1], "MINUTELY") || strings.Contains(row[1], "UNTIL") {
			continue // the library goes through all times; it reads UNTIL in another zone
		}
		set, err := rrule.StrToRRuleSet("DTSTART;TZID=Asia/Tokyo:" + row[0] + "\nRRULE:" + row[1])
		if err != nil {
			t.Fatalf("%s: %v", row[1], err)
		}
		start, _ := time.ParseInLocation("20060102T150405", row[0], zone)
		s := parse(t, RRule, "DTSTART;TZID=Asia/Tokyo:"+row[0]+"\nRRULE:"+row[1], "", start.Add(-time.Hour))
		for _, days := range []int{0, 17, 200, 800} {
			from := start.AddDate(0, 0, days).Add(77 * time.Minute)
			var want []time.Time
			for len(want) < 3 {
				last := from
				if len(want) > 0 {
					last = want[len(want)-1]
				}
				next := set.After(last, false)
				if next.IsZero() {
					break
				}
				want = append(want, next)
			}
			if got := firstOf(s, Moments{Now: from}, 3); !slices.EqualFunc(got, want, time.Time.Equal) {
				t.Errorf("%s of %s comes after %s at %v, want %v", row[1], row[0], from, got, want)
			}
		}
	}
}
