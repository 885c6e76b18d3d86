package redisstore_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/statemachine"
)

// values are messages that a careless store would lose, round or confuse.
func values() []string {
	return []string{
		"null", "false", "true", "0", "-0", `""`, "[]", "{}", "9007199254740993", "123456789012345678901234567890",
		"1e400", "0.1", `"\u0000"`, `"a\nb\r\n"`, `"ä€😀"`, `"\ud83d\ude00"`, `"0"`, `" 1 "`, `{"a":null}`, `"$1\r\n"`,
	}
}

func TestValuesComeBackAsTheyWent(t *testing.T) {
	each(t, func(e *env) {
		p := in("in")
		p.Default = json.RawMessage("null")
		id := e.create(
			job.Node{Type: "T", Args: json.RawMessage(`{"n":9007199254740993}`), Ports: ports(p, out("out"))},
			job.Node{Name: "kid", Type: "K", Args: json.RawMessage("null")})
		e.write(id, "in", values()...)
		e.holds(id, port.Input, "in", values()...)
		snap := e.begin(id)
		e.equal("args", string(snap.Info.Args), `{"n":9007199254740993}`)
		e.equal("null args", string(e.info(id.Nth(1)).Args), "null")
		e.equal("null default", string(snap.Defaults["in"]), "null")
		e.equal("inbox", texts(snap.In.Of("in").Items), values())

		d := delta(snap, statemachine.Requeue)
		d.Set = map[string]json.RawMessage{"": json.RawMessage("0"), "a b\x00\xff": json.RawMessage(`"odd"`)}
		d.Log = values()
		d.Failure = &job.Failure{Error: "bad\x00 \n\"ä\""}
		d.Reason = "ä 'x'\n"
		for i, v := range values() {
			d.Set[fmt.Sprint(i)] = json.RawMessage(v)
		}
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: raws(values()...)}}
		e.commit(d)
		e.holds(id, port.Output, "out", values()...)
		snap = e.begin(id)
		e.equal("state in the snapshot", snap.State, d.Set)
		state, err := e.store.State(e.Context(), id)
		e.Check(err)
		e.equal("state", state, d.Set)
		state, err = e.store.State(e.Context(), id, "", "0", "none")
		e.Check(err)
		e.equal("some state", state, map[string]json.RawMessage{"": json.RawMessage("0"), "0": json.RawMessage("null")})
		log, err := e.store.Logs(e.Context(), id, 100)
		e.Check(err)
		for i, v := range values() {
			e.equal("log", string(log[i].Entry), v)
		}
		e.equal("reason", snap.Info.Reason, d.Reason)
		fs, err := e.store.Failures(e.Context(), id)
		e.Check(err)
		e.equal("failure", fs[0].Error, d.Failure.Error)
	})
}

func TestLargeMessage(t *testing.T) {
	each(t, func(e *env) {
		id := e.single()
		big := `"` + strings.Repeat("é", 1<<19-1) + `"`
		e.equal("bytes", len(big), 1<<20)
		e.write(id, "in", big)
		snap := e.begin(id)
		e.equal("inbox", len(snap.In.Of("in").Items), 1)
		d := delta(snap, statemachine.Complete)
		d.Set = map[string]json.RawMessage{"big": json.RawMessage(big)}
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: snap.In.Of("in").Items}}
		e.commit(d)
		if got := e.peek(id, port.Output, "out"); len(got) != 1 || got[0] != big {
			e.Errorf("%d messages come back, or another one", len(got))
		}
	})
}

func TestManyMessagesInOneCommit(t *testing.T) {
	each(t, func(e *env) {
		const n = job.MaxWrites / 2 // as many as may go along two edges
		g := e.fan(3, to(2, 3), to(4))
		d := delta(e.begin(g.Nth(1)), statemachine.Complete)
		d.Writes = []store.Write{{Dir: port.Output, Port: "out", Items: numbers(1, n)}}
		e.commit(d)
		e.equal("copied", e.port(g.Nth(4), port.Input, "in").Waiting, int64(n))
		e.equal("first half", e.port(g.Nth(2), port.Input, "in").Waiting, int64(n/2))
		e.equal("second half", e.port(g.Nth(3), port.Input, "in").Waiting, int64(n/2))
		for i, m := range e.peek(g.Nth(4), port.Input, "in") {
			if m != fmt.Sprint(i+1) {
				e.Fatalf("message %d is %s", i, m)
			}
		}
		d = delta(e.begin(g.Nth(4)), statemachine.Complete)
		d.Takes = []store.Take{{Dir: port.Input, Port: "in", N: n - 1}}
		e.commit(d)
		e.holds(g.Nth(4), port.Input, "in", fmt.Sprint(n))
		e.equal("total", e.port(g.Nth(4), port.Input, "in").Total, int64(n))
	})
}

