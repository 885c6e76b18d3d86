package redisstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// deepest is how many levels a tree of the tests has.
const deepest = 10_000

// A tree of 10,000 levels can be made, looked at, ended and deleted: nothing recurses on a
// stack, neither here nor in Redis.
func TestDeepTree(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.Start(t).URL())
	nodes := []job.Node{{Type: "T"}}
	for i := 1; i < deepest; i++ {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("n", i), Type: "T", Parent: i - 1})
	}
	id := e.create(nodes...)
	tree, err := e.store.Tree(e.Context(), id.Nth(deepest/2))
	e.Check(err)
	e.equal("jobs", len(tree), deepest)
	e.equal("the deepest", e.info(id.Nth(deepest-1)).Parent, id.Nth(deepest-2))
	e.Check(e.store.Terminate(e.Context(), id))
	e.Until("all have been told to end", func() bool {
		e.sweep()
		return e.info(id.Nth(deepest-1)).Status == statemachine.Terminating
	})
	for i := range deepest {
		e.end(id.Nth(i), statemachine.Shutdown)
	}
	e.gone(id)
}

// gone deletes a tree whose jobs have ended, and wants nothing to be left of it.
func (e *env) gone(id job.ID) {
	e.Helper()
	ended, err := e.store.Ended(e.Context(), id)
	e.Check(err)
	e.equal("all have ended", ended, true)
	e.Check(e.store.Delete(e.Context(), id))
	if _, err := e.store.Info(e.Context(), id); !errors.Is(err, job.ErrNotFound) {
		e.Errorf("the root is still there: %v", err)
	}
	e.Until("all keys are gone", func() bool {
		e.sweep()
		n, err := e.Redis.Exists(e.Context(), e.key(id.Nth(deepest-1)), e.key(id.Nth(deepest/2)), e.key(id.Nth(1))).Result()
		e.Check(err)
		return n == 0
	})
}

// Graphs within graphs, as deep as they may be, complete and fail with the innermost job;
// deeper ones are refused.
func TestDeepGraphs(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.Start(t).URL())
	within := func(graphs int) []job.Node {
		nodes := []job.Node{{Type: "G", Graph: true}}
		for i := 1; i <= graphs; i++ {
			nodes = append(nodes, job.Node{Name: fmt.Sprint("n", i), Type: "G", Graph: i < graphs, Parent: i - 1})
		}
		return nodes
	}
	e.fails((&job.Plan{Nodes: within(job.MaxDepth + 1)}).Validate(), job.ErrTooLarge)
	for outcome, want := range map[statemachine.Event]statemachine.Status{
		statemachine.Complete: statemachine.Completed, statemachine.Fail: statemachine.Failed,
	} {
		id := e.create(within(job.MaxDepth)...)
		last := id.Nth(job.MaxDepth)
		e.Until("the innermost job is ready", func() bool {
			e.sweep()
			return e.info(last).Status == statemachine.Queued
		})
		d := delta(e.begin(last), outcome)
		d.Reason = "because"
		e.commit(d)
		e.is(want, last, id.Nth(job.MaxDepth/2), id)
	}
}
