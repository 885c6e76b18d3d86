package redisstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// hindrance is put into the function of the server: it counts the calls of one script, whose name
// is in the key "hinder" with a number, and lets the call of that number fail as one on a key
// that somebody has damaged does.
const hindrance = `
local function hindered(script)
  local victim, number = string.match(redis.call('GET', 'hinder') or '', '^(%S+) (%d+)$')
  if victim ~= script then return redis.call end
  local n = 0
  return function(...)
    n = n + 1
    redis.call('RPUSH', 'calls', (...))
    if n == tonumber(number) then redis.call('LLEN', 'hinder') end
    return redis.call(...)
  end
end
`

// hindered returns a store whose scripts can be made to fail at each of their calls.
func hindered(t *testing.T) *env {
	t.Helper()
	e := open(t, redistest.Start(t, "--enable-debug-command", "yes").URL())
	e.hinders()
	return e
}

// hinders puts the hindrance into the function of the server.
func (e *env) hinders() {
	e.Helper()
	e.edit(map[string]string{
		"local function start(":          hindrance + "local function start(",
		"= keys, args, redis.call, skip": "= keys, args, hindered(args[1]), skip",
	})
}

// hinder calls fn while the call of that number of a script fails, and returns the commands that the script
// gave until then. None fails if the number is zero.
func (e *env) hinder(script string, number int, fn func()) (calls []string) {
	e.Helper()
	e.Check(e.Redis.Set(e.Context(), "hinder", fmt.Sprintf("%s %d", script, number), 0).Err())
	fn()
	if script == "chore_run" { // in the background
		e.Until("the script was called", func() bool { return e.Redis.Exists(e.Context(), "calls").Val() > 0 })
	}
	calls, err := e.Redis.LRange(e.Context(), "calls", 0, -1).Result()
	e.Check(err)
	e.Check(e.Redis.Del(e.Context(), "hinder", "calls").Err())
	return calls
}

// firstWrite is the number of the first command that writes. It must be one that a full Redis refuses.
func (e *env) firstWrite(calls []string) int {
	e.Helper()
	known, err := e.Redis.Command(e.Context()).Result()
	e.Check(err)
	first := slices.IndexFunc(calls, func(name string) bool { return slices.Contains(known[strings.ToLower(name)].Flags, "write") })
	if first < 1 || !slices.Contains(known[strings.ToLower(calls[first])].Flags, "denyoom") {
		e.Fatalf("the first of %q that writes is number %d: too early, or a full Redis does not refuse it", calls, first+1)
	}
	return first + 1
}

// broken wants the error of a script that a damaged key has ended.
func (e *env) broken(err error, script string) {
	e.Helper()
	e.fails(err, job.ErrRefused)
	if text := err.Error(); !strings.Contains(text, "script "+script) || !strings.Contains(text, "WRONGTYPE") {
		e.Fatalf("the error of a broken %s: %v", script, err)
	}
}

