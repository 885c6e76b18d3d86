package graph

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Wire is [Connect] for graphs that are known only when the program runs, such as those
// read from files: from and to are written as "worker.port". The types of the messages
// must be the same, unless one of them is any JSON.
func Wire(g *Graph, from, to string, opts ...WireOption) {
	a, okA := g.named(from, port.Output)
	b, okB := g.named(to, port.Input)
	if okA && okB && g.fits(a, port.Output, b, port.Input) {
		g.link(a, b, opts)
	}
}

// WireInput gives the graph an In port of that name, if it has none, and leads it to a
// port written as "worker.port".
func WireInput(g *Graph, name, to string, opts ...WireOption) {
	inner, ok := g.named(to, port.Input)
	if !ok {
		return
	}
	own := end{g.root, name}
	if g.borrow(port.Input, name, inner) && g.fits(own, port.Input, inner, port.Input) {
		g.link(own, inner, opts)
	}
}

// WireExport gives the graph an Out port of that name, if it has none, fed by a port
// written as "worker.port".
func WireExport(g *Graph, name, from string) {
	if e, ok := g.entrance(from); ok {
		g.report(end{g.root, name}.path(), fmt.Errorf("%w: %s is an In port, and cannot be exported: give the graph an input that leads to it "+
			"(inputs in a file, graph.Input in Go)", job.ErrPort, e.path()))
		return
	}
	inner, ok := g.named(from, port.Output)
	if !ok {
		return
	}
	own := end{g.root, name}
	if g.borrow(port.Output, name, inner) && g.fits(inner, port.Output, own, port.Output) {
		g.link(inner, own, nil)
	}
}

// entrance finds the In port that a text like "worker.port" means, if the worker has no Out port of that name.
func (g *Graph) entrance(text string) (end, bool) {
	name, portName, _ := strings.Cut(text, ".")
	n := g.names[name]
	if n == nil {
		return end{}, false
	}
	_, in := n.find(port.Input, portName)
	_, out := n.find(port.Output, portName)
	_, any := n.find(port.Output, port.Any)
	return end{n, portName}, in && !out && !any
}

// WireConst puts a message into the port written as "worker.port" when the graph is
// started, see [Initial].
func WireConst(g *Graph, to string, value json.RawMessage) {
	if e, ok := g.named(to, port.Input); ok && e.accepts("constant", value) {
		e.node.constant(e.port, value)
	}
}

// WireLimit sets the limit of the In port written as "worker.port", see [Limit].
func WireLimit(g *Graph, to string, limit int) {
	if e, ok := g.named(to, port.Input); ok {
		if limit < 1 {
			g.report(e.path(), fmt.Errorf("limit %d: use at least 1, or none", limit))
			return
		}
		e.spec(port.Input).Limit = limit
	}
}

// WireDefault sets the default of the In port written as "worker.port".
func WireDefault(g *Graph, to string, value json.RawMessage) {
	if e, ok := g.named(to, port.Input); ok && e.accepts("default", value) {
		e.spec(port.Input).Default = value
	}
}

// spec is the node's own description of a port that it has.
func (e end) spec(dir port.Dir) *port.Spec {
	i := slices.IndexFunc(e.node.ports, func(s port.Spec) bool { return s.Dir == dir && s.Name == e.port })
	return &e.node.ports[i]
}

// accepts reports a value that is no message of an In port.
func (e end) accepts(what string, value json.RawMessage) bool {
	err := port.Check(value)
	if typ := e.node.types[port.TypeKey(port.Input, e.port)]; err == nil && typ != nil {
		err = port.Decode(value, reflect.New(typ).Interface())
	}
	if err != nil {
		e.node.graph.report(e.path(), fmt.Errorf("the %s does not fit: %w", what, err))
	}
	return err == nil
}

// borrow gives the graph a port with the type of an inner one, unless it has that port.
func (g *Graph) borrow(dir port.Dir, name string, inner end) bool {
	if _, has := g.root.find(dir, name); has {
		return true
	}
	innerDir := inner.node.receives()
	if dir == port.Output {
		innerDir = inner.node.sends()
	}
	s, _ := inner.node.find(innerDir, inner.port)
	return g.own(port.Spec{Name: name, Dir: dir, Type: s.Type}, inner.node.types[port.TypeKey(innerDir, inner.port)])
}

// named finds the end that a text like "worker.port" means.
func (g *Graph) named(text string, dir port.Dir) (end, bool) {
	name, portName, ok := strings.Cut(text, ".")
	if !ok {
		g.report(g.path(), fmt.Errorf("%q names no port: write it as \"worker.port\"", shorten(text)))
		return end{}, false
	}
	n := g.names[name]
	if n == nil {
		known := make([]string, len(g.nodes))
		for i, other := range g.nodes {
			known[i] = other.name
		}
		g.report(g.child(name), fmt.Errorf("the graph has no such worker: %s", port.Suggest(name, known)))
		return end{}, false
	}
	e := end{n, portName}
	if _, has := n.find(dir, portName); has || n.unfit {
		return e, !n.unfit
	}
	if s, any := n.find(dir, port.Any); any && port.CheckName(portName) == nil {
		s.Name = portName
		n.ports = append(n.ports, s)
		return e, true
	}
	var known []string
	for _, s := range n.ports {
		if s.Dir == dir {
			known = append(known, s.Name)
		}
	}
	hint := port.Suggest(portName, known)
	if _, other := n.find(port.Input+port.Output-dir, portName); other {
		hint = fmt.Sprintf("it is an %v port", port.Input+port.Output-dir)
	}
	g.report(e.path(), fmt.Errorf("%w: there is no such %v port: %s", job.ErrPort, dir, hint))
	return end{}, false
}

// fits reports two ports whose messages are of different types.
func (g *Graph) fits(from end, fromDir port.Dir, to end, toDir port.Dir) bool {
	a, b := from.kind(fromDir), to.kind(toDir)
	if a == b || a == anything || b == anything {
		return true
	}
	g.report(from.path(), fmt.Errorf("its messages are of type %s, those of %s of type %s: put a worker that converts them in between", a, to.path(), b))
	return false
}

// anything is the type of ports that take any message.
const anything = "any JSON"

// kind is the type of a port's messages as a text that is the same for the same type only.
func (e end) kind(dir port.Dir) string {
	typ := e.node.types[port.TypeKey(dir, e.port)]
	switch {
	case typ == nil:
		if s, ok := e.node.find(dir, e.port); ok && s.Type != "" {
			return s.Type
		}
		return anything
	case typ == reflect.TypeFor[json.RawMessage](), typ == reflect.TypeFor[any]():
		return anything
	case typ.PkgPath() != "" && typ.Name() != "":
		return typ.PkgPath() + "." + typ.Name()
	}
	return typ.String()
}

func shorten(text string) string { return fmt.Sprintf("%.40s", text) }
