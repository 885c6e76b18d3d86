package conformance_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

func TestP1ChildrenByName(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Do{})
		p := e.job("Do", nothing(e.T))
		e.names(p)
		a, b := e.child(p, "a", "Do", nothing(e.T)), e.child(p, "b/1.x", "Do", nothing(e.T))
		e.child(a, "deep", "Do", nothing(e.T))
		e.names(p, "a", "b/1.x")
		for name, want := range map[string]*job.Handle{"a": a, "b/1.x": b} {
			got, err := p.Child(e.ctx, name)
			e.check(err)
			up, err := got.Parent(e.ctx)
			e.check(err)
			if !got.Equal(want) || !up.Equal(p) || e.info(got).Name != name {
				e.Errorf("child %q is %s", name, got.ID())
			}
		}
		for _, name := range []string{"A", "", "b", "deep", "a/deep"} {
			got, err := p.Child(e.ctx, name)
			e.refused(err, job.ErrNotFound)
			if got != nil {
				e.Errorf("child %q is %s", name, got.ID())
			}
		}
		if up, err := p.Parent(e.ctx); up != nil || err != nil {
			e.Errorf("the parent of a root: %v, %v", up, err)
		}
	})
}

// agree watches a child and its parent until the returned function is called, and fails
// the test if ever one says that they belong together after the other said they do not.
// Nobody may adopt the child meanwhile.
func (e *env) agree(parent, child *job.Handle, name string) (stop func()) {
	e.Helper()
	lists := func() bool {
		all, err := parent.Children(e.ctx)
		if err != nil {
			e.Error(err)
		}
		return all[name] != nil
	}
	points := func() bool {
		up, err := child.Parent(e.ctx)
		if err != nil {
			e.Error(err)
		}
		return up != nil
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	watch := func(what string, first, second func() bool) {
		wg.Go(func() {
			for {
				if gone := !first(); gone && second() {
					e.Errorf("%s", what)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	watch("the parent no longer listed a child that then still pointed at it", lists, points)
	watch("the child no longer pointed at a parent that then still listed it", points, lists)
	return func() { close(done); wg.Wait() }
}

func TestP2Disown(t *testing.T) {
	each(t, func(e *env) {
		e.register(&Do{})
		p, stranger := e.job("Do", nothing(e.T)), e.job("Do", nothing(e.T))
		for round := range 6 {
			name := "c" + strconv.Itoa(round)
			var c *job.Handle
			if round < 3 {
				c = e.child(p, name, "Do", nothing(e.T))
			} else { // of another tree
				c = e.job("Do", nothing(e.T))
				e.check(p.Adopt(e.ctx, c, name))
			}
			stop := e.agree(p, c, name)
			if round%2 == 0 {
				e.check(p.Disown(e.ctx, name))
			} else {
				e.check(p.DisownChild(e.ctx, c))
			}
			stop()
			e.names(p)
			if i := e.info(c); i.Parent != "" || i.Name != "" || i.Joining {
				e.Errorf("an orphan has the parent %q, as %q", i.Parent, i.Name)
			}
			found, err := e.client.Find(e.ctx, string(c.ID()))
			e.check(err)
			e.refused(p.Disown(e.ctx, name), job.ErrNotFound)
			e.refused(p.DisownChild(e.ctx, found), job.ErrNotFound)
		}
		c := e.child(p, "c", "Do", nothing(e.T))
		e.refused(p.Disown(e.ctx, "d"), job.ErrNotFound)
		e.refused(stranger.Disown(e.ctx, "c"), job.ErrNotFound)
		e.refused(stranger.DisownChild(e.ctx, c), job.ErrNotFound)
		e.refused(c.DisownChild(e.ctx, p), job.ErrNotFound)
		e.names(p, "c")
		e.check(p.Disown(e.ctx, "c"))
		e.check(stranger.Adopt(e.ctx, c, "mine"))
		e.names(stranger, "mine")
		e.check(p.RunParent(e.ctx))
	})
}

func TestP3Adopt(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		p := e.job("Do", nothing(e.T))
		child := e.child(p, "c", "Do", nothing(e.T))
		orphan, other := e.job("Do", nothing(e.T)), e.job("Do", nothing(e.T))
		e.unchanged(func() {
			e.refused(p.Adopt(e.ctx, p, "me"), job.ErrStatus)
			e.refused(other.Adopt(e.ctx, child, "c"), job.ErrStatus)
			e.refused(p.Adopt(e.ctx, child, "again"), job.ErrStatus)
			e.refused(p.Adopt(e.ctx, orphan, ""), job.ErrName)
			e.refused(p.Adopt(e.ctx, orphan, "a b"), job.ErrName)
			e.refused(p.Adopt(e.ctx, orphan, "c"), job.ErrExists)
			e.refused(child.Adopt(e.ctx, p, "up"), job.ErrStatus)
		})
		e.names(p, "c")
		e.names(child)
		if i := e.info(orphan); i.Parent != "" || i.Name != "" {
			e.Errorf("after a refused adoption the orphan has the parent %q", i.Parent)
		}
		e.check(child.Adopt(e.ctx, orphan, "new"))
		e.names(child, "new")
		if i := e.info(orphan); i.Parent != child.ID() || i.Name != "new" {
			e.Errorf("adopted: %+v", i)
		}
		below := e.child(orphan, "below", "Do", nothing(e.T))
		// Ancestors over the border of trees, near and far.
		e.refused(below.Adopt(e.ctx, p, "top"), job.ErrStatus)
		e.refused(orphan.Adopt(e.ctx, p, "top"), job.ErrStatus)
		e.refused(below.Adopt(e.ctx, orphan, "up"), job.ErrStatus)
		tree, err := below.Tree(e.ctx)
		e.check(err)
		if len(tree) != 4 || tree[0].ID != p.ID() {
			e.Errorf("the tree has %d jobs", len(tree))
		}
		e.check(run(child))
		e.is(child, statemachine.Completed)
		e.check(run(orphan))
		e.is(child, statemachine.Queued) // a run of an adopted child wakes its new parent

		// Two that adopt each other at the same time do not make a circle.
		a, b := e.job("Do", nothing(e.T)), e.job("Do", nothing(e.T))
		var one, two error
		var wg sync.WaitGroup
		wg.Go(func() { one = a.Adopt(e.ctx, b, "x") })
		wg.Go(func() { two = b.Adopt(e.ctx, a, "x") })
		wg.Wait()
		if (one == nil) == (two == nil) {
			e.Errorf("both or none: %v, %v", one, two)
		}
	})
}

func TestP4SpawnCommits(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		var b busy
		fail := true
		var spawned job.ID
		p := e.job("Do", does(e.T, func(ctx context.Context, run *worker.Run, w *Do) error {
			c, err := run.Spawn("c", job.Single(&Do{Key: nothing(e.T).Key}, ""))
			if err != nil {
				return err
			}
			spawned = c.ID()
			if err := c.Write("in", 1); err != nil {
				return err
			}
			if fail {
				return errBroken
			}
			return b.code(nil)(ctx, run, w)
		}))
		e.check(run(p))
		e.is(p, statemachine.Failed)
		e.names(p)
		_, err := e.client.Find(e.ctx, string(spawned))
		e.refused(err, job.ErrNotFound)
		fail = false
		e.check(p.Retry(e.ctx))
		wait := e.background(func() error { return run(p) })
		e.check(b.begun.pass(e.ctx))
		e.names(p) // not yet
		b.gate.open()
		wait()
		e.names(p, "c")
		c, err := p.Child(e.ctx, "c")
		e.check(err)
		if i := e.is(c, statemachine.Queued); c.ID() != spawned || i.Ports[0].Waiting != 1 {
			e.Errorf("child %s has ports %+v", c.ID(), i.Ports)
		}
	})
}
