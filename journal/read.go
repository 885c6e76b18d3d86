package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/weirworks/weir/job"
)

// Errors of readers.
var (
	// ErrRead is returned by Read for a token whose payloads were read before.
	ErrRead = errors.New("the payloads of the token were already read")
	// ErrExpired is returned by Read and Ack for a token that was not acknowledged in time, or was before: its payloads come again.
	ErrExpired = errors.New("the token has expired")
)

// Token stands for payloads that are reserved.
type Token uint64

// Entry is a payload as a reader gets it.
type Entry struct {
	ID      job.ID // of the job that it is to become
	Type    string // of the job
	At      time.Time
	Payload []byte // without the newline; it belongs to the reader
	// Epoch and Position say where it comes from: of one epoch, what was written later has a higher position. A position is less than 2^53.
	Epoch    string
	Position int64

	seq uint64 // of its segment
}

// String is the entry as a line: id|type|payload.
func (e *Entry) String() string { return fmt.Sprintf("%s|%s|%s", e.ID, e.Type, e.Payload) }

// offsetBits are those of a position within its segment.
const offsetBits = 30

// reservation is what a token stands for.
type reservation struct {
	entries []Entry
	read    bool
	until   time.Time
}

// reader is what is known of reading.
type reader struct {
	mu       sync.Mutex
	last     Token
	live     map[Token]*reservation
	returned []Entry // to be read again, in order

	at      *segment // that is read; nil before the first
	data    []byte   // of it, not parsed yet
	offset  int64    // of data in the file
	ahead   []Entry  // of blocks that were parsed
	skip    string   // the segment whose entries before done were acknowledged by an earlier process
	done    int64
	journal *Journal
	out     *os.File // where the position is written
}

// open reads how far an earlier process came.
func (r *reader) open(j *Journal) error {
	r.journal, r.live = j, map[Token]*reservation{}
	path := filepath.Join(j.cfg.Dir, "position")
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if r.out, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	if len(raw) == 0 { // so that there is room for it also when the disk is full
		if _, err := r.out.Write(formatPosition((&segment{}).name(), 0)); err != nil {
			return err
		}
	}
	name, done, ok := parsePosition(raw)
	if n := slices.IndexFunc(j.segments, func(s *segment) bool { return ok && s.name() == name }); n >= 0 {
		for _, s := range j.segments[:n] {
			s.consumed = true
		}
		r.skip, r.done = name, done
		j.segments[n].acked = done
		r.tidy()
	}
	return nil
}

// left tells of a reader that was just opened whether there may be payloads of earlier processes that were not acknowledged.
func (r *reader) left() bool {
	for _, s := range r.journal.segments {
		if !s.consumed && s.size > 0 && (s.name() != r.skip || r.done < s.size) {
			return true
		}
	}
	return false
}

// formatPosition is the text of the file position: a segment, and an offset before which all is acknowledged, with a checksum.
func formatPosition(name string, offset int64) []byte {
	line := fmt.Appendf(nil, "%s %010x ", name, offset)
	return append(appendSum(line, sum(0, line)), '\n')
}

// parsePosition reads it. One that is torn says nothing: then all comes again.
func parsePosition(raw []byte) (name string, offset int64, ok bool) {
	var check string
	if n, err := fmt.Sscanf(string(raw), "%s %x %s\n", &name, &offset, &check); n != 3 || err != nil {
		return "", 0, false
	}
	return name, offset, offset >= 0 && string(formatPosition(name, offset)) == string(raw)
}

