// Package worker runs jobs. A worker is a struct with port handles and a Run method;
// an Engine takes ready jobs from the store and gives each a run: a snapshot of its
// inputs and state goes in, and everything the run reads, writes, changes and spawns
// comes out as one transaction, or not at all.
package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Worker is the code of one type of job. Engines make a shallow copy of the registered
// value for each run, set the exported fields that the job's parameters name and bind its
// port handles, so nothing but the run's state survives from one run to the next. What
// the copies share, such as a pool of connections behind an unexported field, must be
// safe for use by several runs at once. A run may have the goroutine of another one before it:
// what it does to that, as runtime.LockOSThread does, it has to undo.
//
// Run returns nil when it has done what it can for now: the job is then completed, or
// goes to sleep if inputs that are wired to other jobs may still bring messages. It
// returns ErrSuspend to sleep in any case, as while a timer or a child is still to bring
// something. Any other error, and a panic, is a failure:
// nothing that the run did is kept and its inputs stay unread. So is the second of two runs
// that return nil, read nothing and leave messages in a closed port, when no open port, timer
// or child could wake the job either.
type Worker interface {
	Run(ctx context.Context, run *Run) error
}

// Starter is a Worker that has something to do once, before the first Run of each job.
// What Start did is committed before Run begins; it is not called again.
type Starter interface {
	Start(ctx context.Context, run *Run) error
}

// Shutdowner is a Worker that wants a last run when its job is terminated. An error of
// Shutdown is recorded and does not prevent the end.
type Shutdowner interface {
	Shutdown(ctx context.Context, run *Run) error
}

// ArgsSetter is a Worker whose args need not be an object with its parameters: before
// each run SetArgs is given the job's args, any JSON, as they were given. Without args it
// is not called.
type ArgsSetter interface {
	SetArgs(args json.RawMessage) error
}

// Configured is a Worker that does not want the default Options.
type Configured interface {
	WorkerOptions() Options
}

// ErrSuspend ends a run and puts the job to sleep until a message arrives, a child ends
// a run or writes to an Out port that is wired to nobody, or somebody asks for a run. What
// the run did is kept. An error that wraps it suspends too, whatever else it wraps. A worker
// that waits for its inputs returns nil instead: then it sleeps while they are open, and
// completes when they have ended.
var ErrSuspend = errors.New("suspend")

// ErrAgain ends a run and asks for another at once. What the run did is kept. It is for
// sources, which have no input that would wake them: between runs they rest if what they
// feed is full.
var ErrAgain = errors.New("run again")

// ErrFull is what Checkpoint returns when a port that the run writes to has reached its
// limit. What was done is kept. A run that returns it makes its job rest until there is
// room, and then run again; one that goes on writes beyond the limit.
var ErrFull = errors.New("a port that the run writes to is full: end the run with this error, it is repeated when there is room")

