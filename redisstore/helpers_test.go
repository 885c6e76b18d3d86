package redisstore_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirworks/weir/internal/enginetest"
	"github.com/weirworks/weir/internal/redistest"
	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/redisstore"
	"github.com/weirworks/weir/statemachine"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// contracts is all that the suite may use of a store.
type contracts interface {
	store.Store
	store.Runs
	store.RunReader
	store.Sweeper
	store.Engines
}

var _ contracts = (*redisstore.Store)(nil)

// env is a store in a namespace of its own, and a look behind it.
type env struct {
	enginetest.Env
	store contracts
	lose  func() // of wires: makes the next reply get lost
}

// shards of the namespaces of the suite: enough for two trees to lie apart.
const shards = 4

// each runs fn on a fresh namespace of real Redis, a cluster and miniredis.
func each(t *testing.T, fn func(e *env)) {
	t.Helper()
	enginetest.Each(t, func(e *enginetest.Env) { fn(&env{Env: *e, store: e.Store, lose: func() {}}) })
}

func open(t *testing.T, url string) *env {
	t.Helper()
	return openBy(t, redisstore.Config{URL: url})
}

func openBy(t *testing.T, cfg redisstore.Config) *env {
	t.Helper()
	e := enginetest.New(t, cfg)
	return &env{Env: *e, store: e.Store, lose: func() {}}
}

// fails wants an error of a kind, in one line.
func (e *env) fails(err, kind error) {
	e.Helper()
	if !errors.Is(err, kind) {
		e.Fatalf("error %v, want one that is: %v", err, kind)
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		e.Errorf("several lines: %v", err)
	}
}

func (e *env) equal(what string, got, want any) {
	e.Helper()
	if !reflect.DeepEqual(got, want) {
		e.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}

func newID(t testing.TB) job.ID {
	t.Helper()
	id, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// create stores a tree of the given nodes and returns its root.
func (e *env) create(nodes ...job.Node) job.ID {
	e.Helper()
	id := newID(e)
	e.createAs(id, nodes...)
	return id
}

func (e *env) createAs(id job.ID, nodes ...job.Node) {
	e.Helper()
	plan := &job.Plan{Nodes: nodes}
	e.Check(plan.Validate())
	created, err := e.store.Create(e.Context(), id, plan, "test")
	e.Check(err)
	e.equal("created", created, true)
}

// single is a job with an In port "in" and an Out port "out".
func (e *env) single() job.ID {
	e.Helper()
	return e.create(job.Node{Type: "T", Ports: ports(in("in"), out("out"))})
}

func ports(p ...job.Port) []job.Port { return p }

func in(name string) job.Port {
	return job.Port{Spec: port.Spec{Name: name, Dir: port.Input}}
}

// fed is an In port with n sources.
func fed(name string, n int) job.Port {
	p := in(name)
	p.Sources = n
	return p
}

func out(name string, edges ...job.Edge) job.Port {
	return job.Port{Spec: port.Spec{Name: name, Dir: port.Output}, Edges: edges}
}

// to is an edge to the port "in" of each of some nodes.
func to(nodes ...int) job.Edge {
	var e job.Edge
	for _, n := range nodes {
		e = append(e, job.Target{Node: n, Dir: port.Input, Port: "in"})
	}
	return e
}

func beginning() store.Begin {
	return store.Begin{Token: rand.Text(), Lease: time.Hour, Batch: 1000, Bytes: 1 << 20}
}

func (e *env) begin(id job.ID) *store.Snapshot {
	e.Helper()
	snap, err := e.store.Begin(e.Context(), id, beginning())
	e.Check(err)
	return snap
}

// delta is what a run commits that did nothing but end.
func delta(s *store.Snapshot, outcome statemachine.Event) store.Delta {
	return store.Delta{Job: s.Info.ID, Token: s.Token, Outcome: outcome}
}

// try commits one delta and returns what became of it.
func (e *env) try(d store.Delta) store.Result {
	e.Helper()
	res, err := e.store.Commit(e.Context(), []store.Tx{{Deltas: []store.Delta{d}}})
	e.Check(err)
	e.equal("results", len(res), 1)
	return res[0]
}

// commit is try for a delta that must hold.
func (e *env) commit(d store.Delta) store.Result {
	e.Helper()
	res := e.try(d)
	e.Check(res.Refused)
	e.equal("deltas that hold", res.Applied, 1)
	return res
}

// end begins a run of a job and ends it at once.
func (e *env) end(id job.ID, outcome statemachine.Event) {
	e.Helper()
	e.commit(delta(e.begin(id), outcome))
}

func (e *env) info(id job.ID) *job.Info {
	e.Helper()
	i, err := e.store.Info(e.Context(), id)
	e.Check(err)
	return i
}

// is wants each of the jobs to have a status.
func (e *env) is(want statemachine.Status, ids ...job.ID) {
	e.Helper()
	for _, id := range ids {
		if i := e.info(id); i.Status != want {
			e.Fatalf("job %d (%s) is %s, want %s", id.Number(), i.Name, i.Status, want)
		}
	}
}

func (e *env) port(id job.ID, dir port.Dir, name string) job.PortInfo {
	e.Helper()
	p, ok := e.info(id).Port(dir, name)
	if !ok {
		e.Fatalf("job %s has no %s port %q", id, dir, name)
	}
	return p
}

func raws(items ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(items))
	for i := range items {
		out[i] = json.RawMessage(items[i])
	}
	return out
}

func texts(items []json.RawMessage) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = string(items[i])
	}
	return out
}

