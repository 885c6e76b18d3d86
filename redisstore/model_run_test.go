package redisstore_test

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// Durations of the model: a short one has passed at the next sweep, a long one never does.
const (
	shortTime = time.Millisecond
	longTime  = time.Hour
	maxTree   = 14
)

// Whatever is done to a tree in whatever order, the store and the model agree on all
// that can be seen of it.
func TestModel(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		e := open(t, url)
		start, failed := time.Now(), false
		rapid.Check(t, func(rt *rapid.T) {
			defer func() { failed = failed || rt.Failed() }()
			if time.Since(start) > patience(t) && !failed { // a failure takes as long as it takes to be made small
				return
			}
			c := &machine{T: rt, e: e, root: newID(t), model: model{jobs: map[job.ID]*mJob{}}}
			c.create()
			rt.Repeat(map[string]func(*rapid.T){
				"":         func(*rapid.T) { c.compare() },
				"begin":    c.step(c.begin),
				"begin 2":  c.step(c.begin), // twice as often
				"rebegin":  c.step(c.beginAgain),
				"commit":   c.step(c.commit),
				"commit 2": c.step(c.commit),
				"group":    c.step(c.group),
				"resend":   c.step(c.resend),
				"step":     c.step(c.stepOn),
				"pop":      c.step(c.pop),
				"write":    c.step(c.write),
				"take":     c.step(c.takeOutside),
				"close":    c.step(c.closeOutside),
				"apply":    c.step(c.apply),
				"retry":    c.step(c.retry),
				"fail":     c.step(c.fail),
				"sweep":    c.step(c.sweep),
				"refresh":  c.step(c.refresh),
			})
			c.compareAll()
		})
	})
}

// patience is how long to go on with new trees: miniredis is slow. With more -rapid.checks
// than usual it is longer.
func patience(t *testing.T) time.Duration {
	t.Helper()
	checks, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(checks) * 80 * time.Millisecond
}

// machine does random things to a store and to the model.
type machine struct {
	*rapid.T
	e     *env
	root  job.ID
	gone  bool // it was past its retention
	model model
	runs  []*mRun
	old   []store.Delta

	messages int // sent so far
}

// mRun is what a run saw when it began: what it may take.
type mRun struct {
	id    job.ID
	token string
	takes []store.Take // N is how many there are
}

func (c *machine) step(f func()) func(*rapid.T) {
	return func(rt *rapid.T) {
		c.T = rt
		if !c.gone {
			f()
		}
	}
}

func (c *machine) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// agree wants an error that the model gives, too.
func (c *machine) agree(what string, got error, want ...error) {
	c.Helper()
	if len(want) == 0 && got == nil || slices.ContainsFunc(want, func(w error) bool { return errors.Is(got, w) }) {
		return
	}
	if want != nil && want[0] == nil && got == nil {
		return
	}
	c.Fatalf("%s: error %v, the model has %v", what, got, want)
}

func chance(c *machine, of int, label string) bool {
	return rapid.IntRange(0, of-1).Draw(c.T, label) == of-1
}

func pick[V any](c *machine, from []V, label string) V {
	if len(from) == 0 {
		c.Skip("nothing to choose")
	}
	return from[rapid.IntRange(0, len(from)-1).Draw(c.T, label)]
}

func (c *machine) ids() []job.ID {
	ids := slices.Collect(maps.Keys(c.model.jobs))
	slices.SortFunc(ids, func(a, b job.ID) int { return a.Number() - b.Number() })
	return ids
}

func (c *machine) create() {
	plan := &job.Plan{Nodes: c.plan(7, ""), Retain: pick(c, []time.Duration{job.Forever, 10 * longTime, shortTime}, "retain")}
	c.model.retain = plan.Retain
	c.ok(plan.Validate())
	created, err := c.e.store.Create(c.e.Context(), c.root, plan, "")
	c.ok(err)
	if !created {
		c.Fatal("not created")
	}
	c.model.add(plan.Nodes, c.root, 0, "")
}

func (c *machine) lease() time.Duration {
	return pick(c, []time.Duration{longTime, longTime, shortTime}, "lease")
}

func (c *machine) beginning() store.Begin {
	return store.Begin{Token: rand.Text(), Lease: c.lease(), Batch: 1000, Bytes: 1 << 20}
}

