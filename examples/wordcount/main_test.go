package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	os.Exit(redistest.Main(m))
}

// wordcount runs the program.
func wordcount(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(ctx, args, &out, &errs)
	return code, out.String(), errs.String()
}

// count runs the program and wants a result.
func count(t *testing.T, args ...string) (r Result) {
	t.Helper()
	code, stdout, stderr := wordcount(t.Context(), append([]string{"-o", "json"}, args...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr: %s", code, stderr)
	}
	d := json.NewDecoder(strings.NewReader(stdout))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("%v: stdout must be one JSON object: %s", err, stdout)
	}
	return r
}

// naiveCount counts files one after the other.
func naiveCount(t *testing.T, top int, paths ...string) Result {
	t.Helper()
	counts := map[string]int64{}
	r := Result{Top: []Entry{}}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(text) {
			r.Skipped++
			continue
		}
		r.Files++
		for _, word := range naiveWords(string(text)) {
			counts[word]++
			r.Words++
		}
	}
	r.Distinct = int64(len(counts))
	for word, n := range counts {
		r.Top = append(r.Top, Entry{word, n})
	}
	slices.SortFunc(r.Top, byRank)
	r.Top = r.Top[:min(top, len(r.Top))]
	return r
}

func same(t *testing.T, got, want Result) {
	t.Helper()
	if !slices.Equal(got.Top, want.Top) {
		t.Errorf("the top words differ: got %.300v…, want %.300v…", got.Top, want.Top)
	}
	got.Top, want.Top = nil, nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// randomText makes words of a few letters, so that many occur often, with odd letters
// and some runs of separators.
func randomText(rng *rand.Rand, words, letters int) string {
	const alphabet = "abcdefghijABCDEFGHIJ0123äÖßж日İK"
	runes := []rune(alphabet)
	var b strings.Builder
	for range words {
		for range 1 + rng.IntN(letters) {
			b.WriteRune(runes[rng.IntN(len(runes))])
		}
		b.WriteString([]string{" ", "\n", ", ", " — ", "\u00a0", "_"}[rng.IntN(6)])
	}
	return b.String()
}

// oddTree writes files with odd names and contents and returns their paths.
func oddTree(t *testing.T, root string) (files []string) {
	rng := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "\n", "word", "\xff\xfe", "half a rune \xe2\x82", "\uFEFFbom", "a\x00b", strings.Repeat("long", 1000)}
	for i, name := range oddNames {
		path := filepath.Join(root, oddNames[(i*7)%len(oddNames)]+"_dir", name)
		text := randomText(rng, rng.IntN(500), 4)
		if i < len(texts) {
			text = texts[i]
		}
		writeFile(t, path, text)
		files = append(files, path)
	}
	if err := os.Symlink(files[2], filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCountsLikeTheNaiveProgram(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := oddTree(t, root)
	same(t, count(t, root), naiveCount(t, 10, files...))
	same(t, count(t, "--top", "100000", root), naiveCount(t, 100000, files...))
	twice := []string{files[3], files[4], files[12], files[12]}
	same(t, count(t, twice...), naiveCount(t, 10, twice...))
	same(t, count(t, filepath.Join(root, "link")), naiveCount(t, 10, files[2]))
}

// Large files are split, committed and compacted in several steps, and a long ranking
// comes in several messages.
func TestCountsMuch(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rng := rand.New(rand.NewPCG(3, 4))
	var files []string
	for i, words := range []int{280_000, 20_000, 50_000} {
		path := filepath.Join(root, fmt.Sprint(i))
		text := randomText(rng, words, 12)
		if i == 1 {
			text += "\xff" // in vain
		}
		writeFile(t, path, text)
		files = append(files, path)
	}
	for i := range 600 {
		path := filepath.Join(root, fmt.Sprintf("small%d", i))
		writeFile(t, path, randomText(rng, 20, 3))
		files = append(files, path)
	}
	files = append(files, files[0], files[2])
	args := []string{"--top", "2000000", root, files[0], files[2]}
	same(t, count(t, args...), naiveCount(t, 2000000, files...))
}

func TestTable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	writeFile(t, path, "two words words")
	skipped := filepath.Join(t.TempDir(), "skipped")
	writeFile(t, skipped, "its bytes are not counted \xff")
	code, stdout, stderr := wordcount(t.Context(), path, skipped)
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %s", code, stderr)
	}
	for _, want := range []string{"3 words, 2 different, in 1 file (15 B); 1 file skipped: not UTF-8 — ", "words  2  ███", "two    1  ███", "└─ merge", "→ result 1/1"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("colours in a file:\n%q", stdout)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, empty := filepath.Join(dir, "file"), filepath.Join(dir, "empty")
	writeFile(t, file, "word")
	if err := os.MkdirAll(filepath.Join(empty, "more"), 0o755); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(dir, "nowhere")
	if err := os.Symlink(filepath.Join(dir, "gone"), nowhere); err != nil {
		t.Fatal(err)
	}
	url := redistest.StartMini(t).URL()
	socket := filepath.Join(dir, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "no PATH", nil},
		{2, "PATH is empty", []string{""}},
		{2, "use table or json", []string{"-o", "xml", file}},
		{2, "use 1 or more", []string{"--top", "0", file}},
		{2, "use 1 or more", []string{"--top=-3", file}},
		{2, "see wordcount --help", []string{"--top", "many", file}},
		{2, "unknown flag: --wat", []string{"--wat", file}},
		{2, "--tree is empty", []string{"--tree", "", file}},
		{2, "--tree needs a Redis", []string{"--tree", "books", file}},
		{2, "--redis is empty", []string{"--redis", "", file}},
		{2, "invalid name", []string{"--redis", url, "--tree", "a b", file}},
		{2, "nowhere is a link to nowhere; check where it points", []string{nowhere}},
		{2, "gone does not exist", []string{file, filepath.Join(dir, "gone")}},
		{2, `line\nbreak" does not exist`, []string{filepath.Join(dir, "line\nbreak")}},
		{2, "no files to count in " + empty, []string{empty}},
		{2, "is a socket", []string{socket}},
		{1, "unknown scheme", []string{"--redis", "http://localhost", file}},
		{1, "cannot reach Redis", []string{"--redis", "unix://" + filepath.Join(dir, "none"), file}},
	} {
		code, stdout, stderr := wordcount(t.Context(), c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
		if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "wordcount: ") {
			t.Errorf("%q: stderr must be one line that begins with wordcount: %q", c.args, stderr)
		}
	}
	same(t, count(t, file, empty), naiveCount(t, 10, file))
}

