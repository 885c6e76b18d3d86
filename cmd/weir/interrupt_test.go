package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/redisstore"
)

// sleeping is a directory with a graph whose job runs a program that sleeps for a minute and writes its PID to a file.
func sleeping(t *testing.T) (dir string, pid func() int) {
	t.Helper()
	dir = t.TempDir()
	text := `weir: 1
name: shop
nodes: {e: {type: emit, args: {items: [1]}}, pay: {type: exec, args: {program: sh, args: [-c, 'echo $$ > pid; exec sleep 60']}}}
edges: [e.out -> pay.in]
outputs: {o: pay.out}
`
	enginetest.Check(t, os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(text), 0o600))
	return dir, func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		return n
	}
}

// stopping starts a command, waits until its program sleeps, and interrupts the command, which must say what it waits for.
func stopping(t *testing.T, cmd *exec.Cmd, suspended func() bool, want string) (stderr *buffer) {
	t.Helper()
	stderr = &buffer{}
	cmd.Stderr = stderr
	enginetest.Check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	enginetest.Until(t, "the program sleeps", suspended)
	interrupt(t, cmd)
	enginetest.Until(t, "it says what it waits for", func() bool { return strings.Contains(stderr.String(), "stopping") })
	if !strings.Contains(stderr.String(), want) {
		t.Errorf("it says %s, want %s", stderr.String(), want)
	}
	return stderr
}

func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
}

// atOnce waits for a command that was interrupted twice. Ten seconds would be the time that the first signal gives.
func atOnce(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	began := time.Now()
	_ = cmd.Wait()
	if took, code := time.Since(began), cmd.ProcessState.ExitCode(); took > 8*time.Second || code != exitInterrupted {
		t.Errorf("it took %s, exit code %d", took, code)
	}
}

// gone waits until a process is.
func gone(t *testing.T, pid int) {
	t.Helper()
	enginetest.Until(t, fmt.Sprintf("process %d is gone", pid), func() bool { return syscall.Kill(pid, 0) != nil })
}

// Point 20: the first Ctrl-C says what is waited for, the second stops at once, with the programs that jobs run, and
// hands their jobs back.
func TestSecondInterrupt(t *testing.T) {
	t.Parallel()
	const first = "weir: stopping: waiting up to 10s for 1 run (shop/pay); press Ctrl-C again to stop at once"
	t.Run("run", func(t *testing.T) {
		t.Parallel()
		dir, pid := sleeping(t)
		cmd := in(t, dir, "", "run", "shop.yaml", "--allow-exec", "sh")
		stopping(t, cmd, func() bool { return pid() > 0 }, first+"\n")
		interrupt(t, cmd)
		atOnce(t, cmd)
		gone(t, pid())
	})
	t.Run("timeout", func(t *testing.T) { // then the first signal is the second one
		t.Parallel()
		dir, pid := sleeping(t)
		cmd := in(t, dir, "", "run", "shop.yaml", "--allow-exec", "sh", "--timeout", "6s")
		stderr := &buffer{}
		cmd.Stderr = stderr
		enginetest.Check(t, cmd.Start())
		enginetest.Until(t, "it says what it waits for", func() bool { return strings.Contains(stderr.String(), "press Ctrl-C to stop at once") })
		interrupt(t, cmd)
		atOnce(t, cmd)
		gone(t, pid())
	})
	t.Run("worker", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		dir, pid := sleeping(t)
		enginetest.Check(t, registerComponents(t.Context(), redisstore.Config{URL: server.URL()}))
		weir(t, server.URL(), "create", "exec", "--args", `{"program": "sh", "args": ["-c", "echo $$ > pid; exec sleep 60"]}`, "--alias", "pay")
		weir(t, server.URL(), "send", "pay", "in", "1")
		cmd := in(t, dir, server.URL(), "worker", "--allow-exec", "sh")
		stopping(t, cmd, func() bool { return pid() > 0 }, "for 1 run (exec); press Ctrl-C again to stop at once; what is cut off then runs again, at the latest when its lease ends\n")
		interrupt(t, cmd)
		atOnce(t, cmd)
		gone(t, pid())
		if out := weir(t, server.URL(), "jobs", "--alias", "pay"); !strings.Contains(out, "queued") {
			t.Errorf("the job is not handed back:\n%s", out)
		}
	})
	t.Run("Redis hangs", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		dir, pid := sleeping(t)
		cmd := in(t, dir, server.URL(), "run", "shop.yaml", "--allow-exec", "sh")
		stopping(t, cmd, func() bool { return pid() > 0 }, first)
		server.Pause()
		defer server.Resume()
		interrupt(t, cmd)
		atOnce(t, cmd)
		gone(t, pid())
	})
	t.Run("dev", func(t *testing.T) {
		t.Parallel()
		dir, pid := sleeping(t)
		cmd := in(t, dir, "", "dev", "--allow-exec", "sh")
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
		out := &buffer{}
		cmd.Stdout = out
		var url string
		created := func() bool {
			_, rest, ok := strings.Cut(out.String(), "export WEIR_REDIS_URL=")
			if url = strings.TrimSpace(rest); !ok || !strings.Contains(weir(t, url, "types"), "exec") {
				return false
			}
			if pid() == 0 && weir(t, url, "jobs", "--count") == "0\n" {
				weir(t, url, "create", "exec", "--args", `{"program": "sh", "args": ["-c", "echo $$ > pid; exec sleep 60"]}`, "--alias", "pay")
				weir(t, url, "send", "pay", "in", "1")
			}
			return pid() > 0
		}
		stopping(t, cmd, created, "for 1 run (exec)")
		interrupt(t, cmd)
		atOnce(t, cmd)
		gone(t, pid())
		var stderr buffer
		if code := run(t.Context(), []string{"stats", "--redis", url}, &stderr, &stderr); code == 0 {
			t.Error("its Redis goes on")
		}
	})
}
