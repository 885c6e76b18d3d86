package worker

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// journal notes what a run reads and writes, for the log.
type journal struct {
	off   bool
	began time.Time // of the run, or of what comes behind its last commit; zero if that is not measured
	quiet int       // depth of Unlogged
	depth int       // depth of Group
	now   *moved    // of the group
	all   moved
	group []job.RunEntry
	size  int
	// What most runs note has its place here.
	moves [2]job.Movement
	items [2]json.RawMessage
	used  int
}

// moved is what passed ports.
type moved struct{ Read, Write []job.Movement }

func (j *journal) silent() bool { return j.off || j.quiet > 0 }

func (j *journal) into() *moved {
	if j.now != nil {
		return j.now
	}
	return &j.all
}

func (j *journal) read(in *inbox, data json.RawMessage) {
	if j.silent() {
		return
	}
	e := j.into()
	e.Read = j.add(e.Read, job.Movement{
		Job: in.job, Dir: in.dir, Port: in.name, From: in.head + int64(in.taken), N: 1,
	}, data, true)
}

func (j *journal) write(w store.Write, data json.RawMessage, c port.Context) {
	if j.silent() {
		return
	}
	e := j.into()
	e.Write = j.add(e.Write, job.Movement{Job: w.Job, Dir: w.Dir, Port: w.Port, N: 1, Context: c}, data, false)
}

// add appends the movement of one message, or lengthens one of the last if it goes on there.
func (j *journal) add(list []job.Movement, m job.Movement, data json.RawMessage, numbered bool) []job.Movement {
	small := len(data) <= store.MaxLoggedMessage && j.size+len(data) <= store.MaxLoggedEntry
	if small {
		j.size += len(data)
	}
	for i := len(list) - 1; i >= max(0, len(list)-nearby); i-- {
		last := &list[i]
		if last.Job != m.Job || last.Dir != m.Dir || last.Port != m.Port {
			continue
		}
		if numbered && last.From+int64(last.N) != m.From || !same(last.Context, m.Context) {
			break
		}
		if !small || len(last.Data) < last.N {
			last.Data = nil // all of them or none
		} else {
			last.Data = append(last.Data, data)
		}
		last.N++
		return list
	}
	if j.used == len(j.moves) || list != nil {
		if small {
			m.Data = []json.RawMessage{data}
		}
		return append(list, m)
	}
	n := j.used
	j.used++
	if small {
		j.items[n] = data
		m.Data = j.items[n : n+1 : n+1]
	}
	return append(j.moves[n:n:n+1], m)
}

func same(a, b port.Context) bool {
	return len(a)+len(b) == 0 || reflect.DeepEqual(a, b)
}

// nearby is how far back add looks, for runs that go from port to port and back.
const nearby = 16

// entry returns what was noted since the last commit, as JSON; empty for nothing.
func (j *journal) entry(step int64) string {
	e := job.RunEntry{Step: step, Read: j.all.Read, Write: j.all.Write, Groups: j.group, TookMS: j.took()}
	j.all, j.group, j.size = moved{}, nil, 0
	if j.off || len(e.Read)+len(e.Write)+len(e.Groups) == 0 {
		return ""
	}
	return e.Encode()
}

// failure returns the entry of a run that failed.
func (j *journal) failure(step int64, f *job.Failure) string {
	return (&job.RunEntry{Step: step, Error: f.Error, Stack: f.Stack, TookMS: j.took()}).Encode()
}

// took is how many milliseconds the run has gone on since its last commit.
func (j *journal) took() int64 {
	if j.began.IsZero() {
		return 0
	}
	since := time.Since(j.began)
	j.began = j.began.Add(since)
	return since.Milliseconds()
}

// Group calls fn and logs what it reads and writes as one group. If fn returns an error,
// all that the run did in it is undone. Of groups within groups the outermost counts.
func (r *Run) Group(fn func() error) error {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return errOver
	}
	mark := r.mark()
	outer := r.journal.depth == 0
	if outer {
		r.journal.now = &moved{}
	}
	r.journal.depth++
	r.mu.Unlock()

	err := fn()

	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal.depth--
	if err != nil && !r.over {
		r.restore(mark)
	}
	if outer {
		if g := r.journal.now; err == nil && len(g.Read)+len(g.Write) > 0 {
			r.journal.group = append(r.journal.group, job.RunEntry{Read: g.Read, Write: g.Write})
		}
		r.journal.now = nil
	}
	return err
}

// Unlogged calls fn and logs nothing of what it reads and writes.
func (r *Run) Unlogged(fn func() error) error {
	r.quiet(1)
	defer r.quiet(-1)
	return fn()
}

func (r *Run) quiet(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal.quiet += by
}

// mark is where a run was when a group began.
type mark struct {
	step    int64
	delta   store.Delta
	size    int
	written int
	reached int
	state   map[string]json.RawMessage
	boxes   []inbox
	closed  map[string]bool
	family  map[string]*Child
	latest  []*inbox
	trees   []store.Launch
	journal moved
}

func (r *Run) mark() mark {
	m := mark{step: r.step, delta: *r.delta, size: r.size, written: r.written, reached: r.reached, state: maps.Clone(r.state.changed), closed: map[string]bool{}, family: maps.Clone(r.children)}
	m.delta.Writes, m.latest = slices.Clone(r.delta.Writes), slices.Clone(r.latest)
	for _, in := range r.boxes {
		m.boxes = append(m.boxes, *in)
	}
	for _, out := range r.outs.all {
		m.closed[out.name] = out.closed
	}
	for _, l := range r.delta.Launches {
		m.trees = append(m.trees, *l)
		m.trees[len(m.trees)-1].Writes = slices.Clone(l.Writes)
	}
	if r.journal.now != nil {
		m.journal = *r.journal.now
		m.journal.Read, m.journal.Write = slices.Clone(m.journal.Read), slices.Clone(m.journal.Write)
	}
	return m
}

// restore undoes what was done since the mark. What a checkpoint has committed since
// cannot be undone: then nothing is.
func (r *Run) restore(m mark) {
	if m.step != r.step {
		return
	}
	*r.delta, r.size, r.written, r.reached, r.state.changed, r.latest = m.delta, m.size, m.written, m.reached, m.state, m.latest
	for i, l := range m.trees {
		*r.delta.Launches[i] = l
	}
	for i, in := range m.boxes {
		*r.boxes[i] = in
	}
	for _, in := range r.boxes[len(m.boxes):] { // first opened in the group: read nothing yet
		in.rewind()
	}
	for name, c := range r.children {
		if c.fresh != nil && m.family[name] == nil { // spawned in the group
			delete(r.children, name)
		}
	}
	for name, closed := range m.closed {
		r.outs.get(name).closed = closed
	}
	if r.journal.now != nil {
		*r.journal.now = m.journal
	}
}
