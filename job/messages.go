package job

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/port"
)

// Message is a message with its context.
type Message struct {
	Data    json.RawMessage `json:"data"`
	Context port.Context    `json:"context,omitempty"`
}

// Messages returns up to n of the oldest messages of a port, and no more of them than fit in
// MaxCommit bytes, without removing them.
func (h *Handle) Messages(ctx context.Context, dir port.Dir, name string, n int) ([]Message, error) {
	items, _, err := h.store.Peek(ctx, h.id, dir, name, n)
	if err != nil {
		return nil, err
	}
	return h.messages(name, items)
}

// Take removes up to n of the oldest messages of a port, as many as Messages would return,
// and returns them: a caller that dies before it has used them loses them. Consume loses none.
func (h *Handle) Take(ctx context.Context, dir port.Dir, name string, n int) ([]Message, error) {
	var all []Message
	err := h.takeFirst(ctx, dir, name, n, func(items []json.RawMessage) (err error) {
		all, err = h.messages(name, items)
		return err
	})
	return all, err
}

// Consume calls use with up to n of the oldest messages of a port, as many as Messages would return or none, and
// removes them after use returned nil: a reader that dies in between finds them again, so each is used at least once. If
// somebody else took messages of the port meanwhile the error is ErrMoved and nothing is removed.
func (h *Handle) Consume(ctx context.Context, dir port.Dir, name string, n int, use func([]Message) error) error {
	items, head, err := h.store.Peek(ctx, h.id, dir, name, n)
	if err != nil {
		return err
	}
	all, err := h.messages(name, items)
	if err != nil {
		return err
	}
	if err := use(all); err != nil || len(items) == 0 {
		return err
	}
	return h.store.Take(ctx, h.id, Take{Dir: dir, Port: name, Head: head, N: len(items)}, rand.Text())
}

func (h *Handle) messages(name string, items []json.RawMessage) ([]Message, error) {
	all := make([]Message, 0, len(items))
	for _, stored := range items {
		data, keys := port.Split(stored)
		m := Message{Data: data}
		if keys != nil {
			if err := port.Decode(keys, &m.Context); err != nil {
				return nil, fmt.Errorf("context of a message of port %q of job %s: %w", name, h.id, err)
			}
		}
		all = append(all, m)
	}
	return all, nil
}
