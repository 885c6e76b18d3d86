// Package rig kills, stops, cuts off and starves the processes and servers of a Weir
// installation of its own while they work, and then looks whether anything is wrong with
// what they did. It knows what was asked for, and asks the engine for nothing but the
// results.
package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/failpoint"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// Mode is a kind of weather.
type Mode string

// All modes.
const (
	Standard  Mode = "standard"  // everything but the loss of what was stored
	PowerLoss Mode = "powerloss" // the Redis loses its last second, again and again
	Failover  Mode = "failover"  // so does a replica that takes its place
	Reshard   Mode = "reshard"   // parts of a cluster move from server to server; nothing that was stored is lost
)

// Modes lists them.
var Modes = []Mode{Standard, PowerLoss, Failover, Reshard}

// loses tells whether what was acknowledged may be lost in a mode.
func (m Mode) loses() bool { return m == PowerLoss || m == Failover }

// Config says what the harness does.
type Config struct {
	Mode     Mode
	Duration time.Duration // of the faults
	Seed     uint64
	Workers  int           // processes
	Lease    time.Duration // of runs
	Patience time.Duration // until work has come to its end after the last fault, and then until all is quiet
	Keep     bool          // keep the folder if something is wrong
	Progress io.Writer
}

const (
	namespace = "chaos"
	shards    = 8
	actors    = 2 // processes
)

// rig is one run.
type rig struct {
	Config
	ledger
	dir    string
	site   *site
	store  *redisstore.Store // of the harness, which is a client like any other
	client *client.Client
	rdb    redis.UniversalClient // past the troublesome network
	counts *failpoint.Counters
	began  time.Time
	slots  []*slot
	actors []*actor
	watch  watch

	deploys atomic.Int64 // processes that were started, see version

	mu      sync.Mutex
	rand    *rand.Rand
	rounds  []round
	names   int
	stormy  bool      // faults happen
	froze   time.Time // a process last, in the middle of a run
	outages []outage
	told    chronicle // what trees with sequential keys have told

	lostTrees map[job.ID]bool // whose creation was lost in an outage, though perhaps not that of their alias before
}

// round is a piece of work, with a beginning, that is checked when all is quiet.
type round interface {
	check(ctx context.Context, r *rig) error
}

// Run does what the configuration says and returns what it found. An error means that the
// rig itself could not do its work.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	dir, err := os.MkdirTemp("", "weir-chaos-")
	if err != nil {
		return nil, err
	}
	r := &rig{Config: cfg, dir: dir, rand: rand.New(rand.NewPCG(cfg.Seed, 1)), lostTrees: map[job.ID]bool{}} //nolint:gosec // faults are to be repeatable
	r.watch.init()
	r.report = Report{Mode: string(cfg.Mode), Seed: cfg.Seed}
	err = r.run(ctx)
	if r.site != nil {
		r.site.close()
	}
	if cfg.Keep && (err != nil || len(r.report.Bad()) > 0) {
		r.report.Kept = dir
	} else if rmErr := os.RemoveAll(dir); err == nil {
		err = rmErr
	}
	return &r.report, err
}

func (r *rig) run(ctx context.Context) (err error) {
	switch r.Mode {
	case Reshard:
		r.site, err = newClusterSite(r.dir)
	case Standard:
		r.site, err = newSite(r.dir, r.Workers+actors, always)
	default:
		r.site, err = newSite(r.dir, r.Workers+actors, everySec)
	}
	if err != nil {
		return err
	}
	r.rdb = r.site.client()
	defer func() { err = errors.Join(err, r.rdb.Close()) }()
	r.store, err = redisstore.Open(ctx, redisstore.Config{URL: r.site.direct(), Namespace: namespace, Shards: shards})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.store.Close()) }()
	r.client = client.New(r.store)
	if r.counts, err = failpoint.OpenCounters(r.countsFile()); err != nil {
		return err
	}
	stop := r.crew(ctx)
	defer stop()
	r.began = time.Now()
	r.say("%s for %s, seed %d, %d workers, in %s", r.Mode, r.Duration, r.Seed, r.Workers, r.dir)
	if err := r.weather(ctx); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	if err := r.prompt(ctx); err != nil {
		return err
	}
	r.say("checking")
	if err := r.check(ctx); err != nil {
		return err
	}
	// asynq looks for wakes that are to be tried again every 5 s.
	if err := errors.Join(r.clocks(ctx), r.wakesEnd(ctx, 20*time.Second)); err != nil {
		return err
	}
	stop()
	if err := r.inspect(ctx); err != nil {
		return err
	}
	r.finish()
	return nil
}

