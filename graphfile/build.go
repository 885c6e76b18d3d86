package graphfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
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
// The error tells all problems at once, as [Problem]: those of the text of a draft (see
// [ParseDraft]), of [File.Check] and [File.Expand], types that do not exist, args that do not
// fit, ports that do not exist or whose messages differ, ports that must be fed and are not, and
// cycles. What it cannot tell before something else is fixed: what a worker says of its args
// together while one of them does not fit by itself, the ports of a worker whose args decide
// about them and do not fit, and, while an edge cannot be read, which ports are not fed.
func (f *File) Build(workers []any, params map[string]json.RawMessage) (*graph.Graph, error) {
	b := builder{p: f.checked(), spots: make(map[string]Pos), wires: make(map[string][]wire), workers: make(map[string]any), led: make(map[string]bool), told: make(map[error]bool), said: make(map[spot]bool)}
	for _, w := range workers {
		name, err := job.TypeOf(w)
		if err != nil {
			return nil, err
		}
		b.workers[name] = w
	}
	values := f.arguments(b.p, f.Pos, "params", params, nil)
	f.strange(b.p, f.Pos, "params", params)
	name := f.Name
	if wrongName(name) != "" {
		name = "graph"
	}
	g := b.graph(&reach{file: f}, name, f.filled(b.p, f.Pos, "params", values), values)
	if !b.full { // else it is not whole
		_, err := g.Plan()
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
	spots   map[string]Pos    // where in the file something is, by its path as package graph writes it
	wires   map[string][]wire // edges from there
	nodes   int               // so far, of all graphs
	size    int               // of their values
	full    bool              // either is more than there may be: no more nodes are built
	led     map[string]bool   // paths that edges and inputs lead to
	told    map[error]bool    // about single graphs
	said    map[spot]bool     // about the whole graph
}

// spot is a problem of a graph, wherever that is nested.
type spot struct {
	pos        Pos
	last, text string
}

// wire is where an edge that the graph may complain about is in the file.
type wire struct {
	to  string // its path
	pos Pos
}

// reach is a graph, with those around it: their graphs are what nodes may have as their type.
type reach struct {
	file  *File
	field string // of the graph in the file; empty for the whole file
	outer *reach
}

// find returns the graph that a type of node means, nil for a worker type.
func (s *reach) find(name string) *reach {
	for ; s != nil; s = s.outer {
		for i := range s.file.Graphs {
			if g := &s.file.Graphs[i]; g.Name == name {
				return &reach{g, under(s.field, "graphs", show(name)), s}
			}
		}
	}
	return nil
}

// within tells whether a graph is one of those around this one.
func (s *reach) within(f *File) bool {
	for ; s != nil; s = s.outer {
		if s.file == f {
			return true
		}
	}
	return false
}

func (s *reach) names() []string {
	var names []string
	for ; s != nil; s = s.outer {
		for i := range s.file.Graphs {
			names = append(names, s.file.Graphs[i].Name)
		}
	}
	return names
}

// layer is one graph while it is built.
type layer struct {
	*builder
	*reach
	g      *graph.Graph
	path   string // of the graph in the messages of package graph
	name   string // what it calls itself until it is nested
	values map[string]*value
	there  map[string]*File // its nodes: the graph that each is, nil for workers
}

// graph builds one definition, with the values of its parameters in place, as far as anything can be built of it.
func (b *builder) graph(s *reach, path string, def *File, values map[string]*value) *graph.Graph {
	def.eachValue(func(_ Pos, _ string, raw json.RawMessage) { b.size += len(raw) })
	l := &layer{builder: b, reach: s, path: path, name: path[strings.LastIndexByte(path, '/')+1:], values: values, there: make(map[string]*File)}
	if s.file.Name != "" && wrongName(s.file.Name) == "" {
		l.name = s.file.Name
	}
	l.g = graph.New(l.name)
	l.at("", s.file.Pos)
	l.options()
	for i := range def.Nodes {
		l.node(&s.file.Nodes[i], &def.Nodes[i])
	}
	known := make(map[[2]End]bool)
	for i := range def.Edges {
		e := &def.Edges[i]
		if key := [2]End{e.From, e.To}; !known[key] {
			known[key] = true
			l.edge(e)
		}
	}
	for _, x := range def.Inputs {
		l.ends(x, func(end string) { graph.WireInput(l.g, x.Name, end) }, port.Input)
	}
	for _, x := range def.Outputs {
		l.ends(x, func(end string) { graph.WireExport(l.g, x.Name, end) }, port.Output)
	}
	b.place(l.g.Err(), false)
	return l.g
}

// at says where something of the graph is in the file, if nothing has done so. Until it is nested the graph calls itself by its name.
func (l *layer) at(suffix string, pos Pos) {
	for _, own := range []string{l.path, l.name} {
		if _, known := l.spots[own+suffix]; !known {
			l.spots[own+suffix] = pos
		}
	}
}

// options are what the file says of the graph as a whole, as far as it is right.
func (l *layer) options() {
	f := l.file
	if l.outer == nil {
		if d, err := job.ParseRetention(f.Retain); f.Retain != "" && err == nil {
			l.g.Retain(d)
		}
		if f.SequentialKey != "" && job.CheckSequentialKey(f.SequentialKey) == nil {
			l.g.SequentialKey(f.SequentialKey)
		}
		if f.Unique != nil {
			if by, err := f.Unique.By(); err == nil {
				l.g.Unique(by)
			}
		}
	}
	if f.Priority != nil && job.CheckPriority(*f.Priority) == nil {
		l.g.Priority(*f.Priority)
	}
}

// edge wires two ports, or looks at the one that is there.
func (l *layer) edge(e *Edge) {
	from, to := "/"+e.From.String(), "/"+e.To.String()
	l.at(from, e.Pos)
	l.at(to, e.Pos)
	for _, own := range []string{l.path, l.name} {
		l.wires[own+from] = append(l.wires[own+from], wire{own + to, e.Pos})
	}
	l.led[l.path+to] = true
	var opts []graph.WireOption
	if e.Limit > 0 {
		opts = append(opts, graph.Limit(e.Limit))
	}
	if e.Feedback {
		opts = append(opts, graph.Feedback())
	}
	switch from, to := l.has(e.From, port.Output), l.has(e.To, port.Input); {
	case from && to:
		graph.Wire(l.g, e.From.String(), e.To.String(), opts...)
	case from:
		graph.CheckPort(l.g, port.Output, e.From.String())
	case to:
		graph.CheckPort(l.g, port.Input, e.To.String())
	}
}

// ends wires a port of the graph, which it has also if none of its ends is there.
func (l *layer) ends(x Export, wire func(end string), dir port.Dir) {
	l.at("."+x.Name, x.Pos)
	l.led[l.path+"."+x.Name] = true
	for i, end := range x.Ends {
		l.at("/"+end.String(), x.Pos)
		if dir == port.Input {
			l.led[l.path+"/"+end.String()] = true
		}
		if wrongName(x.Name) == "" && l.has(end, dir) && slices.Index(x.Ends, end) == i {
			wire(end.String())
		}
	}
	graph.UnknownPort(l.g, dir, x.Name)
}

// has tells whether there is the node of a port, and, if that is a graph, whether it has the port. What lacks has been told.
func (l *layer) has(e End, dir port.Dir) bool {
	def, ok := l.there[e.Node]
	if !ok || wrongName(e.Port) != "" || def == nil {
		return ok && wrongName(e.Port) == ""
	}
	ports := def.Inputs
	if dir == port.Output {
		ports = def.Outputs
	}
	return slices.ContainsFunc(ports, func(x Export) bool { return x.Name == e.Port })
}

// room tells whether there is room for one more node, before it is built: graphs within graphs double quickly.
func (b *builder) room(n *Node, field string) bool {
	if b.full {
		return false
	}
	if b.nodes++; b.nodes >= job.MaxNodes {
		b.full = true
		b.p.add(n.Pos, field, "the graph has more than %d jobs, with those of the graphs in it: let a job spawn the rest", job.MaxNodes)
	} else if b.size > maxExpanded {
		b.full = true
		b.p.add(n.Pos, field, "the values of the graph take more than %d bytes, with those of the graphs in it: send large ones as messages", maxExpanded)
	}
	return !b.full
}

// node adds a node, and what the file says of its ports. raw is the node as it is written.
func (l *layer) node(raw, n *Node) {
	field := under(l.field, "nodes", show(n.Name))
	if !l.room(n, field) {
		return
	}
	if _, twice := l.there[n.Name]; twice || wrongName(n.Name) != "" {
		return
	}
	l.at("/"+n.Name, n.Pos)
	l.add(raw, n, field)
	for i, in := range n.In {
		to := n.Name + "." + in.Port
		l.at("/"+to, in.Pos)
		if !l.has(End{n.Name, in.Port}, port.Input) {
			continue
		}
		for k, v := range in.Values {
			if l.file.open(raw.In[i].Values[k], l.values) {
				l.led[l.path+"/"+to] = true
			} else {
				graph.WireConst(l.g, to, v)
			}
		}
		if in.Limit > 0 {
			graph.WireLimit(l.g, to, in.Limit)
		}
		if in.Default != nil && !l.file.open(raw.In[i].Default, l.values) {
			graph.WireDefault(l.g, to, in.Default)
		}
	}
}

// graphOptions are what the file says about the jobs of a node, as far as it is right.
func (n *Node) graphOptions() []graph.Option {
	var opts []graph.Option
	if job.CheckName("queue", n.Queue) == nil {
		opts = append(opts, graph.Queue(n.Queue))
	}
	if slices.Contains(failures, n.Failure) {
		opts = append(opts, graph.OnFailure(job.FailurePolicy(n.Failure)))
	}
	if n.Instances > 0 {
		opts = append(opts, graph.Instances(n.Instances))
	}
	if n.Priority != nil && job.CheckPriority(*n.Priority) == nil {
		opts = append(opts, graph.Priority(*n.Priority))
	}
	if job.CheckLabels(n.Labels) == nil {
		for key, value := range n.Labels {
			opts = append(opts, graph.Label(key, value))
		}
	}
	if o, err := n.runOptions(); err == nil {
		opts = append(opts, graph.Tries(o.Tries), graph.Backoff(o.Backoff, o.MaxBackoff), graph.Timeout(o.Timeout))
	}
	return opts
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

// add adds the worker or graph of a node. What cannot be known of it is left open.
func (l *layer) add(raw, n *Node, field string) {
	opts := n.graphOptions()
	l.there[n.Name] = nil
	s := l.find(n.Type)
	switch prototype, ok := l.workers[n.Type]; {
	case s != nil && l.within(s.file): // it contains itself
	case s != nil:
		l.nest(raw, n, field, s, opts)
		return
	case ok:
		w, fits := l.worker(n, prototype, field, l.file.open(raw.Args, l.values))
		if fits || w != nil {
			graph.AddWorker(l.g, n.Name, w, opts...)
			return
		}
	case n.Type != "" && !l.p.about(field+".type"):
		known := append(l.names(), slices.Sorted(maps.Keys(l.workers))...)
		l.p.add(n.Pos, field+".type", "there is no type %q: %s", n.Type, port.Suggest(n.Type, known))
	}
	graph.AddUnknown(l.g, n.Name, opts...)
}

// nest adds the graph of a node.
func (l *layer) nest(raw, n *Node, field string, s *reach, opts []graph.Option) {
	var given, written map[string]json.RawMessage
	if json.Unmarshal(n.Args, &given) != nil || json.Unmarshal(raw.Args, &written) != nil {
		given = nil // there are none, or it has been told
	}
	open := make(map[string]bool)
	for name := range given {
		open[name] = l.file.open(written[name], l.values)
	}
	field += ".args"
	values := s.file.arguments(l.p, n.Pos, field, given, open)
	sub := l.graph(s, l.path+"/"+n.Name, s.file.filled(l.p, n.Pos, field, values), values)
	l.there[n.Name] = s.file
	graph.Nest(l.g, n.Name, sub, opts...)
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
		cause := errors.Unwrap(one)
		if comparable := cause != nil && reflect.TypeOf(cause).Comparable(); !whole && comparable {
			b.told[cause] = true
		} else if comparable && b.told[cause] {
			continue
		}
		if errors.Is(one, graph.ErrUnknown) || errors.Is(one, graph.ErrUnfed) && (b.led[path] || b.p.blind) {
			continue
		}
		if errors.Is(one, graph.ErrEmpty) && len(b.p.list) > 0 { // which says why
			continue
		}
		pos := b.where(path, text)
		if key := (spot{pos, path[strings.LastIndexByte(path, '/')+1:], text}); whole && b.said[key] { // of the same graph in another node
			continue
		} else if whole {
			b.said[key] = true
		}
		b.p.add(pos, path, "%s", text)
	}
}

// where returns where a path is in the file: of a port that is not mentioned, where its node
// is, and of one that cannot lead where it does, where the edge is.
func (b *builder) where(path, text string) Pos {
	noOut := strings.Contains(text, "no such out port")
	for _, w := range b.wires[path] {
		if noOut || strings.Contains(text, " "+w.to+" ") {
			return w.pos
		}
	}
	for {
		if pos, known := b.spots[path]; known {
			return pos
		}
		i := strings.LastIndexAny(path, "./")
		if i < 0 {
			return Pos{}
		}
		path = path[:i]
	}
}