// acts are calls of the store, each of which begins with the script that it is named after. They are
// made anew, with all that they need, as often as they are prepared.
var acts = map[string]func(e *env) (act func() error){
	"commit": func(e *env) func() error {
		_, _, d := e.full()
		return func() error {
			_, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
			return err
		}
	},
	"begin": func(e *env) func() error {
		id := e.single()
		return func() error {
			_, err := e.store.Begin(e.Context(), id, beginning())
			return err
		}
	},
	"create": func(e *env) func() error {
		id := e.single()
		plan := &job.Plan{Parent: id, Nodes: []job.Node{{Type: "T", Name: "kid", Ports: ports(in("in"))}}}
		e.Check(plan.Validate())
		base, err := e.store.Reserve(e.Context(), id, 1)
		e.Check(err)
		return func() error {
			_, err := e.store.Create(e.Context(), id.Nth(base), plan, "test")
			return err
		}
	},
	"port_write": func(e *env) func() error {
		id := e.create(job.Node{Type: "T", Ports: ports(limited(in("in"), 3))})
		return func() error {
			return e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: "in", Items: raws("1")})
		}
	},
	"port_take": func(e *env) func() error {
		id := e.single()
		e.write(id, "in", "1", "2")
		return func() error {
			return e.store.Take(e.Context(), id, store.Take{Dir: port.Input, Port: "in", N: 1}, string(id))
		}
	},
	"letter_settle": func(e *env) func() error {
		id := e.fussy()
		e.letters(id, 3)
		from := job.PortRef{Job: id, Dir: port.Output, Port: job.ErrorsPort}
		again := store.SettledLetter{Index: 1, Ports: []job.PortRef{{Job: id, Dir: port.Input, Port: "in"}}, Items: raws("1")}
		return func() error {
			_, err := e.store.Settle(e.Context(), from, store.Settlement{Token: string(id), Letters: []store.SettledLetter{{}, again}})
			return err
		}
	},
	"state_set": func(e *env) func() error {
		id := e.single()
		return func() error {
			return e.store.SetState(e.Context(), id, map[string]json.RawMessage{"a": raws("1")[0]}, []string{"b"})
		}
	},
	"job_apply": func(e *env) func() error {
		id := e.single()
		return func() error { return e.store.Apply(e.Context(), id, statemachine.Terminate) }
	},
	"job_retry": func(e *env) func() error {
		id := e.failed()
		r := store.Retry{Args: raws(`{"Width":2}`)[0], Name: "other", Priority: new(9), Later: true, Delay: time.Hour}
		return func() error { return e.store.Retry(e.Context(), id, r) }
	},
	"args_merge": func(e *env) func() error {
		id := e.single()
		return func() error {
			_, err := e.store.MergeArgs(e.Context(), id, store.Merging{Type: "T", Args: raws(`{"a":1}`)[0]})
			return err
		}
	},
	"job_fail": func(e *env) func() error {
		id := e.single()
		return func() error { return e.store.Fail(e.Context(), id, store.ByHand{Reason: "x"}) }
	},
	"job_adopt": func(e *env) func() error {
		parent, child := e.single(), e.single()
		return func() error { return e.store.Adopt(e.Context(), parent, child, "kid") }
	},
}

// Whatever call of a script fails up to the first that writes: the whole database is as it was, the
// caller is told, and the same call holds afterwards.
func TestErrorBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	for script, prepare := range acts {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			e := hindered(t)
			redisstore.Hashes(e.Store)
			act := prepare(e)
			whole := e.hinder(script, 0, func() { e.Check(act()) })
			first := e.firstWrite(whole)
			for n := 1; n <= first; n++ {
				act := prepare(e)
				before := e.digest()
				calls := e.hinder(script, n, func() { e.broken(act(), script) })
				e.equal("calls", calls, whole[:n])
				if e.digest() != before {
					t.Errorf("%q changed something, and failed at the last", calls)
				}
				e.Check(act())
			}
			t.Logf("%d calls failed of %d: %q", first, len(whole), whole[:first])
		})
	}
}

// Whatever call of a commit fails after the first that writes, as those do on keys that somebody has
// damaged: the caller is told, and what goes with it in one group holds. What was written stays, and the
// rest is missing; but the job has ended as it was to, or it runs again when its lease ends.
func TestErrorAfterTheFirstWrite(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	p := e.couple()
	whole := e.hinder("commit", 0, func() {
		for _, a := range p.commit(e) {
			e.Check(a.err)
		}
	})
	broken, orphans, untold := [2]int{}, 0, 0
	for n := e.firstWrite(whole) + 1; n <= len(whole); n++ {
		p := e.couple()
		var all []answer
		e.hinder("commit", n, func() { all = p.commit(e) })
		bad := slices.IndexFunc(all, func(a answer) bool { return a.err != nil })
		if bad < 0 { // behind both of them, when a notification was to be sent: the sweeper does
			untold++
			for i, id := range p.ids {
				e.is(p.ends[i], id)
			}
			continue
		}
		broken[bad]++
		e.broken(all[bad].err, "commit")
		e.Check(all[1-bad].err)
		e.equal("deltas of the other that hold", all[1-bad].res.Applied, 1)
		e.is(p.ends[1-bad], p.ids[1-bad])
		e.sweep()
		if status := e.info(p.ids[bad]).Status; status != p.ends[bad] {
			e.is(statemachine.Queued, p.ids[bad])
			e.end(p.ids[bad], statemachine.Complete)
		}
		orphans += e.orphans(p.ids[0])
	}
	if orphans > 2 { // when it is telling the parents what fails
		t.Errorf("%d jobs are there whose parents do not know them", orphans)
	}
	if untold > 6 {
		t.Errorf("of %d calls that failed nobody was told", untold)
	}
	t.Logf("%v calls failed of %d: %q", broken, len(whole), whole)
}

