package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	os.Exit(redistest.Main(m))
}

// odd are lines that are not, or just about, lines of a log.
var odd = []string{
	"",
	"   ",
	"hello",
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 999 1`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 many`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "GET /unclosed 200 1`,
	"\xff\xfe binary \x00\x01",
	"10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] \"GET /\xff\xfe HTTP/1.1\" 404 -",
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "\x16\x03\x01" 400 226 "-" "-"`,
	`10.0.0.9 - - [10/Oct/2026:13:55:36 +0000] "" 408 -`,
	`::1 - frank [10/Oct/2026:23:55:36 -0700] "HEAD /empty HTTP/2.0" 304 -` + "\r",
}

// sample makes a log of so many lines, always the same for the same seed.
func sample(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 2026))
	var b strings.Builder
	for range n {
		if rng.IntN(40) == 0 {
			b.WriteString(odd[rng.IntN(len(odd))] + "\n")
			continue
		}
		path := []string{"/", "/index.html", "/style.css", "/api/orders", "/api/orders/" + strconv.Itoa(rng.IntN(50)), "/search?q=" + strconv.Itoa(rng.IntN(99))}[rng.IntN(6)]
		status := []int{200, 200, 200, 200, 200, 204, 301, 304, 404, 500}[rng.IntN(10)]
		fmt.Fprintf(&b, `192.0.2.%d - - [09/Oct/2026:23:00:39 +0200] "GET %s HTTP/1.1" %d %d`, rng.IntN(254), path, status, rng.IntN(50_000))
		b.WriteString([]string{"\n", " \"https://example.org/\" \"Mozilla/5.0 (X11; Linux x86_64)\" 0.097\n"}[rng.IntN(2)])
	}
	return b.String()
}

// naive counts lines by other means than the program.
func naive(text string) (statuses, paths []Row, strange int64) {
	byStatus, byPath := map[string]int64{}, map[string]int64{}
	for _, line := range strings.Split(strings.ToValidUTF8(text, "\uFFFD"), "\n") {
		line = strings.TrimSpace(line)
		parts := strings.Split(line, `"`)
		var after []string
		if len(parts) > 2 {
			after = strings.Fields(parts[2])
		}
		if len(after) < 2 || after[0] > "599" || after[1] == "many" {
			if line != "" {
				strange++
			}
			continue
		}
		path := parts[1]
		if words := strings.Fields(path); len(words) > 1 {
			path = words[1]
		}
		path, _, _ = strings.Cut(path, "?")
		byStatus[after[0]]++
		byPath[cmp.Or(path, "-")]++
	}
	return top(byStatus), top(byPath), strange
}

func top(counts map[string]int64) (rows []Row) {
	for key, n := range counts {
		rows = append(rows, Row{key, n})
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(int(b.Lines-a.Lines), strings.Compare(a.Key, b.Key)) })
	return rows[:min(len(rows), 10)]
}

var row = regexp.MustCompile(`^  ("(?:[^"\\]|\\.)*") +(\d+)`)

// parsed reads the tables that the program has printed.
func parsed(t *testing.T, stdout string) map[string][]Row {
	t.Helper()
	found, name := map[string][]Row{}, ""
	for line := range strings.Lines(stdout) {
		if m := row.FindStringSubmatch(line); m != nil {
			key, err := strconv.Unquote(m[1])
			n, _ := strconv.ParseInt(m[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = append(found[name], Row{key, n})
		} else if name = strings.TrimSpace(line); name == "logs" {
			break
		}
	}
	return found
}

// counted wants of a program's output what the naive one counts.
func counted(t *testing.T, stdout, text string) {
	t.Helper()
	got := parsed(t, stdout)
	statuses, paths, strange := naive(text)
	if !reflect.DeepEqual(got["statuses"], statuses) || !reflect.DeepEqual(got["paths"], paths) {
		t.Errorf("got %v, want statuses %v, paths %v", got, statuses, paths)
	}
	var n int64
	for _, r := range got["odd"] {
		n += r.Lines
	}
	if len(got["odd"]) < 10 && n != strange {
		t.Errorf("%d lines are not understood, want %d: %v", n, strange, got["odd"])
	}
}

// write puts a text into a file.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCountsLikeTheNaiveProgram(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":       "",
		"empty lines":   "\n\n \n",
		"some":          sample(1, 300),
		"many":          sample(2, 20_000),
		"no end":        strings.TrimSuffix(sample(3, 5), "\n"),
		"odd":           strings.Join(odd, "\n"),
		"just a chunk":  strings.Repeat("x", chunkBytes-1) + "\n" + sample(6, 3),
		"one chunk":     strings.Repeat("x", chunkBytes),
		"needs escapes": strings.Repeat(strings.Repeat("\x01", 60_000)+"\n", 40),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout bytes.Buffer
			file := write(t, text)
			if err := run(t.Context(), "", "logs", []string{file, file}, &stdout); err != nil {
				t.Fatal(err)
			}
			counted(t, stdout.String(), text+"\n"+text)
		})
	}
}

// A line that is longer than a chunk harms no other.
func TestLongLine(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	file := write(t, sample(4, 30)+strings.Repeat("long ", 50_000)+"\n"+sample(5, 30))
	if err := run(t.Context(), "", "logs", []string{file}, &stdout); err != nil {
		t.Fatal(err)
	}
	statuses, _, _ := naive(sample(4, 30) + sample(5, 30))
	if got := parsed(t, stdout.String())["statuses"]; !reflect.DeepEqual(got, statuses) {
		t.Errorf("%v, want %v", got, statuses)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, sample(1, 2))
	for _, c := range []struct {
		says, url string
		files     []string
	}{
		{"name files", "", nil},
		{"no such file or directory; check the path", "", []string{file, filepath.Join(dir, "gone")}},
		{"is a directory", "", []string{dir}},
		{"unknown scheme", "http://localhost", []string{file}},
		{"cannot reach Redis", "unix://" + filepath.Join(dir, "none"), []string{file}},
	} {
		var stdout bytes.Buffer
		if err := run(t.Context(), c.url, "logs", c.files, &stdout); err == nil || stdout.Len() > 0 || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %q", c.says, err, stdout.String())
		}
	}
}

// What waits in Redis stays small while much goes through, a program that is killed again and again prints what an undisturbed one
// does, and a name is one count: other files are refused.
func TestKilled(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "logs")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	url := redistest.Start(t).URL()
	text := sample(7, 150_000)
	file := write(t, text)
	watching, stop := context.WithCancel(t.Context())
	most := make(chan int64)
	go func() { most <- mostWaiting(watching, t, url) }()

	kills := 0
	for after := 200 * time.Millisecond; ; after += 50 * time.Millisecond {
		cmd := exec.Command(program, "-redis", url, "-tree", "week", file)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			counted(t, stdout.String(), text)
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
	if limit := int64(waiting + 4*waiting); waited == 0 || waited > limit {
		t.Errorf("%d messages waited at a port, want 1 to %d", waited, limit)
	}
	if err := run(t.Context(), url, "week", []string{write(t, text)}, &bytes.Buffer{}); !errors.Is(err, job.ErrExists) {
		t.Errorf("other files under the same name: %v", err)
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
	client := client.New(store)
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
