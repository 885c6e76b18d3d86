package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirworks/weir/journal"
)

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func open(t testing.TB, cfg journal.Config) *journal.Journal {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = silent()
	}
	j, err := journal.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func write(t testing.TB, j *journal.Journal, jobtype, body string) []string {
	t.Helper()
	r, err := j.Write(jobtype, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, r.Len())
	for i, id := range r.IDs() {
		ids[i] = string(id)
	}
	return ids
}

// reserve fails if there is nothing to read within a second.
func reserve(t testing.TB, j *journal.Journal, n int, timeout time.Duration) journal.Token {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	token, err := j.ReadReserve(ctx, n, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func read(t testing.TB, j *journal.Journal, token journal.Token) (lines []string) {
	t.Helper()
	entries, err := j.Read(token)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		lines = append(lines, string(e.Payload))
	}
	return lines
}

// drain reads and acknowledges all that is there.
func drain(t testing.TB, j *journal.Journal) (all []journal.Entry) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		token, err := j.ReadReserve(ctx, 1000, time.Minute)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return all
		}
		entries, no := j.Read(token)
		if err := errors.Join(err, no, j.Ack(token)); err != nil {
			t.Fatal(err)
		}
		all = append(all, entries...)
	}
}

func texts(all []journal.Entry) (lines []string) {
	for _, e := range all {
		lines = append(lines, string(e.Payload))
	}
	return lines
}

// A carriage return is part of a payload, and a payload by itself: a body that was accepted has the same IDs whichever program reads it.
func TestCarriageReturnsCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, journal.Config{Dir: dir})
	ids := write(t, j, "mail", "a\r\n\r\nb")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	got := drain(t, open(t, journal.Config{Dir: dir}))
	if want := []string{"a\r", "\r", "b"}; !slices.Equal(texts(got), want) || len(ids) != 3 {
		t.Fatalf("%q with IDs %v, want %q", texts(got), ids, want)
	}
	for i, e := range got {
		if string(e.ID) != ids[i] {
			t.Errorf("payload %d has ID %s, and was acknowledged as %s", i, e.ID, ids[i])
		}
	}
}

func TestM15LinesBecomePayloadsInOrder(t *testing.T) {
	t.Parallel()
	j := open(t, journal.Config{Dir: t.TempDir()})
	ids := write(t, j, "acme-mail", "l1\nl2\n\n# a comment\nlast")
	got := drain(t, j)
	if want := []string{"l1", "l2", "last"}; !slices.Equal(texts(got), want) || len(ids) != 3 {
		t.Fatalf("%q with IDs %v, want %q", texts(got), ids, want)
	}
	for i, e := range got {
		if string(e.ID) != ids[i] || e.Type != "acme-mail" {
			t.Errorf("payload %d: %s of %s, want %s of acme-mail", i, e.ID, e.Type, ids[i])
		}
	}
	if !slices.IsSorted(ids) {
		t.Errorf("the IDs %v are not in order", ids)
	}
	if ids := write(t, j, "acme-mail", "\n#x\n\n"); len(ids) != 0 || len(drain(t, j)) != 0 {
		t.Errorf("nothing but comments has IDs %v", ids)
	}
}

func TestM16PayloadKeepsBars(t *testing.T) {
	t.Parallel()
	j := open(t, journal.Config{Dir: t.TempDir()})
	ids := write(t, j, "t", "a|b|c\n")
	got := drain(t, j)
	if want := ids[0] + "|t|a|b|c"; len(got) != 1 || got[0].String() != want || string(got[0].Payload) != "a|b|c" {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestM18WhatIsNotAcknowledgedComesAgain(t *testing.T) {
	t.Parallel()
	j := open(t, journal.Config{Dir: t.TempDir()})
	var body strings.Builder
	for i := range 12 {
		fmt.Fprintf(&body, "l%02d\n", i)
	}
	write(t, j, "t", body.String())
	first := reserve(t, j, 10, 100*time.Millisecond)
	lines := read(t, j, first)
	if len(lines) != 10 || lines[0] != "l00" {
		t.Fatalf("%q", lines)
	}
	if _, err := j.Read(first); !errors.Is(err, journal.ErrRead) || !strings.Contains(err.Error(), "already read") {
		t.Errorf("read twice: %v", err)
	}
	second := reserve(t, j, 10, time.Minute)
	if newer := read(t, j, second); !slices.Equal(newer, []string{"l10", "l11"}) {
		t.Errorf("while the first are reserved: %q", newer)
	}
	write(t, j, "t", "newer\n") // it is there before the first come again, or after: they are before it in any case
	time.Sleep(100 * time.Millisecond)
	again := reserve(t, j, 20, time.Minute)
	if got := read(t, j, again); !slices.Equal(got, lines) {
		t.Errorf("again: %q, want %q", got, lines)
	}
	for _, err := range []error{j.Ack(first), func() error { _, err := j.Read(first); return err }()} {
		if !errors.Is(err, journal.ErrExpired) {
			t.Errorf("of the expired token: %v", err)
		}
	}
	if err := errors.Join(j.Ack(again), j.Ack(second)); err != nil {
		t.Error(err)
	}
	if got := texts(drain(t, j)); !slices.Equal(got, []string{"newer"}) {
		t.Errorf("then %q", got)
	}
}

func TestM19BlocksAreAsTheSeedHasThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, journal.Config{Dir: dir})
	body := "l1\n#:EndBatch\nl2 without newline"
	write(t, j, "client-job-type", body)
	files, _ := filepath.Glob(filepath.Join(dir, "*.journal"))
	raw, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^#:Batch date=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z,bytes=` + fmt.Sprint(len(body)) + `,jobtype=client-job-type,id=[-0-9a-f]{36},sum=[0-9a-f]{16},head=[0-9a-f]{16}\n` +
		regexp.QuoteMeta(body) + `\n#:EndBatch\n$`)
	if !want.Match(raw) {
		t.Errorf("the file is\n%s", raw)
	}
	if got := texts(drain(t, j)); !slices.Equal(got, []string{"l1", "l2 without newline"}) {
		t.Errorf("it reads %q", got)
	}
}

