package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/term"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// shop is a namespace with one job that has an In port, named one.
func shop(t *testing.T, url string) (*redisstore.Store, *client.Handle) {
	t.Helper()
	store := enginetest.Open(t, redisstore.Config{URL: url})
	h, err := client.New(store).Start(t.Context(), job.Single(&resize{Width: 64}, ""), job.Alias("one"))
	enginetest.Check(t, err)
	return store, h
}

// goes runs a command until the test cancels it.
func goes(t *testing.T, args ...string) (stdout, stderr *buffer, end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, stderr = &buffer{}, &buffer{}
	code := make(chan int, 1)
	go func() { code <- run(ctx, args, stdout, stderr) }()
	return stdout, stderr, func() int { cancel(); return <-code }
}

// A watched tree is drawn again when it has changed; a Redis that is gone for a while is
// said once, and then watching goes on.
func TestWatch(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	_, h := shop(t, server.URL())
	stdout, stderr, end := goes(t, "tree", "--watch", "--interval", "10ms", "--redis", server.URL())
	enginetest.Until(t, "the tree is drawn", func() bool { return strings.Contains(stdout.String(), "in 0/0") })
	enginetest.Check(t, h.Write(t.Context(), "in", "x"))
	enginetest.Until(t, "the tree is drawn again", func() bool { return strings.Contains(stdout.String(), "in 1/1") })
	server.Kill()
	enginetest.Until(t, "Redis is missed", func() bool { return strings.Contains(stderr.String(), "trying again") })
	server.Restart()
	enginetest.Until(t, "Redis is back", func() bool { return strings.Contains(stderr.String(), "weir: Redis answers again\n") })
	enginetest.Until(t, "it can be written to", func() bool { return h.Write(t.Context(), "in", "y") == nil })
	enginetest.Until(t, "the tree is drawn a third time", func() bool { return strings.Contains(stdout.String(), "in 2/2") })
	if code := end(); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if n := strings.Count(stdout.String(), "JOB "); n != 3 {
		t.Errorf("%d pictures:\n%s", n, stdout.String())
	}
	if n := strings.Count(stderr.String(), "cannot reach Redis"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, stderr.String())
	}
}

// A log that is followed goes on with what comes, through the absence of Redis.
func TestFollow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	_, h := shop(t, server.URL())
	write := func(text string) {
		enginetest.Until(t, "it can be written to", func() bool { return h.Write(t.Context(), "in", text) == nil })
	}
	write("first")
	write("second")
	stdout, stderr, end := goes(t, "log", "one", "-f", "-n", "1", "-o", "jsonl", "--redis", server.URL())
	enginetest.Until(t, "the last entry is there", func() bool { return strings.Contains(stdout.String(), "second") })
	write("third")
	enginetest.Until(t, "the next entry is there", func() bool { return strings.Contains(stdout.String(), "third") })
	server.Kill()
	enginetest.Until(t, "Redis is missed", func() bool { return strings.Contains(stderr.String(), "trying again") })
	server.Restart()
	write("fourth")
	enginetest.Until(t, "the next entry is there", func() bool { return strings.Contains(stdout.String(), "fourth") })
	if code := end(); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if got := strings.Count(stdout.String(), "\n"); got != 3 || strings.Contains(stdout.String(), "first") {
		t.Errorf("got %d entries, want 3:\n%s", got, stdout.String())
	}
}

// What is watched and gone ends with the error.
func TestWatchGone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, h := shop(t, server.URL())
	stdout, stderr, end := goes(t, "tree", "one", "-w", "--interval", "10ms", "--redis", server.URL())
	enginetest.Until(t, "the tree is drawn", func() bool { return strings.Contains(stdout.String(), "queued") })
	enginetest.Check(t, h.RemoveAlias(t.Context(), "one"))
	enginetest.Until(t, "it says so", func() bool { return strings.Contains(stderr.String(), "weir: job not found") })
	if code := end(); code != exitNotFound {
		t.Errorf("exit code %d", code)
	}
}

// process is the weir command as a process of its own.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	enginetest.Check(t, err)
	return &exec.Cmd{Path: self, Args: append([]string{"weir"}, args...), Env: append(os.Environ(), "WEIR_REDIS_URL=", "COLUMNS=", "TERM=", "LC_ALL=")}
}

// Ctrl-C ends what follows with exit code 0.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	shop(t, server.URL())
	weir(t, server.URL(), "send", "one", "in", "1")
	for _, args := range [][]string{{"log", "one", "-f"}, {"tree", "one", "-w"}, {"tree", "-w", "--interval", "1h"}} {
		cmd := process(t, append(args, "--redis", server.URL())...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		enginetest.Check(t, err)
		enginetest.Check(t, cmd.Start())
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("%q: %v, %s", args, err, stderr.String())
		}
	}
}

// A command that a signal ends before it is done says so, and has an exit code of its own.
func TestInterruptedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, h := shop(t, server.URL())
	kept := func() bool { // what weir run started
		all := weir(t, server.URL(), "jobs", "--type", "endless", "--count")
		return all != "0\n"
	}
	sent := func() bool {
		info, err := h.Info(t.Context())
		p, _ := info.Port(port.Input, "in")
		return err == nil && p.Waiting == 1
	}
	client := server.Client(t)
	connections := func() int { return strings.Count(client.ClientList(t.Context()).Val(), "\n") }
	before := 0
	for line, c := range map[string]struct {
		begun        func() bool
		stdout, want string
	}{
		"wait one":                          {func() bool { return connections() > before }, "", "weir: interrupted\n"},
		"send one in 1 -":                   {sent, "", "weir: interrupted; 1 message was sent before\n"},
		"run testdata/endless.yaml -o json": {kept, `"interrupted"`, `{"error":{"code":"interrupted","exit":130,"message":"interrupted"}}` + "\n"},
	} {
		cmd := process(t, append(strings.Fields(line), "--redis", server.URL())...)
		before = connections()
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if _, err := cmd.StdinPipe(); err != nil { // nothing comes
			t.Fatal(err)
		}
		enginetest.Check(t, cmd.Start())
		enginetest.Until(t, line+" has begun", c.begun)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.HasSuffix(stderr.String(), c.want) || !strings.Contains(stdout.String(), c.stdout) {
			t.Errorf("weir %s: exit code %d, %s%s", line, code, stdout.String(), stderr.String())
		}
	}
}

