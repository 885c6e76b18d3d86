package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// StoredLetter is a dead letter, and where it lies. Change its Messages, or its Job, before [Client.Requeue] to have others written,
// or to have them written to another job.
type StoredLetter struct {
	// ID is the same as long as the letter lies there, also when it is edited.
	ID string `json:"id"`
	// In is the port that it lies in.
	In job.PortRef `json:"in"`
	// Number of the message there, as for Handle.Trace. It may change when letters before it are requeued.
	Number int64 `json:"number"`
	job.Letter
	// Context is that of the letter itself.
	Context port.Context `json:"context,omitempty"`

	head    int64  // of the port when the dead letter was read
	sum     string // of what was read
	settled bool
}

// Settled tells whether the dead letter is no more where it was read: Requeue, Discard or Edit, or one of these for all, was done to it.
func (l *StoredLetter) Settled() bool { return l.settled }

// String returns the dead letter, and where it lies, as JSON.
func (l StoredLetter) String() string { return port.Text(l) }

// LetterFilter says which dead letters are meant. Its zero value means all in the ports job.ErrorsPort of all jobs.
type LetterFilter struct {
	// Job limits them to a job and those below it in its tree.
	Job job.ID
	// Port is another Out port of Job, which dead letters come to along edges.
	Port string
	// Jobs says in the ports of which jobs they lie: Type, Queue, Labels, Keys and Status count.
	Jobs job.Filter
	// Error is in the text of their errors.
	Error string
	// Since and Until limit when the last try failed: not before, and before.
	Since, Until time.Time
}

// Validate reports the first thing in the filter that no dead letter could pass.
func (f *LetterFilter) Validate() error {
	if f.Port != "" && f.Job == "" {
		return fmt.Errorf("%w: dead letters of port %q, but of which job? Name it, too", job.ErrValue, f.Port)
	}
	if f.Job != "" {
		if _, err := job.ParseID(string(f.Job)); err != nil {
			return err
		}
	}
	return f.Jobs.Validate()
}

// match tells whether a letter passes the filter, as far as it tells itself.
func (f *LetterFilter) match(l *StoredLetter) bool {
	return strings.Contains(l.Error, f.Error) && !l.At.Before(f.Since) && (f.Until.IsZero() || l.At.Before(f.Until))
}

const (
	letterPage  = 100       // letters that are read, and requeued, at a time
	letterBytes = 256 << 10 // and about how many bytes
)

