package job

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// The contracts below are what a store of jobs does. Every method is safe for
// concurrent use, honours its context, and is idempotent where a lost reply makes
// the caller (or the driver below it) ask again.

// Creator makes trees of jobs.
type Creator interface {
	// Create stores all jobs of a plan, its root under the given ID, or none. created is
	// false when that job exists already; then nothing changed. A plan with a Parent
	// grows the parent's tree: its root's ID is one that Reserve set aside there; ErrMoved says that
	// it is another job's by now, as a Redis that lost its last writes gives numbers out again. Of a plan with a unique key the error
	// is a *DuplicateError if another tree has the key.
	Create(ctx context.Context, id ID, plan *Plan, by string) (created bool, err error)
	// MergeArgs merges args into those of a job, see UniqueBy, or leaves them as they are: then merged is false.
	MergeArgs(ctx context.Context, id ID, m Merging) (merged bool, err error)
	// Reserve sets n numbers of a tree aside and returns the first.
	Reserve(ctx context.Context, tree ID, n int) (int, error)
}

// Names finds jobs by what people call them.
type Names interface {
	// Claim binds an alias to id and returns id, or returns the ID that it is already bound to.
	Claim(ctx context.Context, alias string, id ID) (ID, error)
	// Unclaim removes an alias of a job, or returns ErrNotFound.
	Unclaim(ctx context.Context, alias string, id ID) error
	// Resolve returns the ID bound to an alias, or ErrNotFound.
	Resolve(ctx context.Context, alias string) (ID, error)
	// Once remembers an ID under a key for OnceFor, and returns it, or the one that it remembers already.
	Once(ctx context.Context, key string, id ID) (ID, error)
	// Aliases returns the aliases of a job, sorted.
	Aliases(ctx context.Context, id ID) ([]string, error)
	// Prefixed returns up to limit IDs of roots that begin with prefix, sorted.
	Prefixed(ctx context.Context, prefix string, limit int) ([]ID, error)
}

// Lister finds jobs by what they are.
type Lister interface {
	// Jobs lists the jobs that pass a valid filter, in its order. It ends with the first error.
	Jobs(ctx context.Context, f Filter) iter.Seq2[*Info, error]
	// JobsPage returns the first jobs that pass a valid filter, up to limit of them, and behind which job the list goes on;
	// empty if it does not. In an order of creation it looks at a bounded number of jobs.
	JobsPage(ctx context.Context, f Filter, limit int) (jobs []*Info, next ID, err error)
	// Count returns how many jobs pass a valid filter.
	Count(ctx context.Context, f Filter) (int, error)
	// Details returns what Info does not say of jobs, in the order of the IDs.
	Details(ctx context.Context, ids []ID) ([]Details, error)
}

// Types is the catalogue of worker types that engines have registered, so that anybody
// can create jobs of types that he does not link.
type Types interface {
	// Register adds types to the catalogue, or replaces them.
	Register(ctx context.Context, types []TypeInfo) error
	// Types returns the catalogue, sorted by queue and type.
	Types(ctx context.Context) ([]TypeInfo, error)
	// Type returns one type of a queue, or ErrUnknownType.
	Type(ctx context.Context, queue, name string) (*TypeInfo, error)
}

// Inspector reads jobs without touching them.
type Inspector interface {
	// Info returns one job, or ErrNotFound.
	Info(ctx context.Context, id ID) (*Info, error)
	// Tree returns the job's whole tree ordered by number, the root first, or ErrNotFound.
	Tree(ctx context.Context, id ID) ([]*Info, error)
	// State returns the job's state: the given keys, or all of it when none is given.
	State(ctx context.Context, id ID, keys ...string) (map[string]json.RawMessage, error)
	// Failures returns the recorded errors of a job, newest first, at most 20.
	Failures(ctx context.Context, id ID) ([]Failure, error)
	// Logs returns the last entries that runs of the job logged, up to limit of them, oldest first.
	Logs(ctx context.Context, id ID, limit int) ([]LogEntry, error)
	// Child returns the ID of the child of that name, or ErrNotFound. It takes as long with a million children as with one.
	Child(ctx context.Context, parent ID, name string) (ID, error)
}