// numbers returns the messages from, …, to.
func numbers(from, to int) []json.RawMessage {
	var out []json.RawMessage
	for i := from; i <= to; i++ {
		out = append(out, json.RawMessage(fmt.Sprint(i)))
	}
	return out
}

func (e *env) write(id job.ID, name string, items ...string) {
	e.Helper()
	e.Check(e.store.Write(e.Context(), id, store.Write{Dir: port.Input, Port: name, Items: raws(items...)}))
}

func (e *env) peek(id job.ID, dir port.Dir, name string) []string {
	e.Helper()
	items, _, err := e.store.Peek(e.Context(), id, dir, name, 1<<20)
	e.Check(err)
	return texts(items)
}

func (e *env) holds(id job.ID, dir port.Dir, name string, want ...string) {
	e.Helper()
	if got := e.peek(id, dir, name); !slices.Equal(got, want) {
		e.Fatalf("%s port %q of job %d holds %q, want %q", dir, name, id.Number(), got, want)
	}
}

// sweep lets what is due within a few milliseconds become due, and sweeps.
func (e *env) sweep() {
	e.Helper()
	time.Sleep(5 * time.Millisecond)
	_, err := e.store.Sweep(e.Context())
	e.Check(err)
}

// unchanged wants fn to leave all keys of the namespace as they are.
func (e *env) unchanged(what string, fn func()) {
	e.Helper()
	before := e.dump()
	fn()
	after := e.dump()
	for k, v := range before {
		if after[k] != v {
			e.Errorf("%s changed %s\nfrom %.2000s\nto   %.2000s", what, k, v, after[k])
		}
	}
	for k, v := range after {
		if _, ok := before[k]; !ok {
			e.Errorf("%s made %s = %.2000s", what, k, v)
		}
	}
	if e.Failed() {
		e.FailNow()
	}
}

// dump returns all keys of the namespace with their contents, except the tokens of calls
// from outside that are remembered for a minute.
func (e *env) dump() map[string]string {
	e.Helper()
	var mu sync.Mutex
	all := map[string]string{}
	scan := func(ctx context.Context, c *redis.Client) error {
		keys := c.Scan(ctx, 0, "weir:{"+e.Namespace+"[:}]*", 100_000).Iterator()
		for keys.Next(ctx) {
			if strings.HasSuffix(keys.Val(), ":seen") {
				continue
			}
			text, err := contents(ctx, e.Redis, keys.Val()) // by the cluster's client: the key's slot may be moving
			if errors.Is(err, errNoKey) {
				continue
			}
			if err != nil {
				return err
			}
			mu.Lock()
			all[keys.Val()] = text
			mu.Unlock()
		}
		return keys.Err()
	}
	if c, ok := e.Redis.(*redis.ClusterClient); ok {
		e.Check(c.ForEachMaster(e.Context(), scan))
	} else {
		e.Check(scan(e.Context(), e.Redis.(*redis.Client)))
	}
	return all
}

// errNoKey is the error of a key that has expired since it was listed.
var errNoKey = errors.New("there is no such key")

func contents(ctx context.Context, c redis.Cmdable, key string) (string, error) {
	kind, err := c.Type(ctx, key).Result()
	if err != nil {
		return "", err
	}
	var v any
	switch kind {
	case "hash":
		v, err = c.HGetAll(ctx, key).Result()
	case "list":
		v, err = c.LRange(ctx, key, 0, -1).Result()
	case "set":
		v, err = c.SMembers(ctx, key).Result()
	case "zset":
		var members []redis.Z
		members, err = c.ZRangeWithScores(ctx, key, 0, -1).Result()
		v = fmt.Sprint(members)
	case "stream":
		v, err = c.XRange(ctx, key, "-", "+").Result()
	case "string":
		v, err = c.Get(ctx, key).Result()
	case "none":
		err = errNoKey
	default:
		err = fmt.Errorf("key %s is a %s", key, kind)
	}
	return fmt.Sprintf("%q", v), err // maps are printed in the order of their keys
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// known is an answer without what a repeat of a commit does not know: Room.
func known(answer any) any {
	if res, ok := answer.(store.Result); ok {
		res.Room = 0
		return res
	}
	return answer
}

// step commits one transaction, and begins a run behind it if there is one to begin: as Step does.
func step(ctx context.Context, s store.Runs, tx store.Tx, b store.Begin, types []string) (res store.Result, snap *store.Snapshot, err error) {
	all, begun, err := s.Step(ctx, []store.Tx{tx}, b, types)
	if len(all) > 0 {
		res = all[0]
	}
	if len(begun) > 0 {
		snap = begun[0]
	}
	return res, snap, err
}

// popped returns the first of the runs that a Pop has begun, or nil.
func popped(begun []*store.Snapshot, err error) (*store.Snapshot, error) {
	if len(begun) == 0 {
		return nil, err
	}
	return begun[0], err
}