// closedPipe is a pipe that nobody reads.
func closedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	enginetest.Check(t, err)
	_ = r.Close()
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// What follows ends when its reader has seen enough, though there is nothing new to write.
func TestEndsWithItsReader(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	shop(t, server.URL())
	weir(t, server.URL(), "send", "one", "in", "1")
	for _, line := range []string{"log one -f", "tree one -w", "tree -w --interval 1h"} {
		cmd := process(t, append(strings.Fields(line), "--redis", server.URL())...)
		out, err := cmd.StdoutPipe()
		enginetest.Check(t, err)
		enginetest.Check(t, cmd.Start())
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Errorf("weir %s: %v", line, err)
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		if err := cmd.Wait(); err != nil {
			t.Errorf("weir %s: %v", line, err)
		}
		late.Stop()
	}
}

// TestClosedPipe: every command ends quietly and with code 0 when nobody reads its output any
// more. A process would be killed by a signal instead, which main prevents.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	shop(t, server.URL())
	weir(t, server.URL(), "send", "one", "in", "1", "2", "3", "4")
	enginetest.Check(t, registerComponents(t.Context(), redisstore.Config{URL: server.URL()}))
	weir(t, server.URL(), "run", "testdata/sum.yaml", "--in", "n=1")
	sum := strings.TrimSpace(weir(t, server.URL(), "jobs", "--status", "completed", "-o", "name"))
	weir(t, server.URL(), "create", "map", "--args", `{"expr":"it"}`, "--alias", "kid")
	dead := moaning(t, server.URL(), "1", "2")
	enginetest.Check(t, enginetest.Open(t, redisstore.Config{URL: server.URL()}).Register(t.Context(), []job.TypeInfo{{Type: "gone", Queue: job.DefaultQueue}}))
	lines := []string{
		"migrate", "jobs", "jobs --count", "jobs -o jsonl", "show one", "show one -o yaml", "show one -o name", "tree one", "tree one -o json", "tree one --watch", "why one",
		"ports one", "peek one in", "peek one in -o jsonl", "log one", "log one -f", "log one -o jsonl", "trace one in 0", "types", "types forget gone",
		"create map --args {\"expr\":\"it\"}", "create --graph testdata/sum.yaml --alias sums", "patch sums testdata/sum.yaml", "patch sums testdata/sum.yaml --dry-run", "read one in", "run one", "wait " + sum, "state set one a=1", "state get one", "state unset one a",
		"alias one uno", "adopt one kid kid", "disown one kid", "lock kid", "unlock kid --force", "priority kid 600", "terminate kid",
		"dead list", "dead list -o jsonl", "dead show moaner " + dead[0], "dead edit moaner " + dead[0] + " in=1", "dead requeue moaner --yes", "dead discard moaner --yes", "queues", "queue limit default 3", "limits", "queue pause default", "queue resume default", "queue limit default 0", "stats", "workers -o json", "retry --tree one", "fail one", "retry one --in 1h",
		"run testdata/sum.yaml --in n=1", "run testdata/sum.yaml --in n=1 -o json", "graph draw testdata/sum.yaml", "graph convert testdata/sum.yaml", "graph schema",
		"check testdata/sum.yaml", "init " + t.TempDir(), "components", "components map", "schema", "next @daily", "trigger add --type map --args {\"expr\":\"it\"} --alias hook", "trigger list -o json", "trigger show hook", "trigger change hook --parallel 2", "trigger fire hook", "trigger pause hook", "trigger resume hook", "audit -o jsonl", "token create --role read", "token list", "version", "acl reader", "retention --failed 60d", "publish /files/new 1", "--help", "completion bash", "terminate one",
	}
	for _, line := range lines {
		var stderr bytes.Buffer
		args := append([]string{"--redis", server.URL()}, strings.Fields(line)...)
		if code := run(t.Context(), args, closedPipe(t), &stderr); code != 0 {
			t.Errorf("weir %s: exit code %d, %s", line, code, stderr.String())
		}
		for said := range strings.Lines(stderr.String()) {
			if !strings.HasPrefix(said, "job ") { // the ID, by weir run
				t.Errorf("weir %s says %s", line, said)
			}
		}
	}
	covered(t, lines, "delete", "retry", "send", "dev", "demo", "worker", "serve", "token", "help", "man", "doctor", "healthcheck", "top", "context", "trigger", "handler")
	cmd := process(t, "components")
	cmd.Stdout = closedPipe(t)
	if err := cmd.Run(); err != nil {
		t.Errorf("the process: %v", err)
	}
}

// covered wants each command to be in one of the lines, or among those that print nothing of
// which there could be too much.
func covered(t *testing.T, lines []string, others ...string) {
	t.Helper()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		name := strings.TrimPrefix(c.CommandPath(), "weir ")
		called := slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line+" ", name+" ") })
		if !c.HasSubCommands() && !called && !slices.Contains(others, strings.Fields(name)[0]) {
			t.Errorf("weir %s is not tried", name)
		}
	}
	visit(newRoot(&term.Wish{}))
}
