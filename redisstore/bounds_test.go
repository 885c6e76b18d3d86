package redisstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// weighing is put into the function of the server: it counts the values that each call of a script gives to commands and
// gets from them, each half a KiB of one as a value, and keeps the largest number by script.
const weighing = `
local function weighed(script)
  local n, noted = 0, 0
  local function size(v)
    if type(v) ~= 'table' then return type(v) == 'string' and 1 + math.floor(#v / 512) or 1 end
    local sum = 0
    for _, one in ipairs(v) do sum = sum + size(one) end
    return sum
  end
  return function(...)
    local reply = redis.call(...)
    n = n + size({ ... }) + size(reply)
    if n - noted >= 1000 then
      redis.call('ZADD', 'weighed', 'GT', n, script)
      noted = n
    end
    return reply
  end
end
`

// most is the number of values that no script may come to in one call: at about a microsecond each, as even the
// slower machines need, Redis does something else after 20 ms at the latest.
const most = 20_000

// weighed returns a store whose scripts are counted, on a server of its own.
func weighed(t *testing.T) *env {
	t.Helper()
	e := open(t, redistest.Start(t, "--slowlog-log-slower-than", "20000").URL())
	e.edit(map[string]string{
		"local function start(":          weighing + "local function start(",
		"= keys, args, redis.call, skip": "= keys, args, weighed(args[1]), skip",
	})
	return e
}

// edit changes pieces of the function of the server.
func (e *env) edit(pieces map[string]string) {
	e.Helper()
	e.single() // the server has the function now
	libraries, err := e.Redis.FunctionList(e.Context(), redis.FunctionListQuery{WithCode: true}).Result()
	e.Check(err)
	code := libraries[0].Code
	for old, changed := range pieces {
		e.equal("places of "+old, strings.Count(code, old), 1)
		code = strings.Replace(code, old, changed, 1)
	}
	e.Check(e.Redis.FunctionLoadReplace(e.Context(), code).Err())
}

// bounded wants no script to have done too much in one call, and tells which took longest.
func (e *env) bounded() {
	e.Helper()
	all, err := e.Redis.ZRangeWithScores(e.Context(), "weighed", 0, -1).Result()
	e.Check(err)
	for _, s := range all {
		if s.Score > most {
			e.Errorf("a call of %v came to %v values, more than %d", s.Member, s.Score, most)
		}
	}
	slow, err := e.Redis.SlowLogGet(e.Context(), 100).Result()
	e.Check(err)
	e.Logf("the largest calls: %v", all)
	longest := redis.SlowLog{}
	for _, s := range slow {
		if len(s.Args) > 4 && s.Duration > longest.Duration {
			longest = s
		}
	}
	if longest.Duration > 0 { // by chance on a busy machine: make bench BENCH="-only scripts" tells on a quiet one
		e.Logf("the longest call took %s: %s", longest.Duration, longest.Args[4])
	}
}

// texts of n messages, numbered from a number on.
func numbered(from, n int) []string { return texts(numbers(from, from+n-1)) }

// waits wants a port to get these messages and no others, in this order.
func (e *env) gets(id job.ID, dir port.Dir, name string, want []string) {
	e.Helper()
	e.Until(fmt.Sprintf("job %d has %d messages", id.Number(), len(want)), func() bool {
		return e.port(id, dir, name).Waiting >= int64(len(want))
	})
	if got := e.peek(id, dir, name); !slices.Equal(data(got), want) {
		e.Fatalf("job %d has %d messages, or others than the %d that it was to get", id.Number(), len(got), len(want))
	}
}

// data are messages without their contexts.
func data(items []string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		raw, _ := port.Split(json.RawMessage(item))
		out[i] = string(raw)
	}
	return out
}

func heard(name string, channels ...string) job.Port {
	p := in(name)
	p.Channels = channels
	return p
}

