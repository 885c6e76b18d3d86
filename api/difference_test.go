package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/weirworks/weir/api"
)

// A patch tells what it would change before it does, changes what it has told, and then tells nothing more.
func TestDifference(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	const before = `weir: 1
name: shop
nodes:
  check: {type: map, args: {expr: it}, in: {in: {limit: 40}}}
  old: {type: map, args: {expr: it}}
  pay: {type: payment}
edges: [check.out -> pay.in, pay.done -> old.in]
inputs: {in: check.in}
outputs: {out: old.out}
graphs:
  payment:
    nodes: {bank: {type: map, args: {expr: it + 1}}}
    inputs: {in: bank.in}
    outputs: {done: bank.out}
`
	const after = `weir: 1
name: shop
nodes:
  check: {type: map, args: {expr: it}, in: {in: {limit: 50}}}
  fresh: {type: filter, args: {expr: it > 1}}
  pay: {type: payment}
edges: [check.out -> pay.in, pay.done -> fresh.in]
inputs: {in: check.in, more: fresh.in}
outputs: {out: fresh.out}
graphs:
  payment:
    nodes: {bank: {type: map, args: {expr: it + 2}, failure: dead_letter, tries: 7, backoff: 2s}}
    inputs: {in: bank.in}
    outputs: {done: bank.out}
`
	body := func(text string) string {
		raw, err := json.Marshal(map[string]string{"graph": text, "alias": "shop"})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	text := func(text string) map[string]string { return map[string]string{"graph": text} }
	s.ask("POST", "/v1/graphs", body(before)).is(http.StatusCreated, nil)
	var d api.Difference
	s.ask("POST", "/v1/jobs/shop/patch/diff", text(before)).is(http.StatusOK, &d)
	if !d.Same || len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.EdgesAdded)+len(d.EdgesRemoved) > 0 {
		t.Errorf("of what it is: %+v", d)
	}
	s.ask("POST", "/v1/jobs/shop/patch/diff", text(after)).is(http.StatusOK, &d)
	names := func(all []api.NodeDifference) (names []string) {
		for _, n := range all {
			names = append(names, n.Path+":"+n.Type)
			for _, f := range n.Fields {
				names = append(names, f.Field+" "+string(f.From)+" "+string(f.To))
			}
		}
		return names
	}
	for what, c := range map[string]struct{ got, want []string }{
		"added": {names(d.Added), []string{"fresh:filter"}}, "removed": {names(d.Removed), []string{"old:map"}},
		"changed": {names(d.Changed), []string{
			":shop", `port in more null {"dir":"in","name":"more"}`, "check:map", "limit of in in 40 50",
			"pay/bank:map", `args {"expr":"it + 1"} {"expr":"it + 2"}`, `on_failure "fail" "dead_letter"`, `options null {"backoff":"2s","tries":7}`,
			`port out errors null {"dir":"out","name":"errors"}`,
		}},
		"edges added":   {d.EdgesAdded, []string{".more -> fresh.in", "fresh.out -> .out", "pay.done -> fresh.in"}},
		"edges removed": {d.EdgesRemoved, []string{"old.out -> .out", "pay.done -> old.in"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
	s.ask("POST", "/v1/jobs/shop/patch", text(after)).is(http.StatusNoContent, nil)
	if s.ask("POST", "/v1/jobs/shop/patch/diff", text(after)).is(http.StatusOK, &d); !d.Same || len(d.Changed) > 0 {
		t.Errorf("after the patch: %+v", d)
	}
	s.ask("POST", "/v1/jobs/shop/patch/diff", text("weir: 1\nname: other\nnodes: {a: {type: emit, args: {items: [1]}}}\n")).refuses(http.StatusConflict, "status", `graph "shop"`)
	s.ask("POST", "/v1/jobs/shop/patch/diff", text("weir: 1\nnodes: {a: {type: mapp}}\n")).refuses(http.StatusUnprocessableEntity, "usage", "did you mean")
	s.ask("POST", "/v1/jobs/shop%2Fcheck/patch/diff", text(after)).refuses(http.StatusConflict, "status", "no graph")
}

// The parameters of a graph come as a JSON Schema, also when values for them are missing.
func TestGraphParams(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	const text = "weir: 1\nparams:\n  who: {type: string}\n  factor: {type: int, default: 2, description: how often}\n  any: {type: json}\nnodes:\n  a: {type: map, args: {expr: '\"${who}${factor}${any}\"'}}\n"
	var schema struct {
		Properties map[string]struct {
			Type, Description string
			Default           *int
		}
		Required []string
	}
	s.ask("POST", "/v1/graphs/params", map[string]string{"graph": text}).is(http.StatusOK, &schema)
	if p := schema.Properties["factor"]; p.Type != "integer" || p.Default == nil || *p.Default != 2 || p.Description != "how often" || !slices.Equal(schema.Required, []string{"who", "any"}) || schema.Properties["any"].Type != "" {
		t.Errorf("schema %+v", schema)
	}
	s.ask("POST", "/v1/graphs/params", `{"graph":"weir: ["}`).refuses(http.StatusUnprocessableEntity, "usage", "graph.yaml:1")
}

// A job tells who keeps it from running, and until when.
func TestLockIsShown(t *testing.T) {
	t.Parallel()
	s := serve(t, "", nil)
	s.ask("POST", "/v1/jobs", `{"type":"collect","alias":"c"}`).is(http.StatusCreated, nil)
	var job api.Job
	if s.ask("GET", "/v1/jobs/c", nil).is(http.StatusOK, &job); job.Lock != nil {
		t.Errorf("lock %+v of a job that has none", job.Lock)
	}
	var lock api.Locked
	s.ask("PUT", "/v1/jobs/c/lock", `{"ttl":"5m","wait":"10s"}`).is(http.StatusOK, &lock)
	if s.ask("GET", "/v1/jobs/c", nil).is(http.StatusOK, &job); job.Lock == nil || job.Lock.By != "local" || job.Lock.Until.Sub(lock.Until).Abs().Seconds() > 5 {
		t.Errorf("lock %+v, taken %+v", job.Lock, lock)
	}
	s.ask("DELETE", "/v1/jobs/c/lock?token="+lock.Token, nil).is(http.StatusNoContent, nil)
	job = api.Job{}
	if s.ask("GET", "/v1/jobs/c", nil).is(http.StatusOK, &job); job.Lock != nil {
		t.Errorf("lock %+v of a job that is unlocked", job.Lock)
	}
}
