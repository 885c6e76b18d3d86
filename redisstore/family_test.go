package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// joining makes what is said of adoptions in progress due now, and returns how many there are.
func (e *env) joining(id job.ID) int {
	e.Helper()
	n := 0
	for _, key := range e.Redis.Keys(e.Context(), "weir:{"+e.Namespace+":*}:due").Val() {
		for _, member := range e.Redis.ZRange(e.Context(), key, 0, -1).Val() {
			if strings.HasPrefix(member, "!joining "+string(id)) {
				e.Check(e.Redis.ZAdd(e.Context(), key, redis.Z{Member: member}).Err())
				n++
			}
		}
	}
	return n
}

// A process that dies in an adoption, or in the end of one, leaves nothing behind that the
// sweeper does not put right, wherever it dies.
func TestAdoptionCutShort(t *testing.T) {
	t.Parallel()
	addr := strings.TrimSuffix(strings.TrimPrefix(redistest.SharedRedis(t), "redis://"), "/0")
	for _, c := range []struct {
		after   string // the step whose answer never comes
		disown  bool
		deleted bool // the child goes before the sweeper comes
		adopted bool // in the end
	}{
		{after: "offer"},
		{after: "accept", adopted: true},
		{after: "settle", adopted: true},
		{after: "offer", deleted: true},
		{after: "accept", deleted: true},
		{after: "doubt", disown: true, adopted: true},
		{after: "dismiss", disown: true},
		{after: "withdraw", disown: true},
	} {
		t.Run(c.after, func(t *testing.T) {
			t.Parallel()
			p := redistest.StartProxy(t, addr)
			e := open(t, p.URL())
			parent, child := e.single(), e.single()
			if c.disown {
				e.Check(e.store.Adopt(e.Context(), parent, child, "kid"))
			}
			p.DropReplies(1000, "\r\n"+c.after+"\r\n")
			var err error
			if c.disown {
				err = e.store.Disown(e.Context(), parent, child)
			} else {
				err = e.store.Adopt(e.Context(), parent, child, "kid")
			}
			e.fails(err, job.ErrUnreachable)
			p.DropReplies(0, "")
			if done := c.after == "settle" || c.after == "withdraw"; (e.joining(child) == 0) != done {
				t.Fatalf("%d adoptions in progress after %s", e.joining(child), c.after)
			}
			if c.deleted {
				e.Check(e.store.Apply(e.Context(), child, statemachine.Terminate))
				e.end(child, statemachine.Shutdown)
				e.joining(child)
				e.Check(e.store.Delete(e.Context(), child))
			}
			e.sweep()
			e.equal("adoptions in progress", e.joining(child), 0)
			e.related(parent, child, c.adopted, c.deleted)
			e.Check(e.Redis.Del(e.Context(), "weir:{"+e.Namespace+"}:adopting").Err()) // of the dead process
			if other := e.single(); !c.adopted && !c.deleted {
				e.Check(e.store.Adopt(e.Context(), other, child, "mine"))
			}
		})
	}
}

// A job that has a parent is not adopted; the error says whose child it is, and what to do, to rename it, too.
func TestAdoptingSomebodysChild(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		parent, other, child := e.single(), e.single(), e.single()
		e.Check(e.store.Adopt(ctx, parent, child, "kid"))
		for by, want := range map[job.ID]string{
			parent: fmt.Sprintf(`job %s is the child "kid" of job %s already; to rename it, disown it, and adopt it under the new name`, child, parent),
			other:  fmt.Sprintf(`job %s is the child "kid" of job %s; disown it there first`, child, parent),
		} {
			err := e.store.Adopt(ctx, by, child, "boy")
			if e.fails(err, job.ErrStatus); !strings.Contains(err.Error(), want) {
				e.Errorf("%v, want %q", err, want)
			}
		}
		e.Check(e.store.Disown(ctx, parent, child))
		e.Check(e.store.Adopt(ctx, parent, child, "boy"))
		e.equal("name", e.info(child).Name, "boy")
	})
}

// related checks that all that is said of parent and child agrees.
func (e *env) related(parent, child job.ID, adopted, deleted bool) {
	e.Helper()
	children, err := e.store.Children(e.Context(), parent)
	e.Check(err)
	e.equal("listed by the parent", children["kid"] == child, adopted)
	roots, err := e.store.Prefixed(e.Context(), string(child), 1)
	e.Check(err)
	e.equal("listed as a root", len(roots) == 1, !adopted && !deleted)
	if deleted {
		_, err := e.store.Info(e.Context(), child)
		e.fails(err, job.ErrNotFound)
		return
	}
	info := e.info(child)
	e.equal("has the parent", info.Parent == parent, adopted)
	e.equal("is in doubt", info.Joining, false)
}

// terminated ends jobs.
func (e *env) terminated(ids ...job.ID) {
	e.Helper()
	for _, id := range ids {
		e.Check(e.store.Apply(e.Context(), id, statemachine.Terminate))
		e.end(id, statemachine.Shutdown)
	}
}

