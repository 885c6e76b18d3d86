package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// said lists entries as <number of the job>:<what>, roots of other trees as x.
func said(root job.ID, entries []job.Entry) []string {
	var out []string
	for _, e := range entries {
		who := fmt.Sprint(e.Job.Number())
		if e.Job.Tree() != root.Tree() {
			who = "x"
		}
		what := string(e.Note)
		if e.Run != nil {
			what = "run"
			if len(e.Run.Write) > 0 {
				what = string(e.Run.Write[0].Data[0])
			}
		}
		out = append(out, who+":"+what)
	}
	return out
}

// A reader of a log gives what is there, then what comes: of a job alone, or of all below it.
func TestLogReader(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		c := client.New(e.store)
		root := e.create(
			job.Node{Type: "R", Ports: ports(in("in"))},
			job.Node{Name: "kid", Type: "K", Ports: ports(in("in"))},
			job.Node{Name: "grandchild", Type: "K", Parent: 1, Ports: ports(in("in"))})
		other := e.single()
		e.Check(e.store.Adopt(ctx, root.Nth(1), other, "adopted"))
		write := func(id job.ID, n int) {
			e.Helper()
			h, err := c.Find(ctx, string(id))
			e.Check(err)
			e.Check(h.Write(ctx, "in", n))
		}
		open := func(id job.ID, below bool) *client.LogReader {
			e.Helper()
			h, err := c.Find(ctx, string(id))
			e.Check(err)
			r, err := h.OpenLog(ctx, below)
			e.Check(err)
			return r
		}
		check := func(what string, got []job.Entry, err error, want ...string) {
			e.Helper()
			e.Check(err)
			if got := said(root, got); !slices.Equal(got, want) {
				e.Errorf("%s: got %q, want %q", what, got, want)
			}
		}
		all := []string{}
		for n := range 3 {
			for _, id := range []job.ID{root, root.Nth(1), root.Nth(2), other} {
				write(id, n)
				time.Sleep(2 * time.Millisecond) // entries of several trees are told apart by their time
			}
			all = append(all, fmt.Sprint("0:", n), fmt.Sprint("1:", n), fmt.Sprint("2:", n), fmt.Sprint("x:", n))
		}
		snap := e.begin(root.Nth(2))
		d := delta(snap, statemachine.Suspend)
		d.Log = []string{`"note"`}
		e.commit(d)

		whole, alone, kid, none := open(root, true), open(root, false), open(root.Nth(1), true), open(root.Nth(1), true)
		got, err := whole.Last(ctx, 100, time.Time{})
		check("all", got, err, append(all, `2:"note"`)...)
		got, err = alone.Last(ctx, 2, time.Time{})
		check("the last two of one", got, err, "0:1", "0:2")
		got, err = kid.Last(ctx, 4, time.Time{})
		check("below a child", got, err, "1:2", "2:2", "x:2", `2:"note"`)
		got, err = none.Last(ctx, 0, time.Time{})
		check("none", got, err)
		got, err = open(root, true).Last(ctx, 100, time.Now().Add(time.Hour))
		check("of the future", got, err)

		got, err = whole.Next(ctx)
		check("nothing new", got, err)
		write(root, 7)
		write(root.Nth(2), 8)
		got, err = alone.Next(ctx)
		check("new of one", got, err, "0:7")
		got, err = kid.Next(ctx)
		check("new below a child", got, err, "2:8")
		n, err := e.store.Reserve(ctx, root, 1)
		e.Check(err)
		plan := &job.Plan{Nodes: []job.Node{{Name: "late", Type: "K", Ports: ports(in("in"))}}, Parent: root.Nth(1)}
		_, err = e.store.Create(ctx, root.Nth(n), plan, "test")
		e.Check(err)
		write(root.Nth(n), 9)
		got, err = kid.Next(ctx)
		check("of a job that is new", got, err, fmt.Sprint(n, ":9"))
		got, err = none.Next(ctx)
		check("all new", got, err, "2:8", fmt.Sprint(n, ":9"))
	})
}

