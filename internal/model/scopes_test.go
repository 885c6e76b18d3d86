package model_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// rowOf is a graph of a job that makes messages, one that passes them on, and one that keeps them.
func rowOf(n int) []job.Node {
	return []job.Node{
		{Type: "G", Graph: true},
		{Type: "T", Name: "a", Args: json.RawMessage(fmt.Sprintf(`{"make":%d}`, n)), Ports: ports(out(2))},
		{Type: "T", Name: "b", Ports: ports(fed(), out(3))},
		{Type: "T", Name: "c", Ports: ports(fed())},
	}
}

// limited has the ports of a row hold n messages.
func limited(nodes []job.Node, n int) []job.Node {
	for i := range nodes {
		for k := range nodes[i].Ports {
			if p := &nodes[i].Ports[k]; p.Dir == port.Input {
				p.Limit = n
			}
		}
	}
	return nodes
}

// joinOf is a graph of two jobs that make messages, and one that keeps them.
func joinOf(n int) []job.Node {
	keeps := fed()
	keeps.Sources = 2
	makes := json.RawMessage(fmt.Sprintf(`{"make":%d}`, n))
	return []job.Node{
		{Type: "G", Graph: true},
		{Type: "T", Name: "a", Args: makes, Ports: ports(out(3))},
		{Type: "T", Name: "b", Args: makes, Ports: ports(out(3))},
		{Type: "T", Name: "c", Ports: ports(keeps)},
	}
}

func writes(n int) (all []call) {
	for i := range n {
		all = append(all, call{Kind: "write", Number: 3, Item: i + 1})
	}
	return all
}

// ends has the whole tree terminated, n times.
func ends(n int) []call { return slices.Repeat([]call{{Kind: "terminate"}}, n) }

var scopes = []scope{
	{name: "row", nodes: rowOf(2), engines: 2, batch: 2},
	{name: "row, lost, crash", nodes: rowOf(2), engines: 2, batch: 2, faults: budget{Lost: 1, Crash: 1}},
	{name: "row, zombie, lost", nodes: rowOf(2), engines: 2, batch: 2, faults: budget{Lost: 1, Zombie: 1}},
	{name: "row, late, crash", nodes: rowOf(1), engines: 2, batch: 2, faults: budget{Late: 1, Crash: 1}},
	{name: "hashes, lost, crash", nodes: rowOf(2), engines: 2, batch: 2, hashes: true, faults: budget{Lost: 1, Crash: 1}},
	{name: "hashes, zombie, late", many: true, nodes: rowOf(2), engines: 2, batch: 1, hashes: true, faults: budget{Late: 1, Zombie: 1}},
	{name: "chain, lost", nodes: rowOf(2), engines: 2, batch: 2, chain: true, faults: budget{Lost: 1}},
	{name: "record, lost, crash", nodes: rowOf(1), engines: 2, batch: 2, chain: true, faults: budget{Lost: 1, Crash: 1}},
	{name: "record, late, zombie", nodes: rowOf(1), engines: 2, batch: 2, chain: true, faults: budget{Late: 1, Zombie: 1}},
	{name: "chain, zombie", nodes: rowOf(2), engines: 2, batch: 2, chain: true, faults: budget{Zombie: 1}},
	{name: "chain, crash, late", many: true, nodes: rowOf(2), engines: 2, batch: 2, chain: true, faults: budget{Crash: 1, Late: 1}},
	{name: "chain, hashes, zombie, lost", many: true, nodes: rowOf(2), engines: 2, batch: 2, chain: true, hashes: true, faults: budget{Zombie: 1, Lost: 1}},
	{name: "join, lost, crash", nodes: joinOf(1), engines: 2, batch: 2, faults: budget{Lost: 1, Crash: 1}},
	{name: "join, zombie", many: true, nodes: joinOf(2), engines: 2, batch: 2, faults: budget{Zombie: 1}},
	{name: "full, lost, crash", nodes: limited(rowOf(2), 1), engines: 2, batch: 1, faults: budget{Lost: 1, Crash: 1}},
	{name: "full, chain, zombie", nodes: limited(rowOf(2), 1), engines: 2, batch: 1, chain: true, faults: budget{Zombie: 1}},
	{name: "write, lost, late", nodes: rowOf(1), engines: 1, batch: 2, outside: writes(1), faults: budget{Lost: 1, Late: 1}},
	{name: "terminate, crash", nodes: rowOf(1), engines: 2, batch: 2, outside: ends(1), faults: budget{Crash: 1}},
	{name: "terminate twice", nodes: rowOf(1), engines: 1, batch: 2, outside: ends(2)},
	{name: "terminate the last", nodes: rowOf(1), engines: 2, batch: 2, outside: append([]call{{Kind: "terminate", Number: 3}}, writes(1)...), faults: budget{Lost: 1}},
	{name: "restart", nodes: rowOf(2), engines: 2, batch: 2, faults: budget{Restart: 1}},
	{name: "restart, hashes, lost", nodes: rowOf(2), engines: 1, batch: 2, hashes: true, faults: budget{Restart: 1, Lost: 1}},
	{name: "restart, chain", nodes: rowOf(2), engines: 1, batch: 2, chain: true, faults: budget{Restart: 1}},
	{name: "restart, zombie", many: true, nodes: rowOf(2), engines: 2, batch: 2, hashes: true, faults: budget{Restart: 1, Zombie: 1}},
	{name: "long row, late, crash", many: true, nodes: rowOf(2), engines: 2, batch: 2, faults: budget{Late: 1, Crash: 1}},
	{name: "writes, lost, late", many: true, nodes: rowOf(1), engines: 2, batch: 2, outside: writes(2), faults: budget{Lost: 1, Late: 1}},
	{name: "terminate row, crash", many: true, nodes: rowOf(2), engines: 2, batch: 2, outside: ends(1), faults: budget{Crash: 1}},
	{name: "terminate, zombie, lost", many: true, nodes: rowOf(1), engines: 2, batch: 2, outside: ends(1), faults: budget{Zombie: 1, Lost: 1}},
}

