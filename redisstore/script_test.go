package redisstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// libraries are put in front of the scripts and have no call of their own.
var libraries = map[string]bool{"amend": true, "base": true, "compact": true, "compact_run": true, "compact_end": true, "news": true, "log": true, "mail": true, "delta": true, "edge": true, "kin": true, "retain": true, "part": true, "place": true, "plain": true, "plan": true, "serial": true, "several": true, "expire": true, "closing": true, "launch": true, "limited": true, "patch": true, "port": true, "quiesce": true, "rate": true, "repeats": true, "ready": true, "run": true, "subtree": true, "hub": true, "record": true, "tx": true, "unique": true, "workkit": true}

func scripts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("scripts/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	all := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".lua")] = string(text)
	}
	return all
}

func TestScriptsSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	for name, text := range scripts(t) {
		if n := strings.Count(text, "\n"); n >= 300 {
			t.Errorf("%s has %d lines", name, n)
		}
		if n := strings.Count(text, "\n"); n > 80 && !libraries[name] {
			t.Errorf("%s has %d lines and is no library", name, n)
		}
		for i, line := range strings.Split(text, "\n") {
			if len(line) > 130 || strings.TrimRight(line, " \t\r") != line {
				t.Errorf("%s, line %d: too long, or blanks at its end", name, i+1)
			}
		}
		head := regexp.MustCompile(`^(--[^\n]*\n)+`).FindString(text)
		want := []string{"-- " + name + ": "}
		if libraries[name] {
			want[0] = "-- " + name + ".lua: "
		} else {
			want = append(want, "\n-- KEYS: ", "\n-- ARGV: ", "\n-- reply: ")
		}
		for _, w := range want {
			if !strings.Contains(head, w) {
				t.Errorf("the header of %s has no %q:\n%s", name, w, head)
			}
		}
	}
}

