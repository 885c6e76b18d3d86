package conformance_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// What Redis may do at a time while families are large, as its slow log sees it.
const slowest = 50 * time.Millisecond

// attempts are how often a bar is tried with WEIR_FULL=1. A loaded machine makes single calls
// slow by chance, so only what was slow in each attempt fails the test.
const attempts = 3

// bar runs fn, and only logs what was slow: whether it passes must not depend on the machine.
// With WEIR_FULL=1 it runs until an attempt is not slow, and fails if there is none.
func bar(t *testing.T, fn func(e *env, pace func(what string))) {
	t.Helper()
	// Not in parallel with others: it measures.
	if os.Getenv("WEIR_FULL") == "" {
		fn(large(t, map[string]string{}))
		return
	}
	var always map[string]string
	for n := range attempts {
		slow := map[string]string{}
		t.Run(fmt.Sprint("attempt", n+1), func(t *testing.T) { fn(large(t, slow)) })
		if n == 0 {
			always = slow
		}
		maps.DeleteFunc(always, func(k, _ string) bool { return slow[k] == "" })
		if len(always) == 0 {
			return
		}
	}
	for _, what := range always {
		t.Error(what)
	}
}

// large makes a Redis of its own that logs what is slow, with one job that runs all the
// time. The function returned adds to slow what was, and fails the test if the job stood
// still since it was last called.
func large(t *testing.T, slow map[string]string) (e *env, pace func(what string)) {
	t.Helper()
	s := redistest.Start(t, "--slowlog-log-slower-than", fmt.Sprint(slowest.Microseconds()), "--slowlog-max-len", "1000")
	e = newEnv(t, s.URL())
	var runs atomic.Int64
	e.serve(&Always{}, &Life{}, &Do{})
	ticker := e.job("Always", does(t, func(_ context.Context, _ *worker.Run, w *Do) error {
		runs.Add(1)
		if _, _, err := w.In.Read(); err != nil {
			return err
		}
		return nil
	}))
	ctx, cancel := context.WithCancel(e.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := ticker.Write(ctx, "in", 1); err != nil && ctx.Err() == nil {
				e.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(look):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	e.until("the other job runs", func() bool { return runs.Load() > 0 })
	last, since := runs.Load(), time.Now()
	return e, func(what string) {
		t.Helper()
		n := runs.Load() - last
		t.Logf("%s: %s, meanwhile %d runs of another job", what, time.Since(since).Round(time.Millisecond), n)
		if n == 0 {
			e.until("another job runs again after "+what, func() bool { return runs.Load() > last })
		}
		calls, err := s.Client(t).SlowLogGet(e.ctx, -1).Result()
		e.check(err)
		for _, c := range calls {
			key := what + " " + c.Args[0]
			if c.Args[0] == "fcall" && len(c.Args) > 4 {
				key += " " + c.Args[4] // the script
			}
			slow[key] = fmt.Sprintf("%s: Redis was busy for %s: %.200s", what, c.Duration, strings.Join(c.Args, " "))
			t.Log(slow[key])
		}
		e.check(s.Client(t).Do(e.ctx, "SLOWLOG", "RESET").Err())
		last, since = runs.Load(), time.Now()
	}
}

// endOf lists, ends and deletes a tree, with one call each.
func (e *env) endOf(top *job.Handle, jobs int, done func() bool, pace func(what string)) {
	e.Helper()
	tree, err := top.Tree(e.ctx)
	e.check(err)
	if len(tree) != jobs {
		e.Errorf("the tree has %d jobs, want %d", len(tree), jobs)
	}
	pace("listing")
	e.check(top.TerminateAll(e.ctx))
	pace("the call of terminate")
	e.until("all are terminated", func() bool {
		if !done() {
			return false
		}
		ok, err := top.Ended(e.ctx)
		e.check(err)
		return ok
	})
	pace("terminating")
	e.check(top.Delete(e.ctx))
	if left := e.scan("weir:{" + e.namespace + ":*}:*:" + string(top.ID().Tree()) + "*"); len(left) != 0 {
		e.Errorf("%d keys are left, such as %s", len(left), left[0])
	}
	pace("deleting")
}

func TestBarManyChildren(t *testing.T) { bar(t, manyChildren) }

func manyChildren(e *env, pace func(what string)) {
	const children = 10_000
	var ends, next atomic.Int64
	top := e.job("Always", nothing(e.T))
	life := lives(e.T, parts{shutdown: func(context.Context, *worker.Run, *Do) error { ends.Add(1); return nil }})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := next.Add(1); n <= children; n = next.Add(1) {
				_, err := e.client.Create(e.ctx, job.New{Type: "Life", Args: life, Parent: top.ID(), Name: fmt.Sprint("c", n)})
				if err != nil {
					e.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	pace("creating")
	names, err := top.Children(e.ctx)
	e.check(err)
	if len(names) != children {
		e.Fatalf("%d children, want %d", len(names), children)
	}
	e.endOf(top, children+1, func() bool { return ends.Load() >= children }, pace)
	if ends.Load() != children {
		e.Errorf("%d times Shutdown, want %d", ends.Load(), children)
	}
}

func TestBarDeepChain(t *testing.T) { bar(t, deepChain) }

func deepChain(e *env, pace func(what string)) {
	const depth = 1000
	top := e.job("Always", nothing(e.T))
	last := top
	for range depth - 1 {
		last = e.child(last, "c", "Do", nothing(e.T))
	}
	pace("creating")
	up, err := last.Tree(e.ctx) // climbs up and down again
	e.check(err)
	if len(up) != depth {
		e.Errorf("from below the tree has %d jobs", len(up))
	}
	pace("listing from below")
	e.endOf(top, depth, func() bool { return e.info(last).Status == statemachine.Terminated }, pace)
}
