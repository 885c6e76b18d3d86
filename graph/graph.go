package graph

import (
	"fmt"
	"reflect"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Graph is a graph under construction, made by [New]. It is a [job.Planner].
type Graph struct {
	root     *node // the graph's own job
	nodes    []*node
	names    map[string]*node
	workers  map[any]*node // by the pointer that was added
	wires    []wire        // in the order of Connect and Export
	wired    map[wire]bool
	problems []problem
}

var _ job.Planner = (*Graph)(nil)

// node is one call of Add, or the root.
type node struct {
	graph     *Graph
	name      string
	worker    any // nil for the root
	queue     string
	instances int
	ports     []port.Spec
	unfit     bool // there are no jobs of this worker
	loose     bool // the worker's handles are not attached
}

// New returns an empty graph. Its job and its worker type are both called name.
func New(name string) *Graph {
	g := &Graph{names: make(map[string]*node), workers: make(map[any]*node), wired: make(map[wire]bool)}
	g.root = &node{graph: g, name: name, instances: 1}
	if err := job.CheckName("graph", name); err != nil {
		g.report(g.root.path(), didYouMean(err, name))
	}
	return g
}

// Option changes how the jobs of one worker are planned, see [Add].
type Option func(*node)

// Instances makes n jobs of the worker, called name_1 to name_n. A message for
// one of their ports goes to just one of them: by its key, or else in turn. With
// n = 1, which is the default, the job is called by its name alone.
func Instances(n int) Option {
	return func(node *node) { node.instances = n }
}

// Queue puts the jobs of the worker into the named queue; empty means
// [job.DefaultQueue].
func Queue(name string) Option {
	return func(node *node) { node.queue = name }
}

// Add puts a worker into the graph and returns w, whose port handles can now be
// passed to [Connect] and [Export]. The arguments of its jobs are the fields that
// w has when the graph is planned. A worker with ports can be added only once.
func Add[T any](g *Graph, name string, w *T, opts ...Option) *T {
	n := &node{graph: g, name: name, instances: 1}
	for _, set := range opts {
		set(n)
	}
	n.checkName()
	n.checkOptions()
	if w == nil {
		g.report(n.path(), fmt.Errorf("the %T is nil: pass a pointer to a worker", w))
		w = new(T)
	}
	n.worker = w
	n.attach()
	g.nodes = append(g.nodes, n)
	return w
}

func (n *node) checkName() {
	g := n.graph
	if err := job.CheckName("job name", n.name); err != nil {
		g.report(n.path(), didYouMean(err, n.name))
		return
	}
	if g.names[n.name] == nil {
		g.names[n.name] = n
		return
	}
	free := n.name
	for i := 2; g.names[free] != nil; i++ {
		free = fmt.Sprintf("%s%d", n.name, i)
	}
	g.report(n.path(), fmt.Errorf("%w: a %s has this name; did you mean %q?",
		job.ErrExists, g.names[n.name].kind(), free))
}

func (n *node) checkOptions() {
	if n.instances < 1 {
		n.graph.report(n.path(), fmt.Errorf("graph.Instances(%d): use at least 1", n.instances))
		n.instances = 1
	}
	if n.queue == "" {
		return
	}
	if err := job.CheckName("queue", n.queue); err != nil {
		n.graph.report(n.path(), didYouMean(err, n.queue))
	}
}

// attach makes the worker's handles refer to n.
func (n *node) attach() {
	typ := reflect.TypeOf(n.worker)
	isStruct := typ.Elem().Kind() == reflect.Struct
	if _, err := job.TypeOf(n.worker); err != nil {
		n.misfit(err)
		if !isStruct {
			return // which port.Describe would only say again
		}
	}
	layout, err := port.Describe(typ)
	if err != nil {
		n.misfit(err)
		n.loose = isStruct
		return
	}
	n.ports = layout.Specs()
	if len(n.ports) == 0 {
		return // pointers to empty structs may be equal, so nothing can be told from them
	}
	if first := n.graph.workers[n.worker]; first != nil {
		n.graph.report(n.path(), fmt.Errorf("%w: this %T is %s too, and its handles can belong to one job only: add another %s",
			job.ErrExists, n.worker, first.path(), n.kind()))
		return
	}
	n.graph.workers[n.worker] = n
	if err := layout.Attach(n.worker, n); err != nil {
		n.misfit(err)
		n.loose = true
	}
}

func (n *node) misfit(err error) {
	n.unfit = true
	n.graph.report(n.path(), err)
}

// kind is the name of the worker's struct.
func (n *node) kind() string { return reflect.TypeOf(n.worker).Elem().String() }

// path tells people where n is.
func (n *node) path() string {
	if n == n.graph.root {
		return show(n.name)
	}
	return show(n.graph.root.name) + "/" + show(n.name)
}