// ReadReserve waits for payloads, and reserves up to n of the first that are neither reserved nor acknowledged: Read fetches them, and unless they are
// acknowledged by Ack before the timeout is over they come again, before newer ones. Large payloads are reserved in smaller numbers.
func (j *Journal) ReadReserve(ctx context.Context, n int, timeout time.Duration) (Token, error) {
	if n < 1 || timeout <= 0 {
		return 0, fmt.Errorf("%w: reserving %d payloads for %s: use positive numbers", job.ErrValue, n, timeout)
	}
	for {
		j.mu.Lock()
		grown, closed := j.grown, j.closed
		j.mu.Unlock()
		if closed {
			return 0, ErrClosed
		}
		token, again, err := j.reader.reserve(n, timeout)
		if err != nil || token != 0 {
			return token, err
		}
		wait, stop := ctx, func() {}
		if !again.IsZero() {
			wait, stop = context.WithDeadline(ctx, again)
		}
		select {
		case <-grown:
		case <-wait.Done():
		}
		stop()
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}

// reserve is ReadReserve without waiting: without payloads it says when a reservation ends, if there is one.
func (r *reader) reserve(n int, timeout time.Duration) (t Token, again time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, token := range slices.Sorted(maps.Keys(r.live)) {
		switch one := r.live[token]; {
		case !now.Before(one.until):
			r.giveBack(token, one)
		case again.IsZero() || one.until.Before(again):
			again = one.until
		}
	}
	entries, err := r.take(n)
	if err != nil || len(entries) == 0 {
		return 0, again, err
	}
	r.last++
	r.live[r.last] = &reservation{entries: entries, until: now.Add(timeout)}
	return r.last, again, nil
}

// giveBack lets payloads come again.
func (r *reader) giveBack(token Token, one *reservation) {
	delete(r.live, token)
	r.returned = append(r.returned, one.entries...)
	slices.SortFunc(r.returned, func(a, b Entry) int {
		if a.Position < b.Position {
			return -1
		}
		return 1
	})
}

// take returns the next payloads.
func (r *reader) take(n int) (entries []Entry, err error) {
	if len(r.returned) > 0 {
		n = fits(r.returned[:min(n, len(r.returned))], 0)
		entries = slices.Clone(r.returned[:n])
		r.returned = slices.Delete(r.returned, 0, n)
		return entries, nil
	}
	for size := 0; len(entries) < n; {
		if len(r.ahead) == 0 {
			if more, err := r.parse(); err != nil || !more {
				return entries, err
			}
		}
		part := fits(r.ahead[:min(n-len(entries), len(r.ahead))], size)
		if part == 0 {
			return entries, nil
		}
		for i := range r.ahead[:part] {
			size += len(r.ahead[i].Payload)
		}
		entries = append(entries, r.ahead[:part]...)
		r.ahead = r.ahead[part:]
	}
	return entries, nil
}

// reservedBytes is about how many bytes are reserved together, at most.
const reservedBytes = 4 << 20

// fits is how many of some payloads are taken together behind that many bytes: one at least if these are none.
func fits(all []Entry, size int) (n int) {
	for n < len(all) && (size == 0 || size+len(all[n].Payload) <= reservedBytes) {
		size += len(all[n].Payload)
		n++
	}
	return n
}

// Read returns the payloads of a token, once: then the error is ErrRead, and ErrExpired after its time.
func (j *Journal) Read(t Token) ([]Entry, error) {
	r := &j.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	one, err := r.reservation(t)
	if err != nil {
		return nil, err
	}
	if one.read {
		return nil, ErrRead
	}
	one.read = true
	return slices.Clone(one.entries), nil
}

// Ack tells that the payloads of a token are stored elsewhere: they do not come again, in this process; another one may get them again if this one dies soon. The error is
// ErrExpired after its time.
func (j *Journal) Ack(t Token) error {
	r := &j.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.reservation(t); err != nil {
		return err
	}
	delete(r.live, t)
	return r.advance()
}

// Return lets the payloads of a token come again at once.
func (j *Journal) Return(t Token) {
	r := &j.reader
	r.mu.Lock()
	if one := r.live[t]; one != nil {
		r.giveBack(t, one)
	}
	r.mu.Unlock()
	j.mu.Lock()
	j.grow()
	j.mu.Unlock()
}

// reservation returns that of a token.
func (r *reader) reservation(t Token) (*reservation, error) {
	one := r.live[t]
	if one == nil {
		return nil, ErrExpired
	}
	if !time.Now().Before(one.until) {
		r.giveBack(t, one)
		return nil, ErrExpired
	}
	return one, nil
}

// advance notes how far all is acknowledged, and removes the files before.
func (r *reader) advance() error {
	if r.at == nil {
		return nil
	}
	at, offset := r.at.seq, r.offset
	before := func(e *Entry) {
		if o := e.Position & (1<<offsetBits - 1); e.seq < at || e.seq == at && o < offset {
			at, offset = e.seq, o
		}
	}
	for _, one := range r.live {
		before(&one.entries[0])
	}
	for _, list := range [][]Entry{r.returned, r.ahead} {
		if len(list) > 0 {
			before(&list[0])
		}
	}
	j := r.journal
	j.mu.Lock()
	n := slices.IndexFunc(j.segments, func(s *segment) bool { return s.seq == at })
	name := j.segments[n].name()
	for i, s := range j.segments[:n+1] {
		s.consumed = i < n || s.consumed
	}
	j.segments[n].acked = offset
	if s := j.segments[n]; offset == s.size {
		if n == len(j.segments)-1 && s.size >= retireBytes && j.group == nil && j.putting == nil {
			s.sealed = true
		}
		s.consumed = s.sealed
	}
	j.mu.Unlock()
	if _, err := r.out.WriteAt(formatPosition(name, offset), 0); err != nil { // the same length each time
		return fmt.Errorf("noting how far the journal was read: %w", err)
	}
	r.tidy()
	return nil
}

// tidy removes the files of segments that were consumed, but the last: its number is not to be used again.
func (r *reader) tidy() {
	j := r.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.segments) > 1 && j.segments[0].consumed && j.segments[0] != r.at {
		kept, err := j.segments[0].dispose()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			j.log.Error("a file of the journal cannot be removed", "file", j.segments[0].path(), "error", err)
			return
		}
		j.kept += kept
		j.segments = j.segments[1:]
	}
}

