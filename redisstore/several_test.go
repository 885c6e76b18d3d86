package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// sayings are what three runs write and log. The second writes nothing.
func sayings(name string) []store.Part {
	return []store.Part{
		{Writes: []store.Write{{Dir: port.Output, Port: name, Items: raws("1", "2")}}, Entry: `{"step":0}`, Log: []string{`"a"`, `"b"`}},
		{Entry: `{"step":1}`, Log: []string{`"c"`}},
		{Writes: []store.Write{{Dir: port.Output, Port: name, Items: raws("3")}}, Entry: `{"step":2}`},
	}
}

// Several runs in one delta leave what they leave one by one, wherever their messages go: messages,
// steps, runs of the minute, and a log of each of them.
func TestSeveralRuns(t *testing.T) {
	keyed := sayings("out")
	keyed[0].Writes[0].Keyed, keyed[0].Writes[0].Key = true, 3
	keyed[2].Writes[0].Keyed, keyed[2].Writes[0].Key = true, 4
	mixed := sayings("out")
	mixed[1].Writes = sayings("more")[0].Writes
	double := sayings("out")
	double[0].Writes = append(double[0].Writes, sayings("more")[2].Writes...)
	hushed := sayings("out")
	hushed[0].Writes[0].Unlogged = true
	silent := sayings("out")
	silent[0].Entry, silent[2].Entry = "", ""
	pure, many, sparse := sayings("out"), []store.Part{}, []store.Part{}
	for i := range pure {
		pure[i].Log = nil
	}
	for i := range 11 {
		p := store.Part{Entry: fmt.Sprintf(`{"step":%d}`, i)}
		if i%3 != 1 {
			p.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws(fmt.Sprint(i))}}
		}
		many = append(many, p)
		if i%4 == 2 {
			p.Entry = ""
		}
		sparse = append(sparse, p)
	}
	hidden := slices.Clone(pure)
	hidden[0].Writes = slices.Clone(hidden[0].Writes)
	hidden[0].Writes[0].Unlogged = true
	large := slices.Clone(pure)
	large[1].Entry = `{"step":1,"error":"` + strings.Repeat("e", 9000) + `"}`
	brief := slices.Clone(keyed)
	for i := range brief {
		brief[i].Log = nil
	}
	ways := map[string]job.Node{
		"kept":       {Ports: ports(in("in"), out("out"), out("more"))},
		"one edge":   {Ports: ports(in("in"), out("out", to(2)), out("more"))},
		"two edges":  {Ports: ports(in("in"), out("out", to(2), to(3)), out("more"))},
		"in turn":    {Ports: ports(in("in"), out("out", to(2, 3)), out("more"))},
		"both ports": {Ports: ports(in("in"), out("out", to(2)), out("more", to(2)))},
	}
	for name, parts := range map[string][]store.Part{
		"usual": sayings("out"), "keyed": keyed, "two ports": mixed, "two ports a run": double, "unlogged": hushed, "without a log": silent,
		"packed": pure, "eleven": many, "some without a log": sparse, "none with a log": {{Writes: pure[0].Writes}, {Writes: pure[2].Writes}},
		"packed and unlogged": hidden, "keyed and without notes": brief, "large": large,
		"nothing": {{Entry: `{"step":0}`}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				for way, n := range ways {
					minute := e.minute()
					one, all := e.several(n, parts, false), e.several(n, parts, true)
					if e.minute() != minute { // runs are counted by the minute
						one, all = e.several(n, parts, false), e.several(n, parts, true)
					}
					for i := range one {
						e.equal(way, all[i], one[i])
					}
				}
			})
		})
	}
}

// minute is the minute of the server's clock.
func (e *env) minute() int64 {
	now, err := e.Redis.Time(e.Context()).Result()
	e.Check(err)
	return now.Unix() / 60
}

