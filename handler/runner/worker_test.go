package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/handler"
	"github.com/weirworks/weir/handler/runner"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/explain"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/journal"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// house is a namespace with a service of handlers.
type house struct {
	testing.TB
	store  *redisstore.Store
	client *client.Client
}

// newHouse starts one that ends with the test.
func newHouse(t testing.TB, handlers map[string]handler.Definition) *house {
	t.Helper()
	return newHouseOf(t, handlers, nil)
}

// newHouseOf does so with a pool of processes that change has changed.
func newHouseOf(t testing.TB, handlers map[string]handler.Definition, change func(*runner.Config)) *house {
	t.Helper()
	store := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t)})
	h := &house{TB: t, store: store, client: client.New(store)}
	for name, d := range handlers {
		h.set(name, d)
	}
	h.serve(change)
	return h
}

// serve starts the service.
func (h *house) serve(change func(*runner.Config)) {
	h.Helper()
	s, err := runner.NewService(runner.ServiceConfig{Store: h.store, Pool: newPool(h.TB, change), Engine: worker.Config{Logger: slog.New(slog.DiscardHandler)}})
	enginetest.Check(h, err)
	enginetest.Run(h, s.Run)
}

func (h *house) set(name string, d handler.Definition) {
	h.Helper()
	_, err := handler.Set(context.Background(), h.store, name, d)
	enginetest.Check(h, err)
}

// add makes a job for a payload.
func (h *house) add(name, payload string) *client.Handle {
	h.Helper()
	handle, err := h.client.Create(context.Background(), job.New{Type: name})
	enginetest.Check(h, err)
	enginetest.Check(h, handle.Write(context.Background(), "in", payload))
	return handle
}

// until waits for a condition.
func (h *house) until(what string, ok func() bool) {
	h.Helper()
	enginetest.Within(h, 2*enginetest.Patience, what, ok)
}

// ended waits until a job has settled.
func (h *house) ended(handle *client.Handle) *job.Info {
	h.Helper()
	var info *job.Info
	h.until("the job ends", func() bool {
		i, err := handle.Info(context.Background())
		enginetest.Check(h, err)
		info = i
		return i.Status == job.Completed || i.Status == job.Failed
	})
	return info
}

// outcome is what is kept of a job.
func (h *house) outcome(handle *client.Handle) (o runner.Outcome) {
	h.Helper()
	state, err := handle.State(context.Background(), runner.StateResult)
	enginetest.Check(h, err)
	enginetest.Check(h, json.Unmarshal(state[runner.StateResult], &o))
	return o
}

// log is what the log of a job has, in lines.
func (h *house) log(handle *client.Handle) (text string) {
	h.Helper()
	entries, err := handle.Logs(context.Background(), 100)
	enginetest.Check(h, err)
	for _, e := range entries {
		var line string
		enginetest.Check(h, json.Unmarshal(e.Entry, &line))
		text += line + "\n"
	}
	return text
}

// of returns the jobs of a type.
func (h *house) of(name string) (all []*client.Handle) {
	h.Helper()
	for info, err := range h.client.Jobs(context.Background(), job.Filter{Type: name}) {
		enginetest.Check(h, err)
		handle, err := h.client.Find(context.Background(), string(info.ID))
		enginetest.Check(h, err)
		all = append(all, handle)
	}
	return all
}

func js(body string, o ...handler.Options) handler.Definition {
	d := handler.Definition{Lang: handler.Node, Body: body}
	if len(o) > 0 {
		d.Options = o[0]
	}
	return d
}

// quick are options by which a payload is tried again soon.
func quick(tries int) handler.Options {
	return handler.Options{Tries: tries, Delay: handler.Duration(10 * time.Millisecond), MaxDelay: handler.Duration(20 * time.Millisecond)}
}

