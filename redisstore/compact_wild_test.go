package redisstore_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

const (
	recordWhy  = "local why = compact.why(digest)\nif why"
	recordOver = "compact.put(t.record, t.text)"
)

// recordTwins are twins: in the first namespace most trees are created as records, in the second one none is.
func recordTwins(t *testing.T, seed uint64) *twins {
	t.Helper()
	return twinsOf(t, seed, [2][2]string{
		{recordOver, recordOver + "\ncall('HINCRBY', P .. 'plain', t.shape.jobs > 1 and 'rows' or 'runs', 1)"},
		{recordWhy, "local why = 'followed'\nif why"},
	})
}

// Trees that are records are for everybody what they would be if each of their jobs had a hash.
func TestWildRecords(t *testing.T) {
	t.Parallel()
	runs, rows := wildly(t, recordTwins, func(w *wild) { w.rows = true })
	if runs < 10 || rows < 10 {
		t.Errorf("%d records were completed by one run and %d by several: this test looks at little", runs, rows)
	}
}

// plantRow creates a tree of jobs in a row in a graph, or of one job.
func (w *wild) plantRow() {
	root := newID(w)
	for root.Shard(shards) != w.shard {
		root = newID(w)
	}
	n := 1 + w.draw.IntN(4)
	nodes, first := make([]job.Node, 0, n+1), 0
	if n > 1 || w.draw.IntN(6) == 0 {
		nodes, first = append(nodes, job.Node{Type: "G", Graph: true}), 1
	}
	limit := []int{0, 0, 0, 2}[w.draw.IntN(4)]
	for i := range n {
		node := job.Node{Type: "T", Name: fmt.Sprintf("n%d", len(nodes))}
		if len(nodes) == 0 {
			node.Name = ""
		}
		input, output := in("in"), out("out")
		if i > 0 {
			input = fed("in", 1)
		}
		input.Limit = limit
		if i < n-1 {
			output = out("out", to(len(nodes)+1))
		}
		if node.Ports = ports(input, output); i == 0 && w.draw.IntN(3) > 0 {
			node.Ports[0].Initial = numbers(1, 1+w.draw.IntN(2))
		}
		if w.draw.IntN(8) == 0 {
			node.Args = json.RawMessage(fmt.Sprintf(`{"n":%d}`, w.token))
		}
		switch w.draw.IntN(10) {
		case 0:
			node.Ports = append(node.Ports, in("free"), out("errors"))
		case 1:
			node.Silent = true
		case 2:
			node.Priority = new(w.draw.IntN(900))
		case 3:
			node.OnFailure = job.FailurePolicy("dead_letter")
			node.Ports = append(node.Ports, out("errors"))
		}
		if w.draw.IntN(12) == 0 {
			node.Labels = map[string]string{"n": fmt.Sprint(w.token)}
		}
		nodes = append(nodes, node)
	}
	if first > 0 && w.draw.IntN(3) == 0 { // the ports of the graph are those of the first and the last job
		output := out("out")
		output.Sources = 1
		nodes[0].Ports = ports(in("in"), output)
		nodes[0].Ports[0].Edges = []job.Edge{to(1)}
		nodes[1].Ports[0].Sources = 1
		nodes[n].Ports[1].Edges = []job.Edge{{{Node: 0, Dir: port.Output, Port: "out"}}}
	}
	plan := &job.Plan{Nodes: nodes}
	switch w.draw.IntN(12) {
	case 0:
		plan.Retain = time.Hour
	case 1:
		plan.Retain = job.Forever
	case 2:
		nodes[len(nodes)-1].At = time.Now().Add(time.Hour)
	case 3:
		nodes[len(nodes)-1].OnFailure = job.FailurePolicy("ignore")
	}
	w.Check(plan.Validate())
	redisstore.Met(w, w.both[0].Store, root, plan)
	for _, e := range w.both {
		_, err := e.store.Create(e.Context(), root, plan, "test")
		e.Check(err)
	}
	w.roots, w.lone[root] = append(w.roots, root), len(nodes) == 1
	if w.ids = append(w.ids, root); first > 0 {
		w.graphs[root] = nodes
	}
	for i := 1; i < len(nodes); i++ {
		w.ids = append(w.ids, root.Nth(i))
	}
}

// finish commits a run that goes on, and speculative ones of the jobs in the row behind it: most times all complete.
func (w *wild) finish() {
	if len(w.held) == 0 {
		return
	}
	at := w.draw.IntN(len(w.held))
	s := w.held[at]
	w.held = append(w.held[:at:at], w.held[at+1:]...)
	tx := w.completion(s)
	var said [2]string
	var found [2][]*store.Snapshot
	steps, again, b, several := w.draw.IntN(2) == 0, w.draw.IntN(3) == 0, w.beginning(), w.draw.IntN(4)
	b.Several = func(string) int { return several }
	for n, e := range w.both {
		for range 1 + map[bool]int{again: 1}[true] {
			if steps {
				res, all, err := e.store.Step(w.Context(), []store.Tx{tx}, b, []string{"T"})
				w.Check(err)
				found[n], said[n] = all, said[n]+fmt.Sprintf("%+v\n", res)
				for _, s := range all {
					said[n] += about(s) + " " + s.Token + "\n"
				}
				continue
			}
			res, err := e.store.Commit(w.Context(), []store.Tx{tx})
			w.Check(err)
			said[n] += fmt.Sprintf("%+v\n", res)
		}
	}
	if said[0] != said[1] {
		raw, _ := json.MarshalIndent(tx, "", " ")
		w.Logf("transaction: %s", raw)
	}
	w.equal("results", said[0], said[1])
	if steps {
		w.allBegun(found)
	}
}

