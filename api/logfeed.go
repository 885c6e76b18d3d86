package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

const (
	// mostEntries is how many entries of logs are told at a time to all streams of the server together, but for leastEntries to each:
	// of more than that the last are told, and how many are left out.
	mostEntries  = 50_000
	leastEntries = 10
)

// logOf names a feed: the logs of these trees, as far as they concern a job.
type logOf struct {
	store *redisstore.Store
	job   job.ID
	trees string
}

// logFeed reads the log and the status of a job, once for all who follow it.
type logFeed struct {
	feed[*logWanted]
	of     logOf
	users  int // with the mutex of feeds held
	feeds  *feeds
	handle *client.Handle
	log    *client.LogReader // of the first listener
	info   *job.Info         // as it was read last; all know its status
}

// logWanted is what a listener of a log has read by itself.
type logWanted struct {
	read *client.LogReader // nil: less than the feed
}

// logFeed returns the feed of what r reads of a job, and of those below it if so, until it is released.
func (s *session) logFeed(h *client.Handle, below bool, r *client.LogReader) *logFeed {
	s.feeds.mu.Lock()
	defer s.feeds.mu.Unlock()
	of := logOf{s.store, h.ID(), fmt.Sprint(below, r.Trees())}
	f := s.feeds.logs[of]
	if f == nil {
		f = &logFeed{of: of, feeds: &s.feeds, handle: h}
		f.read = f.step
		if s.feeds.logs == nil {
			s.feeds.logs = map[logOf]*logFeed{}
		}
		s.feeds.logs[of] = f
	}
	f.users++
	return f
}

// release gives a feed back: the last one who does so removes it.
func (f *feeds) release(one *logFeed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(f.logs, one.of)
	}
}

// errBehind: the feed has told more than a listener has read.
var errBehind = errors.New("behind the feed")

// mostReads is how often a listener reads to get to where its feed is before the feed waits for it.
const mostReads = 4

// enter adds a listener that has come to where its reader is, and returns what it is told before all others. Others do not wait while it reads.
func (f *logFeed) enter(ctx context.Context, feeds *feeds, r *client.LogReader) ([]byte, *listener[*logWanted], error) {
	var begun bytes.Buffer
	read := func() error {
		batch, err := readLog(ctx, r, 0)
		begun.Write(batch.events(0, nil))
		return err
	}
	for n := 1; ; n++ {
		if err := read(); err != nil {
			return nil, nil, err
		}
		want := &logWanted{r}
		l, err := f.join(feeds, want, func(first bool) error {
			if first {
				info, err := f.handle.Info(ctx)
				if err == nil {
					err = read()
				}
				if err != nil {
					return err
				}
				f.log, f.info, want.read = r, info, nil
			} else if r.Behind(f.log) {
				if n < mostReads {
					return errBehind
				}
				if err := read(); err != nil {
					return err
				}
			}
			return putEvent(&begun, r.Position(), "status", JobOf(f.info))
		})
		if !errors.Is(err, errBehind) {
			return begun.Bytes(), l, err
		}
	}
}

// logBatch is what came to a log.
type logBatch struct {
	entries []job.Entry
	places  []string // of each entry
	missed  int64
}

// readLog reads what is new, or with most at least the last that many of each tree.
func readLog(ctx context.Context, r *client.LogReader, most int) (b logBatch, err error) {
	if most > 0 {
		b.entries, err = r.NextLast(ctx, most)
	} else {
		b.entries, err = r.Next(ctx)
	}
	if err != nil {
		return b, err
	}
	b.missed = r.Missed()
	for _, e := range b.entries {
		b.places = append(b.places, r.Passed(e))
	}
	return b, nil
}

// events are those of a batch: of its last entries, if most is not 0, and only of those that a reader has not come to, if there is one.
func (b *logBatch) events(most int, read *client.LogReader) []byte {
	var out bytes.Buffer
	from, missed := 0, b.missed
	if most > 0 && len(b.entries) > most {
		from = len(b.entries) - most
		missed += int64(from)
	}
	if missed > 0 && putEvent(&out, "", "trimmed", map[string]int64{"entries": missed}) != nil {
		return nil
	}
	for n, line := range LogLines(b.entries[from:]) {
		if read != nil && !read.Beyond(b.entries[from+n]) {
			continue
		}
		kind := "note"
		if line.Run != nil {
			kind = "run"
		}
		if putEvent(&out, b.places[from+n], kind, line) != nil {
			return nil
		}
	}
	return out.Bytes()
}

// step tells all listeners what is new. A store that does not answer is asked again with the next step.
func (f *logFeed) step(ctx context.Context) time.Duration {
	wait := f.feeds.pace(0)
	info, err := f.handle.Info(ctx)
	if errors.Is(err, job.ErrNotFound) {
		f.gone()
		return wait
	}
	if err != nil {
		return wait
	}
	most := max(leastEntries, mostEntries/max(int(f.feeds.streams.Load()), 1))
	batch, err := readLog(ctx, f.log, most)
	if err != nil {
		return wait
	}
	var status bytes.Buffer
	if info.Status != f.info.Status {
		_ = putEvent(&status, f.log.Position(), "status", JobOf(info)) // it always can be
	}
	f.info = info
	events := slices.Concat(batch.events(most, nil), status.Bytes())
	for l := range f.listeners {
		mine := events
		if read := l.wants.read; read != nil {
			mine, l.wants.read = slices.Concat(batch.events(most, read), status.Bytes()), nil
		}
		if len(mine) > 0 {
			f.offer(l, mine)
		}
	}
	return wait
}

// gone tells all listeners that the job was deleted, and lets their streams end.
func (f *logFeed) gone() {
	var out bytes.Buffer
	_ = putEvent(&out, f.log.Position(), "deleted", map[string]job.ID{"id": f.of.job})
	for l := range f.listeners {
		f.offer(l, out.Bytes())
		f.drop(l)
	}
}