// TestUnreadable runs the program as somebody who may not read a file: root may read all.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "unreadable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "wordcount")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	data := filepath.Join(dir, "data")
	file := filepath.Join(data, "file")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, "word")
	for path, mode := range map[string]os.FileMode{dir: 0o755, data: 0o755, file: 0} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int{file: exitUsage, data: exitError} {
		var stderr strings.Builder
		cmd := exec.Command(program, path)
		cmd.Stderr = &stderr
		if os.Getuid() == 0 {
			const nobody = 65534
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		err := cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != want || strings.Count(stderr.String(), "\n") != 1 ||
			!strings.Contains(stderr.String(), file) || !strings.Contains(stderr.String(), "make it readable") {
			t.Errorf("%s: %v, exit code %d, stderr %s", path, err, code, stderr.String())
		}
	}
}

// started starts a count and runs none of its jobs.
func started(t *testing.T, url, tree string, paths ...string) {
	t.Helper()
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	o := options{tree: tree, top: 10}
	for _, p := range paths {
		o.paths = append(o.paths, Path(p))
	}
	if _, err := o.start(t.Context(), job.NewClient(store)); err != nil {
		t.Fatal(err)
	}
}

// deepTree writes files whose long paths make List commit in between.
func deepTree(t *testing.T, root string, n int) (files []string) {
	for len(root) < 3700 {
		root = filepath.Join(root, strings.Repeat("d", 200))
	}
	for i := range n {
		path := filepath.Join(root, fmt.Sprintf("%04d", i))
		writeFile(t, path, fmt.Sprintf("deep %d", i))
		files = append(files, path)
	}
	return files
}

