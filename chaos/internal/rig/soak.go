package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// SoakConfig says what the soak does.
type SoakConfig struct {
	Duration time.Duration // of the load
	Workers  int           // processes
	Progress io.Writer
}

// SoakReport is what it found.
type SoakReport struct {
	Mode    string  `json:"mode"`
	Seconds float64 `json:"seconds"`
	Peak    float64 `json:"peak"` // messages/s through rows of four jobs, as fast as they go
	Rate    float64 `json:"rate"` // messages/s of the soak
	Sent    int64   `json:"sent"`
	Passed  int64   `json:"passed"`
	Full    int64   `json:"full"`  // times that a writer had to wait as a port was full
	Trees   int64   `json:"trees"` // started, run, ended and deleted meanwhile

	// Memory and latency are of the time after the first quarter.
	RSSPerHour   float64  `json:"rss_mb_per_hour"` // of the worker that grew most
	RSS          [2]int64 `json:"rss_kb"`          // of all workers together, first and last
	RedisChange  float64  `json:"redis_change_percent"`
	Redis        [2]int64 `json:"redis_kb"` // first and last
	LatencyFirst Times    `json:"latency_first_ms"`
	LatencyLast  Times    `json:"latency_last_ms"` // of the last quarter

	Problems []string `json:"problems,omitempty"`
}

// The soak's measures.
const (
	soakShare = 0.7 // of the peak
	soakRows  = 8
	// minPeak and maxPeak bound the twelfth of the soak's time for which the peak is measured: before
	// a long soak as long as a machine's speed goes up and down. What 20 seconds tell of it may be
	// half as much again as it can keep up.
	minPeak    = 20 * time.Second
	maxPeak    = 5 * time.Minute
	soakSample = 5 * time.Second
	// judgedFrom is how long a soak must be for its memory to be judged: what a Go program takes
	// goes up and down by more than would grow in less.
	judgedFrom = 30 * time.Minute
	maxRSS     = 1.0 // MB/h
	maxRedis   = 2.0 // percent
)

// soak is one soak.
type soak struct {
	SoakConfig
	report    SoakReport
	dir       string
	client    *client.Client
	rdb       *redis.Client
	processes []*process
	rows      []*client.Handle
	sent      []atomic.Int64 // by row
	full      atomic.Int64
	trees     atomic.Int64

	problems sync.Mutex // guards those of the report

	began   time.Time
	samples []sample
	first   stopwatch
	last    stopwatch
	minute  stopwatch // of this one
}

// sample is what is measured now and then.
type sample struct {
	at    time.Duration
	rss   []int64 // KB by worker
	redis int64   // KB
}

