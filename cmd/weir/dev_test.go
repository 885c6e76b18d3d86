package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
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

// TestDevWithoutServer: where there is no redis-server it works in its process, says so, and is reached through its server.
func TestDevWithoutServer(t *testing.T) {
	t.Parallel()
	cmd := process(t, "dev", "--addr", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
	out, err := cmd.StdoutPipe()
	enginetest.Check(t, err)
	said := &buffer{}
	cmd.Stderr = said
	enginetest.Check(t, cmd.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	server, ok := strings.CutPrefix(strings.TrimSpace(line), "export WEIR_SERVER=")
	if !ok {
		t.Fatalf("weir dev printed %q; %s", line, said.String())
	}
	enginetest.Until(t, "its types are registered", func() bool { return strings.Contains(weir(t, "", "--server", server, "types"), "map") })
	weir(t, "", "--server", server, "create", "map", "--args", `{"expr":"it*2"}`, "--alias", "twice")
	weir(t, "", "--server", server, "send", "twice", "in", "4", "--close")
	weir(t, "", "--server", server, "wait", "twice", "--timeout", "1m")
	if got := weir(t, "", "--server", server, "read", "twice", "out"); got != "8\n" {
		t.Errorf("read %q", got)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("weir dev ended: %v; %s", err, said.String())
	}

	cmd = process(t, "dev", "--data", t.TempDir())
	cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
	if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), "apt install redis-server") {
		t.Errorf("with --data it says %q, %v", text, err)
	}
}