func (c *machine) begin() {
	id, b := pick(c, c.ids(), "job"), c.beginning()
	snap, err := c.e.store.Begin(c.e.Context(), id, b)
	want := c.model.begin(id, b)
	c.agree("begin", err, want)
	if err == nil {
		c.begun(snap, b)
	}
}

// begun compares a snapshot and remembers the run.
func (c *machine) begun(snap *store.Snapshot, b store.Begin) {
	j := c.model.jobs[snap.Info.ID]
	if snap.Token != b.Token || snap.Shutdown != (j.status == statemachine.Terminating) || !snap.Whole {
		c.Fatalf("snapshot %+v of %+v", snap, j)
	}
	c.same("state in the snapshot", textMap(snap.State), j.state)
	r := &mRun{id: j.id, token: b.Token}
	for n, p := range j.ports {
		box := snap.In.Of(n.name)
		there := box.Len > 0
		if n.dir != port.Input || len(p.edges) > 0 {
			continue
		}
		if there != (len(p.items) > 0) || there && (box.Head != p.removed || box.Len != len(p.items) || !slices.Equal(texts(box.Items), p.items)) {
			c.Fatalf("inbox %s of job %d: %+v, the model has %+v", n.name, j.id.Number(), box, p)
		}
		r.takes = append(r.takes, store.Take{Dir: n.dir, Port: n.name, Head: p.removed, N: len(p.items)})
	}
	for _, kid := range j.kids {
		if p := c.model.jobs[kid].ports[mName{port.Output, "free"}]; p != nil {
			r.takes = append(r.takes, store.Take{Job: kid, Dir: port.Output, Port: "free", Head: p.removed, N: len(p.items)})
		}
	}
	slices.SortFunc(r.takes, func(a, b store.Take) int { return 2*cmpText(string(a.Job), string(b.Job)) + cmpText(a.Port, b.Port) })
	c.runs = append(c.runs, r)
}

func (c *machine) beginAgain() {
	r := pick(c, c.runs, "run")
	if c.model.jobs[r.id].token != r.token {
		c.Skip("over")
	}
	b := store.Begin{Token: r.token, Lease: longTime, Batch: 1000, Bytes: 1 << 20}
	snap, err := c.e.store.Begin(c.e.Context(), r.id, b)
	c.ok(err)
	c.begun(snap, b)
	c.runs = c.runs[:len(c.runs)-1]
}

// settle compares what became of a delta, and keeps it for a resend.
func (c *machine) settle(r *mRun, d *store.Delta, res store.Result) {
	refused, again := c.model.commit(d)
	c.agree("commit", res.Refused, refused...)
	if want := map[bool]int{true: 1, false: 0}[refused == nil]; res.Applied != want || refused == nil && res.Again != again {
		c.Fatalf("result %+v, the model has %v, again %v", res, refused, again)
	}
	if j := c.model.jobs[d.Job]; refused == nil && res.Full != (len(j.blocked) > 0) {
		c.Fatalf("result %+v, the model has %d full ports", res, len(j.blocked))
	}
	c.old = append(c.old, *d)
	if refused != nil || d.Outcome != store.Checkpoint || r == nil {
		return
	}
	r.token = d.Next
	for _, t := range d.Takes {
		for i := range r.takes {
			if r.takes[i].Job == t.Job && r.takes[i].Port == t.Port {
				r.takes[i].Head += int64(t.N)
				r.takes[i].N -= t.N
			}
		}
	}
}

func (c *machine) commit() {
	r := pick(c, c.runs, "run")
	d := c.delta(r)
	c.settle(r, &d, c.send(d)[0])
}

func (c *machine) send(deltas ...store.Delta) []store.Result {
	var txs []store.Tx
	for _, d := range deltas {
		txs = append(txs, store.Tx{Deltas: []store.Delta{d}})
	}
	res, err := c.e.store.Commit(c.e.Context(), txs)
	c.ok(err)
	return res
}

func (c *machine) group() {
	if len(c.runs) < 2 {
		c.Skip("no two runs")
	}
	r, q := c.runs[len(c.runs)-1], c.runs[rapid.IntRange(0, len(c.runs)-2).Draw(c.T, "run")]
	d := []store.Delta{c.delta(r), c.delta(q)}
	// Both were drawn from the state before either.
	for i, res := range c.send(d...) {
		c.settle([]*mRun{r, q}[i], &d[i], res)
	}
}

