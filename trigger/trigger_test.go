package trigger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/weirtest"
)

// task launches Task.
func task() *trigger.Launch { return &trigger.Launch{Type: "Task"} }

func tick(n int, after time.Duration) string {
	return fmt.Sprintf(`{"n":%d,"at":"%s"}`, n, weirtest.Epoch.Add(after).Format(time.RFC3339))
}

func TestSchedule(t *testing.T) {
	s := newScript(t, trigger.Definition{Schedule: "30 * * * *", Count: 3, Launch: task()})
	s.after(29 * time.Minute)
	s.after(time.Minute, tick(1, 30*time.Minute))
	if st := s.status(); len(st.Next) != 2 || !st.Next[0].Equal(weirtest.Epoch.Add(90*time.Minute)) || st.Understood == "" || st.Firings != 1 || st.Launches != 1 {
		t.Errorf("status %+v", st)
	}
	s.after(2*time.Hour, tick(2, 90*time.Minute), tick(3, 150*time.Minute))
	s.after(24 * time.Hour)
	if st := s.status(); st.Status != statemachine.Completed || st.Next != nil {
		t.Errorf("at the end: %+v", st)
	}
}

// C19: a time that has just passed fires at once, and the trigger is gone from the list; a malformed one is refused.
func TestC19At(t *testing.T) {
	s := newScript(t, trigger.Definition{Schedule: "at:2025-12-31T23:30:00Z", Launch: task()})
	s.after(0, tick(1, -30*time.Minute))
	s.gone()
	for _, text := range []string{"at:tomorrowish", "at:2025-12-30T12:00:00Z", "at:"} {
		d := trigger.Definition{Schedule: text, Launch: task()}
		if err := d.Validate(weirtest.Epoch); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "schedule") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A time with more digits than milliseconds comes once.
func TestC19AtNanoseconds(t *testing.T) {
	s := newScript(t, trigger.Definition{Schedule: "at:2026-01-01T00:30:00.123456789Z", Launch: task()})
	s.after(time.Hour, `{"n":1,"at":"2026-01-01T00:30:00.123Z"}`)
	s.after(time.Hour)
	s.gone()
}

// gone wants the trigger to fire no more, and to be in no list but that of all.
func (s *script) gone() {
	s.Helper()
	for all, want := range map[bool]int{true: 1, false: 0} {
		n := 0
		for _, err := range trigger.List(s.Context(), s.e.Client(), all, 1) {
			enginetest.Check(s, err)
			n++
		}
		if n != want {
			s.Errorf("list (all: %v) has %d triggers, want %d", all, n, want)
		}
	}
	if err := trigger.Fire(s.Context(), s.h, "", nil); !errors.Is(err, job.ErrStatus) {
		s.Errorf("firing it: %v", err)
	}
}

// C20
func TestC20In(t *testing.T) {
	s := newScript(t, trigger.Definition{Schedule: "natural:in 10m", Launch: task()})
	s.after(599 * time.Second)
	s.after(time.Second, tick(1, 10*time.Minute))
	s.after(time.Hour)
	s.gone()
}

// C24: three posts within the debounce are one job.
func TestC24Debounce(t *testing.T) {
	for payload, want := range map[string]string{"": `{"p":1}`, trigger.Original: `{"p":1}`, trigger.Append: `{"payloads":[{"p":1},{"p":2},{"p":3}]}`} {
		t.Run("payload "+payload, func(t *testing.T) {
			s := newScript(t, trigger.Definition{Launch: task(), Limits: trigger.Limits{Debounce: seconds(10), Payload: payload}})
			for i := range 3 {
				s.send(json.RawMessage(fmt.Sprintf(`{"p":%d}`, i+1)))
				s.after(time.Second)
			}
			s.after(8 * time.Second)
			s.after(time.Second, want)
			s.after(time.Hour)
			if payload != trigger.Append {
				s.dropped("joined", 2)
			} else if d := s.status().Dropped; d != nil {
				t.Errorf("dropped %v", d)
			}
		})
	}
}

func seconds(n int) component.Duration { return component.Duration(time.Duration(n) * time.Second) }

// C24: nobody sends to a trigger that is no webhook.
func TestC24Webhook(t *testing.T) {
	s := newScript(t, trigger.Definition{Launch: task()})
	enginetest.Check(s, trigger.Send(t.Context(), s.e.Client(), s.h, json.RawMessage(`7`)))
	s.after(0, `7`)
	other := s.e.Start(job.Single(&trigger.Trigger{Definition: trigger.Definition{Schedule: "every:10s", Launch: task()}}, ""))
	if err := trigger.Send(t.Context(), s.e.Client(), other, json.RawMessage(`7`)); !errors.Is(err, job.ErrPort) || !strings.Contains(err.Error(), "fires at the times of its schedule, not for messages that are sent to it; to have it fire now use fire: weir trigger fire "+string(other.ID())) {
		t.Errorf("sent: %v", err)
	}
}

// A webhook stays one: as a schedule it would refuse its senders.
func TestWebhookStaysOne(t *testing.T) {
	s := newScript(t, trigger.Definition{Launch: task()})
	for _, fields := range []string{`{"schedule":"@daily"}`, `{"channel":"/files"}`} {
		err := trigger.Change(t.Context(), s.e.Client(), s.h, "anna", json.RawMessage(fields))
		if !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "it is a webhook") {
			t.Errorf("%s: %v", fields, err)
		}
	}
	if d := s.status().Definition; d.Kind() != trigger.Webhook {
		t.Errorf("it is a %s", d.Kind())
	}
}