// parse reads the next block, and tells whether there was one.
func (r *reader) parse() (bool, error) {
	for {
		if len(r.data) == 0 {
			if more, err := r.load(); err != nil || !more {
				return false, err
			}
		}
		s := r.at
		b, size, err := parse(r.data, s.salt)
		from := r.offset
		r.data, r.offset = r.data[size:], r.offset+int64(size)
		if err != nil {
			r.lost(b, from, size, err)
			continue
		}
		n := 0
		start := from + int64(size-len(b.body)-len(endMark))
		if b.body[len(b.body)-1] != '\n' {
			start--
		}
		payloads(b.body, func(at int, payload []byte) bool {
			offset := start + int64(at)
			if s.name() != r.skip || offset >= r.done {
				r.ahead = append(r.ahead, Entry{
					ID: lineID(b.id, n), Type: b.jobtype, At: b.date, Payload: payload, Epoch: s.epoch(), Position: int64(s.seq)<<offsetBits | offset, seq: s.seq,
				})
			}
			n++
			return true
		})
		if len(r.ahead) > 0 {
			return true, nil
		}
	}
}

// lost tells of bytes that are no block. One that breaks off is what a process left that died while it wrote.
func (r *reader) lost(b block, from int64, size int, err error) {
	j := r.journal
	if errors.Is(err, errTorn) {
		j.log.Info("the last block of a file breaks off, as its process died while writing: it was not acknowledged", "file", r.at.path(), "offset", from, "bytes", size)
		return
	}
	j.log.Error("a block of the journal is damaged: its payloads are lost, and the file is kept", "file", r.at.path()+damagedEnd, "offset", from, "bytes", size, "type", b.jobtype, "id", lineID(b.id, 0), "error", err)
	j.mu.Lock()
	defer j.mu.Unlock()
	r.at.damaged = true
}

// load reads what is left of the segment, or the next one; false if there is no more.
func (r *reader) load() (bool, error) {
	j := r.journal
	for {
		j.mu.Lock()
		next := r.at
		if next == nil && len(j.segments) > 0 {
			next = j.segments[0]
		}
		if next != nil && next == r.at && next.sealed && r.offset >= next.size {
			n := slices.Index(j.segments, next)
			if n+1 == len(j.segments) {
				next = nil
			} else {
				next = j.segments[n+1]
			}
		}
		if next == nil {
			j.mu.Unlock()
			return false, nil
		}
		size, sealed := next.size, next.sealed
		j.mu.Unlock()
		if next != r.at {
			r.at, r.offset = next, 0
			r.tidy()
		}
		if size == r.offset {
			if sealed {
				continue
			}
			return false, nil
		}
		return true, r.fill(size)
	}
}

// fill reads the segment up to a size.
func (r *reader) fill(size int64) error {
	f, err := os.Open(r.at.path())
	if err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	defer f.Close()
	data := make([]byte, size-r.offset)
	if _, err := f.ReadAt(data, r.offset); err != nil {
		return fmt.Errorf("reading the journal: %s: %w", r.at.path(), err)
	}
	r.data = data
	return nil
}

func (r *reader) close() error { return r.out.Close() }

// Text returns the payloads that are in the file of a segment, as lines id|type|payload, and what is wrong with the blocks in it.
func Text(name string, data []byte) (lines []string, errs []error) {
	s, ok := parseSegment("", filepath.Base(name))
	if !ok {
		return nil, []error{fmt.Errorf("%w: %s is not the name of a segment", job.ErrName, name)}
	}
	for len(data) > 0 {
		b, size, err := parse(data, s.salt)
		data = data[size:]
		if err != nil {
			errs = append(errs, err)
			continue
		}
		n := 0
		payloads(b.body, func(_ int, payload []byte) bool {
			lines = append(lines, (&Entry{ID: lineID(b.id, n), Type: b.jobtype, Payload: payload}).String())
			n++
			return true
		})
	}
	return lines, errs
}
