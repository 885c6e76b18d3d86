package metrics_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/telemetry/metrics"
	"github.com/weirworks/weir/worker"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// Double doubles numbers, and fails on negative ones.
type Double struct {
	In  port.In[int]
	Out port.Out[int]
}

func (w *Double) Run(context.Context, *worker.Run) error {
	n, ok, err := w.In.Read()
	switch {
	case err != nil || !ok:
		return err
	case n < 0:
		return errors.New("negative")
	}
	return w.Out.Write(2 * n)
}

// WorkerOptions implements worker.Configured.
func (*Double) WorkerOptions() worker.Options {
	return worker.Options{Tries: 2, Backoff: worker.ConstantBackoff(time.Millisecond), Pure: true}
}

func doubles() *graph.Graph {
	g := graph.New("doubles")
	a, b := graph.Add(g, "a", &Double{}, graph.OnFailure(job.DeadLetter)), graph.Add(g, "b", &Double{})
	graph.Connect(graph.Input[int](g, "in"), a.In)
	graph.Connect(a.Out, b.In)
	graph.Export(g, "out", b.Out)
	return g
}

// doubled lets an engine with metrics double ten numbers and fail on one.
func doubled(e *enginetest.Env) *metrics.Metrics {
	e.Helper()
	m := metrics.New(e.Store)
	cfg := e.Config(&Double{})
	cfg.Hooks = []worker.Hooks{m}
	engine, err := worker.New(cfg)
	e.Check(err)
	e.Check(engine.RunWhile(e.Ctx, func(ctx context.Context) error {
		h, err := e.Client.Start(ctx, doubles())
		if err != nil {
			return err
		}
		if err := errors.Join(h.Write(ctx, "in", 1, 2, 3, 4, 5, -6, 7, 8, 9, 10, 11), h.Close(ctx, "in")); err != nil {
			return err
		}
		_, err = h.Wait(ctx)
		return err
	}))
	return m
}

// scrape returns what Prometheus would get.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	server := httptest.NewServer(m.Handler())
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	enginetest.Check(t, err)
	answer, err := http.DefaultClient.Do(req)
	enginetest.Check(t, err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, error %v:\n%s", answer.StatusCode, err, raw)
	}
	return string(raw)
}

// value returns that of a series in a scrape, which must be there.
func value(t *testing.T, text, series string) float64 {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			enginetest.Check(t, err)
			return v
		}
	}
	t.Errorf("no series %s in\n%s", series, text)
	return -1
}

// TestScrape: what an engine did and what the store holds are there, in a form that Prometheus' own checks accept.
func TestScrape(t *testing.T) {
	enginetest.Each(t, func(e *enginetest.Env) {
		t, store, m := e.T, e.Store, doubled(e)
		text := scrape(t, m)
		labels := `{namespace="` + store.Namespace() + `"`
		for series, want := range map[string]float64{
			"weir_messages_read_total" + labels + `,type="Double"}`:                          21,
			"weir_messages_written_total" + labels + `,type="Double"}`:                       21, // and the dead letter
			"weir_dead_letters_total" + labels + `,type="Double"}`:                           1,
			"weir_runs_total" + labels + `,outcome="dead_lettered",type="Double"}`:           1,
			"weir_runs_total" + labels + `,outcome="failed",type="Double"}`:                  0,
			"weir_runs_in_progress" + labels + `,type="Double"}`:                             0,
			"weir_commits_total" + labels + `,result="refused"}`:                             0,
			"weir_root_jobs" + labels + "}":                                                  1,
			"weir_dead_letter_jobs" + labels + "}":                                           1,
			"weir_failed_jobs" + labels + "}":                                                0,
			"weir_store_up" + labels + "}":                                                   1,
			"weir_queue_ready_jobs" + labels + `,queue="default"}`:                           0,
			"weir_queue_paused" + labels + `,queue="default"}`:                               0,
			"weir_lease_losses_total" + labels + `,type="Double"}`:                           0,
			"weir_commit_size_bytes_bucket" + labels + `,le="+Inf"}`:                         value(t, text, "weir_commit_duration_seconds_count"+labels+"}"),
			"weir_run_duration_seconds_count" + labels + `,type="Double"}`:                   runs(t, text, labels),
			"weir_run_duration_seconds_bucket" + labels + `,type="Double",le="+Inf"}`:        runs(t, text, labels),
			"weir_backpressure_suspensions_total" + labels + `,type="Double"}`:               0,
			"weir_speculative_hits_total" + labels + `,type="Double"}`:                       value(t, text, "weir_speculative_hits_total"+labels+`,type="Double"}`),
			"weir_run_start_latency_seconds_bucket" + labels + `,queue="default",le="+Inf"}`: value(t, text, "weir_run_start_latency_seconds_count"+labels+`,queue="default"}`),
		} {
			if got := value(t, text, series); got != want {
				t.Errorf("%s is %v, want %v", series, got, want)
			}
		}
		if n := value(t, text, "weir_run_retries_total"+labels+`,type="Double"}`); n < 1 {
			t.Errorf("%v runs of jobs whose run before failed", n)
		}
		if n := value(t, text, "weir_redis_round_trips_total"+labels+"}"); n < 10 {
			t.Errorf("%v round trips", n)
		}
		problems, err := testutil.GatherAndLint(m.Registry())
		if err != nil || len(problems) > 0 {
			t.Errorf("lint: %v %v", problems, err)
		}
		promtool(t, text, "check", "metrics")
	})
}