func TestM09M11RetriesAndEnds(t *testing.T) {
	t.Parallel()
	short := quick(0)
	short.Total = handler.Duration(300 * time.Millisecond)
	h := newHouse(t, map[string]handler.Definition{
		"ok": js("return {n: 1}"), "failed": js("job.status = 404; job.error = 'no such order'"), "later": js("if (job.try < 3) job.retry('busy'); return job.try", quick(0)),
		"error": js("if (job.try < 3) throw new Error('oh'); return job.try", quick(0)),
		"count": js("job.retry('busy')", quick(4)), "time": js("job.retry('busy')", short),
	})
	for name, want := range map[string]string{"ok": `ok 200 {"n":1} `, "failed": "failed 404  no such order", "later": "ok 200 3 ", "error": "ok 200 3 "} {
		handle := h.add(name, "x")
		info := h.ended(handle)
		o := h.outcome(handle)
		if got := fmt.Sprint(o.Code, " ", o.Status, " ", string(o.Result), " ", o.Error); got != want || info.Status != job.Completed {
			t.Errorf("%s: %s, %s; want %s, completed", name, got, info.Status, want)
		}
	}
	for name, want := range map[string]string{"count": "tried 4 times, as often as it may", "time": "as long as it may"} {
		if info := h.ended(h.add(name, "x")); info.Status != job.Failed || !strings.Contains(info.Reason, want) || !strings.Contains(info.Reason, "busy") {
			t.Errorf("%s: %s, %q; want %q", name, info.Status, info.Reason, want)
		} else if e := handler.EntryOf(info); e.Code != handler.Retry || e.Status != 199 {
			t.Errorf("%s: its entry is %+v, want retry 199", name, e)
		}
	}
}

// A version that somebody sets in place of a client keeps that the types which its lines name are the client's.
func TestVersionsKeepTheirClient(t *testing.T) {
	t.Parallel()
	store := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t)})
	for n, d := range []handler.Definition{{Lang: handler.Node, Body: "return 1", Prefix: "acme-"}, {Lang: handler.Node, Body: "return 2"}} {
		version, err := handler.Set(t.Context(), store, "acme-mail", d)
		enginetest.Check(t, err)
		now, err := handler.Get(t.Context(), store, "acme-mail", version)
		enginetest.Check(t, err)
		if now.Definition.Prefix != "acme-" {
			t.Errorf("version %d has prefix %q", n+1, now.Definition.Prefix)
		}
	}
}

// Of several payloads that a job gets at once the result of the last one is kept, and the log says which have failed.
func TestSeveralPayloadsOfAJob(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]handler.Definition{"odd": js(`if (payload % 2) job.fail("odd " + payload); return payload`)})
	one, err := h.client.Create(t.Context(), job.New{Type: "odd"})
	enginetest.Check(t, err)
	enginetest.Check(t, one.Write(t.Context(), "in", 2))
	h.until("it has a result", func() bool {
		state, err := one.State(t.Context(), runner.StateResult)
		enginetest.Check(t, err)
		return len(state) > 0
	})
	enginetest.Check(t, one.Write(t.Context(), "in", 1, 4, 3))
	h.until("its last payload has failed", func() bool { return h.outcome(one).Code == handler.Failed })
	if o := h.outcome(one); o.Status != 400 || !strings.Contains(o.Error, "odd 3") || o.Result != nil {
		t.Errorf("outcome %+v", o)
	}
	h.set("last", js(`if (payload == 2) throw new Error("no twos"); return 1`, quick(1)))
	two, err := h.client.Create(t.Context(), job.New{Type: "last"})
	enginetest.Check(t, err)
	enginetest.Check(t, two.Write(t.Context(), "in", 1, 2, 3))
	if info := h.ended(two); !strings.Contains(info.Reason, "no twos (body:1) (payload 2 of 3)") || !strings.HasPrefix(info.Reason, "tried once") {
		t.Errorf("reason %q", info.Reason)
	}
	why, err := explain.Ask(t.Context(), h.store, two, "two", false)
	enginetest.Check(t, err)
	if last := why[len(why)-1]; !strings.Contains(last.Text, "the 2nd of 3 messages at port in: 2;") || !strings.Contains(last.Command, "weir read two in -n 2 ") {
		t.Errorf("why: %+v", why)
	}
	entries, err := one.Logs(t.Context(), 20)
	enginetest.Check(t, err)
	raw, err := json.Marshal(entries)
	enginetest.Check(t, err)
	for _, want := range []string{"payload 1 of 3: failed 400: odd 1", "payload 3 of 3: failed 400: odd 3"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the log lacks %q: %s", want, raw)
		}
	}
}

