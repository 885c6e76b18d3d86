package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weirworks/weir/journal"
)

type counter struct{ n atomic.Int64 }

// faulty is a file on a disk that fails when it is told to.
type faulty struct {
	*os.File
	syncs *counter
	space *atomic.Int64 // bytes that still fit; nil: all do
	sync  *atomic.Bool  // syncing fails
	stuck *atomic.Bool  // nothing can be cut back
}

func (f *faulty) Write(data []byte) (int, error) {
	if f.space == nil {
		return f.File.Write(data)
	}
	room := f.space.Add(-int64(len(data)))
	if room >= 0 {
		return f.File.Write(data)
	}
	fits := max(0, int(room)+len(data))
	f.space.Add(int64(len(data) - fits))
	n, _ := f.File.Write(data[:fits])
	return n, syscall.ENOSPC
}

func (f *faulty) Sync() error {
	if f.syncs != nil {
		f.syncs.n.Add(1)
	}
	if f.sync != nil && f.sync.Load() {
		return syscall.EIO
	}
	return f.File.Sync()
}

func (f *faulty) Truncate(n int64) error {
	if f.stuck != nil && f.stuck.Load() {
		return syscall.EIO
	}
	return f.File.Truncate(n)
}

// A disk that is full refuses, and loses nothing that was accepted; when there is room it goes on.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, stuck := range []bool{false, true} {
		var space atomic.Int64
		var cut atomic.Bool
		cut.Store(stuck)
		space.Store(3000)
		dir := t.TempDir()
		cfg := journal.Faulty(journal.Config{Dir: dir, Logger: silent()}, func(f *os.File) journal.File {
			return &faulty{File: f, space: &space, stuck: &cut}
		})
		j := open(t, cfg)
		var accepted []string
		refused := 0
		for i := range 60 {
			line := fmt.Sprintf("p%02d %s", i, strings.Repeat("x", 100))
			r, err := j.Write("t", []byte(line))
			if err != nil {
				t.Fatal(err)
			}
			switch err := r.Wait(t.Context()); {
			case err == nil:
				accepted = append(accepted, line)
			case errors.Is(err, journal.ErrDisk) && errors.Is(err, syscall.ENOSPC):
				if refused++; refused == 5 {
					space.Store(5000)
				}
			default:
				t.Fatal(err)
			}
		}
		if got := texts(drain(t, j)); !slices.Equal(got, accepted) || refused < 5 || len(accepted) < 15 {
			t.Errorf("stuck %v: %d were accepted, %d refused, %d are there", stuck, len(accepted), refused, len(got))
		}
	}
}

// After a failed fsync what was refused is not there, and what was accepted before and after is: in this process and in the next.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	dir := t.TempDir()
	j := open(t, journal.Faulty(journal.Config{Dir: dir, Logger: silent()}, func(f *os.File) journal.File { return &faulty{File: f, sync: &fails} }))
	write(t, j, "t", "before")
	fails.Store(true)
	r, err := j.Write("t", []byte("refused"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context()); !errors.Is(err, journal.ErrDisk) {
		t.Fatalf("fsync failed: %v", err)
	}
	if err := j.Sync(t.Context()); err != nil {
		t.Errorf("there is nothing to sync: %v", err)
	}
	fails.Store(false)
	write(t, j, "t", "after")
	want := []string{"before", "after"}
	token := reserve(t, j, 10, time.Minute)
	if got := read(t, j, token); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := texts(drain(t, open(t, journal.Config{Dir: dir}))); !slices.Equal(got, want) {
		t.Errorf("after a restart: %q, want %q", got, want)
	}
}

// segmentFile writes a few blocks, and returns the file that they are in, and where each ends.
func segmentFile(t *testing.T) (name string, raw []byte, ends []int, blocks [][]string) {
	t.Helper()
	dir := t.TempDir()
	j := open(t, journal.Config{Dir: dir})
	for i, body := range []string{"a1\na2\n", "b1|x\nb2", "# only\nc1\n#:Batch date=2020-06-30T01:17:17.123Z,bytes=2,jobtype=other\nx\n#:EndBatch\n", "d1\nd2\nd3\n"} {
		write(t, j, fmt.Sprintf("t%d", i), body)
		files, _ := filepath.Glob(filepath.Join(dir, "*.journal"))
		name = files[0]
		var err error
		if raw, err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, len(raw))
		lines, _ := journal.Text(name, raw)
		for _, known := range blocks {
			lines = lines[len(known):]
		}
		blocks = append(blocks, lines)
	}
	return filepath.Base(name), raw, ends, blocks
}