func (c *machine) resend() {
	d := pick(c, c.old, "delta")
	c.settle(nil, &d, c.send(d)[0])
	c.old = c.old[:len(c.old)-1]
}

func (c *machine) stepOn() {
	r := pick(c, c.runs, "run")
	d, b := c.delta(r), c.beginning()
	types := pick(c, [][]string{{"A"}, {"B"}, {"A", "B"}, nil}, "types")
	several := rapid.IntRange(0, 4).Draw(c.T, "several")
	b.Several = func(string) int { return several }
	var began []string
	for sent := range rapid.IntRange(1, 2).Draw(c.T, "times") {
		res, all, err := c.e.store.Step(c.e.Context(), []store.Tx{{Deltas: []store.Delta{d}}}, b, types)
		c.ok(err)
		var now []string
		for _, snap := range all {
			now = append(now, string(snap.Info.ID)+" "+snap.Token)
		}
		if sent > 0 {
			if !slices.Equal(now, began) {
				c.Fatalf("a repeated step began %v, not %v", now, began)
			}
			continue
		}
		c.settle(r, &d, res[0])
		switch {
		case res[0].Applied == 0 && len(all) > 0:
			c.Fatalf("a refused step began %v", now)
		case res[0].Applied > 0 && len(all) == 0:
			c.first(nil, types)
		case len(all) > max(several, 1):
			c.Fatalf("a step that may begin %d runs began %v", several, now)
		}
		for n, snap := range all {
			b := b
			c.same("the token of the first", n > 0 || snap.Token == b.Token, true)
			b.Token = snap.Token
			c.first(snap, types)
			c.ok(c.model.begin(snap.Info.ID, b))
			c.begun(snap, b)
		}
		began = now
	}
}

// pop begins a run of a ready job, and sends that twice.
func (c *machine) pop() {
	b, types := c.beginning(), pick(c, [][]string{{"A"}, {"B"}, {"A", "B"}, nil}, "types")
	gen := rapid.Int64Range(-1, 3).Draw(c.T, "generation")
	for sent := range rapid.IntRange(1, 2).Draw(c.T, "times") {
		snap, err := popped(c.e.store.Pop(c.e.Context(), c.queue(), c.root.Shard(shards), gen, b, types))
		c.ok(err)
		switch last := len(c.runs) - 1; {
		case sent == 0:
			c.first(snap, types)
		case snap == nil:
			c.first(nil, types)
		case last < 0 || c.runs[last].token != b.Token:
			c.first(snap, types) // the first sending found none, and something became ready as its time came
		default:
			c.same("the job that a repeated pop began", snap.Info.ID, c.runs[last].id)
			continue
		}
		if snap != nil {
			c.ok(c.model.begin(snap.Info.ID, b))
			c.begun(snap, b)
		}
	}
}

// first wants that a run began of a ready job of one of some types, if there is one.
func (c *machine) first(snap *store.Snapshot, types []string) {
	c.Helper()
	var could []job.ID
	sure := false
	for _, j := range c.model.jobs {
		if slices.Contains(types, j.node.Type) && j.ready != absent {
			could, sure = append(could, j.id), sure || j.ready == listed
		}
	}
	if snap == nil && sure || snap != nil && !slices.Contains(could, snap.Info.ID) {
		c.Fatalf("began %+v, one of %v is ready of %v", snap, could, types)
	}
}

// queue is that of all jobs of the tree: nothing of others is in its sets.
func (c *machine) queue() string { return string(c.root) }

func (c *machine) write() {
	id := pick(c, c.ids(), "job")
	w := store.Write{Dir: port.Input, Port: pick(c, []string{"in", "in", "in", "new"}, "port"), Items: c.items()}
	if chance(c, 4, "output") {
		w.Dir, w.Port = port.Output, pick(c, []string{"out", "free"}, "port")
	}
	n := mName{w.Dir, w.Port}
	p := c.model.find(id, n, false)
	err := c.e.store.Write(c.e.Context(), id, w)
	if p == nil || p.closed {
		c.agree("write", err, job.ErrPort)
		return
	}
	if !c.model.room(id, n, false) {
		c.agree("write", err, job.ErrFull)
		return
	}
	c.ok(err)
	c.model.put(nil, id, n, texts(w.Items), false, 0)
}

