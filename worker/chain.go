package worker

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Chaining: a run that only writes to one suspended job is not committed by itself. If the type of
// that job declares Options.Pure it runs at once on what was written, which is speculative
// execution, and so on; then all of them are committed as one transaction, in one round trip. Which
// jobs are suspended, and as what, is known from their last runs in this engine: the predicted
// snapshot of their next run. The commit holds up to the first run whose job has changed since,
// and that job is woken and runs again.

const (
	// rowRuns is how many runs one commit may have.
	rowRuns = 16
	// known is of how many jobs at most an engine keeps a predicted snapshot, knownBytes about how much
	// state, defaults, parameters and ports each of them may have, and unused how long a snapshot is
	// kept at least unless there are more.
	known      = 4096
	knownBytes = 16 << 10
	unused     = 30 * time.Second
	// rowBytes is how much may be written to a job that is to run speculatively.
	rowBytes = 64 << 10
	// misses is how often a job may be found running before it is taken for one that other
	// engines run.
	misses = 3
	// wrongs is after how many wrong predictions in succession a job is not predicted, and pardon at which
	// count it is again.
	wrongs = 3
	pardon = 100
)

// shortRun is how long the last run of a job may have taken that is to run speculatively: the runs
// before it are not committed before it ends. A variable for tests on slow machines.
var shortRun = 5 * time.Millisecond

// errSpeculative ends a speculative run that needs the store: it is repeated after the commit.
var errSpeculative = errors.New("this run was begun on what is not committed yet and has no job in the store; it is repeated")

// ran is a run that is over, or several of one job that follow each other and go into one
// commit, see batch.go.
type ran struct {
	snap  *store.Snapshot // what the last of them saw
	run   *Run            // the last of them; nil: it never came to that
	delta *store.Delta    // what the last of them did
	took  time.Duration   // the longest of them
	sum   *store.Delta    // what all of them did
	read  int             // messages of their snapshots that all of them read
	wrote int             // messages that all of them wrote
	bytes int             // of these
	size  int             // bytes of all that the commit writes for them
	told  bool            // what is behind them is known:
	next  *store.Snapshot // see after
}

// newRan returns a run that is over.
func newRan(snap *store.Snapshot, run *Run, d *store.Delta, took time.Duration) *ran {
	r := &ran{snap: snap, run: run, delta: d, took: took, sum: d, size: len(d.Entry)}
	for _, note := range d.Log {
		r.size += len(note)
	}
	for key, raw := range d.Set {
		r.size += len(key) + len(raw)
	}
	for _, w := range d.Writes {
		r.wrote += len(w.Items)
		for _, raw := range w.Items {
			r.bytes += len(raw)
		}
	}
	r.size += r.bytes
	if run != nil {
		for _, in := range run.ins.all {
			r.read = max(r.read, in.sent-len(in.items))
		}
	}
	return r
}

// after returns what the next run of the job would see if nothing else happened to it meanwhile
// but that it is committed; nil if that cannot be told.
func (r *ran) after() *store.Snapshot {
	if !r.told {
		r.told, r.next = true, r.behind()
	}
	return r.next
}

// handOn gives what after returns to the next run, which may change it.
func (r *ran) handOn() *store.Snapshot {
	next := r.after()
	r.told, r.next = false, nil // the next caller gets a new one
	return next
}

