package workkit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/schedule"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/workkit"
)

// The tests of this file are scenarios of WorkKit, by their numbers.

var base = time.Date(2026, 3, 10, 13, 45, 30, 0, time.UTC)

func when(t *testing.T, text, cron string, score int64) {
	t.Helper()
	got, first, err := workkit.When(text, base)
	if err != nil || got != cron || first.UnixMilli() != score {
		t.Errorf("%s is %q at %d, %v, want %q at %d", text, got, first.UnixMilli(), err, cron, score)
	}
}

func TestW12In(t *testing.T) { when(t, "in 5 minutes", "2026 3 10 * 13 50 30", 1773150630000) }

func TestW13At(t *testing.T) { when(t, "7pm tomorrow", "2026 3 11 * 19 0 0", 1773255600000) }

// W09: what never comes again is not kept; what never comes is refused.
func TestW09NeverAgain(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.listen()
	w.put("one", `{"cron":"2013 * * * * * *","job":"#'some.ns/func-name","args":["last"]}`, time.Now())
	w.gets(`["last"]`)
	w.empty()
	if _, err := workkit.Add(t.Context(), w.Store, w.name, "cron7:2013 * * * * * *", fn); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "2013 has passed") {
		t.Errorf("adding what never comes: %v", err)
	}
	w.empty()
}

// W11: an entry that comes each second comes once in each, however soon it is put off.
func TestW11EachSecondOnce(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.listen()
	w.add("cron7:* * * * * * *")
	w.Until("it came three times", func() bool { return len(w.trees()) >= 3 })
	seen := map[string]bool{}
	for _, info := range w.trees() {
		due := w.contextOf(info)[workkit.ContextDue].(string)
		if at, err := time.Parse(time.RFC3339Nano, due); err != nil || at.Nanosecond() != 0 || seen[due] {
			t.Errorf("it came at %s, %v, which is no second, or came before", due, err)
		}
		seen[due] = true
	}
}

func TestW16AddNow(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.listen()
	a := w.add(workkit.Now, "tracy@domain.com", 7)
	if !a.New || a.Cron != schedule.Cron7Once(a.Due) {
		t.Errorf("added %+v", a)
	}
	w.gets(`["tracy@domain.com",7]`)
	w.empty()
	info := w.trees()[0]
	if info.Type != "some_ns_func_name" || info.Labels[workkit.LabelEntry] != a.ID || info.By != "workkit:"+w.name {
		t.Errorf("launched %+v", info)
	}
	if c := w.contextOf(info); c[workkit.ContextEntry] != a.ID {
		t.Errorf("the context of the message is %v", c)
	}
}

func TestW17Canonical(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`["Beep!"]`, ` [ "Beep!" ] `} {
		e := workkit.Entry{Args: []byte(args), Cron: "2014 3 * 0/2,3 9-17 * */5", Job: "#'clojure.core/println"}
		raw, err := e.Canonical()
		id, errID := e.ID()
		if want := `{"args":["Beep!"],"cron":"2014 3 * 0/2,3 9-17 * */5","job":"#'clojure.core/println"}`; err != nil || errID != nil || string(raw) != want {
			t.Errorf("canonical is %s, %v", raw, err)
		}
		if id != "8d1ea67747842d56fd5c06ba050885226d73bead" {
			t.Errorf("the ID is %s", id)
		}
	}
	html := workkit.Entry{Args: []byte(`["<&>",{"b":1.50,"a":12345678901234567890}]`), Job: "x"}
	if raw, err := html.Canonical(); err != nil || string(raw) != `{"args":["<&>",{"a":12345678901234567890,"b":1.50}],"cron":"","job":"x"}` {
		t.Errorf("canonical is %s, %v", raw, err)
	}
}

// W20: also while the job runs, until its end.
func TestW20Twice(t *testing.T) {
	w := newWorld(t)
	first := w.add("every day at 7pm", 1)
	score := w.Redis.ZScore(t.Context(), w.next(), `{"id":"`+first.ID+`"}`).Val()
	again := w.add("every day at 7pm", 1)
	if again.ID != first.ID || !first.New || again.New || w.Redis.HLen(t.Context(), w.jobs()).Val() != 1 || w.Redis.ZCard(t.Context(), w.next()).Val() != 1 {
		t.Errorf("added %+v, then %+v", first, again)
	}
	if now := w.Redis.ZScore(t.Context(), w.next(), `{"id":"`+first.ID+`"}`).Val(); now != score {
		t.Errorf("its score was %v and is %v", score, now)
	}
	w.Redis.Del(t.Context(), w.jobs(), w.next())

	w.engine(2)
	w.listen()
	payload := `{"args":["wait"],"cron":"2026 3 10 * 13 45 30","job":"#'some.ns/func-name"}`
	w.put("running", payload, time.Now())
	w.Until("it runs", func() bool { return len(w.trees()) == 1 && w.Redis.ZCard(t.Context(), w.next()).Val() == 0 })
	if w.Redis.HSetNX(t.Context(), w.jobs(), "running", payload).Val() {
		t.Fatal("a job that runs could be added anew")
	}
	w.Check(w.Client.At(w.trees()[0].ID).Write(t.Context(), "stop", "now"))
	w.empty()
	if n := len(w.trees()); n != 1 {
		t.Errorf("%d trees", n)
	}
}