// completion is a transaction that completes the job of a run, and those in a row behind it.
func (w *wild) completion(s *store.Snapshot) store.Tx {
	odd := w.draw.IntN(6) == 0
	lead := store.Delta{Job: s.Info.ID, Token: s.Token}
	for _, box := range s.In {
		lead.Takes = append(lead.Takes, store.Take{Dir: port.Input, Port: box.Port, Head: box.Head, N: box.Len})
	}
	if s.Shutdown {
		lead.Takes, lead.Outcome = nil, statemachine.Shutdown
		return store.Tx{Deltas: []store.Delta{lead}}
	}
	tx := store.Tx{}
	d, info := lead, &s.Info
	for n := 0; ; n++ {
		p, _ := info.Port(port.Output, "out")
		sent, closes := w.draw.IntN(3), w.draw.IntN(4) > 0
		if n < len(s.Row) && !closes && w.draw.IntN(12) > 0 {
			sent = max(sent, 1)
		}
		w.ends(&d, sent, closes && !p.Closed)
		if odd && w.draw.IntN(3) == 0 {
			w.oddly(&d)
		}
		tx.Deltas = append(tx.Deltas, d)
		if n >= len(s.Row) || sent == 0 && len(d.Closes) == 0 || len(d.Writes)+len(d.Closes) == 0 {
			return tx
		}
		info = &s.Row[n].Info
		w.token++
		d = store.Delta{Job: info.ID, Token: fmt.Sprintf("guess%d", w.token), Takes: []store.Take{{Dir: port.Input, Port: "in", N: sent}}}
		d.Speculation = &store.Speculation{Port: "in", Seen: sent, Limit: -1000, Closed: closes && !p.Closed}
		if sent == 0 {
			d.Takes[0].N = 0
		}
	}
}

// ends has a run complete that wrote so many messages.
func (w *wild) ends(d *store.Delta, sent int, closes bool) {
	d.Outcome = statemachine.Complete
	if w.draw.IntN(3) > 0 {
		d.Entry = `{"step":0}`
	}
	if w.draw.IntN(6) == 0 {
		d.Set = map[string]json.RawMessage{"n": json.RawMessage("1")}
	}
	if w.draw.IntN(6) == 0 {
		d.Log = []string{`"said"`}
	}
	if d.Speculation == nil && w.draw.IntN(8) == 0 {
		d.Started = true
	}
	if sent > 0 {
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(1, sent), Unlogged: w.draw.IntN(8) == 0}}
	}
	if closes {
		d.Closes = []string{"out"}
	}
}

// oddly changes what a run did, or saw, to what a record cannot have.
func (w *wild) oddly(d *store.Delta) {
	switch w.draw.IntN(7) {
	case 0:
		d.Outcome = statemachine.Suspend
	case 1:
		d.Outcome, d.Delay = statemachine.Requeue, time.Hour
	case 2:
		d.Outcome, d.Reason, d.Failure = statemachine.Fail, "no", &job.Failure{Error: "no"}
		d.Writes, d.Closes = nil, nil
		if d.Speculation != nil {
			d.Outcome, d.Reason, d.Failure = statemachine.Suspend, "", nil
		}
	case 3:
		if len(d.Takes) > 0 && d.Takes[0].N > 0 {
			d.Takes[0].N--
		}
	case 4:
		d.Unset = []string{"n"}
	case 5:
		if d.Speculation != nil {
			d.Speculation.Seen++
		}
	case 6:
		d.Wakes = []time.Duration{time.Hour}
	}
}

var clock = regexp.MustCompile(`"20[0-9]{2}-[^"]*Z"`)

// look compares what is read of a job, and of the tree that it is in, which leaves records as they are.
func (w *wild) look() {
	id := w.ids[w.draw.IntN(len(w.ids))]
	var said [2]string
	for n, e := range w.both {
		ctx := w.Context()
		info, err := e.store.Info(ctx, id)
		tree, err2 := e.store.Tree(ctx, id)
		children, err3 := e.store.Children(ctx, id)
		state, err4 := e.store.State(ctx, id)
		logs, err5 := e.store.Logs(ctx, id, 100)
		page, _, err6 := e.Store.JobsPage(ctx, job.Filter{Below: id.Tree(), All: true}, 1000)
		count, err7 := e.store.Count(ctx, job.Filter{Below: id.Tree(), All: true})
		child, err8 := e.store.Child(ctx, id, "n1")
		done, _, err9 := e.Store.JobsPage(ctx, job.Filter{All: true, Type: "T", Status: []statemachine.Status{statemachine.Completed}}, 1000)
		raw, err10 := json.MarshalIndent([]any{info, tree, children, state, logs, page, count, child, done}, "", " ")
		said[n] = clock.ReplaceAllString(string(raw), "T") + fmt.Sprint(err, err2, err3, err4, err5, err6, err7, err8, err9, err10)
	}
	if said[0] != said[1] {
		w.Fatal(firstDifference(said[0], said[1]))
	}
}