func (r *ran) behind() *store.Snapshot {
	d, s := r.delta, r.snap
	if r.run == nil || r.run.token != s.Token || d.Outcome != statemachine.Suspend && d.Outcome != statemachine.Requeue ||
		!plain(d) || !s.Whole || s.Shutdown || s.Info.Single != 0 {
		return nil
	}
	i := s.Info
	i.Status, i.Reason, i.Tries, i.Crashes, i.Steps = statemachine.Suspended, d.Reason, 0, 0, i.Steps+1
	i.Started = i.Started || d.Started
	if p := d.Progress; p != nil {
		if i.Progress = p; *p == (job.Progress{}) { // it says nothing any more
			i.Progress = nil
		}
	}
	var all struct { // made at once
		next  store.Snapshot
		in    [1]store.Inbox
		ports [2]job.PortInfo
	}
	next := &all.next
	*next = store.Snapshot{
		Whole: true, Loop: s.Loop, Touched: s.Touched, Rate: s.Rate + 1, Defaults: s.Defaults, In: all.in[:0],
	}
	i.Ports = append(all.ports[:0], i.Ports...)
	if known := r.run.state.known; len(known) > 0 {
		next.State = maps.Clone(known) // goroutines that the run has left behind may still read its own
	}
	for n := range i.Ports {
		p := &i.Ports[n]
		if in := r.run.ins.get(p.Name); p.Dir == port.Input && in != nil {
			if in.taken > 0 {
				p.Total = in.head + int64(in.taken)
			}
			if in.left > 0 {
				next.In = append(next.In, store.Inbox{Port: p.Name, Head: in.head + int64(in.taken), Len: in.left, Items: in.items})
			}
		}
		for _, w := range d.Writes {
			if p.Wired && w.Job == "" && w.Dir == p.Dir && w.Port == p.Name {
				p.Total += int64(len(w.Items))
			}
		}
	}
	next.Info = i
	for _, w := range d.Writes {
		if _, ok := i.Port(w.Dir, w.Port); !ok && w.Job == "" {
			return nil // a port that `*` admitted for this run
		}
	}
	return next
}

// sleeper is a suspended job with nothing to read: what its next run would see.
type sleeper struct {
	snap  *store.Snapshot // nil: it was suspended before, and may be running
	last  string          // token of its last run
	wrong int             // wrong predictions in succession
	miss  int             // how often in succession it was not suspended when it was to be woken
}

// recent is what is known of jobs. What is not used for a while is forgotten when others are: the job
// may have ended in another engine.
type recent[V any] struct {
	jobs  map[job.ID]V
	older map[job.ID]V // those not used since
	since time.Time
}

func (s *recent[V]) get(id job.ID) (one V, ok bool) {
	if one, ok = s.jobs[id]; !ok {
		one, ok = s.older[id]
	}
	return one, ok
}

func (s *recent[V]) set(id job.ID, one V, now time.Time) {
	if s.jobs == nil || len(s.jobs) >= known/2 || now.Sub(s.since) > unused {
		s.jobs, s.older, s.since = map[job.ID]V{}, s.jobs, now
	}
	s.jobs[id] = one
	delete(s.older, id)
}

func (s *recent[V]) drop(id job.ID) {
	delete(s.jobs, id)
	delete(s.older, id)
}

// sleepers are suspended jobs, as far as an engine knows.
type sleepers struct {
	mu sync.Mutex
	recent[sleeper]
}

// forget drops a job that has ended here.
func (s *sleepers) forget(id job.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
}

// take returns a job, if it is suspended. busy tells that it may soon be again: what feeds it had
// better wait.
func (s *sleepers) take(id job.ID, now time.Time) (one sleeper, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.get(id)
	switch {
	case one.wrong >= wrongs:
		if one.wrong++; one.wrong > pardon {
			one.wrong = 0
		}
		s.set(id, one, now)
		return sleeper{}, false
	case one.snap != nil:
		s.set(id, sleeper{wrong: one.wrong}, now)
	case ok && one.miss < misses:
		s.set(id, sleeper{wrong: one.wrong, miss: one.miss + 1}, now)
		return one, true
	case ok:
		s.drop(id) // others run it
	}
	return one, false
}

func (s *sleepers) put(one sleeper, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := one.snap.Info.ID
	before, _ := s.get(id)
	one.wrong = before.wrong
	s.set(id, one, now)
}

// judge counts wrong predictions: after some in succession none is made for a while.
func (s *sleepers) judge(row []*ran, held int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, r := range row[:min(held+1, len(row))] {
		id := r.snap.Info.ID
		one, ok := s.get(id)
		switch {
		case r.sum.Speculation == nil || !ok:
		case n < held:
			one.wrong = 0
			s.set(id, one, now)
		default:
			one.wrong++
			s.set(id, one, now)
		}
	}
}

