package store

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
)

// Engines tells which engines live. It is for people who look: nothing that a store or an
// engine does depends on it.
type Engines interface {
	// Heartbeat tells that an engine lives, and what it is doing. An engine that does not for
	// EngineGone counts as dead.
	Heartbeat(ctx context.Context, e EngineInfo) error
	// Leave tells that an engine has stopped.
	Leave(ctx context.Context, engine string) error
	// Engines returns those that live, sorted by host, process and start.
	Engines(ctx context.Context) ([]EngineInfo, error)
}

// EngineGone is after how long without a sign of life an engine counts as dead.
const EngineGone = 10 * time.Second

// EngineInfo is what an engine tells of itself.
type EngineInfo struct {
	ID          string         `json:"id"` // of this engine in this process, random
	Host        string         `json:"host"`
	PID         int            `json:"pid"`
	Version     string         `json:"version,omitempty"` // of Weir, as far as known
	Started     time.Time      `json:"started"`           // set by the store
	Seen        time.Time      `json:"seen"`              // its last sign of life, set by the store
	Stopping    bool           `json:"stopping"`          // it begins no more runs
	Concurrency int            `json:"concurrency"`
	Queues      map[string]int `json:"queues"`             // with their weights
	Types       []string       `json:"types"`              // see MatchType: what clients lease is told as they ask for it
	Versions    map[string]int `json:"versions,omitempty"` // of those types that declare one
	Build       string         `json:"build,omitempty"`    // the same for engines that can run the same, see job.Needs
	// Limits are those that its types declare, see job.TypeInfo.Limit; a type without one is not in it.
	Limits  map[string]job.TypeLimit `json:"limits,omitempty"`
	Running int                      `json:"running"` // runs in progress
	Busy    map[string]int           `json:"busy"`    // of these, by queue
	Runs    []RunningJob             `json:"runs"`    // of these the oldest
	// Full are those types of which as many runs go on here as may, whatever slots are free: see worker.Options.MaxRunningHere.
	Full []string `json:"full,omitempty"`
	// Activity is what its runs did since it started. It is for the store, which adds it up for the namespace, and not in what Engines returns.
	Activity Activity `json:"-" cbor:"-"`
}

// OverHTTP tells whether it has no slots of its own, but leases runs to workers that are no Go programs.
func (e *EngineInfo) OverHTTP() bool { return e.Concurrency == 0 }

// LastLimits returns the limits of types as they were registered last, whatever the queue: those count.
func LastLimits(types []job.TypeInfo) map[string]job.TypeLimit {
	last, all := map[string]time.Time{}, map[string]job.TypeLimit{}
	for i := range types {
		t := &types[i]
		if _, known := all[t.Type]; !known || t.Registered.After(last[t.Type]) {
			all[t.Type], last[t.Type] = t.Limit(), t.Registered
		}
	}
	return all
}

// RunLimits returns what a store counts by the limit of a type, none of it if there is no limit.
func RunLimits(typ string, l job.TypeLimit) (all []RunLimit) {
	if l.Max > 0 {
		all = append(all, RunLimit{Type: typ, Max: l.Max, By: l.By})
	}
	if l.Runs > 0 {
		all = append(all, RunLimit{Type: typ, Max: l.Runs, Per: l.Per, By: l.RunsBy})
	}
	return all
}

// Declares tells whether the engine has a type for a queue in its own program, and thus says which limit the type has.
func (e *EngineInfo) Declares(queue, typ string) bool {
	return e.Concurrency > 0 && e.Queues[queue] > 0 && slices.Contains(e.Types, typ)
}

// Takes tells whether the engine runs jobs of a type in a queue, which may say what they need besides it, see job.Needs.
func (e *EngineInfo) Takes(queue, typ string) bool {
	n := job.ParseNeeds(typ, "")
	name := n.Type
	if n.Version > 1 && n.Version > e.Versions[n.Type] {
		name = job.Takes(n.Type, n.Version) // which clients ask for
	}
	return e.Queues[queue] > 0 && slices.ContainsFunc(e.Types, func(pattern string) bool { return MatchType(pattern, name) }) &&
		(e.Build == "" || !slices.Contains(n.Refused, e.Build) && !slices.Contains(n.Unread, e.Build))
}

// MatchType tells whether the name of a type matches a pattern: * stands for any characters, ? for one, [a-z] for one of these.
func MatchType(pattern, typ string) bool {
	if pattern == typ {
		return true
	}
	ok, err := path.Match(unslashed(pattern), unslashed(typ))
	return ok && err == nil
}

// CheckPattern refuses what MatchType cannot read. The error wraps job.ErrName.
func CheckPattern(pattern string) error {
	if _, err := path.Match(unslashed(pattern), ""); err != nil || pattern == "" || len(pattern) > job.MaxName {
		return fmt.Errorf("%w: pattern %.80q of types: use a type, or * for any characters, ? for one, [a-z] for one of these", job.ErrName, pattern)
	}
	return nil
}

// unslashed is a text in which no slash is anything special to package path.
func unslashed(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

// RunningJob is a run in progress.
type RunningJob struct {
	Job   job.ID    `json:"job"`
	Type  string    `json:"type"`
	Queue string    `json:"queue"`
	Since time.Time `json:"since"`
	// Ignores is why its context has ended, if the run has not returned seconds later: its slot stays taken until it does.
	Ignores string `json:"ignores,omitempty"`
}