// DeadLetters lists the dead letters that pass a filter: those of the newest tree first, of one port the oldest first. Messages in
// such a port that are no dead letters are left out. Letters may be requeued, changed and discarded while the list is read.
func (c *Client) DeadLetters(ctx context.Context, f LetterFilter) iter.Seq2[*StoredLetter, error] {
	return func(yield func(*StoredLetter, error) bool) {
		for page, err := range c.letterPages(ctx, f) {
			if err != nil {
				yield(nil, fmt.Errorf("listing dead letters: %w", err))
				return
			}
			for _, l := range page {
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}

// letterPages is DeadLetters in pages, each of letters of one port, with the head that it had.
func (c *Client) letterPages(ctx context.Context, f LetterFilter) iter.Seq2[[]*StoredLetter, error] {
	return func(yield func([]*StoredLetter, error) bool) {
		if err := f.Validate(); err != nil {
			yield(nil, err)
			return
		}
		if f.Port != "" {
			c.portLetters(ctx, job.PortRef{Job: f.Job, Dir: port.Output, Port: f.Port}, &f, yield)
			return
		}
		for i, err := range c.store.Dead(ctx, f.Job.Tree(), f.Jobs) {
			below := true
			if err == nil && f.Job != "" {
				below, err = c.isBelow(ctx, i, f.Job)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if below && !c.portLetters(ctx, job.PortRef{Job: i.ID, Dir: port.Output, Port: job.ErrorsPort}, &f, yield) {
				return
			}
		}
	}
}

// isBelow tells whether a job is another one, or below it in their tree.
func (c *Client) isBelow(ctx context.Context, i *job.Info, top job.ID) (is bool, err error) {
	for err == nil && !top.IsRoot() && i.ID != top && i.Parent != "" {
		i, err = c.store.Info(ctx, i.Parent)
	}
	return err == nil && (top.IsRoot() || i.ID == top), err
}

// portLetters yields the letters of a port, and tells whether to go on.
func (c *Client) portLetters(ctx context.Context, from job.PortRef, f *LetterFilter, yield func([]*StoredLetter, error) bool) bool {
	for next, head := int64(0), int64(0); ; { // the number of the next message, and the head when it was counted
		offset := max(next-head, 0)
		items, now, err := c.store.Page(ctx, from.Job, from.Dir, from.Port, int(offset), letterPage, letterBytes)
		switch {
		case errors.Is(err, job.ErrNotFound): // it was deleted meanwhile
			return true
		case err != nil:
			return yield(nil, err)
		}
		head, next = now, max(next, now)
		if now+offset != next { // some were taken meanwhile: those behind them keep their numbers
			continue
		}
		var page []*StoredLetter
		for i, stored := range items {
			if l := letterOf(from, next+int64(i), head, stored); l != nil && f.match(l) {
				page = append(page, l)
			}
		}
		if len(page) > 0 && !yield(page, nil) {
			return false
		}
		if len(items) == 0 {
			return true
		}
		next += int64(len(items))
	}
}

// letterOf returns the dead letter that a stored message is, or nil.
func letterOf(from job.PortRef, number, head int64, stored json.RawMessage) *StoredLetter {
	data, keys := port.Split(stored)
	l := &StoredLetter{In: from, Number: number, head: head}
	if json.Unmarshal(data, &l.Letter) != nil || l.Messages == nil || l.At.IsZero() {
		return nil
	}
	if keys != nil && port.Decode(keys, &l.Context) != nil {
		return nil
	}
	if l.Job == "" {
		l.Job = from.Job
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %s", l.Job, l.Step, l.At.Format(time.RFC3339Nano), l.Error))
	sum := sha256.Sum256(stored)
	l.ID, l.sum = hex.EncodeToString(id[:5]), string(sum[:])
	return l
}

// Requeue takes dead letters out of their ports and writes the messages in them to the In ports they came from: both at once,
// so that each message is in one place at any time, and once. Only if the job that could not handle them is of another tree than
// the port that they lie in are they written first, under a key, and taken then: see [Handle.WriteOnce]. It returns how many were
// requeued. The error tells of those that were not: it wraps job.ErrNotFound if somebody else has taken the letter, job.ErrMoved if
// somebody has changed it since it was read, job.ErrClosed if the job is to get no more messages, and job.ErrFull if the port is full.
func (c *Client) Requeue(ctx context.Context, letters ...*StoredLetter) (n int, err error) {
	s := settling{client: c, doing: "requeuing", instead: func(l *StoredLetter) (store.SettledLetter, error) {
		var s store.SettledLetter
		if len(l.Messages) == 0 {
			return s, fmt.Errorf("%w: it holds no messages", job.ErrName)
		}
		for _, in := range slices.Sorted(maps.Keys(l.Messages)) {
			raw := l.Messages[in]
			err := port.Check(raw)
			if err == nil {
				err = job.CheckSize("the message", len(raw))
			}
			var item json.RawMessage
			if err == nil {
				item, err = l.sealed(in, raw)
			}
			if err != nil {
				return s, fmt.Errorf("the message for port %q: %w", in, err)
			}
			s.Ports, s.Items = append(s.Ports, job.PortRef{Job: l.Job, Dir: port.Input, Port: in}), append(s.Items, item)
		}
		return s, nil
	}}
	return s.all(ctx, letters)
}

// sealed returns the message for an In port with the context that it had.
func (l *StoredLetter) sealed(in string, raw json.RawMessage) (json.RawMessage, error) {
	var keys port.Context
	if c := l.Contexts[in]; c != nil {
		if err := port.Decode(c, &keys); err != nil {
			return nil, fmt.Errorf("its context: %w", err)
		}
	}
	return port.Seal(raw, keys)
}

// RequeueAll requeues all dead letters that pass a filter, and returns how many. edit, unless it is nil, is called with each before: it may change
// the letter, or leave it where it is by returning false.
func (c *Client) RequeueAll(ctx context.Context, f LetterFilter, edit func(*StoredLetter) bool) (n int, err error) {
	return c.settleAll(ctx, f, edit, c.Requeue)
}

// Edit stores changed dead letters: their Messages, Job, Error and Context. They go behind the others in their ports.
func (c *Client) Edit(ctx context.Context, letters ...*StoredLetter) error {
	s := settling{client: c, doing: "changing", instead: func(l *StoredLetter) (store.SettledLetter, error) {
		raw, err := port.Encode(l.Letter)
		if err == nil && len(raw) > job.MaxCommit {
			err = fmt.Errorf("%w: the dead letter has %d bytes, at most %d are allowed", job.ErrTooLarge, len(raw), job.MaxCommit)
		}
		if err == nil {
			raw, err = port.Seal(raw, l.Context)
		}
		return store.SettledLetter{Ports: []job.PortRef{l.In}, Items: []json.RawMessage{raw}}, err
	}}
	_, err := s.all(ctx, letters)
	return err
}

// CheckDeadLetter returns an error, which wraps port.ErrEncoding, if the job of a dead letter could not decode the messages that are for some
// of its In ports: of all ports, if none are named. It refuses what [Handle.Write] would refuse with that context; see [WithKnownFields].
func (c *Client) CheckDeadLetter(ctx context.Context, l *StoredLetter, ports ...string) error {
	if len(ports) == 0 {
		ports = slices.Sorted(maps.Keys(l.Messages))
	}
	h := c.At(l.Job)
	for _, in := range ports {
		if l.Messages[in] == nil {
			return fmt.Errorf("%w: the dead letter has no message for port %q: %s", job.ErrPort, in, port.Suggest(in, slices.Sorted(maps.Keys(l.Messages))))
		}
		item, err := l.sealed(in, l.Messages[in])
		if err == nil {
			err = h.fit(ctx, job.PortRef{Job: l.Job, Dir: port.Input, Port: in}, []json.RawMessage{item})
		}
		if err != nil {
			return fmt.Errorf("port %q of job %s: %w", in, l.Job, err)
		}
	}
	return nil
}

// Discard removes dead letters for good, and returns how many.
func (c *Client) Discard(ctx context.Context, letters ...*StoredLetter) (n int, err error) {
	s := settling{client: c, doing: "discarding", instead: func(*StoredLetter) (store.SettledLetter, error) { return store.SettledLetter{}, nil }}
	return s.all(ctx, letters)
}

// DiscardAll removes all dead letters that pass a filter, and for which which returns true unless it is nil, and returns how many.
func (c *Client) DiscardAll(ctx context.Context, f LetterFilter, which func(*StoredLetter) bool) (n int, err error) {
	return c.settleAll(ctx, f, which, c.Discard)
}

func (c *Client) settleAll(ctx context.Context, f LetterFilter, edit func(*StoredLetter) bool, do func(context.Context, ...*StoredLetter) (int, error)) (n int, err error) {
	var failed DeadLettersError
	told := func(err error) error {
		if len(failed.Failed) == 0 {
			return err
		}
		failed.All = n + len(failed.Failed)
		return errors.Join(&failed, err)
	}
	for page, err := range c.letterPages(ctx, f) {
		if err != nil {
			return n, told(err)
		}
		if edit != nil {
			page = slices.DeleteFunc(page, func(l *StoredLetter) bool { return !edit(l) })
		}
		done, err := do(ctx, page...)
		n += done
		var some *DeadLettersError
		if errors.As(err, &some) {
			failed.Doing, failed.Failed = some.Doing, append(failed.Failed, some.Failed...)
		}
		if ctx.Err() != nil || job.Temporary(err) {
			break
		}
	}
	return n, told(nil)
}