// chain adds to a chain of runs those that its last one leads to, while the turn has room. The first
// run of the chain holds the lease. leads tells that the chain ended at a run that leads on, busy
// that it leads to a job that will soon be suspended again.
func (t *turn) chain(row []*ran) (all []*ran, leads, busy bool) {
	for {
		to, items, closes, ok := row[len(row)-1].leadsTo()
		if !ok || len(row) == rowRuns || row[0].snap.Info.Crashes > 0 || !t.room(len(row)) {
			return row, ok, false
		}
		s, busy := t.suspended.take(to.Job, t.now)
		if s.snap == nil {
			return row, true, busy
		}
		next := t.speculate(row, s, job.RunToken(t.id), to.Port, items, closes)
		if next == nil {
			return row, true, false
		}
		row = append(row, next)
		failpoint.Hit(failpoint.MidChain)
	}
}

// speculate runs a suspended job on what the last run of a chain wrote to it, if it may: nil if not, or if the
// run cannot be committed as a speculative one. The predicted snapshot is the run's from then on.
func (t *turn) speculate(row []*ran, s sleeper, token, to string, items []json.RawMessage, closes int) *ran {
	k := t.registry().kinds[s.snap.Info.Type]
	if !k.speculates() || !t.registry().takes(&s.snap.Info) || s.snap.Info.Queue != row[0].snap.Info.Queue {
		return nil
	}
	speculation := &store.Speculation{
		Version: s.snap.Info.Version, Touched: s.snap.Touched, Last: s.last,
		Port: to, Seen: len(items), Limit: k.options.maxRuns(),
	}
	speculation.Closed = feed(s.snap, token, to, items, closes, row[0].snap.Info.Ran)
	next := t.execute(s.snap, time.Time{}, nil)
	if next == nil {
		return nil
	}
	if !next.fits(to) {
		if next.run != nil && next.run.asked.Load() {
			k.alone.Store(true)
		}
		return nil
	}
	next.delta.Speculation = speculation
	return next
}

// leadsTo returns the one In port that all messages of a run go to, with them, and how many of the
// edges that lead there it closed, if the run did nothing else that concerns others.
func (r *ran) leadsTo() (to job.PortRef, items []json.RawMessage, closes int, ok bool) {
	d := r.delta
	ended := d.Outcome == statemachine.Complete
	if !modest(d) || !ended && len(d.Closes) > 0 || len(d.Writes) == 0 || r.snap.Loop ||
		!ended && d.Outcome != statemachine.Suspend && d.Outcome != statemachine.Requeue {
		return to, nil, 0, false
	}
	leads := func(name string) bool {
		p, _ := r.snap.Info.Port(port.Output, name)
		if len(p.Channels) > 0 || len(p.Edges) != 1 || len(p.Edges[0]) != 1 || to.Job != "" && p.Edges[0][0] != to {
			return false
		}
		to = p.Edges[0][0]
		return true
	}
	for _, w := range d.Writes {
		if w.Job != "" || w.Dir != port.Output || !leads(w.Port) {
			return to, nil, 0, false
		}
		if items == nil {
			items = slices.Clip(w.Items)
		} else {
			items = append(items, w.Items...)
		}
	}
	for _, name := range d.Closes {
		if !leads(name) {
			return to, nil, 0, false
		}
	}
	return to, items, len(d.Closes), to.Dir == port.Input && r.bytes <= rowBytes
}

// fits tells whether a speculative run may be committed as one: it went well, and read what it was
// begun for.
func (r *ran) fits(port string) bool {
	d := r.delta
	return r.run != nil && !r.run.asked.Load() && d.Failure == nil && !d.Handed && d.Needs == nil && d.Single == "" &&
		slices.ContainsFunc(d.Takes, func(t store.Take) bool { return t.Job == "" && t.Port == port })
}

