package redisstore_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// crowd plans a root with that many children, all with something to do.
func crowd(children int) *job.Plan {
	p := &job.Plan{Nodes: []job.Node{{Type: "T"}}}
	for i := range children {
		p.Nodes = append(p.Nodes, job.Node{Name: fmt.Sprint("c", i), Type: "T"})
	}
	return p
}

// A process that dies while it creates a large tree leaves nothing that anybody sees.
// Another one may finish the work, or the sweeper removes it.
func TestHalfCreatedTree(t *testing.T) {
	each(t, func(e *env) {
		children := 2500 // so many that the process is still at it when it dies
		if strings.Contains(e.Name(), "miniredis") {
			children = 700 // whose scripts are slow
		}
		var half func(tries int) job.ID
		half = func(tries int) job.ID {
			id := newID(e)
			ctx, die := context.WithCancel(e.Context())
			go func() {
				for ctx.Err() == nil && e.Redis.Exists(ctx, e.key(id)+":held").Val() == 0 {
					time.Sleep(time.Millisecond)
				}
				die()
			}()
			created, err := e.store.Create(ctx, id, crowd(children), "")
			if err == nil && tries > 1 { // it was faster than its murderer
				return half(tries - 1)
			}
			if err == nil {
				e.Fatalf("created %v: the process did not die in time", created)
			}
			_, err = e.store.Info(e.Context(), id)
			e.fails(err, job.ErrNotFound)
			_, err = e.store.Tree(e.Context(), id)
			e.fails(err, job.ErrNotFound)
			return id
		}
		finished := half(10)
		created, err := e.store.Create(e.Context(), finished, crowd(children), "")
		e.Check(err)
		e.equal("created", created, true)
		tree, err := e.store.Tree(e.Context(), finished)
		e.Check(err)
		count := map[statemachine.Status]int{}
		for _, i := range tree {
			count[i.Status]++
		}
		if want := map[statemachine.Status]int{statemachine.Queued: children + 1}; !maps.Equal(count, want) {
			e.Errorf("statuses %v, want %v", count, want)
		}
		n, err := e.Redis.ZCard(e.Context(), e.due(finished)).Result()
		e.Check(err)
		if int(n) < children+1 {
			e.Errorf("%d jobs are due, want %d", n, children+1)
		}

		abandoned := half(10)
		e.Check(e.Redis.ZAdd(e.Context(), e.due(abandoned), redis.Z{Score: 1, Member: "!unborn " + string(abandoned)}).Err())
		_, err = e.store.Sweep(e.Context())
		e.Check(err)
		_, err = e.store.Create(e.Context(), abandoned, crowd(children), "")
		e.fails(err, job.ErrStatus) // its leftovers may still be on their way out
		for key := range e.dump() {
			if strings.Contains(key, string(abandoned)) && !strings.HasSuffix(key, ":scrap") { // that expires
				e.Errorf("%s is left", key)
			}
		}
	})
}

// Of a family that is gone through in pieces, each child is listed, ended and deleted once.
func TestLargeFamily(t *testing.T) {
	each(t, func(e *env) {
		const children = 1200 // more than a script takes at a time
		id := newID(e)
		_, err := e.store.Create(e.Context(), id, crowd(children), "")
		e.Check(err)
		named, err := e.store.Children(e.Context(), id)
		e.Check(err)
		e.equal("children", len(named), children)
		e.Check(e.store.Terminate(e.Context(), id))
		tree, err := e.store.Tree(e.Context(), id)
		e.Check(err)
		e.equal("jobs", len(tree), children+1)
		for n, i := range tree {
			e.equal("place in the tree", i.ID.Number(), n)
			e.equal("status", i.Status, statemachine.Terminating)
			e.commit(delta(e.begin(i.ID), statemachine.Shutdown))
		}
		e.Check(e.store.Delete(e.Context(), id))
		for key := range e.dump() {
			if strings.Contains(key, string(id)) {
				e.Errorf("%s is left", key)
			}
		}
	})
}

// Where a server is in a large family means nothing to the next one, or after a new start: none is passed over.
func TestLargeFamilyAcrossFailover(t *testing.T) {
	t.Parallel()
	const children = 2500
	srv := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	e := open(t, srv.URL())
	e.hinders()
	id := newID(t)
	_, err := e.store.Create(t.Context(), id, crowd(children), "")
	e.Check(err)
	e.hinder("chore_run", 1, func() { e.Check(e.store.Terminate(t.Context(), id)) })
	// The first piece is done, the rest is to be.
	names, cursor, err := e.Redis.HScan(t.Context(), e.key(id)+":c", 0, "", 1000).Result()
	e.Check(err)
	for n := 1; n < len(names); n += 2 {
		e.Check(e.store.Terminate(t.Context(), job.ID(names[n])))
	}
	backgroundTasks := strings.TrimSuffix(e.due(id), "due") + "chores"
	left := e.Redis.LRange(t.Context(), backgroundTasks, 0, -1).Val()
	e.equal("chores", len(left), 1)
	e.Check(e.Redis.LSet(t.Context(), backgroundTasks, 0, strings.Replace(left[0], " terminate 0", fmt.Sprint(" terminate ", cursor), 1)).Err())

	srv.Kill()
	srv.Restart()
	e.Check(e.Redis.ZAdd(t.Context(), e.due(id), redis.Z{Score: 1, Member: "!chores"}).Err())
	e.Until("the chores are done", func() bool {
		e.sweep()
		return e.Redis.Exists(t.Context(), backgroundTasks).Val() == 0
	})
	tree, err := e.store.Tree(t.Context(), id)
	e.Check(err)
	alive := slices.DeleteFunc(tree, func(i *job.Info) bool { return i.Status == statemachine.Terminating })
	e.equal("jobs that go on", len(alive), 0)
}

// No script keeps Redis busy for long, however large the tree.
func TestLargeTreesLeaveOthersRoom(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--slowlog-log-slower-than", "50000")
	e := open(t, srv.URL())
	id := newID(t)
	_, err := e.store.Create(t.Context(), id, crowd(10_000), "")
	e.Check(err)
	e.Check(e.store.Terminate(t.Context(), id))
	tree, err := e.store.Tree(t.Context(), id)
	e.Check(err)
	e.equal("jobs", len(tree), 10_001)
	for _, part := range slices.Collect(slices.Chunk(tree, 100)) {
		for _, i := range part {
			snap := e.begin(i.ID)
			e.commit(delta(snap, statemachine.Shutdown))
		}
	}
	e.Check(e.store.Delete(t.Context(), id))
	for key := range e.dump() {
		if strings.Contains(key, string(id)) {
			t.Errorf("%s is left", key)
		}
	}
	slow, err := srv.Client(t).SlowLogGet(t.Context(), 10).Result()
	e.Check(err)
	for _, s := range slow {
		told := t.Logf // a loaded machine makes single calls slow by chance
		if os.Getenv("WEIR_FULL") != "" {
			told = t.Errorf
		}
		told("a command took %s: %.200s", s.Duration, strings.Join(s.Args, " "))
	}
}