func TestM12LinesBecomeJobs(t *testing.T) {
	t.Parallel()
	sender := js("console.log('J: type2|hello'); console.log('J:x|y'); console.log(' J: x|y'); console.log('j: x|y'); if (payload == 'fail') job.status = 400; if (payload == 'retry' && job.try == 1) job.retry('no')", quick(0))
	sender.Prefix = "acme-"
	h := newHouse(t, map[string]handler.Definition{"acme-type1": sender, "acme-type2": js("return payload")})
	for n, payload := range []string{"ok", "fail", "retry"} {
		handle := h.add("acme-type1", payload)
		defer func() { // the job says where it came from
			n := 0
			for info, err := range h.client.Jobs(t.Context(), job.Filter{Labels: map[string]string{runner.LabelFrom: string(handle.ID())}}) {
				enginetest.Check(h, err)
				if n++; info.Type != "acme-type2" {
					t.Errorf("%s follows", info.Type)
				}
			}
			if n != 1 {
				t.Errorf("%d jobs follow", n)
			}
		}()
		h.ended(handle)
		h.until("one more job of type2", func() bool { return len(h.of("acme-type2")) >= n+1 })
		if n := len(h.of("acme-type2")); n != map[string]int{"ok": 1, "fail": 2, "retry": 3}[payload] {
			t.Errorf("after %s: %d jobs of type2", payload, n)
		}
		logs, err := handle.Logs(t.Context(), 100)
		enginetest.Check(h, err)
		text := ""
		for _, entry := range logs {
			text += string(entry.Entry) + " "
		}
		if !strings.Contains(text, "J:x|y") || !strings.Contains(text, "j: x|y") || strings.Contains(text, "type2") {
			t.Errorf("log: %s", text)
		}
	}
	for _, handle := range h.of("acme-type2") {
		h.ended(handle)
		if o := h.outcome(handle); string(o.Result) != `"hello"` {
			t.Errorf("payload %s", o.Result)
		}
	}
}

func TestM20NewestVersion(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]handler.Definition{"t": js("return 1")})
	h.ended(h.add("t", "x"))
	h.set("t", js("return 2"))
	got, err := handler.Get(t.Context(), h.store, "t", 0)
	if err != nil || got.Version != 2 || got.Definition.Body != "return 2" {
		t.Fatalf("%+v, %v", got, err)
	}
	h.until("the new version runs", func() bool {
		handle := h.add("t", "x")
		h.ended(handle)
		return string(h.outcome(handle).Result) == "2"
	})
	enginetest.Check(h, handler.Delete(t.Context(), h.store, "t"))
	if _, err := handler.Get(t.Context(), h.store, "t", 0); err == nil {
		t.Error("it is still there")
	}
}

// TestM21JobsWithoutAHandler are tried again until there is one, or their time is up.
func TestM21JobsWithoutAHandler(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]handler.Definition{"latter": js("return 1")})
	enginetest.Check(h, handler.Expect(t.Context(), h.store, "later"))
	handle := h.add("later", "x")
	h.until("it has been tried", func() bool {
		info, err := handle.Info(t.Context())
		enginetest.Check(h, err)
		failures, err := handle.Failures(t.Context())
		enginetest.Check(h, err)
		return info.Tries > 0 && strings.Contains(failures[0].Error, `the type has no handler now: weir handler set makes one; did you mean "latter"?`)
	})
	enginetest.Check(t, handler.Expect(t.Context(), h.store, "acme-latter"))
	other := h.add("acme-latter", "x")
	h.until("it is told that a client has its own", func() bool {
		failures, err := other.Failures(t.Context())
		enginetest.Check(t, err)
		return len(failures) > 0 && strings.Contains(failures[0].Error, `; there is one of "latter": that of the client "acme" is of "acme-latter"`)
	})
	h.set("later", js("return payload"))
	if info := h.ended(handle); info.Status != job.Completed || string(h.outcome(handle).Result) != `"x"` {
		t.Errorf("%s", info.Status)
	}
}

