package graphfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Validator is implemented by workers that can tell before they run what is wrong with
// their parameters.
type Validator interface{ Validate() error }

// Build makes a graph of the file. workers has one value of each type of worker that nodes
// may have: a struct or a pointer to one, of which each node gets a copy with the node's
// args. params are the values of the file's parameters. The name of a file without one is
// the graph's.
//
// The error tells all problems at once, as [Problem]: those of [File.Check] and
// [File.Expand], types that do not exist, args that do not fit, ports that do not exist or
// whose messages differ, ports that must be fed and are not, and cycles.
func (f *File) Build(workers []any, params map[string]json.RawMessage) (*graph.Graph, error) {
	b := builder{p: newProblems(f.Source), workers: make(map[string]any), led: make(map[string]bool)}
	for _, w := range workers {
		name, err := job.TypeOf(w)
		if err != nil {
			return nil, err
		}
		b.workers[name] = w
	}
	name := f.Name
	if name == "" {
		name = "graph"
	}
	g, err := b.graph(f, name, params, nil)
	if err != nil {
		return nil, err
	}
	if !b.broken {
		_, err = g.Plan()
		b.place(err, true)
	}
	if err := b.p.err(); err != nil {
		return nil, err
	}
	return g, nil
}

// builder makes graphs of files.
type builder struct {
	p       *problems
	workers map[string]any
	places  []place
	nodes   int             // so far, of all graphs
	size    int             // of their values
	full    bool            // either is more than there may be: no more nodes are built
	led     map[string]bool // paths that edges and inputs lead to
	broken  bool            // a node is missing: that its ports lead nowhere says nothing new
}

// place is where something that the graph may complain about is in the file.
type place struct {
	path string // as package graph writes it
	to   string // of an edge from there
	pos  Pos
}

// reach is the graphs that nodes may have as their type, the nearest first.
type reach struct {
	graphs []File
	outer  *reach
}

func (s *reach) find(name string) (*File, *reach) {
	for ; s != nil; s = s.outer {
		for i := range s.graphs {
			if s.graphs[i].Name == name {
				return &s.graphs[i], s
			}
		}
	}
	return nil, nil
}

func (s *reach) names() []string {
	var names []string
	for ; s != nil; s = s.outer {
		for i := range s.graphs {
			names = append(names, s.graphs[i].Name)
		}
	}
	return names
}

// graph builds one definition. path is that of the graph in the messages of package graph.
func (b *builder) graph(f *File, path string, params map[string]json.RawMessage, outer *reach) (*graph.Graph, error) {
	def, err := f.Expand(params)
	if err != nil {
		return nil, err
	}
	def.eachValue(func(_ Pos, _ string, raw json.RawMessage) { b.size += len(raw) })
	name := path[strings.LastIndexByte(path, '/')+1:]
	if f.Name != "" {
		name = f.Name
	}
	g := graph.New(name)
	// Until it is nested the graph calls itself by its name.
	at := func(suffix string, pos Pos) {
		b.places = append(b.places, place{path: path + suffix, pos: pos}, place{path: name + suffix, pos: pos})
	}
	at("", f.Pos)
	if f.Retain != "" && outer == nil {
		d, err := job.ParseRetention(f.Retain)
		if err != nil {
			return nil, err
		}
		g.Retain(d)
	}
	if f.SequentialKey != "" && outer == nil {
		g.SequentialKey(f.SequentialKey)
	}
	if f.Unique != nil && outer == nil {
		by, err := f.Unique.By()
		if err != nil {
			return nil, err
		}
		g.Unique(by)
	}
	if f.Priority != nil {
		g.Priority(*f.Priority)
	}
	inner := &reach{f.Graphs, outer}
	broken := make(map[string]bool) // nodes that are not in g: their wires say nothing new
	for i := range def.Nodes {
		if !b.node(g, &def.Nodes[i], path, at, inner) {
			broken[def.Nodes[i].Name], b.broken = true, true
		}
	}
	for _, e := range def.Edges {
		if broken[e.From.Node] || broken[e.To.Node] {
			continue
		}
		from, to := "/"+e.From.String(), "/"+e.To.String()
		at(from, e.Pos)
		at(to, e.Pos)
		b.places = append(b.places, place{path + from, path + to, e.Pos}, place{name + from, name + to, e.Pos})
		b.led[path+to] = true
		var opts []graph.WireOption
		if e.Limit > 0 {
			opts = append(opts, graph.Limit(e.Limit))
		}
		if e.Feedback {
			opts = append(opts, graph.Feedback())
		}
		graph.Wire(g, e.From.String(), e.To.String(), opts...)
	}
	for _, x := range def.Inputs {
		at("."+x.Name, x.Pos)
		for _, end := range x.Ends {
			b.led[path+"/"+end.String()] = true
			if at("/"+end.String(), x.Pos); !broken[end.Node] {
				graph.WireInput(g, x.Name, end.String())
			}
		}
	}
	for _, x := range def.Outputs {
		at("."+x.Name, x.Pos)
		for _, end := range x.Ends {
			if at("/"+end.String(), x.Pos); !broken[end.Node] {
				graph.WireExport(g, x.Name, end.String())
			}
		}
	}
	b.place(g.Err(), false)
	return g, nil
}

