package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// walkBudget is how many jobs one script reads.
const walkBudget = 250

// Info implements job.Inspector.
func (s *Store) Info(ctx context.Context, id job.ID) (*job.Info, error) {
	infos, _, err := s.read(ctx, []job.ID{id}, 0)
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, refusal("gone", id)
	}
	return infos[0], s.confirm(ctx, infos[0])
}

// confirm settles whether a job that was being adopted across shards was: its parent's
// list of children says.
func (s *Store) confirm(ctx context.Context, i *job.Info) error {
	if !i.Joining {
		return nil
	}
	holder, err := s.Children(ctx, i.Parent)
	if err != nil {
		return err
	}
	if holder[i.Name] != i.ID {
		i.Parent, i.Name = "", ""
	}
	return nil
}

// Tree implements job.Inspector.
func (s *Store) Tree(ctx context.Context, id job.ID) ([]*job.Info, error) {
	top, err := s.Info(ctx, id)
	for err == nil && top.Parent != "" {
		up, upErr := s.Info(ctx, top.Parent)
		if errors.Is(upErr, job.ErrNotFound) {
			break
		}
		top, err = up, upErr
	}
	if err != nil {
		return nil, err
	}
	var out []*job.Info
	if err := s.walk(ctx, top.ID, func(i *job.Info) bool { out = append(out, i); return true }); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, refusal("gone", id)
	}
	root := out[0].ID.Tree()
	sort.SliceStable(out[1:], func(a, b int) bool {
		x, y := out[a+1].ID, out[b+1].ID
		if own, other := x.Tree() == root, y.Tree() == root; own != other {
			return own
		}
		return x.Tree() < y.Tree() || x.Tree() == y.Tree() && x.Number() < y.Number()
	})
	return out, nil
}

// walk calls fn for a job and all below it, each after its parent, until fn returns false.
func (s *Store) walk(ctx context.Context, id job.ID, fn func(*job.Info) bool) error {
	for todo := []job.ID{id}; len(todo) > 0; {
		// Those at the end lie in one shard as far as they are of one tree.
		from := len(todo) - 1
		for from > 0 && len(todo)-from < walkBudget && todo[from-1].Tree() == todo[from].Tree() {
			from--
		}
		infos, left, err := s.read(ctx, todo[from:], walkBudget)
		if err != nil {
			return err
		}
		todo = append(todo[:from], left...)
		for _, i := range infos {
			if !fn(i) {
				return nil
			}
		}
	}
	return nil
}

// read reads jobs of one tree and, as far as the budget goes, what is below them (with a
// budget of 0 nothing is); left
// are those that it did not come to. Jobs that do not exist are left out.
func (s *Store) read(ctx context.Context, ids []job.ID, budget int) (infos []*job.Info, left []job.ID, err error) {
	args := []any{budget}
	for _, id := range ids {
		args = append(args, string(id))
	}
	reply, err := s.run(ctx, scriptWalk, s.keys.dueOf(ids[0]), args...)
	if err != nil {
		return nil, nil, err
	}
	var d decoder
	l := d.list(reply)
	infos = d.infos(d.at(l, 0))
	for _, v := range d.list(d.at(l, 1)) {
		left = append(left, job.ID(d.str(v)))
	}
	return infos, left, d.err
}

// Reserve implements job.Creator and job.RunReader. A repeat after a lost reply leaves a
// gap in the tree's numbers, which does no harm.
func (s *Store) Reserve(ctx context.Context, tree job.ID, n int) (int, error) {
	reply, err := s.run(ctx, scriptReserve, s.keys.dueOf(tree), string(tree.Tree()), n)
	if err != nil {
		return 0, err
	}
	var d decoder
	last := int(d.int(reply))
	if last < 0 {
		return 0, refusal("gone", tree.Tree())
	}
	return last - n + 1, d.err
}

// Apply implements job.Control.
func (s *Store) Apply(ctx context.Context, id job.ID, event statemachine.Event) error {
	return s.act(ctx, scriptApply, id, "", string(id), string(event), rand.Text(), "")
}

// Terminate implements job.Family.
func (s *Store) Terminate(ctx context.Context, id job.ID) error {
	return s.act(ctx, scriptApply, id, "", string(id), string(statemachine.Terminate), rand.Text(), "1")
}

// RunAt implements job.Control.
func (s *Store) RunAt(ctx context.Context, id job.ID, at time.Time, delay time.Duration) error {
	when := ""
	if !at.IsZero() {
		when = fmt.Sprint(at.UnixMilli())
	}
	err := s.act(ctx, scriptAlarm, id, "", string(id), when, delay.Milliseconds(), rand.Text())
	s.broker.Due(ctx)
	return err
}

// Ended implements job.Family.
func (s *Store) Ended(ctx context.Context, id job.ID) (bool, error) {
	ended, found := true, false
	err := s.walk(ctx, id, func(i *job.Info) bool {
		found = true
		ended = ended && i.Status == statemachine.Terminated
		return ended
	})
	if err == nil && !found {
		return false, refusal("gone", id)
	}
	return ended, err
}
