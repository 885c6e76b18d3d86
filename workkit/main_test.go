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

	"github.com/weirworks/weir/internal/enginetest"
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

// JobType implements job.TypeNamer.
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

// JobType implements job.TypeNamer.
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
	*enginetest.Env
	name string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return worldAt(t, redistest.SharedRedis(t), 4)
}

// worldAt makes one. A test that fails says what is in the schedule.
func worldAt(t *testing.T, url string, shards int) *world {
	t.Helper()
	w := &world{Env: enginetest.New(t, redisstore.Config{URL: url, Shards: shards})}
	w.name = "kit-" + w.Namespace
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("S:next %v, S:jobs %v", w.Redis.ZRangeWithScores(w.Ctx, w.next(), 0, 9).Val(), w.Redis.HGetAll(w.Ctx, w.jobs()).Val())
		}
	})
	return w
}

// engine runs jobs until the test ends.
func (w *world) engine(concurrency int, workers ...worker.Worker) {
	w.Helper()
	e, err := worker.New(worker.Config{Store: w.Store, Workers: append(workers, &Task{}), Concurrency: concurrency, Logger: slog.New(slog.DiscardHandler)})
	w.Check(err)
	w.Check(e.Register(w.Context()))
	enginetest.Run(w, e.Run)
}

// listen serves the schedule until the test ends.
func (w *world) listen() {
	w.Helper()
	l, err := workkit.New(workkit.Config{Store: w.Store, Schedules: []string{w.name}, Logger: slog.New(slog.DiscardHandler)})
	w.Check(err)
	enginetest.Run(w, l.Run)
}

// cli is redis-cli, which knows nothing of Weir.
func (w *world) cli(args ...string) string {
	w.Helper()
	u, err := url.Parse(w.URL)
	w.Check(err)
	out, err := exec.CommandContext(w.Context(), "redis-cli", append([]string{"-h", u.Hostname(), "-p", u.Port(), "-n", strings.TrimPrefix(u.Path, "/")}, args...)...).CombinedOutput()
	if err != nil {
		w.Fatalf("redis-cli %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) jobs() string { return w.name + ":jobs" }
func (w *world) next() string { return w.name + ":next" }

// trees are those that were launched, the oldest first.
func (w *world) trees() (all []*job.Info) {
	w.Helper()
	for info, err := range w.Client.Jobs(w.Context(), job.Filter{Labels: map[string]string{workkit.Label: w.name}, Order: job.Oldest}) {
		w.Check(err)
		all = append(all, info)
	}
	return all
}

// got are the messages that finished trees were given, the oldest tree first.
func (w *world) got() (all []string) {
	w.Helper()
	for _, info := range w.trees() {
		messages, err := w.Client.At(info.ID).Messages(w.Context(), port.Output, "got", 10)
		w.Check(err)
		for _, m := range messages {
			all = append(all, string(m.Data))
		}
	}
	return all
}

// contextOf is what came with the message that a tree was given.
func (w *world) contextOf(info *job.Info) port.Context {
	w.Helper()
	w.Until("tree "+string(info.ID)+" has run", func() bool {
		i, err := w.Client.At(info.ID).Info(w.Context())
		w.Check(err)
		return i.Status.Settled()
	})
	state, err := w.Client.At(info.ID).State(w.Context(), "context")
	w.Check(err)
	var keys port.Context
	w.Check(json.Unmarshal(state["context"], &keys))
	return keys
}

// gets waits until trees were given just these messages.
func (w *world) gets(want ...string) {
	w.Helper()
	w.Until("the trees get "+strings.Join(want, " "), func() bool { return len(w.got()) >= len(want) })
	if got := w.got(); !slices.Equal(got, want) {
		w.Fatalf("the trees got %q, want %q", got, want)
	}
}

// empty waits until nothing is left of the schedule.
func (w *world) empty() {
	w.Helper()
	w.Until("nothing is left of the schedule", func() bool { return w.Redis.Exists(w.Context(), w.jobs(), w.next()).Val() == 0 })
}

// add adds an entry of our own.
func (w *world) add(when string, args ...any) *workkit.Added {
	w.Helper()
	a, err := workkit.Add(w.Context(), w.Store, w.name, when, fn, args...)
	w.Check(err)
	return a
}

// put puts an entry there as other programs do.
func (w *world) put(id, payload string, due time.Time) {
	w.Helper()
	_, err := w.Redis.Pipelined(w.Context(), func(p redis.Pipeliner) error {
		p.HSet(w.Context(), w.jobs(), id, payload)
		p.ZAdd(w.Context(), w.next(), redis.Z{Score: float64(due.UnixMilli()), Member: `{"id":"` + id + `"}`})
		return nil
	})
	w.Check(err)
}
