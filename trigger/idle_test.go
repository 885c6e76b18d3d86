package trigger_test

import (
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
)

// Triggers that are due tomorrow cost an engine that has nothing else to do at most 30 commands a second.
func TestIdle(t *testing.T) {
	t.Parallel()
	const triggers = 1_000
	server := redistest.Start(t)
	s := enginetest.Open(t, redisstore.Config{URL: server.URL(), Shards: 4})
	e, err := engine(s)
	enginetest.Check(t, err)
	enginetest.Run(t, e.Run)
	c := client.New(s)
	d := trigger.Definition{Schedule: "every:24h", Launch: task()}
	for e.Ready() != nil {
		time.Sleep(time.Millisecond)
	}
	var adding sync.WaitGroup
	last := make([]*client.Handle, 20)
	for i := range last {
		adding.Go(func() {
			for range triggers / len(last) {
				h, err := trigger.Add(t.Context(), c, d)
				if err != nil {
					t.Error(err)
					return
				}
				last[i] = h
			}
		})
	}
	adding.Wait()
	if t.Failed() {
		return
	}
	rdb := server.Client(t)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		n, err := c.Count(t.Context(), job.Filter{Type: trigger.Type, Status: []statemachine.Status{statemachine.Suspended}})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d sleep, %v", n, err)
		}
		if n == triggers {
			break
		}
	}
	const looked = 4 * time.Second
	before := commands(t, rdb)
	time.Sleep(looked) // what is counted is what happens meanwhile
	perSecond := float64(commands(t, rdb)-before-1) / looked.Seconds()
	t.Logf("%.1f commands a second with %d triggers", perSecond, triggers)
	if perSecond > 30 {
		t.Errorf("%.1f commands a second", perSecond)
	}
}

// commands is how many commands clients have sent to a server.
func commands(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	stats, err := rdb.Info(t.Context(), "stats").Result()
	enginetest.Check(t, err)
	n, err := strconv.Atoi(regexp.MustCompile(`total_commands_processed:(\d+)`).FindStringSubmatch(stats)[1])
	enginetest.Check(t, err)
	return n
}