// several lets a job run, all at once or one by one, and tells what came of it.
func (e *env) several(n job.Node, parts []store.Part, atOnce bool) (seen []string) {
	e.Helper()
	n.Name, n.Type = "s", "S"
	root := e.create(job.Node{Type: "g", Graph: true}, n,
		job.Node{Name: "c", Type: "C", Ports: ports(fed("in", 2))}, job.Node{Name: "d", Type: "D", Ports: ports(fed("in", 1))})
	id := root.Nth(1)
	e.write(id, "in", slices.Repeat([]string{"0"}, len(parts)+1)...)
	take := func(head int64, n int) []store.Take {
		return []store.Take{{Dir: port.Input, Port: "in", Head: head, N: n}}
	}
	if atOnce {
		d := delta(e.begin(id), statemachine.Requeue)
		last := parts[len(parts)-1]
		d.Before, d.Writes, d.Entry, d.Log = parts[:len(parts)-1], last.Writes, last.Entry, last.Log
		d.Takes = take(0, len(parts))
		e.commit(d)
		e.unchanged("the same runs again", func() { e.commit(d) })
	} else {
		for i, p := range parts {
			d := delta(e.begin(id), statemachine.Requeue)
			d.Writes, d.Entry, d.Log, d.Takes = p.Writes, p.Entry, p.Log, take(int64(i), 1)
			e.commit(d)
		}
	}
	name := strings.NewReplacer(string(root), "tree")
	say := func(v ...any) { seen = append(seen, name.Replace(fmt.Sprint(v...))) }
	i := e.info(id)
	_, rate, _ := strings.Cut(e.Redis.HGet(e.Context(), e.key(id), "rate").Val(), ":")
	say(i.Status, i.Steps, i.Tries, rate, e.peek(id, port.Input, "in"), e.port(id, port.Output, "out").Total, e.port(id, port.Output, "more").Total)
	for _, p := range n.Ports[1:] {
		if len(p.Edges) == 0 {
			say(p.Name, e.peek(id, port.Output, p.Name))
		}
	}
	for n := 2; n <= 3; n++ {
		say(e.info(root.Nth(n)).Status, e.peek(root.Nth(n), port.Input, "in"))
	}
	entries, err := e.store.Log(e.Context(), root, "", 100)
	e.Check(err)
	for _, entry := range entries {
		if entry.Run == nil {
			say(entry.Job, string(entry.Note))
		} else {
			say(entry.Job, entry.Run.Step, entry.Run.Sent)
		}
	}
	return seen
}

// Speculative runs count as many as they are for the limit of runs.
func TestSeveralSpeculations(t *testing.T) {
	each(t, func(e *env) {
		for limit, held := range map[int]int{2: 2, 1: 1} {
			s, c := e.line()
			tx := e.row(s, c)
			a, b := &tx.Deltas[0], &tx.Deltas[1]
			a.Before = []store.Part{{Writes: []store.Write{{Dir: port.Output, Port: "out", Items: raws("0")}}}}
			b.Before, b.Speculation.Seen, b.Speculation.Limit, b.Takes[0].N = make([]store.Part, 1), 2, limit, 2
			e.equal("held", e.commitRow(tx).Applied, held)
			e.equal("steps", []int64{e.info(s).Steps, e.info(c).Steps}, []int64{2, 2 * int64(held-1)})
			if held == 1 {
				e.holds(c, port.Input, "in", "0", "1")
				continue
			}
			rate := e.Redis.HGet(e.Context(), e.key(c), "rate").Val()
			if !strings.HasSuffix(rate, ":2") {
				e.Errorf("rate is %q after two runs", rate)
			}
		}
	})
}

func (e *env) commitRow(tx store.Tx) store.Result {
	e.Helper()
	res, err := e.store.Commit(e.Context(), []store.Tx{tx})
	e.Check(err)
	return res[0]
}

