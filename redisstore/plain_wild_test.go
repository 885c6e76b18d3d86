package redisstore_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// wild are twins whose trees are of any form, and to which more happens.
type wild struct {
	*twins
	limits bool
	rows   bool // most trees are jobs in a row that complete in one transaction
	roots  []job.ID
	lone   map[job.ID]bool
	graphs map[job.ID][]job.Node

	patched int
}

func newWild(t *testing.T, all *twins, seed uint64) *wild {
	t.Helper()
	w := &wild{twins: all, limits: seed%4 == 3, lone: map[job.ID]bool{}, graphs: map[job.ID][]job.Node{}}
	w.plant()
	return w
}

// plant creates a tree of any form.
func (w *wild) plant() {
	if w.rows && w.draw.IntN(4) > 0 {
		w.plantRow()
		return
	}
	root := newID(w)
	for root.Shard(shards) != w.shard {
		root = newID(w)
	}
	n := 1 + w.draw.IntN(8)
	nodes := make([]job.Node, n)
	rootGraph := n > 1 && w.draw.IntN(3) > 0
	for i := range nodes {
		nodes[i] = job.Node{Type: "T", Name: fmt.Sprintf("n%d", i), Parent: w.draw.IntN(max(i, 1))}
		if i > 0 && !rootGraph && w.draw.IntN(2) == 0 {
			nodes[i].Parent = 0
		}
		nodes[i].Graph = i == 0 && rootGraph || i > 0 && i < n-1 && w.draw.IntN(4) == 0
		if i == 0 {
			nodes[i].Name = ""
		}
		if !nodes[i].Graph && w.draw.IntN(10) == 0 {
			nodes[i].Priority = new(w.draw.IntN(900))
		}
		if w.draw.IntN(10) == 0 {
			nodes[i].OnFailure = job.FailurePolicy("ignore")
		}
		if w.draw.IntN(12) == 0 {
			nodes[i].Silent = true
		}
		p := in("in")
		if !nodes[i].Graph {
			p.Limit = []int{0, 0, 1, 2, 5}[w.draw.IntN(5)]
		}
		switch w.draw.IntN(12) {
		case 0:
			p.Initial = raws("7")
		case 1:
			p.Default = json.RawMessage("8")
		case 2:
			nodes[i].At = time.Now().Add(time.Hour)
		}
		if nodes[i].Graph {
			p.Initial = nil
		}
		nodes[i].Ports = ports(p, out("out"))
		if w.draw.IntN(8) == 0 {
			nodes[i].Ports = append(nodes[i].Ports, out("errors"))
		}
	}
	w.wire(nodes)
	plan := &job.Plan{Nodes: nodes}
	if w.draw.IntN(3) == 0 {
		for n, found := 0, w.draw.IntN(2); found >= 0; n++ {
			plan.SequentialKey = "k" + strconv.Itoa(n)
			if id := w.store.Keyed(root, plan.SequentialKey); id.Shard(shards) == w.shard && w.both[1].store.Keyed(root, plan.SequentialKey) == id {
				if found--; found < 0 {
					root = id
				}
			}
		}
	}
	if w.draw.IntN(4) == 0 {
		plan.Retain = time.Hour
	}
	if plan.Validate() != nil {
		return
	}
	if w.rows {
		redisstore.Met(w, w.both[0].Store, root, plan)
	}
	for _, e := range w.both {
		_, err := e.store.Create(e.Context(), root, plan, "test")
		e.Check(err)
	}
	w.roots = append(w.roots, root)
	w.lone[root] = n == 1
	if nodes[0].Graph {
		w.graphs[root] = nodes
	}
	for i := range nodes {
		w.ids = append(w.ids, root.Nth(i))
		if i == 0 {
			w.ids[len(w.ids)-1] = root
		}
	}
}

