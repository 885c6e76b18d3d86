package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/weirworks/weir/internal/lockfile"
	"github.com/weirworks/weir/job"
)

// Defaults and bounds of a Config.
const (
	DefaultSegment = 16 << 20
	DefaultLimit   = 1 << 30
	minSegment     = 4 << 10
	maxSegment     = 512 << 20
	maxPending     = 16 << 20 // bytes that wait for a write to end
	retireBytes    = 1 << 20  // of a segment that is not written to any more once all in it has been read
)

// Errors of writers. They may go away by themselves.
var (
	// ErrFull is returned while the journal has as many bytes as it may have.
	ErrFull = errors.New("the journal is full")
	// ErrBusy is returned while the disk is slower than those who write.
	ErrBusy = errors.New("the disk of the journal is busy")
	// ErrDisk is returned when the disk could not take or keep what was written: nothing of it was accepted.
	ErrDisk = errors.New("the disk of the journal failed")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the journal is closed")
	// ErrInUse is returned by Open if another process has the directory.
	ErrInUse = errors.New("the directory is in use")
)

// Config says where a journal lies. Only Dir is required.
type Config struct {
	// Dir is its directory, which is made if it is missing. One process has it at a time.
	Dir string
	// Segment is how many bytes a file has before the next one is begun: 4 KiB to 512 MiB; zero means DefaultSegment.
	Segment int64
	// Limit is how many bytes all files may have, of what has not been moved and of what is damaged: then ErrFull is returned. Zero means
	// DefaultLimit.
	Limit int64
	// Logger is told of damage. Nil means slog.Default.
	Logger *slog.Logger

	create func(path string) (file, error) // for tests
}

// file is a segment that is written to.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	cfg  Config
	log  *slog.Logger
	lock *lockfile.Lock
	salt uint64 // of files of this process

	mu       sync.Mutex
	segments []*segment // the oldest first; the last is the one that is written to
	out      file       // it; nil if a new one is to be begun
	kept     int64      // bytes of damaged files
	group    *group     // what waits to be written
	putting  *group     // what is being written
	clock    clock
	closed   bool
	wake     chan struct{} // there is a group
	grown    chan struct{} // closed when there is more to read

	writing sync.WaitGroup
	reader  reader
	home    home
}

// clock gives blocks their times, which never go back.
type clock struct {
	ms  int64
	seq uint16
}

func (c *clock) next(now time.Time) (int64, uint16) {
	switch ms := now.UnixMilli(); {
	case ms > c.ms:
		c.ms, c.seq = ms, 0
	case c.seq == 0xfff:
		c.ms, c.seq = c.ms+1, 0
	default:
		c.seq++
	}
	return c.ms, c.seq
}

