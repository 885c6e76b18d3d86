package conformance_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/weirworks/weir/client"
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
		for name, want := range map[string]*client.Handle{"a": a, "b/1.x": b} {
			got, err := p.Child(e.Ctx, name)
			e.Check(err)
			up, err := got.Parent(e.Ctx)
			e.Check(err)
			if !got.Equal(want) || !up.Equal(p) || e.Info(got).Name != name {
				e.Errorf("child %q is %s", name, got.ID())
			}
		}
		for _, name := range []string{"A", "", "b", "deep", "a/deep"} {
			got, err := p.Child(e.Ctx, name)
			e.refused(err, job.ErrNotFound)
			if got != nil {
				e.Errorf("child %q is %s", name, got.ID())
			}
		}
		if up, err := p.Parent(e.Ctx); up != nil || err != nil {
			e.Errorf("the parent of a root: %v, %v", up, err)
		}
	})
}

// agree watches a child and its parent until the returned function is called, and fails
// the test if ever one says that they belong together after the other said they do not.
// Nobody may adopt the child meanwhile.
func (e *env) agree(parent, child *client.Handle, name string) (stop func()) {
	e.Helper()
	lists := func() bool {
		all, err := parent.Children(e.Ctx)
		if err != nil {
			e.Error(err)
		}
		return all[name] != nil
	}
	points := func() bool {
		up, err := child.Parent(e.Ctx)
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
			var c *client.Handle
			if round < 3 {
				c = e.child(p, name, "Do", nothing(e.T))
			} else { // of another tree
				c = e.job("Do", nothing(e.T))
				e.Check(p.Adopt(e.Ctx, c, name))
			}
			stop := e.agree(p, c, name)
			if round%2 == 0 {
				e.Check(p.Disown(e.Ctx, name))
			} else {
				e.Check(p.DisownChild(e.Ctx, c))
			}
			stop()
			e.names(p)
			if i := e.Info(c); i.Parent != "" || i.Name != "" || i.Joining {
				e.Errorf("an orphan has the parent %q, as %q", i.Parent, i.Name)
			}
			found, err := e.Client.Find(e.Ctx, string(c.ID()))
			e.Check(err)
			e.refused(p.Disown(e.Ctx, name), job.ErrNotFound)
			e.refused(p.DisownChild(e.Ctx, found), job.ErrNotFound)
		}
		c := e.child(p, "c", "Do", nothing(e.T))
		e.refused(p.Disown(e.Ctx, "d"), job.ErrNotFound)
		e.refused(stranger.Disown(e.Ctx, "c"), job.ErrNotFound)
		e.refused(stranger.DisownChild(e.Ctx, c), job.ErrNotFound)
		e.refused(c.DisownChild(e.Ctx, p), job.ErrNotFound)
		e.names(p, "c")
		e.Check(p.Disown(e.Ctx, "c"))
		e.Check(stranger.Adopt(e.Ctx, c, "mine"))
		e.names(stranger, "mine")
		e.Check(p.RunParent(e.Ctx))
	})
}