// Messages that are published to many, from outside and by a run, come to each of them once and in order, in
// bounded pieces; those that are published meanwhile come behind.
func TestPublishInPieces(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	var subscriptions []job.ID
	for i := range 300 {
		channels := [][]string{{"/news"}, {"/news/sport"}, {"/news", "/news/sport"}}[i%3]
		subscriptions = append(subscriptions, e.create(job.Node{Type: "T", Ports: ports(heard("in", channels...))}))
	}
	speaker := out("out")
	speaker.Channels = []string{"/news/sport"}
	id := e.create(job.Node{Type: "S", Ports: ports(speaker)})
	e.Until("all have subscribed", func() bool {
		return e.Redis.SCard(t.Context(), "weir:{"+e.Namespace+"}:ch:/news").Val() == 200 && e.Redis.SCard(t.Context(), "weir:{"+e.Namespace+"}:ch:/news/sport").Val() == 200
	})
	e.Check(e.store.Publish(t.Context(), "/news/sport", numbers(1, 1200)))
	d := delta(e.begin(id), statemachine.Suspend)
	d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(1201, 2400)}}
	e.commit(d)
	e.Check(e.store.Publish(t.Context(), "/news/sport", numbers(2401, 2401)))
	want := numbered(1, 2401)
	for _, subscription := range subscriptions {
		e.gets(subscription, port.Input, "in", want)
	}
	e.Until("nothing is left in the hub", func() bool {
		return e.Redis.Exists(t.Context(), "weir:{"+e.Namespace+"}:spread", "weir:{"+e.Namespace+"}:spreads", "weir:{"+e.Namespace+"}:spread:rest",
			"weir:{"+e.Namespace+"}:spread:1", "weir:{"+e.Namespace+"}:chores", "weir:{"+e.Namespace+"}:outbox").Val() == 0
	})
	e.bounded()
}

// What is to be spread goes on, with the same subscribers, where a process has died that was at it.
func TestPublishOfTheDead(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	var subscriptions []job.ID
	for range 150 {
		subscriptions = append(subscriptions, e.create(job.Node{Type: "T", Ports: ports(heard("in", "/news"))}))
	}
	hub := "weir:{" + e.Namespace + "}:"
	e.Until("all have subscribed", func() bool { return e.Redis.SCard(t.Context(), hub+"ch:/news").Val() == 150 })
	e.hinder("chore_run", 1, func() { e.Check(e.store.Publish(t.Context(), "/news", numbers(1, 700))) })
	e.equal("pieces that wait", e.Redis.LLen(t.Context(), hub+"spread").Val(), int64(2))
	late := e.create(job.Node{Type: "T", Ports: ports(heard("in", "/news"))})
	e.Until("one more has subscribed", func() bool { return e.Redis.SCard(t.Context(), hub+"ch:/news").Val() == 151 })
	e.Check(e.store.Publish(t.Context(), "/news", numbers(701, 701)))
	e.Check(e.Redis.ZAdd(t.Context(), hub+"due", redis.Z{Score: 1, Member: "!chores"}).Err())
	e.sweep()
	for _, subscription := range subscriptions {
		e.gets(subscription, port.Input, "in", numbered(1, 701))
	}
	e.gets(late, port.Input, "in", numbered(701, 1))
}

// An order whose messages go on to many jobs is carried out in pieces.
func TestOrdersInPieces(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	nodes := []job.Node{{Type: "G", Graph: true, Ports: ports(heard("in", "/news"))}}
	for i := range 200 {
		nodes = append(nodes, job.Node{Type: "T", Name: fmt.Sprint("t", i), Ports: ports(in("in"))})
		nodes[0].Ports[0].Edges = append(nodes[0].Ports[0].Edges, to(i+1))
	}
	id := e.create(nodes...)
	e.Until("it has subscribed", func() bool { return e.Redis.SCard(t.Context(), "weir:{"+e.Namespace+"}:ch:/news").Val() == 1 })
	e.Check(e.store.Publish(t.Context(), "/news", numbers(1, 300)))
	e.Check(e.store.Publish(t.Context(), "/news", numbers(301, 302)))
	for n := range 200 {
		e.gets(id.Nth(n+1), port.Input, "in", numbered(1, 302))
	}
	e.bounded()
}

