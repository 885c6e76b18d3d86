package redisstore_test

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// Entries are added, moved, refused, dropped and forgotten once, however often a call is repeated.
func TestScriptWorkKit(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	name := bareShard + "kit" // so that the user of this test may touch its keys
	own := bareShard + "workkit:" + name + ":"
	add := func(id, at string) string { return b.run("workkit_add", name, id, "{"+id+"}", "m-"+id, at, id+at) }
	for _, id := range []string{"b", "a", "c"} {
		if first, again := add(id, "1000"), add(id, "2000"); first != "1" || again != "0" {
			t.Errorf("adding %s twice: %s, %s", id, first, again)
		}
	}
	b.rdb.ZAdd(t.Context(), name+":next", redis.Z{Score: 1000, Member: "a foreign one"}, redis.Z{Score: 999, Member: "m-0"}, redis.Z{Score: 9e12, Member: "later"})
	if got := b.run("workkit_due", name, 0); !strings.HasSuffix(got, " 9000000000000 [m-0 999 m-b 1000 m-a 1000 m-c 1000 a foreign one 1000]]") {
		t.Errorf("due are %s", got)
	}
	if got := b.run("workkit_due", name, 4); !strings.HasSuffix(got, " [m-c 1000]]") { // by the pages of Redis
		t.Errorf("due behind four are %s", got)
	}

	sum := func(id string) string {
		digest := sha1.Sum([]byte("{" + id + "}"))
		return hex.EncodeToString(digest[:])
	}
	root := func(n int) string { return strings.TrimSuffix(bareRoot, "1") + fmt.Sprint(n) }
	one := func(what, id, sum, next, root, text string) []any {
		return []any{what, "m-" + id, "1000", id, sum, next, root, text}
	}
	move := slices.Concat([]any{name, 5}, one("launch", "b", sum("b"), "5000", root(1), "launch\x1f1"), one("launch", "a", sum("a"), "", root(2), "launch\x1f2"),
		one("launch", "c", sum("x"), "", root(3), "launch\x1f3"), one("refuse", "c", sum("c"), "", "", `{"why":"x"}`), []any{"drop", "m-0", "999", "0", "", "", "", ""})
	b.want("[ok [!mail   ] [1 1 0 1 1]]", "workkit_move", move...)
	b.want("[ok [] [0 0 0 1 0]]", "workkit_move", move...)
	if left := b.run("mail_read", 9, 999); !strings.Contains(left, "launch\x1f1") || !strings.Contains(left, "launch\x1f2") || strings.Count(left, "launch") != 2 {
		t.Errorf("orders are %s", left)
	}
	holds := func(what string, got any, want string) {
		t.Helper()
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%s is %s, want %s", what, text, want)
		}
	}
	z := func(key string) any { return b.rdb.ZRangeWithScores(t.Context(), key, 0, -1).Val() }
	h := func(key string) any { return b.rdb.HGetAll(t.Context(), key).Val() }
	holds("next", z(name+":next"), "[{1000 a foreign one} {1000 m-c} {5000 m-b} {9e+12 later}]")
	holds("jobs", h(name+":jobs"), "map[a:{a} b:{b} c:{c}]")
	holds("order", z(own+"order"), "[{3 m-c} {4 m-b}]")
	holds("running", h(own+"last"), "map[a:"+root(2)+" m-a]")
	holds("refused", h(own+"refused"), `map[c:{"why":"x"}]`)

	order := func(of string) string { return strings.Join([]string{"workkit", name, "a", of}, "\x1f") }
	b.want("[ok [] 1]", "mail_apply", "", "elsewhere", 1, 5, order(root(9)))
	holds("jobs after the end of another tree", h(name+":jobs"), "map[a:{a} b:{b} c:{c}]")
	b.want("[ok [] 1]", "mail_apply", "", "elsewhere", 1, 6, order(root(2)))
	holds("jobs after the end", h(name+":jobs"), "map[b:{b} c:{c}]")
	if again := add("a", "1000"); again != "1" || b.rdb.HExists(t.Context(), name+":jobs", "a").Val() {
		t.Errorf("a late repeat of adding a replies %s", again)
	}
	add("a", "1001") // anew: no repeat of the end undoes that
	b.want("[ok [] 1]", "mail_apply", "", "elsewhere", 1, 7, order(root(2)))
	b.want("1", "workkit_end", name, "a", root(2), "b", root(1))
	holds("jobs that were added anew", h(name+":jobs"), "map[a:{a} b:{b} c:{c}]")
}

