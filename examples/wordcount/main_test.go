package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv("WEIR_REDIS_URL")
	os.Exit(redistest.Main(m))
}

// write writes a file and returns its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// count runs the program and wants a result.
func count(t *testing.T, o options) (r Result) {
	t.Helper()
	var out bytes.Buffer
	o.json, o.top, o.tree = true, cmp.Or(o.top, 1000), "books"
	if err := cmp.Or(o.check(), o.run(t.Context(), &out)); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// naive counts texts one after the other.
func naive(top int, texts ...string) Result {
	counts := map[string]int64{}
	r := Result{Top: []Entry{}}
	for _, text := range texts {
		r.Files, r.Bytes = r.Files+1, r.Bytes+int64(len(text))
		for _, word := range strings.FieldsFunc(text, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
			counts[strings.ToLower(word)]++
			r.Words++
		}
	}
	r.Distinct = int64(len(counts))
	for word, n := range counts {
		r.Top = append(r.Top, Entry{word, n})
	}
	r.rank(top)
	return r
}

func same(t *testing.T, got, want Result) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %.500s, want %.500s", fmt.Sprint(got), fmt.Sprint(want))
	}
}

// randomText makes words of up to so many letters, odd ones too, between odd separators.
func randomText(seed uint64, words, letters int) string {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the words need no secrecy
	runes := []rune("abcdefghijABCDEFGHIJ0123äÖßж日İK")
	var b strings.Builder
	for range words {
		for range 1 + rng.IntN(letters) {
			b.WriteRune(runes[rng.IntN(len(runes))])
		}
		b.WriteString([]string{" ", "\n", ", ", " — ", "\u00a0", "_"}[rng.IntN(6)])
	}
	return b.String()
}

func TestCountsLikeTheNaiveProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	texts := []string{"", "\n", "word", "two words", "\uFEFFbom", randomText(1, 500, 4), strings.Repeat("ж", 4*pieceBytes), randomText(2, 300_000, 4)}
	texts[6] = strings.Repeat("日本 ", pieceBytes/3) // no piece ends where a rune does
	var paths []string
	for i, text := range texts {
		paths = append(paths, write(t, filepath.Join(dir, strings.Repeat("d/", i%3), "odd\nname "+fmt.Sprint(i)), text))
	}
	for i := range 700 {
		texts = append(texts, randomText(uint64(i), 20, 3))
		write(t, filepath.Join(dir, "small", fmt.Sprint(i)), texts[len(texts)-1])
	}
	want := naive(1000, texts...)
	want.Skipped = 3
	write(t, filepath.Join(dir, "binary"), "a\x00b")
	write(t, filepath.Join(dir, "name\xff"), "word")
	write(t, filepath.Join(dir, "picture"), "\x89PNG\r\n\x1a\n")
	if err := os.Symlink(paths[3], filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	same(t, count(t, options{paths: []string{dir}}), want)
	same(t, count(t, options{top: 2, paths: []string{paths[3], filepath.Join(dir, "link")}}), naive(2, texts[3], texts[3]))
}

// A word belongs to the piece in which it begins, wherever a file is cut.
func TestPieces(t *testing.T) {
	t.Parallel()
	text := "Ära\xff\xffb \xd0ж日本x\x80\x80\x80\x80\x80\x80y " + strings.Repeat("z", 2*maxWord) + " end日"
	path := write(t, filepath.Join(t.TempDir(), "file"), text)
	want := []string{"ära", "b", "ж日本x", "y", strings.Repeat("z", maxWord), "end日"}
	size := int64(len(text))
	for a := range size + 1 {
		for b := a; b <= size; b += 1 + b%3 {
			var got []string
			for _, p := range []Piece{{path, 0, a}, {path, a, b}, {path, b, size}} {
				words, err := p.words()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, words...)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("cut at %d and %d: got %q", a, b, got)
			}
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := options{top: 10, tree: "table", paths: []string{write(t, filepath.Join(t.TempDir(), "file"), "two words words")}}
	if err := o.run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 words, 2 different, in 1 files (0.0 MB); 0 files are no text — ", "words  2  ███", "two    1  ███", "│ merge "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "file"), "word")
	url := redistest.StartMini(t).URL()
	for want, o := range map[string]options{
		"no PATH":          {top: 1},
		"-top 0: use 1":    {paths: []string{file}},
		"-top 1001: use 1": {top: 1001, paths: []string{file}},
		"invalid name":     {top: 1, redis: url, tree: "a b", paths: []string{file}},
		"no such file or directory; check the path": {top: 1, paths: []string{file, file + "2"}},
		"unknown scheme": {top: 1, redis: "http://localhost", paths: []string{file}},
	} {
		var out bytes.Buffer
		err := o.check()
		if err == nil {
			err = o.run(t.Context(), &out)
		}
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%s: got %v, %q", want, err, out.String())
		}
	}
}

// A count that failed goes on, from what was committed, when what was wrong is put right.
func TestContinueAfterFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var texts []string
	for i := range 7000 { // List commits in between
		texts = append(texts, randomText(uint64(i), 3, 3))
		write(t, filepath.Join(dir, fmt.Sprintf("%s/%04d", strings.Repeat("d", 1+i/3000), i)), texts[i])
	}
	last := filepath.Dir(write(t, filepath.Join(t.TempDir(), "last", "file"), "word"))
	texts = append(texts, "word")
	o := options{redis: redistest.StartMini(t).URL(), tree: "books", top: 10, paths: []string{dir, last}}
	if err := os.Rename(last, last+"2"); err != nil {
		t.Fatal(err)
	}
	if err := o.run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "list (") { // it would not pass the check
		t.Fatalf("got %v", err)
	}
	if err := os.Rename(last+"2", last); err != nil {
		t.Fatal(err)
	}
	same(t, count(t, o), naive(10, texts...))
}

func TestOtherTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := options{redis: redistest.StartMini(t).URL(), tree: "books", top: 10, paths: []string{write(t, filepath.Join(dir, "file"), "word")}}
	same(t, count(t, o), count(t, o)) // the second time it is only printed
	o.paths = []string{write(t, filepath.Join(dir, "other"), "word")}
	if err := o.run(t.Context(), io.Discard); !errors.Is(err, job.ErrExists) {
		t.Errorf("got %v", err)
	}
}

// A count that is stopped continues.
func TestStop(t *testing.T) {
	t.Parallel()
	text := randomText(5, 300_000, 12)
	o := options{redis: redistest.Start(t, "--appendonly", "yes").URL(), tree: "books", top: 10, paths: []string{write(t, filepath.Join(t.TempDir(), "file"), text)}}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	if err := o.run(ctx, &out); err == nil || out.Len() > 0 {
		t.Fatalf("got %v, %s", err, out.String())
	}
	same(t, count(t, o), naive(10, text))
}