// Soak puts a steady load on an installation of its own, and looks whether anything grows.
func Soak(ctx context.Context, cfg SoakConfig) (report *SoakReport, err error) {
	dir, err := os.MkdirTemp("", "weir-soak-")
	if err != nil {
		return nil, err
	}
	s := &soak{SoakConfig: cfg, dir: dir, sent: make([]atomic.Int64, soakRows)}
	h := &host{dir: dir}
	defer func() {
		s.dismiss()
		h.close()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	var srv *redistest.Server
	if err := h.try(func() { srv = redistest.Start(h, "--appendonly", "yes", "--appendfsync", everySec) }); err != nil {
		return nil, err
	}
	return &s.report, s.run(ctx, srv)
}

func (s *soak) run(ctx context.Context, srv *redistest.Server) (err error) {
	s.rdb = redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer func() { err = errors.Join(err, s.rdb.Close()) }()
	store, err := redisstore.Open(ctx, redisstore.Config{URL: srv.URL(), Namespace: namespace, Shards: shards})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s.client = client.New(store)
	for range s.Workers {
		env := []string{crew.URLEnv + "=" + srv.URL(), crew.NamespaceEnv + "=" + namespace, crew.LeaseEnv + "=5s", crew.LacksEnv + "=-1", crew.VersionEnv + "=2"}
		p, err := spawn(s.dir, crew.RoleWorker, env, func(*process, job.ID) {}, func(*process, job.ID) {})
		if err != nil {
			return err
		}
		s.processes = append(s.processes, p)
	}
	for range soakRows {
		h, err := s.client.Start(ctx, crew.LoadRow())
		if err != nil {
			return err
		}
		s.rows = append(s.rows, h)
	}
	if err := s.peak(ctx); err != nil {
		return err
	}
	if err := s.steady(ctx); err != nil {
		return err
	}
	if err := s.drained(ctx); err != nil {
		return err
	}
	s.judge()
	return nil
}

func (s *soak) dismiss() {
	for _, p := range s.processes {
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
}

func (s *soak) say(format string, args ...any) {
	fmt.Fprintf(s.Progress, "soak: "+format+"\n", args...)
}

func (s *soak) problem(format string, args ...any) {
	s.problems.Lock()
	defer s.problems.Unlock()
	s.report.Problems = append(s.report.Problems, fmt.Sprintf(format, args...))
}

// peak measures how many messages a second go through when each row always has some.
func (s *soak) peak(ctx context.Context) error {
	length := min(max(minPeak, s.Duration/12), maxPeak)
	s.say("measuring the peak for %s", length)
	limit, stop := context.WithTimeout(ctx, length)
	defer stop()
	var wg sync.WaitGroup
	for row := range s.rows {
		wg.Go(func() {
			for limit.Err() == nil {
				s.write(limit, row, 50)
			}
		})
	}
	pause(limit, minPeak/4) // until it is warm
	before, err := s.passed(ctx)
	at := time.Now()
	for err == nil && pause(limit, soakSample) {
		err = s.read(ctx)
	}
	stop()
	wg.Wait()
	after, err2 := s.passed(ctx)
	if err := errors.Join(err, err2, ctx.Err()); err != nil {
		return err
	}
	s.report.Peak = float64(after-before) / time.Since(at).Seconds()
	s.report.Rate = soakShare * s.report.Peak
	return s.drained(ctx)
}

// write writes messages to a row, and waits for room. The first one says when.
func (s *soak) write(ctx context.Context, row, n int) {
	items := make([]any, n)
	for i := range items {
		items[i] = crew.Stamped{Pad: padding}
	}
	items[0] = crew.Stamped{At: time.Now(), Pad: padding}
	for ctx.Err() == nil {
		err := s.rows[row].Write(context.WithoutCancel(ctx), "in", items...)
		if err == nil {
			s.sent[row].Add(int64(n))
			return
		}
		if !errors.Is(err, job.ErrFull) {
			s.problem("writing: %v", err)
			return
		}
		s.full.Add(1)
		pause(ctx, 5*time.Millisecond)
	}
}

var padding = strings.Repeat("x", 80)

// passed returns how many messages have come to the ends of the rows.
func (s *soak) passed(ctx context.Context) (int64, error) {
	all := int64(0)
	for _, h := range s.rows {
		children, err := h.Children(ctx)
		if err != nil {
			return 0, err
		}
		state, err := children[crew.DropName].State(ctx, crew.CountKey)
		if err != nil {
			return 0, err
		}
		all += int64(number[int](state[crew.CountKey]))
	}
	return all, nil
}

// read takes out what the rows have told: a port keeps what is published, too, and would grow.
func (s *soak) read(ctx context.Context) error {
	for _, h := range s.rows {
		d, err := h.Child(ctx, crew.DropName)
		if err == nil {
			_, err = d.Drain(ctx, port.Output, crew.HeardName)
		}
		if err != nil {
			return fmt.Errorf("reading what a row has told: %w", err)
		}
	}
	return nil
}

// drained waits until all that was sent has passed.
func (s *soak) drained(ctx context.Context) error {
	want := int64(0)
	for i := range s.sent {
		want += s.sent[i].Load()
	}
	s.report.Sent = want
	for deadline := time.Now().Add(time.Minute); ; {
		got, err := s.passed(ctx)
		if s.report.Passed = got; err != nil || got == want {
			return err
		}
		if time.Now().After(deadline) {
			s.problem("%d messages were sent, %d have passed", want, got)
			return nil
		}
		if !pause(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// steady sends messages at the rate of the soak.
func (s *soak) steady(ctx context.Context) error {
	s.say("%.0f messages/s at most; now %.0f for %s", s.report.Peak, s.report.Rate, s.Duration)
	limit, stop := context.WithTimeout(ctx, s.Duration)
	defer stop()
	s.began = time.Now()
	var wg sync.WaitGroup
	heard := make(chan error, 1)
	wg.Go(func() { heard <- s.client.Listen(limit, crew.HeardChannel, s.hear) })
	for row := range s.rows {
		wg.Go(func() { s.feed(limit, row) })
	}
	wg.Go(func() { s.churn(limit) })
	for pause(limit, soakSample) {
		if err := s.sample(ctx); err != nil {
			return err
		}
	}
	wg.Wait()
	s.report.Seconds = time.Since(s.began).Seconds()
	if err := <-heard; err != nil && limit.Err() == nil {
		return err
	}
	return ctx.Err()
}

// feed writes a row's share, now and then some.
func (s *soak) feed(ctx context.Context, row int) {
	const every = 50 * time.Millisecond
	each := s.report.Rate / soakRows
	written := 0
	for pause(ctx, every) {
		if n := int(each*time.Since(s.began).Seconds()) - written; n > 0 {
			n = min(n, crew.LoadLimit/2)
			s.write(ctx, row, n)
			written += n
		}
	}
}

// churn starts trees, lets them run, ends and deletes them.
func (s *soak) churn(ctx context.Context) {
	for pause(ctx, 500*time.Millisecond) {
		if _, err := shortTree(context.WithoutCancel(ctx), s.client); err != nil {
			s.problem("a short tree: %v", err)
			return
		}
		s.trees.Add(1)
	}
}

// hear notes how long a message was on its way.
func (s *soak) hear(raw json.RawMessage) {
	var at time.Time
	if port.Decode(raw, &at) != nil {
		return
	}
	s.minute.add(time.Since(at))
	switch since := time.Since(s.began); {
	case since < s.Duration/4:
	case since < s.Duration/2:
		s.first.add(time.Since(at))
	case since > 3*s.Duration/4:
		s.last.add(time.Since(at))
	}
}

// sample measures memory.
func (s *soak) sample(ctx context.Context) error {
	if err := s.read(ctx); err != nil {
		return err
	}
	one := sample{at: time.Since(s.began)}
	for _, p := range s.processes {
		kb, err := rss(p.cmd.Process.Pid)
		if err != nil {
			return fmt.Errorf("a worker is gone: %w", err)
		}
		one.rss = append(one.rss, kb)
	}
	info, err := s.rdb.InfoMap(ctx, "memory").Result()
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(info["Memory"]["used_memory"], &one.redis); err != nil {
		return err
	}
	one.redis /= 1024
	s.samples = append(s.samples, one)
	if len(s.samples)%12 == 0 {
		lag := s.minute.reset()
		s.say("%5.0f s: workers %d KB, Redis %d KB, %d trees, latency %.1f/%.1f ms",
			one.at.Seconds(), one.rss, one.redis, s.trees.Load(), lag.P50, lag.P99)
	}
	return nil
}

// rss returns the memory of a process in KB.
func rss(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(raw), &size, &resident); err != nil {
		return 0, err
	}
	return resident * int64(os.Getpagesize()) / 1024, nil
}

func sum(all []int64) (n int64) {
	for _, v := range all {
		n += v
	}
	return n
}

// judge works out what grew, without the first quarter.
func (s *soak) judge() {
	r := &s.report
	r.Mode, r.Full, r.Trees = "soak", s.full.Load(), s.trees.Load()
	r.LatencyFirst, r.LatencyLast = s.first.times(), s.last.times()
	warm := slices.DeleteFunc(s.samples, func(one sample) bool { return one.at < s.Duration/4 })
	if len(warm) < 2 {
		s.problem("it was too short to measure anything")
		return
	}
	for w := range s.processes {
		r.RSSPerHour = max(r.RSSPerHour, slope(warm, func(one sample) float64 { return float64(one.rss[w]) })/1024*3600)
	}
	a, b := warm[0], warm[len(warm)-1]
	r.RSS = [2]int64{sum(a.rss), sum(b.rss)}
	// The log of Redis is rewritten now and then, which takes memory: the line through all counts.
	perSecond := slope(warm, func(one sample) float64 { return float64(one.redis) })
	r.Redis = [2]int64{a.redis, b.redis}
	r.RedisChange = 100 * perSecond * (b.at - a.at).Seconds() / float64(a.redis)
	if s.Duration < judgedFrom {
		return
	}
	if r.RSSPerHour > maxRSS {
		s.problem("a worker grows by %.2f MB an hour", r.RSSPerHour)
	}
	if r.RedisChange > maxRedis {
		s.problem("Redis grew by %.1f %%", r.RedisChange)
	}
	if r.LatencyLast.P50 > 2*r.LatencyFirst.P50 {
		s.problem("latency grew from %.1f to %.1f ms", r.LatencyFirst.P50, r.LatencyLast.P50)
	}
}

// slope is that of the line that fits best, for each second.
func slope(all []sample, y func(sample) float64) float64 {
	var sx, sy, sxx, sxy float64
	for _, one := range all {
		x, v := one.at.Seconds(), y(one)
		sx, sy, sxx, sxy = sx+x, sy+v, sxx+x*x, sxy+x*v
	}
	n := float64(len(all))
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
