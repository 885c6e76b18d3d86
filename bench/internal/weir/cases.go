package weir

import "github.com/weirworks/weir/bench/internal/lab"

// some are a tenth of the messages of all streams, for what is so much slower.
func some(s lab.Size) (name string, n, rows int) {
	name, n, rows = s.Rows()
	return name, max(n/10/rows, 1) * rows, rows
}

// Cases are all that Weir does. They come in the order in which they are run.
func Cases() []lab.Case {
	usual, quiet := tuned{}, tuned{noLog: true}
	noLog, notPure, each := System+" no log", System+" not pure", System+" commit each"
	traced, all, watched, synced, cluster := System+" traced 1 %", System+" traced", System+" watched", System+" aof everysec", System+" cluster"
	return []lab.Case{
		{Workload: "chain", System: System, Run: chain(usual)},
		{Workload: "chain", System: noLog, Run: chain(quiet)},
		{Workload: "hops", System: System, Run: hops},
		{Workload: "stream", System: System, Run: stream(lab.Size.Rows, usual)},
		{Workload: "stream", System: noLog, Run: stream(lab.Size.Rows, quiet)},
		{Workload: "stream", System: notPure, Run: stream(lab.Size.Rows, tuned{notPure: true})},
		{Workload: "stream", System: each, Run: stream(some, tuned{commitEach: true})},
		{Workload: "stream", System: traced, Run: tracedStream(0.01)},
		{Workload: "stream", System: all, Run: tracedStream(1)},
		{Workload: "stream", System: watched, Run: watchedStream},
		{Workload: "stream", System: synced, Fsync: "everysec", Run: stream(lab.Size.Rows, usual)},
		{Workload: "stream", System: cluster, Cluster: true, Run: stream(lab.Size.Rows, usual)},
		{Workload: "single", System: System, Run: stream(lab.Size.Row, usual)},
		{Workload: "batch", System: System, Run: batch(usual)},
		{Workload: "batch", System: noLog, Run: batch(quiet)},
		{Workload: "fanout", System: System, Run: fanout},
		{Workload: "wake", System: System, Run: wake},
		{Workload: "idle", System: System, Run: idle},
		{Workload: "memory", System: System, Run: memoryOfRows},
		{Workload: "memory", System: System, Run: memoryOfLoners(usual)},
		{Workload: "memory", System: noLog, Run: memoryOfLoners(quiet)},
		{Workload: "growth", System: System, Run: growthOfJobs},
		{Workload: "growth", System: System, Run: growthOfSiblings},
		{Workload: "spawn", System: System, Run: spawn},
		{Workload: "ticks", System: System, Run: ticks},
		{Workload: "posts", System: System, Run: posts},
		{Workload: "leases", System: System, Run: leases},
		{Workload: "payloads", System: System, Run: payloads},
		{Workload: "handlers", System: System, Run: handlers},
		{Workload: "recover", System: System, Run: recovery},
		{Workload: "scripts", System: System, Run: longScripts},
	}
}