func TestW21Published(t *testing.T) {
	w := newWorld(t)
	a := w.add("cron7:2126 1 1 * 0 0 0", "x")
	if got, want := w.cli("ZRANGE", w.next(), "0", "-1", "WITHSCORES"), `{"id":"`+a.ID+`"}`+"\n4922899200000"; got != want || len(a.ID) != 40 {
		t.Errorf("S:next is %q, want %q", got, want)
	}
	if got, want := w.cli("HGET", w.jobs(), a.ID), `{"args":["x"],"cron":"2126 1 1 * 0 0 0","job":"#'some.ns/func-name"}`; got != want {
		t.Errorf("S:jobs has %s, want %s", got, want)
	}
}

// A score that is no time is taken for the nearest one: what never comes does not keep the listener awake.
func TestScoresThatAreNoTimes(t *testing.T) {
	w := newWorld(t)
	kit, err := w.Store.WorkKit(w.name)
	w.Check(err)
	for score, want := range map[string]int{"inf": 9999, "1e19": 9999, "1e308": 9999, "-inf": 1970, "-1e19": 1970} {
		w.cli("ZADD", w.next(), score, `{"id":"x"}`)
		if _, first, err := kit.Head(t.Context()); err != nil || first.Year() != want {
			t.Errorf("%s: due %s, %v", score, first, err)
		}
		member := redisstore.WorkKitMember{Score: score}
		if at := member.Due(); at.Year() != want {
			t.Errorf("%s: due %s", score, at)
		}
	}
}

// An entry is removed with all that Weir knows of it, also while it runs for the last time; one that is not there is named.
func TestRemove(t *testing.T) {
	w := newWorld(t)
	a := w.add("every day at 7pm", 1)
	w.Check(workkit.Remove(t.Context(), w.Store, w.name, a.ID))
	if n := w.Redis.Exists(t.Context(), w.jobs(), w.next()).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if err := workkit.Remove(t.Context(), w.Store, w.name, a.ID); !errors.Is(err, job.ErrNotFound) || !strings.Contains(err.Error(), a.ID) {
		t.Errorf("removing it again: %v", err)
	}
	w.engine(2)
	w.listen()
	w.put("running", `{"args":["wait"],"cron":"2026 3 10 * 13 45 30","job":"#'some.ns/func-name"}`, time.Now())
	w.Until("it runs", func() bool { return len(w.trees()) == 1 && w.Redis.ZCard(t.Context(), w.next()).Val() == 0 })
	w.Check(workkit.Remove(t.Context(), w.Store, w.name, "running"))
	w.Check(w.Client.At(w.trees()[0].ID).Write(t.Context(), "stop", "now"))
	w.Until("the tree has ended", func() bool { return w.trees()[0].Status.Settled() })
	w.empty()
}

// W22: what redis-cli writes as published is run, and its extra fields stay.
func TestW22Foreign(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.listen()
	id := strings.Repeat("abc", 13) + "a"
	payload := `{"cron":"* * * * 0 0 0", "job":"some_ns_func_name", "args":[1, 2], "owner":"tracy", "x":{"y":[]}}`
	member := `{"id":"` + id + `","from":"cli"}`
	w.cli("HSET", w.jobs(), id, payload)
	w.cli("ZADD", w.next(), fmt.Sprint(time.Now().UnixMilli()), member)
	w.gets(`[1,2]`)
	if got := w.cli("HGET", w.jobs(), id); got != payload {
		t.Errorf("the entry is %s", got)
	}
	tomorrow := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	if got, want := w.cli("ZRANGE", w.next(), "0", "-1", "WITHSCORES"), fmt.Sprintf("%s\n%d", member, tomorrow.UnixMilli()); got != want {
		t.Errorf("S:next is %q, want %q", got, want)
	}
}

