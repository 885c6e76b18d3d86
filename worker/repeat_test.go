package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Cleanup notes in its state when it ran, and writes how often.
type Cleanup struct {
	Fail string // the message at which it fails
	Hush string // the message at which it writes nothing
	In   port.In[string]
	Out  port.Out[int]
}

func (c *Cleanup) Run(_ context.Context, run *worker.Run) error {
	var times []time.Time
	if _, err := run.State().Get("times", &times); err != nil {
		return err
	}
	hush := false
	for text, err := range c.In.All() {
		if err != nil || text == c.Fail {
			return worker.Permanent(errors.Join(errors.New("told to fail"), err))
		}
		hush = hush || text == c.Hush
	}
	times = append(times, run.Now())
	if err := run.State().Set("times", times); err != nil || hush {
		return err
	}
	return c.Out.Write(len(times))
}

// cleanups is a job that repeats, on a clock that the test moves.
type cleanups struct {
	*testing.T
	e *weirtest.Engine
	h *client.Handle
}

// newCleanups creates it, as due so long ago.
func newCleanups(t *testing.T, late time.Duration, r job.RepeatRule) *cleanups {
	t.Helper()
	t.Parallel()
	e := weirtest.New(t, &Cleanup{})
	plan, err := job.Single(&Cleanup{Fail: "fail", Hush: "hush"}, "").Plan()
	if err != nil {
		t.Fatal(err)
	}
	if plan.Repeat, err = r.Repeats(weirtest.Epoch); err != nil {
		t.Fatal(err)
	}
	if late > 0 {
		plan.Nodes[0].At = weirtest.Epoch.Add(-late)
	}
	h, err := e.Client().Start(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	c := &cleanups{t, e, h}
	e.RunUntilIdle()
	return c
}

// ran wants the job to have run at these times, counted from the start.
func (c *cleanups) ran(want ...time.Duration) {
	c.Helper()
	if state, err := c.h.State(c.Context(), "times"); err == nil && len(state) == 0 && len(want) == 0 {
		return
	}
	var got []time.Duration
	for _, t := range weirtest.State[[]time.Time](c.e, c.h, "times") {
		got = append(got, t.Sub(weirtest.Epoch))
	}
	if !slices.Equal(got, want) {
		c.Fatalf("ran at %v, want %v", got, want)
	}
}

func (c *cleanups) info() *job.Info {
	c.Helper()
	i, err := c.h.Info(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	return i
}

// A job that completes runs again under its own ID, with the state that it left.
func TestB31Repeats(t *testing.T) {
	c := newCleanups(t, 0, job.RepeatRule{Schedule: "finished, +1 minute"})
	c.ran(0)
	i := c.info()
	if i.Status != statemachine.Scheduled || !i.Next.Equal(weirtest.Epoch.Add(time.Minute)) || i.Repeat.Count != 1 || !i.Repeat.Ended.Equal(weirtest.Epoch) {
		t.Errorf("%+v, repeat %+v", i, i.Repeat)
	}
	c.e.Advance(59 * time.Second)
	c.ran(0)
	c.e.Advance(time.Second)
	c.ran(0, time.Minute)
	if got := weirtest.Drain[int](c.e, c.h, "out"); !slices.Equal(got, []int{2}) {
		t.Errorf("results %v, want that of the last repetition", got)
	}
}

// B21: SCHEDULED catches up, one repetition after the other; a policy says otherwise.
func TestB21CatchesUp(t *testing.T) {
	late, next := 5*time.Hour+45*time.Minute, 15*time.Minute
	for _, one := range []struct {
		schedule, missed string
		runs             int // at once
		passed           int64
		next             time.Duration
	}{
		{"SCHEDULED, +1 HOUR", "", 6, 0, next},
		{"SCHEDULED, +1 HOUR", schedule.MissedAll, 6, 0, next},
		{"SCHEDULED, +1 HOUR", schedule.MissedOne, 1, 5, next},
		{"SCHEDULED, +1 HOUR", schedule.MissedSkip, 0, 6, next},
		{"SCHEDULED, +1 HOUR", "3", 3, 3, next},
		{"FINISHED, +1 HOUR", "", 1, 0, time.Hour},
		{"STARTED, +1 HOUR", "", 1, 0, time.Hour},
		{"every:1h", "", 1, 5, next},
		{"every:1h", schedule.MissedAll, 6, 0, next},
	} {
		t.Run(one.schedule+" "+one.missed, func(t *testing.T) {
			c := newCleanups(t, late, job.RepeatRule{Schedule: one.schedule, Missed: one.missed})
			c.ran(slices.Repeat([]time.Duration{0}, one.runs)...)
			i := c.info()
			if i.Repeat.Count != int64(one.runs) || i.Repeat.Passed != one.passed || !i.Next.Equal(weirtest.Epoch.Add(one.next)) || !i.Repeat.Scheduled.Equal(i.Next) {
				t.Errorf("next %s, %+v; want %d runs, %d passed over, next %s", i.Next, i.Repeat, one.runs, one.passed, one.next)
			}
			c.e.Advance(one.next)
			c.ran(append(slices.Repeat([]time.Duration{0}, one.runs), one.next)...)
		})
	}
}

// The times of a clock begin with the first of them, those that count from runs at once.
func TestRepeatsByTheClock(t *testing.T) {
	h, d := time.Hour, 24*time.Hour
	for _, one := range []struct {
		schedule, zone string
		want           []time.Duration // within two days; weirtest begins on Thursday 2026-01-01 at midnight
	}{
		{"cron:30 9 * * *", "", []time.Duration{9*h + h/2, d + 9*h + h/2}},
		{"cron:30 9 * * *", "Europe/Berlin", []time.Duration{8*h + h/2, d + 8*h + h/2}},
		{"cron7:* * * 5 12 0 0", "", []time.Duration{d + 12*h}},
		{"rrule:FREQ=DAILY;BYHOUR=6;BYMINUTE=0;BYSECOND=0;COUNT=1", "", []time.Duration{6 * h}},
		{"natural:every day at 7am", "", []time.Duration{7 * h, d + 7*h}},
		{"every:18h", "", []time.Duration{0, 18 * h, 36 * h}},
		{"DAILY", "", []time.Duration{0, d}},
		{"FINISHED, +1 DAY, START OF DAY, +4 HOURS", "Europe/Berlin", []time.Duration{0, d + 3*h}},
	} {
		t.Run(one.schedule+one.zone, func(t *testing.T) {
			c := newCleanups(t, 0, job.RepeatRule{Schedule: one.schedule, Zone: one.zone})
			c.e.Advance(2*d - time.Second)
			c.ran(one.want...)
			want := statemachine.Scheduled
			if strings.Contains(one.schedule, "COUNT") {
				want = statemachine.Completed
			}
			if i := c.info(); i.Status != want || i.Repeat.Count != int64(len(one.want)) && want == statemachine.Scheduled {
				t.Errorf("%s, %+v", i.Status, i.Repeat)
			}
		})
	}
}

// Messages wait for the next repetition, unless they come during a run; a run that is asked for is the next repetition.
func TestRepeatsReadsAtItsTime(t *testing.T) {
	c := newCleanups(t, 0, job.RepeatRule{Schedule: "SCHEDULED, +1 HOUR"})
	c.e.Feed(c.h, "in", "a")
	c.e.RunUntilIdle()
	c.ran(0)
	c.e.Advance(time.Minute)
	if err := c.h.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.e.RunUntilIdle()
	c.ran(0, time.Minute)
	if p, _ := c.info().Port(port.Input, "in"); p.Waiting != 0 {
		t.Errorf("%d messages wait", p.Waiting)
	}
	c.e.Advance(2 * time.Hour)
	c.ran(0, time.Minute, 2*time.Hour)
}

// A job that fails repeats no more until it is retried; terminating it ends it.
func TestRepeatsUntilItFails(t *testing.T) {
	c := newCleanups(t, 0, job.RepeatRule{Schedule: "SCHEDULED, +1 HOUR"})
	c.e.Feed(c.h, "in", "fail")
	c.e.Advance(3 * time.Hour)
	c.ran(0)
	if i := c.info(); i.Status != statemachine.Failed {
		t.Fatalf("%s", i.Status)
	}
	if _, err := c.h.Drain(t.Context(), port.Input, "in"); err != nil {
		t.Fatal(err)
	}
	if err := c.h.Force(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.e.RunUntilIdle()
	c.ran(0, 3*time.Hour, 3*time.Hour, 3*time.Hour) // the one that failed, and those of 02:00 and 03:00
	if err := c.h.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.e.Advance(3 * time.Hour)
	if i := c.info(); i.Status != statemachine.Terminated {
		t.Fatalf("%s", i.Status)
	}
	if err := c.h.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A repetition that leads to no later time does not run without a pause.
func TestRepeatsAtMostOnceASecond(t *testing.T) {
	c := newCleanups(t, 0, job.RepeatRule{Schedule: "FINISHED, START OF DAY"})
	c.e.Advance(2 * time.Second)
	c.ran(0, time.Second, 2*time.Second)
}

// What a job has stays the same size, however often it repeats.
func TestRepeatsStayBounded(t *testing.T) {
	c := newCleanups(t, 0, job.RepeatRule{Schedule: "every:1m"})
	c.e.Advance(20 * time.Minute)
	i := c.info()
	out, _ := i.Port(port.Output, "out")
	if i.Repeat.Count != 21 || out.Waiting != 1 || out.Total != 21 {
		t.Errorf("%+v, port %+v", i.Repeat, out)
	}
}

// A repetition that writes nothing leaves what nobody has read of the one before.
func TestRepeatsKeepWhatWasWrittenLast(t *testing.T) {
	c := newCleanups(t, 0, job.RepeatRule{Schedule: "every:1m"})
	c.e.Advance(time.Minute)
	c.e.Feed(c.h, "in", "hush")
	c.e.Advance(time.Minute)
	c.e.Feed(c.h, "in", "hush")
	c.e.Advance(time.Minute)
	if got := weirtest.Drain[int](c.e, c.h, "out"); !slices.Equal(got, []int{2}) {
		t.Errorf("results %v, want that of the second repetition", got)
	}
	c.e.Advance(time.Minute)
	if got := weirtest.Drain[int](c.e, c.h, "out"); !slices.Equal(got, []int{5}) {
		t.Errorf("results %v, want that of the fifth repetition", got)
	}
}

// The last repetition of a schedule that ends counts, too, and what wakes the job then does not begin the schedule anew.
func TestRepeatsUntilTheLast(t *testing.T) {
	c := newCleanups(t, 0, job.RepeatRule{Schedule: "rrule:DTSTART:20260101T000000Z\nRRULE:FREQ=YEARLY;UNTIL=20290601T000000Z"})
	var last *job.Info
	for range 10 {
		c.e.Advance(365 * 24 * time.Hour)
		last = c.info()
	}
	times := weirtest.State[[]time.Time](c.e, c.h, "times")
	if last.Status != statemachine.Completed || last.Repeat.Count != int64(len(times)) || len(times) == 0 || !last.Repeat.Ended.Equal(times[len(times)-1]) {
		t.Fatalf("%s, %+v; ran at %v", last.Status, last.Repeat, times)
	}
	c.e.Feed(c.h, "in", "more")
	c.e.Advance(365 * 24 * time.Hour)
	if i := c.info(); i.Status != statemachine.Completed || i.Repeat.Count != last.Repeat.Count+1 || !i.Next.IsZero() {
		t.Errorf("woken after the last one: %s, %+v", i.Status, i.Repeat)
	}
}

func TestRepeatIsRefused(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Cleanup{})
	parent := e.StartWorker(&Cleanup{})
	for _, one := range []struct {
		n    job.New
		want string
	}{
		{job.New{Repeat: &job.RepeatRule{Schedule: "FINISHED, +1 FORTNIGHT"}}, "modifier"},
		{job.New{Repeat: &job.RepeatRule{Schedule: "30 9 * * *"}}, "base: .*cron:"},
		{job.New{Repeat: &job.RepeatRule{Schedule: "cron:0 0 30 2 *"}}, "day of month"},
		{job.New{Repeat: &job.RepeatRule{Schedule: "natural:in 5 minutes"}}, "comes once"},
		{job.New{Repeat: &job.RepeatRule{Schedule: "DAILY", Zone: "Mars/Base"}}, "zone"},
		{job.New{Repeat: &job.RepeatRule{Schedule: "DAILY", Missed: "most"}}, "missed"},
		{job.New{Repeat: &job.RepeatRule{}}, "base"},
		{job.New{Parent: parent.ID(), Name: "child", Repeat: &job.RepeatRule{Schedule: "DAILY"}}, "root job"},
	} {
		one.n.Type = "Cleanup"
		_, err := e.Client().Create(t.Context(), one.n)
		if !errors.Is(err, job.ErrValue) || !regexp.MustCompile("repeat.*"+one.want).MatchString(err.Error()) {
			t.Errorf("%+v: %v, want %s", one.n.Repeat, err, one.want)
		}
	}
}

// Under an alias the same repetition is the same job.
func TestRepeatUnderAlias(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Cleanup{})
	start := func(opts ...job.Option) error {
		_, err := e.Client().Start(t.Context(), job.Single(&Cleanup{}, ""), append(opts, job.Alias("cleanup"))...)
		return err
	}
	daily := job.Repeat(job.RepeatRule{Schedule: "DAILY"})
	if err := errors.Join(start(daily), start(daily)); err != nil {
		t.Fatal(err)
	}
	for _, opts := range [][]job.Option{{}, {job.Repeat(job.RepeatRule{Schedule: "HOURLY"})}} {
		if err := start(opts...); !errors.Is(err, job.ErrExists) || !strings.Contains(err.Error(), "repeats in another way") {
			t.Errorf("another repetition: %v", err)
		}
	}
}

// Served by an engine, a job repeats on time; its hash stays as large as it is.
func TestB31RepeatsServed(t *testing.T) {
	each(t, func(b *bench) {
		b.serve(func(c *worker.Config) { c.Workers = []worker.Worker{&Cleanup{}} })
		h, err := b.Client.Start(b.Ctx, job.Single(&Cleanup{}, ""), job.Repeat(job.RepeatRule{Schedule: "SCHEDULED, +1 SECOND"}))
		b.Check(err)
		b.Until("it has run three times", func() bool {
			i := b.Info(h)
			return i.Repeat.Count >= 3
		})
		var times []time.Time
		state, err := h.State(b.Ctx, "times")
		b.Check(err)
		b.Check(json.Unmarshal(state["times"], &times))
		for n := range times[1:] {
			if gap := times[n+1].Sub(times[n]); n > 0 && gap < 500*time.Millisecond {
				b.Errorf("run %d came %s after the one before it", n+1, gap)
			}
		}
	})
}
