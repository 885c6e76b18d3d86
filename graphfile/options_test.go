package graphfile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/job"
)

// What a file says about the runs of a node is in the plan of its graph.
func TestNodeOptions(t *testing.T) {
	t.Parallel()
	f, err := graphfile.Parse("a.yaml", []byte(`weir: 1
nodes:
  a: {type: times, args: {by: 2}, priority: 0, labels: {team: billing, "a/b": ""}, tries: 3, backoff: 1s, max_backoff: 1m30s, timeout: 20s}
  b: {type: times, args: {by: 2}}
edges: [a.out -> b.in]
inputs: {in: a.in}
outputs: {out: b.out}
`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Build([]any{&times{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := g.Plan()
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string) job.Node {
		return plan.Nodes[slices.IndexFunc(plan.Nodes, func(n job.Node) bool { return n.Name == name })]
	}
	want := job.RunOptions{Tries: 3, Backoff: time.Second, MaxBackoff: 90 * time.Second, Timeout: 20 * time.Second}
	if a := node("a"); a.Options != want || a.Priority == nil || *a.Priority != 0 || !maps.Equal(a.Labels, map[string]string{"team": "billing", "a/b": ""}) {
		t.Errorf("a: %+v", a)
	}
	if b := node("b"); b.Options != (job.RunOptions{}) || b.Priority != nil {
		t.Errorf("b: %+v", b)
	}
}

func TestBadNodeOptions(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]string{
		"timeout: soon":                `timeout: is "soon": use a time like 500ms, 30s or 1h30m`,
		"max_backoff: 1m":              "without a first one",
		"backoff: 1m, max_backoff: 1s": "below the first one",
		"tries: 0":                     "is 0, use at least 1",
		"priority: 1001":               "is 1001, use at most 1000",
		`labels: {a b: "c"}`:           `key "a b" of a label`,
		`labels: {a: 1}`:               "labels.a",
		"timeout: 5":                   "timeout",
	} {
		text := "weir: 1\nnodes:\n  a: {type: times, args: {by: 2}, " + option + "}\n"
		f, err := graphfile.Parse("a.yaml", []byte(text))
		if err == nil {
			err = f.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a.yaml:3:") {
			t.Errorf("%s: error %v, want %s", option, err, want)
		}
	}
}
