package explain

import (
	"context"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/trigger"
)

// alike is how many jobs of a graph that have the same status are explained.
const alike = 5

// Ask says why a job has its status, and what would move it. Commands call the job what
// called says, or by an alias if that is its ID and it has one; iso writes times as RFC 3339.
func Ask(ctx context.Context, store storecall.Store, h *client.Handle, called string, iso bool) ([]Because, error) {
	t, err := treeOf(ctx, store, h, called, iso)
	if err != nil {
		return nil, err
	}
	client := client.New(store)
	t.Other = func(id job.ID) []Because {
		other, err := treeOf(ctx, store, client.At(id), string(id), iso)
		if err != nil {
			return nil
		}
		return other.Why(id)
	}
	return t.Why(h.ID()), nil
}

// treeOf returns what explains the jobs of the tree of a job, and knows what can be read.
func treeOf(ctx context.Context, store storecall.Store, h *client.Handle, called string, iso bool) (*Tree, error) {
	tree, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	t := NewTree(tree, time.Now())
	t.Most, t.ISO = alike, iso
	client := client.New(store)
	if called == string(h.ID()) {
		called = Names(ctx, client)(h.ID())
	}
	t.calls(h.ID(), called)
	aliases, err := store.Aliases(ctx, h.ID().Tree())
	if err != nil {
		return nil, err
	}
	t.Named(aliases)
	if err := t.inform(ctx, store, h.ID()); err != nil {
		return nil, err
	}
	t.Poison = func(i *job.Info) (Poison, bool) { return poisonOf(ctx, client.At(i.ID), i) }
	t.Outcome = func(i *job.Info) (Outcome, bool) { return outcomeOf(ctx, client.At(i.ID)) }
	t.Limit = func(name string) (redisstore.LimitInfo, bool) { return limitOf(ctx, store, name) }
	t.Turn = func(i *job.Info) (job.Turn, bool) {
		turn, err := store.Turn(ctx, i.ID.Tree())
		return turn, err == nil
	}
	t.Stack = func(i *job.Info) string { return stackOf(ctx, client.At(i.ID)) }
	t.Trigger = func(i *job.Info) (*trigger.Status, bool) {
		s, err := trigger.Of(ctx, client, i, 0)
		return s, err == nil
	}
	return t, nil
}

// limitOf returns how a limit is used. What cannot be read is not known.
func limitOf(ctx context.Context, store storecall.Store, name string) (redisstore.LimitInfo, bool) {
	l, err := store.Limit(ctx, name)
	if err != nil {
		return redisstore.LimitInfo{}, false
	}
	return *l, true
}

// stackOf is that of the last failed run of a job, if it panicked and can be read.
func stackOf(ctx context.Context, h *client.Handle) string {
	failures, err := h.Failures(ctx)
	if err != nil || len(failures) == 0 {
		return ""
	}
	return failures[0].Stack
}

// poisonOf looks for the message that may be to blame for the last failed run of a job. What cannot be read is not known.
func poisonOf(ctx context.Context, h *client.Handle, i *job.Info) (m Poison, ok bool) {
	failures, err := h.Failures(ctx)
	if err != nil || len(failures) == 0 || failures[0].Port == "" {
		return m, false
	}
	p, _ := i.Port(port.Input, failures[0].Port)
	ahead := failures[0].Number - (p.Total - p.Waiting)
	if ahead < 0 || ahead >= p.Waiting {
		return m, false // it was taken out
	}
	m = Poison{Port: p.Name, Place: int(ahead) + 1, Of: p.Waiting, Data: "…"}
	if items, err := h.Messages(ctx, port.Input, p.Name, m.Place); err == nil && len(items) == m.Place {
		m.Data = string(items[ahead].Data)
	}
	return m, true
}

// inform asks who could run the jobs of the tree, and what keeps them from it.
func (t *Tree) inform(ctx context.Context, store storecall.Store, asked job.ID) (err error) {
	if t.Types, err = store.Types(ctx); err != nil {
		return err
	}
	queues, err := store.Queues(ctx)
	if err != nil {
		return err
	}
	t.Engines, t.Pending, t.Paused = map[string]int{}, map[string]int{}, map[string]bool{}
	for _, q := range queues {
		t.Engines[q.Name], t.Pending[q.Name], t.Paused[q.Name] = q.Engines, q.Pending, q.Paused
	}
	if t.Living, err = store.Engines(ctx); err != nil {
		return err
	}
	if t.Locks, err = store.Locked(ctx, t.lockable(asked)...); err != nil {
		return err
	}
	docs, err := component.Catalogue()
	for _, d := range docs {
		t.Components = append(t.Components, d.Type)
	}
	return err
}

// lockable are the jobs of the tree that would run unless they are locked, and the one asked for.
func (t *Tree) lockable(asked job.ID) (ids []job.ID) {
	for _, i := range t.tree {
		if i.ID == asked || i.Status == statemachine.Queued || i.Status == statemachine.Terminating || !i.Next.IsZero() {
			ids = append(ids, i.ID)
		}
	}
	return ids
}
