package redisstore_test

import (
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestDriverLog: what go-redis logs of a Redis that is away is for the debug log of the program, and not for its standard error.
func TestDriverLog(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"INFO", "DEBUG"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestDriverLogAway$", "-test.v")
		cmd.Env = append(os.Environ(), "WEIR_TEST_DRIVER_LOG="+level)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "the Redis is away") {
			t.Fatalf("%v\n%s", err, out)
		}
		if got, want := strings.Contains(string(out), "failed to dial"), level == "DEBUG"; got != want {
			t.Errorf("level %s: the line of go-redis is there: %v\n%s", level, got, out)
		}
	}
}

// TestDriverLogAway is the process that TestDriverLog starts.
func TestDriverLogAway(t *testing.T) {
	level := os.Getenv("WEIR_TEST_DRIVER_LOG")
	if level == "" {
		t.Skip("this is no test by itself: TestDriverLog starts it as a process, with a level")
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		t.Fatal(err)
	}
	slog.SetLogLoggerLevel(l)
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Log("the Redis is away:", err)
	}
}
