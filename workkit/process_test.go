package workkit_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
	"github.com/weirworks/weir/workkit"
)

// The environment of a worker process, which makes the test binary one: where its jobs are, and which schedule it serves.
const (
	processEnv   = "WEIR_TEST_URL"
	namespaceEnv = "WEIR_TEST_NAMESPACE"
	scheduleEnv  = "WEIR_TEST_SCHEDULE"
)

// processMain serves a schedule, and runs jobs, until it is killed, or until the test is gone.
func processMain() {
	ctx := context.Background()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	err := process(ctx)
	fmt.Println("error:", err)
	os.Exit(1)
}

func process(ctx context.Context) error {
	silent := slog.New(slog.DiscardHandler)
	s, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv(processEnv), Namespace: os.Getenv(namespaceEnv)})
	if err != nil {
		return err
	}
	l, err := workkit.New(workkit.Config{Store: s, Schedules: []string{os.Getenv(scheduleEnv)}, Logger: silent})
	if err != nil {
		return err
	}
	e, err := worker.New(worker.Config{Store: s, Workers: []worker.Worker{&Task{}}, Concurrency: 4, Lease: time.Second, Logger: silent})
	if err != nil {
		return err
	}
	go func() { _ = l.Run(ctx) }()
	return e.Run(ctx)
}

// start starts a worker process, and returns what kills it.
func (w *world) start() (kill func()) {
	w.Helper()
	exe, err := os.Executable()
	w.Check(err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), processEnv+"="+w.URL, namespaceEnv+"="+w.Namespace, scheduleEnv+"="+w.name)
	_, err = cmd.StdinPipe() // a process ends when this does
	w.Check(err)
	w.Check(cmd.Start())
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed on purpose: the status says nothing
	}
}

// Three processes, of which one is killed again and again, move and run each entry once that others add meanwhile, and each time of
// those that come again.
func TestW27Processes(t *testing.T) {
	w := newWorld(t)
	kills := []func(){w.start(), w.start(), w.start()}
	t.Cleanup(func() {
		for _, kill := range kills {
			kill()
		}
	})
	const rounds, each = 12, 40
	var want []string
	recurring := w.add("cron7:* * * * * * *", "tick")
	for round := range rounds {
		_, err := w.Redis.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := range each {
				n := round*each + i
				id := fmt.Sprintf("%040d", n)
				p.HSet(t.Context(), w.jobs(), id, fmt.Sprintf(`{"args":[%d],"cron":"","job":"#'some.ns/func-name"}`, n))
				p.ZAdd(t.Context(), w.next(), redis.Z{Score: float64(time.Now().UnixMilli()), Member: `{"id":"` + id + `"}`})
				want = append(want, fmt.Sprintf("[%d]", n))
			}
			return nil
		})
		w.Check(err)
		time.Sleep(time.Duration(200+rand.IntN(400)) * time.Millisecond) // when a process dies is not to follow from what it does
		i := rand.IntN(len(kills))
		kills[i]()
		kills[i] = w.start()
	}
	w.Until("only what comes again is left", func() bool { return w.Redis.HLen(t.Context(), w.jobs()).Val() == 1 })
	if w.Redis.HDel(t.Context(), w.jobs(), recurring.ID).Val() != 1 {
		t.Error("what comes again is gone")
	}
	w.Until("all trees have ended", func() bool {
		for _, info := range w.trees() {
			if !info.Status.Settled() {
				return false
			}
		}
		return true
	})
	var got []string
	due := map[string]int{}
	for _, info := range w.trees() {
		if info.Labels[workkit.LabelEntry] == recurring.ID {
			due[fmt.Sprint(w.contextOf(info)[workkit.ContextDue])]++
		}
	}
	for _, message := range w.got() {
		if message != `["tick"]` {
			got = append(got, message)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d runs of %d entries", len(got), len(want))
	}
	if len(due) < 3 {
		t.Errorf("what comes each second came at %v", due)
	}
	for at, n := range due {
		if n != 1 {
			t.Errorf("what was due at %s came %d times", at, n)
		}
	}
}