// Once there is a handler for them, payloads that wait for one run, whenever their next try is.
func TestHandlerThatComesLate(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]handler.Definition{"latter": js("return 1")})
	enginetest.Check(h, handler.Expect(t.Context(), h.store, "later"))
	plans := journal.Plans{Types: h.store}
	plan, err := plans.Plan(t.Context(), "later", []byte(`"x"`))
	enginetest.Check(h, err)
	plan.Nodes[0].Options.Backoff = time.Hour
	handle, err := h.client.Start(t.Context(), plan)
	enginetest.Check(h, err)
	h.until("it has been tried", func() bool {
		info, err := handle.Info(t.Context())
		enginetest.Check(h, err)
		return info.Status == statemachine.Scheduled
	})
	h.set("later", js("return payload"))
	if info := h.ended(handle); info.Status != job.Completed {
		t.Errorf("%s", info.Status)
	}
}

func TestM27ResultsFollow(t *testing.T) {
	t.Parallel()
	then := handler.Options{Then: "type2"}
	h := newHouse(t, map[string]handler.Definition{
		"ok": js("return 'R'", then), "failed": js("job.status = 400; return 'R'", then),
		"large": js("return 'é'.repeat((16 << 19) - 1)", then), "over": js("return 'x'.repeat((16 << 20) - 1)", then),
		"type2": js("return [payload.length, payload.slice(0, 2)]"),
	})
	h.ended(h.add("failed", "x"))
	over := h.add("over", "x")
	h.ended(over)
	if o := h.outcome(over); o.Status != 413 || o.Code != handler.Failed || o.Result != nil || !strings.Contains(o.Error, "the result has 16777217 bytes, at most 16777216 are kept") {
		t.Errorf("16 MiB and a byte: %+v", o)
	}
	if n := len(h.of("type2")); n != 0 {
		t.Fatalf("%d jobs follow results that failed", n)
	}
	h.ended(h.add("ok", "x"))
	large := h.add("large", "x")
	if info := h.ended(large); info.Status != job.Completed {
		t.Fatalf("16 MiB: %s", info.Reason)
	}
	if o := h.outcome(large); o.Bytes != 16<<20 || o.Large == nil {
		t.Errorf("16 MiB: %+v", o)
	}
	h.until("two jobs follow", func() bool { return len(h.of("type2")) == 2 })
	var got []string
	for _, handle := range h.of("type2") {
		h.ended(handle)
		got = append(got, string(h.outcome(handle).Result))
	}
	slices.Sort(got)
	if want := []string{`[1,"R"]`, `[8388607,"éé"]`}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("results %s, want %s", got, want)
	}
}

// TestHandlersInAGraph wires handlers of two languages. Payloads that fail go to the port err.
func TestHandlersInAGraph(t *testing.T) {
	t.Parallel()
	h := newHouse(t, map[string]handler.Definition{
		"double": js("if (payload < 0) job.fail('negative'); return 2 * payload"),
		"add":    {Lang: handler.Python, Body: "return payload + 1"},
	})
	g := graph.New("numbers")
	for _, name := range []string{"double", "add"} {
		info, err := h.store.Type(t.Context(), job.DefaultQueue, name)
		enginetest.Check(h, err)
		w, err := job.NewRegistered(info, nil)
		enginetest.Check(h, err)
		graph.AddWorker(g, name, w)
	}
	graph.WireInput(g, "in", "double.in")
	graph.Wire(g, "double.out", "add.in")
	graph.WireExport(g, "out", "add.out")
	graph.WireExport(g, "err", "double.err")
	top, err := h.client.Start(t.Context(), g)
	enginetest.Check(h, err)
	const many = 500
	for n := range many {
		enginetest.Check(h, top.Write(t.Context(), "in", n-1))
	}
	enginetest.Check(h, top.Close(t.Context(), "in"))
	if info := h.ended(top); info.Status != job.Completed {
		t.Fatalf("%s: %s", info.Status, info.Reason)
	}
	for n := range many - 1 {
		var got int
		if ok, err := top.Read(t.Context(), "out", &got); err != nil || !ok || got != 2*n+1 {
			t.Fatalf("message %d is %d, %v, %v", n, got, ok, err)
		}
	}
	var bad runner.Rejected
	if ok, err := top.Read(t.Context(), "err", &bad); err != nil || !ok || bad.Status != 400 || bad.Error == "" || string(bad.Data) != "-1" {
		t.Errorf("on err: %+v, %v, %v", bad, ok, err)
	}
}

