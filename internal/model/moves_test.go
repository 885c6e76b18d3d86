package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// scope is what is explored: a graph of jobs, what they do, who acts from outside, and how many faults there are.
type scope struct {
	name    string
	many    bool       // there are too many orders for each run of the tests
	nodes   []job.Node // the graph's own first; Args are what a job does
	engines int
	chain   bool   // jobs that sleep run on what is not committed yet
	hashes  bool   // the tree is no record
	batch   int    // messages that come with a snapshot
	outside []call // what somebody does from outside, one after the other
	faults  budget
}

// proc is a process: what it has sent and not heard of.
type proc struct {
	Call  *call
	Next  int // of what is done from outside
	Acked int // messages from outside that it knows to be there
	// Asleep are jobs that it believes to sleep, for chains.
	Asleep map[job.ID]*seen `json:",omitempty"`
}

// call is a command to Redis.
type call struct {
	Kind   string
	Token  string     `json:",omitempty"`
	Txs    []store.Tx `json:",omitempty"`
	Runs   []*seen    `json:",omitempty"` // of which the transaction tells
	Number int        `json:",omitempty"` // of the job that it is about
	Item   int        `json:",omitempty"` // to be written

	// began is the call that began the run which this one ends, and what Redis held then: a store remembers of a run that it began
	// what its commit may need.
	began *call
	held  []any
}

const (
	dueKey = "weir:{explore:0}:due"
	root   = job.ID("01900000-0000-7000-8000-000000000000")
	other  = job.ID("01900000-0000-7000-8000-000000000001")
)

// begin is the first world.
func (l *lab) begin(ctx context.Context) (*world, error) {
	plan := &job.Plan{Nodes: l.scope.nodes}
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	for _, id := range []job.ID{other, root} { // the first tree of a definition is no record
		if err := l.put(ctx, &world{dump: l.empty}); err != nil {
			return nil, err
		}
		if _, err := l.stores[0].Create(ctx, id, plan, ""); err != nil {
			return nil, err
		}
	}
	if l.scope.hashes {
		if err := l.stores[0].ClosePort(ctx, root, port.Input, "none"); !errors.Is(err, job.ErrPort) {
			return nil, fmt.Errorf("closing a port that is not there: %w", err)
		}
	}
	w := &world{Procs: make([]proc, l.scope.engines+1), Left: l.scope.faults}
	return w, l.take(ctx, w)
}

// clone is a copy that may be changed.
func (w *world) clone() *world {
	c := *w
	c.Procs = slices.Clone(w.Procs)
	for i := range c.Procs {
		c.Procs[i].Asleep = maps.Clone(c.Procs[i].Asleep)
	}
	return &c
}

// look checks a world, and returns all that may happen in it.
func (l *lab) look(ctx context.Context, w *world) (r looked, err error) {
	if err := l.put(ctx, w); err != nil {
		return r, err
	}
	tree, err := l.stores[0].Tree(ctx, root)
	if err != nil {
		return r, err
	}
	if r.wrong, r.end, err = l.check(ctx, w, tree); r.wrong != "" || err != nil {
		return r, err
	}
	var ended []int
	for n, i := range tree {
		if i.Status == statemachine.Terminated {
			ended = append(ended, n)
		}
	}
	add := func(label string, fault bool, to *world) {
		to.Ended = ended
		r.moves = append(r.moves, move{label, fault, to})
	}
	for p := range w.Procs {
		if err := l.act(ctx, w, p, add); err != nil {
			return r, err
		}
	}
	if w.Copy != nil {
		if err := l.arrives(ctx, w, add); err != nil {
			return r, err
		}
	}
	w.restarts(add)
	return r, l.leases(ctx, w, tree, add)
}

// restarts is that Redis writes what it has to its disk, and that it comes back with that.
func (w *world) restarts(add adding) {
	switch n := w.clone(); {
	case w.Left.Restart == 0:
	case w.saved == nil:
		n.saved, n.savedText = w.dump, w.text
		add("Redis has this on its disk", true, n)
	default:
		n.dump, n.text, n.saved, n.savedText = w.saved, w.savedText, nil, ""
		n.Left.Restart--
		add("Redis restarts, and has lost what came after that", true, n)
		n.Ended = nil
	}
}

type adding func(label string, fault bool, to *world)

