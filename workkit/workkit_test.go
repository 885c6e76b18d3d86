package workkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/worker"
	"github.com/weirworks/weir/workkit"
)

func (w *world) list() []workkit.Status {
	w.Helper()
	all, err := workkit.List(w.Context(), w.Store, w.name)
	w.Check(err)
	return all
}

// only wants one entry, and returns it.
func (w *world) only() workkit.Status {
	w.Helper()
	all := w.list()
	if len(all) != 1 {
		w.Fatalf("the schedule has %+v", all)
	}
	return all[0]
}

func TestType(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"#'some.ns/func-name": "some_ns_func_name", "report": "report", "Mail.Send": "Mail.Send",
		"(fn [] (System/exit 0))": "(fn [] (System/exit 0))", "#'": "",
	} {
		e := workkit.Entry{Job: text}
		if got := e.Type(); got != want {
			t.Errorf("%s names %q, want %q", text, got, want)
		}
	}
}

// Numbers takes numbers, Portless nothing.
type (
	Numbers  struct{ In port.In[int] }
	Portless struct{ Out port.Out[int] }
)

func (*Numbers) JobType() string                         { return "numbers" }
func (*Numbers) Run(context.Context, *worker.Run) error  { return nil }
func (*Portless) JobType() string                        { return "portless" }
func (*Portless) Run(context.Context, *worker.Run) error { return nil }

// An entry that might not be launched is added with a warning, as what it needs may come later.
func TestAddWarns(t *testing.T) {
	w := newWorld(t)
	if a := w.add("every day at 7pm", 1); len(a.Warnings) != 2 || !strings.Contains(a.Warnings[0], "no worker has served it") || !strings.Contains(a.Warnings[1], "no engine has registered it") {
		t.Errorf("warnings: %q", a.Warnings)
	}
	w.engine(2)
	w.Until("the type is registered", func() bool { return len(w.add("every day at 7pm", 2).Warnings) == 0 })
}

// What cannot be launched stays as it is, is recorded with the reason, and keeps nothing else from running.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.engine(2, &Numbers{}, &Portless{})
	w.listen()
	refused := map[string]struct{ payload, why string }{
		"unknown":  {`{"cron":"","job":"#'evil/rm","args":["-rf"]}`, `"evil_rm": no engine has registered it`},
		"code":     {`{"cron":"","job":"(fn [] (launch))","args":[]}`, "no engine has registered it"},
		"text":     {`beep`, "not a JSON object"},
		"args":     {`{"cron":"","job":"some_ns_func_name","args":{"a":1}}`, "args are not an array"},
		"jobless":  {`{"cron":"","args":[]}`, "it has no job"},
		"cron":     {`{"cron":"61 * *","job":"some_ns_func_name"}`, "it has 3 fields: use 7"},
		"kind":     {`{"cron":"","job":"numbers","args":["x"]}`, `["x"] is not a whole number: the In port "in" of type "numbers" takes nothing else`},
		"portless": {`{"cron":"","job":"portless","args":["x"]}`, `type "portless" has no In port that the args ["x"] could go to`},
		"large":    {`{"cron":"","job":"some_ns_func_name","args":["` + strings.Repeat("x", job.MaxLaunch) + `"]}`, "at most"},
	}
	for id, c := range refused {
		w.put(id, c.payload, time.Now())
	}
	for id, c := range refused {
		w.Until("why "+id+" is refused is recorded", func() bool { return w.recorded(id) != "" })
		if text := strings.ReplaceAll(w.recorded(id), `\"`, `"`); !strings.Contains(text, c.why) {
			t.Errorf("%s is recorded as %s", id, text)
		}
	}
	w.put("well", `{"job":"some_ns_func_name"}`, time.Now())
	w.Until("another one runs", func() bool { return !w.Redis.HExists(t.Context(), w.jobs(), "well").Val() })
	for _, s := range w.list() {
		if c := refused[s.ID]; s.State != workkit.Refused || !strings.Contains(s.Why, c.why) {
			t.Errorf("%s is %s: %s", s.ID, s.State, s.Why)
		}
		if got := w.Redis.HGet(t.Context(), w.jobs(), s.ID).Val(); got != refused[s.ID].payload {
			t.Errorf("%s became %.90s", s.ID, got)
		}
	}
	w.Redis.Del(t.Context(), w.jobs(), w.next())
	odd := []string{"beep", `{"id":""}`, `{"id":"a b"}`, `[]`}
	for _, member := range odd {
		w.Check(w.Redis.ZAdd(t.Context(), w.next(), redis.Z{Score: 1, Member: member}).Err())
	}
	for _, member := range odd {
		w.Until(member+" is recorded", func() bool { return w.recorded(member) != "" })
		if w.Redis.ZScore(t.Context(), w.next(), member).Val() != 1 {
			t.Errorf("the member %s is gone", member)
		}
	}
}