// PortSetter changes the ports of a job from outside of its runs.
type PortSetter interface {
	// SetPorts replaces the ports of a job that are not wired. Ports that stay keep their
	// messages, dropped ones lose them.
	SetPorts(ctx context.Context, id ID, ports []port.Spec) error
	// SetDefault sets the default of a port, or clears it with a nil value.
	SetDefault(ctx context.Context, id ID, d Default) error
	// Connect moves all messages of a port, and copies its default, to other ports of
	// its tree, and returns the messages.
	Connect(ctx context.Context, id ID, dir port.Dir, name string, to []PortRef) ([]json.RawMessage, error)
}

// PortRef names a port of a job.
type PortRef struct {
	Job  ID       `json:"job"`
	Dir  port.Dir `json:"dir"`
	Port string   `json:"port"`
}

// Ports moves messages between the outside and the ports of a job.
type Ports interface {
	// Write appends messages to a port (or sends them along its edges) and wakes who
	// waits for them.
	Write(ctx context.Context, id ID, w Write) error
	// Peek returns up to n of the oldest messages of a port without removing them, and the port's head.
	Peek(ctx context.Context, id ID, dir port.Dir, name string, n int) (items []json.RawMessage, head int64, err error)
	// Take removes n messages from a port whose head is still head, else ErrMoved.
	Take(ctx context.Context, id ID, t Take, token string) error
	// ClosePort ends a port: no message will come any more.
	ClosePort(ctx context.Context, id ID, dir port.Dir, name string) error
}

// Letters finds dead letters and puts them right.
type Letters interface {
	// Dead lists the jobs, of one tree unless that is empty, that pass a valid filter and whose port ErrorsPort holds messages. It
	// ends with the first error.
	Dead(ctx context.Context, tree ID, f Filter) iter.Seq2[*Info, error]
	// Page returns up to n messages, and about that many bytes, of a port from offset on; head is the port's head at that moment.
	Page(ctx context.Context, id ID, dir port.Dir, name string, offset, n, bytes int) (items []json.RawMessage, head int64, err error)
	// Settle removes messages from anywhere in a port and writes others, all or nothing. The error is ErrMoved if the port's head is
	// another one by now. refused is which of the letters could not be written where it was to go, or -1.
	Settle(ctx context.Context, from PortRef, s Settlement) (refused int, err error)
}

// Settlement removes dead letters from a port and writes what is to be there in their place.
type Settlement struct {
	Head    int64
	Letters []SettledLetter // in the order in which they lie there
	Entry   string          // JSON for the log, empty for none
	Token   string          // random: a repetition changes nothing
}

// SettledLetter is a dead letter that is removed, and what is written instead: one message for each port.
type SettledLetter struct {
	Index int // in the port
	Ports []PortRef
	Items []json.RawMessage
}

// Control changes a job from outside of its runs.
type Control interface {
	// Apply fires one of the events run, retry, force and terminate at a job.
	Apply(ctx context.Context, id ID, event statemachine.Event) error
	// RunAt asks for a run at a time by the store's clock, or when at is zero after a delay.
	RunAt(ctx context.Context, id ID, at time.Time, delay time.Duration) error
	// SetPriority gives jobs of one tree a priority, also while they are ready.
	SetPriority(ctx context.Context, ids []ID, n int) error
	// Patch changes a graph, all or nothing.
	Patch(ctx context.Context, root ID, p *Patch) error
	// SetState changes the job's state.
	SetState(ctx context.Context, id ID, set map[string]json.RawMessage, unset []string) error
}

// Family changes who belongs to whom.
type Family interface {
	// Children returns the IDs of a job's children by name.
	Children(ctx context.Context, id ID) (map[string]ID, error)
	// Adopt makes an orphan the child of a job, of any tree, under a new name.
	Adopt(ctx context.Context, parent, child ID, name string) error
	// Disown makes a child of a job an orphan, or returns ErrNotFound if it is not one.
	Disown(ctx context.Context, parent, child ID) error
	// Terminate ends a job and all below it.
	Terminate(ctx context.Context, id ID) error
	// Ended tells whether a job and all below it are terminated.
	Ended(ctx context.Context, id ID) (bool, error)
	// Delete removes a job and all below it, if all are terminated.
	Delete(ctx context.Context, id ID) error
}

// RetentionStore knows for how long trees are kept that have settled.
type RetentionStore interface {
	// Retention returns what holds for trees that name no retention of their own.
	Retention(ctx context.Context) (Retention, error)
	// SetRetention sets it for trees that settle from then on. A zero leaves that one as it is.
	SetRetention(ctx context.Context, r Retention) error
}

