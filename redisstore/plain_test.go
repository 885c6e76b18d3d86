package redisstore_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// twins are two namespaces with the same jobs to which the same happens: in the first one plain transactions are done by plain.lua,
// in the second one all by tx.lua.
type twins struct {
	*env
	both  [2]*env
	began int64 // minute of the clock
	draw  *rand.Rand
	shard int
	token int
	ids   []job.ID
	held  []*store.Snapshot // runs that go on
}

const plainCall = "last = plain.transact(deltas)"

func newTwins(t *testing.T, seed uint64) *twins {
	t.Helper()
	return twinsBy(t, seed, plainCall, [2]string{
		plainCall + " if result then call('HINCRBY', P .. 'plain', #deltas > 1 and 'rows' or 'runs', 1) end",
		"last",
	})
}

// twinsBy are twins in whose scripts a piece is replaced, for each by another one.
func twinsBy(t *testing.T, seed uint64, piece string, by [2]string) *twins {
	t.Helper()
	return twinsOf(t, seed, [2][2]string{{piece, by[0]}, {piece, by[1]}})
}

// twinsOf are twins in whose scripts pieces are replaced.
func twinsOf(t *testing.T, seed uint64, pieces [2][2]string) *twins {
	t.Helper()
	url := redistest.SharedRedis(t)
	w := &twins{began: minute(), draw: rand.New(rand.NewPCG(seed, 1))}
	for n, piece := range pieces {
		e := open(t, url)
		redisstore.Rewrite(t, e.Store, piece[0], piece[1])
		w.both[n] = e
	}
	w.env = w.both[1]
	lone := newID(t)
	w.shard = lone.Shard(shards)
	for _, e := range w.both {
		e.createAs(lone, job.Node{Type: "T", Ports: ports(in("in"), out("out"))}, job.Node{Name: "below", Type: "T", Ports: ports(in("in"), out("out"))})
	}
	w.ids = []job.ID{lone, lone.Nth(1)}
	w.grow()
	return w
}

// grow creates a tree of a graph: a row of jobs, and one that feeds two of them.
func (w *twins) grow() {
	root := newID(w)
	for root.Shard(shards) != w.shard {
		root = newID(w)
	}
	limited := fed("in", 2)
	limited.Limit = w.draw.IntN(4)
	sources := 1 + w.draw.IntN(2)
	for _, e := range w.both {
		e.createAs(root, job.Node{Type: "G", Graph: true},
			job.Node{Name: "a", Type: "T", Ports: ports(out("out", to(2)))},
			job.Node{Name: "b", Type: "T", Ports: ports(fed("in", sources), out("out", to(3)))},
			job.Node{Name: "c", Type: "T", Ports: ports(limited, out("out", to(4)))},
			job.Node{Name: "d", Type: "T", Ports: ports(fed("in", 1), out("out"))},
			job.Node{Name: "e", Type: "T", Ports: ports(in("in"), out("out", to(2), to(3)))},
		)
	}
	for n := 1; n <= 5; n++ {
		w.ids = append(w.ids, root.Nth(n))
	}
}

// pop begins a run of the first ready job.
func (w *twins) pop() {
	w.token++
	b := beginning()
	b.Token = fmt.Sprintf("run%d", w.token)
	var found [2]*store.Snapshot
	for n, e := range w.both {
		s, err := popped(e.store.Pop(w.Context(), job.DefaultQueue, w.shard, -1, b, []string{"T"}))
		w.Check(err)
		found[n] = s
	}
	if found[0] == nil || found[1] == nil {
		w.equal("runs begun", found[0] == nil, found[1] == nil)
		return
	}
	w.equal("job begun", found[0].Info.ID, found[1].Info.ID)
	w.held = append(w.held, found[0])
}