func TestP3Adopt(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		p := e.job("Do", nothing(e.T))
		child := e.child(p, "c", "Do", nothing(e.T))
		orphan, other := e.job("Do", nothing(e.T)), e.job("Do", nothing(e.T))
		e.unchanged(func() {
			e.refused(p.Adopt(e.Ctx, p, "me"), job.ErrStatus)
			e.refused(other.Adopt(e.Ctx, child, "c"), job.ErrStatus)
			e.refused(p.Adopt(e.Ctx, child, "again"), job.ErrStatus)
			e.refused(p.Adopt(e.Ctx, orphan, ""), job.ErrName)
			e.refused(p.Adopt(e.Ctx, orphan, "a b"), job.ErrName)
			e.refused(p.Adopt(e.Ctx, orphan, "c"), job.ErrExists)
			e.refused(child.Adopt(e.Ctx, p, "up"), job.ErrStatus)
		})
		e.names(p, "c")
		e.names(child)
		if i := e.Info(orphan); i.Parent != "" || i.Name != "" {
			e.Errorf("after a refused adoption the orphan has the parent %q", i.Parent)
		}
		e.Check(child.Adopt(e.Ctx, orphan, "new"))
		e.names(child, "new")
		if i := e.Info(orphan); i.Parent != child.ID() || i.Name != "new" {
			e.Errorf("adopted: %+v", i)
		}
		below := e.child(orphan, "below", "Do", nothing(e.T))
		// Ancestors over the border of trees, near and far.
		e.refused(below.Adopt(e.Ctx, p, "top"), job.ErrStatus)
		e.refused(orphan.Adopt(e.Ctx, p, "top"), job.ErrStatus)
		e.refused(below.Adopt(e.Ctx, orphan, "up"), job.ErrStatus)
		tree, err := below.Tree(e.Ctx)
		e.Check(err)
		if len(tree) != 4 || tree[0].ID != p.ID() {
			e.Errorf("the tree has %d jobs", len(tree))
		}
		e.Check(run(child))
		e.is(child, statemachine.Completed)
		e.Check(run(orphan))
		e.is(child, statemachine.Queued) // a run of an adopted child wakes its new parent

		// Two that adopt each other at the same time do not make a circle.
		a, b := e.job("Do", nothing(e.T)), e.job("Do", nothing(e.T))
		var one, two error
		var wg sync.WaitGroup
		wg.Go(func() { one = a.Adopt(e.Ctx, b, "x") })
		wg.Go(func() { two = b.Adopt(e.Ctx, a, "x") })
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
		e.Check(run(p))
		e.is(p, statemachine.Failed)
		e.names(p)
		_, err := e.Client.Find(e.Ctx, string(spawned))
		e.refused(err, job.ErrNotFound)
		fail = false
		e.Check(p.Retry(e.Ctx))
		wait := e.background(func() error { return run(p) })
		e.Check(b.begun.Pass(e.Ctx))
		e.names(p) // not yet
		b.gate.Open()
		wait()
		e.names(p, "c")
		c, err := p.Child(e.Ctx, "c")
		e.Check(err)
		if i := e.is(c, statemachine.Queued); c.ID() != spawned || i.Ports[0].Waiting != 1 {
			e.Errorf("child %s has ports %+v", c.ID(), i.Ports)
		}
	})
}

// A child that is deleted while a run of its parent goes on is none that the run could have found: the run is repeated.
func TestP1ChildDeletedDuringARun(t *testing.T) {
	each(t, func(e *env) {
		run := e.runner(&Do{})
		for name, use := range map[string]func(c *worker.Child) error{
			"write": func(c *worker.Child) error { return c.Write("in", 1) },
			"read":  func(c *worker.Child) error { _, err := c.Read("out", new(int)); return err },
		} {
			var b busy
			var gone bool
			p := e.job("Do", does(e.T, func(ctx context.Context, run *worker.Run, w *Do) error {
				c, err := run.Child("c")
				if errors.Is(err, job.ErrNotFound) {
					gone = true
					return nil
				}
				if err == nil {
					err = use(c)
				}
				return errors.Join(err, b.code(nil)(ctx, run, w))
			}))
			c := e.child(p, "c", "Do", nothing(e.T))
			e.Check(run(c))
			e.Check(c.WriteOut(e.Ctx, "out", 5))
			e.Check(c.Terminate(e.Ctx))
			e.Check(run(c))
			wait := e.background(func() error { return run(p) })
			e.Check(b.begun.Pass(e.Ctx))
			e.Check(c.Delete(e.Ctx))
			b.gate.Open()
			wait()
			e.is(p, statemachine.Queued)
			e.Check(run(p))
			if i := e.is(p, statemachine.Completed); !gone || i.Tries != 0 {
				e.Errorf("%s: the run behind it found the child: %v, tries %d", name, !gone, i.Tries)
			}
		}
	})
}
