package rig

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/chaos/internal/crew"
	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/statemachine"
)

// maze is a random graph that mixes nesting, feedback, limits and failure policies, and the paths on which each message
// must come out of it.
type maze struct {
	intn    func(n int) int
	names   int
	must    []string        // each message comes once on each of them
	either  [][2]string     // and once on one of each pair: dead letters come on the second
	failing map[string]bool // names of jobs and graphs that fail, which is ignored
}

// mazeDepth is how deep graphs are nested.
const mazeDepth = 2

// newMaze draws a graph whose input is in and whose last job is the sink d.
func newMaze(intn func(n int) int) (*maze, *graph.Graph) {
	m := &maze{intn: intn, failing: map[string]bool{}}
	g := graph.New("maze")
	graph.Add(g, "d", &crew.Sink{})
	from, ways := m.relay(g, "", []string{""}, graph.Instances(1))
	from, ways = m.stages(g, from, ways, 2+m.intn(4), 0)
	m.wire(g, from, "d.in")
	for _, way := range ways {
		m.must = append(m.must, way+">d")
	}
	return m, g
}

func (m *maze) fresh(kind string) string {
	m.names++
	return fmt.Sprintf("%s%d", kind, m.names)
}

// wire leads from an Out port, or from the input of the graph if there is none, to an In port; some of these have a limit.
func (m *maze) wire(g *graph.Graph, from, to string, more ...graph.WireOption) {
	if m.intn(2) == 0 {
		more = append(more, graph.Limit(1+m.intn(6)))
	}
	if from == "" {
		graph.WireInput(g, "in", to, more...)
		return
	}
	graph.Wire(g, from, to, more...)
}

// through adds the name of a job to all ways.
func through(ways []string, name string, times int) []string {
	out := make([]string, len(ways))
	for i, way := range ways {
		out[i] = way + strings.Repeat(">"+name, times)
	}
	return out
}

// stages adds n random stages behind a port, and returns the port behind them and the ways that lead there.
func (m *maze) stages(g *graph.Graph, from string, ways []string, n, depth int) (string, []string) {
	for range n {
		switch kind := m.intn(8); {
		case kind == 0 && depth < mazeDepth:
			from, ways = m.nested(g, from, ways, depth)
		case kind == 1:
			from, ways = m.loop(g, from, ways)
		case kind == 2 && len(ways) < 8:
			from, ways = m.split(g, from, ways, depth)
		case kind == 3:
			m.deadEnd(g, from, depth)
		case kind == 4 && depth == 0:
			m.fussy(g, from, ways)
		case kind == 5:
			name := m.fresh("moody")
			graph.Add(g, name, &crew.Moody{}, graph.OnFailure(job.Restart))
			m.wire(g, from, name+".in")
			from, ways = name+".out", through(ways, name, 1)
		default:
			from, ways = m.relay(g, from, ways, graph.Instances(1+m.intn(2)))
		}
	}
	return from, ways
}

func (m *maze) relay(g *graph.Graph, from string, ways []string, opts ...graph.Option) (string, []string) {
	name := m.fresh("relay")
	graph.Add(g, name, &crew.Relay{}, opts...)
	m.wire(g, from, name+".in")
	return name + ".out", through(ways, name, 1)
}

// nested is a graph in the graph.
func (m *maze) nested(g *graph.Graph, from string, ways []string, depth int) (string, []string) {
	name := m.fresh("sub")
	sub := graph.New(name)
	inner, ways := m.relay(sub, "", ways, graph.Instances(1))
	inner, ways = m.stages(sub, inner, ways, 1+m.intn(3), depth+1)
	graph.WireExport(sub, "out", inner)
	graph.Nest(g, name, sub)
	m.wire(g, from, name+".in")
	return name + ".out", ways
}

// loop sends messages round, sometimes through another job.
func (m *maze) loop(g *graph.Graph, from string, ways []string) (string, []string) {
	name, laps := m.fresh("loop"), 1+m.intn(3)
	graph.Add(g, name, &crew.Loop{Laps: laps})
	m.wire(g, from, name+".in")
	if m.intn(2) == 0 {
		m.wire(g, name+".again", name+".in", graph.Feedback())
		return name + ".out", through(ways, name, 1+laps)
	}
	back := m.fresh("back")
	graph.Add(g, back, &crew.Relay{})
	m.wire(g, name+".again", back+".in")
	m.wire(g, back+".out", name+".in", graph.Feedback())
	return name + ".out", through(through(ways, name+">"+back, laps), name, 1)
}

// split sends a copy of each message through each of two branches.
func (m *maze) split(g *graph.Graph, from string, ways []string, depth int) (string, []string) {
	join := m.fresh("join")
	graph.Add(g, join, &crew.Relay{})
	var all []string
	for range 2 {
		end, branch := m.relay(g, from, ways, graph.Instances(1))
		end, branch = m.stages(g, end, branch, m.intn(2), max(depth, 1))
		m.wire(g, end, join+".in")
		all = append(all, branch...)
	}
	return join + ".out", through(all, join, 1)
}

