package weirtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Times multiplies what it reads and counts it.
type Times struct {
	By  int
	In  port.In[int]
	Out port.Out[int]
}

// Run implements worker.Worker.
func (w *Times) Run(_ context.Context, run *worker.Run) error {
	var seen int
	if _, err := run.State().Get("seen", &seen); err != nil {
		return err
	}
	for n, err := range w.In.All() {
		if err != nil {
			return err
		}
		seen++
		if err := w.Out.Write(w.By * n); err != nil {
			return err
		}
	}
	return run.State().Set("seen", seen)
}

// Total adds up what it reads and writes it at the end.
type Total struct {
	In  port.In[int]
	Sum port.Out[int]
}

// Run implements worker.Worker.
func (w *Total) Run(_ context.Context, run *worker.Run) error {
	var sum int
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	for n, err := range w.In.All() {
		if err != nil {
			return err
		}
		sum += n
	}
	if w.In.Done() {
		return w.Sum.Write(sum)
	}
	return run.State().Set("sum", sum)
}

// Mail fails until its tries are used up, or the server is up.
type Mail struct {
	Text   port.In[string]
	Server port.In[string]
	Sent   port.Out[string]
}

// WorkerOptions implements worker.Configured.
func (*Mail) WorkerOptions() worker.Options {
	return worker.Options{Tries: 6, Backoff: worker.ExponentialBackoff(time.Minute, time.Hour)}
}

// Run implements worker.Worker.
func (w *Mail) Run(context.Context, *worker.Run) error {
	text, ok, err := w.Text.Read()
	if err != nil || !ok {
		return err
	}
	if w.Server.Len() == 0 {
		return errors.New("the server does not answer")
	}
	return w.Sent.Write(text)
}

// Restless sends itself on and on.
type Restless struct{}

// Run implements worker.Worker.
func (*Restless) Run(_ context.Context, run *worker.Run) error {
	var n int
	if _, err := run.State().Get("n", &n); err != nil {
		return err
	}
	c, err := run.Child("echo")
	if errors.Is(err, job.ErrNotFound) {
		c, err = run.Spawn("echo", job.Single(&Times{By: 1}, ""))
	}
	if err != nil {
		return err
	}
	return errors.Join(c.Write("in", n), run.State().Set("n", n+1), worker.ErrSuspend)
}

// Trace logs that it runs.
type Trace struct {
	In port.In[int]
}

// Run implements worker.Worker.
func (w *Trace) Run(_ context.Context, run *worker.Run) error {
	for _, err := range w.In.All() {
		if err != nil {
			return err
		}
	}
	return run.Log(run.Info().Name)
}

// pipeline multiplies numbers in several jobs and adds the products up.
func pipeline(instances int) *graph.Graph {
	g := graph.New("pipeline")
	times := graph.Add(g, "times", &Times{By: 10}, graph.Instances(instances))
	total := graph.Add(g, "total", &Total{})
	graph.Connect(graph.Input[int](g, "numbers"), times.In)
	graph.Connect(times.Out, total.In)
	graph.Export(g, "sum", total.Sum)
	return g
}

// stub is a test in a program without tests, or one whose failures are wanted.
type stub struct {
	cleanups []func()
	logged   strings.Builder
}

// fatal is what a stub's test ends with.
type fatal string

func (s *stub) Helper()                           {}
func (s *stub) Fatalf(format string, args ...any) { panic(fatal(fmt.Sprintf(format, args...))) }
func (s *stub) Cleanup(fn func())                 { s.cleanups = append(s.cleanups, fn) }
func (s *stub) Logf(format string, args ...any)   { fmt.Fprintf(&s.logged, format+"\n", args...) }

func (s *stub) end() {
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		fn := s.cleanups[last]
		s.cleanups = s.cleanups[:last]
		fn()
	}
}

// failing returns what the test in fn fails with.
func failing(t *testing.T, fn func(tb *stub)) (message string) {
	t.Helper()
	tb := new(stub)
	defer tb.end()
	defer func() {
		switch v := recover().(type) {
		case nil:
			t.Error("the test did not fail")
		case fatal:
			message = string(v)
		default:
			panic(v)
		}
	}()
	fn(tb)
	return ""
}