// A count that failed goes on, from what was committed, when what was wrong is put right.
func TestContinueAfterFailure(t *testing.T) {
	t.Parallel()
	url := redistest.StartMini(t).URL()
	deep, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	files := append(deepTree(t, deep, 700), file)
	writeFile(t, file, "one two")
	started(t, url, "books", deep, file)
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	client := job.NewClient(store)
	h, err := client.Find(t.Context(), "books")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+"2"); err != nil {
		t.Fatal(err)
	}
	// The program would not get past its own check, so run the jobs as it does.
	told := ""
	err = finish(t.Context(), store, h, silent{}, newWarnings(io.Discard), func(err error) { told = err.Error() })
	if err == nil || told != err.Error() || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "vanished") {
		t.Fatalf("got %v", err)
	}
	look := newProgress(client, h, io.Discard, newWarnings(io.Discard)).look
	if v, err := look(t.Context()); err != nil || v.listed || v.found.Files == 0 || v.found.Files >= 700 {
		t.Errorf("found %+v (listed: %v), %v: want a part of the files", v.found, v.listed, err)
	}
	if err := os.Rename(file+"2", file); err != nil {
		t.Fatal(err)
	}
	args := []string{"--redis", url, "--tree", "books", deep, file}
	want := naiveCount(t, 10, files...)
	same(t, count(t, args...), want)
	same(t, count(t, args...), want) // it is completed: only printed again
	if code, stdout, stderr := wordcount(t.Context(), args...); code != 0 || stderr != "" || !strings.Contains(stdout, " — counted earlier\n") {
		t.Errorf("printed again: exit code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	want.Top = want.Top[:1]
	same(t, count(t, append([]string{"--top", "1"}, args...)...), want)

	v, err := look(t.Context())
	if err != nil || !v.listed || v.found.Files != 701 || v.taken.Files != 701 || v.taken.Words != want.Words {
		t.Errorf("at the end: %+v, %v", v, err)
	}
	for _, e := range v.edges {
		if e.waiting != 0 || e.total == 0 {
			t.Errorf("at the end: %+v", e)
		}
	}
}

func TestOtherTree(t *testing.T) {
	t.Parallel()
	url := redistest.StartMini(t).URL()
	dir := t.TempDir()
	file, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
	writeFile(t, file, "word")
	writeFile(t, other, "word")
	started(t, url, "books", file)
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	g := graph.New("album")
	graph.Add(g, "split", &Split{})
	if _, err := job.NewClient(store).Start(t.Context(), g, job.Alias("album")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"counts other paths: " + file + "; choose another --tree", []string{"--tree", "books", other}},
		{"ranks 10 words; use --top 10 or less, or choose another --tree", []string{"--tree", "books", "--top", "11", file}},
		{"tree album is no word count; choose another --tree", []string{"--tree", "album", file}},
	} {
		code, stdout, stderr := wordcount(t.Context(), append([]string{"--redis", url}, c.args...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}

// A count that is stopped says how to continue it, and continues.
func TestStop(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t, "--appendonly", "yes").URL() // else it warns
	path := filepath.Join(t.TempDir(), "file")
	writeFile(t, path, randomText(rand.New(rand.NewPCG(5, 6)), 300_000, 12))
	for _, c := range []struct {
		says string
		args []string
	}{
		{"nothing was kept", nil},
		{"to continue, add --tree wordcount-", []string{"--redis", url}},
		{"the same command continues it", []string{"--redis", url, "--tree", "books"}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		code, stdout, stderr := wordcount(ctx, append(c.args, path)...)
		cancel()
		if code != exitStopped || stdout != "" || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
	same(t, count(t, "--redis", url, "--tree", "books", path), naiveCount(t, 10, path))
}