// Connect moves a large port in pieces, also along wires, and the sweeper goes on when its process dies. What is written
// meanwhile stays.
func TestConnectInPieces(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	const n = 20_000
	id := e.create(job.Node{Type: "T", Ports: ports(in("in"), in("other"), out("out"))})
	fill := func() {
		for part := range slices.Chunk(numbers(1, n), 5000) {
			e.Check(e.store.Write(t.Context(), id, store.Write{Dir: port.Output, Port: "out", Items: part}))
		}
	}
	to := []job.PortRef{{Job: id, Dir: port.Input, Port: "in"}, {Job: id, Dir: port.Input, Port: "other"}}
	fill()
	moved, err := e.store.Connect(t.Context(), id, port.Output, "out", to)
	e.Check(err)
	e.equal("moved", texts(moved), numbered(1, n))
	e.gets(id, port.Input, "in", numbered(1, n))
	e.gets(id, port.Input, "other", numbered(1, n))
	e.holds(id, port.Output, "out")

	fill()
	ctx, die := context.WithCancel(t.Context())
	go func() {
		defer die()
		for ctx.Err() == nil && e.port(id, port.Output, "out").Waiting == n {
			time.Sleep(time.Millisecond)
		}
	}()
	_, err = e.store.Connect(ctx, id, port.Output, "out", to)
	member := fmt.Sprintf("!connect %s o out %d %s i in %s i other", id, 2*n, id, id)
	if err == nil {
		t.Log("it was faster than its murderer")
	} else {
		e.Check(e.store.Write(t.Context(), id, store.Write{Dir: port.Output, Port: "out", Items: raws("7")}))
		e.equal("due", e.Redis.ZAddXX(t.Context(), e.due(id), redis.Z{Score: 1, Member: member}).Err(), nil)
		e.sweep()
		e.holds(id, port.Output, "out", "7")
	}
	e.gets(id, port.Input, "in", append(numbered(1, n), numbered(1, n)...))
	if !errors.Is(e.Redis.ZScore(t.Context(), e.due(id), member).Err(), redis.Nil) {
		t.Error("due still holds the move")
	}
	e.bounded()
}

// Messages that lie in a port which a patch wires move on in pieces, in order: what is written meanwhile comes
// behind them, and the end of stream last.
func TestPatchInPieces(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	const n = 9000
	nodes := func(wired bool) []job.Node {
		all := []job.Node{{Type: "G", Graph: true}, {Name: "a", Type: "A", Ports: ports(out("out"))}, {Name: "b", Type: "B", Ports: ports(in("in"))}}
		if wired {
			all[1].Ports[0].Edges = []job.Edge{to(2)}
			all[2].Ports[0].Sources = 1
		}
		return all
	}
	plan := &job.Plan{Nodes: nodes(false)}
	g := newID(e)
	_, err := e.store.Create(t.Context(), g, plan, "test")
	e.Check(err)
	a, b := g.Nth(1), g.Nth(2)
	for part := range slices.Chunk(numbers(1, n), 3000) {
		e.Check(e.store.Write(t.Context(), a, store.Write{Dir: port.Output, Port: "out", Items: part}))
	}
	e.end(b, statemachine.Suspend)
	h, err := client.New(e.store).Find(t.Context(), string(g))
	e.Check(err)
	e.hinder("chore_run", 1, func() { e.Check(h.Patch(t.Context(), planned(nodes(true)))) })
	rest := e.port(a, port.Output, "out").Waiting
	if first := e.port(b, port.Input, "in").Waiting; first == 0 || rest == 0 || first+rest != n {
		t.Fatalf("%d messages were moved with the patch, %d are left", first, rest)
	}
	e.Check(e.store.Write(t.Context(), a, store.Write{Dir: port.Output, Port: "out", Items: numbers(n+1, n+1)}))
	d := delta(e.begin(a), statemachine.Complete)
	d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(n+2, n+2)}}
	d.Closes = []string{"out"}
	e.commit(d)
	if p := e.port(b, port.Input, "in"); p.Closed || p.Sources != 1 {
		t.Fatalf("while messages are moved the port behind them is %+v", p)
	}
	e.hinder("chore_run", 1, func() { e.Check(h.Patch(t.Context(), planned(nodes(true)))) }) // another one meanwhile
	e.Check(e.Redis.ZAdd(t.Context(), e.due(g), redis.Z{Score: 1, Member: "!chores"}).Err())
	e.sweep()
	e.gets(b, port.Input, "in", numbered(1, n+2))
	if p := e.port(b, port.Input, "in"); !p.Closed || p.Sources != 0 {
		t.Errorf("behind the last message the port is %+v", p)
	}
	if p := e.port(a, port.Output, "out"); !p.Closed || p.Waiting != 0 || p.Total != n+2 {
		t.Errorf("the port that was wired is %+v", p)
	}
	e.equal("ports that are moved on", e.Redis.Exists(t.Context(), strings.TrimSuffix(e.due(g), "due")+"moving:"+string(g)).Val(), int64(0))
}

