package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
)

// site is a directory with a graph file that reads a file of the directory, and that one.
func site(t *testing.T, holds string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"f.txt":     holds,
		"read.yaml": "weir: 1\nnodes: {r: {type: read_file, args: {path: f.txt}}}\noutputs: {o: r.out}\n",
		"exec.yaml": "weir: 1\nnodes: {e: {type: emit, args: {items: [1]}}, x: {type: exec, queue: slow, args: {program: cat}}}\nedges: [e.out -> x.in]\noutputs: {o: x.out}\n",
		"wait.yaml": "weir: 1\nnodes: {r: {type: read_file, args: {path: f.txt}}, d: {type: delay, args: {by: 3s}}}\nedges: [r.out -> d.in]\noutputs: {o: d.out}\n",
	} {
		enginetest.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// in is the weir command as a process of its own in a directory, on a Redis.
func in(t *testing.T, dir, url string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := process(t, args...)
	cmd.Dir, cmd.Env = dir, append(cmd.Env, "WEIR_REDIS_URL="+url)
	return cmd
}

// served starts a worker in a directory, which ends with the test.
func served(t *testing.T, dir, url string, args ...string) {
	t.Helper()
	cmd := in(t, dir, url, append([]string{"worker"}, args...)...)
	enginetest.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// noPrivate wants that nothing in a Redis is called after a private queue, but the ready sets of jobs that wait in it, nor
// listed by asynq or Weir as one.
func noPrivate(t *testing.T, rdb *redis.Client, url string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	left := slices.DeleteFunc(rdb.Keys(ctx, "*private/*").Val(), func(key string) bool { return strings.Contains(key, "}:ready:") })
	if len(left) > 0 {
		t.Errorf("keys stay: %v", left)
	}
	listed := strings.Join(rdb.SMembers(ctx, "asynq:queues").Val(), " ") + strings.Join(rdb.HKeys(ctx, "weir:{main}:types").Val(), " ")
	if strings.Contains(listed, "private/") {
		t.Errorf("queues or types stay: %s", listed)
	}
	if text := weir(t, url, "queues"); strings.Contains(text, "private/") {
		t.Errorf("weir queues lists it:\n%s", text)
	}
}

// Point 18: jobs of weir run are run by that process alone, with its root and permissions, though other processes
// serve the queues that the file names; nothing of its queue stays.
func TestRunIsPrivate(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	mine, other := site(t, "AAA"), site(t, "BBB")
	for range 2 {
		served(t, other, server.URL(), "--queue", "default", "--queue", "slow")
	}
	enginetest.Until(t, "both workers are there", func() bool { return strings.Count(weir(t, server.URL(), "workers", "-o", "json"), `"pid"`) == 2 })
	for n := range 8 {
		out, err := in(t, mine, server.URL(), "run", "read.yaml").Output()
		if err != nil || string(out) != "AAA\n" {
			t.Errorf("run %d: %v, it printed %q", n, err, out)
		}
		out, err = in(t, other, server.URL(), "run", filepath.Join(mine, "read.yaml"), "--root", mine).Output()
		if err != nil || string(out) != "AAA\n" {
			t.Errorf("run %d with --root: %v, it printed %q", n, err, out)
		}
		if out, err = in(t, mine, server.URL(), "run", "exec.yaml", "--allow-exec", "cat").Output(); err != nil || len(out) == 0 {
			t.Errorf("run %d with --allow-exec: %v, it printed %q", n, err, out)
		}
	}
	noPrivate(t, server.Client(t), server.URL())
	if keys := server.Client(t).Keys(t.Context(), "*private/*").Val(); len(keys) > 0 {
		t.Errorf("keys stay: %v", keys)
	}
}

// Point 18: a weir run that is killed or interrupted leaves its jobs and nothing of its queue; weir why, and at an
// interruption the command itself, tell what goes on with them, which another process then does.
func TestRunGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"killed": syscall.SIGKILL, "interrupted": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			rdb, mine, other := server.Client(t), site(t, "AAA"), site(t, "BBB")
			served(t, other, server.URL())
			cmd := in(t, mine, server.URL(), "run", "wait.yaml")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			enginetest.Check(t, cmd.Start())
			var id string
			enginetest.Until(t, "it has read the file", func() bool {
				id = strings.TrimSpace(weir(t, server.URL(), "jobs", "-o", "name"))
				return id != "" && strings.Contains(weir(t, server.URL(), "tree", id, "-o", "json"), `"completed"`)
			})
			if text := weir(t, server.URL(), "queues"); !strings.Contains(text, "private/") {
				t.Errorf("while it runs its queue is not listed:\n%s", text)
			}
			_ = cmd.Process.Signal(signal)
			_ = cmd.Wait()
			command := regexp.MustCompile(`weir worker (--queue private/\w+)`)
			if name == "interrupted" {
				want := fmt.Sprintf("to go on:  weir worker --queue private/\\w+ --root %s\n", regexp.QuoteMeta(mine))
				if !regexp.MustCompile(want).MatchString(stderr.String()) {
					t.Errorf("it says %s", stderr.String())
				}
			}
			enginetest.Until(t, "it is not taken for living any more", func() bool {
				return !strings.Contains(weir(t, server.URL(), "workers", "-o", "json"), "private/")
			})
			noPrivate(t, rdb, server.URL())
			var found []string
			enginetest.Until(t, "weir why names the command", func() bool {
				found = command.FindStringSubmatch(weir(t, server.URL(), "why", id))
				return found != nil
			})
			served(t, mine, server.URL(), strings.Fields(found[1])...)
			if out := weir(t, server.URL(), "wait", id, "--timeout", "1m"); !strings.Contains(out, "completed") {
				t.Errorf("weir wait says %s", out)
			}
			if out := weir(t, server.URL(), "read", id, "o"); !strings.Contains(out, "AAA") {
				t.Errorf("it wrote %s", out)
			}
			if keys := rdb.Keys(t.Context(), "*private/*").Val(); len(keys) > 0 {
				t.Errorf("keys stay: %v", keys)
			}
		})
	}
}

// Point 18: --root is a directory that is there.
func TestRootMustExist(t *testing.T) {
	t.Parallel()
	dir := site(t, "AAA")
	for _, line := range []string{"run read.yaml", "check read.yaml", "graph draw read.yaml", "worker --redis redis://127.0.0.1:1", "dev"} {
		for root, want := range map[string]string{"nosuchdir": "there is no such directory", "f.txt": "it is a file"} {
			var stdout, stderr bytes.Buffer
			args := append(strings.Fields(strings.ReplaceAll(line, "read.yaml", filepath.Join(dir, "read.yaml"))), "--root", filepath.Join(dir, root))
			code := run(t.Context(), args, &stdout, &stderr)
			if code != exitUsage || !strings.Contains(stderr.String(), want) {
				t.Errorf("weir %s: exit code %d, %s", line, code, stderr.String())
			}
		}
	}
}
