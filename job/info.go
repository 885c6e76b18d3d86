package job

import (
	"encoding/json"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Info is what is known of a job at one moment.
type Info struct {
	ID       ID                  `json:"id"`
	Name     string              `json:"name,omitempty"`
	Type     string              `json:"type"`
	Queue    string              `json:"queue"`
	Priority *int                `json:"priority,omitempty"` // if it is not DefaultPriority
	Options  *RunOptions         `json:"-" cbor:"options"`   // that its node has; nil for none
	Graph    bool                `json:"graph,omitempty"`
	Status   statemachine.Status `json:"status"`
	Reason   string              `json:"reason,omitempty"` // why it is throttled or failed
	Parent   ID                  `json:"parent,omitempty"`
	By       string              `json:"by,omitempty"` // who created it
	Args     json.RawMessage     `json:"args,omitempty"`
	Memo     json.RawMessage     `json:"-" cbor:"memo"` // what it was started with, see the function Memo; nil for nothing
	Created  time.Time           `json:"created"`
	Ran      time.Time           `json:"ran,omitzero"`      // start of the last run
	Queued   time.Time           `json:"queued,omitzero"`   // last time it became queued
	Steps    int64               `json:"steps"`             // commits that succeeded
	Tries    int                 `json:"tries,omitempty"`   // failures since the last success
	Version  int64               `json:"version"`           // commits of any kind
	Last     string              `json:"-" cbor:"last"`     // the token of the last run that was committed
	Token    string              `json:"-" cbor:"-"`        // that of its run, while one is in progress: whoever has it can end the run, so no server tells it
	Due      time.Time           `json:"-" cbor:"due"`      // when it is or was to run, if it runs in the order of time, see Node
	Crashes  int                 `json:"deaths,omitempty"`  // runs since the last commit whose process died, or was cut off
	Lapses   int                 `json:"-" cbor:"lapses"`   // runs since the last commit whose holder let the lease end that it was lent for
	Started  bool                `json:"started,omitempty"` // its worker's Start is done
	Woke     int64               `json:"-" cbor:"woke"`     // its place among the children that woke its parent, 0 for none; see Delta.Looked
	Repeat   *Repeats            `json:"repeat,omitempty"`  // when it runs again after it has completed
	Joining  bool                `json:"-" cbor:"joining"`  // an adoption across shards is not yet confirmed
	Policy   FailurePolicy       `json:"on_failure,omitempty"`
	// MessageTypes are the Go types of the messages of ports in a graph that was started, see Plan.MessageTypes.
	MessageTypes map[string]string `json:"-" cbor:"message_types"`
	Definition   string            `json:"definition,omitempty"` // digest of the plan of a graph that was started
	Single       int               `json:"-" cbor:"single"`      // that many of the next messages are read one a run; -1: they are only read together
	Next         time.Time         `json:"next,omitzero"`        // when it wakes by itself
	Blocked      bool              `json:"blocked,omitempty"`    // it is suspended until ports that it filled have room
	Progress     *Progress         `json:"progress,omitempty"`   // what its runs told last of how far they are; nil: nothing
	Labels       map[string]string `json:"labels,omitempty"`
	InstanceOf   string            `json:"instance_of,omitempty"` // the node of its graph, if it has several jobs
	Retain       time.Duration     `json:"-" cbor:"retain"`       // what it was started with, see Retain; 0 for nothing
	Release      bool              `json:"-" cbor:"release"`      // it goes when its parent was told of its end
	Ended        time.Time         `json:"-" cbor:"ended"`        // when it settled, or failed, if it has; not known of one that did so before Weir noted it
	Lease        time.Time         `json:"-" cbor:"lease"`        // when its run is given up, if one is in progress and does not renew it
	Expires      time.Time         `json:"expires,omitzero"`      // when it is deleted, if it has settled and stays so
	Unread       bool              `json:"unread,omitempty"`      // it is past its retention, but Out ports hold unread messages
	Trace        Trace             `json:"-" cbor:"trace"`        // that it was created in
	// SequentialKey is that of its tree, see the function SequentialKey; of jobs that a run spawned it is empty.
	SequentialKey string `json:"sequential_key,omitempty"`
	// UniqueKey is that of its tree, if it is the root and has one, see the function Unique.
	UniqueKey string `json:"unique_key,omitempty"`
	// TypeVersion is the version of its type that an engine must have to run it; 0: any has it.
	TypeVersion int        `json:"type_version,omitempty"`
	Needs       *Needs     `json:"-" cbor:"needs"` // of an engine; nil: just the type
	Ports       []PortInfo `json:"ports,omitempty"`
}

// PortInfo is what is known of one port of a job at one moment.
type PortInfo struct {
	port.Spec
	Waiting int64       `json:"waiting"`         // messages not yet read
	Total   int64       `json:"total"`           // messages that ever passed
	Wired   bool        `json:"wired"`           // messages go on along edges
	Edges   [][]PortRef `json:"edges,omitempty"` // where to: each edge has one or several ends
	Sources int         `json:"open,omitempty"`  // edges that still may bring messages
	Fed     bool        `json:"fed,omitempty"`   // it has, or had, sources
	Closed  bool        `json:"closed"`          // no message will come any more
}

// Port returns what is known of one port; ok is false if there is no such port.
func (i *Info) Port(dir port.Dir, name string) (PortInfo, bool) {
	for _, p := range i.Ports {
		if p.Dir == dir && p.Name == name {
			return p, true
		}
	}
	return PortInfo{}, false
}

// Failure is one recorded error of a job, of which the last 20 are kept.
type Failure struct {
	At    time.Time `json:"at"`
	Began time.Time `json:"began,omitzero"` // when the run began, by the store's clock
	Step  int64     `json:"step"`
	Try   int       `json:"try,omitempty"` // the first, second … run in a row that failed
	Error string    `json:"error"`
	Stack string    `json:"stack,omitempty"` // of a panic
	// Port is the In port of which the run read last, if any, and Number that of the message that it read there last,
	// of all that the port ever had, from 0: often the one to blame. If the worker has named another one, it is that, see worker.AtMessage.
	Port   string `json:"port,omitempty"`
	Number int64  `json:"number,omitempty"`
	// Trace is the place of the run in a trace, as Trace.String tells it; empty if it was not traced.
	Trace string `json:"trace,omitempty"`
}

// TypeInfo describes a worker type that an engine has registered for a queue.
type TypeInfo struct {
	Type     string      `json:"type"`
	Queue    string      `json:"queue"`
	Ports    []port.Spec `json:"ports,omitempty"`
	Version  string      `json:"version,omitempty"`  // of the program that registered it
	Priority *int        `json:"priority,omitempty"` // of its jobs, if their nodes name none
	Silent   bool        `json:"silent,omitempty"`   // statuses of its jobs are not published
	Engine   bool        `json:"engine,omitempty"`   // an engine has registered it, and runs its jobs: no other client does
	// TypeVersion is what the type declares, see Versioned; 0: nothing.
	TypeVersion int `json:"type_version,omitempty"`
	// MaxRunning is how many runs of the type go on at once, over all processes; 0: any number. MaxRunningBy is
	// the argument of which each value has that many of its own.
	MaxRunning   int    `json:"max_running,omitempty"`
	MaxRunningBy string `json:"max_running_by,omitempty"`
	// MaxRuns is how many runs of the type begin within any MaxRunsPer, over all processes; 0: any number. MaxRunsBy is
	// the argument of which each value has that many of its own.
	MaxRuns    int           `json:"max_runs,omitempty"`
	MaxRunsPer time.Duration `json:"max_runs_per,omitempty"`
	MaxRunsBy  string        `json:"max_runs_by,omitempty"`
	// What else the engine's options of the type limit; zero: nothing, or what nobody has said.
	MaxRunsPerMinute int           `json:"max_runs_per_minute,omitempty"` // of one job
	Tries            int           `json:"tries,omitempty"`               // of a run that fails, unless the job says otherwise
	Timeout          time.Duration `json:"timeout,omitempty"`             // of a run, unless the job says otherwise
	// Params are the arguments that jobs of the type take; nil if that is not known.
	Params []port.Param `json:"params,omitzero"`
	// Kinds are what kind of JSON value the messages of ports are, by port.TypeKey, as far as known.
	Kinds map[string]string `json:"kinds,omitempty"`
	// Schemas are the JSON Schemas of those messages, by the same keys, of which there is more to say.
	Schemas    map[string]json.RawMessage `json:"schemas,omitempty"`
	Registered time.Time                  `json:"registered"`
}
