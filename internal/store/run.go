package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Begin says how to begin a run.
type Begin struct {
	Token string        // random, used once
	Lease time.Duration // the run is given up when not refreshed for so long
	Batch int           // messages of each In port that come with the snapshot
	// Batches says so for the types of which it differs.
	Batches map[string]int
	Bytes   int // stop a port's batch at that many bytes, and the next ones at one message after twice as many in all
	Row     int // how many jobs may come with the snapshot that are next in a row, see Snapshot.Row
	// Limits are the runs a minute allowed to a job by type, with "" for all others; below zero,
	// those in a row that made no progress, see Delta.Idle. A
	// job over it is throttled until the next minute. Without "" there is no limit.
	Limits map[string]int
	// Running are limits of how many runs go on at once, and rates.
	Running []RunLimit
	// Priority is that of the jobs of which Pop begins one; nil: any.
	Priority *int
	// AtLeast is the lowest priority of the jobs of which Pop begins one, if Priority is nil. A Step begins none of a lower priority than
	// that of the transaction's last job.
	AtLeast int
	// Lowest has Pop, and a Step unless it has Own, begin one of the lowest priority that there is; Priority and AtLeast say nothing then.
	Lowest bool
	// Hold tells, when a Step begins a job of a type that it made ready, whether the caller will then itself
	// begin the job of the step's first delta, if that is queued again: nobody else does. nil: no.
	Hold func(next string) bool
	// A Step begins a job that it made ready, or else the first of all ready jobs of its queue: with Fair always
	// that, with Own never.
	Fair, Own bool
	// Several tells how many jobs of a type a Step or a Pop may begin at once: those that it did not make ready itself, of one type
	// and one priority, that have never run and are under no limit. They get tokens of their own. nil: one.
	Several func(typ string) int
}

// MostSeveral is how many jobs a Step or a Pop begins at once at most.
const MostSeveral = 32

// RunLimit lets at most Max runs go on at once, over all processes, of jobs of a type or of a queue. With Per it is a rate: at
// most Max of them begin within any time of that length.
type RunLimit struct {
	Type  string // or
	Queue string
	Max   int
	Per   time.Duration // of a type: whole milliseconds, zero for runs at once
	By    string        // of a type: the argument of which each value has a limit of its own; empty for none
}

// Limits are of how many runs go on at once.
type Limits interface {
	// SetQueueLimit lets at most n runs of jobs in a queue go on at once, over all engines; 0 ends the limit.
	SetQueueLimit(ctx context.Context, queue string, n int) error
	// QueueLimits returns those that are set.
	QueueLimits(ctx context.Context) (map[string]int, error)
}

// Snapshot is what a run sees of its job: nothing in it changes while the run lasts.
type Snapshot struct {
	Info     job.Info
	Token    string
	Shutdown bool                       // the job is terminating: run Shutdown, not Run
	Loop     bool                       // the job is in a graph with feedback
	Touched  int64                      // how often it was changed other than by being woken or run
	Rate     int                        // runs of the job that began this minute, with this one
	Whole    bool                       // State holds the whole state
	State    map[string]json.RawMessage // empty unless Whole
	Defaults map[string]json.RawMessage // by In port
	In       Inboxes                    // of the In ports that have messages
	// Woken are the children that woke the job since its last run that did not fail, the first of them first, at most
	// job.MaxWoken; WokenTo is where they end, for Delta.Woken. If there are more, the run is followed by another.
	Woken   []Kin
	WokenTo int64
	Ready   int // how many more jobs were ready where Pop found this one
	// Row are the jobs that come behind one that runs for the first time: all that it writes along edges goes to
	// the first of them, and so on. They sleep, have never run, and have nothing to read.
	Row []*Snapshot
}

// Kin is a child of a job.
type Kin struct {
	Name string
	ID   job.ID
}

// Looked is a child that woke its parent, and its place among those that did when the parent looked: if it has not woken
// it since, that is no reason to run again.
type Looked struct {
	Name string
	Woke int64
}

// Inbox is the unread part of a port that came with a snapshot.
type Inbox struct {
	Port  string
	Head  int64             // messages removed from the port before these
	Len   int               // messages in the port at begin
	Items []json.RawMessage // the oldest of them
}

