package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Messages returns up to n of the oldest messages of a port, and no more of them than fit in
// job.MaxPeek bytes, without removing them.
func (h *Handle) Messages(ctx context.Context, dir port.Dir, name string, n int) ([]job.Message, error) {
	u, err := h.Unread(ctx, dir, name, n)
	return u.Messages, err
}

// Take removes up to n of the oldest messages of a port, as many as Messages would return,
// and returns them: a caller that dies before it has used them loses them. Consume loses none.
func (h *Handle) Take(ctx context.Context, dir port.Dir, name string, n int) ([]job.Message, error) {
	var all []job.Message
	err := h.takeFirst(ctx, dir, name, n, func(items []json.RawMessage) (err error) {
		all, err = h.messages(name, items)
		return err
	})
	return all, err
}

// Consume calls use with up to n of the oldest messages of a port, as many as Messages would return or none, and
// removes them after use returned nil: a reader that dies in between finds them again, so each is used at least once. If
// somebody else took messages of the port meanwhile the error is job.ErrMoved and nothing is removed.
func (h *Handle) Consume(ctx context.Context, dir port.Dir, name string, n int, use func([]job.Message) error) error {
	u, err := h.Unread(ctx, dir, name, n)
	if err != nil {
		return err
	}
	if err := use(u.Messages); err != nil || len(u.Messages) == 0 {
		return err
	}
	return h.Discard(ctx, dir, name, u.From, len(u.Messages), rand.Text())
}

// Unread are messages that wait in a port.
type Unread struct {
	// From is the number of the first, of all that the port ever had, from 0.
	From int64 `json:"from"`
	// Messages are the oldest.
	Messages []job.Message `json:"messages"`
}

// Unread returns what Messages does, with the number of the first, for Discard.
func (h *Handle) Unread(ctx context.Context, dir port.Dir, name string, n int) (Unread, error) {
	return h.UnreadAfter(ctx, dir, name, 0, n)
}

// UnreadAfter returns what Unread does, of the messages behind the skip oldest ones: the next page.
func (h *Handle) UnreadAfter(ctx context.Context, dir port.Dir, name string, skip, n int) (Unread, error) {
	items, head, err := h.store.Page(ctx, h.id, dir, name, skip, n, job.MaxPeek)
	if err != nil {
		return Unread{}, err
	}
	all, err := h.messages(name, items)
	return Unread{From: head + int64(skip), Messages: all}, err
}

// Discard removes the n oldest messages of a port if the first of them is still number from; else somebody took
// messages meanwhile, the error is job.ErrMoved, and nothing is removed. A call that is repeated with the same token, a random text,
// does nothing more.
func (h *Handle) Discard(ctx context.Context, dir port.Dir, name string, from int64, n int, token string) error {
	return h.store.Take(ctx, h.id, store.Take{Dir: dir, Port: name, Head: from, N: n}, token)
}

func (h *Handle) messages(name string, items []json.RawMessage) ([]job.Message, error) {
	all := make([]job.Message, 0, len(items))
	for _, stored := range items {
		m, err := job.MessageOf(stored)
		if err != nil {
			return nil, fmt.Errorf("context of a message of port %q of job %s: %w", name, h.id, err)
		}
		all = append(all, m)
	}
	return all, nil
}
