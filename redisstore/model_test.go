package redisstore_test

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// model is one tree of jobs as the design describes it: plain maps and slices, counted
// anew at every change. It shares the state machine with the scripts and nothing else.
type model struct {
	jobs map[job.ID]*mJob

	retain  time.Duration // of the tree
	settles bool          // the root has settled and is to be removed, if nothing is in the way
	held    bool          // something was: it is looked at again after a minute
	kept    bool          // something was unread: it is looked at again when that is read
}

// Whether a job is in its ready set.
const (
	absent = iota
	maybe  // it is delayed for a moment that may be over
	listed
)

type mJob struct {
	id, parent  job.ID
	node        job.Node
	status      statemachine.Status
	reason      string
	token, last string
	dying       bool  // the lease ends at once
	crashes     int   // runs that outlived their lease since
	diedAt      int64 // this version
	soon        bool  // scheduled for now
	ready       int   // absent, maybe or listed
	ending      bool  // with all below it
	again       bool
	must        bool // as something else than its inputs and children woke it
	kin         bool // a child woke it, which no commit says that a run was told of
	steps       int64
	version     int64
	tries       int
	ports       map[mName]*mPort
	state       map[string]string
	kids        map[string]job.ID
	log         []string
	failures    int
	blocked     map[*mPort]bool // ports that it filled
	deadlock    string          // the last of them
}

type mName struct {
	dir  port.Dir
	name string
}

type mPort struct {
	edges   [][]mEnd
	items   []string
	removed int64 // messages taken, or passed on
	limit   int
	sources int
	fed     bool
	closed  bool
}

type mEnd struct {
	job job.ID
	mName
}

// add creates the jobs of a plan; its root gets number base.
func (m *model) add(nodes []job.Node, root job.ID, base int, parent job.ID) {
	for i, n := range nodes {
		j := &mJob{id: root.Nth(base + i), parent: parent, node: n, kids: map[string]job.ID{}, state: map[string]string{}, blocked: map[*mPort]bool{}}
		if i > 0 {
			j.parent = root.Nth(base + n.Parent)
		}
		if p := m.jobs[j.parent]; p != nil {
			p.kids[n.Name] = j.id
		}
		j.ports = map[mName]*mPort{}
		for _, p := range n.Ports {
			q := &mPort{sources: p.Sources, fed: p.Sources > 0, limit: p.Limit}
			for _, e := range p.Edges {
				var ends []mEnd
				for _, t := range e {
					ends = append(ends, mEnd{root.Nth(base + t.Node), mName{t.Dir, t.Port}})
				}
				q.edges = append(q.edges, ends)
			}
			j.ports[mName{p.Dir, p.Name}] = q
		}
		switch {
		case n.Graph || n.Wired():
			j.status = statemachine.Suspended
		case n.At.Year() >= 2000: // else the time is over: the job is queued at once
			j.status = statemachine.Scheduled
		default:
			j.status, j.ready = statemachine.Queued, listed
		}
		m.jobs[j.id] = j
	}
}

// find returns a port, making one that `*` admits if use is set; nil if there is none.
func (m *model) find(id job.ID, n mName, use bool) *mPort {
	j := m.jobs[id]
	if p := j.ports[n]; p != nil || j.ports[mName{n.dir, port.Any}] == nil {
		return p
	}
	p := &mPort{}
	if use {
		j.ports[n] = p
	}
	return p
}

// unfed tells whether the first message of a root that has completed may be on its way: then it is kept for longer than the model runs.
func unfed(j *mJob) bool {
	open := false
	for n, p := range j.ports {
		if n.dir != port.Input {
			continue
		}
		if p.removed > 0 || len(p.items) > 0 {
			return false
		}
		open = open || n.name != "*" && !p.closed
	}
	return open && !j.node.Graph && j.status == statemachine.Completed
}

func (m *model) become(j *mJob, to statemachine.Status) {
	j.status = to
	if j.parent == "" && (to.Settled() || to == statemachine.Failed) && m.retain < longTime {
		m.settles, m.held = !unfed(j), false
	}
	if to == statemachine.Queued {
		j.again, j.must = false, false
	}
	j.ready = absent
	if to == statemachine.Queued || to == statemachine.Terminating && j.token == "" {
		j.ready = listed
	}
	if g := m.jobs[j.parent]; g != nil && g.node.Graph {
		m.judge(g, j)
	}
}

