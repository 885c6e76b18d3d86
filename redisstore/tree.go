package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

const (
	// walkBudget is how many jobs one script reads.
	walkBudget = 100
	// walkAhead is how many of the scripts may be on their way at a time, so that Redis does not
	// wait while a reply is taken in.
	walkAhead = 3
)

// Info implements store.Inspector.
func (s *Store) Info(ctx context.Context, id job.ID) (*job.Info, error) {
	i, err := s.single(ctx, id)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return nil, refusal("gone", id)
	}
	return i, s.confirm(ctx, i)
}

// single reads one job; it is nil if there is none.
func (s *Store) single(ctx context.Context, id job.ID) (*job.Info, error) {
	reply, err := s.read(ctx, []branch{{id: id}}, 0)
	if err != nil {
		return nil, err
	}
	var d decoder
	infos := d.infos(d.at(d.list(reply), 0))
	if d.err != nil || len(infos) == 0 {
		return nil, d.err
	}
	s.secrets.showInfo(infos[0])
	return infos[0], nil
}

// confirm settles whether a job that was being adopted across shards was: its parent's
// list of children says.
func (s *Store) confirm(ctx context.Context, i *job.Info) error {
	if !i.Joining {
		return nil
	}
	child, err := s.child(ctx, i.Parent, i.Name)
	if err != nil {
		return err
	}
	if child != i.ID {
		i.Parent, i.Name = "", ""
	}
	return nil
}

// Tree implements store.Inspector.
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
	if err := s.walk(ctx, top.ID, walkAhead, func(i *job.Info) bool { out = append(out, i); return true }); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, refusal("gone", id)
	}
	byNumber(out)
	return out, nil
}

// byNumber sorts a tree by number, behind its root; jobs adopted from other trees come last.
func byNumber(tree []*job.Info) {
	root := tree[0].ID.Tree()
	type place struct {
		info    *job.Info
		foreign job.ID // the other tree
		number  int
	}
	places := make([]place, len(tree))
	for n, i := range tree {
		places[n] = place{info: i, number: i.ID.Number()}
		if t := i.ID.Tree(); t != root {
			places[n].foreign = t
		}
	}
	slices.SortStableFunc(places[1:], func(a, b place) int {
		return cmp.Or(cmp.Compare(a.foreign, b.foreign), cmp.Compare(a.number, b.number))
	})
	for n := range places {
		tree[n] = places[n].info
	}
}

// walk calls fn for a job and all below it, each after its parent, until fn returns false.
// Redis may be reading several parts of the tree while fn is called for the jobs of one: with
// only one part at a time, what is below a job of another tree is read after fn was called
// for that job.
func (s *Store) walk(ctx context.Context, id job.ID, parts int, fn func(*job.Info) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	todo := []branch{{id: id}}
	var reading []<-chan walked
	var seen map[job.ID]bool // while a large family is read, which may name a child twice
	defer func() {
		cancel()
		for _, r := range reading {
			<-r
		}
	}()
	for {
		for len(todo) > 0 && len(reading) < parts {
			reading = append(reading, s.readPart(ctx, &todo))
		}
		if len(reading) == 0 {
			return nil
		}
		part := <-reading[0]
		reading = reading[1:]
		if part.err != nil {
			return part.err
		}
		var d decoder
		l := d.list(part.reply)
		for _, v := range d.list(d.at(l, 1)) {
			id, from, large := strings.Cut(d.str(v), " ")
			todo = append(todo, branch{job.ID(id), from})
			if large && seen == nil {
				seen = map[job.ID]bool{}
			}
		}
		for len(todo) > 0 && len(reading) < parts-1 {
			reading = append(reading, s.readPart(ctx, &todo))
		}
		for _, i := range d.infos(d.at(l, 0)) {
			if seen[i.ID] {
				continue
			}
			if seen != nil {
				seen[i.ID] = true
			}
			s.secrets.showInfo(i)
			if !fn(i) {
				return nil
			}
		}
		if d.err != nil {
			return d.err
		}
	}
}

// branch is a job and what is below it or, with from, what is below its children from there on: of a
// job that has very many, a script reads some.
type branch struct {
	id   job.ID
	from string
}

// walked is a reply of the script that reads trees.
type walked struct {
	reply any
	err   error
}

