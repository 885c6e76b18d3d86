package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/port"
)

// narrow is an output that has room for some lines.
type narrow struct {
	lines int
	got   bytes.Buffer
}

func (n *narrow) Write(p []byte) (int, error) {
	if n.lines == 0 {
		return 0, errors.New("no room")
	}
	n.lines--
	return n.got.Write(p)
}

// fill writes 1 to n to the port named in.
func fill(t *testing.T, h *client.Handle, n int) {
	t.Helper()
	all := make([]any, n)
	for i := range all {
		all[i] = i + 1
	}
	if err := h.Write(t.Context(), "in", all...); err != nil {
		t.Fatal(err)
	}
}

// waiting is how many messages wait in the port named in.
func waiting(t *testing.T, h *client.Handle) int64 {
	t.Helper()
	info, err := h.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, _ := info.Port(port.Input, "in")
	return p.Waiting
}

// TestReadTakesWhatItPrinted: messages that cannot be printed stay in the port, and the error is told.
func TestReadTakesWhatItPrinted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, h := shop(t, server.URL())
	fill(t, h, 450)
	read := func(stdout io.Writer, more ...string) (int, string) {
		var stderr bytes.Buffer
		code := run(t.Context(), append([]string{"--redis", server.URL(), "read", "one", "in"}, more...), stdout, &stderr)
		return code, stderr.String()
	}
	for _, more := range [][]string{nil, {"--all"}, {"--all", "-o", "jsonl"}, {"--all", "-o", "json"}, {"-n", "7", "-o", "yaml"}} {
		if code, said := read(&narrow{}, more...); code != exitError || !strings.Contains(said, "no room") {
			t.Errorf("%q to a full disk: exit code %d, %s", more, code, said)
		}
		if code, said := read(closedPipe(t), more...); code != 0 {
			t.Errorf("%q to a closed pipe: exit code %d, %s", more, code, said)
		}
		if n := waiting(t, h); n != 450 {
			t.Fatalf("%q: %d messages wait, want all 450", more, n)
		}
	}
	some := &narrow{lines: 250}
	if code, _ := read(some, "--all", "-o", "jsonl"); code != exitError {
		t.Errorf("to what fills up: exit code %d", code)
	}
	if n := waiting(t, h); n != 250 {
		t.Errorf("%d messages wait after 250 were printed, want 250: pages of 100 are removed when they are printed", n)
	}
	var rest bytes.Buffer
	if code, said := read(&rest, "--all"); code != 0 || strings.Count(rest.String(), "\n") != 250 || !strings.HasPrefix(rest.String(), "201\n") {
		t.Errorf("the rest: exit code %d, %s, %d lines from %.20q", code, said, strings.Count(rest.String(), "\n"), rest.String())
	}
}

// TestReadIntoHead: a reader that has seen enough leaves in the port what no pipe holds.
func TestReadIntoHead(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, h := shop(t, server.URL())
	fill(t, h, 15000)
	cmd := process(t, "read", "one", "in", "--all", "-o", "jsonl", "--redis", server.URL())
	head := exec.CommandContext(t.Context(), "head", "-n", "3")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	head.Stdin = pipe
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if out, err := head.Output(); err != nil || strings.Count(string(out), "\n") != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	_ = pipe.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("read: %v", err)
	}
	if n := waiting(t, h); n < 10000 {
		t.Errorf("%d of 15000 messages are left", n)
	}
}

// TestReadWithoutOutput: what nobody can read is not taken, unless somebody says so.
func TestReadWithoutOutput(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, h := shop(t, server.URL())
	fill(t, h, 3)
	for _, c := range []struct {
		to   string
		left int64
	}{{">&-", 3}, {"> /dev/null", 0}} {
		cmd := process(t, "read", "one", "in", "--all", "--redis", server.URL())
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `"$@" ` + c.to, "sh"}, cmd.Args...)
		out, err := cmd.CombinedOutput()
		if (err == nil) != (c.left == 0) || (err == nil) == strings.Contains(string(out), "standard output is closed") {
			t.Errorf("read %s: %v, %s", c.to, err, out)
		}
		if n := waiting(t, h); n != c.left {
			t.Errorf("read %s leaves %d messages, want %d", c.to, n, c.left)
		}
	}
}

// TestReadWithAnother: what somebody else takes while it is printed ends the reading, and nothing else is removed.
func TestReadWithAnother(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	_, h := shop(t, server.URL())
	fill(t, h, 5)
	var stderr bytes.Buffer
	thief := writerFunc(func(p []byte) (int, error) {
		_, err := h.Take(t.Context(), port.Input, "in", 2)
		return len(p), err
	})
	code := run(t.Context(), []string{"--redis", server.URL(), "read", "one", "in"}, thief, &stderr)
	if want := "weir: somebody else took messages of port in meanwhile: what was printed last (1 message) may be printed twice; read again\n"; code != exitError || stderr.String() != want {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
	if n := waiting(t, h); n != 3 {
		t.Errorf("%d messages wait, want 3", n)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
