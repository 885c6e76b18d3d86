package job

import (
	"context"
	"time"
)

// Engines tells which engines live. It is for people who look: nothing that a store or an
// engine does depends on it.
type Engines interface {
	// Beat tells that an engine lives, and what it is doing. An engine that does not for
	// EngineGone counts as dead.
	Beat(ctx context.Context, e EngineInfo) error
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
	Queues      map[string]int `json:"queues"` // with their weights
	Types       []string       `json:"types"`
	Running     int            `json:"running"` // runs in progress
	Busy        map[string]int `json:"busy"`    // of these, by queue
	Runs        []RunningJob   `json:"runs"`    // of these the oldest
}

// RunningJob is a run in progress.
type RunningJob struct {
	Job   ID        `json:"job"`
	Type  string    `json:"type"`
	Queue string    `json:"queue"`
	Since time.Time `json:"since"`
}