// runs adds up runs of all outcomes.
func runs(t *testing.T, text, labels string) (sum float64) {
	t.Helper()
	for _, o := range worker.Outcomes() {
		sum += value(t, text, "weir_runs_total"+labels+`,outcome="`+string(o)+`",type="Double"}`)
	}
	return sum
}

// promtool runs the checks of Prometheus' own tool.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("promtool is not on PATH: scripts/install-tools.sh installs it")
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestScrapeReadsNoJob: with 10,000 jobs a scrape sends as many commands as with few, reads of jobs only since when the first of each shard
// is ready, and takes less than 50 ms.
func TestScrapeReadsNoJob(t *testing.T) {
	server := redistest.Start(t)
	e := enginetest.New(t, redisstore.Config{URL: server.URL()})
	store := e.Store
	m := metrics.New(store)
	engine, err := worker.New(e.Config(&Double{}))
	e.Check(err)
	e.Check(engine.Register(e.Ctx))
	start := func(jobs int) {
		g := graph.New("many")
		for i := range jobs - 1 {
			graph.Add(g, "j"+strconv.Itoa(i), &Double{})
		}
		e.Start(g)
	}
	for range 32 {
		start(2) // in each shard some
	}
	scrape(t, m) // the scripts of asynq are there from now on
	few := commandsOf(t, server, func() { scrape(t, m) })
	start(10_000)
	var text string
	many := commandsOf(t, server, func() { text = scrape(t, m) })
	if n := value(t, text, `weir_due_entries{namespace="`+store.Namespace()+`"}`); n < 9000 {
		t.Fatalf("only %v jobs are due", n)
	}
	first := func(cmd string) bool { // since when the first job of a queue is ready
		return strings.Contains(cmd, `"hmget"`) && strings.HasSuffix(cmd, `"queued"`)
	}
	for _, cmd := range many {
		if strings.Contains(cmd, ":j:") && !first(cmd) || strings.Contains(strings.ToLower(cmd), `"scan"`) {
			t.Errorf("a scrape sends %s", cmd)
		}
	}
	ofScripts := func(cmd string) bool { return strings.HasPrefix(cmd, "lua] ") } // asynq looks at up to 20 tasks of a queue
	many, few = slices.DeleteFunc(many, ofScripts), slices.DeleteFunc(few, ofScripts)
	if len(many) != len(few) {
		t.Errorf("%d commands with 10,000 jobs, %d with 2:\n%s\n\n%s", len(many), len(few), strings.Join(many, "\n"), strings.Join(few, "\n"))
	}
	fastest := time.Hour
	for range 10 {
		began := time.Now()
		scrape(t, m)
		fastest = min(fastest, time.Since(began))
	}
	t.Logf("%d commands, %s", len(many), fastest)
	if fastest > 50*time.Millisecond {
		t.Errorf("a scrape takes %s", fastest)
	}
}