func TestMuchStateInOneCommit(t *testing.T) {
	each(t, func(e *env) {
		const n = job.MaxWrites / 2 // as many as one commit may have
		id := e.single()
		d := delta(e.begin(id), statemachine.Requeue)
		d.Set = make(map[string]json.RawMessage, n)
		for i := range n {
			d.Set[fmt.Sprint("key", i)] = json.RawMessage(fmt.Sprint(i))
		}
		e.commit(d)
		state, err := e.store.State(e.Context(), id)
		e.Check(err)
		e.equal("keys", len(state), n)
		keys := make([]string, 0, n)
		for k, v := range d.Set {
			if string(state[k]) != string(v) {
				e.Fatalf("%s is %s, want %s", k, state[k], v)
			}
			if k != "key7" {
				keys = append(keys, k)
			}
		}
		some, err := e.store.State(e.Context(), id, keys...)
		e.Check(err)
		e.equal("keys asked for", len(some), n-1)
		snap := e.begin(id)
		e.equal("whole", snap.Whole, false)
		d = delta(snap, statemachine.Complete)
		d.Unset = keys
		e.commit(d)
		state, err = e.store.State(e.Context(), id)
		e.Check(err)
		e.equal("state left", state, map[string]json.RawMessage{"key7": json.RawMessage("7")})
	})
}

// All keys of a tree have the hash tag of its shard, whatever happens to it.
func TestKeysShareAHashTag(t *testing.T) {
	each(t, func(e *env) {
		for range 6 {
			id, _, d := e.full()
			d.Outcome, d.Delay, d.Failure = statemachine.Backoff, time.Hour, &job.Failure{Error: "x"}
			e.commit(d)
			e.write(id, "in", "1")
			_, err := e.store.Claim(e.Context(), "a"+string(id), id)
			e.Check(err)
		}
		e.nested()
		e.end(e.single(), statemachine.Fail)
		e.sweep()
		e.Check(e.store.Heartbeat(e.Context(), store.EngineInfo{ID: rand.Text()}))
		known := documented(e)
		used := 0
		for key := range e.dump() {
			if !known.MatchString(key) {
				e.Errorf("docs/redis.md does not name the key %s", key)
			}
			rest, ok := strings.CutPrefix(key, "weir:{"+e.Namespace+":")
			if !ok {
				continue
			}
			used++
			shard, tail, _ := strings.Cut(rest, "}:")
			if text, ok := strings.CutPrefix(tail, "j:"); ok {
				text, part, _ := strings.Cut(text, ":")
				if part == "" {
					e.described(key)
				}
				id, err := job.ParseID(text)
				e.Check(err)
				e.equal("shard of "+key, shard, fmt.Sprint(id.Shard(shards)))
			}
		}
		if used == 0 {
			e.Error("no keys")
		}
	})
}

// described wants each field of a job to be in docs/redis.md.
func (e *env) described(key string) {
	e.Helper()
	fields, err := e.Redis.HKeys(e.Context(), key).Result()
	e.Check(err)
	for _, field := range fields {
		if !strings.Contains(field, ".") && !describedFields(e.T)[field] {
			e.Errorf("docs/redis.md does not describe the field %s of a job", field)
		}
	}
}

// documented matches the keys that the tables of docs/redis.md name.
func documented(e *env) *regexp.Regexp {
	page, err := os.ReadFile("../docs/redis.md")
	e.Check(err)
	parts := map[string]string{
		"<ns>": e.Namespace, "<n>": "[0-9]+", "<id>": "[0-9a-f-]{36}([.][0-9]+)?", "<tree>": "[0-9a-f-]{36}",
		"<port>": "[a-zA-Z0-9_]+", "<channel>": "/[a-zA-Z0-9_.:/-]*", "<engine>": "[A-Z0-9]+", "<digest>": "[A-Z2-7]{16}",
		"<queue>": "[a-zA-Z0-9_.:/-]+", "<type>": "[a-zA-Z0-9_.:/-]*", "<token>": "[^ ]+", "<name>": "[a-zA-Z0-9_.:/-]+",
	}
	var keys []string
	for _, line := range strings.Split(string(page), "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, m := range regexp.MustCompile("`(weir:[^`]+)`").FindAllStringSubmatch(cell, -1) {
			key := regexp.QuoteMeta(m[1])
			for name, pattern := range parts {
				key = strings.ReplaceAll(key, name, pattern)
			}
			keys = append(keys, key)
		}
	}
	return regexp.MustCompile("^(" + strings.Join(keys, "|") + ")$")
}
