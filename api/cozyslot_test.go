package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirworks/weir/api"
)

// C23: a launcher of a period always fires at the same moment of it, which follows from what it is; by itself never on a day
// that some months lack.
func TestC23Slots(t *testing.T) {
	s, _ := still(t, nil)
	next := func(typ, when, to string) time.Time {
		t.Helper()
		var one oneLauncher
		body := must(json.Marshal(map[string]any{"type": typ, "arguments": when, "options": map[string]any{"arguments": map[string]string{"to": to}}}))
		s.cozy("POST", "/jobs/launchers/sendmail", string(body)).is(http.StatusCreated, &one)
		var v1 api.Trigger
		s.ask("GET", "/v1/triggers/"+string(one.Data.ID), nil).is(http.StatusOK, &v1)
		if a := one.Data.Attributes; a.Type != typ || a.Arguments != when || !slices.IsSortedFunc(v1.Next, time.Time.Compare) {
			t.Errorf("%s %q is %+v, next %v", typ, when, a, v1.Next)
		}
		return *one.Data.Attributes.Next
	}
	for _, c := range []struct {
		typ, when string
		ok        func(at time.Time) bool
	}{
		{"@hourly", "", func(time.Time) bool { return true }},
		{"@daily", "", func(time.Time) bool { return true }},
		{"@daily", "between 8am and 6pm", func(at time.Time) bool { return at.Hour() >= 8 && at.Hour() < 18 }},
		{"@daily", "between 11pm and 1am", func(at time.Time) bool { return at.Hour() == 23 || at.Hour() == 0 }},
		{"@daily", "Before 5AM", func(at time.Time) bool { return at.Hour() < 5 }},
		{"@daily", "after 12pm", func(at time.Time) bool { return at.Hour() >= 12 }},
		{"@weekly", "", func(time.Time) bool { return true }},
		{"@weekly", "on monday and thu after 10pm", func(at time.Time) bool {
			return (at.Weekday() == time.Monday || at.Weekday() == time.Thursday) && at.Hour() >= 22
		}},
		{"@weekly", "on friday-sunday", func(at time.Time) bool { return at.Weekday() == 0 || at.Weekday() >= time.Friday }},
		{"@monthly", "", func(at time.Time) bool { return at.Day() <= 28 }},
		{"@monthly", "on the 2-4,20 before 2am", func(at time.Time) bool {
			return slices.Contains([]int{2, 3, 4, 20}, at.Day()) && at.Hour() < 2
		}},
		{"@monthly", "on the 25-31", func(at time.Time) bool { return at.Day() >= 25 && at.Day() <= 28 }},
	} {
		moments := map[time.Time]bool{}
		for n := range 30 {
			at := next(c.typ, c.when, strconv.Itoa(n)).UTC()
			if moments[at] = true; !c.ok(at) {
				t.Errorf("%s %q fires at %s", c.typ, c.when, at)
			}
		}
		if a, b := next(c.typ, c.when, "me"), next(c.typ, c.when, "me"); !a.Equal(b) {
			t.Errorf("%s %q fires at %s and at %s", c.typ, c.when, a, b)
		}
		if len(moments) < 20 {
			t.Errorf("30 of %s %q fire at %d moments", c.typ, c.when, len(moments))
		}
	}
}