// recorded is what is recorded of an entry that was refused.
func (w *world) recorded(id string) string {
	return w.Redis.HGet(w.Context(), "weir:{"+w.Namespace+"}:workkit:"+w.name+":refused", id).Val()
}

// An entry whose type is registered later runs then.
func TestRegisteredLater(t *testing.T) {
	w := newWorld(t)
	w.listen()
	w.add(workkit.Now, "patience")
	w.Until("it is recorded", func() bool { return w.recorded(w.only().ID) != "" })
	id := w.only().ID
	w.engine(2)
	w.gets(`["patience"]`)
	w.empty()
	if text := w.recorded(id); text != "" {
		t.Errorf("it ran, and is recorded as %s", text)
	}
}

// A member whose entry somebody has taken away is dropped, but not before the entry may have come: whatever time the member has.
func TestOrphans(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.cli("ZADD", w.next(), "5", `{"id":"late"}`, "6", `{"id":"orphan"}`)
	l, err := workkit.New(workkit.Config{Store: w.Store, Schedules: []string{w.name}, Logger: slog.New(slog.DiscardHandler)})
	w.Check(err)
	l.Impatient()
	enginetest.Run(w, l.Run)
	time.Sleep(2 * time.Second) // it has looked at them
	if n := w.Redis.ZCard(t.Context(), w.next()).Val(); n != 2 {
		t.Fatalf("%d members are left before their entries may have come", n)
	}
	w.cli("HSET", w.jobs(), "late", `{"args":["late"],"cron":"","job":"some_ns_func_name"}`)
	w.gets(`["late"]`)
	w.empty() // the other one is gone
}

// An entry is found by its ID, however its member is written, and removed with all members that it has; of two that are due at one
// time one goes.
func TestSpellings(t *testing.T) {
	w := newWorld(t)
	far := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	w.cli("HSET", w.jobs(), "dup", `{"args":["dup"],"cron":"* * * * * * */2","job":"some_ns_func_name"}`)
	w.cli("ZADD", w.next(), far, `{"id": "dup"}`)
	if all := w.list(); len(all) != 1 || all[0].State != workkit.Scheduled || all[0].Next == nil || strconv.FormatInt(all[0].Next.UnixMilli(), 10) != far {
		t.Errorf("it is listed as %+v", all)
	}
	w.cli("ZADD", w.next(), far, `{"id":"dup","prio":5}`)
	w.Check(workkit.Remove(t.Context(), w.Store, w.name, "dup"))
	w.empty()

	w.engine(2)
	w.cli("HSET", w.jobs(), "dup", `{"args":["dup"],"cron":"* * * * * * */2","job":"some_ns_func_name"}`)
	w.cli("ZADD", w.next(), "1000", `{"id": "dup"}`, "1000", `{"id":"dup"}`)
	w.listen()
	w.Until("it ran several times", func() bool { return len(w.trees()) >= 4 })
	due := map[string]int{}
	for _, info := range w.trees() {
		due[fmt.Sprint(w.contextOf(info)[workkit.ContextDue])]++
	}
	for at, n := range due {
		if n > 1 {
			t.Errorf("it ran %d times at %s", n, at)
		}
	}
	if n := w.Redis.ZCard(t.Context(), w.next()).Val(); n != 1 {
		t.Errorf("%d members are left", n)
	}
}

