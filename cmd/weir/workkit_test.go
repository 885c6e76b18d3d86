package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/internal/redistest"
)

// spoken is a command of a session, and what it prints.
var spoken = regexp.MustCompile(`(?m)^\$ (.+)\n((?:[^$\n].*\n)*)`)

// changing is what is different each time.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// TestWorkKitDocs: the sessions of docs/workkit.md, with redis-cli and weir worker as they are.
func TestWorkKitDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "workkit.md"))
	if err != nil {
		t.Fatal(err)
	}
	url := redistest.Start(t).URL()
	sh := shell(t, url)
	worker := sh("exec weir worker --workkit app-tasks,mail")
	var told bytes.Buffer
	worker.Stderr = &told
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Signal(os.Interrupt)
		if err := worker.Wait(); err != nil {
			t.Errorf("weir worker: %v\n%s", err, told.String())
		}
	})
	n := 0
	for _, block := range fence.FindAllStringSubmatch(string(page), -1) {
		for _, m := range spoken.FindAllStringSubmatch(block[2], -1) {
			n++
			want := changing.ReplaceAllString(m[2], "ID")
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
				out, err := sh(m[1]).CombinedOutput()
				got := changing.ReplaceAllString(string(out), "ID")
				if err == nil && got == want {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("$ %s\n%s%v\nwant:\n%s", m[1], got, err, want)
				}
			}
		}
	}
	if n < 9 {
		t.Errorf("docs/workkit.md has %d commands", n)
	}
}

// shell returns what makes commands for a shell that finds weir, and a redis-cli that asks the server of a URL.
func shell(t *testing.T, url string) func(line string) *exec.Cmd {
	t.Helper()
	bin := t.TempDir()
	exe, err := os.Executable()
	if err == nil {
		err = os.Symlink(exe, filepath.Join(bin, "weir"))
	}
	if err == nil {
		cli, no := exec.LookPath("redis-cli")
		if no != nil {
			t.Fatal(no)
		}
		err = os.WriteFile(filepath.Join(bin, "redis-cli"), []byte("#!/bin/sh\nexec "+cli+" -u "+url+" \"$@\"\n"), 0o700) //nolint:gosec // it is a program
	}
	if err != nil {
		t.Fatal(err)
	}
	return func(line string) *exec.Cmd {
		c := exec.Command("sh", "-c", line)
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "WEIR_REDIS_URL="+url, "GORACE=atexit_sleep_ms=0")
		return c
	}
}

// TestWorkKitRefused: what is wrong with an entry, or a schedule, is said at once, with exit code 2.
func TestWorkKitRefused(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"trigger", "add", "--workkit", "q"}, "Give --type"},
		{[]string{"trigger", "add", "--workkit", "q", "--type", "map", "--alias", "x"}, "--alias: an entry of a WorkKit schedule has only"},
		{[]string{"trigger", "add", "--workkit", "q", "--type", "map", "--args", "{}"}, "not a JSON array"},
		{[]string{"trigger", "add", "--workkit", "q", "every 7 seconds", "--type", "map"}, "divides"},
		{[]string{"trigger", "add", "--workkit", "a b", "--type", "map"}, "WorkKit schedule"},
		{[]string{"trigger", "list", "--workkit", "a b"}, "WorkKit schedule"},
		{[]string{"worker", "--workkit", "a b"}, "WorkKit schedule"},
		{[]string{"serve", "--no-engine", "--workkit", "q"}, "with an engine"},
		{[]string{"acl", "worker", "--workkit", "a*"}, "WorkKit schedule"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"--redis", url}, c.args...), &stderr, &stderr); code != exitUsage || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("weir %q: exit code %d, %s", c.args, code, stderr.String())
		}
	}
}

// TestWorkKitJSON: the list is as its schema says, and adding twice says so.
func TestWorkKitJSON(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	line := []string{"--redis", url, "trigger", "add", "--workkit", "q", "every weekday at 9am", "--type", "#'my.app/report", "--args", `[1,{"a":null}]`}
	for _, want := range []string{"weir: nothing has been added to schedule q before, and no worker has served it", "weir: it is there already, and is left as it is\n"} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), line, &out, &errs); code != 0 || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "cannot be launched yet: unknown worker type") || len(strings.TrimSpace(out.String())) != 40 {
			t.Errorf("exit code %d, %s%s", code, out.String(), errs.String())
		}
	}
	text := weir(t, url, "trigger", "list", "--workkit", "q", "-o", "json")
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = schemaOf(t)("entries").Validate(v)
	}
	if err != nil || !strings.Contains(text, `"my_app_report"`) || !strings.Contains(text, `"* * * 1-5 9 0 0"`) {
		t.Errorf("%v\n%s", err, text)
	}
}