// judge gives a graph the status that follows from its children's.
func (m *model) judge(g, by *mJob) {
	want := statemachine.Completed
	for _, id := range g.kids {
		switch kid := m.jobs[id]; {
		case kid.status == statemachine.Failed:
			want = statemachine.Failed
		case !kid.status.Settled() && want != statemachine.Failed:
			want = statemachine.Suspended
		}
	}
	if want == g.status || g.status == statemachine.Terminated {
		return
	}
	g.reason = ""
	if want == statemachine.Failed {
		g.reason = by.node.Name + ": " + by.reason
	}
	m.become(g, want)
	m.tell(g)
}

// tell wakes a parent that is no graph.
func (m *model) tell(child *mJob) {
	if p := m.jobs[child.parent]; p != nil && !p.node.Graph {
		m.wake(p)
		p.kin = true
	}
}

func (m *model) wake(j *mJob) {
	if j.status == statemachine.Running {
		j.again = true
	} else if to, err := statemachine.Next(j.status, statemachine.Wake); err == nil && !j.node.Graph {
		if len(j.blocked) == 0 {
			m.become(j, to)
			return
		}
		j.again, j.reason = true, j.deadlock
		if j.status != statemachine.Suspended {
			m.become(j, statemachine.Suspended)
		}
	}
}

// fill blocks the job that filled a port, but one that fills its own.
func (m *model) fill(by *mJob, id job.ID, n mName, p *mPort) {
	if by == nil || by.id == id || n.dir != port.Input || p.limit == 0 || len(p.items) < p.limit ||
		by.status == statemachine.Terminating || m.jobs[id].status == statemachine.Terminated || by.blocked[p] {
		return
	}
	by.blocked[p] = true
	by.deadlock = "full: port " + n.name + " of job " + string(id)
}

// free lets those go on that a port was too full for.
func (m *model) free(p *mPort) {
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[id]
		if !j.blocked[p] {
			continue
		}
		delete(j.blocked, p)
		if len(j.blocked) == 0 && j.status == statemachine.Suspended {
			j.reason = ""
			if j.again {
				m.become(j, statemachine.Queued)
			}
		}
	}
}

// room tells whether all ports that a message to this one would come to have room. Those of terminated jobs that it
// would come to along edges do not count.
func (m *model) room(id job.ID, n mName, along bool) bool {
	p := m.find(id, n, false)
	if len(p.edges) == 0 {
		return n.dir == port.Output || p.limit == 0 || len(p.items) < p.limit ||
			along && m.jobs[id].status == statemachine.Terminated
	}
	for _, ends := range p.edges {
		for _, end := range ends {
			if !m.room(end.job, end.mName, true) {
				return false
			}
		}
	}
	return true
}

func (m *model) put(by *mJob, id job.ID, n mName, items []string, keyed bool, key uint32) {
	if len(items) == 0 {
		return
	}
	p := m.find(id, n, true)
	if len(p.edges) == 0 {
		p.items = append(p.items, items...)
		m.fill(by, id, n, p)
		if n.dir == port.Input {
			m.wake(m.jobs[id])
		} else {
			m.tell(m.jobs[id])
		}
		return
	}
	first := p.removed
	p.removed += int64(len(items))
	for _, ends := range p.edges {
		shares := make([][]string, len(ends))
		for i, item := range items {
			turn := int((first + int64(i)) % int64(len(ends)))
			if keyed {
				turn = int(key % uint32(len(ends)))
			}
			shares[turn] = append(shares[turn], item)
		}
		for i, end := range ends {
			m.put(by, end.job, end.mName, shares[i], keyed, key)
		}
	}
}

func (m *model) shut(id job.ID, n mName) {
	p := m.find(id, n, true)
	if p.closed {
		return
	}
	p.closed = true
	for _, ends := range p.edges {
		for _, end := range ends {
			q := m.find(end.job, end.mName, true)
			if q.sources--; q.sources == 0 {
				m.shut(end.job, end.mName)
			}
		}
	}
	if n.dir == port.Input && len(p.edges) == 0 {
		m.wake(m.jobs[id])
	}
}

func (m *model) takeable(id job.ID, t store.Take) error {
	switch {
	case m.jobs[id] == nil:
		return job.ErrNotFound
	case m.find(id, mName{t.Dir, t.Port}, false) == nil:
		return job.ErrPort
	}
	if p := m.find(id, mName{t.Dir, t.Port}, false); p.removed != t.Head || len(p.items) < t.N {
		return job.ErrMoved
	}
	return nil
}

