package store

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Store is all of a store that a Client needs.
type Store interface {
	Creator
	Names
	Lister
	Types
	Inspector
	Ports
	Letters
	PortSetter
	Control
	Attempts
	Locks
	Family
	Channels
	History
	RetentionStore
	Bulk
	Sequences
}

// Data of messages is logged up to these sizes; of larger ones only how many there were.
const (
	MaxLoggedMessage = 2 << 10  // bytes of one message
	MaxLoggedEntry   = 16 << 10 // bytes of all in one entry
)

// The contracts below are what a store of jobs does. Every method is safe for
// concurrent use, honours its context, and is idempotent where a lost reply makes
// the caller (or the driver below it) ask again.

// Creator makes trees of jobs.
type Creator interface {
	// Create stores all jobs of a plan, its root under the given ID, or none. created is
	// false when that job exists already; then nothing changed. A plan with a Parent
	// grows the parent's tree: its root's ID is one that Reserve set aside there; job.ErrMoved says that
	// it is another job's by now, as a Redis that lost its last writes gives numbers out again. Of a plan with a unique key the error
	// is a *job.DuplicateError if another tree has the key.
	Create(ctx context.Context, id job.ID, plan *job.Plan, by string) (created bool, err error)
	// MergeArgs merges args into those of a job, see job.UniqueBy, or leaves them as they are: then merged is false.
	MergeArgs(ctx context.Context, id job.ID, m Merging) (merged bool, err error)
	// Reserve sets n numbers of a tree aside and returns the first.
	Reserve(ctx context.Context, tree job.ID, n int) (int, error)
}

// Names finds jobs by what people call them.
type Names interface {
	// Claim binds an alias to id and returns id, or returns the ID that it is already bound to.
	Claim(ctx context.Context, alias string, id job.ID) (job.ID, error)
	// Unclaim removes an alias of a job, or returns job.ErrNotFound.
	Unclaim(ctx context.Context, alias string, id job.ID) error
	// Resolve returns the ID bound to an alias, or job.ErrNotFound.
	Resolve(ctx context.Context, alias string) (job.ID, error)
	// Once remembers an ID under a key for job.OnceFor, and returns it, or the one that it remembers already.
	Once(ctx context.Context, key string, id job.ID) (job.ID, error)
	// Aliases returns the aliases of a job, sorted.
	Aliases(ctx context.Context, id job.ID) ([]string, error)
	// Prefixed returns up to limit IDs of roots that begin with prefix, sorted.
	Prefixed(ctx context.Context, prefix string, limit int) ([]job.ID, error)
}

// Lister finds jobs by what they are.
type Lister interface {
	// Jobs lists the jobs that pass a valid filter, in its order. It ends with the first error.
	Jobs(ctx context.Context, f job.Filter) iter.Seq2[*job.Info, error]
	// JobsPage returns the first jobs that pass a valid filter, up to limit of them, and behind which job the list goes on;
	// empty if it does not. In an order of creation it looks at a bounded number of jobs.
	JobsPage(ctx context.Context, f job.Filter, limit int) (jobs []*job.Info, next job.ID, err error)
	// Count returns how many jobs pass a valid filter.
	Count(ctx context.Context, f job.Filter) (int, error)
	// Details returns what Info does not say of jobs, in the order of the IDs.
	Details(ctx context.Context, ids []job.ID) ([]job.Details, error)
}

// Types is the catalogue of worker types that engines have registered, so that anybody
// can create jobs of types that he does not link.
type Types interface {
	// Register adds types to the catalogue, or replaces them.
	Register(ctx context.Context, types []job.TypeInfo) error
	// Types returns the catalogue, sorted by queue and type.
	Types(ctx context.Context) ([]job.TypeInfo, error)
	// Type returns one type of a queue, or job.ErrUnknownType.
	Type(ctx context.Context, queue, name string) (*job.TypeInfo, error)
}