// A log is read backwards page by page: of one tree and of several, each entry once.
func TestLogBackwards(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		c := client.New(e.store)
		root, other := e.create(job.Node{Type: "R", Ports: ports(in("in"))}, job.Node{Name: "kid", Type: "K", Ports: ports(in("in"))}), e.single()
		e.Check(e.store.Adopt(ctx, root.Nth(1), other, "adopted"))
		for n := range 5 {
			for _, id := range []job.ID{root, root.Nth(1), other} {
				if n == 0 && id == other { // the first pages have none of its entries, and the last ones no other
					continue
				}
				h, err := c.Find(ctx, string(id))
				e.Check(err)
				e.Check(h.Write(ctx, "in", n))
				time.Sleep(2 * time.Millisecond)
			}
		}
		open := func(below bool) *client.LogReader {
			h, err := c.Find(ctx, string(root))
			e.Check(err)
			r, err := h.OpenLog(ctx, below)
			e.Check(err)
			return r
		}
		for _, below := range []bool{true, false} {
			last, err := open(below).Last(ctx, 100, time.Time{})
			e.Check(err)
			all := said(root, last)
			for n := range len(all) + 1 {
				var got []string
				for before, pages := "", 0; ; pages++ {
					some, earlier, err := open(below).Back(ctx, n+1, time.Time{}, before)
					e.Check(err)
					got = append(said(root, some), got...)
					if before = earlier; before == "" {
						e.equal("pages", pages, (len(all)-1)/(n+1))
						break
					}
				}
				e.equal(fmt.Sprintf("all in pages of %d", n+1), strings.Join(got, " "), strings.Join(all, " "))
			}
		}
		for _, wrong := range []string{"5", "x=5", string(root) + "=x"} {
			if _, _, err := open(true).Back(ctx, 1, time.Time{}, wrong); !errors.Is(err, job.ErrValue) {
				e.Errorf("before %q: %v", wrong, err)
			}
		}
	})
}

// Long logs are read in parts, and none is left out.
func TestLongLog(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		const all = 1234
		for i := range all {
			w := store.Write{Dir: port.Input, Port: "in", Items: raws("1"), Entry: fmt.Sprintf(`{"step":%d}`, i)}
			e.Check(e.store.Write(e.Context(), id, w))
		}
		h, err := client.New(e.store).Find(e.Context(), string(id))
		e.Check(err)
		for _, first := range []int{0, 3, 600, all} {
			r, err := h.OpenLog(e.Context(), true)
			e.Check(err)
			got, err := r.Last(e.Context(), first, time.Time{})
			e.Check(err)
			e.equal("entries", len(got), first)
			for n, one := range got {
				e.equal("step", one.Run.Step, int64(all-first+n))
			}
		}
		first, err := h.OpenLog(e.Context(), true)
		e.Check(err)
		second, err := h.OpenLog(e.Context(), true)
		e.Check(err)
		e.equal("both have read nothing", first.Behind(second) || second.Behind(first), false)
		_, err = first.Last(e.Context(), 1, time.Time{})
		e.Check(err)
		e.equal("who has read nothing is behind", second.Behind(first) && !first.Behind(second), true)
		_, err = second.Next(e.Context())
		e.Check(err)
		e.equal("both have read all", first.Behind(second) || second.Behind(first), false)
		e.Check(e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: raws("1"), Entry: `{"step":-1}`}))
		_, err = second.Next(e.Context())
		e.Check(err)
		e.equal("who has not read the last one is behind", first.Behind(second) && !second.Behind(first), true)
		entries, err := e.store.Log(e.Context(), id, "", 2000)
		e.Check(err)
		e.equal("all entries", len(entries), all+1)
		rest, err := e.store.Log(e.Context(), id, entries[all-2].Position, 2000)
		e.Check(err)
		e.equal("the rest", len(rest), 2)
	})
}