// did is what a run did that reads at most so many of its messages.
func (w *twins) did(d *store.Delta, i *job.Info) {
	d.Outcome = []statemachine.Event{
		statemachine.Suspend, statemachine.Suspend, statemachine.Suspend, statemachine.Suspend, statemachine.Suspend, statemachine.Suspend,
		statemachine.Suspend, statemachine.Suspend, statemachine.Complete, statemachine.Complete, statemachine.Requeue, statemachine.Fail,
	}[w.draw.IntN(12)]
	if d.Outcome == statemachine.Fail {
		d.Reason, d.Failure = "no", &job.Failure{Error: "no"}
	}
	if w.draw.IntN(3) > 0 {
		d.Entry = `{"step":0}`
	}
	if w.draw.IntN(16) == 0 {
		d.Set = map[string]json.RawMessage{"n": json.RawMessage("1")}
	}
	if p, ok := i.Port(port.Output, "out"); ok {
		if n := w.draw.IntN(4); n > 0 && !p.Closed {
			d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(1, n)}}
		}
		if d.Outcome == statemachine.Complete && p.Wired && w.draw.IntN(4) > 0 {
			d.Closes = []string{"out"}
		}
	}
}

// behind is a speculative run of the one job that a delta writes to, right or wrong, or nil.
func (w *twins) behind(d *store.Delta, i *job.Info) (*store.Delta, *job.Info) {
	p, ok := i.Port(port.Output, "out")
	if !ok || len(p.Edges) != 1 || len(p.Edges[0]) != 1 || len(d.Writes)+len(d.Closes) == 0 || w.draw.IntN(8) == 0 {
		return nil, nil
	}
	next := w.info(p.Edges[0][0].Job)
	if next.Status != statemachine.Suspended && w.draw.IntN(6) > 0 {
		return nil, nil
	}
	box, _ := next.Port(port.Input, "in")
	sent := 0
	for _, wr := range d.Writes {
		sent += len(wr.Items)
	}
	touched, _ := w.Redis.HGet(w.Context(), w.key(next.ID), "touched").Int64()
	sources, _ := w.Redis.HGet(w.Context(), w.key(next.ID), "n.i.in").Int64()
	s := &store.Speculation{
		Version: next.Version, Touched: touched, Last: w.Redis.HGet(w.Context(), w.key(next.ID), "last").Val(), Port: "in",
		Seen: int(box.Waiting) + sent, Limit: []int{1000, -1000}[w.draw.IntN(2)], Closed: len(d.Closes) > 0 && sources == 1,
	}
	switch w.draw.IntN(30) {
	case 0:
		s.Version++
	case 1:
		s.Touched++
	case 2:
		s.Seen++
	case 3:
		s.Closed = !s.Closed
	}
	w.token++
	n := &store.Delta{Job: next.ID, Token: fmt.Sprintf("guess%d", w.token), Speculation: s}
	w.did(n, next)
	n.Failure, n.Reason = nil, ""
	if n.Outcome == statemachine.Fail {
		n.Outcome = statemachine.Suspend
	}
	if taken := s.Seen - w.draw.IntN(9)/8; taken > 0 {
		n.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: box.Total, N: taken}}
	}
	return n, next
}

// end commits one of the runs that go on, with speculative ones behind it.
func (w *twins) end() {
	if len(w.held) == 0 {
		return
	}
	at := w.draw.IntN(len(w.held))
	s := w.held[at]
	w.held = append(w.held[:at], w.held[at+1:]...)
	lead := &store.Delta{Job: s.Info.ID, Token: s.Token}
	w.did(lead, &s.Info)
	for _, box := range s.In {
		if n := w.draw.IntN(box.Len + 1); n > 0 {
			lead.Takes = append(lead.Takes, store.Take{Dir: port.Input, Port: box.Port, Head: box.Head, N: n})
		}
	}
	tx := store.Tx{}
	for d, i := lead, &s.Info; d != nil && len(tx.Deltas) < 4; d, i = w.behind(d, i) {
		tx.Deltas = append(tx.Deltas, *d)
	}
	var said [2]string
	for n, e := range w.both {
		for range 1 + w.token%2 { // once more, as if the reply was lost
			res, err := e.store.Commit(w.Context(), []store.Tx{tx})
			w.Check(err)
			said[n] += fmt.Sprintf("%+v\n", res)
		}
	}
	w.equal("results", said[0], said[1])
}

