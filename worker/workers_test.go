package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

// code is what one test lets a worker do.
type code func(ctx context.Context, run *worker.Run, w *Call) error

var (
	codes    sync.Map // by key
	codeKeys atomic.Int64
)

// Call is a worker whose code a test gives: engines make workers from their parameters,
// so a parameter says which code.
type Call struct {
	Key  string
	In   port.In[int]
	Text port.In[string]
	Size port.In[int] `port:"size,default=640"`
	Out  port.Out[int]
	More port.Out[string]
}

// Run implements worker.Worker.
func (w *Call) Run(ctx context.Context, run *worker.Run) error {
	fn, ok := codes.Load(w.Key)
	if !ok {
		return errors.New("the test is over")
	}
	return fn.(code)(ctx, run, w)
}

// WorkerOptions implements worker.Configured: code of tests bears to be run speculatively.
func (w *Call) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// pure is embedded by workers that have no side effects.
type pure struct{}

// WorkerOptions implements worker.Configured.
func (pure) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// keep makes code known until the test ends.
func keep(t testing.TB, fn code) string {
	key := strconv.FormatInt(codeKeys.Add(1), 10)
	codes.Store(key, fn)
	t.Cleanup(func() { codes.Delete(key) })
	return key
}

func call(t testing.TB, fn code) *Call { return &Call{Key: keep(t, fn)} }

// passing counts a run, does something before, if that is not nil, and then passes one message on.
func passing(runs *atomic.Int64, before code) code {
	return func(ctx context.Context, run *worker.Run, w *Call) error {
		runs.Add(1)
		if before != nil {
			if err := before(ctx, run, w); err != nil {
				return err
			}
		}
		v, ok, err := w.In.Read()
		if !ok || err != nil {
			return err
		}
		return w.Out.Write(v)
	}
}

// Tried is Call with three tries.
type Tried struct{ Call }

// WorkerOptions implements worker.Configured.
func (w *Tried) WorkerOptions() worker.Options {
	return worker.Options{Tries: 3, Backoff: worker.ExponentialBackoff(time.Millisecond, time.Hour), Pure: true}
}

// Timed is Call with little time.
type Timed struct{ Call }

// WorkerOptions implements worker.Configured.
func (w *Timed) WorkerOptions() worker.Options {
	return worker.Options{Timeout: 50 * time.Millisecond, Pure: true}
}

// Patient is Call that ends its runs itself.
type Patient struct{ Call }

// WorkerOptions implements worker.Configured.
func (w *Patient) WorkerOptions() worker.Options {
	return worker.Options{Timeout: 50 * time.Millisecond, OwnTimeout: true}
}

// Ending is Call with a Shutdown.
type Ending struct {
	Call
	End string
}

// Shutdown implements worker.Shutdowner.
func (w *Ending) Shutdown(ctx context.Context, run *worker.Run) error {
	fn, ok := codes.Load(w.End)
	if !ok {
		return errors.New("the test is over")
	}
	return fn.(code)(ctx, run, &w.Call)
}

// Count writes the numbers from 1 to To.
type Count struct {
	pure
	To  int
	Out port.Out[int]
}

// Run implements worker.Worker.
func (w *Count) Run(context.Context, *worker.Run) error {
	for i := range w.To {
		if err := w.Out.Write(i + 1); err != nil {
			return err
		}
	}
	return nil
}

// Double writes twice what it reads. With Most it reads no more than that in one run.
type Double struct {
	pure
	Most  int
	Pause time.Duration
	In    port.In[int]
	Out   port.Out[int]
}

// Run implements worker.Worker.
func (w *Double) Run(context.Context, *worker.Run) error {
	n := 0
	for v, err := range w.In.All() {
		if err != nil {
			return err
		}
		if err := w.Out.Write(2 * v); err != nil {
			return err
		}
		if n++; n == w.Most {
			break
		}
	}
	time.Sleep(w.Pause)
	return nil
}

// Sum adds up what it reads and writes the total and the count when there is no more.
type Sum struct {
	pure
	In    port.In[int]
	Total port.Out[int]
	Items port.Out[int]
}