// While somebody deletes a job nobody else does, and nothing below it comes back to life,
// of whatever tree it is.
func TestDeleteIsOneCallers(t *testing.T) {
	each(t, func(e *env) {
		parent, child := e.single(), e.single()
		e.Check(e.store.Adopt(e.Context(), parent, child, "kid"))
		e.terminated(parent, child)
		for _, id := range []job.ID{parent, child} {
			key := e.key(id)
			now := e.Redis.Time(e.Context()).Val().UnixMilli()
			e.Check(e.Redis.HSet(e.Context(), key, "deleting", strconv.FormatInt(now, 10)+" somebody").Err())
			e.fails(e.store.Delete(e.Context(), id), job.ErrStatus)
			e.fails(e.store.Delete(e.Context(), parent), job.ErrStatus)
			e.fails(e.store.Apply(e.Context(), id, statemachine.Force), job.ErrNotFound)
			e.equal("mark", e.Redis.HGet(e.Context(), key, "deleting").Val(), strconv.FormatInt(now, 10)+" somebody")
			e.Check(e.Redis.HSet(e.Context(), key, "deleting", strconv.FormatInt(now-61_000, 10)+" somebody").Err()) // he died
		}
		e.Check(e.store.Delete(e.Context(), parent))
		for _, id := range []job.ID{parent, child} {
			_, err := e.store.Info(e.Context(), id)
			e.fails(err, job.ErrNotFound)
		}
	})
}

// A delete that is refused leaves no marks.
func TestDeleteRefused(t *testing.T) {
	each(t, func(e *env) {
		parent, child, below := e.single(), e.single(), e.single()
		e.Check(e.store.Adopt(e.Context(), parent, child, "kid"))
		e.Check(e.store.Adopt(e.Context(), child, below, "kid"))
		e.terminated(parent, child)
		e.unchanged("refused delete", func() { e.fails(e.store.Delete(e.Context(), parent), job.ErrStatus) })
	})
}

// A parent cannot write to a port that is closed.
func TestWriteToClosedChildPort(t *testing.T) {
	each(t, func(e *env) {
		root := e.create(job.Node{Type: "T"}, job.Node{Name: "kid", Type: "K", Ports: ports(in("in"))})
		e.Check(e.store.ClosePort(e.Context(), root.Nth(1), port.Input, "in"))
		d := delta(e.begin(root), statemachine.Complete)
		d.Writes = []store.Write{{Job: root.Nth(1), Dir: port.Input, Port: "in", Items: raws("1")}}
		res := e.try(d)
		e.fails(res.Refused, job.ErrPort)
	})
}

// Of a child that was adopted from another tree the parent's commit does not know that the port is closed, or that the
// child is gone: the parent's log says what did not arrive.
func TestWriteToClosedAdoptedPort(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		parent, closed, gone := e.single(), e.single(), e.single()
		writes := []store.Write{{Job: closed, Dir: port.Input, Port: "in", Items: raws("1", "2")}, {Job: gone, Dir: port.Input, Port: "in", Items: raws("3")}}
		e.Check(e.store.Adopt(ctx, parent, closed, "closed"))
		e.Check(e.store.Adopt(ctx, parent, gone, "gone"))
		e.Check(e.store.ClosePort(ctx, closed, port.Input, "in"))
		e.Check(e.store.Apply(ctx, gone, statemachine.Terminate))
		e.end(gone, statemachine.Shutdown)
		snap := e.begin(parent)
		e.Check(e.store.Delete(ctx, gone))
		d := delta(snap, statemachine.Complete)
		d.Writes = writes
		e.commit(d)
		var notes []string
		e.Until("both are noted", func() bool {
			logs, err := e.store.Logs(ctx, parent, 10)
			e.Check(err)
			notes = nil
			for _, l := range logs {
				notes = append(notes, string(l.Entry))
			}
			return len(notes) == len(writes)
		})
		slices.Sort(notes)
		e.equal("notes", notes, []string{
			fmt.Sprintf(`"1 message to port \"in\" of job %s did not arrive: the job is gone"`, gone),
			fmt.Sprintf(`"2 messages to port \"in\" of job %s did not arrive: the port is closed"`, closed),
		})
		e.holds(closed, port.Input, "in")
	})
}

// Whoever deletes a tree may die before its alias is forgotten. Who starts a tree under the alias then neither gets
// one that loses the alias later, nor is refused for long; and who took the ID from the alias before can make none.
func TestAliasOfADeletedTree(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	ctx := e.Context()
	c := client.New(e.store)
	start := func() (*client.Handle, error) {
		return c.Start(ctx, planner{{Type: "T"}}, job.Alias("x"))
	}
	old, err := start()
	e.Check(err)
	e.terminated(old.ID())

	proxy := redistest.StartProxy(t, strings.TrimSuffix(strings.TrimPrefix(e.URL, "redis://"), "/0"))
	dying, err := redisstore.Open(ctx, redisstore.Config{URL: proxy.URL() + "?max_retries=-1", Namespace: e.Namespace})
	e.Check(err)
	proxy.DropReplies(1, "\r\ndelete\r\n")
	if err = dying.Delete(ctx, old.ID()); !errors.Is(err, job.ErrUnreachable) {
		e.Fatalf("delete whose reply is lost: %v", err)
	}
	e.Check(dying.Close())
	_, err = e.store.Info(ctx, old.ID())
	e.fails(err, job.ErrNotFound)

	first, err := start()
	if err != nil {
		e.fails(err, job.ErrStatus) // and has had the order carried out
	}
	e.sweep()
	fresh, err := start()
	e.Check(err)
	if first != nil {
		e.equal("tree of the next start", fresh.ID(), first.ID())
	}
	found, err := e.store.Resolve(ctx, "x")
	e.Check(err)
	e.equal("tree under the alias", found, fresh.ID())
	again, err := start()
	e.Check(err)
	e.equal("tree of the next start", again.ID(), fresh.ID())

	_, err = e.store.Create(ctx, old.ID(), &job.Plan{Nodes: []job.Node{{Type: "T"}}}, "")
	e.fails(err, job.ErrStatus)
}