// A long answer comes in pages, with all that was asked for; if messages are taken meanwhile it is still one piece.
func TestAnswersInPages(t *testing.T) {
	t.Parallel()
	e := weighed(t)
	id := e.single()
	for i := range 12 {
		e.Check(e.store.Write(t.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: slices.Repeat(raws(fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", 1<<16))), 8)}))
	}
	before := calls(e, "port_page")
	items, head, err := e.store.Peek(t.Context(), id, port.Input, "in", 1000)
	e.Check(err)
	e.equal("messages and head", []int64{int64(len(items)), head}, []int64{96, 0})
	for i, item := range items {
		if !strings.HasPrefix(string(item), fmt.Sprintf(`"%dx`, i/8)) {
			t.Fatalf("message %d is %.20s", i, item)
		}
	}
	if n := calls(e, "port_page") - before; n < 6 {
		t.Errorf("6 MiB came in %d scripts", n)
	}
	many := e.single()
	for part := range slices.Chunk(numbers(1, 30_000), 5000) {
		e.Check(e.store.Write(t.Context(), many, store.Write{Dir: port.Input, Port: "in", Items: part}))
	}
	e.gets(many, port.Input, "in", numbered(1, 30_000))
	items, _, err = e.store.Peek(t.Context(), many, port.Input, "in", 12_345)
	e.Check(err)
	e.equal("as many as asked for", texts(items), numbered(1, 12_345))
	e.bounded()
}

// calls is how many calls of a script Redis has noted since it notes all.
func calls(e *env, script string) (n int) {
	e.Helper()
	e.Check(e.Redis.ConfigSet(e.Context(), "slowlog-log-slower-than", "0").Err())
	e.Check(e.Redis.ConfigSet(e.Context(), "slowlog-max-len", "100000").Err())
	all, err := e.Redis.SlowLogGet(e.Context(), -1).Result()
	e.Check(err)
	for _, s := range all {
		if len(s.Args) > 4 && s.Args[4] == script {
			n++
		}
	}
	return n
}

// What is left of a dead process's long work keeps no sweeper from the runs of dead processes.
func TestBackgroundTasksDoNotDelayRecovery(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	parent, lost := newID(t), newID(t)
	for lost.Shard(shards) == parent.Shard(shards) {
		lost = newID(t)
	}
	_, err := e.store.Create(t.Context(), parent, crowd(100), "")
	e.Check(err)
	e.hinder("chore_run", 1, func() { e.Check(e.store.Terminate(t.Context(), parent)) })
	e.createAs(lost, job.Node{Type: "T"})
	e.Check(e.store.Refresh(t.Context(), lost, e.begin(lost).Token, time.Millisecond, nil))
	e.edit(map[string]string{"local left = call('LLEN', P .. 'chores')": "local left = 1"}) // there is no end of them
	e.Check(e.Redis.ZAdd(t.Context(), e.due(parent), redis.Z{Score: 1, Member: "!chores"}).Err())
	other, err := redisstore.Open(t.Context(), redisstore.Config{URL: e.URL, Namespace: e.Namespace, Shards: shards})
	e.Check(err)
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		other.Watch(ctx, 10*time.Millisecond, func(err error) { t.Log(err) })
	}()
	e.Until("the run of the dead is over", func() bool { return e.info(lost).Status == statemachine.Queued })
	e.Until("the chores go on", func() bool { return e.info(parent.Nth(100)).Status == statemachine.Terminating })
	stop()
	<-over
	e.Check(other.Close())
}

// What a commit, or a call from outside, writes is counted where it comes to: too much is refused with the limit, and changes
// nothing.
func TestFanOutCounts(t *testing.T) {
	each(t, func(e *env) {
		const wide, fits, more = 100, 550, 570
		nodes := []job.Node{
			{Type: "G", Graph: true, Ports: ports(in("in"))},
			{Type: "S", Name: "source", Ports: ports(out("out", job.Edge{{Node: 2, Dir: port.Input, Port: "in"}}))},
			{Type: "G", Name: "inner", Graph: true, Ports: ports(fed("in", 1))},
		}
		nodes[0].Ports[0].Edges = []job.Edge{{{Node: 2, Dir: port.Input, Port: "in"}}}
		for i := range wide {
			node := job.Node{Type: "T", Name: fmt.Sprint("t", i), Parent: 2, Ports: ports(fed("in", 1))}
			nodes = append(nodes, node)
			nodes[2].Ports[0].Edges = append(nodes[2].Ports[0].Edges, to(i+3))
		}
		nodes[2].Ports[0].Sources = 2
		id := e.create(nodes...)
		snap := e.begin(id.Nth(1))
		d := delta(snap, statemachine.Suspend)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(1, more)}}
		e.unchanged("a commit that comes to too much", func() {
			res := e.try(d)
			e.fails(res.Refused, job.ErrTooLarge)
			if !matches(`16374 values .* at most 16000 .* call Checkpoint in between`, res.Refused.Error()) {
				e.Errorf("the error says %v", res.Refused)
			}
		})
		e.unchanged("a write that comes to too much", func() {
			e.fails(e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: numbers(1, more)}), job.ErrTooLarge)
		})
		e.unchanged("a message that is too large for so many", func() {
			large := raws(`"` + strings.Repeat("x", 100_000) + `"`)
			e.fails(e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: large}), job.ErrTooLarge)
		})
		e.unchanged("a publication of too much", func() {
			e.fails(e.store.Publish(e.Context(), "/news", numbers(0, job.MaxWrites)), job.ErrTooLarge)
		})
		d.Writes[0].Items = d.Writes[0].Items[:fits]
		e.commit(d)
		e.Check(e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: numbers(fits+1, 2*fits)}))
		for n := range wide {
			e.holds(id.Nth(n+3), port.Input, "in", numbered(1, 2*fits)...)
		}
	})
}

