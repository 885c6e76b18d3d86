package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// A job that is created for later waits by the clock of the Redis, which here is not that of the command.
func TestCreateInByAnotherClock(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"ahead": 48 * time.Hour, "behind": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mini := redistest.StartMini(t)
			now := time.Now().Add(skew)
			mini.Redis.SetTime(now)
			store, err := redisstore.Open(t.Context(), redisstore.Config{URL: mini.URL()})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if err := store.Register(t.Context(), []job.TypeInfo{{Queue: job.DefaultQueue, Type: "T"}}); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if code := run(t.Context(), []string{"create", "T", "--in", "1h", "--redis", mini.URL()}, &out, &out); code != 0 {
				t.Fatalf("exit code %d\n%s", code, &out)
			}
			id := job.ID(strings.TrimSpace(out.String()))
			if info, err := store.Info(t.Context(), id); err != nil || info.Status != statemachine.Scheduled {
				t.Errorf("the job is %v, %v", info, err)
			}
			mini.Redis.SetTime(now.Add(2 * time.Hour))
			if _, err := store.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if info, err := store.Info(t.Context(), id); err != nil || info.Status != statemachine.Queued {
				t.Errorf("after its time the job is %v, %v", info, err)
			}
		})
	}
}