// wire draws edges among jobs.
func (w *wild) wire(nodes []job.Node) {
	n := len(nodes)
	sources := make([]int, n)
	wire := func(i, p, e int) { // edges of a port
		for range e {
			var edge job.Edge
			for range 1 + w.draw.IntN(5)/4 {
				at := w.draw.IntN(n)
				if i+1 < n && w.draw.IntN(3) > 0 {
					at = i + 1
				}
				if at == i && p == 0 || nodes[i].Graph && at <= i || nodes[at].Graph && at < i && w.draw.IntN(4) > 0 {
					continue
				}
				edge = append(edge, job.Target{Node: at, Dir: port.Input, Port: "in"})
				sources[at]++
			}
			if len(edge) > 0 {
				nodes[i].Ports[p].Edges = append(nodes[i].Ports[p].Edges, edge)
			}
		}
	}
	for i := range nodes {
		if nodes[i].Graph {
			wire(i, 0, 1+w.draw.IntN(4)/3)
		} else if w.draw.IntN(4) > 0 {
			wire(i, 1, 1+w.draw.IntN(5)/4)
		}
	}
	for i := range nodes {
		nodes[i].Ports[0].Sources = sources[i]
	}
}

// patch makes another graph of one.
func (w *wild) patch() {
	if len(w.roots) == 0 {
		return
	}
	root := w.roots[w.draw.IntN(len(w.roots))]
	nodes := slices.Clone(w.graphs[root])
	if nodes == nil {
		return
	}
	if w.draw.IntN(2) == 0 {
		nodes = append(nodes, job.Node{Type: "T", Name: fmt.Sprintf("p%d", w.token), Ports: ports(in("in"), out("out"))})
	}
	rewire := w.draw.IntN(3) > 0
	for i := range nodes {
		nodes[i].Ports = slices.Clone(nodes[i].Ports)
		p := &nodes[i].Ports[0]
		p.Initial = nil
		if !nodes[i].Graph && w.draw.IntN(3) == 0 {
			p.Limit = w.draw.IntN(4)
		}
		if rewire {
			p.Edges, p.Sources, nodes[i].Ports[1].Edges = nil, 0, nil
		}
	}
	if rewire {
		w.wire(nodes)
	}
	plan := &job.Plan{Nodes: nodes}
	if plan.Validate() != nil {
		return
	}
	var said [2]string
	for n, e := range w.both {
		h, err := client.New(e.store).Find(e.Context(), string(root))
		if err == nil {
			err = h.Patch(e.Context(), planned(nodes))
		}
		if said[n] = fmt.Sprint(err); err == nil {
			w.patched++
		}
	}
	w.equal("what was said of a patch", said[0], said[1])
	if said[0] == "<nil>" {
		w.graphs[root] = nodes
		w.ids = append(w.ids, root.Nth(len(nodes)-1))
	}
}

func (w *wild) beginning() store.Begin {
	w.token++
	b := beginning()
	b.Token = fmt.Sprintf("run%d", w.token)
	b.Row = w.draw.IntN(3)
	if w.rows {
		b.Row, b.Limits = 8, map[string]int{"": -1000}
	}
	if w.limits {
		b.Running = []store.RunLimit{{Type: "T", Max: 3}, {Queue: job.DefaultQueue, Max: 5}}
	}
	return b
}

func (w *wild) pop() {
	b := w.beginning()
	var found [2]*store.Snapshot
	for n, e := range w.both {
		s, err := popped(e.store.Pop(w.Context(), job.DefaultQueue, w.shard, -1, b, []string{"T"}))
		w.Check(err)
		found[n] = s
	}
	w.begun(found)
}

func about(s *store.Snapshot) string {
	if s == nil {
		return "none"
	}
	row := ""
	for _, r := range s.Row {
		row += " " + string(r.Info.ID)
	}
	return fmt.Sprint(s.Info.ID, s.Info.Version, s.Touched, s.In, s.Woken, s.WokenTo, row, s.Shutdown)
}