// Options are what a type of worker chooses for its jobs. The zero value is the default.
type Options struct {
	// Tries is how many runs in a row may fail before the job does. Zero means 1.
	Tries int
	// Backoff is the delay before the next try: ConstantBackoff, ExponentialBackoff or a function of your own, perhaps
	// Jittered. Nil means ExponentialBackoff(time.Second, time.Hour). RetryAfter says it for one failure, Permanent that there is no next try.
	Backoff Backoff
	// MaxRunsPerMinute is how often a job may run in a minute, each job of the type for itself; one that wants more is
	// throttled until the next, with that reason. Minutes are those of the clock of Redis: in 60 seconds across the end of
	// one there may be twice as many runs. Zero means no limit, but a guard against hot
	// loops: a job that asks for another run at once MaxIdleRuns times in a row within a
	// minute, and neither reads nor writes nor spawns anything meanwhile, is throttled. -1 turns the
	// guard off, too. The guard does not see who else asks: a job that is run by a Handle, be it
	// from its own code, or jobs that wake each other, may go on indefinitely. Give
	// their types a limit: that counts every run.
	MaxRunsPerMinute int
	// NoLog keeps what runs read and write out of the log.
	NoLog bool
	// Pure declares that runs have no side effects outside Weir: they read, write, and change
	// state and children, and no more. Then the engine may run a job speculatively, on messages
	// that the run before it in a chain wrote and that are not committed yet; a run whose
	// messages are not committed in the end is discarded and leaves no trace. Without Pure,
	// code runs only on committed messages.
	Pure bool
	// CommitEachRun gives each run a commit of its own. Otherwise a job that reads a part of its
	// waiting messages may run again before its last run is committed, for some 5 ms and at most
	// 120 runs, which then share a commit: should the process die before, all of them happen
	// again. With CommitEachRun that is one run, at the price of a round trip for each: it is
	// for side effects of which not several in a row may be repeated, and excludes Pure.
	CommitEachRun bool
	// Timeout ends the context of a run that takes longer. Zero means no limit. Code that ignores its context keeps its slot:
	// the engine warns of such a run.
	Timeout time.Duration
	// OwnTimeout leaves it to the code to end runs that take longer than Timeout, or than their job says in Info.Options: for code that
	// waits for its turn first, of which only what comes behind that is to count.
	OwnTimeout bool
	// MaxRunning is how many runs of the type go on at once at most, over all processes; other jobs wait for their turn, by
	// priority and then in order of time. Zero means no limit, which costs nothing; a limit costs each run some round trips.
	// It holds whoever runs the jobs, clients of the API included; if engines differ, what was registered last counts. A run keeps its place until it is committed, or its lease is over: code that goes
	// on then, against the end of its context, is not counted. Nor is Shutdown.
	MaxRunning int
	// MaxRunningBy names an argument of the type: each of its values has MaxRunning places of its own, as for at most two
	// runs at once for each customer. Redis reads it: where args are encrypted all values share the places.
	MaxRunningBy string
	// MaxRuns is how many runs of the type begin at most within any MaxRunsPer, over all processes and all jobs of the type, as for an
	// API that takes 50 calls a second: MaxRuns: 45, MaxRunsPer: time.Second, as code runs a little later than the run begins, now more,
	// now less. Each run counts from when it begins, by Redis' clock, tries
	// included; other jobs wait, by priority and then in order of time. Runs of such a type neither share a commit nor are speculative. Zero
	// means no limit. As with MaxRunning it holds whoever runs the jobs, what was registered last counts, and each run costs some round trips.
	MaxRuns int
	// MaxRunsPer is from one millisecond to 31 days.
	MaxRunsPer time.Duration
	// MaxRunsBy names an argument of the type: each of its values has MaxRuns of its own. Where args are encrypted all share them.
	MaxRunsBy string
	// MaxRunningHere is how many runs of the type go on at once in one engine at most; other jobs of the type stay queued while those of
	// other types go on. So one whose runs take long leaves room for others. Zero means no limit.
	MaxRunningHere int
	// Together is how many ready jobs of the type may be begun in one call of the store, 32 at most, to run at the same time and to be
	// committed in one call, each as a transaction of its own: for code that mostly waits for something that answers many at once. Each
	// counts as one run, for Concurrency and MaxRunningHere. What is done is committed within some 5 ms, whatever the others do. Jobs
	// that have run before, or whose type has limits or rates, are begun alone. Zero means one.
	Together int
}

// Validate names every bad field. The error wraps job.ErrConfig.
func (o Options) Validate() error {
	var bad []string
	if o.Tries < 0 {
		bad = append(bad, fmt.Sprintf("Tries %d is negative", o.Tries))
	}
	if o.MaxRunsPerMinute < -1 {
		bad = append(bad, fmt.Sprintf("MaxRunsPerMinute %d: use -1 for no limit", o.MaxRunsPerMinute))
	}
	if o.Timeout < 0 {
		bad = append(bad, fmt.Sprintf("Timeout %s is negative", o.Timeout))
	}
	if o.MaxRunning < 0 {
		bad = append(bad, fmt.Sprintf("MaxRunning %d is negative", o.MaxRunning))
	}
	if o.Together < 0 || o.Together > store.MostSeveral {
		bad = append(bad, fmt.Sprintf("Together %d: use 0 to %d", o.Together, store.MostSeveral))
	}
	if o.MaxRunningHere < 0 {
		bad = append(bad, fmt.Sprintf("MaxRunningHere %d is negative", o.MaxRunningHere))
	}
	if o.MaxRunningBy != "" && o.MaxRunning == 0 {
		bad = append(bad, fmt.Sprintf("MaxRunningBy %q without MaxRunning: say how many runs go on at once", o.MaxRunningBy))
	}
	bad = append(append(bad, notAnArgument("MaxRunningBy", o.MaxRunningBy)...), o.wrongRate()...)
	if o.Pure && o.CommitEachRun {
		bad = append(bad, "CommitEachRun is for side effects, which a type with Pure does not have: choose one of them")
	}
	return configError("worker options", bad)
}

// What MaxRuns may be.
const (
	mostRuns   = 100_000
	longestPer = 31 * 24 * time.Hour
)