// node adds a node, and what the file says of its ports. It tells whether it could.
func (b *builder) node(g *graph.Graph, n *Node, path string, at func(string, Pos), s *reach) bool {
	here := path + "/" + n.Name
	if !b.room(n) {
		return false
	}
	at("/"+n.Name, n.Pos)
	opts := []graph.Option{graph.Queue(n.Queue), graph.OnFailure(job.FailurePolicy(n.Failure))}
	if n.Instances > 0 {
		opts = append(opts, graph.Instances(n.Instances))
	}
	if n.Priority != nil {
		opts = append(opts, graph.Priority(*n.Priority))
	}
	for key, value := range n.Labels {
		opts = append(opts, graph.Label(key, value))
	}
	o, err := n.runOptions()
	if err != nil {
		b.p.add(n.Pos, "nodes."+n.Name, "%v", err)
		return false
	}
	opts = append(opts, graph.Tries(o.Tries), graph.Backoff(o.Backoff, o.MaxBackoff), graph.Timeout(o.Timeout))
	if !b.add(g, n, here, s, opts) {
		return false
	}
	for _, in := range n.In {
		to := n.Name + "." + in.Port
		at("/"+to, in.Pos)
		for _, v := range in.Values {
			graph.WireConst(g, to, v)
		}
		if in.Limit > 0 {
			graph.WireLimit(g, to, in.Limit)
		}
		if in.Default != nil {
			graph.WireDefault(g, to, in.Default)
		}
	}
	return true
}

// room tells whether there is room for one more node, before it is built: graphs within graphs double quickly.
func (b *builder) room(n *Node) bool {
	if b.full {
		return false
	}
	if b.nodes++; b.nodes >= job.MaxNodes {
		b.full = true
		b.p.add(n.Pos, "nodes."+n.Name, "the graph has more than %d jobs, with those of the graphs in it: let a job spawn the rest", job.MaxNodes)
	} else if b.size > maxExpanded {
		b.full = true
		b.p.add(n.Pos, "nodes."+n.Name, "the values of the graph take more than %d bytes, with those of the graphs in it: send large ones as messages", maxExpanded)
	}
	return !b.full
}

// runOptions are what the node says about the runs of its jobs.
func (n *Node) runOptions() (o job.RunOptions, err error) {
	o.Tries = n.Tries
	for _, one := range []struct {
		key, text string
		to        *time.Duration
	}{{"backoff", n.Backoff, &o.Backoff}, {"max_backoff", n.MaxBackoff, &o.MaxBackoff}, {"timeout", n.Timeout, &o.Timeout}} {
		if one.text == "" {
			continue
		}
		if *one.to, err = time.ParseDuration(one.text); err != nil {
			return o, fmt.Errorf("%s: is %.40q: use a time like 500ms, 30s or 1h30m", one.key, one.text)
		}
	}
	return o, o.Validate()
}

// add adds the worker or graph of a node, and tells whether there is one.
func (b *builder) add(g *graph.Graph, n *Node, here string, s *reach, opts []graph.Option) bool {
	field := "nodes." + n.Name
	if def, within := s.find(n.Type); def != nil {
		var params map[string]json.RawMessage
		if n.Args != nil {
			if err := json.Unmarshal(n.Args, &params); err != nil {
				b.p.add(n.Pos, field+".args", "%v", err)
				return false
			}
		}
		sub, err := b.graph(def, here, params, within)
		if err != nil {
			b.adopt(err, n)
			return false
		}
		graph.Nest(g, n.Name, sub, opts...)
		return true
	}
	prototype, ok := b.workers[n.Type]
	if !ok {
		known := append(s.names(), slices.Sorted(maps.Keys(b.workers))...)
		b.p.add(n.Pos, field+".type", "there is no type %q: %s", n.Type, port.Suggest(n.Type, known))
		return false
	}
	w := b.worker(n, prototype)
	if w == nil {
		return false
	}
	graph.AddWorker(g, n.Name, w, opts...)
	return true
}

// adopt takes over the problems of a nested definition, which came from a node.
func (b *builder) adopt(err error, n *Node) {
	all := Problems(err)
	if all == nil {
		b.p.add(n.Pos, "nodes."+n.Name, "%v", err)
	}
	for _, p := range all {
		b.p.add(Pos{p.Line, p.Column}, p.Path, "nodes.%s: %s", n.Name, p.Text)
	}
}

// place reports the problems of a graph where the file says what they are about. If they are
// those of the whole graph, edges that are wrong themselves have left ports without edges.
func (b *builder) place(err error, whole bool) {
	if err == nil {
		return
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		b.p.add(Pos{}, "", "%v", err)
		return
	}
	for _, one := range joined.Unwrap() {
		path, text, _ := strings.Cut(one.Error(), ": ")
		if whole && b.led[path] {
			continue
		}
		b.p.add(b.find(path, text), path, "%s", text)
	}
}

// find returns where a path is in the file: of a port that is not mentioned, where its node
// is, and of one that cannot lead where it does, where the edge is.
func (b *builder) find(path, text string) Pos {
	noOut := strings.Contains(text, "no such out port")
	for _, p := range b.places {
		if p.path == path && p.to != "" && (noOut || strings.Contains(text, " "+p.to+" ")) {
			return p.pos
		}
	}
	for {
		for _, p := range b.places {
			if p.path == path && p.to == "" {
				return p.pos
			}
		}
		i := strings.LastIndexAny(path, "./")
		if i < 0 {
			return Pos{}
		}
		path = path[:i]
	}
}