// Channels carries messages to whoever subscribes.
type Channels interface {
	// Publish sends messages to a channel.
	Publish(ctx context.Context, channel string, items []json.RawMessage) error
	// Listen calls fn for each message published to exactly this channel until ctx ends.
	Listen(ctx context.Context, channel string, fn func(item json.RawMessage)) error
}

// History tells what runs did.
//
// A limit below zero gives an error that wraps ErrValue.
type History interface {
	// Runs returns what the last runs of a tree logged, of one of its jobs if id is
	// no root, oldest first.
	Runs(ctx context.Context, id ID, limit int) ([]RunEntry, error)
	// Log returns up to limit entries of the log of a job's tree behind a position, oldest
	// first. The position before the first is empty.
	Log(ctx context.Context, id ID, after string, limit int) ([]Entry, error)
	// LogBack returns up to limit entries before a position, newest first. The position
	// behind the last is empty.
	LogBack(ctx context.Context, id ID, before string, limit int) ([]Entry, error)
	// LogTrimmed tells what is gone of the log of a job's tree.
	LogTrimmed(ctx context.Context, id ID) (Trimmed, error)
}

// Runs begins, commits and refreshes runs: the heart of a store.
type Runs interface {
	// Begin starts a run of a queued job under a fresh random token. A job that is
	// not to be run now gives an error that wraps ErrStatus, ErrLocked or ErrNotFound.
	Begin(ctx context.Context, id ID, b Begin) (*Snapshot, error)
	// Commit applies transactions, each at once or not at all, and says of each what became of it.
	Commit(ctx context.Context, txs []Tx) ([]Result, error)
	// Pop begins a run of the first ready job of a queue in a shard, one of the given types, or runs of several such jobs, see
	// Begin.Several. There are no snapshots when there is no such job. gen is the generation of the notification that was heard, or
	// below zero.
	Pop(ctx context.Context, queue string, shard int, gen int64, b Begin, types []string) ([]*Snapshot, error)
	// Step commits transactions, as Commit does, and begins a run of a ready job: one of the given types, in the queue of the
	// job committed last, rather one that the last transaction made ready; or runs of several such jobs, see Begin.Several.
	Step(ctx context.Context, txs []Tx, b Begin, types []string) ([]Result, []*Snapshot, error)
	// Refresh prolongs the lease of a run and, unless it is nil, notes how far that is; or it returns ErrFenced.
	Refresh(ctx context.Context, id ID, token string, lease time.Duration, far *Progress) error
}

// RunReader reads for a run what did not fit into its snapshot.
type RunReader interface {
	// Page returns up to n messages, and about that many bytes, of a port from offset
	// on; head is the port's head at that moment.
	Page(ctx context.Context, id ID, dir port.Dir, name string, offset, n, bytes int) (items []json.RawMessage, head int64, err error)
	// State is Inspector's.
	State(ctx context.Context, id ID, keys ...string) (map[string]json.RawMessage, error)
	// Info is Inspector's.
	Info(ctx context.Context, id ID) (*Info, error)
	// Child is Inspector's.
	Child(ctx context.Context, parent ID, name string) (ID, error)
	// ReserveChild sets n numbers of a job's tree aside for a child and all below it, and returns the first; or
	// ErrExists if the job has a child of that name.
	ReserveChild(ctx context.Context, parent ID, name string, n int) (int, error)
	// Resolve is Names'.
	Resolve(ctx context.Context, alias string) (ID, error)
}

// Sweeper puts right what crashes leave behind.
type Sweeper interface {
	// Sweep looks once at everything that is past due: undelivered wakes are delivered
	// again, runs past their lease go back to queued, timers fire. It returns how many
	// jobs it acted on.
	Sweep(ctx context.Context) (int, error)
	// Watch sweeps until ctx ends, about as often as told, and tells what went wrong.
	Watch(ctx context.Context, every time.Duration, failed func(error))
	// SweepOf does so for the jobs that lie in one shard with the given one.
	SweepOf(ctx context.Context, id ID) error
	// Lead holds the namespace's sweeper leadership while fn runs; fn's context ends
	// when the leadership is lost. While another one leads it returns at once for how long that one does so
	// without a sign of life; else 0.
	Lead(ctx context.Context, fn func(context.Context)) (others time.Duration, err error)
}

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
	Info     Info
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
	// MaxWoken; WokenTo is where they end, for Delta.Woken. If there are more, the run is followed by another.
	Woken   []Kin
	WokenTo int64
	Ready   int // how many more jobs were ready where Pop found this one
	// Row are the jobs that come behind one that runs for the first time: all that it writes along edges goes to
	// the first of them, and so on. They sleep, have never run, and have nothing to read.
	Row []*Snapshot
}

