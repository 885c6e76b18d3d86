package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// Limits of a LeaseRequest.
const (
	MaxLeased      = 100 // jobs
	maxLeaseQueues = 20
	maxLeaseTypes  = 100
	// DefaultClientLease is the lease of clients that ask for none.
	DefaultClientLease = 30 * time.Second
	minClientLease     = 100 * time.Millisecond
	maxClientLease     = time.Hour
)

// LeaseConfig says where Leases takes jobs from.
type LeaseConfig struct {
	// Store holds the jobs. Required; Leases does not close it.
	Store Store
	// Logger gets what no caller can be told. Nil means slog.Default().
	Logger *slog.Logger
	// Hooks are called around what clients say that their runs did, in this order, when they end them: see Run.Remote. A run that is
	// not ended, as its client is gone, is told of by nobody.
	Hooks []Hooks
}

// Leases gives runs of ready jobs to clients that are no engines: to workers in other languages, that reach Weir through a
// server. They take from the same ready sets as engines do, so no job is given to two. A client gets what its run sees, and a
// token. It, or the server for it, refreshes the lease with Refresh of the store while the run goes on, and ends it with Commit,
// both under that token; nothing of a run is held here, so any server may do that. A job whose lease ends first is ready again,
// and the late commit is refused.
//
// A client that waits is woken when a job becomes ready, whoever made it so. While clients ask for a type, and for a minute more, the
// process tells the namespace so, as an engine does of its types.
type Leases struct {
	cfg     LeaseConfig
	hooks   *hookSet // nil: none
	clients waitingClients
	asked   asked
	tallies sync.Map                  // *tally of what was committed, by queue
	limits  atomic.Pointer[runLimits] // nil: not known yet
	over    chan struct{}
}

// LeaseRequest is what a client asks for.
type LeaseRequest struct {
	// Queues to take from, in this order. Empty means job.DefaultQueue only.
	Queues []string
	// Types are patterns of the types that the client runs: * stands for any characters, ? for one, [a-z] for one of these. At least one is required. What version 2 of a
	// type has written, see [job.Versioned], is for clients that ask for it as Mail@2.
	Types []string
	// Only leaves out those of these types for which it is false; their names have what job.Needs adds to them. Nil leaves out none.
	Only func(typ string) bool
	// Foreign leaves out the types that engines have registered for a queue: their jobs are not for other programs. To name one
	// of them, and no pattern, is an error.
	Foreign bool
	// Priority leaves out the jobs of another one. Nil leaves out none.
	Priority *int
	// Max is how many jobs the client takes at most, up to MaxLeased. Zero means 1.
	Max int
	// Messages is how many of each In port a run is shown at most. Zero means 1000.
	Messages int
	// Wait is for how long the client waits when none is ready. Zero means not at all.
	Wait time.Duration
	// Lease is for how long a job is the client's without a refresh: 100 ms to an hour. Zero means DefaultClientLease.
	Lease time.Duration
}

// Leased is a run that began for a client.
type Leased struct {
	*store.Snapshot
	Expires time.Time // when the lease ends unless it is refreshed, by the store's clock
}

// NewLeases returns what gives jobs to clients, while Run is running.
func NewLeases(cfg LeaseConfig) (*Leases, error) {
	if cfg.Store == nil {
		return nil, configError("the leases", []string{"Store is missing"})
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Leases{cfg: cfg, hooks: newHooks(cfg.Hooks, cfg.Logger), clients: newWaitingClients(), over: make(chan struct{})}, nil
}

// Run wakes clients that wait, tells which types they run, and takes part in sweeping, until ctx ends. It runs once.
func (l *Leases) Run(ctx context.Context) error {
	defer close(l.over)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{}, 3)
	for _, part := range []func(){
		func() { l.cfg.Store.Broker().Listen(ctx, l.clients.hear) },
		func() { l.present(ctx) },
		func() { sweep(ctx, l.cfg.Store, l.cfg.Logger) },
	} {
		go func() {
			part()
			done <- struct{}{}
		}()
	}
	l.serve(ctx)
	for range cap(done) {
		<-done
	}
	return nil
}

// Take begins runs of ready jobs for a client, and returns them: as many as it asked for, or fewer. When none is ready it waits, and
// returns none when that was in vain. If ctx ends first what began for the client is handed back. Bad requests give errors that
// wrap job.ErrName or job.ErrConfig.
func (l *Leases) Take(ctx context.Context, req LeaseRequest) ([]Leased, error) {
	if err := req.complete(); err != nil {
		return nil, err
	}
	if err := l.foreign(ctx, req); err != nil {
		return nil, err
	}
	l.asked.note(req)
	c := l.clients.enter(req) // first: what becomes ready after the look below is told
	defer l.clients.leave(c)
	wait := time.NewTimer(req.Wait)
	defer wait.Stop()
	for {
		notifications, err := l.ready(ctx, req.Queues)
		if err != nil {
			return nil, err
		}
		took, err := l.begin(ctx, req, notifications)
		if len(took) > 0 || err != nil {
			return took, err
		}
		select {
		case <-c.told:
		case <-wait.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-l.over:
			return nil, errStopping
		}
	}
}