// A commit tells how much more fits where it wrote, but for what its own runs have read.
func TestRoom(t *testing.T) {
	each(t, func(e *env) {
		root := e.create(
			job.Node{Type: "S", Ports: ports(in("in"), out("out", to(1), to(2)), out("free"))},
			job.Node{Name: "c", Type: "C", Ports: ports(limited(fed("in", 1), 3))},
			job.Node{Name: "d", Type: "D", Ports: ports(limited(fed("in", 1), 5))})
		e.equal("room where nothing was written", e.writes(root, statemachine.Requeue).Room, -1)
		d := delta(e.begin(root), statemachine.Requeue)
		d.Writes = []store.Write{{Dir: port.Output, Port: "free", Items: raws("1")}}
		if room := e.commit(d).Room; room < 1000 {
			e.Errorf("there is room for %d messages in a port without a limit", room)
		}
		for _, room := range []int{2, 1, 0} {
			e.equal("room in the fullest port", e.writes(root, statemachine.Requeue, "1").Room, room)
		}
		e.takes(root.Nth(1), 1)
		e.equal("room, as more was written than fits", e.writes(root, statemachine.Requeue, "1", "2").Room, 0)

		g := e.create(
			job.Node{Type: "g", Graph: true},
			job.Node{Name: "s", Type: "S", Ports: ports(in("in"), out("out", to(2)))},
			job.Node{Name: "c", Type: "C", Ports: ports(limited(fed("in", 1), 2), out("out", to(3)))},
			job.Node{Name: "d", Type: "D", Ports: ports(limited(fed("in", 1), 4))})
		e.equal("room where all is read in the same row", e.commitRow(e.row(g.Nth(1), g.Nth(2))).Room, -1)
		tx := e.row(g.Nth(1), g.Nth(2))
		tx.Deltas[1].Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws("1")}}
		e.equal("room behind the row", e.commitRow(tx).Room, 3)

		shared := e.create(
			job.Node{Type: "S", Ports: ports(in("in"), out("out", to(1)))},
			job.Node{Name: "c", Type: "C", Ports: ports(limited(fed("in", 2), 6))})
		for _, room := range []int{3, 2, 2, 1, 1, 0} {
			e.equal("room that others fill, too", e.writes(shared, statemachine.Requeue, "1").Room, room)
		}
	})
}

// The log of runs that share an entry of the list can be read in pages of any size, from both ends.
func TestPagesOfPacks(t *testing.T) {
	each(t, func(e *env) {
		root := e.create(job.Node{Type: "S", Ports: ports(in("in"), out("out"))})
		for n := range 3 {
			e.write(root, "in", slices.Repeat([]string{"0"}, 6)...)
			d := delta(e.begin(root), statemachine.Requeue)
			for i := range 6 {
				d.Before = append(d.Before, store.Part{Entry: fmt.Sprintf(`{"step":%d}`, 10*n+i)})
			}
			d.Entry = fmt.Sprintf(`{"step":%d}`, 10*n+6)
			d.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: int64(5 * n), N: 5}}
			e.commit(d)
		}
		all, err := e.store.Log(e.Context(), root, "", 100)
		e.Check(err)
		var steps []int64
		for _, entry := range all {
			steps = append(steps, entry.Run.Step)
		}
		e.equal("steps", steps, []int64{0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 20, 21, 22, 23, 24, 25, 26})
		if n := e.Redis.LLen(e.Context(), e.logKey(root)).Val(); n != 6 {
			e.Errorf("they are %d entries of the list", n)
		}
		back := slices.Clone(all)
		slices.Reverse(back)
		for size := 1; size < 9; size++ {
			e.equal("forwards", e.pages(root, size, e.store.Log), all)
			e.equal("backwards", e.pages(root, size, e.store.LogBack), back)
		}
	})
}

// pages reads a log in pages, of which all but the last are full.
func (e *env) pages(id job.ID, size int, read func(context.Context, job.ID, string, int) ([]job.Entry, error)) (all []job.Entry) {
	e.Helper()
	for position := ""; ; {
		page, err := read(e.Context(), id, position, size)
		e.Check(err)
		all = append(all, page...)
		if len(page) < size || len(all) > 100 {
			return all
		}
		position = page[size-1].Position
	}
}

// The log of a tree is cut: of runs that share entries of the list it keeps about 20,000.
func TestLogIsCut(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	root := e.create(job.Node{Type: "S", Ports: ports(in("in"), out("out"))})
	const commits, runs = 120, 200
	e.write(root, "in", slices.Repeat([]string{"0"}, commits+1)...)
	for n := range commits {
		d := delta(e.begin(root), statemachine.Requeue)
		for i := range runs - 1 {
			d.Before = append(d.Before, store.Part{Entry: fmt.Sprintf(`{"step":%d}`, n*runs+i)})
		}
		d.Entry = fmt.Sprintf(`{"step":%d}`, n*runs+runs-1)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", Head: int64(n), N: 1}}
		e.commit(d)
	}
	all, err := e.store.Runs(e.Context(), root, 2*commits*runs)
	e.Check(err)
	if len(all) < 19_000 || len(all) > 21_000 || all[len(all)-1].Step != commits*runs-1 {
		t.Errorf("of %d runs it has %d", commits*runs, len(all))
	}
}
