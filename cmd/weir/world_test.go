package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

// long ago enough that ages in days, and hours of it, do not change while a test runs.
const longAgo = 90*24*time.Hour + 12*time.Hour + 30*time.Minute

// nasty is a name that no client of Weir gives, but that may be in a Redis: long, wide, and
// with what a terminal obeys.
var nasty = "\x1b[31m日本語のとても長い名前\x1b]0;title\a" + strings.Repeat("é", 40) + "\u202e"

// world is a Redis with two trees whose jobs have all statuses. No engine works on them, and
// their times are long ago.
type world struct {
	*testing.T
	url   string
	store *redisstore.Store
	rdb   *redis.Client
	album *client.Handle
}

type planned job.Plan

func (p *planned) Plan() (*job.Plan, error) { return (*job.Plan)(p), nil }

// The jobs of the album, by their numbers.
const (
	aGraph = iota
	aList
	aRunning
	aFailed
	aScheduled
	aLocked
	aLong
	aJoin
	aLonely
	aDone
	aEnded
	aNasty
)

func albumPlan() *planned {
	in := func(name string, sources, limit int) job.Port {
		return job.Port{Spec: port.Spec{Name: name, Dir: port.Input, Limit: limit}, Sources: sources}
	}
	out := func(name string, edges ...job.Edge) job.Port {
		return job.Port{Spec: port.Spec{Name: name, Dir: port.Output}, Edges: edges}
	}
	to := func(name string, nodes ...int) job.Edge {
		var e job.Edge
		for _, n := range nodes {
			dir := port.Input
			if n == aGraph {
				dir = port.Output
			}
			e = append(e, job.Target{Node: n, Dir: dir, Port: name})
		}
		return e
	}
	resize := func(name string) job.Node {
		width := in("width", 0, 0)
		width.Default = json.RawMessage(`640`)
		return job.Node{Name: name, Type: "img.Resize", Ports: []job.Port{in("in", 1, 2), width, out("thumb", to("left", aJoin))}}
	}
	return &planned{Nodes: []job.Node{
		{Type: "album", Name: "album", Graph: true, Ports: []job.Port{in("more", 0, 0), out("thumbs")}},
		{Name: "list", Type: "fs.List", Ports: []job.Port{out("files", to("in", aRunning, aFailed, aScheduled, aLocked))}},
		resize("running"), resize("failed"), resize("scheduled"), resize("locked"),
		{Name: "long_" + strings.Repeat("name_", 20), Type: strings.Repeat("Type", 20), Queue: "slow", Ports: []job.Port{in(strings.Repeat("port", 10), 0, 0)}},
		{Name: "join", Type: "Join", Ports: []job.Port{in("left", 4, 0), in("right", 1, 0), out("out", to("thumbs", aGraph))}},
		{Name: "lonely", Type: "Lonely", Ports: []job.Port{in("in", 0, 0), out("out", to("right", aJoin))}},
		{Name: "done", Type: "Done"},
		{Name: "ended", Type: "Done"},
		{Name: "nasty", Type: "Done"},
	}}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := redistest.Start(t)
	store := enginetest.Open(t, redisstore.Config{URL: server.URL(), Shards: 1})
	w := &world{T: t, url: server.URL(), store: store, rdb: server.Client(t)}
	client := client.New(store)
	album, err := client.Start(t.Context(), albumPlan(), job.Alias("album"), job.By("weir"))
	enginetest.Check(w, err)
	w.album = album
	w.populate()
	w.one(client)
	enginetest.Check(w, store.Register(t.Context(), []job.TypeInfo{
		{Type: "img.Resize", Queue: "default", Ports: []port.Spec{{Name: "in", Dir: port.Input, Limit: 2, Type: "img.Image"}, {Name: "thumb", Dir: port.Output}}, Version: "v1.2.3"},
		{Type: strings.Repeat("Type", 20), Queue: "slow", Ports: []port.Spec{{Name: "*", Dir: port.Input}}},
		{Type: nasty, Queue: nasty, Ports: []port.Spec{{Name: nasty, Dir: port.Output}}},
	}))
	w.age()
	return w
}

func (w *world) begin(id job.ID) *store.Snapshot {
	w.Helper()
	s, err := w.store.Begin(w.Context(), id, store.Begin{Token: rand.Text(), Lease: 1000 * time.Hour, Batch: 10, Bytes: 1 << 20})
	enginetest.Check(w, err)
	return s
}

