package encrypt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/encrypt"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
	"github.com/weirworks/weir/worker"
)

// marker is in all data of the tests, and must be nowhere in Redis.
const marker = "MARKER"

// bench is a namespace with an engine or none.
type bench struct {
	*enginetest.Env
	log strings.Builder
}

// newBench makes one on a Redis of its own. A test that fails says what is in Redis and in the log.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	b := &bench{Env: enginetest.New(t, redisstore.Config{URL: redistest.Start(t).URL(), Shards: 2})}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\n%.3000s", b.log.String(), b.stored())
		}
	})
	return b
}

// open opens the namespace with a codec, nil for none.
func (b *bench) open(c job.Codec) *redisstore.Store {
	b.Helper()
	return enginetest.Open(b, redisstore.Config{URL: b.URL, Namespace: b.Namespace, Codec: c})
}

// serve runs an engine until the test, or stop, ends it.
func (b *bench) serve(s *redisstore.Store) (stop func()) {
	b.Helper()
	return b.Serve(worker.Config{
		Store: s, Workers: []worker.Worker{&stage{}, &parent{}, &broken{}}, Concurrency: 2,
		Logger: slog.New(slog.NewTextHandler(&b.log, nil)),
	}).Stop
}

// stored is all that is in Redis, with the names of the keys.
func (b *bench) stored() string {
	b.Helper()
	ctx := b.Ctx
	keys, err := b.Redis.Keys(ctx, "*").Result()
	b.Check(err)
	var all strings.Builder
	for _, k := range keys {
		kind, err := b.Redis.Type(ctx, k).Result()
		b.Check(err)
		var v any
		switch kind {
		case "hash":
			v, err = b.Redis.HGetAll(ctx, k).Result()
		case "list":
			v, err = b.Redis.LRange(ctx, k, 0, -1).Result()
		case "set":
			v, err = b.Redis.SMembers(ctx, k).Result()
		case "zset":
			v, err = b.Redis.ZRange(ctx, k, 0, -1).Result()
		case "stream":
			v, err = b.Redis.XRange(ctx, k, "-", "+").Result()
		case "string":
			v, err = b.Redis.Get(ctx, k).Result()
		case "none": // it went meanwhile
		default:
			b.Fatalf("key %s is a %s", k, kind)
		}
		if err != nil && !errors.Is(err, redis.Nil) {
			b.Fatal(err)
		}
		fmt.Fprintf(&all, "%s: %v\n", k, v)
	}
	return all.String()
}

// hidden wants no data in Redis in plain.
func (b *bench) hidden(when string) {
	b.Helper()
	for line := range strings.Lines(b.stored()) {
		if strings.Contains(line, marker) {
			b.Errorf("%s, in plain: %.500s", when, line)
		}
	}
}

// stage passes messages on, with what it was made with.
type stage struct {
	Sign string
	In   port.In[string]
	Add  port.In[string] `port:"add,default=\"none\""`
	Out  port.Out[string]
}

func (stage) JobType() string { return "Stage" }

// Run implements worker.Worker.
func (s *stage) Run(_ context.Context, run *worker.Run) error {
	add, _, err := s.Add.Read()
	if err != nil {
		return err
	}
	for v, err := range s.In.All() {
		if err != nil {
			return err
		}
		if err := errors.Join(s.Out.Write(v+s.Sign+add), run.State().Set("last", v), run.Log(map[string]string{"saw": v}), run.Progress(1, 2, "at "+s.Sign)); err != nil {
			return err
		}
	}
	return nil
}

// parent lets a child do the work, and asks for a run later.
type parent struct {
	In  port.In[string]
	Out port.Out[string]
}

func (parent) JobType() string { return "Parent" }

// Run implements worker.Worker.
func (p *parent) Run(_ context.Context, run *worker.Run) error {
	var started bool
	if _, err := run.State().Get("started", &started); err != nil {
		return err
	}
	if !started {
		c, err := run.Spawn("kid", job.Single(&stage{Sign: marker + "-kid"}, ""))
		if err != nil {
			return err
		}
		for v, err := range p.In.All() {
			if err != nil {
				return err
			}
			if err := c.Write("in", v); err != nil {
				return err
			}
		}
		return errors.Join(run.State().Set("started", true), run.WakeAfter(10*time.Millisecond), run.State().Set("note", marker), worker.ErrSuspend)
	}
	c, err := run.Child("kid")
	if err != nil {
		return err
	}
	var v string
	ok, err := c.Read("out", &v)
	if err != nil || !ok {
		return errors.Join(err, worker.ErrSuspend)
	}
	return p.Out.Write(v)
}