// act is what one process may do.
func (l *lab) act(ctx context.Context, w *world, p int, add adding) error {
	me := &w.Procs[p]
	who := fmt.Sprintf("E%d", p)
	if p == l.scope.engines {
		who = "client"
	}
	if me.Call == nil {
		n := w.clone()
		mine := &n.Procs[p]
		if p < l.scope.engines {
			mine.Call = &call{Kind: "pop", Token: newToken()}
			late(n, p, who, add)
			return l.carry(ctx, n, p, who, true, add) // whether there is anything is seen by trying
		}
		if me.Next < len(l.scope.outside) {
			c := l.scope.outside[me.Next]
			mine.Call = &c
			mine.Next++
			c.Token = newToken()
			add(who+" sends "+c.Kind, false, n)
		}
		return nil
	}
	if w.Left.Crash > 0 && p < l.scope.engines {
		n := w.clone()
		n.Left.Crash--
		n.Procs[p] = proc{}
		add(who+" dies", true, n)
	}
	late(w, p, who, add)
	return l.carry(ctx, w, p, who, false, add)
}

// late leaves a copy of what a process sends on its way.
func late(w *world, p int, who string, add adding) {
	if w.Left.Late == 0 || w.Copy != nil {
		return
	}
	n := w.clone()
	n.Left.Late--
	n.Copy, n.Who = n.Procs[p].Call, p
	add(who+"'s connection breaks, and a copy of its "+n.Copy.String()+" is still in it", true, n)
}

// carry has Redis carry out the call of a process, and the process hear of it, or not.
func (l *lab) carry(ctx context.Context, w *world, p int, who string, tried bool, add adding) error {
	c := w.Procs[p].Call
	re, err := l.execute(ctx, w, p, c)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", who, c, err)
	}
	if tried && len(re.begun) == 0 {
		return nil // it goes on waiting
	}
	after := w.clone()
	if err := l.take(ctx, after); err != nil {
		return err
	}
	label := fmt.Sprintf("%s: %s: %s", who, c, re)
	for i, next := range l.hear(after.Procs[p], p, c, re) {
		n := after.clone()
		if next.Call != nil {
			next.Call.began, next.Call.held = c, w.dump
		}
		n.Procs[p] = next
		say := label
		if i > 0 {
			say += " (otherwise)"
		}
		add(say, false, n)
	}
	if w.Left.Lost > 0 {
		n := after.clone()
		n.Left.Lost--
		add(label+", which is lost: it sends again", true, n)
	}
	if w.Left.Crash > 0 && p < l.scope.engines {
		n := after.clone()
		n.Left.Crash--
		n.Procs[p] = proc{}
		add(label+", and dies", true, n)
	}
	return nil
}

// arrives is what becomes of a copy of a call that is on its way.
func (l *lab) arrives(ctx context.Context, w *world, add adding) error {
	gone := w.clone()
	gone.Copy = nil
	add("the copy is gone", false, gone)
	re, err := l.execute(ctx, w, w.Who, w.Copy)
	if err != nil {
		return fmt.Errorf("the copy of %s: %w", w.Copy, err)
	}
	n := gone.clone()
	add(fmt.Sprintf("the copy arrives: %s: %s", w.Copy, re), false, n)
	return l.take(ctx, n)
}

// alive are the tokens that processes know.
func (w *world) alive() map[string]bool {
	alive := map[string]bool{}
	for p := range w.Procs {
		if c := w.Procs[p].Call; c != nil {
			alive[c.Token] = true
			for _, tx := range c.Txs {
				for _, d := range tx.Deltas {
					alive[d.Token] = true
				}
			}
		}
	}
	return alive
}

