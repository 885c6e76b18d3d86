package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/bench/internal/lab"
)

// The test binary is started again as the worker that recover kills.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "victim" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// tiny is so little work that every case is done in a moment.
var tiny = lab.Size{
	Chain: 12, Hops: 3, Stream: 24, Streams: 4, Batch: 400, Trees: 2, Children: 5,
	Wakes: 3, Idle: 1500 * time.Millisecond, Weighed: []int{20, 40}, Jobs: []int{20, 40}, Siblings: []int{1, 10}, Broods: []int{10, 30},
	Kills: 1, Stuck: 3, Patience: 2 * time.Minute,
	Waiting: 3000, Writes: 1000, Subscribers: 10, Family: 1500, Wide: 20, Members: 20,
	Triggers: 20, Spread: 2 * time.Second, Posts: 320, Waiters: 5, Payloads: 500,
}

// units are the figures that a run of everything must have, of Weir and of asynq.
var units = map[string]string{
	"chain": "items/s", "chain.own_cpu": "µs", "hops.p50": "ms", "hops.p99": "ms",
	"stream": "messages/s", "single": "messages/s", "batch": "messages/s", "fanout": "trees/s",
	"wake.p50": "ms", "wake.p99": "ms", "idle.commands": "/s", "idle.own_cpu": "ms/s", "idle.redis_cpu": "ms/s",
	"memory.row.20": "bytes", "memory.row.40": "bytes", "memory.lone.20": "bytes", "memory.lone.40": "bytes",
	"growth.jobs.20": "messages/s", "growth.jobs.40": "messages/s",
	"growth.siblings.1": "messages/s", "growth.siblings.10": "messages/s", "growth.siblings.10.own_cpu": "µs",
	"spawn.10": "µs", "spawn.30": "µs", "ticks.p50": "ms", "ticks.burst.p99": "ms",
	"posts": "messages/s", "posts.ten": "messages/s", "posts.p99": "ms", "posts.ten.p99": "ms", "leases.p50": "ms", "payloads": "payloads/s", "payloads.moved": "payloads/s", "handlers": "jobs/s", "handlers.cold.p50": "ms", "recover.p50": "ms", "recover.p99": "ms", "scripts.longest": "ms",
}

// results is what programs that read results.json rely on.
type results struct {
	Machine map[string]any     `json:"machine"`
	Results []result           `json:"results"`
	Ratios  map[string]float64 `json:"ratios"`
	Absent  map[string]string  `json:"absent"`
}

type result struct {
	Name, System, Unit string
	Value              float64
}

// Every case does its work and finds its results right, or the run fails.
func TestEveryCase(t *testing.T) {
	o, err := parse([]string{"-rounds", "1", "-concurrency", "4", "-out", filepath.Join(t.TempDir(), "results.json")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.suite.Size = tiny
	var stdout, stderr bytes.Buffer
	if err := o.run(t.Context(), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	res := read(t, o.out)
	if res.Machine["cores"] == nil || res.Machine["redis"] == "" {
		t.Errorf("the machine is %v", res.Machine)
	}
	seen := map[string]bool{}
	for _, r := range res.Results {
		if r.System != "weir" {
			continue
		}
		seen[r.Name] = true
		if want, ok := units[r.Name]; ok && want != r.Unit {
			t.Errorf("%s is in %q, not in %q", r.Name, r.Unit, want)
		}
		// So few jobs weigh less than the buffers of a connection, and use less CPU time than is seen.
		small := strings.HasSuffix(r.Name, "_cpu") || strings.HasPrefix(r.Name, "memory.")
		if r.Value <= 0 && !small {
			t.Errorf("%s is %v", r.Name, r.Value)
		}
		if !strings.Contains(stdout.String(), r.Name) {
			t.Errorf("%s is not in the table", r.Name)
		}
	}
	for name := range units {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
	if r := slices.IndexFunc(res.Results, func(r result) bool { return r.System == "bullmq" }); (r < 0) == (res.Absent["bullmq"] == "") {
		t.Errorf("BullMQ must have figures or be absent for a reason; absent are %v", res.Absent)
	}
	for _, name := range []string{"chain_vs_asynq", "stream_vs_ceiling", "stream_vs_ceiling_fused", "growth.jobs.40_vs_the_first"} {
		if res.Ratios[name] <= 0 {
			t.Errorf("ratio %s is %v", name, res.Ratios[name])
		}
	}
}

func read(t *testing.T, path string) results {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var res results
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&res); err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	return res
}

// A case with a wrong result ends the run: no figures of it are written.
func TestWrongResultEndsTheRun(t *testing.T) {
	o, err := parse([]string{"-only", "chain", "-out", filepath.Join(t.TempDir(), "results.json")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o.suite.Size = tiny
	o.suite.Cases = []lab.Case{{Workload: "chain", System: "broken", Run: func(context.Context, *lab.Lab) ([]lab.Figure, error) {
		return nil, lab.InOrder([]string{lab.Item(1), lab.Item(0)}, 0, 2)
	}}}
	var stdout, stderr bytes.Buffer
	err = o.run(t.Context(), &stdout, &stderr)
	if err == nil || !strings.Contains(err.Error(), "chain of broken: message 1 came out where 0 belongs") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(o.out); !os.IsNotExist(err) {
		t.Errorf("%s: %v", o.out, err)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-only chian", `-only: "chian" is not one of chain, hops,`},
		{"-peers sidekiq", `-peers: "sidekiq" is not one of`},
		{"-rounds 0", "-rounds and -concurrency are at least 1"},
		{"-aof often", "-aof is everysec or always"},
		{"chain", `"chain" is no flag`},
		{"-nope", "flag provided but not defined"},
		{"victim weir", "needs system, address of Redis and concurrency"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(c.args), io.Discard, &stderr); code != exitUsage || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%s: exit code %d, says %q", c.args, code, &stderr)
		}
	}
	if code := run(t.Context(), []string{"-h"}, io.Discard, io.Discard); code != exitOK {
		t.Errorf("-h: exit code %d", code)
	}
}