// broken fails with what it reads.
type broken struct {
	In  port.In[string]
	Out port.Out[string]
}

func (broken) JobType() string { return "Broken" }

// Run implements worker.Worker.
func (b *broken) Run(context.Context, *worker.Run) error {
	v, _, err := b.In.Read()
	if err != nil {
		return err
	}
	if strings.HasSuffix(v, "panic") {
		panic(v)
	}
	return errors.New("cannot use " + v)
}

// Jobs do everything that they can do, and nothing that they hold is in Redis in plain, at
// no time.
func TestNothingInPlain(t *testing.T) {
	b := newBench(t)
	ctx := b.Context()
	s := b.open(ring(t, key("a", "1")))
	client := client.New(s)
	g := graph.New("line")
	first := graph.Add(g, "first", &stage{Sign: marker + "1"})
	second := graph.Add(g, "second", &stage{Sign: marker + "2"})
	last := graph.Add(g, "last", &broken{})
	graph.Connect(first.Out, second.In)
	graph.Connect(second.Out, last.In)
	graph.Connect(graph.Input[string](g, "in"), first.In)
	line, err := client.Start(ctx, g)
	b.Check(err)
	kin, err := client.Start(ctx, job.Single(&parent{}, ""))
	b.Check(err)
	lone, err := client.Start(ctx, job.Single(&stage{Sign: marker}, ""), job.Memo(json.RawMessage(`"`+marker+`"`)))
	b.Check(err)
	b.Check(lone.SetDefault(ctx, port.Input, "add", marker+"-default"))
	b.Check(lone.SetState(ctx, map[string]any{"outside": marker}))
	writing := job.WithContext(ctx, port.Context{"customer": marker})
	b.Check(line.Write(writing, "in", marker+" a", marker+" panic"))
	b.Check(kin.Write(writing, "in", marker+" b"))
	b.Check(lone.Write(writing, "in", marker+" c"))
	b.hidden("before an engine")

	stop := b.serve(s)
	var got string
	b.Until("the child's result", func() bool {
		ok, err := kin.Read(ctx, "out", &got)
		b.Check(err)
		return ok
	})
	if want := marker + " b" + marker + "-kidnone"; got != want {
		t.Errorf("the child made %q, want %q", got, want)
	}
	messages := []job.Message{}
	b.Until("the lone job's result", func() bool {
		messages, err = lone.Messages(ctx, port.Output, "out", 1)
		b.Check(err)
		return len(messages) == 1
	})
	if want := `"` + marker + " c" + marker + marker + `-default"`; string(messages[0].Data) != want {
		t.Errorf("the lone job made %s, want %s", messages[0].Data, want)
	}
	b.Until("the graph's failure", func() bool {
		info, err := line.Info(ctx)
		b.Check(err)
		return info.Status == statemachine.Failed
	})
	stop()
	b.hidden("after the runs")
	if log := b.log.String(); strings.Contains(log, marker) || !strings.Contains(log, "job failed") {
		t.Errorf("the log of the engine tells no failure, or data: %s", log)
	}
	b.seen(line, lone)
}

