package explain_test

import (
	"testing"
	"time"

	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Of a run whose process is not seen any more is said when another engine gets the job.
func TestRunsOfTheDead(t *testing.T) {
	t.Parallel()
	owner := "ABCDEFGHIJ"
	i := job.Info{
		ID: "t", Type: "map", Name: "m", Queue: "slow", Status: statemachine.Running, Ran: noon.Add(-4 * time.Second),
		Token: job.RunToken(owner), Lease: noon.Add(2 * time.Second),
	}
	e := explain.NewTree([]*job.Info{&i}, noon)
	engine := func(id string, slots int, seen time.Duration) store.EngineInfo {
		return store.EngineInfo{ID: id, Host: "a", PID: 7, Concurrency: slots, Seen: noon.Add(-seen)}
	}
	const dead = "; if it is dead, its lease ends in 2s, at 12:00:02Z, and the job is run again"
	for want, living := range map[string][]store.EngineInfo{
		"": {engine(owner, 1, time.Second)},
		" by process 7 on a, last seen 3s ago" + dead:                                                {engine("other", 1, 0), engine(owner, 1, 3*time.Second)},
		", by a process that is not seen any more" + dead:                                            {engine("other", 1, 0)},
		" by a worker over HTTP, whose lease ends in 2s, at 12:00:02Z unless it renews it":           {engine(owner, 0, 0)},
		", but no engine lives now: start one, which sees to it when the lease of the run has ended": {},
	} {
		e.Living = living
		check(t, want, said(e, "t"), "job m has been running for 4s"+want+"\n")
		i.Crashes = 3
		check(t, want, said(e, "t"), "job m has been running for 4s"+want+
			"; its last 3 runs ended without a word: their processes died, or were cut off; look at what they printed\n")
		i.Crashes = 0
	}
}

// Of a run that goes on though its context has ended is said so.
func TestIgnoredContext(t *testing.T) {
	t.Parallel()
	const owner = "ABCDEFGHIJ"
	i := job.Info{
		ID: "t", Type: "map", Name: "m", Queue: "slow", Status: statemachine.Running, Ran: noon.Add(-19 * time.Second),
		Token: job.RunToken(owner), Lease: noon.Add(2 * time.Second),
	}
	e := explain.NewTree([]*job.Info{&i}, noon)
	e.Living = []store.EngineInfo{{ID: owner, Concurrency: 1, Seen: noon, Runs: []store.RunningJob{{Job: "other", Ignores: "timeout of 1s"}, {Job: "t"}}}}
	check(t, "in time", said(e, "t"), "job m has been running for 19s\n")
	e.Living[0].Runs[1].Ignores = "timeout of 2s"
	check(t, "late", said(e, "t"), "job m has been running for 19s; it ignores that its context has ended (timeout of 2s): its slot stays taken until it returns\n")
}

// Of a job whose time came long ago is said why nobody begins it, in place of what would not help.
func TestTimesNobodyLooksAt(t *testing.T) {
	t.Parallel()
	i := job.Info{ID: "t", Type: "map", Name: "m", Queue: "slow", Status: statemachine.Scheduled, Next: noon.Add(-6 * time.Second)}
	e := explain.NewTree([]*job.Info{&i}, noon)
	e.Living = []store.EngineInfo{}
	check(t, "no engines", said(e, "t"), "job m waits for its time, which is due, and has been for 6s: no engine lives that would begin it: start the program that has type map\n")
	e.Living = []store.EngineInfo{{ID: "other"}}
	check(t, "another engine", said(e, "t"), "job m waits for its time, which is due, and has been for 6s: the engine that was to begin it may be gone, and another one looks every five seconds\n")
	i.Next = noon
	check(t, "just now", said(e, "t"), "job m waits for its time, which is due; to run it now:\n  $ weir run t\n")
}

// A server that leases runs to workers over HTTP has no slots of its own.
func TestTypesOfWorkersOverHTTP(t *testing.T) {
	t.Parallel()
	i := job.Info{ID: "t", Type: "map", Name: "m", Queue: "slow", Status: statemachine.Queued, Queued: noon}
	e := explain.NewTree([]*job.Info{&i}, noon)
	e.Engines, e.Types = map[string]int{"slow": 1}, []job.TypeInfo{{Type: "map", Queue: "slow"}}
	e.Living = []store.EngineInfo{{Host: "a", PID: 1, Queues: map[string]int{"slow": 1}, Types: []string{"map"}, Seen: noon}}
	check(t, "remote", said(e, "t"), "job m has been ready for 0s and waits for an engine\n"+
		"  type map for queue slow is run by workers over HTTP (through process 1 on a), which asked for runs within the last minutes: it begins when one of them does again\n")
}

// Of a job that waits because others run is said so.
func TestBusySlots(t *testing.T) {
	t.Parallel()
	i := job.Info{ID: "t", Type: "map", Name: "m", Queue: "slow", Status: statemachine.Queued, Queued: noon}
	e := explain.NewTree([]*job.Info{&i}, noon)
	e.Engines, e.Pending, e.Types = map[string]int{"slow": 2}, map[string]int{"slow": 1204}, []job.TypeInfo{{Type: "map", Queue: "slow"}}
	engine := func(pid, slots, running int) store.EngineInfo {
		return store.EngineInfo{Host: "a", PID: pid, Queues: map[string]int{"slow": 1}, Types: []string{"map"}, Concurrency: slots, Running: running, Seen: noon}
	}
	const waits = "job m has been ready for 0s and waits for an engine\n"
	for want, living := range map[string][]store.EngineInfo{
		"1 engine with type map for queue slow: process 1 on a; its slot is busy, and 1,204 jobs are ready in the queue: it is run when its turn comes":                         {engine(1, 1, 1)},
		"2 engines with type map for queue slow: process 1 on a and process 2 on a; all 9 slots are busy, and 1,204 jobs are ready in the queue: it is run when its turn comes": {engine(1, 1, 1), engine(2, 8, 8)},
		"2 engines with type map for queue slow: process 1 on a and process 2 on a; it is run when one of them has a slot free":                                                 {engine(1, 1, 1), engine(2, 8, 7)},
	} {
		e.Living = living
		check(t, want, said(e, "t"), waits+"  "+want+"\n")
	}
	some := engine(1, 8, 2)
	some.Full = []string{"map"}
	const most = " as many jobs of the type as may at once there (of a handler by --handler-processes, else by MaxRunningHere): it is run when one of these has ended"
	for want, living := range map[string][]store.EngineInfo{
		"1 engine with type map for queue slow: process 1 on a; it runs" + most:                                                 {some},
		"2 engines with type map for queue slow: process 1 on a and process 1 on a; each runs" + most:                           {some, some},
		"2 engines with type map for queue slow: process 1 on a and process 2 on a; it is run when one of them has a slot free": {some, engine(2, 8, 7)},
	} {
		e.Living = living
		check(t, want, said(e, "t"), waits+"  "+want+"\n")
	}
	slow := engine(1, 1, 1)
	for want, r := range map[string]store.RunningJob{
		"": {Job: "r", Type: "fetch", Since: noon.Add(-9 * time.Second)},
		" (the longest with job r of type fetch, for 19s)": {Job: "r", Type: "fetch", Since: noon.Add(-19 * time.Second)},
		" (the longest with job r of type fetch, for 6s, which ignores that its context has ended: timeout of 2s)": {
			Job: "r", Type: "fetch", Since: noon.Add(-6 * time.Second), Ignores: "timeout of 2s",
		},
	} {
		slow.Runs = []store.RunningJob{{Job: "s", Type: "map", Since: noon}, r}
		e.Living = []store.EngineInfo{slow}
		check(t, want, said(e, "t"), waits+"  1 engine with type map for queue slow: process 1 on a; its slot is busy"+want+
			", and 1,204 jobs are ready in the queue: it is run when its turn comes\n")
	}
	e.Living, e.Pending["slow"] = []store.EngineInfo{engine(1, 2, 2)}, 1
	const alone = "  1 engine with type map for queue slow: process 1 on a; all 2 slots are busy, and 1 job is ready in the queue: it is run when its turn comes"
	check(t, "alone", said(e, "t"), waits+alone+"\n")
	i.Priority = new(200)
	check(t, "of another priority", said(e, "t"), waits+alone+", by its priority of 200 (the default is 500; weir priority changes it)\n")
}