// An engine that may not use the keys of a schedule leaves the end of an entry to one that may, and carries out all other orders.
func TestScriptWorkKitForbidden(t *testing.T) {
	t.Parallel()
	b := newBare(t)
	running := bareShard + "workkit:foreign:last"
	b.rdb.HSet(t.Context(), running, "a", bareRoot+" m-a")
	b.want("[ok [] 1]", "mail_apply", "", "elsewhere", 1, 5, strings.Join([]string{"workkit", "foreign", "a", bareRoot}, "\x1f"))
	if n := b.rdb.HLen(t.Context(), running).Val(); n != 1 {
		t.Errorf("%d entries are running", n)
	}
	b.want("[ok [] 1]", "mail_apply", "", "elsewhere", 1, 6, strings.Join([]string{"note", bareRoot, "1"}, "\x1f"))
}

// The sequence of a schedule is dropped when others take its entries: it does not grow.
func TestWorkKitOrderIsBounded(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	kit, err := e.store.(*redisstore.Store).WorkKit("kit-" + e.Namespace)
	e.Check(err)
	for i := range 1300 {
		id := fmt.Sprint(i)
		_, err := kit.Add(t.Context(), id, id, raws("{}")[0], time.Now())
		e.Check(err)
		e.Check(e.Redis.Del(t.Context(), kit.Name()+":next", kit.Name()+":jobs").Err())
	}
	if n := e.Redis.ZCard(t.Context(), "weir:{"+e.Namespace+"}:workkit:"+kit.Name()+":order").Val(); n < 900 || n > 1010 {
		t.Errorf("the sequence has %d members", n)
	}
	names, err := e.store.(*redisstore.Store).WorkKits(t.Context())
	e.Check(err)
	e.equal("schedules", names, []string{kit.Name()})
	known := documented(e)
	for key := range e.dump() {
		if !known.MatchString(key) {
			t.Errorf("docs/redis.md does not name the key %s", key)
		}
	}
}

// Tidy forgets entries of which nobody was told that they have ended, and why entries were refused that are gone.
func TestWorkKitTidy(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	kit, err := e.store.(*redisstore.Store).WorkKit("kit-" + e.Namespace)
	e.Check(err)
	own := "weir:{" + e.Namespace + "}:workkit:" + kit.Name() + ":"
	ended, goes := e.single(), e.single()
	e.end(ended, statemachine.Fail)
	e.Check(e.Redis.HSet(t.Context(), kit.Name()+":jobs", "ended", "{}", "goes", "{}").Err())
	e.Check(e.Redis.HSet(t.Context(), own+"last", "ended", string(ended)+" m1", "goes", string(goes)+" m2").Err())
	e.Check(e.Redis.HSet(t.Context(), own+"refused", "gone", `{"member":"m3"}`, "waits", `{"member":"m4"}`).Err())
	e.Check(e.Redis.ZAdd(t.Context(), kit.Name()+":next", redis.Z{Score: 1, Member: "m4"}).Err())
	cursor, err := kit.Tidy(t.Context(), 0)
	e.Check(err)
	e.equal("cursor", cursor, uint64(0))
	e.equal("jobs", e.Redis.HKeys(t.Context(), kit.Name()+":jobs").Val(), []string{"goes"})
	e.equal("running", e.Redis.HKeys(t.Context(), own+"last").Val(), []string{"goes"})
	e.equal("refused", e.Redis.HKeys(t.Context(), own+"refused").Val(), []string{"waits"})
}

