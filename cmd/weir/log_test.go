package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
)

// What is so long ago is so by the clock of the Redis, which here is not that of the command.
func TestLogSinceByAnotherClock(t *testing.T) {
	t.Parallel()
	byAnotherClock(t, func(a *astray) {
		h, err := client.New(a.store).Start(a.Context(), job.Single(&resize{Width: 64}, ""))
		if err != nil {
			a.Fatal(err)
		}
		if err := h.Write(a.Context(), "in", "a.png"); err != nil {
			a.Fatal(err)
		}
		entries := func() int {
			return strings.Count(a.weir("log", string(h.ID()), "--since", "1h", "-o", "jsonl"), "\n")
		}
		if n := entries(); n != 1 {
			a.Errorf("of the last hour there are %d entries, want 1", n)
		}
		a.pass(2 * time.Hour)
		if n := entries(); n != 0 {
			a.Errorf("two hours later there are %d entries of the last hour, want none", n)
		}
	})
}