func TestW23NotYet(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.put("later", `{"cron":"","job":"some_ns_func_name","args":[]}`, time.Now().Add(time.Hour))
	before := w.cli("ZRANGE", w.next(), "0", "-1", "WITHSCORES")
	w.listen()
	w.put("now", `{"cron":"","job":"some_ns_func_name","args":["now"]}`, time.Now())
	w.gets(`["now"]`)
	w.Until("the other one is gone", func() bool { return w.Redis.HLen(t.Context(), w.jobs()).Val() == 1 })
	if after := w.cli("ZRANGE", w.next(), "0", "-1", "WITHSCORES"); after != before {
		t.Errorf("S:next was %q and is %q", before, after)
	}
}

// W26: a job that fails is recorded, comes again if it is to, and else is gone.
func TestW26Raises(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.listen()
	w.put("again", `{"cron":"* * * * 0 0 0","job":"some_ns_func_name","args":["fail"]}`, time.Now())
	w.put("once", `{"cron":"","job":"some_ns_func_name","args":["fail"]}`, time.Now())
	w.Until("both failed", func() bool {
		trees := w.trees()
		return len(trees) == 2 && !slices.ContainsFunc(trees, func(i *job.Info) bool { return i.Status != statemachine.Failed })
	})
	w.Until("the one is gone", func() bool { return !w.Redis.HExists(t.Context(), w.jobs(), "once").Val() })
	if !w.Redis.HExists(t.Context(), w.jobs(), "again").Val() || w.Redis.ZScore(t.Context(), w.next(), `{"id":"again"}`).Val() < float64(time.Now().UnixMilli()) {
		t.Error("the other one does not come again")
	}
	w.put("well", `{"cron":"","job":"some_ns_func_name","args":["well"]}`, time.Now())
	w.gets(`["well"]`)
}

// W27: 50 listeners share 1,000 jobs that are due, each of which runs once.
func TestW27Listeners(t *testing.T) {
	w := newWorld(t)
	w.engine(8)
	const due = 1000
	var want []string
	_, err := w.Redis.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		at := float64(time.Now().UnixMilli())
		for i := range due {
			id := fmt.Sprintf("%040d", i)
			p.HSet(t.Context(), w.jobs(), id, fmt.Sprintf(`{"args":[%d],"cron":"","job":"#'some.ns/func-name"}`, i))
			p.ZAdd(t.Context(), w.next(), redis.Z{Score: at, Member: `{"id":"` + id + `"}`})
			want = append(want, fmt.Sprintf("[%d]", i))
		}
		return nil
	})
	w.Check(err)
	for range 50 {
		w.listen()
	}
	w.empty()
	w.Until("all ran", func() bool { return len(w.got()) >= due })
	got := w.got()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d runs of %d jobs", len(got), due)
	}
}

// W29: what Weir adds for the same millisecond is launched in the order in which it was added; then comes, in the order of the members, what others did.
func TestW29FIFO(t *testing.T) {
	w := newWorld(t)
	at := time.Now().Add(8 * time.Second).Truncate(time.Second).UTC() // until then all must be there
	var want []string
	for i := range 30 {
		w.add("at:"+at.Format(time.RFC3339), i)
		want = append(want, fmt.Sprintf("[%d]", i))
	}
	for _, id := range []string{"b", "a"} {
		w.put(id, `{"job":"some_ns_func_name","args":["`+id+`"]}`, at)
	}
	want = append(want, `["a"]`, `["b"]`)
	w.engine(2)
	w.listen()
	w.gets(want...)
}

// The order holds up to the runs, if there is one shard, and one slot of one engine.
func TestW29FIFORuns(t *testing.T) {
	t.Parallel()
	w := worldAt(t, redistest.SharedRedis(t), 1)
	at := "at:" + time.Now().Add(8*time.Second).Truncate(time.Second).UTC().Format(time.RFC3339)
	for i := range cap(recorded) {
		_, err := workkit.Add(t.Context(), w.Store, w.name, at, "recorder", i)
		w.Check(err)
	}
	w.engine(1, &Recorder{})
	w.listen()
	for i := range cap(recorded) {
		if got, want := <-recorded, fmt.Sprintf("[%d]", i); got != want {
			t.Fatalf("run %d is of %s", i, got)
		}
	}
	w.empty()
}

// Nothing serves a schedule on a Redis Cluster, and it says so.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := enginetest.Open(t, redisstore.Config{URL: redistest.StartCluster(t).URL(), Namespace: redistest.Namespace(t), Shards: 4})
	if _, err := workkit.New(workkit.Config{Store: s, Schedules: []string{"app-tasks"}}); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), "Cluster") {
		t.Errorf("a listener on a cluster: %v", err)
	}
}