func (w *wild) begun(found [2]*store.Snapshot) {
	w.equal("run begun", about(found[0]), about(found[1]))
	if found[0] != nil {
		w.held = append(w.held, found[0])
	}
}

// allBegun is begun of the runs that began in one call.
func (w *wild) allBegun(found [2][]*store.Snapshot) {
	w.equal("runs begun", len(found[0]), len(found[1]))
	for n := range found[0] {
		w.begun([2]*store.Snapshot{found[0][n], found[1][n]})
	}
}

// wildly adds what few runs do.
func (w *wild) wildly(d *store.Delta, s *store.Snapshot, i *job.Info) {
	if s != nil && s.Shutdown {
		*d = store.Delta{Job: d.Job, Token: d.Token, Outcome: statemachine.Shutdown}
		return
	}
	if w.draw.IntN(2) == 0 {
		return
	}
	for n := range d.Writes {
		switch w.draw.IntN(6) {
		case 0:
			d.Writes[n].Keyed, d.Writes[n].Key = true, uint32(w.draw.IntN(3))
		case 1:
			d.Writes[n].Unlogged = true
		}
	}
	if p, ok := i.Port(port.Output, "out"); ok && !p.Closed && w.draw.IntN(6) == 0 {
		for range 1 + w.draw.IntN(5) {
			part := store.Part{}
			if w.draw.IntN(4) > 0 {
				part.Entry = `{"step":7}`
			}
			if w.draw.IntN(4) > 0 {
				part.Writes = saying(`"p"`)
			}
			d.Before = append(d.Before, part)
		}
	}
	if w.draw.IntN(12) == 0 {
		d.Log = []string{`"said"`}
	}
	if _, ok := i.Port(port.Output, "errors"); ok && w.draw.IntN(3) == 0 {
		d.Writes = []store.Write{{Dir: port.Output, Port: "errors", Items: raws("0")}}
		d.Closes = nil
	}
	if w.draw.IntN(20) == 0 {
		d.Reason, d.Failure, d.Closes = "", nil, nil
		d.Outcome, d.Delay = statemachine.Requeue, time.Hour
	}
	if w.draw.IntN(25) == 0 {
		d.Wakes = []time.Duration{time.Hour}
	}
	if d.Speculation == nil {
		switch w.draw.IntN(12) {
		case 0:
			d.Leads = true
		case 1:
			d.Started = true
		}
		if s.WokenTo > 0 && w.draw.IntN(3) > 0 {
			d.Woken = s.WokenTo
		}
	}
}

func (w *wild) spawn(d *store.Delta) {
	var base [2]int
	for n, e := range w.both {
		var err error
		base[n], err = e.Store.Reserve(w.Context(), d.Job.Tree(), 3)
		if err != nil {
			base[n] = -1
		}
	}
	w.equal("reserved", base[0], base[1])
	if base[0] < 0 {
		return
	}
	w.token++
	nodes := []job.Node{{Name: fmt.Sprintf("s%d", w.token), Type: "T", Ports: ports(in("in"), out("out"))}}
	if w.draw.IntN(2) == 0 {
		nodes = []job.Node{
			{Name: fmt.Sprintf("s%d", w.token), Type: "G", Graph: true},
			{Name: "a", Type: "T", Ports: ports(in("in"), out("out", to(2)))},
			{Name: "b", Type: "T", Ports: ports(fed("in", 1), out("out"))},
		}
	}
	d.Spawns = []store.Spawn{{Base: base[0], Plan: &job.Plan{Nodes: nodes}}}
	for n := range nodes {
		w.ids = append(w.ids, d.Job.Tree().Nth(base[0]+n))
	}
}

func (w *wild) exists(id job.ID) bool {
	return w.Redis.HExists(w.Context(), w.key(id), "status").Val()
}