// Messages returns what came with the snapshot, as its consumer sees it.
func (i Inbox) Messages() ([]job.Message, error) {
	all := make([]job.Message, 0, len(i.Items))
	for _, stored := range i.Items {
		m, err := job.MessageOf(stored)
		if err != nil {
			return nil, fmt.Errorf("context of a message of port %q: %w", i.Port, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// Inboxes are those of some ports.
type Inboxes []Inbox

// Of returns that of a port, which may be empty.
func (all Inboxes) Of(port string) Inbox {
	for _, box := range all {
		if box.Port == port {
			return box
		}
	}
	return Inbox{Port: port}
}

// Tx is one transaction: its deltas apply in order up to the first that no longer
// holds. All jobs of a call lie in one shard.
type Tx struct {
	Deltas []Delta
}

// Checkpoint is the outcome of a commit after which the run goes on, under Delta.Next.
const Checkpoint statemachine.Event = "checkpoint"

// Delta is all that one run does, as one change; or several runs of a job that follow each other.
type Delta struct {
	Job     job.ID
	Token   string             // the run's token: the fence
	Outcome statemachine.Event // complete, suspend, fail, backoff, requeue, reschedule, shutdown or Checkpoint
	Delay   time.Duration      // of backoff, and of reschedule by the clock of this process
	Repeat  *job.Repeats       // of reschedule, and of complete for the last time: how far the repetition is then
	// Next is the token after a Checkpoint. With another outcome it is by what a repeat of the commit is known in place of Token, if
	// several programs may end one run: then one of them does.
	Next        string
	Lease       time.Duration // after a Checkpoint
	Leads       bool          // what goes on after the Checkpoint is another run, which counts for the limit of runs
	Takes       []Take
	Set         map[string]json.RawMessage
	Unset       []string
	Spawns      []Spawn
	Launches    []*Launch
	Writes      []Write
	Closes      []string // Out ports
	Defaults    []Default
	SetPorts    []port.Spec // replace the job's unwired ports, unless nil
	Entry       string      // JSON for the log: what the run read and wrote; empty for none
	Failure     *job.Failure
	Log         []string        // JSON, one entry each
	Wakes       []time.Duration // ask for runs so long after the commit; a negative one unless one is asked for within that time
	Handed      bool            // the run hands its job back untouched: it does not count as a try or a step
	Reason      string          // why the job is throttled
	Single      string          // how many of the next messages to read one a run, as a number; empty: as before
	Started     bool            // the worker's Start is part of it
	Idle        bool            // the run made no progress, and its job asks for another at once
	Woken       int64           // up to where the run was told of children that woke it, see Snapshot; 0 for none
	Looked      []Looked        // children that woke the job in the run, which then looked what they had done
	Released    []string        // children, by name, that go when they have settled and the job was told of that
	Speculation *Speculation    // the run has not begun yet
	Needs       *job.Needs      // what an engine must have for the next runs; nil: as before
	Progress    *job.Progress   // how far the job is; nil: as before
	Before      []Part          // the runs before the last one, of which Writes, Entry and Log are
}

// Part is what one of several runs in a delta wrote and logged.
type Part struct {
	Writes []Write
	Entry  string
	Log    []string
}

// Parts returns what each run of the delta wrote and logged.
func (d *Delta) Parts() []Part {
	return append(slices.Clip(d.Before), Part{Writes: d.Writes, Entry: d.Entry, Log: d.Log})
}

// Speculation is in the delta of a run that was made before its job was woken: of a job that slept,
// on messages that the delta before it in the transaction writes. The commit begins the run
// and ends it. It holds if nothing else has happened to the job since it was seen.
type Speculation struct {
	Version int64  // of the job when it was seen
	Touched int64  // how often it had been changed from outside then, see Snapshot
	Last    string // token of its last run then: a Redis that lost some writes may count to the same version
	Port    string // the In port that is written to
	Closed  bool   // the delta before it closed that port, too
	Seen    int    // messages in it then: all that the run saw
	Limit   int    // runs a minute allowed to the job
}

// Take removes N messages from the front of a port, if its head is still Head.
type Take struct {
	Job  job.ID // empty: the delta's own job
	Dir  port.Dir
	Port string
	Head int64
	N    int
}

// Write appends messages to a port: of the job itself, or of one of its tree.
type Write struct {
	Job    job.ID // empty: the delta's own job
	Dir    port.Dir
	Port   string
	Keyed  bool   // Key says to which of several consumers the messages go
	Key    uint32 // Hash of the message key
	Items  []json.RawMessage
	NoWake bool   // from outside of runs: wake nobody
	Entry  string // from outside of runs: JSON for the log, empty for none
	// Unlogged keeps where the messages go out of the log of the run that writes them.
	Unlogged bool
	// Once, from outside of runs: does nothing if a write to the port had the same within job.OnceFor.
	Once string
}

// Default sets the default of a port, or clears it.
type Default struct {
	Job   job.ID // empty: the delta's own job
	Dir   port.Dir
	Port  string
	Value json.RawMessage // nil clears it
}

// Spawn creates the jobs of a plan as a child of the run's job, numbered from Base on.
type Spawn struct {
	Plan  *job.Plan
	Base  int
	Alias string // of the child; empty for none. Another job that has it keeps it, and the log of the child says so.
}

// Result tells what became of one transaction.
type Result struct {
	Applied int   // deltas that hold, now or from an earlier sending of the same commit
	Refused error // why the first other delta did not: job.ErrFenced, job.ErrMoved, job.ErrPort, job.ErrExists, job.ErrNotFound
	Again   bool  // the last applied delta left its job queued
	Held    bool  // the job of the first delta is the caller's to begin, see Begin.Hold
	Full    bool  // a port that its job writes to is full: the job is not to write on
	Room    int   // how many messages the next commit may write to the fullest port that was written to, or many; -1 if it wrote to none
}
