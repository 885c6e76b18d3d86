package weir

import "github.com/weirworks/weir/bench/internal/lab"

// Cases are all that Weir does.
func Cases() []lab.Case {
	usual, quiet := tuned{}, tuned{noLog: true}
	rows := func(s lab.Size) int { return s.Streams }
	one := func(lab.Size) int { return 1 }
	noLog := System + " no log"
	return []lab.Case{
		{Workload: "chain", System: System, Run: chain(usual)},
		{Workload: "chain", System: noLog, Run: chain(quiet)},
		{Workload: "hops", System: System, Run: hops},
		{Workload: "stream", System: System, Run: stream(rows, "stream", usual)},
		{Workload: "stream", System: noLog, Run: stream(rows, "stream", quiet)},
		{Workload: "single", System: System, Run: stream(one, "single", usual)},
		{Workload: "batch", System: System, Run: batch(usual)},
		{Workload: "batch", System: noLog, Run: batch(quiet)},
	}
}