// complete puts defaults in, or names every bad field.
func (r *LeaseRequest) complete() error {
	var bad []string
	for _, q := range r.Queues {
		if err := job.CheckName("queue", q); err != nil {
			return err
		}
	}
	for _, t := range r.Types {
		if err := store.CheckPattern(t); err != nil {
			return err
		}
	}
	if len(r.Queues) == 0 {
		r.Queues = []string{job.DefaultQueue}
	}
	if r.Max == 0 {
		r.Max = 1
	}
	if r.Lease == 0 {
		r.Lease = DefaultClientLease
	}
	if len(r.Types) == 0 {
		bad = append(bad, "Types is empty: name the types that the client runs, or * for all")
	}
	if len(r.Types) > maxLeaseTypes || len(r.Queues) > maxLeaseQueues {
		bad = append(bad, fmt.Sprintf("%d types and %d queues: at most %d and %d are allowed", len(r.Types), len(r.Queues), maxLeaseTypes, maxLeaseQueues))
	}
	if r.Max < 1 || r.Max > MaxLeased {
		bad = append(bad, fmt.Sprintf("Max %d: use 1 to %d", r.Max, MaxLeased))
	}
	if r.Wait < 0 {
		bad = append(bad, fmt.Sprintf("Wait %s is negative", r.Wait))
	}
	if r.Lease < minClientLease || r.Lease > maxClientLease {
		bad = append(bad, fmt.Sprintf("Lease %s: use %s to %s", r.Lease, minClientLease, maxClientLease))
	}
	if r.Messages < 0 || r.Messages > batchMessages {
		bad = append(bad, fmt.Sprintf("Messages %d: use 1 to %d, or 0 for that", r.Messages, batchMessages))
	}
	return configError("the request for jobs", bad)
}

// matching returns those of some types that the client runs. Of which version they are they say behind an @.
func (r *LeaseRequest) matching(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(typ string) bool {
		needs := job.ParseNeeds(typ, "")
		needs.Refused, needs.Unread = nil, nil // by engines
		name := needs.String()
		return !slices.ContainsFunc(r.Types, func(pattern string) bool { return store.MatchType(pattern, name) }) || r.Only != nil && !r.Only(name)
	})
}

// own returns those of some notifications that tell of jobs that the client runs, by its queues and then by priority.
func (r *LeaseRequest) own(notifications []delivery.Notification, limits *runLimits) (own []delivery.Notification) {
	for _, notification := range notifications {
		types := r.matching(notification.Types)
		if r.Foreign {
			types = limits.foreign(notification.Queue, types)
		}
		if some, ok := notification.Only(func(typ string) bool { return slices.Contains(types, typ) }); ok {
			own = append(own, some)
		}
	}
	slices.SortStableFunc(own, func(a, b delivery.Notification) int {
		return cmp.Or(slices.Index(r.Queues, a.Queue)-slices.Index(r.Queues, b.Queue), b.Priority()-a.Priority())
	})
	return own
}

// ready returns notifications for what is ready in those of some queues that are not paused, in their order; those of a queue
// begin with any.
func (l *Leases) ready(ctx context.Context, queues []string) ([]delivery.Notification, error) {
	broker := l.cfg.Store.Broker()
	open, err := broker.Open(ctx, queues)
	if err != nil {
		return nil, err
	}
	var all []delivery.Notification
	for _, queue := range open {
		notifications, err := broker.Ready(ctx, queue)
		if err != nil {
			return nil, err
		}
		mrand.Shuffle(len(notifications), func(i, k int) { notifications[i], notifications[k] = notifications[k], notifications[i] })
		all = append(all, notifications...)
	}
	return all, nil
}

// begin begins runs where notifications say that jobs are ready.
func (l *Leases) begin(ctx context.Context, req LeaseRequest, notifications []delivery.Notification) ([]Leased, error) {
	if len(notifications) == 0 {
		return nil, nil
	}
	var took []Leased
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // who is gone hands back what he got
	defer cancel()
	limits, err := l.limitsNow(asked)
	if err != nil {
		return nil, err
	}
	for _, notification := range req.own(notifications, limits) {
		for len(took) < req.Max && ctx.Err() == nil {
			snap, err := l.pop(asked, notification, req, notification.Types, limits.of(notification.Queue))
			if err != nil && len(took) == 0 {
				return nil, err
			}
			if err != nil || snap == nil {
				break
			}
			if !l.unfit(asked, req, snap) {
				oneShown(snap)
				took = append(took, Leased{snap, snap.Info.Ran.Add(req.Lease)})
			}
		}
	}
	if ctx.Err() != nil {
		for _, run := range took {
			l.end(asked, handBack(run.Snapshot, 0, ""))
		}
		return nil, context.Cause(ctx)
	}
	return took, nil
}

