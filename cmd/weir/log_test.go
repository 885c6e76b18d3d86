package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

// What is so long ago is so by the clock of the Redis, which here is not that of the command.
func TestLogSinceByAnotherClock(t *testing.T) {
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
			h, err := job.NewClient(store).Start(t.Context(), job.Single(&resize{Width: 64}, ""))
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Write(t.Context(), "in", "a.png"); err != nil {
				t.Fatal(err)
			}
			entries := func() int {
				var out bytes.Buffer
				if code := run(t.Context(), []string{"log", string(h.ID()), "--since", "1h", "-o", "jsonl", "--redis", mini.URL()}, &out, &out); code != 0 {
					t.Fatalf("exit code %d\n%s", code, &out)
				}
				return strings.Count(out.String(), "\n")
			}
			if n := entries(); n != 1 {
				t.Errorf("of the last hour there are %d entries, want 1", n)
			}
			mini.Redis.SetTime(now.Add(2 * time.Hour))
			if n := entries(); n != 0 {
				t.Errorf("two hours later there are %d entries of the last hour, want none", n)
			}
		})
	}
}