// Run implements worker.Worker.
func (w *Sum) Run(_ context.Context, run *worker.Run) error {
	var sum, n int
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	if _, err := run.State().Get("n", &n); err != nil {
		return err
	}
	for v, err := range w.In.All() {
		if err != nil {
			return err
		}
		sum, n = sum+v, n+1
	}
	if w.In.Done() {
		return errors.Join(w.Total.Write(sum), w.Items.Write(n))
	}
	return errors.Join(run.State().Set("sum", sum), run.State().Set("n", n))
}

// Fib writes the N-th Fibonacci number, which its children compute for it.
type Fib struct {
	pure
	N     int
	Pause time.Duration
	Out   port.Out[int]
}

// Run implements worker.Worker.
func (w *Fib) Run(_ context.Context, run *worker.Run) error {
	time.Sleep(w.Pause)
	if w.N < 2 {
		return w.Out.Write(w.N)
	}
	sum, missing := 0, false
	for i, name := range []string{"a", "b"} {
		c, err := run.Child(name)
		if errors.Is(err, job.ErrNotFound) {
			c, err = run.Spawn(name, job.Single(&Fib{N: w.N - 1 - i, Pause: w.Pause}, ""))
		}
		if err != nil {
			return err
		}
		v, ok, err := answer(run, c, "out")
		if err != nil {
			return err
		}
		sum, missing = sum+v, missing || !ok
	}
	if missing {
		return worker.ErrSuspend
	}
	return once(run, func() error { return w.Out.Write(sum) })
}

// once calls fn in the first of the job's runs that comes here: a child wakes its parent
// after each of its runs, also when it has nothing to say.
func once(run *worker.Run, fn func() error) error {
	var done bool
	if ok, err := run.State().Get("done", &done); ok || err != nil {
		return err
	}
	return errors.Join(run.State().Set("done", true), fn())
}

// answer returns what a child wrote first, which the state remembers.
func answer(run *worker.Run, c *worker.Child, out string) (v int, ok bool, err error) {
	key := string(c.ID())
	if ok, err = run.State().Get(key, &v); ok || err != nil {
		return v, ok, err
	}
	if ok, err = c.Read(out, &v); !ok || err != nil {
		return 0, false, err
	}
	return v, true, run.State().Set(key, v)
}

// SumFlow has a child add 5 and 6, and passes on what it answers.
type SumFlow struct{ Out port.Out[int] }

// Run implements worker.Worker.
func (w *SumFlow) Run(_ context.Context, run *worker.Run) error {
	c, err := run.Child("sum")
	if errors.Is(err, job.ErrNotFound) {
		if c, err = run.Spawn("sum", job.Single(&Summing{}, "")); err != nil {
			return err
		}
		if err := errors.Join(c.Write("in", 5), c.Write("in", 6), c.Write("in", "ready")); err != nil {
			return err
		}
		return worker.ErrSuspend
	}
	if err != nil {
		return err
	}
	sum, ok, err := answer(run, c, "sum")
	if err != nil {
		return err
	}
	if !ok {
		return worker.ErrSuspend
	}
	return once(run, func() error { return w.Out.Write(sum) })
}

// Summing adds up numbers until it reads "ready".
type Summing struct {
	pure
	In  port.In[json.RawMessage]
	Sum port.Out[int]
}

// Run implements worker.Worker. It reads one message a run, so the sum passes through
// the state.
func (w *Summing) Run(_ context.Context, run *worker.Run) error {
	raw, ok, err := w.In.Read()
	if err != nil {
		return err
	}
	if !ok {
		return worker.ErrSuspend
	}
	var sum, v int
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	if string(raw) == `"ready"` {
		return w.Sum.Write(sum)
	}
	if err := port.Decode(raw, &v); err != nil {
		return err
	}
	return run.State().Set("sum", sum+v)
}

// Feed writes one number.
type Feed struct {
	pure
	Value int
	Out   port.Out[int]
}

// Run implements worker.Worker.
func (w *Feed) Run(context.Context, *worker.Run) error { return w.Out.Write(w.Value) }