// A reply that is lost, and the repeat of the call, move nothing twice.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	plain := redistest.SharedRedis(t)
	u, err := url.Parse(plain)
	enginetest.Check(t, err)
	proxy := redistest.StartProxy(t, u.Host)
	w := worldAt(t, proxy.URL(), 4)
	w.engine(2)
	for _, script := range []string{"workkit_move", "workkit_add", "workkit_due", "mail_apply"} {
		before := proxy.Dropped()
		proxy.DropReplies(2, script)
		if script == "workkit_move" {
			w.listen()
		}
		w.add(workkit.Now, script)
		w.Until("replies of "+script+" are lost", func() bool { return proxy.Dropped() >= before+2 })
		w.empty()
	}
	w.Until("all ran", func() bool { return len(w.got()) >= 4 })
	w.gets(`["workkit_move"]`, `["workkit_add"]`, `["workkit_due"]`, `["mail_apply"]`)
}

// A schedule whose keys somebody has damaged harms nothing else, and is served when they are whole again.
func TestDamaged(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	var told logs
	other := "other-" + w.name
	l, err := workkit.New(workkit.Config{Store: w.Store, Schedules: []string{w.name, other}, Logger: slog.New(slog.NewTextHandler(&told, nil))})
	w.Check(err)
	w.Check(w.Redis.Set(t.Context(), w.next(), "x", 0).Err())
	enginetest.Run(w, l.Run)
	w.Until("it is logged", func() bool { return strings.Contains(told.String(), "WRONGTYPE") })
	_, err = workkit.Add(t.Context(), w.Store, other, workkit.Now, fn, "other")
	w.Check(err)
	w.Until("the other one is served", func() bool { return w.Redis.Exists(t.Context(), other+":jobs").Val() == 0 })
	w.Check(w.Redis.Del(t.Context(), w.next()).Err())
	w.add(workkit.Now, "whole")
	w.gets(`["whole"]`)
	w.Until("it is logged", func() bool { return strings.Contains(told.String(), "served again") })
	if n := strings.Count(told.String(), "WRONGTYPE"); n != 1 {
		t.Errorf("it is logged %d times", n)
	}
}

// logs keep what is logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Entries say what they do.
func TestList(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.add("every weekday at 9am", "a")
	if s := w.only(); s.State != workkit.Scheduled || s.Cron != "* * * 1-5 9 0 0" || s.Next == nil || s.Type != "some_ns_func_name" || string(s.Args) != `["a"]` || s.Why != "" {
		t.Errorf("scheduled: %+v", s)
	}
	w.put("strange", `{"cron":"* * * * 0 0 0","job":"#'not/here"}`, time.Now().Add(time.Minute))
	if s := w.list()[0]; s.ID != "strange" || s.State != workkit.Scheduled || !strings.Contains(s.Why, "not_here") {
		t.Errorf("one of an unknown type: %+v", s)
	}
	w.Redis.Del(t.Context(), w.jobs(), w.next())

	w.put("now", `{"job":"some_ns_func_name","args":["wait"]}`, time.Now())
	if s := w.only(); s.State != workkit.Due {
		t.Errorf("due: %+v", s)
	}
	w.listen()
	w.Until("it runs", func() bool { return w.only().State == workkit.Running && len(w.trees()) == 1 }) // it is taken before its tree is created
	s := w.only()
	if s.Tree != w.trees()[0].ID || s.Next != nil {
		t.Errorf("running: %+v", s)
	}
	w.Check(w.Client.At(s.Tree).Terminate(t.Context()))
	w.empty()
	w.Check(w.Redis.HSet(t.Context(), w.jobs(), "lost", `{"job":"some_ns_func_name"}`).Err())
	if s := w.only(); s.State != workkit.Taken {
		t.Errorf("taken: %+v", s)
	}
}

