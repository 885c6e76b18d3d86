package job

import "time"

// Limits of a tree that a run launches: it waits in an outbox as one entry, and one script creates it.
const (
	MaxLaunchJobs  = 200       // jobs of its plan
	MaxLaunchPorts = 2_000     // ports and edge ends of all of them
	MaxLaunch      = 256 << 10 // bytes of their names, arguments, defaults and messages
)

// OnceFor is how long a key of WriteOnce, Start or Create is known, at least.
const OnceFor = time.Hour

// MaxWoken is how many children a run is told of at a time that woke its job.
const MaxWoken = 1000

// MaxReleased is how many children a run releases in one commit at most.
const MaxReleased = 1000

// MaxReason is how many bytes the reason of a failure by hand has at most.
const MaxReason = 4096

// TypeLimit is how many runs of a type go on at once, and how many begin in a time, over all processes.
type TypeLimit struct {
	Max int    `json:"max"`          // 0: any number
	By  string `json:"by,omitempty"` // the argument of which each value has that many of its own
	// Runs, Per and RunsBy are MaxRuns, MaxRunsPer and MaxRunsBy of TypeInfo.
	Runs   int           `json:"runs,omitempty"`
	Per    time.Duration `json:"per,omitempty"`
	RunsBy string        `json:"runs_by,omitempty"`
}

// Limit is what the type declares.
func (t *TypeInfo) Limit() TypeLimit {
	return TypeLimit{Max: t.MaxRunning, By: t.MaxRunningBy, Runs: t.MaxRuns, Per: t.MaxRunsPer, RunsBy: t.MaxRunsBy}
}

// SetLimit has the type declare a limit.
func (t *TypeInfo) SetLimit(l TypeLimit) {
	t.MaxRunning, t.MaxRunningBy, t.MaxRuns, t.MaxRunsPer, t.MaxRunsBy = l.Max, l.By, l.Runs, l.Per, l.RunsBy
}
