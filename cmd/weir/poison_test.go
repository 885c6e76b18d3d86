package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

type amount struct{ N int }

// adder adds amounts up. Before it is fixed it fails on what is no amount.
type adder struct {
	In    port.In[amount]
	Sum   port.Out[int]
	fixed bool
}

func (adder) JobType() string { return "Adder" }

func (a *adder) Run(context.Context, *worker.Run) error {
	sum := 0
	for one, err := range a.In.All() {
		switch {
		case err == nil:
			sum += one.N
		case !a.fixed:
			return err
		}
	}
	return a.Sum.Write(sum)
}

// TestPoisonInClosedPort: what weir why says of a job that fails on a message of a closed port, where nothing can be
// sent back, works and loses no other message.
func TestPoisonInClosedPort(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h, err := job.NewClient(store).Start(t.Context(), job.Single(&adder{}, ""), job.Alias("adder"))
	if err != nil {
		t.Fatal(err)
	}
	weir(t, server.URL(), "send", "adder", "in", `{"N":1}`, `{"N":"two"}`, `{"N":3}`, "--close")
	serve := func(a *adder, want statemachine.Status) {
		t.Helper()
		engine, err := worker.New(worker.Config{Store: store, Workers: []worker.Worker{a}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- engine.Run(ctx) }()
		if _, err := h.WaitFor(t.Context(), func(i *job.Info) bool { return i.Status == want }); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	serve(&adder{}, statemachine.Failed)
	said := weir(t, server.URL(), "why", "adder")
	if strings.Contains(said, "weir read") || !strings.Contains(said, "skips what it cannot use") || strings.Count(said, "$ weir retry adder") != 2 {
		t.Errorf("weir why says\n%s", said)
	}
	weir(t, server.URL(), "retry", "adder")
	serve(&adder{fixed: true}, statemachine.Completed)
	if got := weir(t, server.URL(), "read", "adder", "sum"); got != "4\n" {
		t.Errorf("the sum is %s", got)
	}
}
