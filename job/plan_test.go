package job_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

type resize struct {
	Width int
	In    port.In[string]
	Thumb port.Out[string] `port:"small"`
}

type named struct{}

func (named) JobType() string { return "images/resize" }

func TestNodeOf(t *testing.T) {
	t.Parallel()
	n, err := job.NodeOf(&resize{Width: 64}, "a", "slow")
	if err != nil {
		t.Fatal(err)
	}
	if n.Name != "a" || n.Type != "resize" || n.Queue != "slow" || len(n.Ports) != 2 || n.Ports[1].Name != "small" || n.Wired() {
		t.Errorf("%+v", n)
	}
	if !strings.Contains(string(n.Args), "64") {
		t.Errorf("args %s", n.Args)
	}
	if typ, err := job.TypeOf(&named{}); typ != "images/resize" || err != nil {
		t.Error(typ, err)
	}
	for _, bad := range []any{nil, 7, struct{}{}, []int{}} {
		if _, err := job.TypeOf(bad); !errors.Is(err, job.ErrName) {
			t.Errorf("%T: %v", bad, err)
		}
	}
}

func TestPlanValidate(t *testing.T) {
	t.Parallel()
	in := job.Port{Spec: port.Spec{Name: "in", Dir: port.Input}}
	wired := func(to job.Target) job.Port {
		return job.Port{Spec: port.Spec{Name: "out", Dir: port.Output}, Edges: []job.Edge{{to}}}
	}
	good := &job.Plan{Nodes: []job.Node{
		{Type: "G", Graph: true},
		{Name: "a", Type: "A", Ports: []job.Port{wired(job.Target{Node: 2, Dir: port.Input, Port: "in"})}},
		{Name: "b", Type: "B", Ports: []job.Port{in}},
		{Name: "a", Type: "A", Parent: 1},
	}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		plan job.Plan
		want string
	}{
		"nothing":      {job.Plan{}, "no jobs"},
		"no type":      {job.Plan{Nodes: []job.Node{{}}}, "type is empty"},
		"queue":        {job.Plan{Nodes: []job.Node{{Type: "A", Queue: "a b"}}}, `queue "a b"`},
		"no name":      {job.Plan{Nodes: []job.Node{{Type: "A"}, {Type: "B"}}}, "job name is empty"},
		"twins":        {job.Plan{Nodes: []job.Node{{Type: "A"}, {Name: "x", Type: "B"}, {Name: "x", Type: "B"}}}, `named "x"`},
		"order":        {job.Plan{Nodes: []job.Node{{Type: "A"}, {Name: "x", Type: "B", Parent: 1}}}, "parent 1"},
		"dead end":     {job.Plan{Nodes: []job.Node{{Type: "A", Ports: []job.Port{wired(job.Target{Node: 0, Dir: port.Input, Port: "in"})}}}}, `in port "in"`},
		"beyond":       {job.Plan{Nodes: []job.Node{{Type: "A", Ports: []job.Port{wired(job.Target{Node: 9})}}}}, "job 9"},
		"port":         {job.Plan{Nodes: []job.Node{{Type: "A", Ports: []job.Port{{Spec: port.Spec{Name: "a-b", Dir: port.Input}}}}}}, "a-b"},
		"too many":     {job.Plan{Nodes: make([]job.Node, job.MaxNodes+1)}, "at most"},
		"default":      {job.Plan{Nodes: []job.Node{{Type: "A", Ports: []job.Port{{Spec: port.Spec{Name: "a", Dir: port.Input, Default: []byte("{")}}}}}}, "default"},
		"args":         {job.Plan{Nodes: []job.Node{{Type: "A", Graph: true}, {Name: "b", Type: "B", Args: []byte("{")}}}, "args: wrong encoding"},
		"limit":        {job.Plan{Nodes: []job.Node{{Type: "A", Ports: []job.Port{{Spec: port.Spec{Name: "a", Dir: port.Input, Limit: -1}}}}}}, "limit -1"},
		"no direction": {job.Plan{Nodes: []job.Node{{Type: "A", Ports: []job.Port{{Spec: port.Spec{Name: "a"}}}}}}, "direction"},
	} {
		if err := c.plan.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

// What cannot be planned is refused before any store is asked.
func TestStartRefuses(t *testing.T) {
	t.Parallel()
	c := client.New(nil)
	for name, try := range map[string]func() error{
		"no worker": func() error { _, err := c.Start(context.Background(), job.Single(7, "")); return err },
		"queue":     func() error { _, err := c.Start(context.Background(), job.Single(&resize{}, "a b")); return err },
		"no alias": func() error {
			_, err := c.Start(context.Background(), job.Single(&resize{}, ""), job.Alias(""))
			return err
		},
		"alias": func() error {
			_, err := c.Start(context.Background(), job.Single(&resize{}, ""), job.Alias("7up"))
			return err
		},
	} {
		if err := try(); !errors.Is(err, job.ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A port of a plan feeds that many others at most, those included that it feeds through ports of graphs.
func TestFanOutOfPlans(t *testing.T) {
	t.Parallel()
	in := job.Port{Spec: port.Spec{Name: "in", Dir: port.Input}}
	wide := func(graphs, each int) *job.Plan {
		out := job.Port{Spec: port.Spec{Name: "out", Dir: port.Output}}
		p := &job.Plan{Nodes: []job.Node{{Type: "G", Graph: true}, {Name: "source", Type: "S"}}}
		for g := range graphs {
			at := len(p.Nodes)
			p.Nodes = append(p.Nodes, job.Node{Name: fmt.Sprint("g", g), Type: "G", Graph: true, Ports: []job.Port{in}})
			out.Edges = append(out.Edges, job.Edge{{Node: at, Dir: port.Input, Port: "in"}})
			var turns job.Edge
			for i := range each {
				p.Nodes = append(p.Nodes, job.Node{Name: fmt.Sprint("t", i), Type: "T", Parent: at, Ports: []job.Port{in}})
				turns = append(turns, job.Target{Node: at + 1 + i, Dir: port.Input, Port: "in"})
			}
			p.Nodes[at].Ports[0].Edges = []job.Edge{turns}
		}
		p.Nodes[1].Ports = []job.Port{out}
		return p
	}
	for _, fits := range []*job.Plan{wide(1, 2*job.MaxFanOut), wide(10, job.MaxFanOut/5)} {
		if err := fits.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, p := range []*job.Plan{wide(1, 2*job.MaxFanOut+1), wide(11, job.MaxFanOut/5)} {
		err := p.Validate()
		if !errors.Is(err, job.ErrTooLarge) || !strings.Contains(err.Error(), `job "source" of the plan: port out feeds 5`) {
			t.Error(err)
		}
	}
}