func (m *model) take(id job.ID, t store.Take) {
	p := m.find(id, mName{t.Dir, t.Port}, true)
	p.items = p.items[t.N:]
	p.removed += int64(t.N)
	if t.Dir == port.Input && len(p.items) < p.limit {
		m.free(p)
	}
}

// objections are all reasons to refuse a delta; a store may name any of them.
func (m *model) objections(d *store.Delta) (all []error) {
	j := m.jobs[d.Job]
	if j == nil {
		return []error{job.ErrNotFound}
	}
	if j.token == "" || j.token != d.Token {
		return []error{job.ErrFenced}
	}
	if _, err := statemachine.Next(j.status, d.Outcome); err != nil && d.Outcome != store.Checkpoint && j.status != statemachine.Terminating {
		all = append(all, job.ErrStatus)
	}
	for _, t := range d.Takes {
		if err := m.takeable(orElse(t.Job, d.Job), t); errors.Is(err, job.ErrNotFound) {
			all = append(all, job.ErrMoved) // the child was deleted meanwhile
		} else if err != nil {
			all = append(all, err)
		}
	}
	fresh := &model{jobs: map[job.ID]*mJob{}}
	names := map[string]bool{}
	for _, s := range d.Spawns {
		fresh.add(s.Plan.Nodes, d.Job.Tree(), s.Base, "")
		name := s.Plan.Nodes[0].Name
		if _, taken := j.kids[name]; taken || names[name] {
			all = append(all, job.ErrExists)
		}
		names[name] = true
	}
	var writes []store.Write
	for _, p := range d.Parts() {
		writes = append(writes, p.Writes...)
	}
	for _, w := range writes {
		id, known := orElse(w.Job, d.Job), m
		if fresh.jobs[id] != nil {
			known = fresh
		}
		if known.jobs[id] == nil {
			all = append(all, job.ErrMoved)
		} else if p := known.find(id, mName{w.Dir, w.Port}, false); p == nil || p.closed && id != d.Job {
			all = append(all, job.ErrPort)
		}
	}
	for _, name := range d.Closes {
		if m.find(d.Job, mName{port.Output, name}, false) == nil {
			all = append(all, job.ErrPort)
		}
	}
	return all
}

func orElse(id, other job.ID) job.ID {
	if id == "" {
		return other
	}
	return id
}

// commit applies a delta, unless it is refused or was applied before.
func (m *model) commit(d *store.Delta) (refused []error, again bool) {
	j := m.jobs[d.Job]
	if j == nil || j.last != d.Token {
		if refused = m.objections(d); refused != nil {
			return refused, false
		}
		m.apply(j, d)
	}
	return nil, j.status == statemachine.Queued
}

func (m *model) apply(j *mJob, d *store.Delta) {
	failed := d.Outcome == statemachine.Fail || d.Outcome == statemachine.Backoff
	switch {
	case failed:
		j.tries++
	case !d.Handed:
		j.steps += int64(len(d.Parts()))
		if d.Outcome != store.Checkpoint {
			j.tries = 0
		}
	}
	j.version++
	j.last, j.token, j.reason = d.Token, d.Next, d.Reason
	for _, t := range d.Takes {
		m.take(orElse(t.Job, d.Job), t)
	}
	for k, v := range d.Set {
		j.state[k] = string(v)
	}
	for _, k := range d.Unset {
		delete(j.state, k)
	}
	for _, s := range d.Spawns {
		m.add(s.Plan.Nodes, d.Job.Tree(), s.Base, d.Job)
	}
	for _, p := range d.Parts() {
		for _, w := range p.Writes {
			m.put(j, orElse(w.Job, d.Job), mName{w.Dir, w.Port}, texts(w.Items), w.Keyed, w.Key)
		}
		j.log = append(j.log, p.Log...)
	}
	for _, name := range d.Closes {
		m.shut(d.Job, mName{port.Output, name})
	}
	if d.Failure != nil {
		j.failures++
	}
	for _, s := range d.Spawns {
		if j.ending { // children of a job that ends with all below it
			m.terminate(m.jobs[d.Job.Nth(s.Base)])
		}
	}
	if d.Outcome == store.Checkpoint {
		j.dying = d.Lease < longTime
		return
	}
	m.conclude(j, d)
	if !d.Handed {
		m.tell(j)
	}
}

// through tells whether all that feed a job have ended, and it has read what they wrote.
func (j *mJob) through() bool {
	fed := false
	for n, p := range j.ports {
		if n.dir != port.Input || len(p.edges) > 0 {
			continue
		}
		fed = fed || p.fed
		if len(p.items) > 0 || p.fed && !p.closed {
			return false
		}
	}
	return fed && !j.must && !j.kin
}

