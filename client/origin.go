package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// maxOrigin is how many runs Origin names at most: of a message that many others led to, the nearest.
const maxOrigin = 500

// Origin is where a message came from.
type Origin struct {
	// Steps are the runs, and acts from outside, that led to the message, the latest first: the one that sent it, those that
	// sent what that run had read, and so on.
	Steps []job.RunEntry
	// Missing are messages that were read on the way and of which the log of the tree does not tell who sent them.
	Missing []job.Movement
	// Trimmed says what is gone of the log. It is asked for only if messages are Missing.
	Trimmed job.Trimmed
	// More is true if there are more steps than an Origin names.
	More bool
}

// Trace tells where the n-th message that ever came to a port (the first is 0) came from: the steps of its Origin.
func (h *Handle) Trace(ctx context.Context, dir port.Dir, name string, n int64) ([]job.RunEntry, error) {
	o, err := h.Origin(ctx, dir, name, n)
	if err != nil {
		return nil, err
	}
	return o.Steps, nil
}

// Origin tells where the n-th message that ever came to a port (the first is 0) came from, as far as the log of the tree goes
// back. It reads the log from its end, and stops where the first message of the path was sent from outside. A run that read several
// messages before it wrote one has all of them on the path: the log does not tell which of them it was made of.
//
// The log tells to which port messages came in the end. A port with edges, such as one of a graph, passes them on, and is followed as long
// as the port behind it has had no other messages; an error that wraps job.ErrPort says where they went if it has.
func (h *Handle) Origin(ctx context.Context, dir port.Dir, name string, n int64) (*Origin, error) {
	at := job.PortRef{Job: h.id, Dir: dir, Port: name}
	o, err := h.originAt(ctx, at, n)
	for range job.MaxDepth {
		if !errors.Is(err, errUntraced) {
			break
		}
		next, passed, lost := h.passedOn(ctx, at)
		if lost != nil {
			return nil, lost
		}
		if !passed {
			break
		}
		at = next
		o, err = h.originAt(ctx, at, n)
	}
	return o, err
}

// originAt is Origin of the messages of one port.
func (h *Handle) originAt(ctx context.Context, at job.PortRef, n int64) (*Origin, error) {
	if _, err := h.at(at.Job).Info(ctx); err != nil {
		return nil, err
	}
	o := &Origin{}
	want := wanted{}
	want.add(job.Movement{Job: at.Job, Dir: at.Dir, Port: at.Port, From: n, N: 1})
	for before, more := "", true; more; {
		page, err := h.store.LogBack(ctx, h.id.Tree(), before, logPage)
		if err != nil {
			return nil, err
		}
		for i := range page {
			before = page[i].Position
			// A message is sent before it is read, so what sent it stands before what read it.
			if page[i].Run == nil || !want.sent(page[i].Run.Sent) {
				continue
			}
			if o.More = len(o.Steps) == maxOrigin; o.More {
				return o, nil
			}
			o.Steps = append(o.Steps, *page[i].Run)
			want.read(page[i].Run)
		}
		more = len(page) == logPage && len(want) > 0
	}
	if o.Missing = want.all(); len(o.Missing) == 0 {
		return o, nil
	}
	var err error
	if o.Trimmed, err = h.store.LogTrimmed(ctx, h.id.Tree()); err == nil && len(o.Steps) == 0 {
		err = h.untraced(at, n, o.Trimmed)
	}
	return o, err
}

// passedTries is how often the numbers of messages of two ports are read until they are of one moment.
const passedTries = 3

// passedOn returns the port to which one passes its messages on, where they have the same numbers; false if it keeps them. The error is for
// messages that have other numbers there.
func (h *Handle) passedOn(ctx context.Context, at job.PortRef) (next job.PortRef, passed bool, err error) {
	var from, to job.PortInfo
	for range passedTries {
		info, err := h.at(at.Job).Info(ctx)
		if err != nil {
			return job.PortRef{}, false, err
		}
		from, _ = info.Port(at.Dir, at.Port)
		if len(from.Edges) == 0 || len(from.Edges[0]) == 0 {
			return job.PortRef{}, false, nil
		}
		next = from.Edges[0][0] // of several edges each has all of them
		if info, err = h.at(next.Job).Info(ctx); errors.Is(err, job.ErrNotFound) {
			return job.PortRef{}, false, nil
		} else if err != nil {
			return job.PortRef{}, false, err
		}
		if to, _ = info.Port(next.Dir, next.Port); len(from.Edges[0]) == 1 && to.Total == from.Total {
			return next, true, nil
		}
	}
	where := fmt.Sprintf("port %q of job %s, where they have other numbers (it has had %d messages, and this port %d)", next.Port, next.Job, to.Total, from.Total)
	if len(from.Edges[0]) > 1 {
		where = fmt.Sprintf("port %q of job %s and others in turn", next.Port, next.Job)
	}
	return job.PortRef{}, false, fmt.Errorf("%w %q of job %s passes its messages on to %s: trace them there", job.ErrPort, at.Port, at.Job, where)
}

// errUntraced: the log does not tell who sent a message.
var errUntraced = fmt.Errorf("%w: the log", job.ErrNotFound)

// untraced is the error about a message whose sender the log does not tell.
func (h *Handle) untraced(at job.PortRef, n int64, t job.Trimmed) error {
	gone := ""
	if t.Entries > 0 {
		gone = fmt.Sprintf("; its first %d entries, of before %s, are gone", t.Entries, t.Since.Format(time.RFC3339))
	}
	return fmt.Errorf("%w of job %s does not say who sent message %d of port %q%s", errUntraced, at.Job, n, at.Port, gone)
}

// place is a port of a job.
type place struct {
	job  job.ID
	dir  port.Dir
	name string
}

// stretch is the messages of a port from a number on, up to another one.
type stretch struct{ from, to int64 }

// wanted are messages whose senders are looked for.
type wanted map[place][]stretch

func placeOf(m *job.Movement) (place, stretch) {
	return place{m.Job, m.Dir, m.Port}, stretch{m.From, m.From + int64(m.N)}
}

func (w wanted) add(m job.Movement) {
	if at, s := placeOf(&m); s.from < s.to {
		w[at] = append(w[at], s)
	}
}

// read adds what a run read.
func (w wanted) read(e *job.RunEntry) {
	for _, m := range e.Read {
		w.add(m)
	}
	for i := range e.Groups {
		w.read(&e.Groups[i])
	}
}

// sent takes away what was sent, and tells whether any of it was wanted.
func (w wanted) sent(all []job.Movement) (found bool) {
	for i := range all {
		at, s := placeOf(&all[i])
		var left []stretch
		for _, old := range w[at] {
			if s.to <= old.from || old.to <= s.from {
				left = append(left, old)
				continue
			}
			found = true
			if old.from < s.from {
				left = append(left, stretch{old.from, s.from})
			}
			if s.to < old.to {
				left = append(left, stretch{s.to, old.to})
			}
		}
		if w[at] = left; len(left) == 0 {
			delete(w, at)
		}
	}
	return found
}

// all returns what is wanted still, in the order of jobs and ports.
func (w wanted) all() []job.Movement {
	var out []job.Movement
	for at, list := range w {
		for _, s := range list {
			out = append(out, job.Movement{Job: at.job, Dir: at.dir, Port: at.name, From: s.from, N: int(s.to - s.from)})
		}
	}
	slices.SortFunc(out, func(a, b job.Movement) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Port, b.Port), cmp.Compare(a.From, b.From))
	})
	return out
}