// Inspector reads jobs without touching them.
type Inspector interface {
	// Info returns one job, or job.ErrNotFound.
	Info(ctx context.Context, id job.ID) (*job.Info, error)
	// Tree returns the job's whole tree ordered by number, the root first, or job.ErrNotFound.
	Tree(ctx context.Context, id job.ID) ([]*job.Info, error)
	// State returns the job's state: the given keys, or all of it when none is given.
	State(ctx context.Context, id job.ID, keys ...string) (map[string]json.RawMessage, error)
	// Failures returns the recorded errors of a job, newest first, at most 20.
	Failures(ctx context.Context, id job.ID) ([]job.Failure, error)
	// Logs returns the last entries that runs of the job logged, up to limit of them, oldest first.
	Logs(ctx context.Context, id job.ID, limit int) ([]job.LogEntry, error)
	// Child returns the ID of the child of that name, or job.ErrNotFound. It takes as long with a million children as with one.
	Child(ctx context.Context, parent job.ID, name string) (job.ID, error)
}

// PortSetter changes the ports of a job from outside of its runs.
type PortSetter interface {
	// SetPorts replaces the ports of a job that are not wired. Ports that stay keep their
	// messages, dropped ones lose them.
	SetPorts(ctx context.Context, id job.ID, ports []port.Spec) error
	// SetDefault sets the default of a port, or clears it with a nil value.
	SetDefault(ctx context.Context, id job.ID, d Default) error
	// Connect moves all messages of a port, and copies its default, to other ports of
	// its tree, and returns the messages.
	Connect(ctx context.Context, id job.ID, dir port.Dir, name string, to []job.PortRef) ([]json.RawMessage, error)
}

// Ports moves messages between the outside and the ports of a job.
type Ports interface {
	// Write appends messages to a port (or sends them along its edges) and wakes who
	// waits for them.
	Write(ctx context.Context, id job.ID, w Write) error
	// Peek returns up to n of the oldest messages of a port without removing them, and the port's head.
	Peek(ctx context.Context, id job.ID, dir port.Dir, name string, n int) (items []json.RawMessage, head int64, err error)
	// Take removes n messages from a port whose head is still head, else job.ErrMoved.
	Take(ctx context.Context, id job.ID, t Take, token string) error
	// ClosePort ends a port: no message will come any more.
	ClosePort(ctx context.Context, id job.ID, dir port.Dir, name string) error
}

// Letters finds dead letters and puts them right.
type Letters interface {
	// Dead lists the jobs, of one tree unless that is empty, that pass a valid filter and whose port job.ErrorsPort holds messages. It
	// ends with the first error.
	Dead(ctx context.Context, tree job.ID, f job.Filter) iter.Seq2[*job.Info, error]
	// Page returns up to n messages, and about that many bytes, of a port from offset on; head is the port's head at that moment.
	Page(ctx context.Context, id job.ID, dir port.Dir, name string, offset, n, bytes int) (items []json.RawMessage, head int64, err error)
	// Settle removes messages from anywhere in a port and writes others, all or nothing. The error is job.ErrMoved if the port's head is
	// another one by now. refused is which of the letters could not be written where it was to go, or -1.
	Settle(ctx context.Context, from job.PortRef, s Settlement) (refused int, err error)
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
	Ports []job.PortRef
	Items []json.RawMessage
}

// Control changes a job from outside of its runs.
type Control interface {
	// Apply fires one of the events run, retry, force and terminate at a job.
	Apply(ctx context.Context, id job.ID, event statemachine.Event) error
	// RunAt asks for a run at a time by the store's clock, or when at is zero after a delay.
	RunAt(ctx context.Context, id job.ID, at time.Time, delay time.Duration) error
	// SetPriority gives jobs of one tree a priority, also while they are ready.
	SetPriority(ctx context.Context, ids []job.ID, n int) error
	// Patch changes a graph, all or nothing.
	Patch(ctx context.Context, root job.ID, p *Patch) error
	// SetState changes the job's state.
	SetState(ctx context.Context, id job.ID, set map[string]json.RawMessage, unset []string) error
}

// Family changes who belongs to whom.
type Family interface {
	// Children returns the IDs of a job's children by name.
	Children(ctx context.Context, id job.ID) (map[string]job.ID, error)
	// Adopt makes an orphan the child of a job, of any tree, under a new name.
	Adopt(ctx context.Context, parent, child job.ID, name string) error
	// Disown makes a child of a job an orphan, or returns job.ErrNotFound if it is not one.
	Disown(ctx context.Context, parent, child job.ID) error
	// Terminate ends a job and all below it.
	Terminate(ctx context.Context, id job.ID) error
	// Ended tells whether a job and all below it are terminated.
	Ended(ctx context.Context, id job.ID) (bool, error)
	// Delete removes a job and all below it, if all are terminated.
	Delete(ctx context.Context, id job.ID) error
}