// tx is a transaction of one of the runs that go on.
func (w *wild) tx() (store.Tx, bool) {
	if len(w.held) == 0 {
		return store.Tx{}, false
	}
	at := w.draw.IntN(len(w.held))
	s := w.held[at]
	w.held = append(w.held[:at:at], w.held[at+1:]...)
	lead := &store.Delta{Job: s.Info.ID, Token: s.Token}
	w.did(lead, &s.Info)
	w.wildly(lead, s, &s.Info)
	for _, box := range s.In {
		if n := w.draw.IntN(box.Len + 1); n > 0 && !s.Shutdown {
			lead.Takes = append(lead.Takes, store.Take{Dir: port.Input, Port: box.Port, Head: box.Head, N: n})
		}
	}
	if w.draw.IntN(15) == 0 && !s.Shutdown {
		w.spawn(lead)
	}
	tx := store.Tx{}
	for d, i := lead, &s.Info; d != nil && len(tx.Deltas) < 5; {
		tx.Deltas = append(tx.Deltas, *d)
		p, ok := i.Port(port.Output, "out")
		if !ok || len(p.Edges) != 1 || len(p.Edges[0]) != 1 || !w.exists(p.Edges[0][0].Job) || d.Outcome == statemachine.Shutdown {
			break
		}
		whole := *d // the messages of all runs
		for _, b := range d.Before {
			whole.Writes = append(slices.Clip(whole.Writes), b.Writes...)
		}
		if w.info(p.Edges[0][0].Job).Graph && w.draw.IntN(5) > 0 {
			break
		}
		d, i = w.behind(&whole, i)
		if d != nil {
			w.wildly(d, nil, i)
		}
	}
	return tx, true
}

func (w *wild) end() {
	if w.rows && w.draw.IntN(4) > 0 {
		w.finish()
		return
	}
	txs := make([]store.Tx, 0, 3)
	for range 1 + w.draw.IntN(4)/2 {
		if tx, ok := w.tx(); ok {
			txs = append(txs, tx)
		}
	}
	if len(txs) == 0 {
		return
	}
	var said [2]string
	var found [2][]*store.Snapshot
	steps, b := w.draw.IntN(3) == 0, w.beginning()
	b.Own, b.Fair = w.draw.IntN(3) == 0, false
	if !b.Own {
		b.Fair = w.draw.IntN(3) == 0
	}
	hold, several := w.draw.IntN(2) == 0, w.draw.IntN(4)
	b.Hold, b.Several = func(string) bool { return hold }, func(string) int { return several }
	again := w.draw.IntN(4) == 0
	for n, e := range w.both {
		if steps {
			res, all, err := e.store.Step(w.Context(), txs, b, []string{"T"})
			w.Check(err)
			found[n], said[n] = all, fmt.Sprintf("%+v", res)
			continue
		}
		res, err := e.store.Commit(w.Context(), txs)
		w.Check(err)
		said[n] = fmt.Sprintf("%+v", res)
		if again {
			res, err = e.store.Commit(w.Context(), txs)
			w.Check(err)
			said[n] += fmt.Sprintf("%+v", res)
		}
	}
	if said[0] != said[1] {
		raw, _ := json.MarshalIndent(txs, "", " ")
		w.Logf("transactions: %s", raw)
	}
	w.equal("results", said[0], said[1])
	if steps {
		w.allBegun(found)
	}
}