// Open opens the journal of a directory. The error wraps ErrInUse if another process, or this one, has it open.
func Open(cfg Config) (*Journal, error) {
	cfg.Segment, cfg.Limit = cmp.Or(cfg.Segment, DefaultSegment), cmp.Or(cfg.Limit, DefaultLimit)
	switch {
	case cfg.Dir == "":
		return nil, fmt.Errorf("%w of a journal: Dir is required", job.ErrConfig)
	case cfg.Segment < minSegment || cfg.Segment > maxSegment:
		return nil, fmt.Errorf("%w of a journal: Segment %d: use %d to %d bytes", job.ErrConfig, cfg.Segment, minSegment, maxSegment)
	case cfg.Limit < 2*cfg.Segment:
		return nil, fmt.Errorf("%w of a journal: Limit %d: use at least twice the %d bytes of a segment", job.ErrConfig, cfg.Limit, cfg.Segment)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.create == nil {
		cfg.create = createFile
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of a journal: %w", err)
	}
	lock, err := lockfile.Take(filepath.Join(cfg.Dir, "lock"))
	if errors.Is(err, lockfile.ErrHeld) {
		err = fmt.Errorf("%w: another process has its lock; give each server a directory of its own", ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", cfg.Dir, err)
	}
	j := &Journal{cfg: cfg, log: cfg.Logger.With("journal", cfg.Dir), lock: lock, salt: rand.Uint64(), wake: make(chan struct{}, 1), grown: make(chan struct{})}
	if err := j.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening journal %s: %w", cfg.Dir, err), lock.Close())
	}
	j.writing.Go(j.write)
	return j, nil
}

// open finds the segments that are there.
func (j *Journal) open() (err error) {
	if j.segments, j.kept, err = segmentsIn(j.cfg.Dir); err != nil {
		return err
	}
	if err := j.reader.open(j); err != nil {
		return err
	}
	return j.openHome()
}

// Write has payloads of a job type written, the lines of a body, see Payloads, and does not wait for it: see Receipt. With nothing but empty lines and comments nothing is
// written. The error wraps ErrFull, ErrBusy, ErrClosed, or job.ErrTooLarge.
func (j *Journal) Write(jobtype string, body []byte) (*Receipt, error) {
	if err := job.CheckName("type", jobtype); err != nil {
		return nil, err
	}
	n := Count(body)
	switch {
	case len(body) > MaxBody:
		return nil, fmt.Errorf("%w: %d bytes of payloads, at most %d go at a time", job.ErrTooLarge, len(body), MaxBody)
	case n > MaxLines:
		return nil, fmt.Errorf("%w: %d payloads, at most %d go at a time", job.ErrTooLarge, n, MaxLines)
	}
	r := &Receipt{n: n}
	if n == 0 {
		return r, nil
	}
	size := int64(len(body) + maxHead)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.room(size); err != nil {
		return nil, err
	}
	ms, seq := j.clock.next(time.Now())
	b := block{date: time.UnixMilli(ms).UTC(), jobtype: jobtype, id: blockID(ms, seq, rand.Uint64()), body: body}
	if j.group == nil {
		j.group = &group{done: make(chan struct{})}
	}
	j.group.buf = b.append(j.group.buf, j.salt)
	r.group, r.first = j.group, b.id
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return r, nil
}

// room tells whether so much more may be written.
func (j *Journal) room(size int64) error {
	pending := int64(0)
	if j.group != nil {
		pending = int64(len(j.group.buf))
	}
	switch {
	case j.closed:
		return ErrClosed
	case pending > 0 && pending+size > maxPending:
		return fmt.Errorf("%w: %d bytes wait for it", ErrBusy, pending)
	}
	if used := j.bytes() + pending; used+size > j.cfg.Limit {
		return fmt.Errorf("%w: %d bytes have not been moved to Redis, or are damaged; limit %d", ErrFull, used, j.cfg.Limit)
	}
	return nil
}

// bytes is how many bytes count for the limit.
func (j *Journal) bytes() int64 {
	n := j.kept
	for _, s := range j.segments {
		if !s.consumed {
			n += s.size
		}
	}
	return n
}

// Sync waits until all that was written is on the disk, and returns why not all of it is: each Receipt knows of its own.
func (j *Journal) Sync(ctx context.Context) error {
	j.mu.Lock()
	putting, group := j.putting, j.group
	j.mu.Unlock()
	return errors.Join(putting.wait(ctx), group.wait(ctx))
}

// Close ends a journal: what was written before is on the disk. What is reserved then comes again when it is opened next.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	close(j.wake)
	j.mu.Unlock()
	j.writing.Wait()
	j.mu.Lock()
	j.grow()
	j.mu.Unlock()
	return errors.Join(j.reader.close(), j.lock.Close())
}

// grow tells those who wait that there may be more to read.
func (j *Journal) grow() {
	close(j.grown)
	j.grown = make(chan struct{})
}

// Stats is what is in a journal.
type Stats struct {
	Bytes   int64 `json:"bytes"`   // of files of which not all has been moved, or that are damaged; 0 when nothing waits
	Limit   int64 `json:"limit"`   // of these; the file that is written to counts until it is replaced
	Damaged int64 `json:"damaged"` // bytes of files of which a block is damaged, and which are kept
	Files   int   `json:"files"`
}

// Stats returns what is in the journal.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	damaged, waiting := j.kept, j.bytes()
	for _, s := range j.segments {
		switch {
		case s.damaged:
			damaged += s.size
		case !s.consumed && s.acked == s.size:
			waiting -= s.size
		}
	}
	return Stats{Bytes: waiting, Limit: j.cfg.Limit, Damaged: damaged, Files: len(j.segments)}
}
