package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
)

// logPage is how many entries of a log are asked for at a time.
const logPage = 500

// LogReader reads the log of a job: first what is there, then what comes. It is not safe for
// concurrent use.
type LogReader struct {
	store   store.Store
	id      job.ID
	below   bool
	streams []*logStream
	members map[job.ID]bool   // which jobs are the job or below it, as far as that is known
	passed  map[job.ID]string // by tree: behind which entry Passed was asked last
	missed  int64
}

// logStream is the log of one tree.
type logStream struct {
	tree     job.ID
	position string // of the last entry that was seen
}

// OpenLog returns a reader of the job's log; with below also of what is logged by the jobs
// below it now, those that were adopted from other trees included, and by those that they
// will have.
func (h *Handle) OpenLog(ctx context.Context, below bool) (*LogReader, error) {
	r := &LogReader{store: h.store, id: h.id, below: below, members: map[job.ID]bool{h.id: true}, streams: []*logStream{{tree: h.id.Tree()}}}
	if !below {
		_, err := h.Info(ctx)
		return r, err
	}
	tree, err := h.store.Tree(ctx, h.id)
	if err != nil {
		return nil, err
	}
	r.members = under(tree, h.id)
	for _, i := range tree {
		if !r.members[i.ID] {
			continue
		}
		if !slices.ContainsFunc(r.streams, func(s *logStream) bool { return s.tree == i.ID.Tree() }) {
			r.streams = append(r.streams, &logStream{tree: i.ID.Tree()})
		}
	}
	return r, nil
}

// Last returns the last n entries that are not older than since, oldest first. Next goes on
// behind them. It is to be called once, before Next.
func (r *LogReader) Last(ctx context.Context, n int, since time.Time) ([]job.Entry, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: the last %d entries of the log of job %s: use 0 or more", job.ErrValue, n, r.id)
	}
	var all []job.Entry
	for _, s := range r.streams {
		some, err := r.last(ctx, s, n, since, "")
		if err != nil {
			return nil, err
		}
		slices.Reverse(some)
		all = append(all, some...)
	}
	inOrder(all)
	return all[max(0, len(all)-n):], nil
}

// Back is Last of the entries before a position that it returned, or of all if that is empty. Behind them it returns the position before
// which there are earlier ones, which is empty if there are none.
func (r *LogReader) Back(ctx context.Context, n int, since time.Time, before string) (entries []job.Entry, earlier string, err error) {
	if n < 1 {
		return nil, "", fmt.Errorf("%w: %d entries of the log of job %s: use 1 or more", job.ErrValue, n, r.id)
	}
	at := map[job.ID]string{}
	if before != "" {
		if at, err = parsePositions(before); err != nil {
			return nil, "", err
		}
	}
	var all []job.Entry
	for _, s := range r.streams {
		some, err := r.last(ctx, s, n+1, since, at[s.tree])
		if err != nil {
			return nil, "", err
		}
		if at[s.tree] == "" && s.position != "" {
			at[s.tree] = strconv.FormatInt(number(s.position)+1, 10)
		}
		slices.Reverse(some)
		all = append(all, some...)
	}
	inOrder(all)
	if len(all) <= n {
		return all, "", nil
	}
	all = all[len(all)-n:]
	for _, e := range slices.Backward(all) {
		at[e.Job.Tree()] = e.Position
	}
	return all, r.positions(func(s *logStream) string { return at[s.tree] }), nil
}

// last returns entries of a tree before a position, newest first.
func (r *LogReader) last(ctx context.Context, s *logStream, n int, since time.Time, before string) ([]job.Entry, error) {
	var found []job.Entry
	for {
		page, err := r.store.LogBack(ctx, s.tree, before, logPage)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if s.position == "" {
				s.position = e.Position
			}
			if before = e.Position; e.At.Before(since) || len(found) == n {
				return found, nil
			}
			if ok, err := r.concerns(ctx, e.Job); err != nil {
				return nil, err
			} else if ok {
				found = append(found, e)
			}
		}
		if len(page) < logPage {
			return found, nil
		}
	}
}