func (w *wild) outside() {
	if w.rows && w.draw.IntN(2) == 0 {
		w.look()
		return
	}
	id, what := w.ids[w.draw.IntN(len(w.ids))], w.draw.IntN(30)
	other := w.ids[w.draw.IntN(len(w.ids))]
	var said [2]string
	for n, e := range w.both {
		var err error
		ctx := w.Context()
		switch what {
		case 0, 1, 2:
			err = e.Store.Apply(ctx, id, statemachine.Run)
		case 3, 4:
			err = e.Store.Apply(ctx, id, statemachine.Retry)
		case 5:
			err = e.Store.SetState(ctx, id, map[string]json.RawMessage{"o": json.RawMessage("1")}, nil)
		case 6:
			err = e.Store.Terminate(ctx, id)
		case 7:
			err = e.Store.ClosePort(ctx, id, port.Input, "in")
		case 8:
			err = e.Store.ClosePort(ctx, id, port.Output, "out")
		case 9:
			err = e.Redis.Set(ctx, e.key(id)+":lock", "me", time.Hour).Err()
		case 10:
			err = e.Redis.Del(ctx, e.key(id)+":lock").Err()
		case 11:
			err = e.Store.SetPriority(ctx, []job.ID{id}, 100*(w.token%9))
		case 12:
			err = e.Store.SetDefault(ctx, id, store.Default{Dir: port.Input, Port: "in", Value: json.RawMessage(`7`)})
		case 13:
			err = e.Store.SetPorts(ctx, id, []port.Spec{{Name: "in", Dir: port.Input, Limit: 3}, {Name: "out", Dir: port.Output}, {Name: "extra", Dir: port.Input}})
		case 14:
			i, err2 := e.Store.Info(ctx, id)
			if err = err2; err == nil {
				if p, ok := i.Port(port.Output, "out"); ok && p.Waiting > 0 {
					err = e.Store.Take(ctx, id, store.Take{Dir: port.Output, Port: "out", Head: p.Total - p.Waiting, N: 1}, "tok"+strconv.Itoa(w.token))
				}
			}
		case 15:
			i, err2 := e.Store.Info(ctx, id)
			if err = err2; err == nil {
				if p, ok := i.Port(port.Input, "in"); ok && p.Waiting > 0 {
					err = e.Store.Take(ctx, id, store.Take{Dir: port.Input, Port: "in", Head: p.Total - p.Waiting, N: 1}, "tik"+strconv.Itoa(w.token))
				}
			}
		case 16:
			if len(w.roots) > 0 {
				err = e.Store.Delete(ctx, w.roots[w.token%len(w.roots)])
			}
		case 17:
			if w.lone[id] && w.lone[other] && id != other {
				err = e.Store.Adopt(ctx, other, id, "kid"+strconv.Itoa(w.token))
			}
		case 18:
			err = e.store.Write(ctx, id, store.Write{Dir: port.Input, Port: "in", Items: numbers(1, 2), NoWake: true})
		case 19:
			err = e.store.Write(ctx, id, store.Write{Dir: port.Output, Port: "out", Items: numbers(1, 2)})
		default:
			err = e.store.Write(ctx, id, store.Write{Dir: port.Input, Port: "in", Items: numbers(1, 1+what%3)})
		}
		said[n] = fmt.Sprint(err)
	}
	w.token++
	w.equal(fmt.Sprintf("what was said from outside (%d)", what), said[0], said[1])
}

// Whatever plain.lua does is what tx.lua would have done, in trees of any form.
func TestWildTransactions(t *testing.T) {
	t.Parallel()
	if runs, rows := wildly(t, newTwins); runs < 50 || rows < 5 {
		t.Errorf("%d transactions of one run and %d of several were plain: this test looks at little", runs, rows)
	}
}

const usualJob = "n.usual = n.at == '+' and '1' or n.at == '-' and '0'"

// Jobs that are said to have nothing of what few jobs have are created as if nobody had said so.
func TestUsualJobs(t *testing.T) {
	t.Parallel()
	odd, usual := wildly(t, func(t *testing.T, seed uint64) *twins {
		return twinsBy(t, seed, usualJob, [2]string{usualJob + " call('HINCRBY', P .. 'plain', n.usual and 'rows' or 'runs', 1)", "n.usual = nil"})
	})
	if odd < 10 || usual < 10 {
		t.Errorf("%d jobs were usual and %d were not: this test looks at little", usual, odd)
	}
}