// MaxWoken is how many children a run is told of at a time that woke its job.
const MaxWoken = 1000

// MaxReleased is how many children a run releases in one commit at most.
const MaxReleased = 1000

// Kin is a child of a job.
type Kin struct {
	Name string
	ID   ID
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
	Job     ID
	Token   string             // the run's token: the fence
	Outcome statemachine.Event // complete, suspend, fail, backoff, requeue, reschedule, shutdown or Checkpoint
	Delay   time.Duration      // of backoff, and of reschedule by the clock of this process
	Repeat  *Repeats           // of reschedule, and of complete for the last time: how far the repetition is then
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
	Failure     *Failure
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
	Needs       *Needs          // what an engine must have for the next runs; nil: as before
	Progress    *Progress       // how far the job is; nil: as before
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
	Job  ID // empty: the delta's own job
	Dir  port.Dir
	Port string
	Head int64
	N    int
}

// Write appends messages to a port: of the job itself, or of one of its tree.
type Write struct {
	Job    ID // empty: the delta's own job
	Dir    port.Dir
	Port   string
	Keyed  bool   // Key says to which of several consumers the messages go
	Key    uint32 // Hash of the message key
	Items  []json.RawMessage
	NoWake bool   // from outside of runs: wake nobody
	Entry  string // from outside of runs: JSON for the log, empty for none
	// Unlogged keeps where the messages go out of the log of the run that writes them.
	Unlogged bool
	// Once, from outside of runs: does nothing if a write to the port had the same within OnceFor.
	Once string
}

// Default sets the default of a port, or clears it.
type Default struct {
	Job   ID // empty: the delta's own job
	Dir   port.Dir
	Port  string
	Value json.RawMessage // nil clears it
}

// Spawn creates the jobs of a plan as a child of the run's job, numbered from Base on.
type Spawn struct {
	Plan  *Plan
	Base  int
	Alias string // of the child; empty for none. Another job that has it keeps it, and the log of the child says so.
}

// Result tells what became of one transaction.
type Result struct {
	Applied int   // deltas that hold, now or from an earlier sending of the same commit
	Refused error // why the first other delta did not: ErrFenced, ErrMoved, ErrPort, ErrExists, ErrNotFound
	Again   bool  // the last applied delta left its job queued
	Held    bool  // the job of the first delta is the caller's to begin, see Begin.Hold
	Full    bool  // a port that its job writes to is full: the job is not to write on
	Room    int   // how many messages the next commit may write to the fullest port that was written to, or many; -1 if it wrote to none
}

// RunEntry is what one run, or one act from outside, read and wrote.
type RunEntry struct {
	At     time.Time  `json:"at"`
	Job    ID         `json:"job"`
	Step   int64      `json:"step"`
	By     string     `json:"by,omitempty"` // who acted from outside
	Read   []Movement `json:"read,omitempty"`
	Write  []Movement `json:"write,omitempty"`
	Sent   []Movement `json:"sent,omitempty"` // where the messages written went
	Groups []RunEntry `json:"groups,omitempty"`
	Error  string     `json:"error,omitempty"`
	Stack  string     `json:"stack,omitempty"`
	TookMS int64      `json:"took_ms,omitempty"` // how long the run took, or went on since its last commit; 0 for under a millisecond
}

// Movement is messages that passed a port together.
type Movement struct {
	Job  ID                `json:"job"`
	Dir  port.Dir          `json:"dir"`
	Port string            `json:"port"`
	From int64             `json:"from"` // messages that passed the port before these
	N    int               `json:"n"`
	Data []json.RawMessage `json:"data,omitempty"` // left out when large
	// Context of messages written: the keys that their writer added.
	Context port.Context `json:"context,omitempty"`
}

// Entry is one entry of the log of a tree: what a run, or an act from outside, read and wrote,
// or a note, which is something that a run logged.
type Entry struct {
	Position string // orders the entries of a tree
	At       time.Time
	Job      ID
	Run      *RunEntry // nil for a note
	Note     json.RawMessage
	Context  port.Context // the keys under which the note was logged
}

// LogEntry is one line that a run logged.
type LogEntry struct {
	At    time.Time       `json:"at"`
	Job   ID              `json:"job"`
	Entry json.RawMessage `json:"entry"`
	// Context has the keys under which it was logged.
	Context port.Context `json:"context,omitempty"`
}