// What is wrong with a definition is said without words of Go.
func TestParseDefinition(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"launch":{"tipe":"map"}}`:    `unknown key "tipe": did you mean "type"?`,
		`{"limits":{"debounce":10}}`:   `limits.debounce is a number: use a duration in quotes, like "30s"`,
		`{"limits":{"debounce":"10"}}`: `"10" is not a duration: write it like`,
		`{"count":"3"}`:                "count is a string: use a whole number",
		`[]`:                           "it is an array: use an object",
	} {
		if _, err := trigger.ParseDefinition([]byte(text)); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	d := trigger.Definition{Schedule: "every day at 9am", Launch: task()}
	if err := d.Validate(time.Now()); err == nil || !strings.Contains(err.Error(), "did you mean natural:every day at 9am") {
		t.Errorf("without a tag: %v", err)
	}
}

// C25: events at 0, 3 and 6 s: a throttle of 5 s fires at 5 and 11, a debounce once at 11.
func TestC25ThrottleAndDebounce(t *testing.T) {
	for name, l := range map[string]trigger.Limits{"throttle": {Throttle: seconds(5)}, "debounce": {Debounce: seconds(5)}} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, trigger.Definition{Channel: "/files", Launch: task(), Limits: l})
			var at []string
			for now := range 20 {
				if now == 0 || now == 3 || now == 6 {
					enginetest.Check(s, s.e.Client().Publish(t.Context(), "/files/new", now))
				}
				s.e.RunUntilIdle()
				for _, got := range s.fresh() {
					at = append(at, fmt.Sprintf("%s at %d", got, now))
				}
				s.e.Advance(time.Second)
			}
			want := []string{"0 at 5", "6 at 11"}
			if name == "debounce" {
				want = []string{"0 at 11"}
			}
			if !slices.Equal(at, want) {
				t.Errorf("fired %q, want %q", at, want)
			}
		})
	}
}

// C42: a limit of two, five firings of a slow job: at no time more than two run, and what is dropped is counted.
func TestC42Parallel(t *testing.T) {
	for name, c := range map[string]struct {
		limits        trigger.Limits
		ran           int
		dropped, held int64
	}{
		"wait":            {trigger.Limits{Parallel: 2}, 5, 0, 3},
		"drop":            {trigger.Limits{Parallel: 2, Overflow: trigger.Drop}, 2, 3, 0},
		"queue":           {trigger.Limits{Parallel: 2, Queue: 10}, 5, 0, 3},
		"queue of 2":      {trigger.Limits{Parallel: 2, Queue: 2, Overflow: trigger.Drop}, 4, 1, 2},
		"queue of 2 wait": {trigger.Limits{Parallel: 2, Queue: 2, Overflow: trigger.Wait}, 5, 0, 3},
		"skip":            {trigger.Limits{Parallel: 1, Overflow: trigger.Drop}, 1, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			launch := &trigger.Launch{Type: "Task", Args: json.RawMessage(`{"Long":true}`)}
			s := newScript(t, trigger.Definition{Launch: launch, Limits: c.limits})
			s.send(1, 2, 3, 4, 5)
			var ran []string
			for {
				st := s.status()
				fresh := s.fresh()
				ran = append(ran, fresh...)
				if len(st.Running) > c.limits.Parallel {
					t.Fatalf("%d trees run", len(st.Running))
				}
				if len(ran) == min(5, c.limits.Parallel) && st.Waiting != c.held {
					t.Errorf("%d wait, want %d", st.Waiting, c.held)
				}
				if len(st.Running) == 0 {
					break
				}
				s.ended()
			}
			if want := []string{"1", "2", "3", "4", "5"}[:c.ran]; !slices.Equal(ran, want) {
				t.Errorf("ran %q, want %q", ran, want)
			}
			if c.dropped > 0 {
				s.dropped("parallel", c.dropped)
			}
			s.logged(c.dropped)
		})
	}
}

// logged wants the log of the trigger to name so many that were dropped.
func (s *script) logged(want int64) {
	s.Helper()
	logs, err := s.h.Logs(s.Context(), 100)
	enginetest.Check(s, err)
	var n int64
	for _, l := range logs {
		var entry struct{ Dropped map[string]int64 }
		enginetest.Check(s, json.Unmarshal(l.Entry, &entry))
		for _, some := range entry.Dropped {
			n += some
		}
	}
	if n != want {
		s.Errorf("the log names %d, want %d", n, want)
	}
}

// Ticks that wait for a tree to end count as missed then.
func TestTicksWait(t *testing.T) {
	launch := &trigger.Launch{Type: "Task", Args: json.RawMessage(`{"Long":true}`)}
	s := newScript(t, trigger.Definition{Schedule: "every:10s", Launch: launch, Limits: trigger.Limits{Parallel: 1}})
	s.after(45*time.Second, tick(1, 10*time.Second))
	s.ended()
	s.after(0, tick(2, 20*time.Second))
	s.ended()
	s.after(5*time.Second, strings.TrimSuffix(tick(3, 50*time.Second), "}")+`,"missed":2}`)
	s.dropped("missed", 2)
}

// Acts come in their order, and hold before the next firing.
func TestActs(t *testing.T) {
	s := newScript(t, trigger.Definition{Schedule: "every:10s", Launch: task()})
	ctx, c := t.Context(), s.e.Client()
	s.after(10*time.Second, tick(1, 10*time.Second))
	enginetest.Check(s, trigger.Pause(ctx, s.h, "me"))
	if st := s.status(); st.Pending != 1 {
		t.Errorf("%d acts are pending", st.Pending)
	}
	s.after(35 * time.Second)
	if st := s.status(); !st.Paused || len(st.Next) > 0 {
		t.Errorf("paused: %+v", st)
	}
	enginetest.Check(s, trigger.Fire(ctx, s.h, "me", json.RawMessage(`"by hand"`)))
	s.after(0, `"by hand"`)
	enginetest.Check(s, trigger.Resume(ctx, s.h, "me"))
	s.after(10*time.Second, tick(3, 50*time.Second))
	s.dropped("paused", 3)
	enginetest.Check(s, trigger.Change(ctx, c, s.h, "me", json.RawMessage(`{"schedule":"every:1m","count":2}`)))
	s.after(time.Minute, tick(4, 115*time.Second))
	if st := s.status(); st.Definition.Schedule != "every:1m" || st.Definition.Count != 2 {
		t.Errorf("changed: %+v", st.Definition)
	}
	for fields, want := range map[string]string{`{"schedule":"every:1ms"}`: "schedule", `{"nonsense":1}`: "nonsense", `{"launch":{"type":"Nobody"}}`: "Nobody", `[]`: "is not a JSON object"} {
		if err := trigger.Change(ctx, c, s.h, "me", json.RawMessage(fields)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("changing %s: %v", fields, err)
		}
	}
	enginetest.Check(s, trigger.Change(ctx, c, s.h, "me", json.RawMessage(`{"schedule":null,"count":null,"channel":"/go"}`)))
	s.e.RunUntilIdle()
	enginetest.Check(s, c.Publish(ctx, "/go", 5))
	s.after(time.Hour, `5`)
}

// An expression filters the messages of a channel.
func TestFilter(t *testing.T) {
	s := newScript(t, trigger.Definition{Channel: "/orders", Filter: "it.total > 10", Launch: task()})
	for _, m := range []string{`{"total":11}`, `{"total":9}`, `{"total":"much"}`, `{"total":12}`} {
		enginetest.Check(s, s.e.Client().Publish(t.Context(), "/orders/new", json.RawMessage(m)))
	}
	s.after(0, `{"total":11}`, `{"total":12}`)
	s.dropped("filter", 2)
}

// A tree that cannot be launched is a drop with its reason, and the trigger goes on.
func TestRefused(t *testing.T) {
	for name, l := range map[string]*trigger.Launch{
		"type":      {Type: "Nobody"},
		"arguments": {Type: "Task", Args: json.RawMessage(`{"Lonf":true}`)},
		"port":      {Type: "Task", Port: "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, trigger.Definition{Schedule: "every:10s", Launch: l})
			s.after(25 * time.Second)
			s.dropped("refused", 2)
			if st := s.status(); st.Status != statemachine.Suspended || st.Launches != 0 {
				t.Errorf("status %+v", st)
			}
			if _, err := trigger.Add(t.Context(), s.e.Client(), trigger.Definition{Schedule: "every:10s", Launch: l}); err == nil {
				t.Error("such a trigger can be added")
			}
		})
	}
}

// What is wrong with a definition is named at once.
func TestDefinitionIsChecked(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]trigger.Definition{
		"schedule":          {Schedule: "61 * * * *"},
		"repeat counts":     {Schedule: "repeat:FINISHED, +1 DAY"},
		"one of them":       {Schedule: "every:10s", Channel: "/a"},
		"zone, missed":      {Zone: "UTC"},
		"missed \"never\"":  {Schedule: "every:10s", Missed: "never"},
		"count -1":          {Schedule: "every:10s", Count: -1},
		"channel":           {Channel: "a"},
		"filter":            {Channel: "/a", Filter: "it +"},
		"filter is for":     {Schedule: "every:10s", Filter: "true"},
		"launches none":     {Limits: trigger.Limits{Parallel: 1}},
		"parallel -1":       {Launch: task(), Limits: trigger.Limits{Parallel: -1}},
		"queue and":         {Launch: task(), Limits: trigger.Limits{Queue: 1}},
		"overflow \"burn\"": {Launch: task(), Limits: trigger.Limits{Parallel: 1, Overflow: "burn"}},
		"use one of":        {Limits: trigger.Limits{Throttle: seconds(1), Debounce: seconds(1)}},
		"payload says":      {Limits: trigger.Limits{Payload: trigger.Append}},
		"either a type":     {Launch: &trigger.Launch{}},
		"args are":          {Launch: &trigger.Launch{Plan: &trigger.Plan{}, Args: json.RawMessage(`{}`)}},
		"retention":         {Launch: &trigger.Launch{Type: "Task", Retain: "long"}},
		"not an object":     {Launch: &trigger.Launch{Type: "Task", Memo: json.RawMessage("[]"), MemoMessage: "got"}},
	} {
		if err := d.Validate(weirtest.Epoch); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// adding is a graph to launch.
func adding() *graph.Graph {
	g := graph.New("adding")
	a := graph.Add(g, "a", &Task{}, graph.Instances(2))
	b := graph.Add(g, "b", &Task{})
	graph.Connect(graph.Input[json.RawMessage](g, "in"), a.In)
	graph.Connect(a.Got, b.In)
	graph.Export(g, "got", b.Got)
	return g
}

// A graph is launched as it was when the trigger was made.
func TestGraph(t *testing.T) {
	plan, err := adding().Plan()
	enginetest.Check(t, err)
	raw, err := json.Marshal((*trigger.Plan)(plan))
	var again trigger.Plan
	if err = errors.Join(err, json.Unmarshal(raw, &again)); err != nil || (*job.Plan)(&again).Digest() != plan.Digest() {
		t.Fatalf("the stored plan is another one: %v\n%s", err, raw)
	}
	s := newScript(t, trigger.Definition{Launch: &trigger.Launch{Plan: &again}})
	s.send(1, 2)
	n := 0
	for info, err := range s.e.Client().Jobs(t.Context(), job.Filter{Type: "adding"}) {
		enginetest.Check(s, err)
		got, err := s.e.Client().At(info.ID).Drain(t.Context(), port.Output, "got")
		enginetest.Check(s, err)
		if n++; info.Status != statemachine.Completed || len(got) != 1 || info.Labels[trigger.LabelTrigger] != string(s.h.ID()) {
			t.Errorf("tree %+v gives %s", info, got)
		}
	}
	if n != 2 {
		t.Errorf("%d trees", n)
	}
}

// A trigger is a node of a graph.
func TestNode(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, trigger.New(), &Task{})
	g := graph.New("ticking")
	clock := graph.Add(g, "clock", &trigger.Trigger{Definition: trigger.Definition{Schedule: "every:1h", Count: 2}})
	k := graph.Add(g, "task", &Task{})
	graph.Connect(clock.Out, k.In)
	graph.Export(g, "got", k.Got)
	h := e.Start(g)
	e.Advance(3 * time.Hour)
	if got := weirtest.Drain[json.RawMessage](e, h, "got"); len(got) != 2 || string(got[1]) != tick(2, 2*time.Hour) {
		t.Errorf("got %s", got)
	}
	if s := e.Status(h); s != statemachine.Completed {
		t.Errorf("the graph is %s", s)
	}
}

// What is launched gets a message of its own, and options for its runs.
func TestLaunchOptions(t *testing.T) {
	l := task()
	l.Message, l.Memo, l.Priority = json.RawMessage(`{"a":[1]}`), json.RawMessage(`{"for":"me"}`), new(30)
	l.MemoMessage = "got"
	l.Tries, l.Backoff, l.MaxBackoff, l.Timeout = 3, seconds(2), seconds(2), seconds(60)
	s := newScript(t, trigger.Definition{Schedule: "every:1h", Count: 1, Launch: l})
	s.after(time.Hour, `{"a":[1]}`)
	for info, err := range s.e.Client().Jobs(t.Context(), job.Filter{Type: "Task"}) {
		enginetest.Check(s, err)
		want := job.RunOptions{Tries: 3, Backoff: 2 * time.Second, MaxBackoff: 2 * time.Second, Timeout: time.Minute}
		if info.Options == nil || *info.Options != want || *info.Priority != 30 || string(info.Memo) != `{"for":"me","got":{"a":[1]}}` {
			t.Errorf("launched with %+v, priority %v, memo %s", info.Options, info.Priority, info.Memo)
		}
	}
	if got := weirtest.Drain[trigger.Tick](s.e, s.h, "out"); len(got) != 0 {
		t.Errorf("and wrote %+v", got)
	}
	bad := trigger.Definition{Launch: &trigger.Launch{Type: "Task", Tries: -1, Timeout: 1}}
	if err := bad.Validate(weirtest.Epoch); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "-1 tries") {
		t.Errorf("bad options: %v", err)
	}
}

// A trigger that hears the statuses of jobs does not hear those of the trees that it launches, nor of what is below them.
func TestNoTreeIsItsOwnCause(t *testing.T) {
	s := newScript(t, trigger.Definition{Channel: "/weir", Launch: &trigger.Launch{Type: "Parent"}})
	s.e.Start(job.Single(&Task{}, ""))
	s.e.RunUntilIdle()
	status := s.status()
	if status.Launches < 1 || status.Launches > 3 { // one for each status of the job that somebody started
		t.Errorf("%d trees are launched", status.Launches)
	}
	before := status.Launches
	s.e.Advance(time.Hour)
	if n := s.status().Launches; n != before {
		t.Errorf("%d trees are launched, and %d more", before, n-before)
	}
}

// What is to change a trigger is an object.
func TestChangeWithNoObject(t *testing.T) {
	s := newScript(t, trigger.Definition{Schedule: "every:1h", Launch: task()})
	for _, raw := range []string{"5", `"x"`, "[1]", "true"} {
		if err := trigger.Change(t.Context(), s.e.Client(), s.h, "me", json.RawMessage(raw)); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "not a JSON object") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// A trigger whose job has failed says so, and takes no orders.
func TestFailedTrigger(t *testing.T) {
	s := newScript(t, trigger.Definition{Schedule: "every:1h", Launch: task()})
	enginetest.Check(s, s.h.Fail(t.Context(), "books closed"))
	if st := s.status(); len(st.Next) > 0 || st.Status != statemachine.Failed || !strings.Contains(st.Reason, "books closed") {
		t.Errorf("%+v", st)
	}
	if err := trigger.Fire(t.Context(), s.h, "me", nil); !errors.Is(err, job.ErrStatus) || !strings.Contains(err.Error(), "weir retry") {
		t.Errorf("fire: %v", err)
	}
	enginetest.Check(s, s.h.Retry(t.Context()))
	s.e.RunUntilIdle()
	if st := s.status(); len(st.Next) == 0 {
		t.Errorf("after a retry: %+v", st)
	}
}

// A year passes tick by tick, across two changes of clocks.
func TestYear(t *testing.T) {
	s := newScript(t, trigger.Definition{Schedule: "30 9 * * *", Zone: "Europe/Berlin"})
	began := time.Now()
	s.e.Advance(365 * 24 * time.Hour)
	t.Logf("a year took %s", time.Since(began))
	got := weirtest.Drain[trigger.Tick](s.e, s.h, "out")
	berlin, err := time.LoadLocation("Europe/Berlin")
	enginetest.Check(s, err)
	for i, tick := range got {
		at := tick.At.In(berlin)
		if tick.N != int64(i+1) || tick.Missed > 0 || at.Hour() != 9 || at.Minute() != 30 || at.YearDay() != i+1 {
			t.Fatalf("tick %d is %+v", i, tick)
		}
	}
	if len(got) != 365 {
		t.Errorf("%d ticks", len(got))
	}
}

// Launched trees that fail are counted, if the trigger is told of their ends.
func TestFailedTreesAreCounted(t *testing.T) {
	s := newScript(t, trigger.Definition{
		Schedule: "every:1h", Launch: &trigger.Launch{Type: "Task", Args: json.RawMessage(`{"Fail":true}`)}, Limits: trigger.Limits{Parallel: 1},
	})
	s.e.Advance(2 * time.Hour)
	if st := s.status(); st.Launches != 2 || st.Failed != 2 || len(st.Running) != 0 {
		t.Errorf("%+v", st)
	}
}

// A firing whose tree would be a duplicate of one that is there, whoever started that, launches nothing, and is counted.
func TestLaunchUnique(t *testing.T) {
	s := newScript(t, trigger.Definition{Launch: &trigger.Launch{Type: "Task", Args: json.RawMessage(`{"Long":true}`), Unique: &trigger.Unique{Key: "k"}}})
	want := func(launches, duplicates int64) {
		t.Helper()
		if st := s.status(); st.Launches != launches || st.Dropped["duplicate"] != duplicates {
			t.Fatalf("%d launches, dropped %v; want %d and %d", st.Launches, st.Dropped, launches, duplicates)
		}
	}
	s.send("a", "b")
	s.after(time.Second, `"a"`)
	want(1, 1)
	s.send("c")
	s.after(time.Second)
	want(1, 2)
	s.ended()
	s.send("d")
	s.after(time.Second, `"d"`)
	want(2, 2)
	s.ended()
	_, err := s.e.Client().Start(t.Context(), job.Single(&Task{Long: true}, ""), job.Unique(job.UniqueBy{Key: "k"}))
	enginetest.Check(s, err)
	s.send("e")
	s.e.Advance(time.Second)
	want(2, 3)
}
