package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Hub is a worker with enough ports for any graph.
type Hub struct {
	Idling
	A, B port.In[int]
	X, Y port.Out[int]
}

func (h *Hub) in(i int) port.In[int]   { return []port.In[int]{h.A, h.B}[i] }
func (h *Hub) out(i int) port.Out[int] { return []port.Out[int]{h.X, h.Y}[i] }

var (
	side  = rapid.IntRange(0, 1)
	count = rapid.IntRange(1, 4)
)

// Every port of a random graph without cycles is closed by just as many closes
// as it has sources, and every job gets to its end.
func TestSourcesAreCloses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g, sources := randomDAG(t)
		plan, err := g.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Validate(); err != nil {
			t.Fatal(err)
		}
		got := closes(t, plan)
		for i, n := range plan.Nodes {
			for _, p := range n.Ports {
				at := job.Target{Node: i, Dir: p.Dir, Port: p.Name}
				if p.Sources != got[at] {
					t.Errorf("%s %v: %d sources, but %d closes arrive\n%s", n.Name, at, p.Sources, got[at], dump(plan))
				}
				// The naive count of the test, of worker ports by node and port name.
				node, _, _ := strings.Cut(n.Name, "_")
				if want := sources[fmt.Sprintf("%s.%v.%s", node, p.Dir, p.Name)]; p.Sources != want {
					t.Errorf("%s %v: %d sources, want %d\n%s", n.Name, at, p.Sources, want, dump(plan))
				}
			}
		}
	})
}

// randomDAG builds a graph whose wires lead to workers added later, and counts
// what feeds each port.
func randomDAG(t *rapid.T) (*graph.Graph, map[string]int) {
	g := graph.New("g")
	sources := make(map[string]int)
	done := make(map[string]bool)
	wire := func(from, to string, instances int, connect func()) {
		if !done[from+to] {
			done[from+to] = true
			sources[to] += instances
			connect()
		}
	}
	hubs := make([]*Hub, rapid.IntRange(1, 7).Draw(t, "hubs"))
	instances := make([]int, len(hubs))
	for i := range hubs {
		instances[i] = count.Draw(t, "instances")
		hubs[i] = graph.Add(g, fmt.Sprintf("n%d", i), &Hub{}, graph.Instances(instances[i]))
	}
	hub := rapid.IntRange(0, len(hubs)-1)
	for range rapid.IntRange(0, 15).Draw(t, "wires") {
		i, j, out, in := hub.Draw(t, "from"), hub.Draw(t, "to"), side.Draw(t, "out"), side.Draw(t, "in")
		if i < j {
			wire(fmt.Sprint(i, "xy"[out]), fmt.Sprintf("n%d.in.%c", j, "ab"[in]), instances[i],
				func() { graph.Connect(hubs[i].out(out), hubs[j].in(in)) })
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "inputs") {
		name := fmt.Sprintf("in%d", i)
		input := graph.Input[int](g, name)
		for range count.Draw(t, "wires") {
			j, in := hub.Draw(t, "to"), side.Draw(t, "in")
			wire(name, fmt.Sprintf("n%d.in.%c", j, "ab"[in]), 1, func() { graph.Connect(input, hubs[j].in(in)) })
		}
	}
	for e := range rapid.IntRange(0, 3).Draw(t, "exports") {
		i, out := hub.Draw(t, "from"), side.Draw(t, "out")
		name := fmt.Sprintf("out%d", e)
		wire(fmt.Sprint(i, "xy"[out]), "g.out."+name, instances[i], func() { graph.Export(g, name, hubs[i].out(out)) })
	}
	return g, sources
}

// closes lets the plan run to its end: the outside closes the In ports of the
// graph, and each job closes its Out ports when all sources of its In ports are
// closed. It returns how many closes arrived at each port.
func closes(t *rapid.T, plan *job.Plan) map[job.Target]int {
	arrived := make(map[job.Target]int)
	ended := make([]bool, len(plan.Nodes))
	end := func(i int, dir port.Dir) {
		ended[i] = true
		for _, p := range plan.Nodes[i].Ports {
			if p.Dir != dir {
				continue
			}
			for _, edge := range p.Edges {
				for _, to := range edge {
					arrived[to]++
				}
			}
		}
	}
	ready := func(i int) bool {
		for _, p := range plan.Nodes[i].Ports {
			if p.Dir == port.Input && arrived[job.Target{Node: i, Dir: p.Dir, Port: p.Name}] < p.Sources {
				return false
			}
		}
		return true
	}
	end(0, port.Input)
	for range plan.Nodes {
		for i := range plan.Nodes {
			if !ended[i] && ready(i) {
				end(i, port.Output)
			}
		}
	}
	for i, n := range plan.Nodes {
		if !ended[i] {
			t.Errorf("job %s waits for ever\n%s", n.Name, dump(plan))
		}
	}
	return arrived
}

// Whatever is called in whatever order, nothing panics, every problem is one line
// with its place, and a plan that comes of it is valid.
func TestAnyCalls(t *testing.T) {
	t.Parallel()
	name := rapid.SampledFrom([]string{"a", "a_1", "b", "g", "", "no name", "line\nbreak", "é", "*", "a/b.c", strings.Repeat("x", 127)})
	rapid.Check(t, func(t *rapid.T) {
		graphs := []*graph.Graph{graph.New("g"), graph.New("h")}
		hubs := []*Hub{{}}
		outs := []port.Out[int]{{}}
		g := func() *graph.Graph { return graphs[min(1, rapid.IntRange(0, 9).Draw(t, "graph")/9)] }
		hub := func() *Hub { return rapid.SampledFrom(hubs).Draw(t, "hub") }
		out := func() port.Out[int] {
			return append(outs, hub().out(side.Draw(t, "out")))[rapid.IntRange(0, len(outs)).Draw(t, "handle")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := rapid.IntRange(-1, 3).Draw(t, "instances")
				hubs = append(hubs, graph.Add(g(), name.Draw(t, "name"), &Hub{}, graph.Instances(n)))
			},
			"add again": func(t *rapid.T) { graph.Add(g(), name.Draw(t, "name"), hub()) },
			"add nil":   func(t *rapid.T) { hubs = append(hubs, graph.Add[Hub](g(), name.Draw(t, "name"), nil)) },
			"broken":    func(t *rapid.T) { graph.Connect(graph.Input[Image](g(), "a"), graph.Add(g(), "a", &Broken{}).In) },
			"connect":   func(t *rapid.T) { graph.Connect(out(), hub().in(side.Draw(t, "in"))) },
			"export":    func(t *rapid.T) { graph.Export(g(), name.Draw(t, "name"), out()) },
			"input":     func(t *rapid.T) { outs = append(outs, graph.Input[int](g(), name.Draw(t, "name"))) },
			"": func(t *rapid.T) {
				for i, g := range graphs {
					plan, err := g.Plan()
					if (plan == nil) == (err == nil) {
						t.Fatalf("got %v and %v", plan, err)
					}
					if err == nil {
						err = plan.Validate()
						if err == nil {
							continue
						}
						t.Fatal(err)
					}
					for line := range strings.Lines(err.Error()) {
						if !strings.HasPrefix(line, "gh"[i:i+1]) || !strings.Contains(line, ": ") {
							t.Fatalf("no place in %q of:\n%v", line, err)
						}
					}
				}
			},
		})
	})
}
