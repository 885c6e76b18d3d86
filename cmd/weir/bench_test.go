package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

var (
	benchJobs   = flag.Int("jobs", 20_000, "jobs that BenchmarkFind creates; the target is for 1000000")
	benchFailed = flag.Int("failed", 100, "one of so many jobs of BenchmarkFind has failed")
)

// BenchmarkFind measures how long the program takes to find jobs among many, from its start to
// its end:
//
//	go test -run '^$' -bench Find -benchtime 20x -timeout 30m ./cmd/weir -jobs 1000000
func BenchmarkFind(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "weir")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	server := redistest.Start(b)
	start := time.Now()
	last := populate(b, server.URL())
	b.Logf("%d jobs, one of %d failed, created in %s", *benchJobs, *benchFailed, time.Since(start).Round(time.Second))
	for _, args := range [][]string{
		{"version"},
		{"show", string(last)},
		{"jobs"},
		{"jobs", "--status", "failed"},
		{"jobs", "--newer", "1h", "--limit", "20"},
		{"jobs", "--status", "suspended", "--label", "customer=7"},
		{"jobs", "--status", "queued"},
		{"jobs", "--status", "failed", "--all", "--sort", "created"},
		{"jobs", "--all"},
		{"jobs", "--alias", "none*"},
		{"jobs", "--count"},
		{"jobs", "--count", "--status", "failed"},
		{"jobs", "--count", "--type", "Resize"},
		{"jobs", "--sort", "-ran"},
	} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				c := exec.CommandContext(b.Context(), binary, args...)
				var out bytes.Buffer
				c.Stdout, c.Stderr = &out, &out
				c.Env = []string{"WEIR_REDIS_URL=" + server.URL()}
				began := time.Now()
				if err := c.Run(); err != nil {
					b.Fatalf("%v: %s", err, &out)
				}
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "ms/p50")
			b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "ms/max")
		})
	}
}

// populate creates jobs: most of them sleep, one of that many has failed. It returns the last.
func populate(b *testing.B, url string) job.ID {
	b.Helper()
	ctx := context.WithoutCancel(b.Context())
	store := enginetest.Open(b, redisstore.Config{URL: url})
	ids := make([]job.ID, *benchJobs)
	var g errgroup.Group
	g.SetLimit(16)
	for n := range ids {
		g.Go(func() (err error) {
			if ids[n], err = job.NewID(); err != nil {
				return err
			}
			return settle(ctx, store, ids[n], n)
		})
	}
	enginetest.Check(b, g.Wait())
	return ids[len(ids)-1]
}

// settle creates the n-th job, and lets it fail if it is its turn.
func settle(ctx context.Context, s *redisstore.Store, id job.ID, n int) error {
	in := job.Port{Spec: port.Spec{Name: "in", Dir: port.Input}}
	fails := n%*benchFailed == 0
	if !fails {
		in.Sources = 1 // it sleeps until somebody feeds it
	}
	node := job.Node{
		Type: "Resize", Labels: map[string]string{"customer": fmt.Sprint(n % 100)},
		Ports: []job.Port{in, {Spec: port.Spec{Name: "out", Dir: port.Output}}},
	}
	if _, err := s.Create(ctx, id, &job.Plan{Nodes: []job.Node{node}}, "bench"); err != nil || !fails {
		return err
	}
	token := fmt.Sprint("token", n)
	if _, err := s.Begin(ctx, id, store.Begin{Token: token, Lease: time.Minute, Batch: 1, Bytes: 1}); err != nil {
		return err
	}
	results, err := s.Commit(ctx, []store.Tx{{Deltas: []store.Delta{{
		Job: id, Token: token, Outcome: statemachine.Fail, Reason: "out of paper",
		Failure: &job.Failure{At: time.Now(), Error: "out of paper"},
	}}}})
	if err == nil {
		err = results[0].Refused
	}
	return err
}
