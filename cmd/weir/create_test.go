package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// astray is a Redis whose clock is not that of this process.
type astray struct {
	*testing.T
	mini  *redistest.Mini
	now   time.Time // of the Redis
	store *redisstore.Store
}

// byAnotherClock tests with a Redis whose clock is far ahead, and with one whose is far behind.
func byAnotherClock(t *testing.T, test func(a *astray)) {
	for name, skew := range map[string]time.Duration{"ahead": 48 * time.Hour, "behind": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &astray{T: t, mini: redistest.StartMini(t), now: time.Now().Add(skew)}
			a.pass(0)
			store := enginetest.Open(t, redisstore.Config{URL: a.mini.URL()})
			a.store = store
			test(a)
		})
	}
}

// pass lets time pass at the Redis.
func (a *astray) pass(d time.Duration) {
	a.now = a.now.Add(d)
	a.mini.Redis.SetTime(a.now)
}

// weir runs a command, which must succeed, and returns what it printed.
func (a *astray) weir(args ...string) string {
	a.Helper()
	var out bytes.Buffer
	if code := run(a.Context(), append(args, "--redis", a.mini.URL()), &out, &out); code != 0 {
		a.Fatalf("exit code %d\n%s", code, &out)
	}
	return out.String()
}

// A job that is created for later waits by the clock of the Redis, which here is not that of the command.
func TestCreateInByAnotherClock(t *testing.T) {
	t.Parallel()
	byAnotherClock(t, func(a *astray) {
		if err := a.store.Register(a.Context(), []job.TypeInfo{{Queue: job.DefaultQueue, Type: "T"}}); err != nil {
			a.Fatal(err)
		}
		id := job.ID(strings.TrimSpace(a.weir("create", "T", "--in", "1h")))
		if info, err := a.store.Info(a.Context(), id); err != nil || info.Status != statemachine.Scheduled {
			a.Errorf("the job is %v, %v", info, err)
		}
		a.pass(2 * time.Hour)
		if _, err := a.store.Sweep(a.Context()); err != nil {
			a.Fatal(err)
		}
		if info, err := a.store.Info(a.Context(), id); err != nil || info.Status != statemachine.Queued {
			a.Errorf("after its time the job is %v, %v", info, err)
		}
	})
}
