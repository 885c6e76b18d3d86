package weirtest_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/weirtest"
)

func status(t *testing.T, e *weirtest.Engine, h *client.Handle, want statemachine.Status) {
	t.Helper()
	if got := e.Status(h); got != want {
		t.Errorf("at %s the job is %s, want %s", e.Now().Format(time.TimeOnly), got, want)
	}
}

func TestNothingRunsByItself(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Times{})
	h := e.StartWorker(&Times{By: 2})
	status(t, e, h, statemachine.Queued)
	if !e.RunNext() {
		t.Error("the job was not run")
	}
	status(t, e, h, statemachine.Completed)
	if e.RunNext() {
		t.Error("something was run")
	}
	e.Feed(h, "in", 4)
	status(t, e, h, statemachine.Queued)
	if got := weirtest.Drain[int](e, h, "out"); got == nil || len(got) > 0 {
		t.Errorf("Out has %v before the run", got)
	}
	e.RunUntilIdle()
	if got := weirtest.Drain[int](e, h, "out"); !slices.Equal(got, []int{8}) {
		t.Errorf("Out has %v", got)
	}
	if steps := e.Info(h).Steps; steps != 2 {
		t.Errorf("%d steps", steps)
	}
}

// A mail that cannot be sent is sent at the next try after the server is back.
func TestRetry(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Mail{})
	h := e.StartWorker(&Mail{})
	e.Feed(h, "text", "hello")
	e.Advance(time.Minute - time.Millisecond)
	status(t, e, h, statemachine.Scheduled)
	if n := len(e.Failures(h)); n != 1 {
		t.Errorf("%d failures before the first minute is over", n)
	}
	e.Advance(time.Millisecond)
	if n := len(e.Failures(h)); n != 2 {
		t.Errorf("%d failures after the first minute", n)
	}
	e.Feed(h, "server", "up") // the job sleeps on: it was told to wait
	e.RunUntilIdle()
	status(t, e, h, statemachine.Scheduled)
	e.Advance(time.Hour)
	status(t, e, h, statemachine.Completed)
	info := e.Info(h)
	if at := weirtest.Epoch.Add(3 * time.Minute); !info.Ran.Equal(at) || info.Tries != 0 {
		t.Errorf("it ran at %s with %d tries behind it, want %s and 0", info.Ran, info.Tries, at)
	}
	if got := weirtest.Drain[string](e, h, "sent"); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("sent %q", got)
	}
	if want := weirtest.Epoch.Add(time.Hour + time.Minute); !e.Now().Equal(want) {
		t.Errorf("the clock shows %s, want %s", e.Now(), want)
	}
}

// later starts at a set time.
type later struct {
	job.Planner
	at time.Time
}

func (l later) Plan() (*job.Plan, error) {
	p, err := l.Planner.Plan()
	if err == nil {
		p.Nodes[0].At = l.at
	}
	return p, err
}

func TestStartLater(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Trace{})
	single := job.Single(&Trace{}, "")
	midnight := e.Start(later{single, weirtest.Epoch.Add(24 * time.Hour)})
	noon := e.Start(later{single, weirtest.Epoch.Add(12 * time.Hour)})
	past := e.Start(later{single, weirtest.Epoch.Add(-time.Hour)})
	e.RunUntilIdle()
	status(t, e, past, statemachine.Completed)
	e.Advance(12 * time.Hour)
	status(t, e, noon, statemachine.Completed)
	status(t, e, midnight, statemachine.Scheduled)
	e.Advance(36 * time.Hour)
	if ran := e.Info(midnight).Ran; !ran.Equal(weirtest.Epoch.Add(24 * time.Hour)) {
		t.Errorf("it ran at %s", ran)
	}
}

