package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	segmentEnd = ".journal"
	damagedEnd = ".damaged"
)

// segment is a file of a journal. What may change is changed under the journal's lock.
type segment struct {
	dir       string
	seq, salt uint64
	size      int64 // bytes that were synced
	sealed    bool  // it is not written to any more
	acked     int64 // bytes of it that were acknowledged, from its beginning
	consumed  bool  // all in it has been acknowledged, and it is not written to any more
	damaged   bool  // it has a block that cannot be read
}

func (s *segment) name() string { return fmt.Sprintf("%08x-%016x%s", s.seq, s.salt, segmentEnd) }
func (s *segment) path() string { return filepath.Join(s.dir, s.name()) }

// epoch is the name of what one process has written: positions within it only grow.
func (s *segment) epoch() string { return fmt.Sprintf("%016x", s.salt) }

// parseSegment reads the name of a segment.
func parseSegment(dir, name string) (*segment, bool) {
	s := &segment{dir: dir, sealed: true}
	if n, err := fmt.Sscanf(name, "%08x-%016x"+segmentEnd, &s.seq, &s.salt); n != 2 || err != nil || s.name() != name {
		return nil, false
	}
	return s, true
}

// segmentsIn finds the segments of a directory, and how many bytes damaged files have.
func segmentsIn(dir string) (all []*segment, kept int64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		s, ok := parseSegment(dir, e.Name())
		if !ok && !strings.HasSuffix(e.Name(), damagedEnd) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if !ok {
			kept += info.Size()
			continue
		}
		s.size = info.Size()
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *segment) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.salt, b.salt)) })
	return all, kept, nil
}

// dispose removes a segment that was consumed; one with damage is kept under another name, and its bytes are returned.
func (s *segment) dispose() (kept int64, err error) {
	if !s.damaged {
		return 0, os.Remove(s.path())
	}
	return s.size, os.Rename(s.path(), s.path()+damagedEnd)
}

// createFile makes a file that is appended to.
func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
}

// syncDir makes a new name in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
