package weirtest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/weirtest"
)

// wrong plans nothing.
type wrong struct{}

func (wrong) Plan() (*job.Plan, error) { return nil, errors.New("no plan today") }

func TestFailures(t *testing.T) {
	t.Parallel()
	for says, fn := range map[string]func(tb *stub){
		"Workers is empty": func(tb *stub) { weirtest.New(tb) },
		"no plan today":    func(tb *stub) { weirtest.New(tb, &Times{}).Start(wrong{}) },
		`nobody runs job total: there is no worker of type "Total"; give one to weirtest.New`: func(tb *stub) {
			weirtest.New(tb, &Times{}).Start(pipeline(1))
		},
		`nobody runs job Restless/echo: there is no worker of type "Times"`: func(tb *stub) {
			e := weirtest.New(tb, &Restless{})
			e.StartWorker(&Restless{})
			e.RunUntilIdle()
		},
		"jobs are still ready after 9 runs (see Engine.MaxRuns): Restless ran 5 times, Restless/echo ran 4 times": func(tb *stub) {
			e := weirtest.New(tb, &Restless{}, &Times{})
			e.MaxRuns = 9
			e.StartWorker(&Restless{})
			e.RunUntilIdle()
		},
		`has no port "up"`: func(tb *stub) {
			e := weirtest.New(tb, &Times{})
			e.Feed(e.StartWorker(&Times{}), "up", 1)
		},
		`has no port "down"`: func(tb *stub) {
			e := weirtest.New(tb, &Times{})
			e.CloseIn(e.StartWorker(&Times{}), "down")
		},
		"decoding message 3 as string": func(tb *stub) {
			e := weirtest.New(tb, &Times{})
			h := e.StartWorker(&Times{By: 1})
			e.Feed(h, "in", 3)
			e.RunUntilIdle()
			weirtest.Drain[string](e, h, "out")
		},
		`the state of job Times has no key "sen"; it has seen`: func(tb *stub) {
			e := weirtest.New(tb, &Times{})
			h := e.StartWorker(&Times{})
			e.RunUntilIdle()
			weirtest.State[int](e, h, "sen")
		},
		`state "seen" of job Times: decoding message 0 as []int`: func(tb *stub) {
			e := weirtest.New(tb, &Times{})
			h := e.StartWorker(&Times{})
			e.RunUntilIdle()
			weirtest.State[[]int](e, h, "seen")
		},
		`job pipeline has no child "time"; it has times, total`: func(tb *stub) {
			e := weirtest.New(tb, &Times{}, &Total{})
			e.Child(e.Start(pipeline(1)), "time")
		},
		`port out of job Times holds 1, 2, 3, 4, 5, and 1 more, want nothing`: func(tb *stub) {
			e := weirtest.New(tb, &Times{})
			h := e.StartWorker(&Times{By: 1})
			e.Feed(h, "in", 1, 2, 3, 4, 5, 6)
			e.RunUntilIdle()
			e.Empty(h, "out")
		},
		"port out of job pipeline/times is wired, so its messages go on": func(tb *stub) {
			e := weirtest.New(tb, &Times{}, &Total{})
			e.Empty(e.Child(e.Start(pipeline(1)), "times"), "out")
		},
		`has no port "sideways"`: func(tb *stub) {
			e := weirtest.New(tb, &Times{})
			e.Empty(e.StartWorker(&Times{}), "sideways")
		},
		"time does not go back": func(tb *stub) { weirtest.New(tb, &Times{}).Advance(-1) },
	} {
		if got := failing(t, fn); !strings.HasPrefix(got, "weirtest: ") || !strings.Contains(got, says) {
			t.Errorf("the test fails with %q, want %q", got, says)
		}
	}
}
