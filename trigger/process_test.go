package trigger_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
	"github.com/weirworks/weir/worker"
)

// The environment of a worker process, which makes the test binary one: where its jobs are.
const (
	processEnv   = "WEIR_TEST_URL"
	namespaceEnv = "WEIR_TEST_NAMESPACE"
)

// processMain serves jobs until it is killed, or until the test is gone.
func processMain() {
	ctx := context.Background()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	s, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv(processEnv), Namespace: os.Getenv(namespaceEnv), Shards: 4})
	if err == nil {
		var e *worker.Engine
		if e, err = engine(s); err == nil {
			err = e.Run(ctx)
		}
	}
	fmt.Println("error:", err)
	os.Exit(1)
}

func engine(s *redisstore.Store) (*worker.Engine, error) {
	return worker.New(worker.Config{
		Store: s, Workers: []worker.Worker{trigger.New(), &Task{}}, Concurrency: 4, Lease: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
}

// start starts a worker process, and returns what kills it.
func start(t *testing.T, url, namespace string) (kill func()) {
	t.Helper()
	exe, err := os.Executable()
	enginetest.Check(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), processEnv+"="+url, namespaceEnv+"="+namespace)
	_, err = cmd.StdinPipe() // a process ends when this does
	if err == nil {
		err = cmd.Start()
	}
	enginetest.Check(t, err)
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed on purpose: the status says nothing
	}
}

// C28: three processes, of which one is killed again and again, launch one tree for each tick.
func TestC28Processes(t *testing.T) {
	t.Parallel()
	env := enginetest.New(t, redisstore.Config{URL: redistest.SharedRedis(t)})
	url, ns, c := env.URL, env.Namespace, env.Client
	e, err := engine(env.Store)
	enginetest.Check(t, err)
	enginetest.Check(t, e.Register(t.Context()))
	const triggers, ticks = 20, 8
	handles := make([]*client.Handle, triggers)
	for i := range handles {
		d := trigger.Definition{Schedule: "every:1s", Missed: "all", Count: ticks, Launch: task()}
		if handles[i], err = trigger.Add(t.Context(), c, d); err != nil {
			t.Fatal(err)
		}
	}
	kills := []func(){start(t, url, ns), start(t, url, ns), start(t, url, ns)}
	t.Cleanup(func() {
		for _, kill := range kills {
			kill()
		}
	})
	deadline := time.Now().Add(time.Minute)
	for done := false; !done; {
		time.Sleep(time.Duration(300+rand.IntN(500)) * time.Millisecond) // when a process dies is not to follow from what it does
		i := rand.IntN(len(kills))
		kills[i]()
		kills[i] = start(t, url, ns)
		n, err := c.Count(t.Context(), job.Filter{Type: "Task"})
		if done = n >= triggers*ticks && finished(t, handles); done && err == nil {
			var ran int
			ran, err = c.Count(t.Context(), job.Filter{Type: "Task", Status: []statemachine.Status{statemachine.Completed}})
			done = ran == n
		}
		if err != nil || !done && time.Now().After(deadline) {
			t.Fatalf("%d trees of %d, %v", n, triggers*ticks, err)
		}
	}
	said := map[string][]int64{}
	for info, err := range c.Jobs(t.Context(), job.Filter{Type: "Task"}) {
		enginetest.Check(t, err)
		all, err := c.At(info.ID).Peek(t.Context(), "got", 10)
		var tick trigger.Tick
		if err != nil || len(all) != 1 || json.Unmarshal(all[0], &tick) != nil {
			t.Fatalf("tree %s says %s, %v", info.ID, all, err)
		}
		of := info.Labels[trigger.LabelTrigger]
		said[of] = append(said[of], tick.N)
	}
	for _, h := range handles {
		got := said[string(h.ID())]
		slices.Sort(got)
		if want := []int64{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(got, want) {
			t.Errorf("trigger %s launched %v, want %v", h.ID(), got, want)
		}
	}
}

// finished tells whether all jobs have settled.
func finished(t *testing.T, handles []*client.Handle) bool {
	t.Helper()
	for _, h := range handles {
		info, err := h.Info(t.Context())
		enginetest.Check(t, err)
		if !info.Status.Settled() {
			return false
		}
	}
	return true
}