// wrongRate says what is wrong with MaxRuns and what belongs to it.
func (o Options) wrongRate() (bad []string) {
	if o.MaxRuns < 0 || o.MaxRuns > mostRuns {
		bad = append(bad, fmt.Sprintf("MaxRuns %d: use 1 to %d, or 0 for no limit", o.MaxRuns, mostRuns))
	}
	switch per := o.MaxRunsPer; {
	case o.MaxRuns != 0 && per == 0:
		bad = append(bad, fmt.Sprintf("MaxRuns %d without MaxRunsPer: say within which time, such as time.Second", o.MaxRuns))
	case o.MaxRuns == 0 && (per != 0 || o.MaxRunsBy != ""):
		bad = append(bad, "MaxRunsPer or MaxRunsBy without MaxRuns: say how many runs begin within that time")
	case per != 0 && (per < time.Millisecond || per > longestPer || per%time.Millisecond != 0):
		bad = append(bad, fmt.Sprintf("MaxRunsPer %s: use whole milliseconds, %s at most", per, longestPer))
	}
	return append(bad, notAnArgument("MaxRunsBy", o.MaxRunsBy)...)
}

// notAnArgument says so of a name that no argument can have.
func notAnArgument(option, name string) []string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 127 }) {
		return nil
	}
	return []string{fmt.Sprintf("%s %q: use the name of an argument", option, name)}
}

// Limited names each argument by which runs are limited that the type does not take, given those that it takes. The error wraps
// job.ErrConfig.
func (o Options) Limited(args []port.Param) error {
	names := make([]string, len(args))
	for i, a := range args {
		names[i] = a.Name
	}
	var bad []string
	for _, by := range []struct{ option, name string }{{"MaxRunningBy", o.MaxRunningBy}, {"MaxRunsBy", o.MaxRunsBy}} {
		if by.name != "" && !slices.Contains(names, by.name) {
			bad = append(bad, fmt.Sprintf("%s %q is no argument of the type: %s", by.option, by.name, port.Suggest(by.name, names)))
		}
	}
	return configError("worker options", bad)
}

// Limit is what the type declares of how many runs there are, over all processes.
func (o Options) Limit() job.TypeLimit {
	return job.TypeLimit{Max: o.MaxRunning, By: o.MaxRunningBy, Runs: o.MaxRuns, Per: o.MaxRunsPer, RunsBy: o.MaxRunsBy}
}

// or returns the options with what they leave zero taken from others.
func (o Options) or(d Options) Options {
	o.Tries, o.Timeout = cmp.Or(o.Tries, d.Tries), cmp.Or(o.Timeout, d.Timeout)
	o.MaxRunsPerMinute = cmp.Or(o.MaxRunsPerMinute, d.MaxRunsPerMinute)
	if o.MaxRunning == 0 {
		o.MaxRunning, o.MaxRunningBy = d.MaxRunning, d.MaxRunningBy
	}
	if o.MaxRuns == 0 {
		o.MaxRuns, o.MaxRunsPer, o.MaxRunsBy = d.MaxRuns, d.MaxRunsPer, d.MaxRunsBy
	}
	o.MaxRunningHere = cmp.Or(o.MaxRunningHere, d.MaxRunningHere)
	o.Together = cmp.Or(o.Together, d.Together)
	if o.Backoff == nil {
		o.Backoff = d.Backoff
	}
	o.NoLog = o.NoLog || d.NoLog
	o.OwnTimeout = o.OwnTimeout || d.OwnTimeout
	o.CommitEachRun = o.CommitEachRun || d.CommitEachRun && !o.Pure
	return o
}

// of returns the options with what the node of a job says in place of them.
func (o Options) of(n *job.RunOptions) Options {
	if n == nil {
		return o
	}
	o.Tries, o.Timeout = cmp.Or(n.Tries, o.Tries), cmp.Or(n.Timeout, o.Timeout)
	if n.Backoff > 0 {
		o.Backoff = ExponentialBackoff(n.Backoff, cmp.Or(n.MaxBackoff, max(n.Backoff, longestBackoff)))
	}
	return o
}

// MaxIdleRuns is how often in a row, within a minute, a job without MaxRunsPerMinute may ask for another run
// at once, by ErrAgain or a timer, after a run that read no message, wrote none, set no
// default and spawned nothing. A change of state is no progress: a loop may count itself. Only what the run itself asks
// for counts. A run that others ask for, by a message, the end of a child's run or client.Handle.Run, may have a reason outside Weir or find that
// a second message is still missing, as often as these come: such jobs are not stopped, and neither is one that
// asks for itself by a Handle, which is not told apart.
const MaxIdleRuns = 600

// maxRuns is MaxRunsPerMinute as a store understands it.
func (o Options) maxRuns() int {
	switch o.MaxRunsPerMinute {
	case 0:
		return -MaxIdleRuns
	case -1:
		return math.MaxInt32
	}
	return o.MaxRunsPerMinute
}

// Store is all of a store that an Engine needs.
type Store interface {
	store.Runs
	store.RunReader
	store.Sweeper
	store.Types
	store.Engines
	store.Limits
	store.Sequences
	Broker() delivery.Source
	// Now is the time of the store's clock.
	Now(ctx context.Context) (time.Time, error)
	// Warnings are what people should know before they rely on the store, in a line each.
	Warnings(ctx context.Context) []string
	// Encodes tells whether what jobs hold is encoded before it is sent: then reasons of
	// failures are not logged.
	Encodes() bool
}