func (m *model) conclude(j *mJob, d *store.Delta) {
	event := d.Outcome
	if j.again && (event == statemachine.Complete && !j.through() || event == statemachine.Suspend) {
		event = statemachine.Requeue
	}
	if event == statemachine.Requeue && len(j.blocked) > 0 && j.status == statemachine.Running {
		event, j.again = statemachine.Suspend, true
	}
	if event == statemachine.Suspend && len(j.blocked) > 0 && j.status == statemachine.Running {
		j.reason = j.deadlock
	}
	to, err := statemachine.Next(j.status, event)
	if to == statemachine.Terminated && err == nil {
		for n, p := range j.ports {
			if n.dir == port.Input {
				m.free(p)
			}
		}
	}
	if g := m.jobs[j.parent]; to == statemachine.Terminated && err == nil && g != nil && g.node.Graph {
		for n, p := range j.ports { // those that it feeds must not wait for it
			if n.dir == port.Output && len(p.edges) > 0 {
				m.shut(j.id, n)
			}
		}
	}
	if err != nil { // objections let pass what is legal in a run: the job was terminated meanwhile
		to = j.status
	}
	m.become(j, to)
	j.soon = d.Delay < longTime
	if (d.Delay > 0 || event == statemachine.Backoff) && j.ready == listed {
		j.ready = map[bool]int{true: maybe, false: absent}[j.soon]
	}
}

func (m *model) begin(id job.ID, b store.Begin) error {
	j := m.jobs[id]
	switch {
	case j == nil:
		return job.ErrNotFound
	case j.token == b.Token:
		return nil
	case j.token != "":
		return job.ErrStatus
	case j.status == statemachine.Queued:
		m.become(j, statemachine.Running)
	case j.status != statemachine.Terminating:
		return job.ErrStatus
	}
	j.token, j.dying, j.again, j.must, j.ready = b.Token, b.Lease < longTime, false, false, absent
	return nil
}

func (m *model) fire(id job.ID, event statemachine.Event) error {
	j := m.jobs[id]
	to, err := statemachine.Next(j.status, event)
	switch {
	case event == statemachine.Terminate && j.node.Graph:
		m.terminate(j)
	case event == statemachine.Terminate && err != nil:
	case event == statemachine.Terminate:
		m.become(j, to)
	case j.node.Graph:
		return job.ErrStatus
	case err == nil:
		j.tries, j.reason, j.ending = 0, "", false
		m.become(j, to)
	case !tolerated(j.status, event):
		return job.ErrStatus
	case j.status == statemachine.Running:
		j.again, j.must = true, true
	case j.status == statemachine.Queued:
		j.ready = listed // also if it was delayed
	}
	return nil
}

// terminate ends a job and all below it.
func (m *model) terminate(j *mJob) {
	j.ending = true
	if to, err := statemachine.Next(j.status, statemachine.Terminate); err == nil {
		if j.node.Graph {
			to = statemachine.Terminated
		}
		m.become(j, to)
		if j.node.Graph {
			m.tell(j)
		}
	}
	for _, kid := range j.kids {
		m.terminate(m.jobs[kid])
	}
}

// expire removes the tree if it is past its retention, at rest, and read; it tells whether.
func (m *model) expire(root job.ID) bool {
	if !m.settles {
		return false
	}
	m.settles = false
	top := m.jobs[root]
	if !top.status.Settled() && top.status != statemachine.Failed {
		return false
	}
	unread := false
	for _, j := range m.jobs {
		resting := j.status.Settled() || j.status == statemachine.Failed || j.status == statemachine.Suspended && top.status == statemachine.Failed
		if j.token != "" || !resting {
			m.held = true
		}
		for n, p := range j.ports {
			unread = unread || n.dir == port.Output && len(p.items) > 0 && m.member(j)
		}
	}
	if m.held {
		return false
	}
	m.kept = m.kept || unread
	return !unread
}

// member tells whether a job is the root, or in its graph.
func (m *model) member(j *mJob) bool {
	for j.parent != "" {
		if j = m.jobs[j.parent]; !j.node.Graph {
			return false
		}
	}
	return true
}

// read notes that somebody outside has read what an Out port held.
func (m *model) read(root job.ID) {
	top := m.jobs[root]
	if m.kept && (top.status.Settled() || top.status == statemachine.Failed) {
		m.settles = true
	}
	m.kept = false
}
