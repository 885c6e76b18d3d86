package conformance_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// A bystander is a process that has nothing to do with what a test does in the same namespace. It writes
// to a job of its own at a steady pace, runs it, and measures how long each message waits.

// The environment that makes the test binary a bystander, and says where.
const (
	bystanderEnv = "WEIR_TEST_BYSTANDER" // URL
	namespaceEnv = "WEIR_TEST_NAMESPACE"
)

// steady is the time between two messages of a bystander.
const steady = 20 * time.Millisecond

// spread is how a time was distributed.
type spread struct {
	N             int
	P50, P99, Max time.Duration
}

func spreadOf(times []time.Duration) (s spread) {
	slices.Sort(times)
	if s.N = len(times); s.N > 0 {
		s.P50, s.P99, s.Max = times[s.N/2], times[s.N*99/100], times[s.N-1]
	}
	return s
}

func (s spread) String() string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }
	return fmt.Sprintf("%s / %s / %s ms", ms(s.P50), ms(s.P99), ms(s.Max))
}

// seen is what a bystander tells of the time since it was last asked.
type seen struct {
	Waits spread // of messages: from before the write to when the worker's code begins
	Pings spread // the answers of Redis to a command that costs it nothing
	Late  spread // timers: how long the process had to wait for a core
}

// bystander is such a process, as the test sees it.
type bystander struct {
	env *env
	in  io.Writer
	out *bufio.Scanner
}

// bystander starts one and returns when its job has run.
func (e *env) bystander() *bystander {
	e.Helper()
	exe, err := os.Executable()
	e.Check(err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), bystanderEnv+"="+e.URL, namespaceEnv+"="+e.Namespace)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	e.Check(err)
	out, err := cmd.StdoutPipe()
	e.Check(err)
	e.Check(cmd.Start())
	e.Cleanup(func() {
		_ = in.Close() // it ends when this does
		_ = cmd.Wait()
	})
	b := &bystander{e, in, bufio.NewScanner(out)}
	e.Until("the bystander's job runs", func() bool { return b.asked().Waits.N > 0 })
	return b
}

// asked returns what it has seen since it was last asked.
func (b *bystander) asked() (s seen) {
	b.env.Helper()
	_, err := io.WriteString(b.in, "\n")
	b.env.Check(err)
	if !b.out.Scan() {
		b.env.Fatal("the bystander has ended:", b.out.Err())
	}
	b.env.Check(json.Unmarshal(b.out.Bytes(), &s))
	return s
}

// watch is what a bystander measures. There is one in a process.
type watch struct {
	mu                 sync.Mutex
	began              map[int]time.Time // messages that were not read yet
	waits, pings, late []time.Duration
}

var watching = watch{began: map[int]time.Time{}}

// Bystander reads what the bystander writes.
type Bystander struct{ In port.In[int] }

// WorkerOptions implements worker.Configured.
func (*Bystander) WorkerOptions() worker.Options {
	return worker.Options{NoLog: true}
}

// Run implements worker.Worker.
func (w *Bystander) Run(context.Context, *worker.Run) error {
	now := time.Now()
	watching.mu.Lock()
	defer watching.mu.Unlock()
	for n, err := range w.In.All() {
		if err != nil {
			return err
		}
		if at, ok := watching.began[n]; ok { // else a run before this one was not committed
			watching.waits = append(watching.waits, now.Sub(at))
			delete(watching.began, n)
		}
	}
	return nil
}

// report tells what was seen since the last time. What still waits counts as long as it has.
func (w *watch) report() seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.began {
		if since := time.Since(at); since > 2*steady {
			w.waits = append(w.waits, since)
		}
	}
	s := seen{spreadOf(w.waits), spreadOf(w.pings), spreadOf(w.late)}
	w.waits, w.pings, w.late = nil, nil, nil
	return s
}

// bystanderMain is the program of a bystander: it answers each line it reads with a report.
func bystanderMain() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv(bystanderEnv), Namespace: os.Getenv(namespaceEnv)})
	if err != nil {
		return err
	}
	defer s.Close()
	o, err := redis.ParseURL(os.Getenv(bystanderEnv))
	if err != nil {
		return err
	}
	const queue = "bystander"
	e, err := worker.New(worker.Config{
		Store: s, Workers: []worker.Worker{&Bystander{}}, Queues: map[string]int{queue: 1}, Concurrency: 1,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	h, err := client.New(s).Start(ctx, job.Single(&Bystander{}, queue))
	if err != nil {
		return err
	}
	return e.RunWhile(ctx, func(ctx context.Context) error {
		go watching.feed(ctx, redis.NewClient(o), h)
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			if err := json.NewEncoder(os.Stdout).Encode(watching.report()); err != nil {
				return err
			}
		}
		return in.Err()
	})
}

// feed writes a message each time it is due, whether those before it were taken or not.
func (w *watch) feed(ctx context.Context, rdb *redis.Client, h *client.Handle) {
	defer rdb.Close()
	var calls sync.WaitGroup
	defer calls.Wait()
	due := time.Now()
	for n := 0; ctx.Err() == nil; n++ {
		due = due.Add(steady)
		time.Sleep(time.Until(due))
		now := time.Now()
		w.mu.Lock()
		w.late = append(w.late, now.Sub(due))
		w.began[n] = now
		w.mu.Unlock()
		calls.Go(func() {
			if err := h.Write(ctx, "in", n); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "the bystander cannot write:", err)
			}
		})
		calls.Go(func() {
			at := time.Now()
			if rdb.Ping(ctx).Err() == nil {
				w.mu.Lock()
				w.pings = append(w.pings, time.Since(at))
				w.mu.Unlock()
			}
		})
	}
}
