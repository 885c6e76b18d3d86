package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// link leads from an Out port of a worker, or an In port of the graph, to an In
// port of a worker, or an Out port of the graph.
type link struct {
	from, to end
}

// wire is a link with its options.
type wire struct {
	link
	limit    int // 0 for none
	limited  bool
	feedback bool
}

// WireOption changes a wire, see [Connect].
type WireOption func(*wire)

// Limit is the number of messages at which the In port that the wire leads to is full:
// who writes to it is then suspended until there is room. Of several limits of a port the
// smallest counts.
func Limit(n int) WireOption {
	return func(w *wire) { w.limit, w.limited = n, true }
}

// Feedback makes a wire that leads back, to a worker from which its messages may have
// come. The receiver's port closes when its other sources are closed and nothing in the
// graph moves any more.
func Feedback() WireOption { return func(w *wire) { w.feedback = true } }

// end is a port of a node. Which of two ports of that name is meant follows from
// the end of the wire.
type end struct {
	node *node
	port string
}

func (e end) path() string { return e.node.path() + "." + show(e.port) }

// sends is the direction of those ports of n that wires lead from.
func (n *node) sends() port.Dir {
	if n == n.graph.root {
		return port.Input
	}
	return port.Output
}

// receives is the direction of those ports of n that wires lead to.
func (n *node) receives() port.Dir {
	if n == n.graph.root {
		return port.Output
	}
	return port.Input
}

// endOf tells which end a handle is, from its Ref; the zero end for none.
func endOf(ref any, name string) end {
	switch at := ref.(type) {
	case *node:
		return end{at, name}
	case *end: // of Input
		return *at
	default:
		return end{}
	}
}

// Connect leads what is written to from into to. Every Connect from one port
// gets a copy of each message; what several lead into one port is merged. If the
// worker of either handle has several instances, every instance of the sender
// reaches all instances of the receiver, each message just one of them.
//
// The handles must belong to workers of one graph, which also learns what is
// wrong. If neither worker was added to any graph, there is none to tell.
func Connect[T any](from port.Out[T], to port.In[T], opts ...WireOption) {
	connect(endOf(from.Ref()), endOf(to.Ref()), reflect.TypeFor[T]().String(), opts)
}

// ToJSON is [Connect] to a port that takes any JSON, as those of components do.
func ToJSON[T any](from port.Out[T], to port.In[json.RawMessage], opts ...WireOption) {
	connect(endOf(from.Ref()), endOf(to.Ref()), reflect.TypeFor[T]().String(), opts)
}

// FromJSON is [Connect] from a port that writes any JSON. A message that is no T fails the
// job that reads it.
func FromJSON[T any](from port.Out[json.RawMessage], to port.In[T], opts ...WireOption) {
	connect(endOf(from.Ref()), endOf(to.Ref()), reflect.TypeFor[T]().String(), opts)
}

func connect(from, to end, typ string, opts []WireOption) {
	switch {
	case from.node == nil && to.node == nil:
	case from.node == nil:
		to.node.graph.stray(to.path(), port.Output, typ)
	case to.node == nil:
		from.node.graph.stray(from.path(), port.Input, typ)
	case from.node.graph != to.node.graph:
		from.node.graph.report(from.path(), fmt.Errorf("leads to %s of another graph: add both jobs to one graph", to.path()))
		to.node.graph.report(to.path(), fmt.Errorf("is fed by %s of another graph: add both jobs to one graph", from.path()))
	default:
		from.node.graph.link(from, to, opts)
	}
}

func (g *Graph) link(from, to end, opts []WireOption) {
	w := wire{link: link{from, to}}
	for _, set := range opts {
		set(&w)
	}
	if g.wired[w.link] {
		g.report(from.path(), fmt.Errorf("%w: it is connected to %s twice: remove one Connect", job.ErrExists, to.path()))
		return
	}
	if w.limited && w.limit < 1 {
		g.report(to.path(), fmt.Errorf("graph.Limit(%d): use at least 1, or no Limit", w.limit))
	}
	if w.limited && to.node == g.root {
		g.report(to.path(), errors.New("a Limit is of an In port that keeps messages, this is an Out port of the graph: limit who reads it"))
	}
	g.wires, g.wired[w.link] = append(g.wires, w), true
}

// Export gives the graph an Out port of that name, fed by from. A port can be
// exported under several names.
//
// It is for Out ports: given an In port, the compiler says that port.In does not match port.Out. To let others write to an In port
// of a worker inside, give the graph an In port and connect it: Connect(Input[T](g, "orders"), w.In).
func Export[T any](g *Graph, name string, from port.Out[T]) {
	typ := reflect.TypeFor[T]().String()
	to := end{g.root, name}
	ok := g.own(port.Spec{Name: name, Dir: port.Output, Type: typ}, reflect.TypeFor[T]())
	switch source := endOf(from.Ref()); {
	case source.node == nil:
		g.stray(to.path(), port.Output, typ)
	case source.node.graph != g:
		g.report(to.path(), fmt.Errorf("is fed by %s of another graph: add the job to this graph", source.path()))
	case ok:
		g.link(source, to, nil)
	}
}

// Input gives the graph an In port of that name and returns the handle to
// [Connect] it from: what is written to the port goes along its wires. It is to In ports what [Export] is to Out ports.
func Input[T any](g *Graph, name string) port.Out[T] {
	g.own(port.Spec{Name: name, Dir: port.Input, Type: reflect.TypeFor[T]().String()}, reflect.TypeFor[T]())
	return outlet[T](g, &end{g.root, name})
}

// own gives the graph a port of its own, unless its name is not allowed or taken.
func (g *Graph) own(s port.Spec, typ reflect.Type) bool {
	path := end{g.root, s.Name}.path()
	if err := port.CheckName(s.Name); err != nil {
		g.report(path, didYouMean(err, s.Name))
		return false
	}
	if _, taken := g.root.find(s.Dir, s.Name); taken {
		free := s.Name
		for i := 2; taken; i++ {
			free = fmt.Sprintf("%s%d", s.Name, i)
			_, taken = g.root.find(s.Dir, free)
		}
		g.report(path, fmt.Errorf("%w: the graph has this %v port; did you mean %q?", job.ErrExists, s.Dir, free))
		return false
	}
	g.root.ports = append(g.root.ports, s)
	if g.root.types == nil {
		g.root.types = make(map[string]reflect.Type)
	}
	g.root.types[port.TypeKey(s.Dir, s.Name)] = typ
	return true
}

func (n *node) find(dir port.Dir, name string) (port.Spec, bool) {
	i := slices.IndexFunc(n.ports, func(s port.Spec) bool { return s.Dir == dir && s.Name == name })
	if i < 0 {
		return port.Spec{}, false
	}
	return n.ports[i], true
}
