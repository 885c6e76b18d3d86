package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
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

// serveUntil runs an engine until a job has a status.
func serveUntil(t *testing.T, store *redisstore.Store, h *client.Handle, w worker.Worker, want statemachine.Status) {
	t.Helper()
	engine := enginetest.Serve(t, worker.Config{Store: store, Workers: []worker.Worker{w}})
	if _, err := h.WaitFor(t.Context(), func(i *job.Info) bool { return i.Status == want }); err != nil {
		t.Error(err)
	}
	engine.Stop()
}

// panicker panics below its Run, in the Go runtime.
type panicker struct{ items []int }

func (panicker) JobType() string { return "Panicker" }

func (p *panicker) Run(context.Context, *worker.Run) error {
	p.items[3] = 1
	return nil
}

// started starts a job of a worker under an alias, on a Redis of its own.
func started(t *testing.T, w any, alias string) (url string, store *redisstore.Store, h *client.Handle) {
	t.Helper()
	url = redistest.Start(t).URL()
	store = enginetest.Open(t, redisstore.Config{URL: url})
	h, err := client.New(store).Start(t.Context(), job.Single(w, ""), job.Alias(alias))
	enginetest.Check(t, err)
	return url, store, h
}

// TestWherePanicked: weir why and weir show say where a worker panicked.
func TestWherePanicked(t *testing.T) {
	t.Parallel()
	url, store, h := started(t, &panicker{}, "p")
	serveUntil(t, store, h, &panicker{}, statemachine.Failed)
	where := regexp.MustCompile(`panic: runtime error: index out of range \[3\] with length 0 at \S*poison_test\.go:\d+, in \S+\.\(\*panicker\)\.Run\n`)
	for _, command := range []string{"why", "show"} {
		if said := weir(t, url, command, "p"); !where.MatchString(said) {
			t.Errorf("weir %s says\n%s", command, said)
		}
	}
}

// TestPoisonInClosedPort: what weir why says of a job that fails on a message of a closed port, where nothing can be
// sent back, works and loses no other message.
func TestPoisonInClosedPort(t *testing.T) {
	t.Parallel()
	url, store, h := started(t, &adder{}, "adder")
	weir(t, url, "send", "adder", "in", `{"N":1}`, `{"N":"two"}`, `{"N":3}`, "--close")
	serveUntil(t, store, h, &adder{}, statemachine.Failed)
	said := weir(t, url, "why", "adder")
	if strings.Contains(said, "weir read") || !strings.Contains(said, "skips what it cannot use") || strings.Count(said, "$ weir retry adder") != 2 {
		t.Errorf("weir why says\n%s", said)
	}
	weir(t, url, "retry", "adder")
	serveUntil(t, store, h, &adder{fixed: true}, statemachine.Completed)
	if got := weir(t, url, "read", "adder", "sum"); got != "4\n" {
		t.Errorf("the sum is %s", got)
	}
}