// seen wants all that people look at in plain.
func (b *bench) seen(line, lone *client.Handle) {
	b.Helper()
	ctx := b.Context()
	info, err := line.Info(ctx)
	b.Check(err)
	if !strings.Contains(info.Reason, "last: cannot use "+marker+" a") {
		b.Errorf("the graph's reason is %q", info.Reason)
	}
	last, err := line.Child(ctx, "last")
	b.Check(err)
	failures, err := last.Failures(ctx)
	b.Check(err)
	if len(failures) == 0 || !strings.Contains(failures[0].Error, "cannot use "+marker) {
		b.Errorf("failures %+v", failures)
	}
	runs, err := line.Runs(ctx, 10)
	b.Check(err)
	if text, _ := json.Marshal(runs); strings.Count(string(text), marker) < 4 {
		b.Errorf("the log of runs is %s", text)
	}
	logs, err := lone.Logs(ctx, 10)
	b.Check(err)
	if len(logs) != 1 || !strings.Contains(string(logs[0].Entry), marker) {
		b.Errorf("the log is %+v", logs)
	}
	state, err := lone.State(ctx)
	b.Check(err)
	some, err := lone.State(ctx, "outside", "last")
	b.Check(err)
	if string(state["outside"]) != `"`+marker+`"` || string(some["outside"]) != `"`+marker+`"` || string(some["last"]) != `"`+marker+` c"` {
		b.Errorf("the state is %s, some of it %s", state, some)
	}
	info, err = lone.Info(ctx)
	b.Check(err)
	if p, _ := info.Port(port.Input, "add"); string(info.Args) != `{"Sign":"`+marker+`"}` || string(p.Default) != `"`+marker+`-default"` {
		b.Errorf("args %s, default %s", info.Args, p.Default)
	}
	if info.Progress == nil || info.Progress.String() != "1/2 at "+marker {
		b.Errorf("progress %v", info.Progress)
	}
	if string(info.Memo) != `"`+marker+`"` {
		b.Errorf("memo %s", info.Memo)
	}
}

// Channels carry what is encrypted, and messages keep their contexts on the way.
func TestChannels(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithTimeout(b.Context(), enginetest.Patience)
	defer cancel()
	s := b.open(ring(t, key("a", "1")))
	client := client.New(s)
	plan := subscriber("/orders")
	h, err := client.Start(ctx, plan)
	b.Check(err)
	heard, listening := make(chan string, 1), make(chan error, 1)
	go func() {
		listening <- client.Listen(ctx, "/orders/new", func(m json.RawMessage) { heard <- string(m) })
	}()
	raw := b.Redis.Subscribe(ctx, "weir:{"+b.Namespace+"}:/orders/new")
	defer raw.Close()
	_, err = raw.Receive(ctx)
	b.Check(err)
	b.Until("somebody listens", func() bool {
		n, err := b.Redis.PubSubNumSub(ctx, "weir:{"+b.Namespace+"}:/orders/new").Result()
		b.Check(err)
		return n["weir:{"+b.Namespace+"}:/orders/new"] == 2
	})
	b.Check(client.Publish(job.WithContext(ctx, port.Context{"customer": marker}), "/orders/new", marker))
	m, err := raw.ReceiveMessage(ctx)
	b.Check(err)
	if strings.Contains(m.Payload, marker) {
		t.Errorf("on the channel in plain: %q", m.Payload)
	}
	if got := <-heard; got != `"`+marker+`"` {
		t.Errorf("heard %s", got)
	}
	var got []job.Message
	b.Until("the message arrives", func() bool {
		got, err = h.Messages(ctx, port.Input, "in", 10)
		b.Check(err)
		return len(got) > 0
	})
	if string(got[0].Data) != `"`+marker+`"` || fmt.Sprint(got[0].Context["customer"]) != marker || fmt.Sprint(got[0].Context["channel"]) != "/orders/new" {
		t.Errorf("got %s with %v", got[0].Data, got[0].Context)
	}
	b.hidden("in ports and outboxes")
	cancel()
	b.Check(<-listening)
}

// subscriber is a job that nobody runs.
type subscriber string

// Plan implements job.Planner.
func (s subscriber) Plan() (*job.Plan, error) {
	return &job.Plan{Nodes: []job.Node{{Type: "Nobody", Ports: []job.Port{
		{Spec: port.Spec{Name: "in", Dir: port.Input, Channels: []string{string(s)}}},
	}}}}, nil
}