// readPart takes branches off a list that is not empty and begins to read them.
func (s *Store) readPart(ctx context.Context, todo *[]branch) <-chan walked {
	list := *todo
	// Those at the end lie in one shard as far as they are of one tree. Of large families there is one at most.
	at := len(list) - 1
	for at > 0 && len(list)-at < walkBudget && list[at].from == "" && list[at-1].id.Tree() == list[at].id.Tree() {
		at--
	}
	some := slices.Clone(list[at:])
	*todo = list[:at]
	out := make(chan walked, 1)
	go func() {
		reply, err := s.read(ctx, some, walkBudget)
		out <- walked{reply, err}
	}()
	return out
}

// read reads branches of one tree, as far as the budget goes (with a budget of 0 just the jobs themselves).
func (s *Store) read(ctx context.Context, branches []branch, budget int) (any, error) {
	args := []any{budget}
	for _, b := range branches {
		text := string(b.id)
		if b.from != "" {
			text += " " + b.from
		}
		args = append(args, text)
	}
	return s.run(ctx, scriptWalk, s.keys.dueOf(branches[0].id), args...)
}

// Reserve implements store.Creator and store.RunReader. A repeat after a lost reply leaves a
// gap in the tree's numbers, which does no harm.
func (s *Store) Reserve(ctx context.Context, tree job.ID, n int) (int, error) {
	return s.reserve(ctx, tree, n)
}

// ReserveChild implements store.RunReader.
func (s *Store) ReserveChild(ctx context.Context, parent job.ID, name string, n int) (int, error) {
	return s.reserve(ctx, parent, n, string(parent), name)
}

// reserve sets n numbers of a tree aside, for a child if its parent and name are given.
func (s *Store) reserve(ctx context.Context, tree job.ID, n int, child ...any) (int, error) {
	reply, err := s.run(ctx, scriptReserve, s.keys.dueOf(tree), append([]any{string(tree.Tree()), n}, child...)...)
	if err != nil {
		return 0, err
	}
	var d decoder
	switch last := int(d.int(reply)); last {
	case -1:
		return 0, refusal("gone", tree.Tree())
	case -2:
		return 0, refusal(fmt.Sprint("exists ", child[0], " ", child[1]), tree)
	default:
		return last - n + 1, d.err
	}
}

// Apply implements store.Control.
func (s *Store) Apply(ctx context.Context, id job.ID, event statemachine.Event) error {
	p := scriptApply
	if event == statemachine.Terminate {
		p = p.freeing()
	}
	return s.fire(ctx, p, id, event, "")
}

// Terminate implements store.Family.
func (s *Store) Terminate(ctx context.Context, id job.ID) error {
	return s.fire(ctx, scriptApply.freeing(), id, statemachine.Terminate, "1")
}

// TerminateSeen ends a job and all below it as Terminate does, if it has the status of what was seen of it, and no run of it was committed
// since; else the error wraps job.ErrMoved. Nobody can begin a run of it in between.
func (s *Store) TerminateSeen(ctx context.Context, seen *job.Info) error {
	as := fmt.Sprint(string(seen.Status), " ", seen.Steps)
	return s.fire(ctx, scriptApply.freeing(), seen.ID, statemachine.Terminate, "1", as)
}

// firedBy is what the log of a job calls an event that somebody had happen to it.
var firedBy = map[statemachine.Event]string{
	statemachine.Run: "run", statemachine.Force: "forced", statemachine.Retry: "retried", statemachine.Terminate: "terminated",
}

// fire has an event happen to a job, with what the script wants to know of it.
func (s *Store) fire(ctx context.Context, p program, id job.ID, event statemachine.Event, more ...any) error {
	entry, err := s.byHand(ctx, id, firedBy[event], "")
	if err != nil {
		return err
	}
	return s.act(ctx, p, id, "", append([]any{string(id), string(event), rand.Text(), entry}, more...)...)
}

// RunAt implements store.Control.
func (s *Store) RunAt(ctx context.Context, id job.ID, at time.Time, delay time.Duration) error {
	when := ""
	if !at.IsZero() {
		when = fmt.Sprint(at.UnixMilli())
	}
	l, err := s.acted(ctx, scriptTimer, id, "", string(id), when, delay.Milliseconds(), rand.Text())
	if err != nil {
		return err
	}
	var d decoder
	s.broker.Due(ctx, id.Shard(s.keys.shards), d.int(d.at(l, 2)))
	return d.err
}

// Ended implements store.Family.
func (s *Store) Ended(ctx context.Context, id job.ID) (bool, error) {
	ended, found := true, false
	err := s.walk(ctx, id, walkAhead, func(i *job.Info) bool {
		found = true
		ended = ended && i.Status == statemachine.Terminated
		return ended
	})
	if err == nil && !found {
		return false, refusal("gone", id)
	}
	return ended, err
}