// RetentionStore knows for how long trees are kept that have settled.
type RetentionStore interface {
	// Retention returns what holds for trees that name no retention of their own.
	Retention(ctx context.Context) (job.Retention, error)
	// SetRetention sets it for trees that settle from then on. A zero leaves that one as it is.
	SetRetention(ctx context.Context, r job.Retention) error
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
// A limit below zero gives an error that wraps job.ErrValue.
type History interface {
	// Runs returns what the last runs of a tree logged, of one of its jobs if id is
	// no root, oldest first.
	Runs(ctx context.Context, id job.ID, limit int) ([]job.RunEntry, error)
	// Log returns up to limit entries of the log of a job's tree behind a position, oldest
	// first. The position before the first is empty.
	Log(ctx context.Context, id job.ID, after string, limit int) ([]job.Entry, error)
	// LogBack returns up to limit entries before a position, newest first. The position
	// behind the last is empty.
	LogBack(ctx context.Context, id job.ID, before string, limit int) ([]job.Entry, error)
	// LogTrimmed tells what is gone of the log of a job's tree.
	LogTrimmed(ctx context.Context, id job.ID) (job.Trimmed, error)
}

// Runs begins, commits and refreshes runs: the heart of a store.
type Runs interface {
	// Begin starts a run of a queued job under a fresh random token. A job that is
	// not to be run now gives an error that wraps job.ErrStatus, job.ErrLocked or job.ErrNotFound.
	Begin(ctx context.Context, id job.ID, b Begin) (*Snapshot, error)
	// Commit applies transactions, each at once or not at all, and says of each what became of it.
	Commit(ctx context.Context, txs []Tx) ([]Result, error)
	// Pop begins a run of the first ready job of a queue in a shard, one of the given types, or runs of several such jobs, see
	// Begin.Several. There are no snapshots when there is no such job. gen is the generation of the notification that was heard, or
	// below zero.
	Pop(ctx context.Context, queue string, shard int, gen int64, b Begin, types []string) ([]*Snapshot, error)
	// Step commits transactions, as Commit does, and begins a run of a ready job: one of the given types, in the queue of the
	// job committed last, rather one that the last transaction made ready; or runs of several such jobs, see Begin.Several.
	Step(ctx context.Context, txs []Tx, b Begin, types []string) ([]Result, []*Snapshot, error)
	// Refresh prolongs the lease of a run and, unless it is nil, notes how far that is; or it returns job.ErrFenced.
	Refresh(ctx context.Context, id job.ID, token string, lease time.Duration, far *job.Progress) error
}

// RunReader reads for a run what did not fit into its snapshot.
type RunReader interface {
	// Page returns up to n messages, and about that many bytes, of a port from offset
	// on; head is the port's head at that moment.
	Page(ctx context.Context, id job.ID, dir port.Dir, name string, offset, n, bytes int) (items []json.RawMessage, head int64, err error)
	// State is Inspector's.
	State(ctx context.Context, id job.ID, keys ...string) (map[string]json.RawMessage, error)
	// Info is Inspector's.
	Info(ctx context.Context, id job.ID) (*job.Info, error)
	// Child is Inspector's.
	Child(ctx context.Context, parent job.ID, name string) (job.ID, error)
	// ReserveChild sets n numbers of a job's tree aside for a child and all below it, and returns the first; or
	// job.ErrExists if the job has a child of that name.
	ReserveChild(ctx context.Context, parent job.ID, name string, n int) (int, error)
	// Resolve is Names'.
	Resolve(ctx context.Context, alias string) (job.ID, error)
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
	SweepOf(ctx context.Context, id job.ID) error
	// Lead holds the namespace's sweeper leadership while fn runs; fn's context ends
	// when the leadership is lost. While another one leads it returns at once for how long that one does so
	// without a sign of life; else 0.
	Lead(ctx context.Context, fn func(context.Context)) (others time.Duration, err error)
}