// outside does something from outside of runs.
func (w *twins) outside() {
	id, what := w.ids[w.draw.IntN(len(w.ids))], w.draw.IntN(12)
	var said [2]string
	for n, e := range w.both {
		var err error
		switch what {
		case 0:
			err = e.store.Apply(w.Context(), id, statemachine.Run)
		case 1:
			err = e.store.Apply(w.Context(), id, statemachine.Retry)
		case 2:
			err = e.store.SetState(w.Context(), id, map[string]json.RawMessage{"o": json.RawMessage("1")}, nil)
		default:
			err = e.store.Write(w.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: numbers(1, 1+what%3)})
		}
		said[n] = fmt.Sprint(err)
	}
	w.equal("what was said from outside", said[0], said[1])
}

var rates = regexp.MustCompile(`"rate":"[^"]*"`)

// minute is the minute of the clock: if it ends between what one of the twins does and the other one, they count runs of different minutes.
func minute() int64 { return time.Now().Unix() / 60 }

var timed = regexp.MustCompile(`\{T [^}]*\}`)

// seen is what lies in a namespace, without its name and moments, and without definitions, once no tree is a record any more.
func (w *twins) seen(e *env) string {
	var all strings.Builder
	text := e.dump()
	for k := range text {
		if _, root, is := strings.Cut(k, "}:r:"); is {
			_ = e.store.ClosePort(w.Context(), job.ID(root), port.Input, "none") // there is no such port
			text = nil
		}
	}
	if text == nil {
		text = e.dump()
	}
	for _, k := range slices.Sorted(maps.Keys(text)) {
		if strings.HasSuffix(k, ":plain") || strings.Contains(k, "}:d:") || strings.Contains(k, ":pops:") || strings.Contains(k, ":waits:") || strings.HasSuffix(k, ":sweeper") {
			continue
		}
		still := minutes.ReplaceAllString(moments.ReplaceAllString(strings.ReplaceAll(text[k], e.Namespace, "NS"), "T"), "")
		if minute() != w.began {
			still = rates.ReplaceAllString(still, "")
		}
		if at := timed.FindAllString(still, -1); len(at) > 0 { // in the order of moments
			slices.Sort(at)
			still = strings.Join(at, " ")
		}
		fmt.Fprintf(&all, "%s = %s\n", strings.ReplaceAll(k, e.Namespace, "NS"), still)
	}
	return all.String()
}

// Whatever plain.lua does is what tx.lua would have done.
func TestPlainTransactions(t *testing.T) {
	t.Parallel()
	rows, runs := int64(0), int64(0)
	for seed := range uint64(30) {
		w := newTwins(t, seed)
		for range 60 {
			switch w.draw.IntN(6) {
			case 0:
				w.grow()
			case 1:
				w.outside()
			case 2, 3:
				w.pop()
			default:
				w.end()
				if a, b := w.seen(w.both[0]), w.seen(w.both[1]); a != b {
					t.Fatalf("seed %d: %s", seed, firstDifference(a, b))
				}
			}
		}
		done := strings.TrimSuffix(w.both[0].due(w.ids[0]), "due") + "plain"
		for field, n := range map[string]*int64{"rows": &rows, "runs": &runs} {
			more, _ := w.both[0].Redis.HGet(t.Context(), done, field).Int64() // there may be none
			*n += more
		}
	}
	if t.Logf("plain were %d transactions of one run, and %d of several", runs, rows); runs < 100 || rows < 15 {
		t.Error("this test looks at little")
	}
}

// firstDifference is the first line in which two texts differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for n := range min(len(x), len(y)) {
		if x[n] != y[n] {
			return fmt.Sprintf("plain.lua leaves\n%s\nand tx.lua\n%s", x[n], y[n])
		}
	}
	return fmt.Sprintf("plain.lua leaves %d keys, tx.lua %d", len(x), len(y))
}
