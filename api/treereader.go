package api

import (
	"context"
	"slices"
	"time"

	"github.com/weirworks/weir/draw"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
)

const (
	// smallTree is how many jobs a tree has at most that is read as a whole each time.
	smallTree = 200
	// wholeEvery is how long the rest of a large tree is taken for as it was.
	wholeEvery = time.Minute
)

// treeReader reads a tree again and again: of a large one what has changed.
type treeReader struct {
	store *redisstore.Store
	id    job.ID

	tree  []*job.Info
	at    map[job.ID]int   // in tree; nil: all is to be read
	place redisstore.Place // in its changes
	whole time.Time        // when all was read last
}

// reading is a tree as it is now, until the next one: its jobs are the reader's.
type reading struct {
	tree    []*job.Info
	changed []*job.Info // those of them that are others than before
	alike   bool        // and nothing else, and their ports lead where they did: else all may have changed
}

func (r *treeReader) read(ctx context.Context) (reading, error) {
	if r.at != nil && time.Since(r.whole) < wholeEvery {
		if out, ok, err := r.catchUp(ctx); ok || err != nil {
			return out, err
		}
	}
	large := len(r.tree) > smallTree
	r.at = nil
	if large {
		changes, err := r.store.ChangesOf(ctx, r.id, redisstore.Place{}, 0) // first: what changes meanwhile is read again
		if err != nil {
			return reading{}, err
		}
		r.place = changes.Next
	}
	began := time.Now()
	tree, err := r.store.Tree(ctx, r.id)
	if err != nil {
		return reading{}, err
	}
	r.tree = tree
	foreign := func(i *job.Info) bool { return i.ID.Tree() != tree[0].ID.Tree() } // of whose changes nothing is told
	if large && r.id.Tree() == tree[0].ID.Tree() && !slices.ContainsFunc(tree, foreign) {
		r.whole = began
		r.index()
	}
	return reading{tree: tree}, nil
}

func (r *treeReader) index() {
	r.at = make(map[job.ID]int, len(r.tree))
	for n, i := range r.tree {
		r.at[i.ID] = n
	}
}

// catchUp reads what has changed, and tells whether that was enough.
func (r *treeReader) catchUp(ctx context.Context) (out reading, ok bool, err error) {
	most := len(r.tree) / 2 // reading more takes as long as reading all
	changes, err := r.store.ChangesOf(ctx, r.id, r.place, most+1)
	if err != nil || changes.Lost || len(changes.IDs) > most {
		return out, false, err
	}
	infos, err := r.store.Infos(ctx, changes.IDs)
	if err != nil {
		return out, false, err
	}
	if out, ok = r.take(changes.IDs, infos); ok {
		r.place = changes.Next
	}
	return out, ok, nil
}

// take puts jobs that were read in the place of what they were, and takes those out that no longer exist. It tells whether that
// is all: what is above a job may have changed otherwise.
func (r *treeReader) take(ids []job.ID, infos []*job.Info) (out reading, ok bool) {
	gone := make(map[job.ID]bool, len(ids))
	for _, id := range ids {
		if _, known := r.at[id]; known {
			gone[id] = true
		}
	}
	out.alike = true
	added := false
	slices.SortFunc(infos, byNumber) // parents before their children
	for _, i := range infos {
		delete(gone, i.ID)
		i.Woke = 0 // as in a whole tree
		n, known := r.at[i.ID]
		_, above := r.at[i.Parent]
		switch {
		case known && r.tree[n].Parent == i.Parent && r.tree[n].Name == i.Name:
			out.alike = out.alike && alike(r.tree[n], i)
			*r.tree[n] = *i
			out.changed = append(out.changed, r.tree[n])
		case known || !above:
			return out, false
		default:
			r.at[i.ID], r.tree, added = len(r.tree), append(r.tree, i), true
		}
	}
	if gone[r.tree[0].ID] {
		return out, false
	}
	if len(gone) > 0 {
		r.tree = slices.DeleteFunc(r.tree, func(i *job.Info) bool { return gone[i.ID] })
	}
	if added {
		slices.SortFunc(r.tree[1:], byNumber)
	}
	if added || len(gone) > 0 {
		out.alike = false
		r.index()
	}
	out.tree = r.tree
	return out, true
}

func byNumber(a, b *job.Info) int { return a.ID.Number() - b.ID.Number() }

// alike tells whether a job is drawn in the same place as before, with the same wires.
func alike(a, b *job.Info) bool {
	if a.Type != b.Type || a.InstanceOf != b.InstanceOf || a.Graph != b.Graph || len(a.Ports) != len(b.Ports) {
		return false
	}
	for n := range a.Ports {
		p, q := &a.Ports[n], &b.Ports[n]
		if p.Name != q.Name || p.Dir != q.Dir || p.Limit != q.Limit || draw.Idle(p) != draw.Idle(q) || len(p.Edges) != len(q.Edges) || !slices.EqualFunc(p.Edges, q.Edges, slices.Equal) {
			return false
		}
	}
	return true
}
