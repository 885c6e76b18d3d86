package graphfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
)

var (
	paramTypes = []string{TypeString, TypeInt, TypeNumber, TypeBool, TypeJSON}
	failures   = []string{FailureFail, FailureRestart, FailureIgnore, FailureDeadLetter}
	typeName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/-]*$`)
)

// Check returns all that can be told to be wrong with f without knowing the types
// of its nodes, each a [Problem], or nil. What [Parse] returns has been checked.
func (f *File) Check() error { return f.checked().err() }

// checked are the problems of f, with those of the text of a draft.
func (f *File) checked() *problems {
	if f.wrong != nil {
		return f.wrong.fork()
	}
	p := newProblems(f.Source)
	f.check(p)
	return p
}

func (f *File) check(p *problems) {
	c := &checker{p, make(map[*File]*outline), make(map[*File]visit)}
	c.graph(c.inside(f, nil))
}

// scope is a graph and those around it.
type scope struct {
	*outline
	outer *scope
	path  string // empty for the whole file
}

// outline is a graph with its parts by name.
type outline struct {
	file   *File
	graphs map[string]*File
	params map[string]bool
	ports  map[string]map[string]bool // of "In" and "Out"
}

func outlineOf(f *File) *outline {
	o := &outline{f, make(map[string]*File), make(map[string]bool), map[string]map[string]bool{"In": {}, "Out": {}}}
	for i := range f.Graphs {
		if g := &f.Graphs[i]; o.graphs[g.Name] == nil {
			o.graphs[g.Name] = g
		}
	}
	for _, param := range f.Params {
		o.params[param.Name] = true
	}
	for _, x := range f.Inputs {
		o.ports["In"][x.Name] = true
	}
	for _, x := range f.Outputs {
		o.ports["Out"][x.Name] = true
	}
	return o
}

type visit byte

const (
	unseen visit = iota
	open
	done
)

type checker struct {
	problems *problems
	outlines map[*File]*outline
	visited  map[*File]visit // by contains
}

// inside is the scope of a graph that lies in another.
func (c *checker) inside(f *File, outer *scope) *scope {
	o := c.outlines[f]
	if o == nil {
		o = outlineOf(f)
		c.outlines[f] = o
	}
	path := ""
	if outer != nil {
		path = under(outer.path, "graphs", show(f.Name))
	}
	return &scope{o, outer, path}
}

// find returns the graph that a type of node means, nil for a worker type.
func (c *checker) find(s *scope, typ string) *scope {
	for ; s != nil; s = s.outer {
		if g := s.graphs[typ]; g != nil {
			return c.inside(g, s)
		}
	}
	return nil
}

// site is one graph while it is checked.
type site struct {
	*checker
	*scope
	nodes map[string]*scope // the graph that each node is, nil for workers
	used  map[string]bool   // parameters
}

func (c *checker) graph(s *scope) {
	f, depth := s.file, 0
	for outer := s.outer; outer != nil; outer = outer.outer {
		depth += 2
		if outer.file == f || depth > MaxDepth {
			c.problems.add(f.Pos, s.path, "nested too deep: at most %d levels are allowed", MaxDepth)
			return
		}
	}
	t := &site{checker: c, scope: s, nodes: make(map[string]*scope), used: make(map[string]bool)}
	if s.outer != nil {
		t.name(f.Pos, "", f.Name)
	} else if f.Name != "" {
		t.name(f.Pos, "name", f.Name)
	}
	if f.Retain != "" && s.outer != nil {
		t.add(f.Pos, "retain", "a graph goes with the one that it is in: say it there")
	} else if _, err := job.ParseRetention(f.Retain); f.Retain != "" && err != nil {
		t.add(f.Pos, "retain", "is %.40q: use a time like 12h or 7d, or forever", f.Retain)
	}
	if f.SequentialKey != "" && s.outer != nil {
		t.add(f.Pos, "sequential_key", "a graph goes with the one that it is in: say it there")
	} else if err := job.CheckSequentialKey(f.SequentialKey); f.SequentialKey != "" && err != nil {
		t.add(f.Pos, "sequential_key", "%v", err)
	}
	if f.Unique != nil && s.outer != nil {
		t.add(f.Unique.Pos, "unique", "a graph goes with the one that it is in: say it there")
	} else if f.Unique != nil {
		if _, err := f.Unique.By(); err != nil {
			t.add(f.Unique.Pos, "unique", "%v", err)
		}
	}
	t.priority(f.Pos, "priority", f.Priority)
	t.metadata(f.Pos, "", f.Metadata)
	t.twins()
	t.parameters()
	if len(f.Nodes) == 0 && !c.problems.about(under(s.path, "nodes")) {
		t.add(f.Pos, "", "the graph has no nodes")
	}
	for i := range f.Nodes {
		t.node(&f.Nodes[i])
	}
	t.values()
	t.edges()
	t.exports("inputs", f.Inputs)
	t.exports("outputs", f.Outputs)
	for _, param := range f.Params {
		if !t.used[param.Name] {
			t.add(param.Pos, under("params", show(param.Name)), "is not used: write ${%s} somewhere, or remove it", param.Name)
		}
	}
	if c.visited[f] == unseen {
		c.contains(s, nil)
	}
	for i := range f.Graphs {
		c.graph(c.inside(&f.Graphs[i], s))
	}
}

// add reports a problem of something in the graph.
func (t *site) add(pos Pos, path, format string, args ...any) {
	full := t.path
	if path != "" {
		full = under(full, path)
	}
	t.problems.add(pos, full, format, args...)
}

func (t *site) name(pos Pos, path, name string) {
	if text := wrongName(name); text != "" {
		t.add(pos, path, "%s", text)
	}
}

func (t *site) metadata(pos Pos, path string, raw json.RawMessage) {
	if raw != nil {
		t.object(pos, under(path, "metadata"), raw)
	}
}

// object checks JSON that must be an object.
func (t *site) object(pos Pos, path string, raw json.RawMessage) *value {
	v, err := parseRaw(raw)
	switch {
	case err != nil:
		t.add(pos, path, "%v", err)
		return nil
	case v.kind != object:
		t.add(pos, path, "is %s, use a map", brief(v))
		return nil
	}
	return v
}

func (t *site) number(pos Pos, path string, n int) {
	if n < 0 {
		t.add(pos, path, "is %d, use at least 1", n)
	} else if n > maxInt {
		t.add(pos, path, "is %d, use at most %d", n, maxInt)
	}
}

func (t *site) priority(pos Pos, path string, n *int) {
	if n != nil && job.CheckPriority(*n) != nil && !t.problems.about(under(t.path, path)) {
		t.add(pos, path, "is %d, use 0 (last) to %d (first)", *n, job.MaxPriority)
	}
}

// twins reports graphs of the same name.
func (t *site) twins() {
	for i := range t.file.Graphs {
		if g := &t.file.Graphs[i]; t.graphs[g.Name] != g {
			t.add(g.Pos, under("graphs", show(g.Name)), "there is another graph of this name")
		}
	}
}

func (t *site) parameters() {
	known := make(map[string]bool)
	for _, param := range t.file.Params {
		path := under("params", show(param.Name))
		t.name(param.Pos, path, param.Name)
		if known[param.Name] {
			t.add(param.Pos, path, "there is another parameter of this name")
		}
		known[param.Name] = true
		if t.file.Literal {
			t.add(param.Pos, path, "a literal graph has no parameters")
		}
		if param.Type == "" && param.Default == nil {
			t.add(param.Pos, path, "%s", typeless)
			continue
		}
		if !slices.Contains(paramTypes, param.Type) {
			if !t.problems.about(under(t.path, path, "type")) {
				t.add(param.Pos, under(path, "type"), "%s", notOneOf(t.problems, param.Type, paramTypes))
			}
			continue
		}
		if param.Default == nil {
			continue
		}
		if _, err := parseRaw(param.Default); err != nil {
			t.add(param.Pos, under(path, "default"), "%v", err)
		} else if text := misfit(param.Type, param.Default); text != "" {
			t.add(param.Pos, under(path, "default"), "%s", text)
		}
	}
}

// typeless is said of a parameter about which nothing is known.
const typeless = "has neither a type nor a default"

func (t *site) node(n *Node) {
	path := under("nodes", show(n.Name))
	t.name(n.Pos, path, n.Name)
	if _, twice := t.nodes[n.Name]; twice {
		t.add(n.Pos, path, "there is another node of this name")
	} else {
		t.nodes[n.Name] = t.find(t.scope, n.Type)
	}
	if n.Type != "" {
		t.longName(n.Pos, under(path, "type"), n.Type)
	} else if !t.problems.about(under(t.path, path, "type")) {
		t.add(n.Pos, path, "missing key \"type\"")
	}
	if n.Queue != "" {
		t.longName(n.Pos, under(path, "queue"), n.Queue)
	}
	t.number(n.Pos, under(path, "instances"), n.Instances)
	if n.Failure != "" && !slices.Contains(failures, n.Failure) {
		t.add(n.Pos, under(path, "failure"), "%s", notOneOf(t.problems, n.Failure, failures))
	}
	if _, err := n.runOptions(); err != nil && !t.problems.about(under(t.path, path, "tries")) {
		t.add(n.Pos, path, "%v", err)
	}
	t.priority(n.Pos, under(path, "priority"), n.Priority)
	if err := job.CheckLabels(n.Labels); err != nil {
		t.add(n.Pos, under(path, "labels"), "%v", err)
	}
	t.metadata(n.Pos, path, n.Metadata)
	t.args(n, path)
	known := make(map[string]bool)
	for _, in := range n.In {
		here := under(path, "in", show(in.Port))
		t.name(in.Pos, here, in.Port)
		t.number(in.Pos, under(here, "limit"), in.Limit)
		t.metadata(in.Pos, here, in.Metadata)
		if known[in.Port] {
			t.add(in.Pos, here, "the port is there already: put all values into one list")
		}
		known[in.Port] = true
		t.port(in.Pos, here, t.nodes[n.Name], "In", in.Port)
	}
}

// maxLongName is what job.MaxName is for types and queues.
const maxLongName = 128

// longName checks the name of a type or a queue.
func (t *site) longName(pos Pos, path, name string) {
	switch {
	case len(name) > maxLongName:
		t.add(pos, path, "the name %.40q… has %d bytes, %d are allowed", name, len(name), maxLongName)
	case !typeName.MatchString(name):
		t.add(pos, path, "is %q, use letters, digits and _ - . : /, beginning with a letter or digit", name)
	}
}

// args checks a node's arguments, against the parameters of the graph that it is.
func (t *site) args(n *Node, path string) {
	g := t.nodes[n.Name]
	given, unknown := make(map[string]json.RawMessage), make(map[string]bool)
	if n.Args != nil {
		path := under(path, "args")
		v := t.object(n.Pos, path, n.Args)
		if v == nil {
			return
		}
		for _, m := range v.members {
			given[m.key] = m.val.raw()
			m.val.eachText(func(_ Pos, s string) {
				if !t.file.Literal && strings.Contains(s, "${") {
					unknown[m.key] = true
				}
			})
		}
	}
	if g != nil {
		here := under(t.path, path, "args")
		g.file.arguments(t.problems, n.Pos, here, given, unknown)
		g.file.strange(t.problems, n.Pos, here, given)
	}
}

// values checks the JSON in which references count, and the references.
func (t *site) values() {
	t.file.eachValue(func(pos Pos, path string, raw json.RawMessage) {
		v, err := parseRaw(raw)
		if err != nil {
			t.add(pos, path, "%v", err)
			return
		}
		if t.file.Literal {
			return
		}
		v.eachText(func(_ Pos, s string) {
			parts, wrong := pieces(s)
			if wrong != "" {
				t.add(pos, path, "%s", wrong)
			}
			for _, part := range parts {
				if !part.ref {
					continue
				}
				t.used[part.text] = true
				if !t.params[part.text] {
					hint := t.problems.hint(part.text, maps.Keys(t.params))
					t.add(pos, path, "${%s}: there is no such parameter%s", part.text, hint)
				}
			}
		})
	})
}

// end checks that a port may exist. dir is "In" or "Out".
func (t *site) end(pos Pos, path string, e End, dir string) {
	g, known := t.nodes[e.Node]
	switch {
	case wrongName(e.Node) != "":
		t.add(pos, path, "%s: %s", e, wrongName(e.Node))
	case !known:
		t.add(pos, path, "%s: there is no node %q%s", e, e.Node, t.problems.hint(e.Node, maps.Keys(t.nodes)))
	}
	if text := wrongName(e.Port); text != "" {
		t.add(pos, path, "%s: %s", e, text)
		return
	}
	t.port(pos, path, g, dir, e.Port)
}

// port checks that a graph has a port. It is nil for workers, whose ports are not known.
func (t *site) port(pos Pos, path string, g *scope, dir, name string) {
	if g == nil {
		return
	}
	if !g.ports[dir][name] {
		hint := t.problems.hint(name, maps.Keys(g.ports[dir]))
		t.add(pos, path, "the graph %s has no %s port %q%s", show(g.file.Name), dir, name, hint)
	}
}

func (t *site) edges() {
	known := make(map[[2]End]bool)
	for _, e := range t.file.Edges {
		path := fmt.Sprintf("edges[%s -> %s]", e.From, e.To)
		t.end(e.Pos, path, e.From, "Out")
		t.end(e.Pos, path, e.To, "In")
		t.number(e.Pos, path+".limit", e.Limit)
		t.metadata(e.Pos, path, e.Metadata)
		if known[[2]End{e.From, e.To}] {
			t.add(e.Pos, path, "the edge is there already")
		}
		known[[2]End{e.From, e.To}] = true
	}
}

// exports checks inputs or outputs.
func (t *site) exports(what string, exports []Export) {
	dir, nothing := "In", "leads to nothing"
	if what == "outputs" {
		dir, nothing = "Out", "is fed by nothing"
	}
	known := make(map[string]bool)
	for _, x := range exports {
		path := under(what, show(x.Name))
		t.name(x.Pos, path, x.Name)
		t.metadata(x.Pos, path, x.Metadata)
		if known[x.Name] {
			t.add(x.Pos, path, "there is another one of this name")
		}
		known[x.Name] = true
		if len(x.Ends) == 0 {
			t.add(x.Pos, path, "%s", nothing)
		}
		ends := make(map[End]bool)
		for _, e := range x.Ends {
			t.end(x.Pos, path, e, dir)
			if ends[e] {
				t.add(x.Pos, path, "%s is there twice", e)
			}
			ends[e] = true
		}
	}
}

// contains looks for graphs that contain themselves. trail is the graphs from where
// the search began.
func (c *checker) contains(s *scope, trail []*File) {
	c.visited[s.file] = open
	trail = append(trail, s.file)
	for i := range s.file.Nodes {
		n := &s.file.Nodes[i]
		g := c.find(s, n.Type)
		if g == nil {
			continue
		}
		switch c.visited[g.file] {
		case unseen:
			c.contains(g, trail)
		case open:
			var cycle []string
			for _, f := range append(trail[slices.Index(trail, g.file):], g.file) {
				cycle = append(cycle, show(f.Name))
			}
			c.problems.add(n.Pos, under(s.path, "nodes", show(n.Name)),
				"the graph %s contains itself: %s", cycle[0], strings.Join(cycle, " -> "))
		case done:
		}
	}
	c.visited[s.file] = done
}