// Each port that messages of a commit come to counts for several values: their jobs are woken.
func TestPortsCount(t *testing.T) {
	each(t, func(e *env) {
		const fit = job.MaxWrites / (job.PortWrites + 1)
		id := e.create(job.Node{Type: "T", Ports: ports(out(port.Any))})
		d := delta(e.begin(id), statemachine.Suspend)
		for i := range fit + 2 {
			d.Writes = append(d.Writes, store.Write{Dir: port.Output, Port: fmt.Sprint("p", i), Items: numbers(i, i)})
		}
		e.unchanged("a commit to too many ports", func() { e.fails(e.try(d).Refused, job.ErrTooLarge) })
		d.Writes = d.Writes[:fit]
		e.commit(d)
		e.holds(id, port.Output, fmt.Sprint("p", fit-1), fmt.Sprint(fit-1))
	})
}

// The widest port that a plan may have is written to, given a default and closed.
func TestWidestPort(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	nodes := []job.Node{{Type: "S", Ports: ports(out("out"))}}
	for i := range job.MaxFanOut {
		nodes = append(nodes, job.Node{Name: fmt.Sprint("t", i), Type: "T", Ports: ports(fed("in", 1))})
		nodes[0].Ports[0].Edges = append(nodes[0].Ports[0].Edges, to(i+1))
	}
	id := e.create(nodes...)
	d := delta(e.begin(id), statemachine.Suspend)
	d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(1, 10)}}
	e.commit(d)
	last := id.Nth(job.MaxFanOut)
	e.holds(last, port.Input, "in", numbered(1, 10)...)
	e.is(statemachine.Queued, last)
	e.Check(e.store.SetDefault(t.Context(), id, store.Default{Dir: port.Output, Port: "out", Value: json.RawMessage(`7`)}))
	e.Check(e.store.ClosePort(t.Context(), id, port.Output, "out"))
	e.Until("the end comes to all", func() bool { return e.port(last, port.Input, "in").Closed })
}

// Commits that go together and do much are several calls; each is answered.
func TestLargeCommitsTogether(t *testing.T) {
	each(t, func(e *env) {
		first := newID(e)
		var ids []job.ID
		for len(ids) < 4 {
			if id := newID(e); id.Shard(shards) == first.Shard(shards) {
				e.createAs(id, job.Node{Type: "T", Ports: ports(out("out"))})
				ids = append(ids, id)
			}
		}
		var txs []store.Tx
		for _, id := range ids {
			d := delta(e.begin(id), statemachine.Suspend)
			d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(1, 3000)}}
			txs = append(txs, store.Tx{Deltas: []store.Delta{d}})
		}
		for range 2 { // a repeat changes nothing
			all, err := e.store.Commit(e.Context(), txs)
			e.Check(err)
			for n, res := range all {
				e.Check(res.Refused)
				e.equal("applied", res.Applied, 1)
				e.holds(ids[n], port.Output, "out", numbered(1, 3000)...)
			}
		}
	})
}

// One call after a burst of calls does not forget all of their tokens at once, and a few calls do.
func TestTokensAreForgottenInPieces(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	id, old := e.single(), make([]redis.Z, 1000)
	for i := range old {
		old[i] = redis.Z{Score: 1, Member: fmt.Sprint("old ", i)}
	}
	seen := strings.TrimSuffix(e.due(id), "due") + "seen"
	e.Check(e.Redis.ZAdd(t.Context(), seen, old...).Err())
	left := func() int64 { return e.Redis.ZCount(t.Context(), seen, "1", "1").Val() }
	for n := range int64(10) {
		e.write(id, "in", "1")
		e.equal("tokens left", left(), 900-100*n)
	}
	e.write(id, "in", "1")
	e.equal("tokens of the job's creation and these calls", e.Redis.ZCard(t.Context(), seen).Val(), int64(12))
}