func TestAddRefused(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ when, job, want string }{
		{"every 7 seconds", fn, "divides"},
		{"repeat:FINISHED, +1 HOUR", fn, "cannot say"},
		{"61 * * * *", fn, "minute"},
		{"soon", fn, "not understood"},
		{workkit.Now, "", "names no job"},
		{"at:2020-01-01", fn, "has passed"},
	} {
		if a, err := workkit.Add(t.Context(), w.Store, w.name, c.when, c.job); !errors.Is(err, job.ErrConfig) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("adding %q, %q: %+v, %v", c.when, c.job, a, err)
		}
	}
	if _, err := workkit.Add(t.Context(), w.Store, w.name, "", fn, func() {}); !errors.Is(err, job.ErrConfig) {
		t.Errorf("adding a function as an argument: %v", err)
	}
	if _, err := workkit.Add(t.Context(), w.Store, "a b", "", fn); !errors.Is(err, job.ErrName) {
		t.Errorf("adding to a b: %v", err)
	}
	if _, err := workkit.New(workkit.Config{Store: w.Store}); !errors.Is(err, job.ErrConfig) {
		t.Errorf("a listener of nothing: %v", err)
	}
	w.empty()
}

// An idle listener costs at most 10 commands a second.
func TestIdle(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	w := worldAt(t, server.URL(), 4)
	w.add("every day at 9am")
	w.listen()
	time.Sleep(1500 * time.Millisecond) // what it does at first
	before := commands(w)
	const looked = 4 * time.Second
	time.Sleep(looked) // what is counted is what happens meanwhile
	perSecond := float64(commands(w)-before-1) / looked.Seconds()
	t.Logf("%.1f commands a second", perSecond)
	if perSecond > 10 {
		t.Errorf("%.1f commands a second", perSecond)
	}
}

// commands is how many commands clients have sent to the server.
func commands(w *world) (n int) {
	w.Helper()
	stats := w.Redis.Info(w.Context(), "stats").Val()
	_, rest, _ := strings.Cut(stats, "total_commands_processed:")
	_, err := fmt.Sscan(rest, &n)
	w.Check(err)
	return n
}

// Two namespaces may serve one schedule: each entry goes to one of them.
func TestTwoNamespaces(t *testing.T) {
	w := newWorld(t)
	w.engine(2)
	w.listen()
	two := worldAt(t, w.URL, 4)
	two.name = w.name
	two.engine(2)
	two.listen()
	const all = 200
	for i := range all {
		w.put(fmt.Sprint(i), fmt.Sprintf(`{"job":"some_ns_func_name","args":[%d]}`, i), time.Now())
	}
	w.empty()
	seen := map[string]bool{}
	for _, message := range append(w.got(), two.got()...) {
		if seen[message] {
			t.Errorf("%s ran twice", message)
		}
		seen[message] = true
	}
	if len(seen) != all {
		t.Errorf("%d of %d ran", len(seen), all)
	}
}

// A job of an encrypted namespace gets what others wrote in plain.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	w := worldAt(t, redistest.SharedRedis(t), 4)
	s := enginetest.Open(w, redisstore.Config{URL: w.URL, Namespace: redistest.Namespace(t), Shards: 4, Codec: rot{}})
	w.Store, w.Client = s, client.New(s)
	w.engine(2)
	w.listen()
	w.put("1", `{"job":"some_ns_func_name","args":["plain"]}`, time.Now())
	w.gets(`["plain"]`)
	w.empty()
}

// rot is a codec that hides nothing.
type rot struct{}

func (rot) Encode(_ job.Place, plain []byte) ([]byte, error) {
	return append([]byte("rot:"), plain...), nil
}

func (rot) Decode(_ job.Place, sealed []byte) ([]byte, error) {
	return bytes.TrimPrefix(sealed, []byte("rot:")), nil
}
