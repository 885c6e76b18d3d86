// Package metrics counts, for Prometheus, what engines do and what a namespace holds. A program that does not import it
// does not link Prometheus' library.
//
//	m := metrics.New(store)
//	engine, err := worker.New(worker.Config{Store: store, Workers: workers, Hooks: []worker.Hooks{m}})
//	http.Handle("/metrics", m.Handler())
//
// The metrics live in a registry of their own. All of them have the label namespace, and those of package
// docs/operations.md are all there are; their labels are bounded by the types and queues that a program serves.
package metrics

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
)

// Source is the store of the namespace: a *redisstore.Store.
type Source interface {
	Namespace() string
	Stats(ctx context.Context) (*redisstore.Stats, error)
	Traffic() redisstore.Traffic
}

// Metrics are those of a namespace, as one process sees it. They are hooks for any number of engines.
type Metrics struct {
	worker.NoHooks
	registry *prometheus.Registry
	types    sync.Map // name -> *typeMetrics

	runs        *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	latency     *prometheus.HistogramVec
	inProgress  *prometheus.GaugeVec
	retries     *prometheus.CounterVec
	crashes     *prometheus.CounterVec
	leases      *prometheus.CounterVec
	speculative *prometheus.CounterVec
	hits        *prometheus.CounterVec
	letters     *prometheus.CounterVec
	read        *prometheus.CounterVec
	written     *prometheus.CounterVec
	spawned     *prometheus.CounterVec
	blocked     *prometheus.CounterVec

	commits    *prometheus.CounterVec
	commitTime prometheus.Histogram
	commitSize prometheus.Histogram
	commitRuns prometheus.Histogram
}

// Labels and their values.
const (
	typeLabel  = "type"
	queueLabel = "queue"
)

// Results of commits, as the label result says them.
const (
	applied = "applied"
	partial = "partial" // some of its jobs run again
	refused = "refused"
)

// New returns the metrics of a namespace: those of the engines whose Config.Hooks they are in, and what the store counts.
func New(store Source) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.define()
	all := prometheus.WrapRegistererWith(prometheus.Labels{"namespace": store.Namespace()}, m.registry)
	all.MustRegister(m.runs, m.duration, m.latency, m.inProgress, m.retries, m.crashes, m.leases, m.speculative, m.hits, m.letters,
		m.read, m.written, m.spawned, m.blocked, m.commits, m.commitTime, m.commitSize, m.commitRuns, newCollector(store))
	for _, result := range []string{applied, partial, refused} {
		m.commits.WithLabelValues(result)
	}
	return m
}

func (m *Metrics) define() {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m.runs = counter("weir_runs_total", "Runs whose code is over, by how they ended.", typeLabel, "outcome")
	m.duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_run_duration_seconds", Help: "How long the code of runs took.",
		Buckets: []float64{.0001, .0005, .001, .005, .01, .05, .1, .5, 1, 5, 30, 120, 600},
	}, []string{typeLabel})
	m.latency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_run_start_latency_seconds", Help: "How long jobs were queued before their runs began, of runs that did not follow others in one commit.",
		Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 120, 600},
	}, []string{queueLabel})
	m.inProgress = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_runs_in_progress", Help: "Runs in progress in this process."}, []string{typeLabel})
	m.retries = counter("weir_run_retries_total", "Runs of jobs whose run before failed.", typeLabel)
	m.crashes = counter("weir_run_crashes_total", "Runs that ended without a commit, as their process died or was cut off, when the next run of the job began.", typeLabel)
	m.leases = counter("weir_lease_losses_total", "Runs that lost their job, as their lease ended before they did.", typeLabel)
	m.speculative = counter("weir_speculative_runs_total", "Runs on what was not committed yet.", typeLabel)
	m.hits = counter("weir_speculative_hits_total", "Runs on what was not committed yet that were committed with it.", typeLabel)
	m.letters = counter("weir_dead_letters_total", "Messages that failed runs put aside.", typeLabel)
	m.read = counter("weir_messages_read_total", "Messages read by committed runs.", typeLabel)
	m.written = counter("weir_messages_written_total", "Messages written by committed runs.", typeLabel)
	m.spawned = counter("weir_children_spawned_total", "Children spawned by committed runs; a graph is one.", typeLabel)
	m.blocked = counter("weir_backpressure_suspensions_total", "Commits after which the writer was suspended by backpressure, as a port was full.", typeLabel)
	m.commits = counter("weir_commits_total", "Commits, by what became of them.", "result")
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	m.commitTime = histogram("weir_commit_duration_seconds", "How long commits took, with waiting for others and asking again.",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 60})
	m.commitSize = histogram("weir_commit_size_bytes", "Messages, state and log that commits write.", prometheus.ExponentialBuckets(256, 4, 8))
	m.commitRuns = histogram("weir_commit_runs", "Runs that commits end.", prometheus.ExponentialBuckets(1, 2, 8))
}