// Data of two keys are read side by side, and new data get the new key.
func TestRotationWhileRunning(t *testing.T) {
	b := newBench(t)
	ctx := b.Context()
	h, err := client.New(b.open(nil)).Start(ctx, job.Single(&stage{Sign: "+"}, ""))
	b.Check(err)
	b.Check(h.Write(ctx, "in", "plain")) // before anything was encrypted
	for _, k := range []*encrypt.Keyring{ring(t, key("old", "1")), ring(t, key("new", "2"), key("old", "1"))} {
		h, err = client.New(b.open(k)).Find(ctx, string(h.ID()))
		b.Check(err)
		b.Check(h.Write(ctx, "in", k.String()))
	}
	b.serve(b.open(ring(t, key("new", "2"), key("old", "1"))))
	var got []json.RawMessage
	b.Until("three results", func() bool {
		got, err = h.Peek(ctx, "out", 10)
		b.Check(err)
		return len(got) == 3
	})
	want := `["plain+none" "1 keys, writing with old+none" "2 keys, writing with new+none"]`
	if fmt.Sprintf("%s", got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Args that are merged into those of a job are encrypted as they are.
func TestMergedArgs(t *testing.T) {
	b := newBench(t)
	ctx := b.Context()
	c := client.New(b.open(ring(t, key("a", "1"))))
	by := job.Unique(job.UniqueBy{Key: "k", Merge: true})
	for _, args := range []string{`{"a":"` + marker + `1"}`, `{"b":"` + marker + `2"}`} {
		_, err := c.Start(ctx, &job.Plan{Nodes: []job.Node{{Type: "stage", Args: json.RawMessage(args)}}}, by)
		b.Check(err)
	}
	h, err := c.Start(ctx, &job.Plan{Nodes: []job.Node{{Type: "stage"}}}, by)
	b.Check(err)
	info, err := h.Info(ctx)
	b.Check(err)
	if want := `{"a":"` + marker + `1","b":"` + marker + `2"}`; string(info.Args) != want {
		t.Errorf("args %s, want %s", info.Args, want)
	}
	b.hidden("after merging")
	poor := client.New(b.open(nil))
	if _, err := poor.Start(ctx, &job.Plan{Nodes: []job.Node{{Type: "stage", Args: json.RawMessage(`{}`)}}}, by); !errors.Is(err, job.ErrCodec) {
		t.Errorf("merging without the key: %v", err)
	}
}

// The reason of a failure by hand, and the args of a retry, are encrypted as those of runs and creations are.
func TestByHand(t *testing.T) {
	b := newBench(t)
	ctx := b.Context()
	s := b.open(ring(t, key("a", "1")))
	b.Check(s.Register(ctx, []job.TypeInfo{{Type: "stage", Queue: job.DefaultQueue}}))
	h, err := client.New(s).Start(ctx, &job.Plan{Nodes: []job.Node{{Type: "stage", Args: json.RawMessage(`{}`)}}})
	b.Check(err)
	b.Check(h.Fail(ctx, marker))
	info, err := h.Info(ctx)
	b.Check(err)
	failures, err := h.Failures(ctx)
	b.Check(err)
	runs, err := h.Runs(ctx, 1)
	b.Check(err)
	want := "by hand: " + marker
	if info.Reason != want || len(failures) != 1 || failures[0].Error != want || len(runs) != 1 || runs[0].Error != want {
		t.Errorf("reason %q, failures %+v, log %+v", info.Reason, failures, runs)
	}
	args := `{"Sign":"` + marker + `"}`
	b.Check(h.Retry(ctx, client.RetryArgs(json.RawMessage(args))))
	if info, err = h.Info(ctx); err != nil || string(info.Args) != args {
		t.Errorf("args %s, %v", info.Args, err)
	}
	b.hidden("after a failure and a retry by hand")
}

// An engine without the key leaves a job as it is and says why; with it the job goes on.
func TestMissingKey(t *testing.T) {
	b := newBench(t)
	ctx := b.Context()
	good := b.open(ring(t, key("good", "1")))
	h, err := client.New(good).Start(ctx, job.Single(&stage{Sign: marker}, ""))
	b.Check(err)
	b.Check(h.Write(ctx, "in", marker))
	b.Check(h.SetState(ctx, map[string]any{"k": marker}))
	for why, codec := range map[string]job.Codec{`key "good", which is not among`: ring(t, key("other", "2")), "this program has no keys": nil} {
		poor := b.open(codec)
		stop := b.serve(poor)
		b.Until("the job says why it waits", func() bool {
			info, err := h.Info(ctx)
			b.Check(err)
			return info.Status == statemachine.Queued && strings.Contains(info.Reason, why)
		})
		stop()
		if n := strings.Count(strings.ReplaceAll(b.log.String(), `\"`, `"`), why); n != 1 || !strings.Contains(b.log.String(), string(h.ID())) {
			t.Errorf("the log tells it %d times: %s", n, b.log.String())
		}
		b.log.Reset()
		blind, err := client.New(poor).Find(ctx, string(h.ID()))
		b.Check(err)
		info, err := blind.Info(ctx) // how it is can be seen
		b.Check(err)
		if p, _ := info.Port(port.Input, "in"); p.Waiting != 1 || !strings.Contains(string(info.Args), "cannot be decoded") || info.Tries != 0 {
			t.Errorf("%d messages, args %s, %d tries", p.Waiting, info.Args, info.Tries)
		}
		_, errState := blind.State(ctx)
		_, errPeek := blind.Messages(ctx, port.Input, "in", 1)
		_, errTake := blind.Take(ctx, port.Input, "in", 1)
		for _, err := range []error{errState, errPeek, errTake} {
			if !errors.Is(err, job.ErrCodec) || !strings.Contains(err.Error(), why) {
				t.Errorf("what it holds: %v, want %s", err, why)
			}
		}
	}
	b.serve(good)
	var got string
	b.Until("the result", func() bool {
		ok, err := h.Read(ctx, "out", &got)
		b.Check(err)
		return ok
	})
	if got != marker+marker+"none" {
		t.Errorf("got %q", got)
	}
}

// What was changed in Redis, or moved to another job, is not believed.
func TestTamperedWhileRunning(t *testing.T) {
	b := newBench(t)
	ctx := b.Context()
	s := b.open(ring(t, key("a", "1")))
	c := client.New(s)
	var all []*client.Handle
	for _, sign := range []string{"one", "two"} {
		h, err := c.Start(ctx, job.Single(&stage{Sign: sign}, ""))
		b.Check(err)
		b.Check(h.SetState(ctx, map[string]any{"k": sign}))
		all = append(all, h)
	}
	hash := func(n int, suffix string) string {
		keys, err := b.Redis.Keys(ctx, "*:j:"+string(all[n].ID())+suffix).Result()
		b.Check(err)
		if len(keys) != 1 {
			t.Fatalf("keys %v", keys)
		}
		return keys[0]
	}
	for _, field := range [][2]string{{"", "args"}, {":s", "k"}} {
		theirs, err := b.Redis.HGet(ctx, hash(1, field[0]), field[1]).Result()
		b.Check(err)
		b.Check(b.Redis.HSet(ctx, hash(0, field[0]), field[1], theirs).Err())
	}
	if _, err := all[0].State(ctx); !errors.Is(err, job.ErrCodec) || !strings.Contains(err.Error(), "was changed, or belongs elsewhere") {
		t.Errorf("state of another job: %v", err)
	}
	b.serve(s)
	b.Until("the job says why it waits", func() bool {
		info, err := all[0].Info(ctx)
		b.Check(err)
		return info.Status == statemachine.Queued && strings.Contains(info.Reason, "belongs elsewhere")
	})
}

// A message that a run comes to late, and that it cannot decode, parks the job, too.
func TestMissingKeyBehindTheFirstMessages(t *testing.T) {
	b := newBench(t)
	ctx := b.Context()
	good := b.open(ring(t, key("good", "1")))
	c := client.New(good)
	h, err := c.Start(ctx, job.Single(&stage{}, ""))
	b.Check(err)
	const many = 3000
	var all []any
	for range many {
		all = append(all, "x")
	}
	b.Check(h.Write(ctx, "in", all...))
	foreign, err := client.New(b.open(ring(t, key("other", "2"), key("good", "1")))).Find(ctx, string(h.ID()))
	b.Check(err)
	b.Check(foreign.Write(ctx, "in", "last"))
	stop := b.serve(good)
	b.Until("the job says why it waits", func() bool {
		info, err := h.Info(ctx)
		b.Check(err)
		return info.Status == statemachine.Queued && strings.Contains(info.Reason, `key "other"`)
	})
	stop()
	info, err := h.Info(ctx)
	b.Check(err)
	in, _ := info.Port(port.Input, "in")
	out, _ := info.Port(port.Output, "out")
	if info.Tries != 0 || in.Waiting+out.Waiting != many+1 || in.Waiting == 0 {
		t.Errorf("%d tries, %d messages in, %d out; want none and %d together", info.Tries, in.Waiting, out.Waiting, many+1)
	}
}
