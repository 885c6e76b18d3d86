package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Limits of one commit.
const (
	MaxMessage = job.MaxMessage // bytes of one message or state value
	MaxCommit  = job.MaxCommit  // bytes of all that one commit writes
	MaxSpawn   = 500            // jobs that one commit creates
	MaxWrites  = job.MaxWrites  // messages that one commit writes, log entries and timers; copies of messages count, too, see job.MaxWrites
)

// Sizes of a run's view of its ports.
const (
	batchMessages = 1000
	batchBytes    = 2 << 20
	wakeSize      = 16 // bytes that a timer counts for
)

// Run is one execution of a job's worker, between begin and commit. It buffers all that
// the worker does. Its methods may be called from several goroutines, but not after the
// worker's Run returned.
type Run struct {
	store  Store
	info   *job.Info
	layout *port.Layout // of the worker
	lease  time.Duration
	ctx    context.Context //nolint:containedctx // the run's own: port handles have no context argument
	hooks  *hookSet        // nil: none
	tally  *tally          // nil: none

	mu          sync.Mutex
	token       string
	step        int64
	leaseKeeper *leaseKeeper   // of the lease
	boxes       []*inbox       // every port that can be read, own and children's
	ins         byName[*inbox] // the job's own
	outs        byName[*outbox]
	state       State
	delta       *store.Delta      // what was done since the last commit
	size        int               // bytes that delta writes
	written     int               // messages, log entries and timers of delta
	reached     int               // about how many ports these come to, each
	children    map[string]*Child // those known so far
	woken       []store.Kin       // children that woke the job
	wokenTo     int64             // where they end
	keys        port.Context      // that messages written now carry; nil: who wrote them
	extra       port.Context      // keys without who wrote them
	head        []byte            // keys as they precede a stored message; empty: nothing was written yet
	trace       tracing           // of a run that is not traced it is zero
	passed      json.RawMessage   // the message read last as it is stored, if it is of another version than 1
	passing     int               // which version that is
	latest      []*inbox          // the ports of the last message read, or of the last row of Zip; see IdempotencyKey
	journal     journal
	remote      bool // its code was that of a client
	over        bool // the worker has returned
	speculation bool // the job's run has not begun in the store, see chain.go and batch.go
	// settle makes a speculative run an ordinary one: it commits what goes before it. nil: that cannot be.
	settle func() error
	asked  atomic.Bool // speculatively: the run needs the store
	took   bool        // messages of the job's In ports were read before the last Checkpoint
	moved  bool        // the run made progress before the last Checkpoint
	// defaulting: what is written becomes the default of the port instead, see Zip.
	defaulting bool
	broken     error // the run cannot be committed any more, whatever the worker returns
}

// errOver: something of the worker goes on although the worker has returned.
var errOver = errors.New("the run is over: a worker must wait for its goroutines before it returns")

// roomy is a run with room for what most runs have: all of it is made at once.
type roomy struct {
	run   Run
	delta store.Delta
	in    [1]inbox
	ins   [1]*inbox
	out   [1]outbox
	outs  [1]*outbox
	last  [1]*inbox
}

func newRun(ctx context.Context, s Store, snap *store.Snapshot, lease time.Duration) *Run {
	room := &roomy{}
	r := &room.run
	r.store, r.info, r.delta, r.lease, r.ctx = s, &snap.Info, &room.delta, lease, ctx
	r.token, r.step = snap.Token, snap.Info.Steps
	r.woken, r.wokenTo = snap.Woken, snap.WokenTo
	ins, outs := room.in[:0], room.out[:0]
	r.ins.all, r.outs.all, r.latest = room.ins[:0], room.outs[:0], room.last[:0]
	for i := range snap.Info.Ports {
		p := &snap.Info.Ports[i]
		if p.Name == port.Any {
			continue
		}
		switch p.Dir {
		case port.Input:
			var in *inbox
			ins, in = next(ins, len(snap.Info.Ports))
			*in = inbox{run: r, dir: port.Input, name: p.Name, fallback: snap.Defaults[p.Name], closed: p.Closed, fed: p.Fed}
			r.ins.add(in)
		case port.Output:
			var out *outbox
			outs, out = next(outs, len(snap.Info.Ports))
			*out = outbox{run: r, name: p.Name, closed: p.Closed, wired: p.Wired, edges: len(p.Edges), before: p.Closed}
			r.outs.add(out)
		}
	}
	r.boxes = slices.Clip(r.ins.all)
	for _, box := range snap.In {
		if in := r.ins.get(box.Port); in != nil {
			in.receive(box, snap.Info.Single > 0)
		}
	}
	r.state = State{run: r, known: snap.State, whole: snap.Whole}
	return r
}

