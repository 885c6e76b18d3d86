package rig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Report is what a run of the harness found.
type Report struct {
	Mode    string  `json:"mode"`
	Seed    uint64  `json:"seed"`
	Seconds float64 `json:"seconds"` // of faults

	Faults          map[string]int   `json:"faults"` // by kind
	WorkerFaults    int              `json:"worker_faults"`
	FaultsPerSecond float64          `json:"worker_faults_per_second"`
	Failpoints      map[string]int64 `json:"failpoints,omitempty"` // hits
	NeverHit        []string         `json:"never_hit,omitempty"`  // failpoints
	Clocks          map[string]int   `json:"clocks"`               // asynq servers, by how much their clocks are wrong

	Runs         int `json:"runs"`
	Refused      int `json:"runs_refused"` // whose job had another run, or was gone
	Jobs         int `json:"jobs"`         // checked one by one
	Sent         int `json:"messages_sent"`
	Unknown      int `json:"messages_unknown"` // sent, with an outcome that was not heard
	Received     int `json:"messages_received"`
	Rounds       int `json:"rounds"` // pieces of work
	Terminated   int `json:"terminated_trees"`
	Deleted      int `json:"deleted_trees"`
	RegisterOps  int `json:"register_ops"`
	SerialTrees  int `json:"serial_trees"`             // with sequential keys
	UniqueTrees  int `json:"unique_trees"`             // with unique keys, that were made
	HandedJobs   int `json:"handed_jobs"`              // that were failed and retried by hand until they completed
	FenceProbes  int `json:"fence_probes"`             // commits of runs that were given up, by the harness itself
	LostByOutage int `json:"lost_by_outage,omitempty"` // messages of the last second before power was lost

	// Each of these is to be zero.
	Lost            int `json:"lost"`
	Duplicated      int `json:"duplicated"`
	Reordered       int `json:"reordered"`
	WrongState      int `json:"wrong_state"`
	Resurrected     int `json:"resurrected"`
	Stuck           int `json:"stuck"`
	Forgotten       int `json:"forgotten"` // jobs that nobody would miss if a process died
	OrphanKeys      int `json:"orphan_keys"`
	LeakedLocks     int `json:"leaked_locks"`
	ZombieChildren  int `json:"zombie_children"`
	NotLinearizable int `json:"not_linearizable"`
	Leaked          int `json:"leaked_goroutines"`
	Panics          int `json:"process_panics"`
	Hung            int `json:"hung_processes"`
	FenceViolations int `json:"fence_violations"`
	KeyOrder        int `json:"key_order"`        // trees of a sequential key that began out of their order
	TwoActive       int `json:"key_two_active"`   // that were active at a time
	LeftWaiting     int `json:"key_left_waiting"` // that wait though none is active
	OverLimit       int `json:"over_limit"`       // runs of a type that went on at once beyond its limit, or began beyond its rate
	Late            int `json:"late"`             // notifications are not sent
	Trouble         int `json:"trouble"`          // the harness could not do what it wanted to

	Recovery    Times `json:"recovery_ms"`        // from the death of a worker until its job runs again
	RedisResume Times `json:"redis_resume_ms"`    // from when Redis is back until a run begins
	Release     Times `json:"sigterm_release_ms"` // from SIGTERM until the process has ended
	QuietMS     int64 `json:"quiet_ms"`           // from the last fault until nothing was to be done

	Details []string `json:"details,omitempty"` // of what is not zero, the first of each kind
	Kept    string   `json:"kept,omitempty"`    // the folder that was kept
}

// Bad returns the counters that should be zero and are not.
func (r *Report) Bad() map[string]int {
	all := map[string]int{
		"lost": r.Lost, "duplicated": r.Duplicated, "reordered": r.Reordered, "wrong_state": r.WrongState,
		"resurrected": r.Resurrected, "stuck": r.Stuck, "forgotten": r.Forgotten, "orphan_keys": r.OrphanKeys, "leaked_locks": r.LeakedLocks,
		"zombie_children": r.ZombieChildren, "not_linearizable": r.NotLinearizable, "leaked_goroutines": r.Leaked,
		"process_panics": r.Panics, "hung_processes": r.Hung, "fence_violations": r.FenceViolations, "late": r.Late, "over_limit": r.OverLimit, "key_order": r.KeyOrder, "key_two_active": r.TwoActive, "key_left_waiting": r.LeftWaiting, "trouble": r.Trouble, "never_hit": len(r.NeverHit),
	}
	maps.DeleteFunc(all, func(_ string, n int) bool { return n == 0 })
	return all
}