// Whatever call of a commit fails behind the one that reads a graph of which a child has ended: the graph has
// counted it.
func TestErrorKeepsTheCountsOfGraphs(t *testing.T) {
	t.Parallel()
	e := hindered(t)
	redisstore.Hashes(e.Store)
	e.edit(map[string]string{"local fine, left = pcall(compact.wakes)": "local fine, left = true, {}"}) // what it asks depends on other jobs, and may fail
	row := func() (root job.ID, d store.Delta) {
		root = e.create(job.Node{Type: "g", Graph: true}, job.Node{Type: "T", Name: "a"})
		e.equal("open", e.Redis.HGet(e.Context(), e.key(root), "open").Val(), "1")
		return root, delta(e.begin(root.Nth(1)), statemachine.Complete)
	}
	commit := func(d store.Delta) error {
		_, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
		return err
	}
	root, d := row()
	whole := e.hinder("commit", 0, func() { e.Check(commit(d)) })
	e.is(statemachine.Completed, root)
	reads := len(whole)
	for reads > 0 && whole[reads-1] != "HMGET" {
		reads--
	}
	if reads == 0 || reads == len(whole) {
		t.Fatalf("the graph is read by call %d of %q", reads, whole)
	}
	for n := reads + 1; n <= len(whole); n++ {
		root, d := row()
		var err error
		if calls := e.hinder("commit", n, func() { err = commit(d) }); len(calls) >= n {
			e.broken(err, "commit")
		} else { // in another shard, where nothing else is ready
			e.Check(err)
		}
		e.is(statemachine.Completed, root.Nth(1))
		if open := e.Redis.HGet(e.Context(), e.key(root), "open").Val(); open != "0" {
			t.Errorf("call %d of %q failed: %s jobs of the graph are open", n, whole, open)
		}
	}
}

// orphans counts jobs of a tree whose parents do not know them.
func (e *env) orphans(root job.ID) (n int) {
	e.Helper()
	for number := 1; number <= 2; number++ {
		id := root.Nth(number)
		parent := e.Redis.HGet(e.Context(), e.key(id), "parent").Val()
		if e.Redis.HExists(e.Context(), e.key(id), "status").Val() &&
			!slices.Contains(e.Redis.HVals(e.Context(), e.key(job.ID(parent))+":c").Val(), string(id)) {
			n++
		}
	}
	return n
}

// couple are two jobs of one shard, with runs that do much and little, whose leases have ended, and how they
// are when these are committed.
type couple struct {
	ids    [2]job.ID
	deltas [2]store.Delta
	ends   [2]statemachine.Status
}

func (e *env) couple() (p couple) {
	e.Helper()
	p.ids[0], _, p.deltas[0] = e.full()
	for p.ids[1] = newID(e); p.ids[1].Shard(shards) != p.ids[0].Shard(shards); {
		p.ids[1] = newID(e)
	}
	e.createAs(p.ids[1], job.Node{Type: "T", Ports: ports(out("out"))})
	p.deltas[1] = spoke(e.begin(p.ids[1]), "1")
	p.ends = [2]statemachine.Status{statemachine.Completed, statemachine.Suspended}
	for i, id := range p.ids {
		e.Check(e.store.Refresh(e.Context(), id, p.deltas[i].Token, time.Millisecond, nil))
	}
	return p
}

// commit commits both runs in one group.
func (p couple) commit(e *env) []answer {
	e.Helper()
	var steps []func(context.Context) answer
	for _, d := range p.deltas {
		steps = append(steps, func(ctx context.Context) answer {
			res, err := e.store.Commit(ctx, []store.Tx{{Deltas: []store.Delta{d}}})
			if err != nil {
				return answer{err: err}
			}
			return answer{res: res[0]}
		})
	}
	return e.grouped(p.ids[0], func() {}, steps...)
}

// digest is one number of all that the server has.
func (e *env) digest() string {
	e.Helper()
	text, err := e.Redis.Do(e.Context(), "DEBUG", "DIGEST").Text()
	e.Check(err)
	return text
}