func (c *machine) takeOutside() {
	id := pick(c, c.ids(), "job")
	n := pick(c, []mName{{port.Input, "in"}, {port.Output, "free"}, {port.Output, "out"}, {port.Input, "new"}}, "port")
	p := c.model.find(id, n, false)
	t := store.Take{Dir: n.dir, Port: n.name, N: rapid.IntRange(1, 3).Draw(c.T, "n")}
	if p != nil {
		if len(p.edges) > 0 {
			c.Skip("keeps nothing")
		}
		t.Head = p.removed + int64(rapid.IntRange(-1, 1).Draw(c.T, "off")%2)
	}
	want, token := c.model.takeable(id, t), rand.Text()
	c.agree("take", c.e.store.Take(c.e.Context(), id, t, token), want)
	if want == nil {
		c.model.take(id, t)
		if t.Dir == port.Output {
			c.model.read(c.root)
		}
		c.ok(c.e.store.Take(c.e.Context(), id, t, token)) // a repeat changes nothing
	}
}

func (c *machine) closeOutside() {
	if !chance(c, 3, "really") {
		c.Skip("closing ends much")
	}
	id := pick(c, c.ids(), "job")
	n := pick(c, []mName{{port.Input, "in"}, {port.Output, "out"}, {port.Output, "free"}, {port.Input, "new"}}, "port")
	err := c.e.store.ClosePort(c.e.Context(), id, n.dir, n.name)
	if c.model.find(id, n, false) == nil {
		c.agree("close", err, job.ErrPort)
		return
	}
	c.ok(err)
	c.model.shut(id, n)
}

func (c *machine) apply() {
	id := pick(c, c.ids(), "job")
	event := pick(c, append(slices.Clone(outside), statemachine.Run, statemachine.Retry, statemachine.Force), "event")
	c.agree("apply", c.e.store.Apply(c.e.Context(), id, event), c.model.fire(id, event))
}

func (c *machine) sweep() {
	time.Sleep(3 * shortTime)
	c.e.lookAtFull(c.root, time.Now().Add(longTime)) // the model has no limits that are raised
	_, err := c.e.store.Sweep(c.e.Context())
	c.ok(err)
	// What is past its retention is removed behind what the sweep does else, or before it.
	before := c.model.settles
	c.model.sweep()
	_, err = c.e.store.Info(c.e.Context(), c.root)
	if before && c.model.expire(c.root) {
		c.agree("a tree past its retention", err, job.ErrNotFound)
		c.vanish()
		return
	}
	c.ok(err)
}

// vanish looks whether anything is left of a tree that was removed, and whether what comes late makes it anew.
func (c *machine) vanish() {
	c.gone = true
	if n := len(c.old); n > 0 {
		c.agree("a late commit", c.send(c.old[n-1])[0].Refused, job.ErrNotFound)
	}
	for k := range c.e.dump() {
		if strings.Contains(k, string(c.root)) {
			c.Fatalf("%s is left of a tree that was removed", k)
		}
	}
}

func (c *machine) refresh() {
	r, lease := pick(c, c.runs, "run"), c.lease()
	err := c.e.store.Refresh(c.e.Context(), r.id, r.token, lease, nil)
	if j := c.model.jobs[r.id]; j.token == r.token {
		c.ok(err)
		j.dying = lease < longTime
	} else {
		c.agree("refresh", err, job.ErrFenced)
	}
}

func (m *model) sweep() {
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		switch j := m.jobs[id]; {
		case j.token != "" && j.dying:
			j.token = ""
			j.log = append(j.log, `{"lost":"a run whose process died, or was cut off"}`)
			if j.diedAt != j.version {
				j.crashes, j.diedAt = 0, j.version
			}
			if j.crashes++; j.crashes > 2 {
				j.reason = fmt.Sprintf("its last %d runs ended without a word: their processes died, or were cut off", j.crashes)
			}
			to := j.status
			if to == statemachine.Running {
				to = statemachine.Queued
			}
			m.become(j, to)
			if j.crashes > 2 {
				j.ready = maybe
			}
		case j.status == statemachine.Scheduled && j.soon:
			m.become(j, statemachine.Queued)
		}
	}
}