// logKey is the key of the log of a job's tree.
func (e *env) logKey(id job.ID) string { return strings.Replace(e.key(id.Tree()), ":j:", ":l:", 1) }

// A log of few entries takes little more memory than what it says.
func TestLogCostsItsBytes(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	root := e.single()
	text := 0
	for n := 1; n <= 100; n++ {
		w := store.Write{Dir: port.Input, Port: "in", Items: raws("1"), Entry: fmt.Sprintf(`{"step":%d,"by":"%050d"}`, n, n)}
		e.Check(e.store.Write(e.Context(), root, w))
		text += len(w.Entry)
		used := int(e.Redis.MemoryUsage(e.Context(), e.logKey(root), 0).Val())
		if most := 300 + text + 60*n; used == 0 || used > most {
			t.Fatalf("%d entries of %d bytes take %d, want at most %d", n, text, used, most)
		}
	}
}

// Entries keep their positions when those before them are cut off, and what is asked for from a
// position that was cut off begins with what is left. A tree of one job gets the right numbers for its
// children after that, too.
func TestPositionsOfACutLog(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	ctx, root := e.Context(), e.single()
	write := func(from, to int) {
		e.Helper()
		snap := e.begin(root)
		for ; from < to; from += 500 {
			d := delta(snap, store.Checkpoint)
			d.Next, d.Lease = fmt.Sprint("token", from), time.Hour
			for n := range 500 {
				d.Log = append(d.Log, fmt.Sprint(from+n))
			}
			e.commit(d)
			snap.Token = d.Next
		}
		e.commit(delta(snap, statemachine.Requeue))
	}
	e.write(root, "in", "1")
	write(0, 9_000)
	page, err := e.store.Log(ctx, root, "", 100)
	e.Check(err)
	e.equal("first", string(page[99].Note), "99")
	late, err := e.store.LogBack(ctx, root, "", 1)
	e.Check(err)
	e.equal("last", string(late[0].Note), "8999")

	write(9_000, 12_000)
	left := int(e.Redis.LLen(ctx, e.logKey(root)).Val())
	if left < 10_000 || left > 10_100 {
		t.Fatalf("%d entries are left", left)
	}
	first := fmt.Sprint(12_000 - left)
	for name, position := range map[string]string{"the beginning": "", "one that was cut off": page[99].Position} {
		got, err := e.store.Log(ctx, root, position, 1)
		e.Check(err)
		e.equal("first from "+name, string(got[0].Note), first)
	}
	got, err := e.store.Log(ctx, root, late[0].Position, 2)
	e.Check(err)
	e.equal("behind an old position", string(got[0].Note)+" "+string(got[1].Note), "9000 9001")
	got, err = e.store.LogBack(ctx, root, late[0].Position, 2)
	e.Check(err)
	e.equal("before an old position", string(got[0].Note)+" "+string(got[1].Note), "8998 8997")
	got, err = e.store.LogBack(ctx, root, page[99].Position, 2)
	e.Check(err)
	e.equal("before one that was cut off", len(got), 0)
	whole, err := e.store.Log(ctx, root, "", 20_000)
	e.Check(err)
	e.equal("all that is left", len(whole), left)
	_, err = e.store.Log(ctx, root, "1763-0", 1)
	if err == nil || !strings.Contains(err.Error(), `"1763-0" is no position of a log`) {
		t.Errorf("a position that is none: %v", err)
	}

	n, err := e.store.Reserve(ctx, root, 1)
	e.Check(err)
	e.equal("number of the first child", n, 1)
	plan := &job.Plan{Nodes: []job.Node{{Name: "kid", Type: "K", Ports: ports(in("in"))}}, Parent: root}
	_, err = e.store.Create(ctx, root.Nth(n), plan, "test")
	e.Check(err)
	counts := strings.Replace(e.key(root), ":j:", ":t:", 1)
	e.equal("jobs of the tree", e.Redis.HGet(ctx, counts, "jobs").Val(), "2")
}