// Times are durations in milliseconds.
type Times struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// stopwatch collects durations.
type stopwatch struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *stopwatch) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *stopwatch) times() Times {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return Times{}
	}
	slices.Sort(s.all)
	at := func(q float64) float64 {
		return float64(s.all[int(q*float64(len(s.all)-1))].Round(100*time.Microsecond).Microseconds()) / 1000
	}
	return Times{N: len(s.all), P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// reset returns the times so far, and forgets them.
func (s *stopwatch) reset() Times {
	s.mu.Lock()
	old := stopwatch{all: s.all}
	s.all = nil
	s.mu.Unlock()
	return old.times()
}

// ledger counts while the harness runs. It is safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	report  Report
	details map[*int]int // told of each counter
}

// perKind is how many details are told of one counter.
const perKind = 5

// count adds to a counter of the report.
func (l *ledger) count(counter func(*Report) *int, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*counter(&l.report) += n
}

// bad adds one to a counter that should be zero, and tells what happened.
func (l *ledger) bad(counter func(*Report) *int, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := counter(&l.report)
	*c++
	if l.details == nil {
		l.details = map[*int]int{}
	}
	if l.details[c]++; l.details[c] <= perKind {
		l.report.Details = append(l.report.Details, fmt.Sprintf(format, args...))
	}
}

func (l *ledger) fault(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.report.Faults == nil {
		l.report.Faults = map[string]int{}
	}
	l.report.Faults[kind]++
}

// faults returns how many there were.
func (l *ledger) faults() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.report.Faults {
		n += k
	}
	return n
}

// JSON is the report on one line.
func (r *Report) JSON() string {
	raw, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// The counters that are to be zero.
func lost(r *Report) *int           { return &r.Lost }
func duplicated(r *Report) *int     { return &r.Duplicated }
func reordered(r *Report) *int      { return &r.Reordered }
func wrongState(r *Report) *int     { return &r.WrongState }
func resurrected(r *Report) *int    { return &r.Resurrected }
func stuck(r *Report) *int          { return &r.Stuck }
func forgotten(r *Report) *int      { return &r.Forgotten }
func orphanKeys(r *Report) *int     { return &r.OrphanKeys }
func leakedLocks(r *Report) *int    { return &r.LeakedLocks }
func zombies(r *Report) *int        { return &r.ZombieChildren }
func notLinear(r *Report) *int      { return &r.NotLinearizable }
func leakedRoutines(r *Report) *int { return &r.Leaked }
func panics(r *Report) *int         { return &r.Panics }
func hung(r *Report) *int           { return &r.Hung }
func trouble(r *Report) *int        { return &r.Trouble }

func fenceViolations(r *Report) *int { return &r.FenceViolations }
func late(r *Report) *int            { return &r.Late }
func keyOrder(r *Report) *int        { return &r.KeyOrder }
func twoActive(r *Report) *int       { return &r.TwoActive }
func leftWaiting(r *Report) *int     { return &r.LeftWaiting }
func overLimit(r *Report) *int       { return &r.OverLimit }

// The others.
func fenceProbes(r *Report) *int     { return &r.FenceProbes }
func refused(r *Report) *int         { return &r.Refused }
func lostByOutage(r *Report) *int    { return &r.LostByOutage }
func runs(r *Report) *int            { return &r.Runs }
func jobsSeen(r *Report) *int        { return &r.Jobs }
func sent(r *Report) *int            { return &r.Sent }
func unknown(r *Report) *int         { return &r.Unknown }
func received(r *Report) *int        { return &r.Received }
func terminated(r *Report) *int      { return &r.Terminated }
func deleted(r *Report) *int         { return &r.Deleted }
func registerOps(r *Report) *int     { return &r.RegisterOps }
func serialTreesSeen(r *Report) *int { return &r.SerialTrees }
func uniqueTreesSeen(r *Report) *int { return &r.UniqueTrees }
func handedJobs(r *Report) *int      { return &r.HandedJobs }
