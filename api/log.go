package api

import (
	"encoding/json"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// LogLine is one entry of a log: what a run read and wrote, or what it noted.
type LogLine struct {
	At      time.Time       `json:"at"`
	Job     job.ID          `json:"job"`
	Run     *job.RunEntry   `json:"run,omitempty"`
	Note    json.RawMessage `json:"note,omitempty"`
	Context port.Context    `json:"context,omitempty"` // of a note
}

// LogLines are entries of a log.
func LogLines(entries []job.Entry) []LogLine {
	lines := make([]LogLine, 0, len(entries))
	for _, e := range entries {
		lines = append(lines, LogLine{At: e.At, Job: e.Job, Run: e.Run, Note: e.Note, Context: e.Context})
	}
	return lines
}

// TraceLines are the runs that a message came by, nearest first.
func TraceLines(trace []job.RunEntry) []LogLine {
	lines := make([]LogLine, 0, len(trace))
	for i := range trace {
		lines = append(lines, LogLine{At: trace[i].At, Job: trace[i].Job, Run: &trace[i]})
	}
	return lines
}

// Origin is where a message came from.
type Origin struct {
	Entries []LogLine      `json:"entries" doc:"the runs, and acts from outside, that led to it, the latest first"`
	Missing []job.Movement `json:"missing,omitempty" doc:"messages that were read on the way, of which the log does not tell who sent them"`
	Trimmed *job.Trimmed   `json:"trimmed,omitempty" doc:"what is gone of the log; only if messages are missing"`
	More    bool           `json:"more,omitempty" doc:"more runs led to it than are told: these are the latest"`
}

// OriginOf is what one client.Origin says.
func OriginOf(o *client.Origin) *Origin {
	v := &Origin{Entries: TraceLines(o.Steps), Missing: o.Missing, More: o.More}
	if o.Trimmed.Entries > 0 {
		v.Trimmed = &o.Trimmed
	}
	return v
}
