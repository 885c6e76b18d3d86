package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// Num is a message. Each port that writes them counts them.
type Num struct {
	Seq int64 `json:"seq"` // 1 for the first message of the port that wrote it
	Key int64 `json:"key,omitempty"`
	Val int64 `json:"val"`
}

// pure is embedded by workers that have no side effects.
type pure struct{}

func (pure) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// dice decide what the workers of an engine do, without a bearing on what comes out. They
// are safe for concurrent use; nil dice always choose the most.
type dice struct {
	mu           sync.Mutex
	rng          *rand.Rand
	pollInterval time.Duration // runs take up to so long
}

func newDice(seed uint64) *dice { return &dice{rng: rand.New(rand.NewPCG(seed, 2026))} }

// upTo is a number from 1 to n.
func (d *dice) upTo(n int) int {
	if d == nil || n < 1 {
		return n
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return 1 + d.rng.IntN(n)
}

// one is true once in n times.
func (d *dice) one(n int) bool { return d != nil && d.upTo(n) == 1 }

// sleep takes a while.
func (d *dice) sleep() {
	if d != nil && d.pollInterval > 0 {
		time.Sleep(time.Duration(d.upTo(int(d.pollInterval))))
	}
}

// count adds one to a number in the state.
func count(run *worker.Run, key string) (n int64, err error) {
	if _, err := run.State().Get(key, &n); err != nil {
		return 0, err
	}
	n++
	return n, run.State().Set(key, n)
}

// take reads a message, and fails unless it is the one that follows the last one.
func take(run *worker.Run, in port.In[Num]) (Num, error) {
	m, ok, err := in.Read()
	if err != nil || !ok {
		return m, errors.Join(err, fmt.Errorf("port %s: there is a message: %v", in.Name(), ok))
	}
	if want, err := count(run, "in "+in.Name()); err != nil || m.Seq != want {
		return m, errors.Join(err, fmt.Errorf("port %s: message %d came at place %d", in.Name(), m.Seq, want))
	}
	return m, nil
}

// give numbers a message and writes it.
func give(run *worker.Run, out port.Out[Num], m Num) (err error) {
	if m.Seq, err = count(run, "out "+out.Name()); err != nil {
		return err
	}
	return out.Write(m)
}

// Count writes the numbers 1 to N, in runs of any size.
type Count struct {
	pure
	N    int
	Keys int64 // if not 0 they have that many keys, and each key goes its own way
	Out  port.Out[Num]
	dice *dice
}

func (c *Count) Run(_ context.Context, run *worker.Run) error {
	c.dice.sleep()
	for {
		n, err := count(run, "count")
		if err != nil {
			return err
		}
		if n > int64(c.N) {
			return nil
		}
		if c.Keys == 0 {
			err = give(run, c.Out, Num{Val: n})
		} else {
			key := n * n % c.Keys
			err = c.Out.WriteKey(fmt.Sprint(key), Num{Key: key, Val: n})
		}
		if err == nil && c.dice.one(4) {
			err = run.Checkpoint()
		}
		if err == nil && c.dice.one(8) {
			err = worker.ErrAgain
		}
		if err != nil {
			return err
		}
	}
}

// Calc writes Mul times what it reads plus Add.
type Calc struct {
	pure
	Mul, Add int64
	In       port.In[Num]
	Out      port.Out[Num]
	dice     *dice
}

func (c *Calc) Run(_ context.Context, run *worker.Run) error {
	c.dice.sleep()
	for range c.dice.upTo(c.In.Len()) {
		m, err := take(run, c.In)
		if err == nil {
			err = give(run, c.Out, Num{Val: c.Mul*m.Val + c.Add})
		}
		if err == nil && c.dice.one(10) {
			err = run.Checkpoint()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Zip joins the messages of two ports one by one.
type Zip struct {
	pure
	A, B port.In[Num]
	Out  port.Out[Num]
	dice *dice
}

func (z *Zip) Run(_ context.Context, run *worker.Run) error {
	z.dice.sleep()
	for range z.dice.upTo(min(z.A.Len(), z.B.Len())) {
		a, err := take(run, z.A)
		if err != nil {
			return err
		}
		b, err := take(run, z.B)
		if err != nil {
			return err
		}
		if err := give(run, z.Out, Num{Val: 31*a.Val + b.Val}); err != nil {
			return err
		}
	}
	if z.A.Done() && z.B.Len() > 0 || z.B.Done() && z.A.Len() > 0 {
		return errors.New("one port ended before the other")
	}
	return nil
}

// Fold writes the sums of what it has read so far, for each key.
type Fold struct {
	pure
	In   port.In[Num]
	Out  port.Out[Num]
	dice *dice
}

func (f *Fold) Run(_ context.Context, run *worker.Run) error {
	f.dice.sleep()
	for range f.dice.upTo(f.In.Len()) {
		m, _, err := f.In.Read()
		if err != nil {
			return err
		}
		var sum int64
		at := fmt.Sprint("sum ", m.Key)
		if _, err := run.State().Get(at, &sum); err != nil {
			return err
		}
		if err := run.State().Set(at, sum*3+m.Val); err != nil {
			return err
		}
		if err := f.Out.Write(Num{Key: m.Key, Val: sum*3 + m.Val}); err != nil {
			return err
		}
	}
	return nil
}

// Turn sends each message round the loop as many times as its value says, up to three, and
// takes the next one when it has come out.
type Turn struct {
	pure
	In, Back   port.In[Num]
	Again, Out port.Out[Num]
	dice       *dice
}

func (t *Turn) Run(_ context.Context, run *worker.Run) error {
	t.dice.sleep()
	for range t.dice.upTo(3) {
		var left int64
		if _, err := run.State().Get("left", &left); err != nil {
			return err
		}
		in := t.In
		if left > 0 {
			in = t.Back
		}
		if in.Len() == 0 {
			break
		}
		m, err := take(run, in)
		if err != nil {
			return err
		}
		if left--; left < 0 {
			left = m.Val % 4
		}
		out := t.Out
		if left > 0 {
			out = t.Again
		}
		if err := give(run, out, Num{Val: m.Val}); err != nil {
			return err
		}
		if err := run.State().Set("left", left); err != nil {
			return err
		}
	}
	return nil
}

// Twin is a composite: a diamond of two calculations.
type Twin struct {
	By  int64
	In  port.In[Num]
	Out port.Out[Num]
}

func (c *Twin) Build(g *graph.Graph) {
	a := graph.Add(g, "a", &Calc{Mul: c.By})
	b := graph.Add(g, "b", &Calc{Mul: 1, Add: c.By})
	z := graph.Add(g, "z", &Zip{})
	graph.BindInput(c.In, a.In)
	graph.BindInput(c.In, b.In, graph.Limit(3))
	graph.Connect(a.Out, z.A)
	graph.Connect(b.Out, z.B)
	graph.BindOutput(z.Out, c.Out)
}

// Row is a composite of composites, one behind the other.
type Row struct {
	In  port.In[Num]
	Out port.Out[Num]
}

func (c *Row) Build(g *graph.Graph) {
	first := graph.Add(g, "first", &Twin{By: 2})
	second := graph.Add(g, "second", &Twin{By: 5})
	graph.BindInput(c.In, first.In)
	graph.Connect(first.Out, second.In, graph.Limit(2))
	graph.BindOutput(second.Out, c.Out)
}

// gamblers are the workers of all these graphs, which do what the dice say.
func gamblers(d *dice) []worker.Worker {
	return []worker.Worker{&Count{dice: d}, &Calc{dice: d}, &Zip{dice: d}, &Fold{dice: d}, &Turn{dice: d}}
}

// flaky is a store that, as the dice will, sends a run back, stores a commit twice, dies
// before a commit, or loses the answer to one.
type flaky struct {
	*redisstore.Store
	dice *dice
	dies int // one in that many commits dies; 0 means none
	died *atomic.Int64
}

// dead tells whether the process is to die before it commits.
func (f flaky) dead(d *store.Delta) bool {
	if f.dies == 0 || d.Handed || !f.dice.one(f.dies) {
		return false
	}
	f.died.Add(1)
	return true
}

var errLost = errors.New("the answer was lost")

// Commit implements store.Runs.
func (f flaky) Commit(ctx context.Context, txs []store.Tx) ([]store.Result, error) {
	if txs[0].Deltas[0].Handed {
		return f.Store.Commit(ctx, txs)
	}
	if f.dead(&txs[0].Deltas[0]) {
		return slices.Repeat([]store.Result{{Refused: job.ErrFenced}}, len(txs)), nil
	}
	if f.dice.one(12) {
		return slices.Repeat([]store.Result{{Refused: job.ErrMoved}}, len(txs)), nil
	}
	res, err := f.Store.Commit(ctx, txs)
	if err == nil && f.dice.one(12) {
		return f.Store.Commit(ctx, txs)
	}
	return res, err
}

// Step implements store.Runs.
func (f flaky) Step(ctx context.Context, txs []store.Tx, b store.Begin, types []string) ([]store.Result, []*store.Snapshot, error) {
	if f.dead(&txs[0].Deltas[0]) {
		return slices.Repeat([]store.Result{{Refused: job.ErrFenced}}, len(txs)), nil, nil
	}
	res, next, err := f.Store.Step(ctx, txs, b, types)
	if err == nil && f.dice.one(12) {
		return nil, nil, errLost
	}
	return res, next, err
}
