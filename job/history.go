package job

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/weirworks/weir/port"
)

// Data of messages is logged up to these sizes; of larger ones only how many there were.
const (
	MaxLoggedMessage = 2 << 10  // bytes of one message
	MaxLoggedEntry   = 16 << 10 // bytes of all in one entry
)

// outsideEntry is what the log says of messages written from outside of runs.
func outsideEntry(id ID, w Write, c port.Context) string {
	m := Movement{Job: id, Dir: w.Dir, Port: w.Port, N: len(w.Items), Context: maps.Clone(c)}
	delete(m.Context, port.ContextBy)
	size := 0
	for _, stored := range w.Items {
		data, _ := port.Split(stored)
		m.Data = append(m.Data, data)
		if size += len(data); len(data) > MaxLoggedMessage || size > MaxLoggedEntry {
			m.Data = nil
			break
		}
	}
	by, _ := c[port.ContextBy].(string)
	raw, err := json.Marshal(RunEntry{By: by, Write: []Movement{m}})
	if err != nil {
		return "" // all in it is JSON already
	}
	return string(raw)
}

// traceLimit is how many entries of a tree's log Trace looks at.
const traceLimit = 10_000

// Trace tells where the n-th message that ever came to a port (the first is 0) came
// from: the run, or act from outside, that sent it, then those that sent what that run
// read, and so on, nearest first, as far as the log of the tree goes back.
func (h *Handle) Trace(ctx context.Context, dir port.Dir, name string, n int64) ([]RunEntry, error) {
	if _, err := h.Info(ctx); err != nil {
		return nil, err
	}
	log, err := h.store.Runs(ctx, h.id.Tree(), traceLimit)
	if err != nil {
		return nil, err
	}
	todo := []Movement{{Job: h.id, Dir: dir, Port: name, From: n, N: 1}}
	var out []RunEntry
	used := make([]bool, len(log))
	for len(todo) > 0 {
		want := todo[0]
		todo = todo[1:]
		for i := len(log) - 1; i >= 0; i-- {
			if used[i] || !sends(log[i].Sent, want) {
				continue
			}
			used[i] = true
			out = append(out, log[i])
			todo = append(todo, log[i].Read...)
			for _, g := range log[i].Groups {
				todo = append(todo, g.Read...)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: the log of job %s does not say who sent message %d of port %q", ErrNotFound, h.id, n, name)
	}
	return out, nil
}

// sends tells whether any of the messages wanted is among those sent.
func sends(sent []Movement, want Movement) bool {
	for _, s := range sent {
		if s.Job == want.Job && s.Dir == want.Dir && s.Port == want.Port &&
			s.From < want.From+int64(want.N) && want.From < s.From+int64(s.N) {
			return true
		}
	}
	return false
}