// Defaults of a Config.
const (
	DefaultLease = 5 * time.Second
	DefaultDrain = 10 * time.Second
)

// Config says what an Engine runs, and how.
type Config struct {
	// Store holds the jobs. Required; the engine does not close it.
	Store Store
	// Workers has one value of each type of worker to run. At least one is required.
	// Each run gets a copy; parameters that a job does not have keep their values.
	Workers []Worker
	// Defaults are options for all types: what a type's own Options leave zero is taken from here. A node of a graph may have
	// others for its jobs, see job.RunOptions. Pure is for a type alone
	// to declare; CommitEachRun does not concern types that do.
	Defaults Options
	// Queues are the queues to serve, with their weights: a queue of weight 6 gets six
	// times the attention of one of weight 1. Empty means job.DefaultQueue only.
	Queues map[string]int
	// QueueLimits are how many runs of jobs in a queue go on at once at most, over all processes. Run sets them for the
	// namespace, as SetQueueLimit of the store does; a queue that it does not name keeps the limit that it has.
	QueueLimits map[string]int
	// Concurrency is how many runs go on at a time. Zero means twice the number of CPUs.
	Concurrency int
	// Lease is for how long a run owns its job without a sign of life; a job whose
	// process died is run again when it ends. At least 100 ms; zero means DefaultLease.
	Lease time.Duration
	// Aging has one of that many runs, on average, be of a job of the lowest priority that is ready in its shard, and as often a slot
	// chooses a shard whose first job has the lowest: so the least urgent jobs do not wait indefinitely, however many others there are.
	// Zero: those of higher priorities go first, always.
	Aging int
	// Drain is how long runs may go on after the engine was told to stop, before their
	// context is cancelled and their jobs handed back; those that have not returned five seconds later are abandoned, see
	// Engine.Run. Zero means DefaultDrain.
	Drain time.Duration
	// Logger gets what no caller can be told. Nil means slog.Default().
	Logger *slog.Logger
	// Hooks are called around runs and commits, the first of them outermost. LogHooks are some; package
	// telemetry/metrics has others. Without any nothing is spent on them.
	Hooks []Hooks
}

// Validate names every bad field. The error wraps job.ErrConfig.
func (c Config) Validate() error {
	var bad []string
	if c.Store == nil {
		bad = append(bad, "Store is missing")
	}
	if len(c.Workers) == 0 {
		bad = append(bad, "Workers is empty")
	}
	for q, weight := range c.Queues {
		if err := job.CheckName("queue", q); err != nil {
			bad = append(bad, err.Error())
		}
		if weight < 1 {
			bad = append(bad, fmt.Sprintf("weight %d of queue %q is not positive", weight, q))
		}
	}
	for q, n := range c.QueueLimits {
		if err := job.CheckName("queue", q); err != nil || n < 0 {
			bad = append(bad, cmp.Or(err, fmt.Errorf("QueueLimits: %d runs at once in queue %q: use at least 1, or 0 for no limit", n, q)).Error())
		}
	}
	if c.Concurrency < 0 {
		bad = append(bad, fmt.Sprintf("Concurrency %d is negative", c.Concurrency))
	}
	if c.Lease != 0 && c.Lease < 100*time.Millisecond {
		bad = append(bad, fmt.Sprintf("Lease %s is shorter than 100ms", c.Lease))
	}
	if c.Aging < 0 {
		bad = append(bad, fmt.Sprintf("Aging %d is negative", c.Aging))
	}
	if c.Drain < 0 {
		bad = append(bad, fmt.Sprintf("Drain %s is negative", c.Drain))
	}
	if slices.Contains(c.Hooks, nil) {
		bad = append(bad, "Hooks has a nil")
	}
	if c.Defaults.Pure {
		bad = append(bad, "Defaults.Pure: that runs have no side effects is for each type to declare, in its WorkerOptions")
	}
	slices.Sort(bad)
	if err := configError("the engine", bad); err != nil {
		return err
	}
	if err := c.Defaults.Validate(); err != nil {
		return fmt.Errorf("the engine's Defaults: %w", err)
	}
	return nil
}

func configError(of string, bad []string) error {
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%w of %s: %s", job.ErrConfig, of, strings.Join(bad, "; "))
}

func (c *Config) setDefaults() {
	if len(c.Queues) == 0 {
		c.Queues = map[string]int{job.DefaultQueue: 1}
	}
	if c.Concurrency == 0 {
		c.Concurrency = 2 * runtime.GOMAXPROCS(0)
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Drain == 0 {
		c.Drain = DefaultDrain
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}