// Examine tells of entries that are due: those that cannot be launched, with the reason, and those that nobody moves.
func TestWorkKitExamined(t *testing.T) {
	t.Parallel()
	e := open(t, redistest.SharedRedis(t))
	kit, err := e.store.(*redisstore.Store).WorkKit("kit-" + e.Namespace)
	e.Check(err)
	e.Check(kit.Enroll(t.Context()))
	e.examine(false).has(t, "workkit", redisstore.OK, "are served: "+kit.Name(), "")
	old := time.Now().Add(-2 * time.Minute)
	for _, id := range []string{"strange", "bad", "late"} {
		_, err := kit.Add(t.Context(), id, "m-"+id, raws("{}")[0], old)
		e.Check(err)
	}
	_, due, _, err := kit.Due(t.Context(), 0)
	e.Check(err)
	refused := redisstore.WorkKitMove{
		WorkKitMember: due[0], ID: "strange", Payload: raws("{}")[0], Refused: &redisstore.WorkKitRefusal{Member: due[0].Member, Why: "no such type"},
	}
	done, err := kit.Move(t.Context(), []redisstore.WorkKitMove{refused})
	e.Check(err)
	e.equal("moved", done, []bool{true})
	bad := redisstore.WorkKitMove{WorkKitMember: due[1], ID: due[1].Member, Refused: &redisstore.WorkKitRefusal{Member: due[1].Member, Why: "no JSON"}}
	_, err = kit.Move(t.Context(), []redisstore.WorkKitMove{bad})
	e.Check(err)
	found := e.examine(false)
	found.has(t, "workkit", redisstore.Warning, "1 member of its queue name no entry: no JSON$", "redis-cli ZREM '"+kit.Name()+":next' '"+due[1].Member+"'$")
	found.has(t, "workkit", redisstore.Warning, `strange \(no such type\)`, "weir trigger list --workkit "+kit.Name())
	found.has(t, "workkit", redisstore.Warning, "nobody moves them: m-late$", "weir worker --workkit "+kit.Name())
}

// What can be no schedule is refused.
func TestWorkKitRefused(t *testing.T) {
	t.Parallel()
	s := open(t, redistest.SharedRedis(t)).store.(*redisstore.Store)
	for _, name := range []string{"", "a b", "weir:{main}", strings.Repeat("x", 300)} {
		if _, err := s.WorkKit(name); !errors.Is(err, job.ErrName) {
			t.Errorf("a schedule %q: %v", name, err)
		}
	}
}

// A user with the rules that are printed may serve the schedules that they name, and no others.
func TestACLWorkKit(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	ns := redistest.Namespace(t)
	e := openAs(t, user(t, s, ns, redisstore.ACL{Role: redisstore.RoleWorker, WorkKit: []string{"app-tasks"}}), ns)
	for name, want := range map[string]error{"app-tasks": nil, "other": job.ErrConfig} {
		kit, err := e.store.(*redisstore.Store).WorkKit(name)
		e.Check(err)
		if _, err := kit.Add(t.Context(), "1", "m", raws("{}")[0], time.Unix(1, 0)); !errors.Is(err, want) {
			t.Errorf("adding to %s: %v", name, err)
		}
		if _, _, _, err := kit.Due(t.Context(), 0); !errors.Is(err, want) {
			t.Errorf("reading %s: %v", name, err)
		}
		if _, err := kit.Move(t.Context(), []redisstore.WorkKitMove{{ID: "1"}}); !errors.Is(err, want) {
			t.Errorf("moving of %s: %v", name, err)
		}
	}
	reader := openAs(t, user(t, s, ns, redisstore.ACL{Role: redisstore.RoleReader, WorkKit: []string{"app-tasks"}}), ns)
	kit, err := reader.store.(*redisstore.Store).WorkKit("app-tasks")
	reader.Check(err)
	n := 0
	reader.Check(kit.Entries(t.Context(), func(string) (string, error) { return "m", nil }, func(redisstore.WorkKitEntry) error { n++; return nil }))
	reader.equal("entries", n, 1)
	if _, err := kit.Add(t.Context(), "2", "m2", raws("{}")[0], time.Now()); !errors.Is(err, job.ErrConfig) {
		t.Errorf("a reader adds: %v", err)
	}
	if _, err := (redisstore.ACL{Role: redisstore.RoleReader, WorkKit: []string{"a*"}}).Rules(redisstore.Config{URL: s.URL()}); !errors.Is(err, job.ErrName) {
		t.Errorf("rules for a*: %v", err)
	}
}