// Next returns the entries that came since the last call, oldest first. After an error it may
// be called again.
func (r *LogReader) Next(ctx context.Context) ([]job.Entry, error) { return r.read(ctx, 0) }

// NextLast is Next for who wants the last n entries of each tree at least, and not all: where very many came, those before them are
// not read, but counted as Missed.
func (r *LogReader) NextLast(ctx context.Context, n int) ([]job.Entry, error) {
	return r.read(ctx, max(n, 1))
}

// read returns what is new; with last, of each tree the last that many at least.
func (r *LogReader) read(ctx context.Context, last int) ([]job.Entry, error) {
	var all []job.Entry
	r.missed = 0
	seen := make([]string, len(r.streams))
	for n, s := range r.streams {
		some, position, err := r.next(ctx, s, last)
		if err != nil {
			return nil, err
		}
		all, seen[n] = append(all, some...), position
	}
	r.passed = make(map[job.ID]string, len(r.streams))
	for n, s := range r.streams {
		r.passed[s.tree], s.position = s.position, seen[n]
	}
	inOrder(all)
	return all, nil
}

// Trimmed tells which of the logs that are read have lost their first entries.
func (r *LogReader) Trimmed(ctx context.Context) ([]job.Trimmed, error) {
	var all []job.Trimmed
	for _, s := range r.streams {
		t, err := r.store.LogTrimmed(ctx, s.tree)
		if err != nil {
			return nil, err
		}
		if t.Entries > 0 {
			all = append(all, t)
		}
	}
	return all, nil
}

// Missed is how many entries of the trees' logs were gone before the last call of Next could read them: more came since the call
// before it, or since the Position of Seek, than a log keeps.
func (r *LogReader) Missed() int64 { return r.missed }

// Position says how far the reader has read, for Seek of another one of the same job.
func (r *LogReader) Position() string {
	return r.positions(func(s *logStream) string { return s.position })
}

// Passed is the Position of a reader that has read as far as an entry. It is to be asked of the entries that Next
// returned, one after the other.
func (r *LogReader) Passed(e job.Entry) string {
	r.passed[e.Job.Tree()] = e.Position
	return r.positions(func(s *logStream) string { return r.passed[s.tree] })
}

// Beyond tells whether the reader has not come to an entry yet: one that another reader of the same job returned.
func (r *LogReader) Beyond(e job.Entry) bool {
	for _, s := range r.streams {
		if s.tree == e.Job.Tree() {
			return s.before(e.Position)
		}
	}
	return false
}

// Behind tells whether another reader of the same job has come further in the log of some tree.
func (r *LogReader) Behind(other *LogReader) bool {
	for _, s := range r.streams {
		for _, o := range other.streams {
			if s.tree == o.tree && s.before(o.position) {
				return true
			}
		}
	}
	return false
}

// before tells whether a position is behind what was read.
func (s *logStream) before(position string) bool {
	switch {
	case position == "":
		return false
	case s.position == "":
		return true
	}
	return cmp.Or(cmp.Compare(number(position), number(s.position)), cmp.Compare(nth(position), nth(s.position))) > 0
}

// Trees are those whose logs are read.
func (r *LogReader) Trees() []job.ID {
	all := make([]job.ID, 0, len(r.streams))
	for _, s := range r.streams {
		all = append(all, s.tree)
	}
	return all
}

func (r *LogReader) positions(of func(s *logStream) string) string {
	at := make([]string, 0, len(r.streams))
	for _, s := range r.streams {
		at = append(at, string(s.tree)+"="+of(s))
	}
	return strings.Join(at, ";")
}

