package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	logging.Disable() // as main does
	os.Exit(redistest.Main(m))
}

// logs runs the program.
func logs(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// analyse runs the program and wants a result.
func analyse(t *testing.T, args ...string) Result {
	t.Helper()
	code, stdout, stderr := logs(t.Context(), append([]string{"-o", "json"}, args...)...)
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, stderr: %s", code, stderr)
	}
	return decode(t, stdout)
}

func decode(t *testing.T, stdout string) (r Result) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("%v: stdout must be one JSON object: %s", err, stdout)
	}
	for i := range r.Rejected.First { // which the naive program does not know
		r.Rejected.First[i].Error, r.Rejected.First[i].Text = "", ""
	}
	return r
}

func same(t *testing.T, got, want Result) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %.3000v\nwant %.3000v", fmt.Sprint(got), fmt.Sprint(want))
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnalysesLikeTheNaiveProgram(t *testing.T) {
	t.Parallel()
	shipped := absolute(t, "testdata/access.log")
	same(t, analyse(t, shipped), naive(t, 10, shipped))
	large := write(t, "large.log", sample(2, 20_000))
	same(t, analyse(t, "--top", "3", large, shipped, large), naive(t, 3, large, shipped, large))
	for name, text := range map[string]string{
		"nothing":       "",
		"empty lines":   "\n\n \n",
		"no end":        strings.TrimSuffix(sample(3, 5), "\n"),
		"odd":           strings.Join(odd, "\n"),
		"long":          sample(4, 3) + strings.Repeat("long ", 50_000) + "\n" + sample(5, 3),
		"long end":      sample(4, 3) + strings.Repeat("x", chunkBytes+1),
		"one chunk":     strings.Repeat("x", chunkBytes),
		"just a chunk":  strings.Repeat("x", chunkBytes-1) + "\n" + sample(6, 3),
		"over a chunk":  strings.Repeat("x", chunkBytes) + "\n" + sample(6, 3),
		"needs escapes": strings.Repeat(strings.Repeat("\x00", 60_000)+"\n", 40),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "file", text)
			same(t, analyse(t, path), naive(t, 10, path))
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := logs(t.Context(), "--top", "3", "testdata/access.log")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d, stderr %s", code, stderr)
	}
	for _, want := range []string{" requests, ", "lines not understood\n", "Requests by status\n200 ", "Bytes by hour (UTC)\n2026-10-09T21 ", "Slowest clients\n", "access.log:", "└─ report", "→ result 1/1"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("colours in a file:\n%q", stdout)
	}
}

// A log of years is told by days.
func TestManyHours(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2021; at = at.Add(time.Hour) {
		b.WriteString(`h - - [` + at.Format(logTime) + `] "GET / HTTP/1.1" 200 2` + "\n")
	}
	r := analyse(t, write(t, "file", b.String()))
	if len(r.Hours) != 366 || r.Hours[59] != (Row{"2020-02-29", Sum{Requests: 24, Bytes: 48}}) {
		t.Errorf("%d rows, such as %+v", len(r.Hours), r.Hours[59])
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, "file", sample(1, 2))
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "no FILE", nil},
		{2, "use table or json", []string{"-o", "xml", file}},
		{2, "use 1 to 100", []string{"--top", "0", file}},
		{2, "use 1 to 100", []string{"--top", "101", file}},
		{2, "see logs --help", []string{"--top", "many", file}},
		{2, "unknown flag: --wat", []string{"--wat", file}},
		{2, "--tree needs a Redis", []string{"--tree", "week", file}},
		{2, "does not exist", []string{file, filepath.Join(dir, "gone")}},
		{2, "is not a regular file", []string{dir}},
		{1, "unknown scheme", []string{"--redis", "http://localhost", file}},
		{1, "cannot reach Redis", []string{"--redis", "unix://" + filepath.Join(dir, "none"), file}},
	} {
		code, stdout, stderr := logs(t.Context(), c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "logs: ") {
			t.Errorf("%q: stderr must be one line that begins with logs: %q", c.args, stderr)
		}
	}
	if code, stdout, _ := logs(t.Context(), "--help"); code != exitOK || !strings.Contains(stdout, "logs --top 5 access.log") {
		t.Errorf("help: exit code %d, %s", code, stdout)
	}
}

func TestOtherTree(t *testing.T) {
	t.Parallel()
	url := redistest.StartMini(t).URL()
	file, other := write(t, "file", sample(1, 20)), write(t, "other", sample(1, 20))
	want := naive(t, 10, file)
	same(t, analyse(t, "--redis", url, "--tree", "week", file), want)
	same(t, analyse(t, "--redis", url, "--tree", "week", file), want) // only printed again
	for says, args := range map[string][]string{
		"analyses other files, such as " + file: {other},
		"was begun with --top 10":               {"--top", "3", file},
	} {
		code, stdout, stderr := logs(t.Context(), append([]string{"--redis", url, "--tree", "week"}, args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, says) || !strings.Contains(stderr, "choose another --tree") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}

// What waits in Redis stays small while much goes through, and a program that is killed
// again and again prints what an undisturbed one does.
func TestKilled(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "logs")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	url := redistest.Start(t).URL()
	file := write(t, "access.log", sample(7, 60_000))
	want := naive(t, 10, file)
	watching, stop := context.WithCancel(t.Context())
	most := make(chan int64)
	go func() { most <- mostWaiting(watching, t, url) }()

	kills := 0
	for after := 500 * time.Millisecond; ; after += 250 * time.Millisecond {
		cmd := exec.Command(program, "-o", "json", "--redis", url, "--tree", "week", file)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			same(t, decode(t, stdout.String()), want)
			break
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the program ended by itself: %v: %s", err, stderr.String())
		}
		kills++
	}
	stop()
	waited := <-most
	t.Logf("%d kills; at most %d messages waited at a port", kills, waited)
	if kills == 0 {
		t.Error("no kill met a living program: the test shows nothing")
	}
	// A limit may be passed by the one commit that reaches it, of each that writes.
	if limit := int64(chunksWaiting + commitEvery + 8*parseAtOnce); waited == 0 || waited > limit {
		t.Errorf("%d messages waited at a port, want 1 to %d", waited, limit)
	}
}

// mostWaiting looks at the ports of the tree named week until ctx ends.
func mostWaiting(ctx context.Context, t *testing.T, url string) (most int64) {
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
	if err != nil {
		t.Error(err)
		return 0
	}
	defer store.Close()
	client := job.NewClient(store)
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		h, err := client.Find(ctx, "week")
		if err != nil {
			continue // not yet
		}
		tree, err := h.Tree(ctx)
		if err != nil {
			continue
		}
		for _, i := range tree {
			for _, p := range i.Ports {
				if p.Dir == port.Input && p.Limit > 0 {
					most = max(most, p.Waiting)
				}
			}
		}
	}
	return most
}
