package journal

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"

	"github.com/weirworks/weir/job"
)

// group is what is written and synced together.
type group struct {
	buf  []byte
	done chan struct{} // closed when it is on the disk, or is not to be
	err  error
}

// wait returns when the group is on the disk; at once if there is none.
func (g *group) wait(ctx context.Context) error {
	if g == nil {
		return nil
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Receipt is for payloads that were written.
type Receipt struct {
	first uuid.UUID
	n     int
	group *group
}

// Len is how many payloads there are.
func (r *Receipt) Len() int { return r.n }

// ID is that of the job that the i-th payload, from 0, will become.
func (r *Receipt) ID(i int) job.ID { return lineID(r.first, i) }

// IDs are those of the jobs that the payloads will become, in their order.
func (r *Receipt) IDs() []job.ID {
	ids := make([]job.ID, r.n)
	for i := range ids {
		ids[i] = r.ID(i)
	}
	return ids
}

// Wait returns when the payloads are on the disk: then they will be jobs, with these IDs. The error wraps ErrDisk if they were not accepted. If the context
// ends before, that is not known.
func (r *Receipt) Wait(ctx context.Context) error { return r.group.wait(ctx) }

// write writes what comes, until the journal is closed.
func (j *Journal) write() {
	for range j.wake {
		j.writeGroup()
	}
	j.writeGroup()
	if j.out != nil {
		_ = j.out.Close() // it was synced
	}
}

func (j *Journal) writeGroup() {
	j.mu.Lock()
	g := j.group
	j.group, j.putting = nil, g
	j.mu.Unlock()
	if g == nil {
		return
	}
	err := j.put(g.buf)
	j.mu.Lock()
	j.putting = nil
	if err != nil {
		g.err = fmt.Errorf("%w: %w", ErrDisk, err)
	}
	j.grow()
	j.mu.Unlock()
	close(g.done)
}

// put appends blocks to a segment, and syncs it. Only the writing goroutine calls it.
func (j *Journal) put(data []byte) error {
	s, err := j.segment(int64(len(data)))
	if err != nil {
		return err
	}
	if _, err = j.out.Write(data); err == nil {
		err = j.out.Sync()
	}
	if err != nil {
		j.abandon(s)
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s.size += int64(len(data))
	return nil
}

// segment returns the segment that this many bytes are to be written to: a new one if the last is full, or not to be written to any more.
func (j *Journal) segment(size int64) (*segment, error) {
	j.mu.Lock()
	var last *segment
	if n := len(j.segments); n > 0 {
		last = j.segments[n-1]
	}
	if j.out != nil && !last.sealed && (last.size == 0 || last.size+size <= j.cfg.Segment) {
		j.mu.Unlock()
		return last, nil
	}
	seq := uint64(1)
	if last != nil {
		seq = last.seq + 1
	}
	old := j.out
	j.out = nil
	j.mu.Unlock()
	if old != nil {
		_ = old.Close() // it was synced
	}
	s := &segment{seq: seq, salt: j.salt, dir: j.cfg.Dir}
	out, err := j.cfg.create(s.path())
	if err == nil {
		if err = syncDir(j.cfg.Dir); err != nil {
			err = errors.Join(err, out.Close(), os.Remove(s.path())) // its name is used again
		}
	}
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if last != nil {
		last.sealed = true
	}
	j.out, j.segments = out, append(j.segments, s)
	return s, nil
}

// abandon cuts a segment back to what was synced, as far as that goes, and has a new one begun.
func (j *Journal) abandon(s *segment) {
	err := j.out.Truncate(s.size)
	if err == nil {
		err = j.out.Sync()
	}
	if err != nil {
		j.log.Error("a file of the journal cannot be cut back after a failed write; what was refused may still be in it, and become jobs after a restart", "file", s.path(), "error", err)
	}
	_ = j.out.Close()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out, s.sealed = nil, true
}