// leases end of runs that nobody goes on with, or seems to.
func (l *lab) leases(ctx context.Context, w *world, tree []*job.Info, add adding) error {
	alive := w.alive()
	if err := l.put(ctx, w); err != nil {
		return err
	}
	for _, i := range tree {
		due, err := l.redis.ZScore(ctx, dueKey, string(i.ID)).Result()
		if i.Token == "" || err != nil {
			continue
		}
		lives := alive[i.Token]
		if lives && w.Left.Zombie == 0 {
			continue
		}
		if err := l.put(ctx, w); err != nil {
			return err
		}
		over := time.UnixMilli(int64(due)).Add(time.Second)
		for _, o := range tree { // which goes on
			if o.ID != i.ID && o.Token != "" && alive[o.Token] {
				if err := l.stores[0].Refresh(ctx, o.ID, o.Token, over.Add(time.Hour).Sub(time.Unix(theClock, 0)), nil); err != nil {
					return err
				}
			}
		}
		n := w.clone()
		if lives {
			n.Left.Zombie--
		}
		l.redis.Set(ctx, "clock", over.Unix(), 0)
		_, err = l.stores[0].Sweep(ctx)
		l.redis.Del(ctx, "clock")
		if err != nil {
			return err
		}
		if err := l.take(ctx, n); err != nil {
			return err
		}
		if n.text == w.text {
			return fmt.Errorf("the lease of job %d was over, and nothing happened", i.ID.Number())
		}
		add(fmt.Sprintf("the lease of %s is over", i.Name), lives, n)
	}
	return nil
}

// heard is what a call came to.
type heard struct {
	results []store.Result
	begun   []*store.Snapshot
	refused error
}

// execute carries out a call in the state of a world.
func (l *lab) execute(ctx context.Context, w *world, p int, c *call) (re heard, err error) {
	if err := l.remember(ctx, p, c); err != nil {
		return re, err
	}
	if err := l.put(ctx, w); err != nil {
		return re, err
	}
	re, err = l.send(ctx, p, c)
	for _, r := range re.results {
		if r.Refused != nil && !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(r.Refused, e) }) {
			err = errors.Join(err, r.Refused)
		}
	}
	return re, err
}

// remember has the store of a process know what it knew when it first sent a call.
func (l *lab) remember(ctx context.Context, p int, c *call) error {
	record := func(name any) bool { return strings.Contains(fmt.Sprint(name), "}:r:") }
	if c.began == nil || !slices.ContainsFunc(c.held, record) {
		return nil
	}
	if err := l.remember(ctx, p, c.began); err != nil {
		return err
	}
	if err := l.put(ctx, &world{dump: c.held}); err != nil {
		return err
	}
	_, err := l.send(ctx, p, c.began)
	return err
}

// expected are the reasons for which a commit may not hold here.
var expected = []error{job.ErrFenced, job.ErrMoved, job.ErrStatus}

// send has the store of a process carry out a call.
func (l *lab) send(ctx context.Context, p int, c *call) (re heard, err error) {
	s := l.stores[p]
	b := store.Begin{Token: c.Token, Limits: map[string]int{"": -1000}, Lease: time.Hour, Batch: max(l.scope.batch, 1), Bytes: 1 << 20}
	if l.scope.chain {
		b.Row = 2
	}
	switch c.Kind {
	case "pop":
		re.begun, err = s.Pop(ctx, job.DefaultQueue, 0, -1, b, []string{"T"})
	case "step":
		re.results, re.begun, err = s.Step(ctx, c.Txs, b, []string{"T"})
	case "write":
		re.refused = s.Write(ctx, root.Nth(c.Number), store.Write{Dir: port.Input, Port: "in", Items: []json.RawMessage{json.RawMessage(fmt.Sprint(c.Item))}, Once: c.Token})
	case "terminate":
		re.refused = s.Terminate(ctx, root.Nth(c.Number))
	default:
		err = fmt.Errorf("no call %q", c.Kind)
	}
	return re, err
}

// tokens counts them: each is used once in all worlds, as stores remember some.
var tokens atomic.Int64

func newToken() string { return fmt.Sprintf("token-%d-", tokens.Add(1)) }

func (c *call) String() string {
	var b strings.Builder
	b.WriteString(c.Kind)
	for _, tx := range c.Txs {
		for _, d := range tx.Deltas {
			fmt.Fprintf(&b, " [%d %s]", d.Job.Number(), d.Outcome)
		}
	}
	return b.String()
}

func (re heard) String() string {
	var all []string
	for _, r := range re.results {
		if r.Refused != nil {
			all = append(all, fmt.Sprintf("%d hold, %v", r.Applied, r.Refused))
		} else {
			all = append(all, "ok")
		}
	}
	for _, s := range re.begun {
		all = append(all, "begins "+s.Info.Name)
	}
	if re.refused != nil {
		all = append(all, re.refused.Error())
	}
	if len(all) == 0 {
		return "ok"
	}
	return strings.Join(all, ", ")
}