// deadEnd leads to a job that fails, or to a graph with one, which is ignored.
func (m *maze) deadEnd(g *graph.Graph, from string, depth int) {
	name := m.fresh("broken")
	m.failing[name] = true
	if depth == mazeDepth || m.intn(2) == 0 {
		graph.Add(g, name, &crew.Broken{}, graph.OnFailure(job.Ignore))
		m.wire(g, from, name+".in")
		return
	}
	sub, inner := graph.New(name), m.fresh("inner")
	m.failing[inner] = true
	graph.Add(sub, inner, &crew.Broken{})
	end, _ := m.relay(sub, "", nil, graph.Instances(1))
	m.wire(sub, end, inner+".in")
	graph.Nest(g, name, sub, graph.OnFailure(job.Ignore))
	m.wire(g, from, name+".in")
}

// fussy leads to a job some of whose messages become dead letters.
func (m *maze) fussy(g *graph.Graph, from string, ways []string) {
	name, unwrap := m.fresh("fussy"), m.fresh("unwrap")
	graph.Add(g, name, &crew.Fussy{}, graph.OnFailure(job.DeadLetter))
	graph.Add(g, unwrap, &crew.Unwrap{})
	m.wire(g, from, name+".in")
	m.wire(g, name+".out", "d.in")
	m.wire(g, name+"."+job.ErrorsPort, unwrap+".in")
	m.wire(g, unwrap+".out", "d.in")
	for _, way := range ways {
		m.either = append(m.either, [2]string{way + ">" + name + ">d", way + ">" + unwrap + ">d"})
	}
}

// mazeRun is a maze through which messages flow.
type mazeRun struct {
	*maze
	lane
	root *client.Handle
}

// maze starts a maze, sends messages through it, and closes it.
func (r *rig) maze(ctx context.Context) {
	m, g := newMaze(r.intn)
	h := r.start(ctx, r.name("maze"), g)
	if h == nil {
		return
	}
	f := &mazeRun{maze: m, lane: lane{name: "maze " + string(h.ID())}, root: h}
	r.add(f)
	f.send(ctx, r, h, r.between(time.Second, 5*time.Second))
	r.insist(ctx, "closing "+f.name, func(ctx context.Context) error { return h.Close(ctx, "in") })
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for pause(limit, 200*time.Millisecond) { // see deed
		if i, err := h.Info(limit); err == nil && i.Status == statemachine.Completed {
			return
		}
	}
}

// check implements round.
func (f *mazeRun) check(ctx context.Context, r *rig) error {
	tree, err := f.root.Tree(ctx)
	if err != nil {
		return err
	}
	var sink job.ID
	failed := map[job.ID]bool{}
	for _, i := range tree {
		failed[i.ID] = f.failing[i.Name] || failed[i.Parent]
		if i.Name == "d" {
			sink = i.ID
		}
		if !failed[i.ID] {
			r.settled(f.name, i, true)
		}
	}
	h, err := r.client.Find(ctx, string(sink))
	if err != nil {
		return err
	}
	got, err := drain[crew.Message](ctx, h, "all")
	if err != nil {
		return err
	}
	r.count(received, len(got))
	f.compare(r, got)
	return nil
}

var instance = regexp.MustCompile(`_\d+\b`)

// compare compares what came out with what must.
func (f *mazeRun) compare(r *rig, got []crew.Message) {
	type arrival struct {
		n   int
		way string
	}
	times, last := map[arrival]int{}, map[string]int{}
	known := slices.Clone(f.must)
	for _, pair := range f.either {
		known = append(known, pair[0], pair[1])
	}
	for _, m := range got {
		way := instance.ReplaceAllString(m.Path, "")
		times[arrival{m.N, way}]++
		switch {
		case m.N < 1 || m.N > len(f.sent) || !slices.Contains(known, way):
			r.bad(duplicated, "%s: message %d came on way %s, on which none should", f.name, m.N, m.Path)
		case !f.sent[m.N-1].acked:
		case m.N <= last[m.Path]:
			r.bad(reordered, "%s: message %d came after %d on %s", f.name, m.N, last[m.Path], m.Path)
		default:
			last[m.Path] = m.N
		}
	}
	judge := func(n, count int, way string) {
		switch {
		case count == 0 && f.sent[n-1].acked:
			r.bad(lost, "%s: message %d did not come on way %s", f.name, n, way)
		case count > 1:
			r.bad(duplicated, "%s: message %d came %d times on way %s", f.name, n, count, way)
		}
	}
	for i := range f.sent {
		n := i + 1
		for _, way := range f.must {
			judge(n, times[arrival{n, way}], way)
		}
		for _, pair := range f.either {
			whole, letter := times[arrival{n, pair[0]}], times[arrival{n, pair[1]}]
			judge(n, whole+letter, pair[0]+" or "+pair[1])
			if n%crew.FussyOne == 0 && whole > 0 {
				r.bad(wrongState, "%s: message %d came on way %s, whose worker does not handle it", f.name, n, pair[0])
			}
		}
	}
}