// next returns the next element of a list that is never moved: when it is full one for that many more begins.
func next[T any](list []T, more int) ([]T, *T) {
	if len(list) == cap(list) {
		list = make([]T, 0, more)
	}
	list = list[:len(list)+1]
	return list, &list[len(list)-1]
}

// ID returns the ID of the job.
func (r *Run) ID() job.ID { return r.info.ID }

// Type returns the worker type of the job.
func (r *Run) Type() string { return r.info.Type }

// Try is 1, or more if the runs of the job before this one failed in succession.
func (r *Run) Try() int { return r.info.Tries + 1 }

// Info returns what was known of the job when the run began.
func (r *Run) Info() job.Info {
	i := *r.info
	i.Ports = slices.Clone(i.Ports) // the engine knows the job by these
	return i
}

// Options are those that the node of the job has in its graph, which go before those of its type.
func (r *Run) Options() job.RunOptions {
	if r.info.Options == nil {
		return job.RunOptions{}
	}
	return *r.info.Options
}

// Remote tells whether a client runs the job, see [Leases], and not this process. Hooks are called when it says what its run did: the
// run began at Now, and is over.
func (r *Run) Remote() bool { return r.remote }

// Now is when the run began, by the store's clock. Workers that measure time with it
// follow the clock of weirtest, and agree across machines.
func (r *Run) Now() time.Time { return r.info.Ran }

// WakeAfter asks for a run of the job so long after this one is committed, besides those
// that happen before.
func (r *Run) WakeAfter(d time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.add(wakeSize); err != nil {
		return fmt.Errorf("asking for a run after %s: %w", d, err)
	}
	r.delta.Wakes = append(r.delta.Wakes, max(d, 0))
	return nil
}

// State returns the job's state as the run sees it.
func (r *Run) State() *State { return &r.state }