// weather lets the work go on and the faults happen for the time that there is.
func (r *rig) weather(ctx context.Context) error {
	work, done := context.WithCancel(ctx)
	defer done()
	var wg sync.WaitGroup
	ready, err := r.labour(work, &wg)
	if err != nil {
		return err
	}
	<-ready
	stormed := time.Now()
	r.setStorm(true)
	storm, over := context.WithTimeout(ctx, r.Duration)
	defer over()
	wg.Go(func() { r.tell(storm) })
	wg.Go(func() { r.reminders(storm) })
	switch r.Mode {
	case Standard:
		r.storm(storm, r.kinds())
	case PowerLoss:
		err = r.powerLosses(storm)
	case Failover:
		err = r.failovers(storm)
	case Reshard:
		err = r.reshards(storm)
	}
	r.report.Seconds = time.Since(stormed).Seconds()
	r.setStorm(false)
	r.calm(ctx)
	done()
	wg.Wait()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if r.Mode.loses() {
		r.resume(ctx) // that it was may be lost
	}
	for _, one := range r.rounds {
		if f, ok := one.(*flow); ok && f.ends && r.Mode.loses() {
			f.close(ctx, r) // that it was may be lost
		}
	}
	return ctx.Err()
}

func (r *rig) setStorm(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stormy = on
}

func (r *rig) inStorm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stormy
}

// intn, chance and between draw random numbers.
func (r *rig) intn(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.IntN(n)
}

func (r *rig) chance() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.Float64()
}

func (r *rig) between(a, b time.Duration) time.Duration {
	return a + time.Duration(r.chance()*float64(b-a))
}

// name returns a name that is new.
func (r *rig) name(kind string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names++
	return fmt.Sprintf("%s_%d", kind, r.names)
}

func (r *rig) add(one round) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rounds = append(r.rounds, one)
}

func (r *rig) countsFile() string { return filepath.Join(r.dir, "failpoints") }

func (r *rig) say(format string, args ...any) {
	fmt.Fprintf(r.Progress, "chaos: "+format+"\n", args...)
}

// tellEvery is the time from one word on how it goes to the next.
const tellEvery = 10 * time.Second

// tell says now and then how it goes, until ctx ends.
func (r *rig) tell(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.ledger.mu.Lock()
			runs, sent := r.report.Runs, r.report.Sent
			r.ledger.mu.Unlock()
			r.say("%3.0f s: %d faults, %d runs, %d messages", time.Since(r.began).Seconds(), r.faults(), runs, sent)
		}
	}
}

// pause waits, and tells whether ctx lives still.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// lacking is which third of the types the workers lack, one after another; -1: none.
var lacking = []int{-1, 0, 1, 2, 0, 1}

// env is what all processes of the crew are told.
func (r *rig) env(slot int) []string {
	return []string{
		crew.URLEnv + "=" + r.site.url(slot), crew.NamespaceEnv + "=" + namespace, crew.LeaseEnv + "=" + r.Lease.String(),
		crew.LacksEnv + "=" + strconv.Itoa(lacking[slot%len(lacking)]),
		crew.VersionEnv + "=" + strconv.Itoa(r.version(slot)),
		"WEIR_FAILPOINTS_COUNTS=" + r.countsFile(), "WEIR_FAILPOINTS_SKEW=" + skews[slot%len(skews)].String(),
	}
}

// version is which version of a type the next process of a slot has: one after another, as if it were deployed and rolled back,
// but that the first slot always has the newer one.
func (r *rig) version(slot int) int {
	if n := r.deploys.Add(1); slot > 0 && n%2 == 0 {
		return 1
	}
	return 2
}

// finish works out what is counted at the end.
func (r *rig) finish() {
	r.report.Recovery, r.report.RedisResume, r.report.Release = r.watch.recovery.times(), r.watch.resume.times(), r.watch.release.times()
	r.report.Failpoints = map[string]int64{}
	kinds := map[failpoint.Action]string{failpoint.Kill: "failpoint_kill", failpoint.Sleep: "failpoint_sleep", failpoint.Panic: "failpoint_panic", failpoint.Fails: "failpoint_fail"}
	for _, p := range failpoint.All {
		hits := r.counts.Hits(p)
		r.report.Failpoints[string(p)] = hits
		if hits == 0 && r.Mode == Standard {
			r.report.NeverHit = append(r.report.NeverHit, string(p))
		}
		for a, kind := range kinds {
			if n := r.counts.Happened(p, a); n > 0 {
				r.report.Faults[kind] += int(n)
			}
		}
	}
	for kind, n := range r.report.Faults {
		if workerFaults[kind] {
			r.report.WorkerFaults += n
		}
	}
	r.report.FaultsPerSecond = float64(int(10*float64(r.report.WorkerFaults)/r.report.Seconds)) / 10
	r.report.Rounds = len(r.rounds)
	for _, p := range r.site.host.problems {
		r.bad(trouble, "redis: %s", p)
	}
}