// pop begins a run of a ready job that can be begun: nil if there is none.
func (l *Leases) pop(ctx context.Context, notification delivery.Notification, req LeaseRequest, types []string, running []store.RunLimit) (*store.Snapshot, error) {
	for {
		begun, err := l.cfg.Store.Pop(ctx, notification.Queue, notification.Shard, delivery.Direct, store.Begin{
			Token: rand.Text(), Lease: req.Lease, Batch: cmp.Or(req.Messages, batchMessages), Bytes: batchBytes, Limits: map[string]int{"": Options{}.maxRuns()},
			Running: running, Priority: req.Priority,
		}, types)
		if len(begun) > 0 {
			return begun[0], nil
		}
		if !errors.Is(err, job.ErrHotLoop) && !errors.Is(err, job.ErrCodec) {
			return nil, err
		}
		l.cfg.Logger.Warn("a job cannot be given to a client; it waits, and says why", "error", err)
	}
}

// queueType is a type of jobs of a queue.
type queueType struct{ queue, typ string }

// runLimits are limits of runs at once, and who runs which types, as they were at a time.
type runLimits struct {
	at      time.Time
	queues  map[string]int
	types   map[string][]store.RunLimit // by queue
	engines map[queueType]bool          // types that engines have registered
}

// foreign returns those of some types that no engine has registered for a queue.
func (r *runLimits) foreign(queue string, types []string) []string {
	return slices.DeleteFunc(types, func(typ string) bool {
		name, _, _ := strings.Cut(typ, "@") // which version of it
		return r.engines[queueType{queue, name}]
	})
}

// foreign refuses a request that names a type which only engines run.
func (l *Leases) foreign(ctx context.Context, req LeaseRequest) error {
	if !req.Foreign {
		return nil
	}
	for again := false; ; again = true {
		limits, err := l.limitsNow(ctx)
		if err != nil {
			return err
		}
		var bad []string
		for _, typ := range req.Types {
			if !slices.ContainsFunc(req.Queues, func(q string) bool { return len(limits.foreign(q, []string{typ})) > 0 }) {
				bad = append(bad, fmt.Sprintf("type %s of queue %s is for programs in Go: give the worker's type another name, or another queue", typ, strings.Join(req.Queues, ", ")))
			}
		}
		if len(bad) == 0 || again {
			return configError("the request for jobs", bad)
		}
		l.limits.Store(nil) // the worker may have registered it just now
	}
}

// of returns those that concern the jobs of a queue.
func (r *runLimits) of(queue string) []store.RunLimit {
	all := slices.Clip(r.types[queue])
	if n := r.queues[queue]; n > 0 {
		all = append(all, store.RunLimit{Queue: queue, Max: n})
	}
	return all
}

// limitsFor is for how long limits that were read are believed.
const limitsFor = time.Second

// limitsNow returns the limits of queues that are set, and of types as engines have registered them.
func (l *Leases) limitsNow(ctx context.Context) (*runLimits, error) {
	known := l.limits.Load()
	if known != nil && time.Since(known.at) < limitsFor {
		return known, nil
	}
	r := &runLimits{at: time.Now(), types: map[string][]store.RunLimit{}, engines: map[queueType]bool{}}
	var err error
	if r.queues, err = l.cfg.Store.QueueLimits(ctx); err != nil {
		return nil, err
	}
	types, err := l.cfg.Store.Types(ctx)
	if err != nil {
		return nil, err
	}
	last := store.LastLimits(types)
	for i := range types {
		t := &types[i]
		if t.Engine {
			r.engines[queueType{t.Queue, t.Type}] = true
		}
		r.types[t.Queue] = append(r.types[t.Queue], store.RunLimits(t.Type, last[t.Type])...)
	}
	l.limits.Store(r)
	return r, nil
}

// unfit ends a run that no client gets, and tells whether it is one.
func (l *Leases) unfit(ctx context.Context, req LeaseRequest, snap *store.Snapshot) bool {
	needs := snap.Info.NeedsOf()
	if len(req.matching([]string{needs.String()})) == 0 { // it is to end, and no engine has its type
		l.end(ctx, unknownType(snap))
		return true
	}
	if err := tooDeadly(snap.Info.Crashes); err != nil && !snap.Shutdown {
		failure := &job.Failure{At: time.Now().UTC(), Step: snap.Info.Steps, Try: snap.Info.Tries + 1, Error: err.Error()}
		l.end(ctx, &store.Delta{Job: snap.Info.ID, Token: snap.Token, Outcome: statemachine.Fail, Reason: firstLine(failure.Error), Failure: failure})
		return true
	}
	return false
}

// end commits a run that no client has. If that fails its job is ready again when the lease is over.
func (l *Leases) end(ctx context.Context, d *store.Delta) {
	if _, err := commit(ctx, l.cfg.Store, *d); err != nil {
		l.cfg.Logger.Warn("a job that no client got goes on when its lease ends", "job", d.Job, "error", err)
	}
}