// reopen has a journal read a file, and returns what it finds.
func reopen(t *testing.T, dir, name string, raw []byte) (lines []string, damaged bool) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(journal.Config{Dir: dir, Logger: silent()})
	if err != nil {
		t.Fatal(err)
	}
	write(t, j, "t", "last") // so that there is something to wait for
	for len(lines) == 0 || !strings.HasSuffix(lines[len(lines)-1], "|last") {
		token := reserve(t, j, 100, time.Minute)
		entries, err := j.Read(token)
		if err := errors.Join(err, j.Ack(token)); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			lines = append(lines, e.String())
		}
	}
	counted := j.Stats().Damaged > 0
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(dir, name+".damaged"))
	if counted != (err == nil) {
		t.Fatalf("%s: counted as damaged: %v, kept: %v", name, counted, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	return lines[:len(lines)-1], err == nil
}

// Whatever byte is wrong, at most the block that has it is lost, as a whole, and the file is kept.
func TestEveryByteFlipped(t *testing.T) {
	t.Parallel()
	name, raw, ends, blocks := segmentFile(t)
	dir := t.TempDir()
	for at := range raw {
		for _, mask := range []byte{0x01, 0x80, raw[at] ^ '\n', raw[at] ^ '#'} {
			if mask == 0 {
				continue
			}
			bad := bytes.Clone(raw)
			bad[at] ^= mask
			hit := slices.IndexFunc(ends, func(end int) bool { return at < end })
			without := slices.Concat(slices.Concat(blocks[:hit]...), slices.Concat(blocks[hit+1:]...))
			got, kept := reopen(t, dir, name, bad)
			if whole := slices.Equal(got, slices.Concat(blocks...)); !whole && (!slices.Equal(got, without) || !kept) {
				t.Fatalf("byte %d of %d ^ %02x: %q, damaged file kept: %v", at, len(raw), mask, got, kept)
			}
		}
	}
}

// Wherever a file breaks off, the blocks before are whole, and nothing else is there.
func TestEveryTruncation(t *testing.T) {
	t.Parallel()
	name, raw, ends, blocks := segmentFile(t)
	dir := t.TempDir()
	for at := range len(raw) + 1 {
		n := 0
		for n < len(ends) && ends[n] <= at {
			n++
		}
		got, kept := reopen(t, dir, name, raw[:at])
		if !slices.Equal(got, slices.Concat(blocks[:n]...)) || kept {
			t.Fatalf("%d bytes of %d: %q, want %d blocks; damaged: %v", at, len(raw), got, n, kept)
		}
	}
}

// Garbage and zeros behind the last block, as a disk may leave them, are no payloads.
func TestGarbageBehind(t *testing.T) {
	t.Parallel()
	name, raw, _, blocks := segmentFile(t)
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		tail := make([]byte, 1+n*7)
		if n%2 == 0 {
			for i := range tail {
				tail[i] = byte(random.Uint32())
			}
		}
		zeros := n%2 == 1
		if got, kept := reopen(t, dir, name, append(bytes.Clone(raw), tail...)); !slices.Equal(got, slices.Concat(blocks...)) || kept && zeros {
			t.Fatalf("with %d bytes behind: %q, damaged: %t", len(tail), got, kept)
		}
	}
}

// A position that is damaged says nothing: all comes again.
func TestPositionDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, journal.Config{Dir: dir})
	write(t, j, "t", "1\n2\n3\n")
	token := reserve(t, j, 2, time.Minute)
	if err := errors.Join(j.Ack(token), j.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "position")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := -1; at < len(raw); at++ {
		bad := bytes.Clone(raw)
		want := 3
		if at < 0 {
			want = 1
		} else {
			bad[at] ^= 1
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := journal.Open(journal.Config{Dir: dir, Logger: silent()})
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, j, reserve(t, j, 10, time.Minute))
		if len(got) != want {
			t.Fatalf("byte %d: %q, want %d", at, got, want)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	j := open(t, journal.Config{Dir: t.TempDir()})
	waits := make(chan error, 1)
	go func() {
		_, err := j.ReadReserve(context.Background(), 1, time.Second)
		waits <- err
	}()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := j.Write("t", []byte("x"))
	if waited := <-waits; !errors.Is(err, journal.ErrClosed) || !errors.Is(waited, journal.ErrClosed) {
		t.Errorf("write: %v, reserve: %v", err, waited)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint64(1), 3, byte(1))
	f.Add([]byte("#:Batch date=2020-06-30T01:17:17.123Z,bytes=12345,jobtype=client-job-type\nx\n#:EndBatch\n"), uint64(0), 100, byte(0))
	f.Fuzz(func(t *testing.T, body []byte, salt uint64, at int, mask byte) {
		journal.Parse(body, salt) // whatever it is
		if len(body) == 0 || len(body) > journal.MaxBody {
			return
		}
		one := journal.Block("t", body, salt)
		data := slices.Concat(one, journal.Block("u", []byte("between"), salt), one)
		if got := journal.Parse(data, salt); len(got) != 3 || !bytes.Equal(got[0], body) || !bytes.Equal(got[2], body) {
			t.Fatalf("%d of 3 blocks are read", len(got))
		}
		if mask == 0 {
			return
		}
		at = len(one) + int(uint(at)%uint(len(data)-2*len(one)))
		data[at] ^= mask
		got := journal.Parse(data, salt)
		if len(got) < 2 || !bytes.Equal(got[0], body) || !bytes.Equal(got[len(got)-1], body) || len(got) == 3 && string(got[1]) != "between" {
			t.Fatalf("byte %d ^ %02x of the second of 3 blocks: %q", at-len(one), mask, got)
		}
	})
}