// commandsOf returns what Redis was asked while fn ran.
func commandsOf(t *testing.T, server *redistest.Server, fn func()) (cmds []string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Addr())
	if err == nil {
		defer conn.Close()
		err = conn.SetDeadline(time.Now().Add(enginetest.Patience))
	}
	if err == nil {
		_, err = io.WriteString(conn, "MONITOR\r\n")
	}
	lines := bufio.NewScanner(conn)
	if err != nil || !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR: %v, %q", err, lines.Text())
	}
	fn()
	enginetest.Check(t, server.Client(t).Echo(t.Context(), "the end").Err())
	for lines.Scan() && !strings.Contains(lines.Text(), `"the end"`) {
		_, cmd, _ := strings.Cut(lines.Text(), "[0 ")
		if !strings.Contains(cmd, `] "hello"`) && !strings.Contains(cmd, `] "client"`) {
			cmds = append(cmds, cmd)
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return cmds
}

// TestScrapeWithoutStore: when Redis is away a scrape says so, and still tells what the engines did.
func TestScrapeWithoutStore(t *testing.T) {
	e := enginetest.Shared(t)
	store, m := e.Store, doubled(e)
	enginetest.Check(t, store.Close())
	text := scrape(t, m)
	labels := `{namespace="` + store.Namespace() + `"`
	if value(t, text, "weir_store_up"+labels+"}") != 0 || value(t, text, "weir_messages_read_total"+labels+`,type="Double"}`) != 21 {
		t.Errorf("scrape:\n%s", text)
	}
	if strings.Contains(text, "\nweir_root_jobs{") {
		t.Error("the store's counters are there though it was not asked")
	}
}

// counting is a store that counts what the test says.
type counting struct{ stats redisstore.Stats }

func (c *counting) Namespace() string                                { return "main" }
func (c *counting) Traffic() redisstore.Traffic                      { return redisstore.Traffic{} }
func (c *counting) Stats(context.Context) (*redisstore.Stats, error) { return &c.stats, nil }

// TestSeriesAreBounded: jobs and private queues add no series, only types and queues do.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	store := &counting{}
	m := metrics.New(store)
	series := func() int {
		n, err := testutil.GatherAndCount(m.Registry())
		enginetest.Check(t, err)
		return n
	}
	ran := func(id job.ID, typ, queue string) {
		m.Ended(&worker.RunEnd{Job: id, Type: typ, Queue: queue, Outcome: worker.Completed})
		m.Committed(&worker.Commit{Jobs: []worker.CommittedJob{{Job: id, Type: typ, Queue: queue, Runs: 1, Applied: true}}})
	}
	ran("1", "a", "default")
	ran("2", "a", "private/x")
	one := series()
	for i := range 1000 {
		store.stats.Queues = append(store.stats.Queues, redisstore.QueueInfo{Name: "private/" + strconv.Itoa(i)})
		ran(job.ID(strconv.Itoa(i)), "a", "private/"+strconv.Itoa(i))
	}
	if n := series(); n != one {
		t.Errorf("%d series, %d after 1,000 more jobs and private queues", one, n)
	}
	ran("3", "b", "default")
	if n := series(); n-one != 22 {
		t.Errorf("one more type has %d more series, want 22", n-one)
	}
}

// TestRemote: runs of clients that lease them are counted as those of engines; what a client says wrongly is refused, and is no run.
func TestRemote(t *testing.T) {
	e := enginetest.Shared(t)
	store, ctx := e.Store, e.Ctx
	m := metrics.New(store)
	leases, err := worker.NewLeases(worker.LeaseConfig{Store: store, Hooks: []worker.Hooks{m}})
	enginetest.Check(t, err)
	enginetest.Run(t, leases.Run)
	h, err := client.New(store).Start(ctx, doubles(), job.EnginesLater())
	if err == nil {
		err = errors.Join(h.Write(ctx, "in", 7), h.Close(ctx, "in"))
	}
	enginetest.Check(t, err)
	take := func() string {
		t.Helper()
		all, err := leases.Take(ctx, worker.LeaseRequest{Types: []string{"Double"}, Wait: enginetest.Patience})
		if err != nil || len(all) != 1 {
			t.Fatalf("leased %v, error %v", all, err)
		}
		return all[0].Ticket()
	}
	now := time.Duration(0)
	if err := leases.Fail(ctx, take(), worker.RunFailure{Error: "no paper", Read: map[string]int{"in": 1}, RetryAfter: &now}); err != nil {
		t.Fatal(err)
	}
	ticket := take()
	if err := leases.Commit(ctx, ticket, worker.Work{Set: map[string]json.RawMessage{"": []byte("1")}, Close: []string{"outt"}}); err == nil {
		t.Error("a port that there is not was closed")
	}
	work := worker.Work{Read: map[string]int{"in": 1}, Write: []worker.Written{{Port: "out", Messages: []json.RawMessage{json.RawMessage("14")}}}}
	for range 2 {
		enginetest.Check(t, leases.Commit(ctx, ticket, work))
	}
	enginetest.Check(t, leases.Release(ctx, take()))
	if err := leases.Commit(ctx, ticket, worker.Work{End: worker.ErrSuspend}); err != nil {
		t.Fatal(err) // a repetition, of whatever it says
	}
	text, labels := scrape(t, m), `{namespace="`+store.Namespace()+`"`
	for series, want := range map[string]float64{
		"weir_runs_total" + labels + `,outcome="retried",type="Double"}`:      1,
		"weir_runs_total" + labels + `,outcome="refused",type="Double"}`:      1,
		"weir_runs_total" + labels + `,outcome="completed",type="Double"}`:    1,
		"weir_run_retries_total" + labels + `,type="Double"}`:                 1,
		"weir_run_duration_seconds_count" + labels + `,type="Double"}`:        2,
		"weir_run_start_latency_seconds_count" + labels + `,queue="default"}`: 2,
		"weir_messages_read_total" + labels + `,type="Double"}`:               1,
		"weir_messages_written_total" + labels + `,type="Double"}`:            1,
		"weir_commits_total" + labels + `,result="applied"}`:                  2,
		"weir_commits_total" + labels + `,result="refused"}`:                  0,
	} {
		if got := value(t, text, series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
}