func (w *world) commit(s *store.Snapshot, outcome statemachine.Event, more func(d *store.Delta)) {
	w.Helper()
	d := store.Delta{Job: s.Info.ID, Token: s.Token, Outcome: outcome}
	if more != nil {
		more(&d)
	}
	results, err := w.store.Commit(w.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
	enginetest.Check(w, err)
	enginetest.Check(w, results[0].Refused)
}

func (w *world) id(n int) job.ID { return w.album.ID().Nth(n) }

// populate brings the jobs of the album into their statuses.
func (w *world) populate() {
	w.Helper()
	w.commit(w.begin(w.id(aList)), statemachine.Suspend, func(d *store.Delta) {
		var files []json.RawMessage
		for n := range 8 {
			files = append(files, json.RawMessage(fmt.Sprintf(`"%d.png"`, n)))
		}
		d.Writes = []store.Write{{Dir: port.Output, Port: "files", Items: files}}
		d.Entry = `{"step":1,"write":[{"job":"` + string(d.Job) + `","dir":"out","port":"files","from":0,"n":8}]}`
		d.Log = []string{`{"found":8,"text":"\u001b[31mred 日本"}`}
	})
	w.begin(w.id(aRunning))
	boom := "cannot decode \x1b[31m3.png: " + strings.Repeat("it is no picture, ", 8) + "\nstack"
	w.commit(w.begin(w.id(aFailed)), statemachine.Fail, func(d *store.Delta) {
		d.Reason, d.Failure, d.Entry = boom, &job.Failure{Error: boom, Stack: "here"}, `{"step":0,"error":"cannot decode"}`
	})
	w.commit(w.begin(w.id(aScheduled)), statemachine.Backoff, func(d *store.Delta) {
		d.Delay, d.Reason, d.Failure = time.Hour, "no room", &job.Failure{Error: "no room"}
	})
	enginetest.Check(w, w.rdb.Set(w.Context(), w.key(w.id(aLocked), ":lock"), "somebody's", longAgo).Err())
	w.commit(w.begin(w.id(aLonely)), statemachine.Suspend, nil)
	w.commit(w.begin(w.id(aDone)), statemachine.Complete, nil)
	enginetest.Check(w, w.store.Apply(w.Context(), w.id(aEnded), statemachine.Terminate))
	w.commit(w.begin(w.id(aEnded)), statemachine.Shutdown, nil)
	for _, field := range []string{"name", "type", "queue"} {
		w.set(w.id(aNasty), field, nasty)
	}
}

// one makes a job without family, with state and messages.
func (w *world) one(client *client.Client) {
	w.Helper()
	one, err := client.Start(w.Context(), job.Single(&resize{Width: 64}, ""), job.Alias("one"))
	enginetest.Check(w, err)
	ctx := job.WithContext(w.Context(), port.Context{port.ContextBy: "weir"})
	enginetest.Check(w, one.Write(ctx, "in", "a.png", map[string]any{"日本": nasty}, 3))
	enginetest.Check(w, one.WriteOut(ctx, "thumb", []int{1, 2}))
	enginetest.Check(w, one.SetState(ctx, map[string]any{"cursor": 17, "long": strings.Repeat("日本語 ", 60), nasty: true}))
	enginetest.Check(w, one.AddAlias(ctx, "uno"))
}

func (w *world) key(id job.ID, suffix string) string {
	return "weir:{main:0}:j:" + string(id) + suffix
}

func (w *world) set(id job.ID, field, value string) {
	w.Helper()
	enginetest.Check(w, w.rdb.HSet(w.Context(), w.key(id, ""), field, value).Err())
}

// age moves all times of the world far away.
func (w *world) age() {
	w.Helper()
	ctx := context.WithoutCancel(w.Context())
	then := time.Now().Add(-longAgo)
	keys, err := w.rdb.Keys(ctx, w.key("*", "")).Result()
	enginetest.Check(w, err)
	for _, key := range keys {
		if kind := w.rdb.Type(ctx, key).Val(); kind == "list" && strings.HasSuffix(key, ":e") {
			var f job.Failure
			enginetest.Check(w, json.Unmarshal([]byte(w.rdb.LIndex(ctx, key, 0).Val()), &f))
			f.At = then
			raw, err := json.Marshal(f)
			enginetest.Check(w, err)
			enginetest.Check(w, w.rdb.LSet(ctx, key, 0, raw).Err())
		} else if kind == "hash" {
			for _, field := range []string{"created", "ran", "queued"} {
				if w.rdb.HExists(ctx, key, field).Val() {
					enginetest.Check(w, w.rdb.HSet(ctx, key, field, then.UnixMilli()).Err())
				}
			}
		}
	}
	next := redis.Z{Score: float64(time.Now().Add(longAgo).UnixMilli()), Member: string(w.id(aScheduled))}
	enginetest.Check(w, w.rdb.ZAdd(ctx, "weir:{main:0}:due", next).Err())
	types, err := w.store.Types(ctx)
	enginetest.Check(w, err)
	for _, typ := range types {
		typ.Registered = then.UTC()
		raw, err := json.Marshal(typ)
		enginetest.Check(w, err)
		enginetest.Check(w, w.rdb.HSet(ctx, "weir:{main}:types", typ.Queue+" "+typ.Type, raw).Err())
	}
}
