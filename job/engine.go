package job

import (
	"crypto/rand"
	"time"
)

// ownerLen is how many characters of an engine's ID are the beginning of its runs' tokens.
const ownerLen = 8

// RunToken returns a random token for a run of an engine, which begins as the ID of the engine does: so whoever looks at a job can be told
// which engine has it, and nothing of the token that could end the run.
func RunToken(engine string) string {
	owner := engine[:min(ownerLen, len(engine))]
	return owner + rand.Text()[len(owner):]
}

// Owner is the beginning of the ID of the engine that runs the job, or has it leased to a client, while a run is in progress.
func (i *Info) Owner() string { return i.Token[:min(ownerLen, len(i.Token))] }

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