// A job's own time and delay hold, and what it waits for a process does not count.
func TestOptionsOfAJob(t *testing.T) {
	t.Parallel()
	store := enginetest.Open(t, redisstore.Config{URL: redistest.SharedRedis(t), Namespace: redistest.Namespace(t)})
	h := &house{TB: t, store: store, client: client.New(store)}
	h.set("slow", js("await new Promise(r => setTimeout(r, Number(payload)))", handler.Options{Batch: 1}))
	h.set("fails", js("throw new Error('no')"))
	pool := newPool(t, func(c *runner.Config) { c.Processes = 1 })
	s, err := runner.NewService(runner.ServiceConfig{Store: store, Pool: pool, Engine: worker.Config{Logger: slog.New(slog.DiscardHandler)}})
	enginetest.Check(t, err)
	enginetest.Run(t, s.Run)
	start := func(name, payload string, o job.RunOptions) *client.Handle {
		plan, err := h.client.PlanNew(t.Context(), job.New{Type: name})
		enginetest.Check(t, err)
		handle, err := h.client.Start(t.Context(), plan, job.WithRunOptions(o))
		enginetest.Check(t, err)
		enginetest.Check(t, handle.Write(t.Context(), "in", payload))
		return handle
	}
	var waits []*client.Handle
	for range 12 { // 6 s in all
		waits = append(waits, start("slow", "500", job.RunOptions{Timeout: 5 * time.Second, Tries: 1}))
	}
	late := start("slow", "60000", job.RunOptions{Timeout: 300 * time.Millisecond, Tries: 1})
	for _, w := range waits {
		if info := h.ended(w); info.Status != job.Completed {
			t.Errorf("one that waited for its process: %s, %s", info.Status, info.Reason)
		}
	}
	if info := h.ended(late); info.Status != job.Failed || !strings.Contains(info.Reason, "it took longer than 300ms") {
		t.Errorf("one that takes too long: %s, %s", info.Status, info.Reason)
	}
	twice := start("fails", "x", job.RunOptions{Tries: 2, Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
	if info := h.ended(twice); info.Status != job.Failed || info.Tries != 2 {
		t.Errorf("one with two tries: %s after %d", info.Status, info.Tries)
	}
	again := start("fails", "x", job.RunOptions{Tries: 2, Backoff: time.Hour, MaxBackoff: time.Hour})
	enginetest.Until(t, "the first try has failed", func() bool {
		info, err := again.Info(t.Context())
		enginetest.Check(t, err)
		return info.Status == job.Scheduled && time.Until(info.Next) > 30*time.Minute // the handler's own delays are 1 s, 2 s, …
	})
}

// Payloads that wait for a process are left to other programs, but for about as many as keep the processes of this one at it.
func TestSlowPayloadsAreLeftToOthers(t *testing.T) {
	t.Parallel()
	slow := js("await new Promise((done) => setTimeout(done, 400)); return 1")
	h := newHouseOf(t, map[string]handler.Definition{"t": slow}, func(c *runner.Config) { c.Processes = 4 })
	const n = 40
	for range n {
		h.add("t", "1")
	}
	count := func(status statemachine.Status) int {
		all, err := h.client.Count(context.Background(), job.Filter{Type: "t", Status: []statemachine.Status{status}})
		enginetest.Check(h, err)
		return all
	}
	most, later := 0, 0 // runs at once, at all and once it is known how long a payload takes
	h.until("most payloads have run", func() bool {
		running, completed := count(statemachine.Running), count(statemachine.Completed)
		most = max(most, running)
		if completed > n/2 {
			later = max(later, running)
		}
		return completed > n-8
	})
	if most < 2 || most > 16 || later > 8 {
		t.Errorf("%d payloads were held at once, and %d of the last", most, later)
	}
}
