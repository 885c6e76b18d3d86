package component_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	. "github.com/weirworks/weir/component"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

// script is a test in time: what is done, and what comes out of the port out by then.
type script struct {
	t *testing.T
	e *weirtest.Engine
	h *client.Handle
}

func newScript(t *testing.T, c Component) *script {
	t.Helper()
	t.Parallel()
	e := weirtest.New(t, c)
	return &script{t, e, e.StartWorker(c)}
}

func (s *script) feed(in, items string) { s.e.Feed(s.h, in, raws(list(items))...) }

// after lets time pass and checks what comes out.
func (s *script) after(d time.Duration, want ...string) {
	s.t.Helper()
	s.e.Advance(d)
	if got := outputs(s.t, s.h, "out")["out"]; !slices.Equal(got, want) {
		s.t.Fatalf("at %s: got %v, want %v", s.e.Now().Format(time.TimeOnly), got, want)
	}
}

func (s *script) status(want statemachine.Status) {
	s.t.Helper()
	if got := s.e.Status(s.h); got != want {
		s.t.Fatalf("the job is %s, want %s: %v", got, want, s.e.Failures(s.h))
	}
}

// steps is how often the job has run.
func (s *script) steps() int64 { return s.e.Info(s.h).Steps }

func TestBatchWaits(t *testing.T) {
	s := newScript(t, &Batch{Size: 3, MaxWait: Duration(time.Minute)})
	s.feed("in", "1 2")
	s.after(30 * time.Second)
	s.status(statemachine.Suspended)
	s.feed("in", "3 4")
	s.after(0, "[1,2,3]")
	s.after(59 * time.Second)
	s.after(time.Second, "[4]")
	s.after(time.Hour)
	before := s.steps()
	for range 50 { // each batch would have a timer of its own
		s.feed("in", "1 2")
		s.after(time.Millisecond)
		s.feed("in", "3")
		s.after(time.Millisecond, "[1,2,3]")
	}
	s.after(time.Hour)
	if n := s.steps() - before; n > 105 {
		t.Errorf("%d runs for 50 batches", n)
	}
	s.feed("in", "5")
	s.e.CloseIn(s.h, "in")
	s.after(0, "[5]")
	s.status(statemachine.Completed)
}

func TestWindowOfTime(t *testing.T) {
	s := newScript(t, &Window{Every: Duration(time.Minute)})
	win := func(start, end int, items string) string {
		at := func(sec int) string { return weirtest.Epoch.Add(time.Duration(sec) * time.Second).Format(time.RFC3339) }
		return fmt.Sprintf(`{"start":%q,"end":%q,"items":%s}`, at(start), at(end), items)
	}
	s.feed("in", "1 2")
	s.after(30 * time.Second)
	s.feed("in", "3")
	s.after(29 * time.Second)
	s.after(time.Second, win(0, 60, "[1,2,3]"))
	s.feed("in", "4")
	s.after(time.Hour, win(60, 120, "[4]"))
	s.status(statemachine.Completed) // for now: the port is not wired
	s.feed("in", "5")
	s.e.CloseIn(s.h, "in")
	s.after(0, win(3660, 3720, "[5]"))
	s.status(statemachine.Completed)
}

func TestWindowSlides(t *testing.T) {
	s := newScript(t, &Window{Every: Duration(30 * time.Second), Slide: Duration(10 * time.Second)})
	win := func(start, end int, items string) string {
		at := func(sec int) string { return weirtest.Epoch.Add(time.Duration(sec) * time.Second).Format(time.RFC3339) }
		return fmt.Sprintf(`{"start":%q,"end":%q,"items":%s}`, at(start), at(end), items)
	}
	s.e.Advance(5 * time.Second)
	s.feed("in", "1")
	s.after(0)
	s.after(5*time.Second, win(-20, 10, "[1]"))
	s.feed("in", "2") // at 10
	s.after(10*time.Second, win(-10, 20, "[1,2]"))
	s.after(10*time.Second, win(0, 30, "[1,2]"))
	s.after(10*time.Second, win(10, 40, "[2]"))
	s.after(time.Minute)
	s.feed("in", "3") // at 100
	s.after(0)
	s.e.CloseIn(s.h, "in")
	s.after(0, win(80, 110, "[3]"), win(90, 120, "[3]"), win(100, 130, "[3]"))
	s.status(statemachine.Completed)
}

func TestWindowLimits(t *testing.T) {
	s := newScript(t, &Window{Every: Duration(time.Minute), MaxItems: 2})
	s.feed("in", "1 2 3")
	s.after(0)
	s.status(statemachine.Failed)
}

func TestThrottle(t *testing.T) {
	s := newScript(t, &Throttle{Rate: 3, Per: Duration(time.Minute)})
	s.feed("in", "1 2")
	s.after(10*time.Second, "1", "2")
	s.feed("in", "3 4 5 6 7 8")
	s.after(0, "3")
	s.after(49 * time.Second)
	s.after(time.Second, "4", "5")
	s.after(9 * time.Second)
	s.after(time.Second, "6")
	s.after(50*time.Second, "7", "8")
	s.e.CloseIn(s.h, "in")
	s.after(0)
	s.status(statemachine.Completed)
}