// What was acknowledged does not come again, what was not comes once, after a restart, with the same IDs.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, journal.Config{Dir: dir, Segment: 4 << 10})
	var ids []string
	for i := range 200 {
		ids = append(ids, write(t, j, "t", fmt.Sprintf("p%03d-a\np%03d-b\n", i, i))...)
	}
	token := reserve(t, j, 75, time.Minute)
	read(t, j, token)
	if err := j.Ack(token); err != nil {
		t.Fatal(err)
	}
	reserve(t, j, 50, time.Minute) // and not acknowledged
	files := j.Stats().Files
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, journal.Config{Dir: dir, Segment: 4 << 10})
	write(t, again, "t", "new\n")
	got := drain(t, again)
	if len(got) != 400-75+1 {
		t.Fatalf("%d payloads, want %d", len(got), 400-75+1)
	}
	for i, e := range got[:len(got)-1] {
		if string(e.ID) != ids[75+i] {
			t.Fatalf("payload %d has ID %s, want %s", i, e.ID, ids[75+i])
		}
	}
	if s := again.Stats(); files < 5 || s.Files > 2 {
		t.Errorf("%d files before, %d after all was read", files, s.Files)
	}
}

// TestNothingWaitsInNoBytes: the file that is written to does not count once all in it is acknowledged, also after a restart.
func TestNothingWaitsInNoBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, journal.Config{Dir: dir})
	write(t, j, "t", "a\nb\n")
	full := j.Stats().Bytes
	token := reserve(t, j, 1, time.Minute)
	if err := j.Ack(token); err != nil {
		t.Fatal(err)
	}
	if n := j.Stats().Bytes; full == 0 || n != full {
		t.Errorf("one of two is acknowledged: %d bytes, before %d", n, full)
	}
	drain(t, j)
	empty := j.Stats().Bytes
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, journal.Config{Dir: dir})
	if n := again.Stats().Bytes; empty != 0 || n != 0 {
		t.Errorf("all are acknowledged: %d bytes, after a restart %d", empty, n)
	}
	write(t, again, "t", "c\n")
	if again.Stats().Bytes == 0 {
		t.Error("one waits in no bytes")
	}
}

func TestOneProcessHasADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, journal.Config{Dir: dir})
	if _, err := journal.Open(journal.Config{Dir: dir}); !errors.Is(err, journal.ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	j := open(t, journal.Config{Dir: t.TempDir(), Segment: 8 << 10, Limit: 32 << 10})
	accepted := 0
	var err error
	for range 100 {
		var r *journal.Receipt
		if r, err = j.Write("t", []byte(strings.Repeat("x", 1000))); err != nil {
			break
		}
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		accepted++
	}
	if !errors.Is(err, journal.ErrFull) || accepted < 10 {
		t.Fatalf("after %d: %v", accepted, err)
	}
	if got := drain(t, j); len(got) != accepted {
		t.Errorf("%d of %d are there", len(got), accepted)
	}
	write(t, j, "t", "there is room again")
}

// Many who write at a time share the syncs.
func TestGroupSync(t *testing.T) {
	t.Parallel()
	var syncs counter
	j := open(t, journal.Faulty(journal.Config{Dir: t.TempDir()}, func(f *os.File) journal.File { return &faulty{File: f, syncs: &syncs} }))
	var all sync.WaitGroup
	for w := range 32 {
		all.Go(func() {
			for i := range 20 {
				r, err := j.Write("t", fmt.Appendf(nil, "%d-%d\n", w, i))
				if err == nil {
					err = r.Wait(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, e := range drain(t, j) {
		seen[string(e.Payload)] = true
	}
	if n := syncs.n.Load(); len(seen) != 640 || n >= 640 {
		t.Errorf("%d payloads, %d syncs", len(seen), n)
	}
}

func TestSyncWaitsForAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, journal.Config{Dir: dir})
	for i := range 50 {
		if _, err := j.Write("t", fmt.Appendf(nil, "%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.journal"))
	raw, err := os.ReadFile(files[0])
	lines, errs := journal.Text(files[0], raw)
	if err != nil || len(lines) != 50 || len(errs) > 0 {
		t.Errorf("%d lines are in the file, %v %v", len(lines), errs, err)
	}
}