// Two tests see the same, down to the last ID and time.
func TestSameEachTime(t *testing.T) {
	t.Parallel()
	record := func() string {
		e := weirtest.New(t, &Times{}, &Total{}, &Mail{})
		h := e.Start(pipeline(3))
		for i := range 10 {
			e.Feed(h, "numbers", i, i+1)
			e.Advance(time.Second)
		}
		e.CloseIn(h, "numbers")
		m := e.StartWorker(&Mail{})
		e.Feed(m, "text", "x")
		e.Advance(time.Hour)
		tree, err := h.Tree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out, err := json.MarshalIndent([]any{tree, e.Info(m), e.Failures(m), e.Now()}, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	first := record()
	if second := record(); second != first {
		t.Errorf("first:\n%s\nsecond:\n%s", first, second)
	}
	for _, want := range []string{
		`"id": "019b76da-a800-7000-8000-000000000001.4"`, `"created": "2026-01-01T00:00:00Z"`,
		`"at": "2026-01-01T00:31:10Z"`,
	} {
		if !strings.Contains(first, want) {
			t.Errorf("%s is missing in\n%s", want, first)
		}
	}
	var id job.ID = "019b76da-a800-7000-8000-000000000001.4"
	if _, err := job.ParseID(string(id)); err != nil {
		t.Error(err)
	}
}

// The job that was ready first runs first; of those of one moment the one created first.
func TestOrder(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Trace{})
	g := graph.New("order")
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		w := graph.Add(g, name, &Trace{})
		graph.Connect(graph.Input[int](g, name), w.In)
	}
	h := e.Start(g)
	ran := func() (order []string) {
		for e.RunNext() {
			for _, name := range names {
				c := e.Child(h, name)
				entries, err := c.Logs(t.Context(), 100)
				if err != nil {
					t.Fatal(err)
				}
				if len(entries) > strings.Count(strings.Join(order, ""), name) {
					order = append(order, name)
				}
			}
		}
		return order
	}
	for _, name := range []string{"c", "a", "d", "c", "b"} {
		e.Feed(h, name, 1)
	}
	if got := strings.Join(ran(), ""); got != "cadb" {
		t.Errorf("jobs ran in the order %s", got)
	}
}

func TestChildren(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Restless{}, &Times{})
	h := e.StartWorker(&Restless{})
	for range 4 {
		e.RunNext()
	}
	echo := e.Child(h, "echo")
	if got := weirtest.Drain[int](e, echo, "out"); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("the child wrote %v", got)
	}
	if n := weirtest.State[int](e, h, "n"); n != 2 {
		t.Errorf("the parent ran %d times", n)
	}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Mail{})
	h := e.StartWorker(&Mail{})
	if err := h.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.RunUntilIdle()
	status(t, e, h, statemachine.Terminated)
}

// Trees that the client starts run too.
func TestClient(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Times{})
	h, err := e.Client().Start(t.Context(), job.Single(&Times{By: 5}, "other"), job.Alias("five"))
	if err != nil {
		t.Fatal(err)
	}
	e.Feed(h, "in", 5)
	e.RunUntilIdle()
	if got := weirtest.Drain[int](e, h, "out"); !slices.Equal(got, []int{25}) {
		t.Errorf("Out has %v", got)
	}
}

// What the engine logs is shown by a test that can show it.
func TestLog(t *testing.T) {
	t.Parallel()
	tb := new(stub)
	defer tb.end()
	e := weirtest.New(tb, &Mail{})
	e.Feed(e.StartWorker(&Mail{}), "text", "hello")
	e.Advance(time.Hour)
	want := `level=ERROR msg="job failed" job=019b76da-a800-7000-8000-000000000001 type=Mail error="the server does not answer"` + "\n"
	if got := tb.logged.String(); got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// As many jobs as a real test may have.
func BenchmarkPipeline(b *testing.B) {
	for b.Loop() {
		e := weirtest.New(b, &Times{}, &Total{})
		h := e.Start(pipeline(4))
		for i := range 10 {
			e.Feed(h, "numbers", i)
		}
		e.CloseIn(h, "numbers")
		e.RunUntilIdle()
		if _, ok := e.Info(h).Port(port.Output, "sum"); !ok || e.Status(h) != statemachine.Completed {
			b.Fatal("not completed")
		}
	}
}

func TestOnlyTheEmbeddedRedisHasAClock(t *testing.T) {
	t.Parallel()
	cfg := redisstore.Config{URL: "redis://127.0.0.1:1", Clock: redisstore.NewClock(weirtest.Epoch)}
	if err := cfg.Validate(); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "Clock") {
		t.Errorf("got %v", err)
	}
}
