package workkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
	"github.com/weirworks/weir/workkit"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		processMain()
		return
	}
	os.Exit(redistest.Main(m))
}

// Task is what entries of tests name, as #'some.ns/func-name. An argument "fail" makes its run fail, "wait" makes it wait for stop.
type Task struct {
	In   port.In[json.RawMessage]
	Stop port.In[string]
	Got  port.Out[json.RawMessage]
}

// JobType implements job.Typer.
func (*Task) JobType() string { return "some_ns_func_name" }

// Run implements worker.Worker.
func (k *Task) Run(_ context.Context, run *worker.Run) error {
	raw, ok, err := k.In.Peek()
	if !ok || err != nil {
		return err
	}
	if strings.Contains(string(raw), "fail") {
		return errors.New("as it was told")
	}
	if _, stopped, err := k.Stop.Read(); strings.Contains(string(raw), "wait") && !stopped {
		return errors.Join(err, worker.ErrSuspend)
	}
	for raw, err := range k.In.All() {
		keys, no := run.MessageContext("in")
		if err = errors.Join(err, no, run.State().Set("context", keys), k.Got.Write(raw)); err != nil {
			return err
		}
	}
	return nil
}

// recorded is what runs of Recorder were given, in their order.
var recorded = make(chan string, 50)

// Recorder is what one test names.
type Recorder struct{ In port.In[json.RawMessage] }

// JobType implements job.Typer.
func (*Recorder) JobType() string { return "recorder" }

// Run implements worker.Worker.
func (r *Recorder) Run(context.Context, *worker.Run) error {
	for raw, err := range r.In.All() {
		if err != nil {
			return err
		}
		recorded <- string(raw)
	}
	return nil
}

// fn is the job of entries, as WorkKit writes it.
const fn = "#'some.ns/func-name"

// world is a schedule in a Redis, and a namespace of Weir.
type world struct {
	*testing.T
	url, ns, name string
	store         *redisstore.Store
	client        *job.Client
	rdb           *redis.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return worldAt(t, redistest.SharedRedis(t), 4)
}

func worldAt(t *testing.T, url string, shards int) *world {
	t.Helper()
	w := &world{T: t, url: url, ns: redistest.Namespace(t)}
	w.name = "kit-" + w.ns
	s, err := redisstore.Open(t.Context(), redisstore.Config{URL: url, Namespace: w.ns, Shards: shards})
	w.ok(err)
	t.Cleanup(func() { _ = s.Close() })
	o, err := redis.ParseURL(url)
	w.ok(err)
	w.store, w.client, w.rdb = s, job.NewClient(s), redis.NewClient(o)
	t.Cleanup(func() { _ = w.rdb.Close() })
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// engine runs jobs until the test ends.
func (w *world) engine(concurrency int, workers ...worker.Worker) {
	w.Helper()
	e, err := worker.New(worker.Config{Store: w.store, Workers: append(workers, &Task{}), Concurrency: concurrency, Logger: slog.New(slog.DiscardHandler)})
	w.ok(err)
	w.ok(e.Register(w.Context()))
	w.serve(e.Run)
}

// listen serves the schedule until the test ends.
func (w *world) listen() {
	w.Helper()
	l, err := workkit.New(workkit.Config{Store: w.store, Schedules: []string{w.name}, Logger: slog.New(slog.DiscardHandler)})
	w.ok(err)
	w.serve(l.Run)
}

func (w *world) serve(run func(context.Context) error) {
	w.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(w.Context()))
	done := make(chan error)
	go func() { done <- run(ctx) }()
	w.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
}

// cli is redis-cli, which knows nothing of Weir.
func (w *world) cli(args ...string) string {
	w.Helper()
	u, err := url.Parse(w.url)
	w.ok(err)
	out, err := exec.CommandContext(w.Context(), "redis-cli", append([]string{"-h", u.Hostname(), "-p", u.Port(), "-n", strings.TrimPrefix(u.Path, "/")}, args...)...).CombinedOutput()
	if err != nil {
		w.Fatalf("redis-cli %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// until waits for what is to come.
func (w *world) until(what string, is func() bool) {
	w.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("not within 30 s: %s; S:next %v, S:jobs %v", what, w.rdb.ZRangeWithScores(w.Context(), w.next(), 0, 9).Val(), w.rdb.HGetAll(w.Context(), w.jobs()).Val())
		}
	}
}

func (w *world) jobs() string { return w.name + ":jobs" }
func (w *world) next() string { return w.name + ":next" }

// trees are those that were launched, the oldest first.
func (w *world) trees() (all []*job.Info) {
	w.Helper()
	for info, err := range w.client.Jobs(w.Context(), job.Filter{Labels: map[string]string{workkit.Label: w.name}, Order: job.Oldest}) {
		w.ok(err)
		all = append(all, info)
	}
	return all
}

// got are the messages that finished trees were given, the oldest tree first.
func (w *world) got() (all []string) {
	w.Helper()
	for _, info := range w.trees() {
		messages, err := w.client.At(info.ID).Messages(w.Context(), port.Output, "got", 10)
		w.ok(err)
		for _, m := range messages {
			all = append(all, string(m.Data))
		}
	}
	return all
}

// contextOf is what came with the message that a tree was given.
func (w *world) contextOf(info *job.Info) port.Context {
	w.Helper()
	w.until("tree "+string(info.ID)+" has run", func() bool {
		i, err := w.client.At(info.ID).Info(w.Context())
		w.ok(err)
		return i.Status.Settled()
	})
	state, err := w.client.At(info.ID).State(w.Context(), "context")
	w.ok(err)
	var keys port.Context
	w.ok(json.Unmarshal(state["context"], &keys))
	return keys
}

// gets waits until trees were given just these messages.
func (w *world) gets(want ...string) {
	w.Helper()
	w.until("the trees get "+strings.Join(want, " "), func() bool { return len(w.got()) >= len(want) })
	if got := w.got(); !slices.Equal(got, want) {
		w.Fatalf("the trees got %q, want %q", got, want)
	}
}

// empty waits until nothing is left of the schedule.
func (w *world) empty() {
	w.Helper()
	w.until("nothing is left of the schedule", func() bool { return w.rdb.Exists(w.Context(), w.jobs(), w.next()).Val() == 0 })
}

// add adds an entry of our own.
func (w *world) add(when string, args ...any) *workkit.Added {
	w.Helper()
	a, err := workkit.Add(w.Context(), w.store, w.name, when, fn, args...)
	w.ok(err)
	return a
}

// put puts an entry there as other programs do.
func (w *world) put(id, payload string, due time.Time) {
	w.Helper()
	_, err := w.rdb.Pipelined(w.Context(), func(p redis.Pipeliner) error {
		p.HSet(w.Context(), w.jobs(), id, payload)
		p.ZAdd(w.Context(), w.next(), redis.Z{Score: float64(due.UnixMilli()), Member: `{"id":"` + id + `"}`})
		return nil
	})
	w.ok(err)
}