// Each script is one that Redis takes by itself: a function may have 200 local names, and the libraries come close to that.
func TestScriptsCompile(t *testing.T) {
	t.Parallel()
	c := enginetest.Connect(t, redistest.SharedRedis(t))
	for name, s := range redisstore.Programs() {
		if err := s.Load(t.Context(), c).Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Statuses have one home, and it is not Lua: scripts use S and EV.
func TestScriptsSpellNoStatus(t *testing.T) {
	t.Parallel()
	for name, text := range scripts(t) {
		for _, s := range statemachine.Statuses() {
			if s != statemachine.Queued && strings.Contains(text, "'"+string(s)+"'") { // queued is a field, too
				t.Errorf("%s spells the status %s", name, s)
			}
		}
	}
}

// bare runs scripts as they are, as a user who may touch the keys of one shard only.
type bare struct {
	*testing.T
	rdb     *redis.Client
	scripts map[string]string
	life    string // of the server
}

const (
	bareShard = "weir:{bare:0}:"
	bareRoot  = "018f4e2a-0000-7000-8000-000000000001"
)

func newBare(t *testing.T) *bare {
	t.Helper()
	srv := redistest.Start(t)
	if err := srv.Client(t).Do(t.Context(), "ACL", "SETUSER", "script", "on", "nopass", "~"+bareShard+"*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: "script", Password: "any"})
	t.Cleanup(func() { _ = rdb.Close() })
	return &bare{T: t, rdb: rdb, scripts: scripts(t)}
}

// run runs a script and returns its reply as text, moments masked.
func (b *bare) run(name string, args ...any) string {
	b.Helper()
	src := "local keys, args = KEYS, ARGV\nlocal LIFE = '" + b.life + "'\n" + statemachine.Lua() + redisstore.RetentionLua()
	for _, library := range []string{"base", "compact", "news", "ready", "retain", "kin", "mail", "serial", "edge", "log", "port", "quiesce", "rate", "place", "amend", "plan", "unique", "run", "compact_run", "compact_end", "several", "subtree", "hub", "delta", "record", "tx", "plain"} {
		src += b.scripts[library]
	}
	own := map[string]string{"mail_apply": b.scripts["launch"] + b.scripts["workkit"]}[name]
	if strings.HasPrefix(name, "workkit_") {
		own = b.scripts["workkit"]
	}
	reply, err := b.rdb.Eval(b.Context(), src+"start(keys, args, 0)\n"+own+b.scripts[name], []string{bareShard + "due"}, args...).Result()
	if err != nil {
		b.Fatalf("script %s: %v", name, err)
	}
	return moments.ReplaceAllString(fmt.Sprint(reply), "T")
}

func (b *bare) want(want, name string, args ...any) {
	b.Helper()
	if got := b.run(name, args...); got != want {
		b.Fatalf("script %s %q\nreplies %s\n   want %s", name, args, got, want)
	}
}

// noDelta is a delta that only ends a run: its lists are empty.
func noDelta(id, token, outcome string) []any {
	return redisstore.DeltaArgs(&store.Delta{Job: job.ID(id), Token: token, Outcome: statemachine.Event(outcome)})
}

func commitOf(deltas ...any) []any { return append([]any{1, 0, 0, 0, 1}, deltas...) }

// bareBegin is how the runs of these tests begin: what line.beginning() in run.lua reads behind a token.
const bareBegin = "1000 9 \x1e9 0 =1000\x1e"

// The replies are those that the headers promise, and no key of another shard is touched.
func TestScriptReplies(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	root := []any{bareRoot, "create", "", "", "", 10, "type", "T", "queue", "q", "name", "", "i.in", "0", "o.out", "0", 2, "in", "7", 0}
	b.want("[1 [q 0 T 500]]", "create", append([]any{bareRoot, "", "", "t1", "", "", 1, 1}, root...)...)
	b.want("[1 []]", "create", append([]any{bareRoot, "", "", "t1", "", "", 1, 1}, root...)...)
	b.want("[0 []]", "create", append([]any{bareRoot, "", "", "t2", "", "", 1, 1}, root...)...)
	if got := b.run("tree_walk", 10, bareRoot, bareRoot+".1"); !strings.HasSuffix(got, "[i.in 0 o.out 0] [in 7]    ] ["+bareRoot+".1  [] []    ]] []]") {
		t.Errorf("tree_walk replies %s", got)
	}

	b.want("[ok []  []]", "port_write", bareRoot, "i", "in", "w1", 60000, "", "", "", 2, "1", "2", 0)
	b.want("[ok []  []]", "port_write", bareRoot, "i", "in", "w1", 60000, "", "", "", 2, "1", "2", 0)
	b.want("[port []]", "port_write", bareRoot, "i", "no", "w2", 60000, "", "", "", 1, "1", 0)
	b.want("[gone []]", "port_write", bareRoot+".1", "i", "in", "w2", 60000, "", "", "", 1, "1", 0)
	b.want("[ok 0 [2] 0]", "port_page", bareRoot, "i", "in", 1, 9, 9)
	b.want("[port]", "port_page", bareRoot, "i", "no", 0, 9, 9)
	b.want("[gone]", "port_page", bareRoot+".1", "i", "in", 0, 9, 9)
	b.want("[moved []]", "port_take", bareRoot, "i", "in", 1, 1, "k1")
	b.want("[ok []]", "port_take", bareRoot, "i", "in", 0, 1, "k1")
	b.want("[ok []]", "port_take", bareRoot, "i", "in", 0, 1, "k1")
	b.want("[port []]", "port_take", bareRoot, "i", "no", 0, 1, "k1")
	b.want("[gone []]", "port_take", bareRoot+".1", "i", "in", 0, 1, "k2")

	b.want("ok", "types_set", "random", 2, "q T", "{}", "q U", "{}")
	b.want("ok", "types_set", "random", 1, "q T", "{}")

	b.want("[gone]", "begin", bareRoot+".1", "r1", bareBegin)
	if got := b.run("begin", bareRoot, "r1", bareBegin); !strings.HasPrefix(got, "[ok T created\x1fT\x1ftype\x1fT\x1fqueue\x1fq\x1f") || !strings.HasSuffix(got, "  [in 7] [[2 in 1 1]] ]") {
		t.Errorf("begin replies %s", got)
	}
	b.want("[status running]", "begin", bareRoot, "r2", bareBegin)
	b.want("1", "run_refresh", bareRoot, "r1", 1000, "")
	b.want("0", "run_refresh", bareRoot, "r2", 1000, "")
	b.want("[]", "bell_renew", "q", 0)
	b.want("[[[0\x1ffenced\x1f0\x1f0\x1f-1  ]] []]", "commit", commitOf(noDelta(bareRoot, "r2", "complete")...)...)
	b.want("[[[0\x1frunning\x1f0\x1f0\x1f-1  ]] []]", "commit", commitOf(noDelta(bareRoot, "r1", "shutdown")...)...)
	b.want("[[[1\x1f\x1f1\x1f0\x1f-1  ]] [q 1 T 500]]", "commit", commitOf(noDelta(bareRoot, "r1", "requeue")...)...)
	b.want("[[[1\x1f\x1f1\x1f0\x1f-1  ]] [q 1 T 500]]", "commit", commitOf(noDelta(bareRoot, "r1", "requeue")...)...)
	b.want("[q 2 T 500]", "bell_renew", "q", 1)
	b.want("[]", "bell_renew", "q", 1)

	if err := b.rdb.Set(t.Context(), bareShard+"j:"+bareRoot+":lock", "x", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	if got := b.run("begin", bareRoot, "r3", bareBegin); !strings.HasPrefix(got, "[locked 3") {
		t.Errorf("begin of a locked job replies %s", got)
	}
	b.want("[held []]", "job_unlock", bareRoot, "y", "", "u1")
	b.want("[held []]", "job_unlock", bareRoot, "", "", "u1")
	b.want("[ok [q 2 T 500]]", "job_unlock", bareRoot, "x", "", "u1")
	b.want("[ok []]", "job_unlock", bareRoot, "x", "", "u1")
	b.want("[free []]", "job_unlock", bareRoot, "x", "", "u2")
	b.want("[free []]", "job_unlock", bareRoot, "", "1", "u2")
	b.run("begin", bareRoot, "r3", bareBegin)
	step := append([]any{1, 0, 0, 1, "r4", "1000 9 Some=3\x1e9 0 =1000\x1e\x1e\x1e\x1eT", 1}, noDelta(bareRoot, "r3", "requeue")...)
	for range 2 {
		if got := b.run("commit", step...); !regexp.MustCompile(`^\[\[\[1\x1f\x1f[01]\x1f0\x1f-1 ` + bareRoot + ` \[ok T created\x1fT\x1ftype\x1fT\x1f.* \[\]\]$`).MatchString(got) {
			t.Errorf("step replies %s", got)
		}
	}
	b.want("[0 [] T []]", "due_sweep", 10)
	b.want("1", "run_refresh", bareRoot, "r4", 0, "")
	time.Sleep(3 * time.Millisecond)
	b.want("[1 [q 2 T 500] T []]", "due_sweep", 10)

	b.want("[queued []]", "job_apply", bareRoot, "retry", "a1", "")
	b.want("[ok []]", "job_apply", bareRoot, "run", "a2", "")
	b.want("[gone []]", "job_apply", bareRoot+".1", "run", "a2", "")
	b.want("[moved []]", "job_apply", bareRoot, "terminate", "a4", "", "1", "running 0")
	b.want("[ok []]", "job_apply", bareRoot, "terminate", "a3", "") // it is queued already
	b.want("[ok []]", "job_apply", bareRoot, "terminate", "a3", "")
	b.want("[terminating []]", "job_retry", bareRoot, "h1", "1", "", "", "", "", "", 1, "", "", "{}")
	b.want("[terminating []]", "job_fail", bareRoot, "h2", "x", "{}", "")
	b.want("[gone []]", "port_close", bareRoot+".1", "i", "in", "")
	b.want("[port []]", "port_close", bareRoot, "i", "no", "")
	b.want("[ok []]", "port_close", bareRoot, "i", "in", "")
	b.want("[closed []]", "port_write", bareRoot, "i", "in", "w3", 60000, "", "", "", 1, "1", 0)
}

// A repeat of a retry, or of a failure, by hand does nothing, whatever became of the job meanwhile.
func TestScriptsByHandRepeated(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	b.run("create", bareRoot, "", "", "t1", "", "", 1, 1, bareRoot, "create", "", "", "", 6, "type", "T", "queue", "q", "i.in", "0", 0, 0)
	k := bareShard + "j:" + bareRoot
	status := func(want string) {
		t.Helper()
		if got := b.rdb.HGet(t.Context(), k, "status").Val(); got != want {
			t.Fatalf("status %s, want %s", got, want)
		}
	}
	fail, retry := []any{bareRoot, "f1", "by hand", "{}", "{}"}, []any{bareRoot, "r1", "", "", 3_600_000, "", "", `{"a":1}`, 1, 9, "n", "{}"}
	b.want("[ok []]", "job_fail", fail...)
	b.want("[ok [] T]", "job_retry", retry...)
	b.want("[ok []]", "job_fail", fail...)
	status("scheduled")
	b.want("[ok []]", "job_fail", bareRoot, "f2", "by hand", "{}", "{}")
	b.want("[ok [] T]", "job_retry", retry...)
	status("failed")
	if n := b.rdb.LLen(t.Context(), k+":e").Val(); n != 2 {
		t.Errorf("%d failures are recorded", n)
	}
	b.want("[gone []]", "job_fail", bareRoot+".1", "f3", "x", "{}", "")
	b.want("[gone []]", "job_retry", bareRoot+".1", "r3", "", "", "", "", "", "", 1, "", "", "{}")
}

// A call that the driver repeats after its reply was lost may come when somebody else has
// changed the same thing: it must not undo that.
func TestScriptsRepeatedLate(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	b.run("create", bareRoot, "", "", "t1", "", "", 1, 1, bareRoot, "create", "", "", "", 6, "type", "T", "queue", "q", "i.in", "0", 0, 0)
	k := bareShard + "j:" + bareRoot
	for _, c := range []struct {
		script         string
		first, second  []any
		key, field     string
		what, remained string
	}{
		{"state_set", []any{bareRoot, "s1", "", 1, "k", "1", 0}, []any{bareRoot, "s2", "", 1, "k", "2", 0}, k + ":s", "k", "state", "2"},
		{"port_default", []any{bareRoot, "d1", "i", "in", "1", "7"}, []any{bareRoot, "d2", "i", "in", "1", "8"}, k + ":d", "in", "default", "8"},
		{"port_set", []any{bareRoot, "p1", 1, "", "i.in", "5", ""}, []any{bareRoot, "p2", 1, "", "i.in", "6", ""}, k, "i.in", "port", "6"},
		{"alias_set", []any{"add", "mine", bareRoot, "a1"}, []any{"remove", "mine", bareRoot, "a2"}, bareShard + "aliases", "mine", "alias", ""},
	} {
		before := b.run(c.script, c.first...)
		b.run(c.script, c.second...)
		b.want(before, c.script, c.first...)
		if got, err := b.rdb.HGet(t.Context(), c.key, c.field).Result(); got != c.remained {
			t.Errorf("a late repeat of %s makes the %s %q instead of %q (%v)", c.script, c.what, got, c.remained, err)
		}
	}
}

// An entry of a log has the parts that docs/redis.md tells, whichever end it is read from.
func TestScriptLogPage(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	b.run("create", bareRoot, "", "", "t1", "", "", 1, 1, bareRoot, "create", "", "", "", 6, "type", "T", "queue", "q", "i.in", "0", 0, 0)
	b.want("[0 [] 1]", "log_page", bareRoot, "", "", 9, 9)
	for _, token := range []string{"w1", "w2"} {
		b.want("[ok []  []]", "port_write", bareRoot, "i", "in", token, 60000, "", "", token+"'s", 1, "7", 0)
	}
	first, second := "T\x1f\x1fr\x1f i in 0 1\x1fw1's", "T\x1f\x1fr\x1f i in 1 1\x1fw2's"
	b.want("[0 ["+first+" "+second+"] 1]", "log_page", bareRoot, "", "", 9, 999)
	b.want("[1 ["+second+" "+first+"] 1]", "log_page", bareRoot, "", "1", 9, 999)
	b.want("[0 ["+first+"] 0]", "log_page", bareRoot, "", "", 1, 999)
	b.want("[1 ["+second+"] 0]", "log_page", bareRoot, "", "1", 9, 1)
	b.want("[1 ["+second+"] 1]", "log_page", bareRoot, 1, "", 9, 9)
	b.want("[2 [] 1]", "log_page", bareRoot, 2, "", 9, 9)
	b.want("[-1 [] 1]", "log_page", bareRoot, -1, "1", 9, 9)
}

// A server that was started anew may have lost what led to orders, and what they did: orders that
// were read before are neither carried out nor forgotten then.
func TestOrdersOfAnotherLife(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	b.run("create", bareRoot, "", "", "t1", "", "", 1, 1, bareRoot, "create", "", "", "", 6, "type", "T", "queue", "q", "i.in", "0", 0, 0)
	write := strings.Join([]string{"write", bareRoot, "in", "", "7"}, "\x1f")
	if err := b.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: bareShard + "outbox", ID: "5-1", Values: []string{"to", bareRoot, "order", write}}).Err(); err != nil {
		t.Fatal(err)
	}
	b.life = "one"
	b.want("[one [5-1 "+bareRoot+" "+write+"]]", "mail_read", 9, 999)
	b.life = "two"
	b.want("[life two]", "mail_apply", "one", "elsewhere", 1, 5, write)
	b.want("[ok 0 [] 0]", "port_page", bareRoot, "i", "in", 0, 9, 9)
	b.want("1", "mail_done", "one", "5-1")
	b.want("[ok [] 1]", "mail_apply", "two", "elsewhere", 1, 5, write)
	b.want("[ok [] 1]", "mail_apply", "two", "elsewhere", 1, 5, write)
	b.want("[ok 0 [7] 0]", "port_page", bareRoot, "i", "in", 0, 9, 9)
	b.want("0", "mail_done", "two", "5-1")
}

// The sweeper sends notifications again that got lost on the way to asynq, or with a server that
// heard them; those that are queued it leaves alone. It puts jobs back that are missing in their ready set.
func TestSweepRingsAgain(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	ctx := e.Context()
	id := e.single()
	queue := "asynq:{weir:" + e.Namespace + ":default}:"
	line := func() []string {
		e.Helper()
		// Make it due: a job is looked at a second after it became ready.
		e.Check(e.Redis.ZAdd(ctx, e.due(id), redis.Z{Score: 1, Member: string(id)}).Err())
		_, err := e.store.Sweep(ctx)
		e.Check(err)
		ids, err := e.Redis.LRange(ctx, queue+"pending", 0, -1).Result()
		e.Check(err)
		return ids
	}
	first, second := fmt.Sprint(id.Shard(shards), "#0"), fmt.Sprint(id.Shard(shards), "#1")
	e.equal("in line", line(), []string{first})
	e.Check(e.Redis.Del(ctx, queue+"pending", queue+"t:"+first).Err())
	e.equal("lost", line(), []string{first})
	e.Check(e.Redis.LMove(ctx, queue+"pending", queue+"active", "RIGHT", "LEFT").Err())
	e.Check(e.Redis.HSet(ctx, queue+"t:"+first, "state", "active").Err())
	e.equal("heard by a server that died", line(), []string{second})
	e.equal("in line again", line(), []string{second})
	set := strings.TrimSuffix(e.due(id), "due") + "ready:default"
	e.Check(e.Redis.Del(ctx, set, set+"#T").Err())
	line()
	e.equal("ready", e.Redis.ZRange(ctx, set+"#T", 0, -1).Val(), []string{string(id)})
	e.begin(id)
	e.is(statemachine.Running, id)
}

func TestReplyOfAnotherServer(t *testing.T) {
	t.Parallel()
	// A key of another type where a job should be: an error, in one line, and no panic.
	e := open(t, redistest.SharedRedis(t))
	id := newID(e)
	e.Check(e.Redis.Set(e.Context(), e.key(id), "x", 0).Err())
	_, err := e.store.Info(e.Context(), id)
	e.fails(err, job.ErrRefused)
	if !strings.Contains(err.Error(), "script tree_walk") {
		t.Errorf("the error does not name the script: %v", err)
	}
}

// An order creates a tree once, with what is written to it, and leaves one that is there as it is; its end is an order.
func TestScriptLaunch(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	tell := "018f4e2a-0000-7000-8000-000000000009 ended"
	order := strings.Join([]string{
		"launch", bareRoot, "1", bareRoot, "create", "", "", "", "10", "type", "T", "queue", "q", "i.in", "0", "retain", "9000", "tell", tell, "0", "0",
		"1", "in", "2", "7", "8", "1", "in",
	}, "\x1f")
	other := strings.Replace(order, "\x1f7\x1f8", "\x1f1\x1f2", 1)
	b.want("[ok [q 0 T 500] 1]", "mail_apply", "", "elsewhere", 1, 5, order)
	b.want("[ok [] 1]", "mail_apply", "", "elsewhere", 1, 5, order)
	b.want("[ok [] 1]", "mail_apply", "", "elsewhere", 1, 6, other)
	b.want("[ok [] 1]", "mail_apply", "", "another", 1, 5, other)
	b.want("[ok 0 [7 8] 0]", "port_page", bareRoot, "i", "in", 0, 9, 9)
	b.want("[closed []]", "port_write", bareRoot, "i", "in", "w1", 60000, "", "", "", 1, "9", 0)
	if left := b.run("mail_read", 9, 999); left != "[ []]" {
		t.Errorf("before the end there are orders: %s", left)
	}
	b.run("begin", bareRoot, "r1", bareBegin)
	b.want("[[[1\x1f\x1f0\x1f0\x1f-1  ]] [!mail   ]]", "commit", commitOf(noDelta(bareRoot, "r1", "complete")...)...)
	b.want("[[[1\x1f\x1f0\x1f0\x1f-1  ]] []]", "commit", commitOf(noDelta(bareRoot, "r1", "complete")...)...)
	want := "write\x1f" + strings.Replace(tell, " ", "\x1f", 1) + "\x1f\x1f{\"job\":\"" + bareRoot + "\",\"status\":\"completed\"}]]"
	if left := b.run("mail_read", 9, 999); strings.Count(left, "write") != 1 || !strings.HasSuffix(left, want) {
		t.Errorf("at the end there are orders: %s\nwant one: %s", left, want)
	}
}
