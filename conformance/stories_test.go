package conformance_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// Fib writes the N-th Fibonacci number. It leaves the work to two children.
type Fib struct {
	N     int
	Pause time.Duration
	Out   port.Out[int]
}

// Run implements worker.Worker.
func (f *Fib) Run(ctx context.Context, run *worker.Run) error {
	select {
	case <-time.After(f.Pause):
	case <-ctx.Done():
	}
	if f.N < 2 {
		return f.Out.Write(f.N)
	}
	var done []*worker.Child
	for _, n := range []int{f.N - 1, f.N - 2} {
		name := fmt.Sprint("fib", n)
		c, err := run.Child(name)
		if errors.Is(err, job.ErrNotFound) {
			_, err = run.Spawn(name, job.Single(&Fib{N: n, Pause: f.Pause}, ""))
			c = nil
		}
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		info, err := c.Info()
		if err != nil {
			return err
		}
		if info.Status == statemachine.Completed {
			done = append(done, c)
		}
	}
	if len(done) < 2 {
		return worker.ErrSuspend
	}
	sum := 0
	for _, c := range done {
		var v int
		if ok, err := c.Read("out", &v); err != nil {
			return err
		} else if !ok {
			return nil // an earlier run has added them
		}
		sum += v
	}
	return f.Out.Write(sum)
}

// Flow has a child add 5 and 6 and passes on what it answers.
type Flow struct {
	Pause time.Duration
	Out   port.Out[int]
}

// Run implements worker.Worker.
func (f *Flow) Run(_ context.Context, run *worker.Run) error {
	c, err := run.Child("sum")
	if errors.Is(err, job.ErrNotFound) {
		if c, err = run.Spawn("sum", job.Single(&Summer{Pause: f.Pause}, "")); err != nil {
			return err
		}
		return errors.Join(c.Write("in", 5), c.Write("in", 6), c.Write("ready", true), worker.ErrSuspend)
	}
	if err != nil {
		return err
	}
	var v int
	ok, err := c.Read("sum", &v)
	switch {
	case err != nil:
		return err
	case ok:
		return f.Out.Write(v)
	}
	info, err := c.Info()
	if err == nil && info.Status != statemachine.Completed {
		return worker.ErrSuspend
	}
	return err
}

// Summer adds what it is sent until it is told that all is there.
type Summer struct {
	Pause time.Duration
	In    port.In[int]
	Ready port.In[bool]
	Sum   port.Out[int]
}

// Run implements worker.Worker.
func (s *Summer) Run(ctx context.Context, _ *worker.Run) error {
	select {
	case <-time.After(s.Pause):
	case <-ctx.Done():
	}
	if _, ready, err := s.Ready.Read(); err != nil || !ready {
		return errors.Join(err, worker.ErrSuspend)
	}
	sum := 0
	for n, err := range s.In.All() {
		if err != nil {
			return err
		}
		sum += n
	}
	return s.Sum.Write(sum)
}

// over waits until a whole tree of that many jobs is completed.
func (e *bench) over(h *client.Handle, jobs int) {
	e.Helper()
	var left string
	defer func() {
		if left != "" {
			e.Log(left)
		}
	}()
	e.Until("all jobs are completed", func() bool {
		infos, err := h.Tree(e.Ctx)
		e.Check(err)
		left = ""
		for _, i := range infos {
			if i.Status != statemachine.Completed {
				left += fmt.Sprintf("%+v\n", *i)
			}
		}
		return left == "" && len(infos) == jobs
	})
}

// removed terminates and deletes a whole tree, and wants nothing of it to be left.
func (e *bench) removed(h *client.Handle) {
	e.Helper()
	e.refused(h.Delete(e.Ctx), job.ErrStatus)
	e.Check(h.TerminateAll(e.Ctx))
	e.Until("all jobs are terminated", func() bool { ended, err := h.Ended(e.Ctx); e.Check(err); return ended })
	e.Check(h.Delete(e.Ctx))
	e.Until("nothing is left", func() bool { return len(e.keysOf(h)) == 0 })
}

// size is what a story of Fib is about; the scripts of miniredis are slow.
func (e *bench) size() (n, answer, jobs int) {
	if strings.HasSuffix(e.Name(), "miniredis") {
		return 8, 21, 67
	}
	return 12, 144, 465
}

func TestY1Fibonacci(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Fib{})
		n, answer, jobs := e.size()
		h := e.Start(job.Single(&Fib{N: n}, ""))
		e.over(h, jobs)
		e.empties(h, port.Output, "out", fmt.Sprint(answer))
		e.removed(h)
	})
}

func TestY2SumFlow(t *testing.T) {
	onEach(t, func(e *bench) {
		e.serve(&Flow{}, &Summer{})
		h := e.Start(job.Single(&Flow{}, ""))
		e.over(h, 2)
		e.empties(h, port.Output, "out", "11")
		e.removed(h)
	})
}

// The environment of a worker process.
const (
	processURL       = "WEIR_CONFORMANCE_URL"
	processNamespace = "WEIR_CONFORMANCE_NAMESPACE"
)

func storytellers() []worker.Worker { return []worker.Worker{&Fib{}, &Flow{}, &Summer{}} }

// TestWorkerProcess is no test but a worker process of TestY3Kills. It serves until it is
// killed, or its standard input ends because the test did.
func TestWorkerProcess(t *testing.T) {
	url := os.Getenv(processURL)
	if url == "" {
		return // a run of the tests: there is nothing to test here
	}
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			continue
		}
		os.Exit(1)
	}()
	s, err := redisstore.Open(t.Context(), redisstore.Config{URL: url, Namespace: os.Getenv(processNamespace)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := worker.New(worker.Config{
		Store: s, Workers: storytellers(), Concurrency: 4, Lease: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// process starts a worker process and returns what kills it.
func (e *bench) process() (kill func()) {
	e.Helper()
	exe, err := os.Executable()
	e.Check(err)
	cmd := exec.Command(exe, "-test.run=^TestWorkerProcess$")
	cmd.Env = append(os.Environ(), processURL+"="+e.URL, processNamespace+"="+e.Namespace)
	_, err = cmd.StdinPipe() // a process ends when this does
	e.Check(err)
	e.Check(cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed on purpose: the status says nothing
	}
	e.Cleanup(kill)
	return kill
}

func TestY3Kills(t *testing.T) {
	t.Parallel()
	e := &bench{newEnv(t, redistest.SharedRedis(t))}
	fib := e.Start(job.Single(&Fib{N: 10, Pause: 20 * time.Millisecond}, ""))
	var flows []*client.Handle
	for range 10 {
		flows = append(flows, e.Start(job.Single(&Flow{Pause: 100 * time.Millisecond}, "")))
	}
	settled := func() bool { return e.Info(fib).Status == statemachine.Completed }
	kills := []func(){e.process(), e.process(), e.process()}
	n := 0
	for tick := time.NewTicker(200 * time.Millisecond); n < 25 && !settled(); n++ {
		<-tick.C
		i := rand.IntN(len(kills))
		kills[i]()
		kills[i] = e.process()
	}
	e.Logf("%d processes were killed", n)
	if n < 3 {
		e.Error("the story was over too early to mean anything")
	}
	e.over(fib, 177)
	e.empties(fib, port.Output, "out", "55")
	for _, h := range flows {
		e.over(h, 2)
		e.empties(h, port.Output, "out", "11")
		if fs, err := h.Failures(e.Ctx); err != nil || len(fs) > 0 {
			e.Errorf("failures %v, %v", fs, err)
		}
	}
}
