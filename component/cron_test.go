package component_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/statemachine"
)

// missedTick is a tick before which some were passed over.
func missedTick(n int, after time.Duration, missed int) string {
	return strings.TrimSuffix(tick(n, after), "}") + fmt.Sprintf(`,"missed":%d}`, missed)
}

// hold locks the job for some time, so that nothing runs.
func (s *script) hold(d time.Duration) {
	s.t.Helper()
	lock, err := s.h.Lock(s.t.Context(), 1000*time.Hour, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.after(d)
	if err := lock.Release(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// state reads a value of the job's state.
func (s *script) state(key string, v any) {
	s.t.Helper()
	values, err := s.h.State(s.t.Context(), key)
	if err == nil {
		err = json.Unmarshal(values[key], v)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestEvery(t *testing.T) {
	s := newScript(t, &Every{Every: Duration(10 * time.Second), Count: 4})
	s.after(9 * time.Second)
	s.after(2*time.Second, tick(1, 10*time.Second))
	s.after(20*time.Second, tick(2, 20*time.Second), tick(3, 30*time.Second))
	s.status(statemachine.Suspended)
	s.after(time.Hour, tick(4, 40*time.Second))
	s.status(statemachine.Completed)
}

// TestEveryMisses: nothing runs from 0:05 to 5:00, while ticks are due each 50 seconds, the last at 4:10.
func TestEveryMisses(t *testing.T) {
	const step = 50 * time.Second
	for missed, want := range map[string][]string{
		"":         {tick(2, step), missedTick(3, 7*step, 5)},
		MissedOne:  {tick(2, step), missedTick(3, 7*step, 5)},
		"2":        {tick(2, step), tick(3, 2*step), missedTick(4, 7*step, 4)},
		"100":      {tick(2, step), tick(3, 2*step), tick(4, 3*step), tick(5, 4*step), tick(6, 5*step), tick(7, 6*step), tick(8, 7*step)},
		MissedAll:  {tick(2, step), tick(3, 2*step), tick(4, 3*step), tick(5, 4*step), tick(6, 5*step), tick(7, 6*step), tick(8, 7*step)},
		MissedSkip: {missedTick(2, 5*step, 4), tick(3, 6*step), tick(4, 7*step)},
	} {
		t.Run("missed "+missed, func(t *testing.T) {
			s := newScript(t, &Every{Every: Duration(step), Immediately: true, Missed: missed})
			s.after(0, tick(1, 0))
			s.after(5 * time.Second)
			s.hold(295 * time.Second)
			s.after(55*time.Second, want...)
		})
	}
}

// TestEveryManyMissed: what is counted of missed ticks is bounded.
func TestEveryManyMissed(t *testing.T) {
	s := newScript(t, &Every{Every: Duration(time.Second), Count: 2})
	s.after(0)
	s.hold(3 * time.Hour)
	s.after(2*time.Second, tick(1, time.Second), missedTick(2, 3*time.Hour+time.Second, 10_000))
	s.status(statemachine.Completed)
}

// TestEveryCatchesUpInParts: thousands of ticks are written in several runs.
func TestEveryCatchesUpInParts(t *testing.T) {
	s := newScript(t, &Every{Every: Duration(time.Second), Missed: MissedAll})
	s.after(0)
	s.hold(2500 * time.Second)
	s.e.Advance(0)
	if got := outputs(t, s.h, "out")["out"]; len(got) != 2500 || got[2499] != tick(2500, 2500*time.Second) {
		t.Errorf("%d ticks", len(got))
	}
}

func TestCron(t *testing.T) {
	for name, c := range map[string]*Cron{
		"cron":    {Schedule: "30 * * * *", Count: 3},
		"cron7":   {Schedule: "cron7:* * * * * 30 0", Count: 3},
		"rrule":   {Schedule: "rrule:FREQ=HOURLY;BYMINUTE=30;BYSECOND=0", Count: 3},
		"natural": {Schedule: "natural:every day at 12:30am, 1:30am and 2:30am", Zone: "UTC", Count: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, c)
			const first = 30 * time.Minute // tests begin at midnight
			s.after(first - time.Second)
			s.after(time.Second, tick(1, first))
			s.after(90*time.Minute, tick(2, first+time.Hour))
			s.after(time.Hour, tick(3, first+2*time.Hour))
			s.status(statemachine.Completed)
		})
	}
}

// TestCronOnce: a schedule that comes once is one tick.
func TestCronOnce(t *testing.T) {
	s := newScript(t, &Cron{Schedule: "natural:in 5 minutes"})
	s.after(299 * time.Second)
	s.after(time.Hour, tick(1, 5*time.Minute))
	s.status(statemachine.Completed)
}

// TestCronOncePerTick: further runs between two ticks write nothing.
func TestCronOncePerTick(t *testing.T) {
	s := newScript(t, &Cron{Schedule: "*/10 * * * * *"})
	s.after(25*time.Second, tick(1, 10*time.Second), tick(2, 20*time.Second))
	s.hold(time.Second) // it runs again after that
	s.after(4*time.Second, tick(3, 30*time.Second))
}

func TestDebounce(t *testing.T) {
	for keep, want := range map[string][3][]string{
		"":        {{"3"}, {"4"}, {"6"}},
		KeepFirst: {{"1"}, {"4"}, {"5"}},
		KeepAll:   {{"[1,2,3]"}, {"[4]"}, {"[5,6]"}},
	} {
		t.Run("keep "+keep, func(t *testing.T) {
			s := newScript(t, &Debounce{Wait: Duration(5 * time.Second), Keep: keep})
			s.feed("in", "1")
			s.after(3 * time.Second)
			s.feed("in", "2")
			s.after(3 * time.Second)
			s.feed("in", "3")
			s.after(4999 * time.Millisecond)
			s.after(time.Millisecond, want[0]...)
			s.after(time.Hour)
			s.feed("in", "4")
			s.after(5*time.Second, want[1]...)
			s.feed("in", "5")
			s.after(time.Second)
			s.feed("in", "6")
			s.e.CloseIn(s.h, "in")
			s.after(0, want[2]...)
			s.status(statemachine.Completed)
			var dropped struct{ Dropped int }
			s.state("debounce", &dropped)
			if lost := map[bool]int{true: 0, false: 3}[keep == KeepAll]; dropped.Dropped != lost {
				t.Errorf("%d messages are counted as dropped, want %d", dropped.Dropped, lost)
			}
		})
	}
}

// TestDebounceMaxWait: messages that do not stop are passed on from time to time.
func TestDebounceMaxWait(t *testing.T) {
	s := newScript(t, &Debounce{Wait: Duration(5 * time.Second), MaxWait: Duration(10 * time.Second)})
	for i := range 10 {
		s.feed("in", fmt.Sprint(i))
		if i == 5 || i == 0 {
			s.after(0)
		}
		switch i {
		case 4:
			s.after(2*time.Second, "4")
		case 9:
			s.after(5*time.Second, "9")
		default:
			s.after(2 * time.Second)
		}
	}
}

// TestC25Debounce: three messages within the wait are one, the first of which throttles the others.
func TestC25Debounce(t *testing.T) {
	t.Run("trailing", func(t *testing.T) {
		s := newScript(t, &Debounce{Wait: Duration(5 * time.Second)})
		s.feed("in", "1")
		s.after(3 * time.Second)
		s.feed("in", "2")
		s.after(3 * time.Second)
		s.feed("in", "3")
		s.after(4 * time.Second)
		s.after(time.Second, "3") // at 11 s
	})
	t.Run("leading", func(t *testing.T) {
		s := newScript(t, &Throttle{Rate: 1, Per: Duration(5 * time.Second), Drop: true})
		s.feed("in", "1")
		s.after(3*time.Second, "1")
		s.feed("in", "2")
		s.after(3 * time.Second)
		s.feed("in", "3 4")
		s.after(0, "3")
		s.after(time.Hour)
		var n int
		if s.state("dropped", &n); n != 2 {
			t.Errorf("%d messages are counted as dropped, want 2", n)
		}
	})
}

// TestDebounceManyMessages: a list is written early, and nothing of it is lost.
func TestDebounceManyMessages(t *testing.T) {
	s := newScript(t, &Debounce{Wait: Duration(5 * time.Second), Keep: KeepAll})
	var in []any
	for i := range 2100 {
		in = append(in, i)
	}
	s.e.Feed(s.h, "in", in...)
	s.e.Advance(5 * time.Second)
	got := outputs(t, s.h, "out")["out"]
	n := 0
	for _, text := range got {
		for _, item := range unpack(t, text) {
			if item != fmt.Sprint(n) {
				t.Fatalf("%s comes after %d", item, n-1)
			}
			n++
		}
	}
	if len(got) != 3 || n != 2100 {
		t.Errorf("%d lists of %d messages", len(got), n)
	}
}
