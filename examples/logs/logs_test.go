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
func logs(t *testing.T, o options, files ...string) (stdout string, err error) {
	var out bytes.Buffer
	if o.top == 0 {
		o.top = 10
	}
	err = o.run(t.Context(), files, &out)
	return out.String(), err
}

// analyse runs the program and wants a result.
func analyse(t *testing.T, o options, files ...string) Result {
	t.Helper()
	o.json = true
	stdout, err := logs(t, o, files...)
	if err != nil {
		t.Fatal(err)
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
	same(t, analyse(t, options{}, shipped), naive(t, 10, shipped))
	large := write(t, "large.log", sample(2, 20_000))
	same(t, analyse(t, options{top: 3}, large, shipped, large), naive(t, 3, large, shipped, large))
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
			same(t, analyse(t, options{}, path), naive(t, 10, path))
		})
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	stdout, err := logs(t, options{top: 3}, "testdata/access.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" requests, ", " lines not understood\n", "Requests by status\n200 ", "Bytes by hour (UTC)\n2026-10-09T21 ", "Slowest clients\n", "access.log:", "│ report "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("what a terminal would obey:\n%q", stdout)
	}
}

// A log of years is told by days.
func TestManyHours(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2021; at = at.Add(time.Hour) {
		b.WriteString(`h - - [` + at.Format(logTime) + `] "GET / HTTP/1.1" 200 2` + "\n")
	}
	r := analyse(t, options{}, write(t, "file", b.String()))
	if len(r.Hours) != 366 || r.Hours[59] != (Row{"2020-02-29", Sum{Requests: 24, Bytes: 48}}) {
		t.Errorf("%d rows, such as %+v", len(r.Hours), r.Hours[59])
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, "file", sample(1, 2))
	for _, c := range []struct {
		says  string
		o     options
		files []string
	}{
		{"no FILE", options{}, nil},
		{"use 1 to 100", options{top: -1}, []string{file}},
		{"use 1 to 100", options{top: 101}, []string{file}},
		{"-tree needs a Redis", options{tree: "week"}, []string{file}},
		{"no such file or directory; check the path", options{}, []string{file, filepath.Join(dir, "gone")}},
		{"is not a regular file", options{}, []string{dir}},
		{"unknown scheme", options{redis: "http://localhost"}, []string{file}},
		{"cannot reach Redis", options{redis: "unix://" + filepath.Join(dir, "none")}, []string{file}},
	} {
		if stdout, err := logs(t, c.o, c.files...); err == nil || stdout != "" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %q", c.says, err, stdout)
		}
	}
}

func TestOtherTree(t *testing.T) {
	t.Parallel()
	url := redistest.StartMini(t).URL()
	file, other := write(t, "file", sample(1, 20)), write(t, "other", sample(1, 20))
	want := naive(t, 10, file)
	week := options{redis: url, tree: "week"}
	same(t, analyse(t, week, file), want)
	if err := os.WriteFile(file, []byte(sample(1, 30)), 0o600); err != nil { // lines that come later are left out
		t.Fatal(err)
	}
	same(t, analyse(t, week, file), want) // only printed again
	const says = "tree week analyses something else; choose another -tree"
	if _, err := logs(t, week, other); err == nil || err.Error() != says {
		t.Errorf("other files: %v", err)
	}
	week.top = 3
	if _, err := logs(t, week, file); err == nil || err.Error() != says {
		t.Errorf("another top: %v", err)
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
		cmd := exec.Command(program, "-json", "-redis", url, "-tree", "week", file)
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
