package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// A job that filled a port is suspended until there is room. If the port's owner sleeps because it
// waits for something else, and that can come from suspended jobs only, they wait for each
// other indefinitely although none of them is wrong: the limits are too small for the shape of
// the graph. Then the smallest of the limits is doubled, and the log says so.

// maxGrown is the limit from which on one is not raised by itself.
const maxGrown = 1 << 20

// raiseLimits looks, once each, at the trees of jobs that have been suspended by backpressure for long. members are
// what `due` says of them.
func (s *Store) raiseLimits(ctx context.Context, members []string) error {
	var errs []error
	seen := map[job.ID]bool{}
	for _, m := range members {
		producer, _, _ := strings.Cut(strings.TrimPrefix(m, fullMember), " ")
		if seen[job.ID(producer)] {
			continue
		}
		// An ID does not tell which tree its job is in: it may have been disowned.
		tree, err := s.Tree(ctx, job.ID(producer))
		for _, i := range tree {
			seen[i.ID] = true
		}
		if err == nil {
			err = s.raiseLimit(ctx, tree)
		}
		if !errors.Is(err, job.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// raiseLimit doubles the smallest limit of a deadlock, if there is one in the tree.
func (s *Store) raiseLimit(ctx context.Context, tree []*job.Info) error {
	j := newDeadlock(tree)
	var cycle string
	var at *fullPort
	for _, i := range tree {
		if i.Blocked && at == nil {
			cycle, at = j.find(i.ID)
		}
	}
	if at == nil || at.Limit >= maxGrown {
		return nil
	}
	note, err := port.Encode(map[string]any{"deadlock": cycle, "raised": at.Port, "job": at.Job, "limit": 2 * at.Limit})
	if err != nil {
		return fmt.Errorf("describing a deadlock: %w", err)
	}
	return s.act(ctx, scriptGrow, at.Job, at.Port, string(at.Job), at.Port, at.Limit, 2*at.Limit, string(note))
}

// deadlock is a tree seen as who waits for whom.
type deadlock struct {
	jobs     map[job.ID]*job.Info
	sources  map[job.ID][]job.ID // who may write to an open In port
	children map[job.ID][]job.ID
	full     map[job.ID][]fullPort // that a job writes to
	live     map[job.ID]bool       // something may still happen by itself
}

type fullPort struct {
	job.PortRef
	Limit int
}

func newDeadlock(tree []*job.Info) *deadlock {
	j := &deadlock{
		jobs: map[job.ID]*job.Info{}, sources: map[job.ID][]job.ID{}, children: map[job.ID][]job.ID{},
		full: map[job.ID][]fullPort{}, live: map[job.ID]bool{},
	}
	for _, i := range tree {
		j.jobs[i.ID] = i
		j.children[i.Parent] = append(j.children[i.Parent], i.ID)
	}
	for _, i := range tree {
		for _, p := range i.Ports {
			if p.Dir == port.Output && !i.Graph {
				j.follow(i.ID, p.Edges)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, i := range tree {
			if !j.live[i.ID] && j.moves(i) {
				j.live[i.ID], changed = true, true
			}
		}
	}
	return j
}

// follow notes which ports the edges of a job's Out port lead to in the end. A graph on the way passes messages on whatever
// its status is.
func (j *deadlock) follow(from job.ID, edges [][]job.PortRef) {
	for _, edge := range edges {
		for _, end := range edge {
			to := j.jobs[end.Job]
			if to == nil {
				continue
			}
			p, ok := to.Port(end.Dir, end.Port)
			switch {
			case !ok:
			case len(p.Edges) > 0:
				j.follow(from, p.Edges)
			case end.Dir == port.Input && !j.inactive(to): // else nobody waits for room there
				if !p.Closed {
					j.sources[end.Job] = append(j.sources[end.Job], from)
				}
				if p.Limit > 0 && p.Waiting >= int64(p.Limit) {
					j.full[from] = append(j.full[from], fullPort{end, p.Limit})
				}
			}
		}
	}
}

// moves tells whether a job may do something, now or because others may.
func (j *deadlock) moves(i *job.Info) bool {
	if i.Graph || j.inactive(i) {
		return false
	}
	if i.Status == statemachine.Failed {
		return j.inGraph(i) // a retry may come; one that was spawned is its parent's affair
	}
	if i.Status != statemachine.Suspended && i.Status != statemachine.Completed {
		return true
	}
	if i.Blocked {
		for _, p := range j.full[i.ID] {
			if !j.live[p.Job] {
				return false
			}
		}
		return true
	}
	if !i.Next.IsZero() {
		return true
	}
	wired, open := false, false
	for _, p := range i.Ports {
		if p.Dir == port.Input {
			wired, open = wired || p.Fed, open || !p.Fed && !p.Closed
		}
	}
	if open && !wired {
		return true // somebody outside may write
	}
	for _, other := range append(j.sources[i.ID], j.children[i.ID]...) {
		if j.live[other] {
			return true
		}
	}
	return false
}

// inactive tells whether a job runs no more unless somebody insists, and its graph goes on without it.
func (j *deadlock) inactive(i *job.Info) bool {
	if i.Status != statemachine.Failed {
		return i.Status == statemachine.Terminated
	}
	for ; i != nil && i.Policy != job.Ignore; i = j.jobs[i.Parent] {
		if !j.inGraph(i) {
			return false
		}
	}
	return true
}

// inGraph tells whether a job is a member of a graph.
func (j *deadlock) inGraph(i *job.Info) bool {
	up := j.jobs[i.Parent]
	return up != nil && up.Graph
}

// find tells in names who waits for whom, if a suspended job does so indefinitely, and the port
// with the smallest limit among them.
func (j *deadlock) find(producer job.ID) (cycle string, smallest *fullPort) {
	var path []string
	seen := map[job.ID]bool{}
	for at := producer; at != ""; {
		i := j.jobs[at]
		if i == nil || j.live[at] {
			return "", nil
		}
		path = append(path, j.path(i))
		if seen[at] {
			return strings.Join(path, " -> "), smallest
		}
		seen[at] = true
		next := job.ID("")
		if i.Blocked {
			for _, p := range j.full[at] {
				if j.live[p.Job] {
					continue
				}
				if next = p.Job; smallest == nil || p.Limit < smallest.Limit {
					smallest = &p
				}
			}
		} else if sources := j.sources[at]; len(sources) > 0 {
			next = j.restless(sources)
		}
		at = next
	}
	return strings.Join(path, " -> "), smallest
}

// restless prefers, of jobs none of which moves, one that is suspended before a full port.
func (j *deadlock) restless(ids []job.ID) job.ID {
	for _, id := range ids {
		if j.jobs[id].Blocked {
			return id
		}
	}
	return ids[0]
}

// path is a job's names from the root's child down.
func (j *deadlock) path(i *job.Info) string {
	up := j.jobs[i.Parent]
	if up == nil || up.Parent == "" {
		return i.Name
	}
	return j.path(up) + "/" + i.Name
}