// Seek makes Next go on behind a Position, in place of a call of Last.
func (r *LogReader) Seek(position string) error {
	seen, err := parsePositions(position)
	if err != nil {
		return err
	}
	for _, s := range r.streams {
		s.position = seen[s.tree]
	}
	return nil
}

// parsePositions returns the position in each tree of what positions has returned.
func parsePositions(position string) (map[job.ID]string, error) {
	seen := map[job.ID]string{}
	for one := range strings.SplitSeq(position, ";") {
		tree, at, ok := strings.Cut(one, "=")
		id, err := job.ParseID(tree)
		if !ok || err != nil {
			return nil, fmt.Errorf("%w: position %.80q of a log: use what was read with the last entry", job.ErrValue, position)
		}
		seen[id] = at
	}
	return seen, nil
}

// next returns the new entries of a tree, and the position of the last. With last those before the last that many may be missed, if
// they are more than a page.
func (r *LogReader) next(ctx context.Context, s *logStream, last int) (found []job.Entry, position string, err error) {
	for position = s.position; ; {
		page, err := r.store.Log(ctx, s.tree, position, logPage)
		if err != nil {
			return nil, "", err
		}
		for _, e := range page {
			ok, err := r.concerns(ctx, e.Job)
			if err != nil {
				return nil, "", err
			}
			if position != "" {
				r.missed += max(number(e.Position)-number(position)-1, 0)
			}
			if position = e.Position; ok {
				found = append(found, e)
			}
		}
		switch {
		case len(page) < logPage:
			return found, position, nil
		case last > 0:
			tail, end, err := r.tail(ctx, &logStream{s.tree, position}, last)
			return append(found, tail...), end, err
		}
	}
}

// tail returns the last entries of a tree, that many of those that came since, and the position of the last. It counts what it leaves out.
func (r *LogReader) tail(ctx context.Context, since *logStream, n int) (found []job.Entry, end string, err error) {
	end = since.position
	for before := ""; ; {
		page, err := r.store.LogBack(ctx, since.tree, before, logPage)
		if err != nil {
			return nil, "", err
		}
		for _, e := range page {
			if !since.before(e.Position) {
				slices.Reverse(found)
				return found, end, nil
			}
			ok, err := r.concerns(ctx, e.Job)
			if err != nil {
				return nil, "", err
			}
			if before == "" {
				end = e.Position
			}
			if before = e.Position; ok {
				found = append(found, e)
			}
		}
		if len(found) >= n || len(page) < logPage {
			r.missed += max(number(before)-number(since.position)-1, 0)
			slices.Reverse(found)
			return found, end, nil
		}
	}
}

// number is that of the entry at a position of a log.
func number(position string) int64 {
	digits, _, _ := strings.Cut(position, "/")
	n, _ := strconv.ParseInt(digits, 10, 64) // the store made it
	return n
}

// nth is which one of the runs that share an entry is at a position of a log.
func nth(position string) int {
	_, digits, _ := strings.Cut(position, "/")
	n, _ := strconv.Atoi(digits) // the store made it
	return n
}

// inOrder sorts entries of several trees by time; those of a tree stay in their order.
func inOrder(entries []job.Entry) {
	slices.SortStableFunc(entries, func(a, b job.Entry) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Job.Tree(), b.Job.Tree())) })
}

// concerns tells whether what a job logs is to be read.
func (r *LogReader) concerns(ctx context.Context, id job.ID) (bool, error) {
	if !r.below {
		return id == r.id, nil
	}
	if r.id.IsRoot() && id.Tree() == r.id {
		return true, nil // jobs that are gone, too
	}
	in, known := r.members[id]
	if known {
		return in, nil
	}
	info, err := r.store.Info(ctx, id)
	switch {
	case errors.Is(err, job.ErrNotFound):
	case err != nil:
		return false, err
	case info.Parent != "":
		if in, err = r.concerns(ctx, info.Parent); err != nil {
			return false, err
		}
	}
	r.members[id] = in
	return in, nil
}
