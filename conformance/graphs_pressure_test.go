package conformance_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

const (
	fastNumbers = 100_000   // messages of the test as it always runs
	fullNumbers = 1_000_000 // with WEIR_FULL=1
	fastLimit   = 100
	mostGrowth  = 20 << 20 // bytes of Redis
)

// Fast writes the numbers from 1 to N as fast as it may.
type Fast struct {
	N   int
	Out port.Out[int]
}

func (*Fast) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

// Run commits as many messages at a time as the port takes, and is suspended when it is full.
func (f *Fast) Run(_ context.Context, run *worker.Run) error {
	var n int
	if _, err := run.State().Get("n", &n); err != nil {
		return err
	}
	for n < f.N {
		n++
		if err := f.Out.Write(n); err != nil {
			return err
		}
		if n%fastLimit > 0 {
			continue
		}
		if err := run.State().Set("n", n); err != nil {
			return err
		}
		if err := run.Checkpoint(); err != nil {
			return err
		}
	}
	return run.State().Set("n", n)
}

// Slow adds numbers up, a few a run.
type Slow struct {
	In  port.In[int]
	Sum port.Out[int]
}

func (*Slow) WorkerOptions() worker.Options { return worker.Options{Pure: true} }

func (s *Slow) Run(_ context.Context, run *worker.Run) error {
	var sum, last int
	if _, err := run.State().Get("sum", &sum); err != nil {
		return err
	}
	if _, err := run.State().Get("last", &last); err != nil {
		return err
	}
	time.Sleep(100 * time.Microsecond)
	for range fastLimit / 2 {
		n, ok, err := s.In.Read()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if n != last+1 {
			return fmt.Errorf("%d came after %d", n, last)
		}
		last, sum = n, sum+n
	}
	if s.In.Done() {
		return s.Sum.Write(sum)
	}
	if err := run.State().Set("last", last); err != nil {
		return err
	}
	return run.State().Set("sum", sum)
}

// pressure is Fast in front of Slow.
func pressure(n int) *graph.Graph {
	g := graph.New("pressure")
	f := graph.Add(g, "fast", &Fast{N: n})
	s := graph.Add(g, "slow", &Slow{})
	graph.Connect(f.Out, s.In, graph.Limit(fastLimit))
	graph.Export(g, "sum", s.Sum)
	return g
}

// A producer that is faster than its consumer fills neither Redis nor the slots of an
// engine: with one slot for both of them everything arrives, and Redis stays as it is.
func TestGraphsBackPressure(t *testing.T) {
	messages := fastNumbers
	if os.Getenv("WEIR_FULL") != "" {
		messages = fullNumbers
	}
	s := redistest.Start(t) // nobody else uses its memory
	e := newEnv(t, s.URL())
	e.register(&Fast{}, &Slow{})
	cfg := e.Config(&Fast{}, &Slow{})
	cfg.Concurrency = 1
	e.Serve(cfg)
	warm := e.Start(pressure(10 * fastLimit))
	e.reach(warm, statemachine.Completed)

	rdb := s.Client(t)
	base := e.memory(rdb)
	began := time.Now()
	h := e.Start(pressure(messages))
	most, looks, waited := base, 0, int64(0)
	for deadline := time.Now().Add(2 * enginetest.Patience); ; looks++ {
		most = max(most, e.memory(rdb))
		tree, err := h.Tree(e.Ctx)
		e.Check(err)
		in, _ := tree[2].Port(port.Input, "in")
		waited = max(waited, in.Waiting)
		if tree[0].Status == statemachine.Completed {
			break
		}
		if tree[0].Status == statemachine.Failed || time.Now().After(deadline) {
			e.Fatalf("the graph is %s, its consumer %s: %s; it had %d of %d messages", tree[0].Status, tree[2].Status, tree[2].Reason, in.Total, messages)
		}
		time.Sleep(enginetest.PollInterval)
	}
	took := time.Since(began)
	e.Logf("%d messages in %s (%.0f a second); %d looks: at most %d waited, and Redis had %.1f MB, %.1f MB more than before",
		messages, took.Round(time.Millisecond), float64(messages)/took.Seconds(), looks, waited, float64(most)/1e6, float64(most-base)/1e6)
	if got := enginetest.Outs[int](e, h, "sum"); len(got) != 1 || got[0] != messages*(messages+1)/2 {
		e.Errorf("the sum is %v, want %d", got, messages*(messages+1)/2)
	}
	if grown := most - base; grown > mostGrowth {
		e.Errorf("Redis grew by %d bytes, want less than %d", grown, mostGrowth)
	}
	if waited > 2*fastLimit { // the limit, and the commit that went beyond it
		e.Errorf("%d messages waited at a port whose limit is %d", waited, fastLimit)
	}
}

var usedMemory = regexp.MustCompile(`used_memory:(\d+)`)

// memory is what a Redis needs for its data.
func (e *env) memory(rdb *redis.Client) int64 {
	e.Helper()
	info, err := rdb.Info(e.Ctx, "memory").Result()
	e.Check(err)
	n, err := strconv.ParseInt(usedMemory.FindStringSubmatch(info)[1], 10, 64)
	e.Check(err)
	return n
}