// Whatever happens in whatever order, each message is read once, and in order, nothing is held for ever, and the work gets done.
func TestExplore(t *testing.T) {
	for i := range scopes {
		sc := &scopes[i]
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			if sc.many && os.Getenv("EXPLORE") == "" {
				t.Skip("it takes a minute or more: EXPLORE=all goes through it, too")
			}
			began := time.Now()
			f := newLab(t, sc, nil).explore(t, 1_000_000)
			t.Logf("%d worlds, %d moves, %d ends (%d with a record), depth %d, %.1f s", f.worlds, f.moves, f.ends, f.records, f.depth, time.Since(began).Seconds())
			if f.wrong != "" {
				t.Errorf("%s:\n%s", f.wrong, strings.Join(f.path, "\n"))
			}
			if strings.HasPrefix(sc.name, "record") && f.records == 0 {
				t.Error("no record was completed as one")
			}
			if f.wrong == "" && (!f.complete || f.ends == 0) {
				t.Error("this test has not seen all worlds, or none in which all is done")
			}
		})
	}
}

// rules are those of the scripts that these tests watch over, each with how it looks if it is not kept.
var rules = []broken{
	{"only who holds a job commits", "hashes, zombie, late", []piece{{"  if j.token ~= d.token then return 'fenced' end\n", ""}}},
	{"only who holds a job commits, in short", "hashes, zombie, late", []piece{{"elseif d.guess or j.token ~= d.token or j.status ~= S.running then", "elseif d.guess or j.status ~= S.running then"}}},
	{"a stream ends when the last of its sources has", "join, lost, crash", []piece{{"'n.' .. name, -1) ~= 0 then return end", "'n.' .. name, -1) == -99 then return end"}}},
	{"what is ready is due", "row, lost, crash", []piece{{"call('ZADD', P .. 'due', str(at or NOW + LOOK), j.id)", "call('ZREM', P .. 'due', j.id)"}}},
	{"a repeated commit changes nothing", "hashes, lost, crash", []piece{{
		"if j.status == '' or j.last ~= d.last then",
		"if j.status ~= '' and j.last == d.last then j.token, j.status = d.token, S.running end\n      if true then",
	}}},
	{"what comes during a run is for another one", "join, zombie", []piece{{"if j.again and (event == 'complete' or event == 'suspend' or event == 'reschedule') then event = 'requeue' end", ""}}},
	{"a run has a lease", "hashes, lost, crash", []piece{{"  j.wakers = nil\n  local row", "  call('ZREM', P .. 'due', j.id)\n  j.wakers = nil\n  local row"}}},
	{"a repeated pop begins no other job", "row, lost, crash", []piece{{"if token == b.token then -- an earlier sending", "if false then -- an earlier sending"}}},
	{"a full port holds its writers back", "full, lost, crash", []piece{{"if writer and dir == 'i' and limit > 0 and len >= limit then full(id, port) end", ""}}},
	{"who was held back goes on when there is room", "full, lost, crash", []piece{{"if dir == 'i' and limit > 0 then relieve(id, port, limit) end", ""}}},
	{"a run on what is not committed holds only if its job is as it was", "chain, hashes, zombie, lost", []piece{
		{"  if j.version ~= g.version or j.touched ~= g.touched + g.closed or (j.last or '') ~= g.last then return 'moved' end\n", ""},
		{"or call('LLEN', k .. ':i:' .. g.port) ~= g.seen ", ""},
		{" or j.version ~= g.version or (j.last or '') ~= g.last then return false end", " then return false end"},
		{"    if (call('HGET', key(t.id), 'h.' .. t.dir .. '.' .. t.port) or '0') ~= t.head then return 'moved' end\n", ""},
	}},
	{"who is terminated stays so", "terminate the last", []piece{{
		"    if j.status == S.running then\n      local why",
		"    if j.status == S.terminated then return place(j, S.queued) end\n    if j.status == S.running then\n      local why",
	}}},
}

