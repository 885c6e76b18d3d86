package suite_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
	"github.com/weirworks/weir/bench/internal/suite"
)

// fake is a case whose figures are known beforehand, one list of them for each round.
func fake(ran *[]string, workload, system string, rounds ...[]lab.Figure) lab.Case {
	return lab.Case{Workload: workload, System: system, Run: func(context.Context, *lab.Lab) ([]lab.Figure, error) {
		*ran = append(*ran, system)
		figures := rounds[0]
		rounds = rounds[1:]
		return figures, nil
	}}
}

func rate(name string, v float64) lab.Figure {
	return lab.Figure{Name: name, Value: v, Unit: "items/s"}
}

func took(name string, v float64) lab.Figure {
	return lab.Figure{Name: name, Value: v, Unit: "ms", Less: true}
}

func TestMediansAndRatios(t *testing.T) {
	var ran []string
	s := suite.Suite{
		Rounds: 3, Concurrency: 1, Size: lab.Size{Patience: time.Minute}, Progress: new(bytes.Buffer),
		Absent: map[string]string{"river": "there is no postgres here"},
		Cases: []lab.Case{
			fake(&ran, "chain", "weir", []lab.Figure{rate("chain", 30)}, []lab.Figure{rate("chain", 10)}, []lab.Figure{rate("chain", 20)}),
			fake(&ran, "chain", "bullmq flow", []lab.Figure{rate("chain", 5)}, []lab.Figure{rate("chain", 50)}, []lab.Figure{rate("chain", 4)}),
			fake(&ran, "wake", "weir", []lab.Figure{took("wake.p50", 1)}, []lab.Figure{took("wake.p50", 1)}, []lab.Figure{took("wake.p50", 1)}),
			fake(&ran, "wake", "asynq", []lab.Figure{took("wake.p50", 8)}, []lab.Figure{took("wake.p50", 4)}, []lab.Figure{took("wake.p50", 0)}),
			fake(&ran, "growth", "weir", slices.Repeat([][]lab.Figure{{rate("growth.jobs.1000", 100), rate("growth.jobs.100000", 90)}}, 3)...),
		},
	}
	res, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turns := "weir, bullmq flow, bullmq flow, weir, weir, bullmq flow, weir, asynq, asynq, weir, weir, asynq, weir, weir, weir"
	if got := strings.Join(ran, ", "); got != turns {
		t.Errorf("the cases ran in the order %s", got)
	}
	want := map[string]float64{
		"chain_vs_bullmq_flow": 4, "wake.p50_vs_asynq": 4, "growth.jobs.100000_vs_the_first": 0.9,
	}
	if !maps.Equal(res.Ratios, want) {
		t.Errorf("ratios are %v", res.Ratios)
	}
	if r := res.Results[0]; r.Name != "chain" || r.System != "weir" || r.Value != 20 || r.Unit != "items/s" {
		t.Errorf("the first result is %+v", r)
	}
	var table bytes.Buffer
	if err := res.Print(&table); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"bullmq flow  5       items/s  4       50       4 x", "0.90 x of the first", "Absent: river: there is no postgres here"} {
		if !strings.Contains(table.String(), line) {
			t.Errorf("the table has no %q:\n%s", line, &table)
		}
	}
}