// TestThrottleNeverMore: in no span of time do more messages leave than allowed.
func TestThrottleNeverMore(t *testing.T) {
	s := newScript(t, &Throttle{Rate: 5, Per: Duration(time.Second)})
	var left []time.Time
	for i := range 100 {
		s.feed("in", fmt.Sprint(i))
		s.e.Advance(37 * time.Millisecond)
		for range outputs(s.t, s.h, "out")["out"] {
			left = append(left, s.e.Now())
		}
	}
	for i := 5; i < len(left); i++ {
		if d := left[i].Sub(left[i-5]); d < time.Second-37*time.Millisecond {
			t.Fatalf("6 messages in %s", d)
		}
	}
	if len(left) < 15 || len(left) > 20 {
		t.Errorf("%d messages left in 3.7 s, at 5 a second", len(left))
	}
}

func TestDelay(t *testing.T) {
	s := newScript(t, &Delay{By: Duration(time.Minute)})
	s.feed("in", "1 2")
	s.after(20 * time.Second)
	s.feed("in", "3")
	s.after(39 * time.Second)
	s.after(time.Second, "1", "2")
	s.after(19 * time.Second)
	s.e.CloseIn(s.h, "in")
	s.after(0)
	s.status(statemachine.Suspended)
	s.after(time.Second, "3")
	s.status(statemachine.Completed)
}

// TestDelayDrained: somebody takes messages out of the port while they wait.
func TestDelayDrained(t *testing.T) {
	s := newScript(t, &Delay{By: Duration(time.Minute)})
	s.feed("in", "1 2 3")
	s.after(10 * time.Second)
	if _, err := s.h.Drain(t.Context(), port.Input, "in"); err != nil {
		t.Fatal(err)
	}
	s.feed("in", "4")
	s.after(59 * time.Second)
	s.after(time.Second, "4")
}

func TestGate(t *testing.T) {
	s := newScript(t, &Gate{})
	s.feed("in", "1 2")
	s.after(0)
	s.status(statemachine.Suspended)
	s.feed("open", "true")
	s.after(0, "1", "2")
	s.feed("in", "3")
	s.after(0, "3")
	s.feed("open", "true false")
	s.feed("in", "4")
	s.after(0)
	s.e.CloseIn(s.h, "open")
	s.after(0)
	s.status(statemachine.Failed)
	if f := s.e.Failures(s.h); len(f) != 1 || f[0].Error != "the gate is closed and its port open is at its end: 1 messages wait indefinitely" {
		t.Errorf("got %v", f)
	}
}

func tick(n int, after time.Duration) string {
	return fmt.Sprintf(`{"n":%d,"at":%q}`, n, weirtest.Epoch.Add(after).Format(time.RFC3339Nano))
}

func TestTicker(t *testing.T) {
	s := newScript(t, &Ticker{Every: Duration(10 * time.Second), Count: 4})
	s.after(9 * time.Second)
	s.after(2*time.Second, tick(1, 10*time.Second))
	s.after(20*time.Second, tick(2, 20*time.Second), tick(3, 30*time.Second))
	s.status(statemachine.Suspended)
	s.after(time.Hour, tick(4, 40*time.Second))
	s.status(statemachine.Completed)
}

// TestTickerMisses: nothing runs for a while, because the job is locked.
func TestTickerMisses(t *testing.T) {
	for missed, want := range map[string][]string{
		MissedSkip:    {tick(2, 50*time.Second), tick(3, 60*time.Second)},
		MissedCatchUp: {tick(2, 10*time.Second), tick(3, 20*time.Second), tick(4, 30*time.Second), tick(5, 40*time.Second), tick(6, 50*time.Second), tick(7, 60*time.Second)},
	} {
		t.Run(missed, func(t *testing.T) {
			s := newScript(t, &Ticker{Every: Duration(10 * time.Second), Immediately: true, Missed: missed})
			s.after(0, tick(1, 0))
			lock, err := s.h.Lock(t.Context(), time.Hour, 0)
			if err != nil {
				t.Fatal(err)
			}
			s.after(55 * time.Second)
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.after(5*time.Second, want...)
		})
	}
}

func TestLargeStreams(t *testing.T) {
	t.Parallel()
	var in []any
	var want []string
	for i := range 1100 {
		in = append(in, i)
		want = append(want, fmt.Sprint(i))
	}
	for _, c := range []Component{&Map{Expr: "it"}, &Merge{}, &Dedupe{}, &Batch{Size: 1000}, &Collect{}, &Window{Count: 100}, &Delay{By: Duration(time.Second)}} {
		t.Run(c.JobType(), func(t *testing.T) {
			t.Parallel()
			e := weirtest.New(t, c)
			h := e.StartWorker(c)
			e.Feed(h, "in", in...)
			e.CloseIn(h, "in")
			e.Advance(time.Minute)
			var got []string
			for _, text := range outputs(t, h, "out")["out"] {
				got = append(got, unpack(t, text)...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %d messages, want %d in order", len(got), len(want))
			}
			if s := e.Status(h); s != statemachine.Completed {
				t.Errorf("the job is %s: %v", s, e.Failures(h))
			}
		})
	}
}

// unpack returns the items of a list or a window, or a single one.
func unpack(t *testing.T, text string) []string {
	var items []json.RawMessage
	var w struct{ Items []json.RawMessage }
	switch text[0] {
	case '[':
		if err := json.Unmarshal([]byte(text), &items); err != nil {
			t.Fatal(err)
		}
	case '{':
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		items = w.Items
	default:
		return []string{text}
	}
	var out []string
	for _, raw := range items {
		out = append(out, string(raw))
	}
	return out
}
