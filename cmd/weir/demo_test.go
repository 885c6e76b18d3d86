//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/weirworks/weir/internal/enginetest"
)

// demonstration is a weir demo in a process of its own.
type demonstration struct {
	*testing.T
	cmd  *exec.Cmd
	page string
	said *buffer
}

// demonstrate starts one, and waits for its address.
func demonstrate(t *testing.T, args ...string) *demonstration {
	t.Helper()
	d := &demonstration{T: t, cmd: process(t, append([]string{"demo", "--addr", "127.0.0.1:0"}, args...)...), said: &buffer{}}
	d.start()
	return d
}

func (d *demonstration) start() {
	d.Helper()
	var stderr buffer
	d.cmd.Stderr = &stderr
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		d.Fatal(err)
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if d.page = strings.TrimSpace(line); err != nil || !strings.HasPrefix(d.page, "http://127.0.0.1:") {
		d.Fatalf("weir demo printed %q, %v: %s", line, err, stderr.String())
	}
	go func() { _, _ = lines.WriteTo(d.said) }()
}

// ask runs a command through the server of the demo.
func (d *demonstration) ask(args ...string) string {
	d.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(d.Context(), append([]string{"--server", d.page}, args...), &stdout, &stderr); code != 0 {
		d.Fatalf("weir %q: code %d, %s", args, code, stderr.String())
	}
	return stdout.String()
}

// state is a number in the state of a job.
func (d *demonstration) state(job, key, field string) int {
	d.Helper()
	var all map[string]map[string]json.RawMessage
	var n int
	if err := json.Unmarshal([]byte(d.ask("state", "get", job, "-o", "json")), &all); err != nil {
		d.Fatal(err)
	}
	_ = json.Unmarshal(all[key][field], &n) // zero if there is none yet
	return n
}

func (d *demonstration) taken() int   { return d.state("demo/orders", "at", "next") }
func (d *demonstration) shipped() int { return d.state("demo/parcels/ship", "shipped", "orders") }

// stop ends it as Ctrl-C does.
func (d *demonstration) stop() {
	d.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	if err := d.cmd.Wait(); err != nil {
		d.Errorf("weir demo ended: %v", err)
	}
}

// TestDemo: the sample works, everything in it happens, and it goes on after kill -9 where it was, unless a fresh one is wanted.
func TestDemo(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	d := demonstrate(t, "--data", data)
	enginetest.Until(t, "it says what to try", func() bool { return strings.Contains(d.said.String(), "--fresh begins anew") })
	for _, line := range []string{"export WEIR_SERVER=" + d.page, "kill -9", data} {
		if !strings.Contains(d.said.String(), line) {
			t.Errorf("it does not say %q:\n%s", line, d.said.String())
		}
	}
	if strings.Contains(d.said.String(), "It goes on with the jobs of ") {
		t.Errorf("a new one goes on:\n%s", d.said.String())
	}
	enginetest.Until(t, "orders are shipped", func() bool { return d.shipped() > 1 })
	enginetest.Until(t, "there is a dead letter", func() bool { return strings.Contains(d.ask("dead", "list"), "the quantity is 0") })
	enginetest.Until(t, "a payment is tried again", func() bool { return strings.Contains(d.ask("log", "demo"), "the bank does not answer") })
	enginetest.Until(t, "a large order waits", func() bool { return strings.Contains(d.ask("state", "get", "demo/approve"), `"id":15`) })
	d.ask("send", "demo", "decisions", `{"order":15,"yes":true}`)
	enginetest.Until(t, "it is approved", func() bool { return !strings.Contains(d.ask("state", "get", "demo/approve"), `"id":15`) })
	d.ask("trigger", "fire", "stocktake")
	enginetest.Until(t, "the trigger launches a job", func() bool { return strings.Contains(d.ask("jobs", "--type", "Stock"), "Stock") })

	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"demo", "--addr", "127.0.0.1:0", "--data", data}, &bytes.Buffer{}, &stderr); code != exitUsage || !strings.Contains(stderr.String(), "another weir works with the data") {
		t.Errorf("a second one: exit code %d, %s", code, stderr.String())
	}
	taken := d.taken()
	enginetest.Check(t, d.cmd.Process.Kill())
	_ = d.cmd.Wait()

	d = demonstrate(t, "--data", data)
	if n := d.taken(); n < taken {
		t.Errorf("after kill -9 %d orders were taken, %d before", n, taken)
	}
	enginetest.Until(t, "it says that it goes on", func() bool { return strings.Contains(d.said.String(), "It goes on with the jobs of ") })
	enginetest.Until(t, "it goes on", func() bool { return d.taken() > taken+3 })
	d.stop()

	d = demonstrate(t, "--data", data)
	if n := d.taken(); n < taken+3 {
		t.Errorf("after a stop %d orders were taken, %d before", n, taken+3)
	}
	d.stop()
	d = demonstrate(t, "--data", data, "--fresh")
	if n := d.taken(); n > taken {
		t.Errorf("a fresh one has taken %d orders", n)
	}
	d.stop()
}

// TestDemoWithoutServer: where there is no redis-server the sample works in its process, and says that it ends with it.
func TestDemoWithoutServer(t *testing.T) {
	t.Parallel()
	d := &demonstration{T: t, cmd: process(t, "demo", "--addr", "127.0.0.1:0", "--data", t.TempDir()), said: &buffer{}}
	d.cmd.Env = append(d.cmd.Env, "PATH="+t.TempDir())
	d.start()
	enginetest.Until(t, "it says so", func() bool { return strings.Contains(d.said.String(), "There is no redis-server here") })
	enginetest.Until(t, "orders are taken", func() bool { // a command may be too early: the Redis in a process is slow
		var out bytes.Buffer
		return run(t.Context(), []string{"--server", d.page, "state", "get", "demo/orders"}, &out, &out) == 0 && strings.Contains(out.String(), "next")
	})
	d.stop()
}