// Log adds an entry, any JSON value, to the job's log. It is kept with what the run did and, as all that is, if the run fails.
func (r *Run) Log(entry any) error {
	raw, err := port.Encode(entry)
	if err != nil {
		return fmt.Errorf("logging: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if raw, err = port.Seal(raw, r.extra); err != nil {
		return fmt.Errorf("logging: %w", err)
	}
	if err := r.add(len(raw)); err != nil {
		return fmt.Errorf("logging: %w", err)
	}
	r.delta.Log = append(r.delta.Log, string(raw))
	return nil
}

// Logger returns a logger whose entries go to the job's log as Log has them: objects with time, level, msg and the attributes. Entries
// below slog.LevelInfo are left out, and those that do not fit into the commit.
func (r *Run) Logger() *slog.Logger { return slog.New(slog.NewJSONHandler(logWriter{r}, nil)) }

// logWriter writes lines of JSON to the log of a run's job.
type logWriter struct{ run *Run }

func (w logWriter) Write(line []byte) (int, error) {
	if err := w.run.Log(json.RawMessage(bytes.Clone(bytes.TrimSpace(line)))); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Progress tells how far the job is: done of total, which is 0 if it is not known, and a few words. weir tree, weir top and the page
// show it until it is told again; zeros and no text end that. While the run goes on it is told at most once a second; what
// was told last is committed with the run. It says nothing of what is done for good: a run that is repeated tells it anew.
func (r *Run) Progress(done, total int, text string) error {
	p := job.Progress{Done: done, Total: total, Text: text}
	if err := p.Validate(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return errOver
	}
	r.delta.Progress = &p
	if r.leaseKeeper != nil {
		r.leaseKeeper.tell(r.info.ID, &p)
	}
	return nil
}

// ask reads from the store, again and again while it cannot be reached: that is no
// failure of the job. If it takes too long the lease ends, and the run with it.
func (r *Run) ask(read func(context.Context) error) error {
	if err := r.begin(); err != nil {
		return err
	}
	return retry(r.ctx, func() error { return read(r.ctx) })
}

// begin makes sure that the run has a job in the store.
func (r *Run) begin() error {
	if !r.speculation {
		return nil
	}
	r.asked.Store(true)
	if r.settle == nil {
		return errSpeculative
	}
	return r.settle()
}

// add accounts for one more message, log entry or timer of n bytes in the commit. r.mu is held.
func (r *Run) add(n int) error {
	if n <= MaxMessage && job.Values(r.written+1, r.size+n) > MaxWrites {
		return fmt.Errorf("%w: the run would write more than %d messages, log entries and timers in one commit, where each 512 bytes count as one more; call Checkpoint in between",
			job.ErrTooLarge, MaxWrites)
	}
	err := r.grow(n)
	if err == nil {
		r.written++
	}
	return err
}

// grow accounts for n more bytes of one value in the commit. r.mu is held.
func (r *Run) grow(n int) error {
	if n > MaxMessage {
		return fmt.Errorf("%w: a value of %d bytes, at most %d are allowed", job.ErrTooLarge, n, MaxMessage)
	}
	if r.over {
		return errOver
	}
	if r.size+n > MaxCommit {
		return fmt.Errorf("%w: the run would write more than %d bytes in one commit; call Checkpoint in between", job.ErrTooLarge, MaxCommit)
	}
	r.size += n
	return nil
}

// Checkpoint commits what the run did so far and lets it go on. The work done before it
// is never repeated. When it returns an error the run must end: nothing it does
// afterwards is kept, unless the error is ErrFull.
func (r *Run) Checkpoint() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return errOver
	}
	if r.broken != nil {
		return r.broken
	}
	if err := r.begin(); err != nil {
		return err
	}
	d := r.take(store.Checkpoint)
	r.moved = r.moved || progress(d)
	size := r.size
	r.delta, r.size, r.written, r.reached = &store.Delta{}, 0, 0, 0
	d.Next, d.Lease = job.RunToken(d.Token), r.lease
	begun := time.Now()
	r.leaseKeeper.change(d.Next)
	res, err := commit(r.ctx, r.store, *d)
	if r.hooks != nil {
		r.tellCheckpoint(d, res, err, size, time.Since(begun))
	}
	if err == nil && r.tally != nil {
		r.tally.committed(d, r.info, 0)
	}
	if err != nil {
		r.broken = fmt.Errorf("checkpoint: %w", err)
		return r.broken
	}
	for _, in := range r.boxes {
		r.took = r.took || in.taken > 0 && in.job == ""
		in.head += int64(in.taken)
		in.taken = 0
	}
	r.latest = r.latest[:0]
	r.token = d.Next
	r.step++
	r.leaseKeeper.changed(begun)
	if res.Full {
		return ErrFull
	}
	return nil
}

// started makes it known that Start was done, once what it did is committed.
func (r *Run) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delta.Started = true
}

// take returns what was done since the last commit as a delta. Whoever goes on with the run must give it
// a new one. r.mu is held.
func (r *Run) take(outcome statemachine.Event) *store.Delta {
	d := r.delta
	d.Job, d.Token, d.Outcome = r.info.ID, r.token, outcome
	for _, in := range r.boxes {
		if in.taken > 0 {
			d.Takes = append(d.Takes, store.Take{Job: in.job, Dir: in.dir, Port: in.name, Head: in.head, N: in.taken})
		}
	}
	d.Needs = r.state.newer()
	if n := r.info.Needs; n != nil && len(n.Unread) > 0 && len(d.Takes) > 0 { // what others could not decode is read
		if d.Needs == nil {
			d.Needs = new(*n)
		}
		d.Needs.Unread = nil
	}
	d.Set, d.Unset = r.state.changes()
	d.Entry = r.journal.entry(r.step)
	return d
}