// Registry is where the metrics are: for more of your own, such as those of package collectors.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler answers scrapes, in the formats of Prometheus. Those that come at a time share one look at the store.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, CoalesceGather: true})
}

// typeMetrics are those of one worker type.
type typeMetrics struct {
	runs                                                                                     map[worker.Outcome]prometheus.Counter
	duration                                                                                 prometheus.Observer
	inProgress                                                                               prometheus.Gauge
	retries, crashes, leases, speculative, hits, letters, read, written, spawned, suspension prometheus.Counter
}

// of returns the metrics of a type. All of them are there from its first run on, so that rates of what is rare are right.
func (m *Metrics) of(typ string) *typeMetrics {
	if t, ok := m.types.Load(typ); ok {
		return t.(*typeMetrics) //nolint:forcetypeassert // there is nothing else in it
	}
	t := &typeMetrics{
		runs:     map[worker.Outcome]prometheus.Counter{},
		duration: m.duration.WithLabelValues(typ), inProgress: m.inProgress.WithLabelValues(typ),
		retries: m.retries.WithLabelValues(typ), crashes: m.crashes.WithLabelValues(typ), leases: m.leases.WithLabelValues(typ),
		speculative: m.speculative.WithLabelValues(typ), hits: m.hits.WithLabelValues(typ), letters: m.letters.WithLabelValues(typ),
		read: m.read.WithLabelValues(typ), written: m.written.WithLabelValues(typ), spawned: m.spawned.WithLabelValues(typ),
		suspension: m.blocked.WithLabelValues(typ),
	}
	for _, o := range worker.Outcomes() {
		t.runs[o] = m.runs.WithLabelValues(typ, string(o))
	}
	m.types.Store(typ, t)
	return t
}

// Run implements worker.Hooks.
func (m *Metrics) Run(ctx context.Context, run *worker.Run, next func(context.Context) error) error {
	running := m.of(run.Type()).inProgress
	running.Inc()
	defer running.Dec()
	return next(ctx)
}

// Ended implements worker.Hooks.
func (m *Metrics) Ended(end *worker.RunEnd) {
	t := m.of(end.Type)
	t.runs[end.Outcome].Inc()
	if end.Outcome == worker.Refused { // its client has the run still
		return
	}
	t.duration.Observe(end.Took.Seconds())
	if end.Waited >= 0 {
		m.latency.WithLabelValues(queueOf(end.Queue)).Observe(end.Waited.Seconds())
	}
	if end.Try > 1 {
		t.retries.Inc()
	}
	if end.Crashed {
		t.crashes.Inc()
	}
	if end.Speculative {
		t.speculative.Inc()
	}
	if end.Outcome == worker.Lost {
		t.leases.Inc()
	}
}

// Committed implements worker.Hooks.
func (m *Metrics) Committed(c *worker.Commit) {
	runs, held := 0, 0
	for i := range c.Jobs {
		one := &c.Jobs[i]
		runs += one.Runs
		if !one.Applied {
			continue
		}
		held++
		t := m.of(one.Type)
		t.read.Add(float64(one.Read))
		t.written.Add(float64(one.Written))
		t.spawned.Add(float64(one.Spawned))
		t.letters.Add(float64(one.DeadLetters))
		if one.Speculative {
			t.hits.Add(float64(one.Runs))
		}
	}
	result := applied
	switch {
	case held == 0:
		result = refused
	case held < len(c.Jobs):
		result = partial
	}
	m.commits.WithLabelValues(result).Inc()
	m.commitTime.Observe(c.Took.Seconds())
	m.commitSize.Observe(float64(c.Bytes))
	if !c.Checkpoint {
		m.commitRuns.Observe(float64(runs))
	}
	if c.Blocked {
		m.of(c.Jobs[held-1].Type).suspension.Inc()
	}
	if errors.Is(c.Err, job.ErrFenced) && held == 0 {
		m.of(c.Jobs[0].Type).leases.Inc()
	}
}