// What is found does not depend on what a store remembers of other worlds.
func TestSameAgain(t *testing.T) {
	sc := &scopes[slices.IndexFunc(scopes, func(sc scope) bool { return sc.name == "record, lost, crash" })]
	one, again := newLab(t, sc, nil).explore(t, 1_000_000), newLab(t, sc, nil).explore(t, 1_000_000)
	if !reflect.DeepEqual(one, again) {
		t.Errorf("once %+v, then %+v", one, again)
	}
}

// Each rule is needed: without it something goes wrong.
func TestRules(t *testing.T) {
	for i := range rules {
		r := &rules[i]
		t.Run(r.rule, func(t *testing.T) {
			t.Parallel()
			at := slices.IndexFunc(scopes, func(sc scope) bool { return sc.name == r.scope })
			if at < 0 {
				t.Fatalf("there is no scope %q", r.scope)
			}
			f := newLab(t, &scopes[at], r).explore(t, 1_000_000)
			if f.wrong == "" {
				t.Errorf("nobody sees that it is broken, in %d worlds", f.worlds)
			}
			t.Logf("after %d worlds: %s:\n%s", f.worlds, f.wrong, strings.Join(f.path, "\n"))
		})
	}
}

func ports(p ...job.Port) []job.Port { return p }

// fed is the In port of a job that one edge leads to.
func fed() job.Port {
	return job.Port{Spec: port.Spec{Name: "in", Dir: port.Input}, Sources: 1}
}

// out is the Out port of a job, with an edge to the In port of a node.
func out(node int) job.Port {
	return job.Port{Spec: port.Spec{Name: "out", Dir: port.Output}, Edges: []job.Edge{{{Node: node, Dir: port.Input, Port: "in"}}}}
}
