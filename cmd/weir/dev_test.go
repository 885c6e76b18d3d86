package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// dev runs weir dev until the test has done what it wants with its Redis.
func dev(t *testing.T, data string, fn func(url string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	code := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		code <- run(ctx, []string{"dev", "--data", data}, w, &stderr)
		_ = w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "export WEIR_REDIS_URL=")
	if err != nil || !ok {
		t.Fatalf("weir dev printed %q, %v; %s", line, err, stderr.String())
	}
	fn(url)
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("weir dev ended with code %d: %s", c, stderr.String())
	}
}

// weir runs a command line that must succeed.
func weir(t *testing.T, url string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if url != "" {
		args = append([]string{"--redis", url}, args...)
	}
	if code := run(t.Context(), args, &stdout, &stderr); code != 0 {
		t.Fatalf("weir %q: code %d, %s", args, code, stderr.String())
	}
	return stdout.String()
}

// TestDev: components run on a Redis that the program starts, and what it holds is there
// again when it is started anew on the same directory.
func TestDev(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	dev(t, data, func(url string) {
		for started := time.Now(); !strings.Contains(weir(t, url, "types"), "map"); time.Sleep(10 * time.Millisecond) {
			if time.Since(started) > time.Minute {
				t.Fatal("the engine does not register its types")
			}
		}
		weir(t, url, "create", "map", "--args", `{"expr":"it*2"}`, "--alias", "twice")
		weir(t, url, "send", "twice", "in", "4", "5", "--close")
		weir(t, url, "wait", "twice", "--timeout", "1m")
		if got := weir(t, url, "read", "twice", "out"); got != "8\n" {
			t.Errorf("read %q", got)
		}
		if got := weir(t, "", "__complete", "--redis", url, "show", "tw"); !strings.HasPrefix(got, "twice\tmap, completed\n") {
			t.Errorf("completion offers %q", got)
		}
	})
	dev(t, data, func(url string) {
		if got := weir(t, url, "read", "twice", "out"); got != "10\n" {
			t.Errorf("after a restart: read %q", got)
		}
	})
}
