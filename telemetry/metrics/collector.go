package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirworks/weir/internal/delivery"
	"github.com/weirworks/weir/redisstore"
)

// scrapeTimeout is how long a scrape waits for the store: less than Prometheus waits for a scrape.
const scrapeTimeout = 5 * time.Second

// figure is one that the store counts.
type figure struct {
	desc  *prometheus.Desc
	value func(st *redisstore.Stats) float64
}

// queueFigure is one that it counts for each queue, serverFigure for each Redis server.
type queueFigure struct {
	desc  *prometheus.Desc
	value func(q *redisstore.QueueInfo) float64
}

type serverFigure struct {
	desc  *prometheus.Desc
	value func(v *redisstore.ServerStats) float64
}

// collector asks the store for its counters at each scrape. It reads no job.
type collector struct {
	store   Source
	up      *prometheus.Desc
	trips   *prometheus.Desc
	errors  *prometheus.Desc
	time    *prometheus.Desc
	removed *prometheus.Desc
	figures []figure
	queues  []queueFigure
	servers []serverFigure
}

func newCollector(store Source) *collector {
	return &collector{
		store:   store,
		up:      desc("weir_store_up", "Whether the store told its counters at this scrape: 1, or 0 and there are none."),
		trips:   desc("weir_redis_round_trips_total", "Commands and pipelines that this process sent to Redis."),
		errors:  desc("weir_redis_errors_total", "Commands and pipelines of this process that Redis did not answer, or with an error."),
		time:    desc("weir_redis_round_trip_seconds_total", "Time until Redis answered commands and pipelines of this process."),
		removed: desc("weir_retention_removed_total", "Trees and children that were removed as their retention was over."),
		figures: []figure{
			{desc("weir_root_jobs", "Root jobs: those without a parent."), func(st *redisstore.Stats) float64 { return float64(st.Roots) }},
			{desc("weir_failed_jobs", "Jobs whose status is failed."), func(st *redisstore.Stats) float64 { return float64(st.Failed) }},
			{desc("weir_dead_letter_jobs", "Jobs that have dead letters."), func(st *redisstore.Stats) float64 { return float64(st.Dead) }},
			{desc("weir_due_entries", "Reasons to look at a job later: wake-ups, leases, timers."), func(st *redisstore.Stats) float64 { return float64(st.Due) }},
			{desc("weir_due_overdue_entries", "Due entries that the sweeper should have looked at 10 seconds ago."), func(st *redisstore.Stats) float64 { return float64(st.Overdue) }},
			{desc("weir_sweeper_lag_seconds", "How late the first due entry is; 0 if none is late."), func(st *redisstore.Stats) float64 { return st.Late.Seconds() }},
			{desc("weir_outbox_commands", "Commands from shard to shard that are not carried out yet."), func(st *redisstore.Stats) float64 { return float64(st.Orders) }},
			{desc("weir_background_tasks", "Pieces of work on subtrees that are left to do."), func(st *redisstore.Stats) float64 { return float64(st.BackgroundTasks) }},
			{desc("weir_aliases", "Aliases of jobs."), func(st *redisstore.Stats) float64 { return float64(st.Aliases) }},
			{desc("weir_retained_jobs", "Settled trees and children that are removed when their retention is over."), func(st *redisstore.Stats) float64 { return float64(st.Retained) }},
			{desc("weir_retention_kept_trees", "Trees that are past their retention and kept, as nobody has read messages of their Out ports."), func(st *redisstore.Stats) float64 { return float64(st.Kept) }},
			{desc("weir_engines", "Live engines."), func(st *redisstore.Stats) float64 { return float64(len(st.Engines)) }},
		},
		queues: []queueFigure{
			{desc("weir_queue_ready_jobs", "Jobs that are ready to run.", queueLabel), func(q *redisstore.QueueInfo) float64 { return float64(q.Pending) }},
			{desc("weir_queue_oldest_ready_seconds", "How long the first ready job has been waiting.", queueLabel), func(q *redisstore.QueueInfo) float64 { return q.Latency.Seconds() }},
			{desc("weir_queue_limited_jobs", "Ready jobs that wait for a place of a limit.", queueLabel), func(q *redisstore.QueueInfo) float64 { return float64(q.Limited) }},
			{desc("weir_queue_oldest_limited_seconds", "How long the first ready job that waits for a place of a limit has been ready.", queueLabel), func(q *redisstore.QueueInfo) float64 { return q.LimitedFor.Seconds() }},
			{desc("weir_queue_runs_in_progress", "Runs in progress, as engines tell each second.", queueLabel), func(q *redisstore.QueueInfo) float64 { return float64(q.Active) }},
			{desc("weir_queue_engines", "Live engines that serve the queue.", queueLabel), func(q *redisstore.QueueInfo) float64 { return float64(q.Engines) }},
			{desc("weir_queue_slots", "Runs that the live engines of the queue can have in progress, in all their queues.", queueLabel), func(q *redisstore.QueueInfo) float64 { return float64(q.Slots) }},
			{desc("weir_queue_paused", "Whether the queue is paused: 1 or 0.", queueLabel), func(q *redisstore.QueueInfo) float64 { return truth(q.Paused) }},
		},
		servers: []serverFigure{
			{desc("weir_redis_memory_used_bytes", "Memory that a Redis server uses.", serverLabel), func(v *redisstore.ServerStats) float64 { return float64(v.Used) }},
			{desc("weir_redis_memory_max_bytes", "Memory that a Redis server may use, 0 for no limit.", serverLabel), func(v *redisstore.ServerStats) float64 { return float64(v.Max) }},
			{desc("weir_redis_keys", "Keys in the database of a Redis server, of all namespaces and programs.", serverLabel), func(v *redisstore.ServerStats) float64 { return float64(v.Keys) }},
			{desc("weir_redis_disk_failed", "Whether what a Redis server last wrote to disk failed: 1 or 0.", serverLabel), func(v *redisstore.ServerStats) float64 { return truth(len(v.DiskError) > 0) }},
		},
	}
}

const serverLabel = "server"

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.trips, c.errors, c.time, c.removed} {
		out <- d
	}
	for _, f := range c.figures {
		out <- f.desc
	}
	for _, f := range c.queues {
		out <- f.desc
	}
	for _, f := range c.servers {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector. A store that does not answer costs its own figures only.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	st, err := c.store.Stats(ctx)
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	t := c.store.Traffic()
	send(c.trips, prometheus.CounterValue, float64(t.RoundTrips))
	send(c.errors, prometheus.CounterValue, float64(t.Errors))
	send(c.time, prometheus.CounterValue, t.Time.Seconds())
	send(c.up, prometheus.GaugeValue, truth(err == nil))
	if err != nil {
		return
	}
	send(c.removed, prometheus.CounterValue, float64(st.Removed))
	for _, f := range c.figures {
		send(f.desc, prometheus.GaugeValue, f.value(st))
	}
	for i := range st.Queues {
		q := &st.Queues[i]
		if delivery.IsPrivate(q.Name) {
			continue // each program that has one would be a label
		}
		for _, f := range c.queues {
			send(f.desc, prometheus.GaugeValue, f.value(q), q.Name)
		}
	}
	for i := range st.Servers {
		for _, f := range c.servers {
			send(f.desc, prometheus.GaugeValue, f.value(&st.Servers[i]), st.Servers[i].Address)
		}
	}
}

// queueOf is the label of a queue: one for all private ones.
func queueOf(name string) string {
	if delivery.IsPrivate(name) {
		return "private"
	}
	return name
}
