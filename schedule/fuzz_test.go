package schedule_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	. "github.com/weirworks/weir/schedule"
)

// sound checks what holds for every text: no panic, an error that says what was parsed, times that go on, and the same
// schedule after it was stored.
func sound(t *testing.T, kind Kind, text, zone string) {
	began := time.Now()
	s, err := Parse(kind, text, zone, base)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || e.Kind != kind || e.Text != text || e.Reason == "" {
			t.Fatalf("%#v", err)
		}
		return
	}
	m := Moments{Now: base, Scheduled: base, Started: base, Finished: base}
	times := firstOf(s, m, 5)
	for i, next := range times {
		if kind != Repeat && kind != At && kind != Natural && next.Before(base) || i > 0 && !next.After(times[i-1]) {
			t.Fatalf("%v: %v", s, times)
		}
	}
	if s.Understood() == "" {
		t.Fatalf("%v is not understood", s)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back Schedule
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	first, ok := s.Next(m)
	again, same := back.Next(m)
	if ok != same || !first.Equal(again) {
		t.Fatalf("%s comes at %s, before it was stored at %s", raw, again, first)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Fatalf("%v takes %s", s, d)
	}
}

func fuzz(f *testing.F, kind Kind, more ...string) {
	for _, text := range append(samples[kind], more...) {
		f.Add(text, "")
		f.Add(text, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, text, zone string) { sound(t, kind, text, zone) })
}

func FuzzCron(f *testing.F) {
	fuzz(f, Cron, "0 0 0 13 * ?", "5/7 * * * *", "0 0 30-31 feb *", "TZ=UTC * * * * *")
}

func FuzzCron7(f *testing.F) { fuzz(f, Cron7, "2013-2030/7 * * 0/5,2 */2 1,2 59", "* 2 29 1 0 0 0") }

func FuzzEvery(f *testing.F) { fuzz(f, Every, "1h2m3s", "1d", "300ms", "-1h") }

func FuzzRepeat(f *testing.F) {
	fuzz(f, Repeat, "STARTED, WEEKDAY 3, START OF YEAR, -99 MONTHS", "FINISHED, + 1 HOUR, START OF HOUR")
}

func FuzzAt(f *testing.F) { fuzz(f, At, "2026-03-12", "9999-12-31T23:59:59-14:00") }

func FuzzRRule(f *testing.F) {
	fuzz(f, RRule, "FREQ=YEARLY;BYWEEKNO=53,-1;BYDAY=MO;WKST=SU", "FREQ=MINUTELY;INTERVAL=7;BYHOUR=3;BYSETPOS=-1;BYSECOND=1,2",
		"DTSTART;TZID=Asia/Tokyo:20260101T000000\nRRULE:FREQ=MONTHLY;BYMONTHDAY=31;UNTIL=20290101\nRDATE:20270101T000000Z", "FREQ=HOURLY;INTERVAL=2;BYHOUR=4")
}

func FuzzNatural(f *testing.F) {
	fuzz(f, Natural, "every month on the last day at 23:00", "next friday at 7:30 pm", "in 1h30m and 3 days", "every last friday of the month at 5pm", "the 15th at 8am", "mon-fri at noon",
		"every 2 months on the 31st", "every other friday at 9am", "weekdays at 9am and 5pm", "feb 29 2028 at midnight", "in 2w1d12h")
}

// FuzzDetect: whatever a person types.
func FuzzDetect(f *testing.F) {
	for kind, texts := range samples {
		for _, text := range texts {
			f.Add(text)
			f.Add(string(kind) + ":" + text)
		}
	}
	f.Add("@in 10m")
	f.Fuzz(func(t *testing.T, text string) {
		kind, rest := Detect(text)
		sound(t, kind, rest, "")
	})
}

// FuzzStored: whatever is found where a schedule was stored.
func FuzzStored(f *testing.F) {
	f.Add([]byte(`{"schedule":"natural:in 5 minutes","zone":"Europe/Berlin","resolved":"at:2026-03-12T07:00:00Z"}`))
	f.Add([]byte(`{"schedule":"cron:* * * * *"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s Schedule
		if json.Unmarshal(raw, &s) == nil {
			firstOf(s, Moments{Now: base}, 3)
		}
	})
}