// note keeps what is known of a job after its run was committed, if it is suspended, has nothing left
// to read, and may be chained; what has ended is forgotten.
func (t *turn) note(r *ran) {
	d, s := r.sum, r.snap
	if d.Outcome == statemachine.Complete || d.Outcome == statemachine.Shutdown {
		t.suspended.forget(s.Info.ID)
	}
	if d.Outcome != statemachine.Suspend || r.took > shortRun {
		return
	}
	if next := r.handOn(); next != nil {
		next.Info.Version++
		t.remember(next, d.Token)
	}
}

// meet keeps what came with the snapshot of a job that runs for the first time of those behind it.
func (t *turn) meet(row []*store.Snapshot) {
	for _, s := range row {
		if k := t.registry().kinds[s.Info.Type]; k == nil || !t.registry().takes(&s.Info) || !k.speculates() || !t.short(s.Info.Type) || k.starts() {
			return // those behind it are not reached
		}
		t.remember(s, "")
	}
}

// remember keeps the predicted snapshot of a suspended job, if it has nothing to read and may be chained. last
// is the token of its last run.
func (t *turn) remember(s *store.Snapshot, last string) {
	k, size := t.registry().kinds[s.Info.Type], len(s.Info.Args)+64*len(s.Info.Ports)
	if k == nil || !k.speculates() || !s.Whole || len(s.In) > 0 {
		return
	}
	for key, raw := range s.State {
		size += len(key) + len(raw)
	}
	for key, raw := range s.Defaults {
		size += len(key) + len(raw)
	}
	if size <= knownBytes {
		t.suspended.put(sleeper{snap: s, last: last}, t.clock())
	}
}

// speculates tells whether jobs of the type may run on what is not committed yet.
func (k *kind) speculates() bool {
	return k.options.Pure && !k.limited.Load() && !k.alone.Load()
}

// starts tells whether a job of the type has something to do before its first run.
func (k *kind) starts() bool {
	_, ok := k.worker.(Starter)
	return ok
}

// plain tells whether a run did no more than read, write, and change its state.
func plain(d *store.Delta) bool { return modest(d) && len(d.Closes) == 0 }

// modest tells whether a run did no more than that, and close Out ports.
func modest(d *store.Delta) bool {
	return d.Failure == nil && !d.Handed && d.Needs == nil && d.SetPorts == nil && d.Single == "" && len(d.Spawns)+len(d.Launches)+len(d.Defaults) == 0
}

// feed turns the predicted snapshot of a suspended job into what a run of it sees when messages have come to one of its
// ports, and closes of the edges that lead there have been closed; closed tells whether no more can come.
func feed(snap *store.Snapshot, token, name string, items []json.RawMessage, closes int, now time.Time) (closed bool) {
	snap.Token, snap.Info.Status = token, statemachine.Running
	if now.After(snap.Info.Ran) {
		snap.Info.Ran = now
	}
	for i := range snap.Info.Ports {
		p := &snap.Info.Ports[i]
		if p.Dir != port.Input || p.Name != name {
			continue
		}
		if closes > 0 {
			p.Sources -= closes
			if closed = p.Sources == 0; closed {
				p.Closed = true
				snap.Touched++
			}
		}
		snap.In = append(snap.In[:0], store.Inbox{Port: name, Head: p.Total, Len: len(items), Items: items})
	}
	return closed
}

// timed notes how long a run of a type took.
func (k *kind) timed(d time.Duration) {
	took := k.took.Load()
	if took == 0 {
		took = int64(d)
	}
	k.took.Store(max(1, (7*took+int64(d))/8)) // of two at a time one may be lost
}

// kind returns the type that a job has, or nil.
func (r *registry) kind(name string) *kind {
	name, _, _ = strings.Cut(name, "@") // behind which is its version
	return r.kinds[name]
}

// short tells whether runs of a type are known to be short.
func (r *registry) short(name string) bool {
	k := r.kind(name)
	return k != nil && k.took.Load() > 0 && k.took.Load() < int64(shortRun)
}
