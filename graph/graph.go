package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Graph is a graph under construction, made by [New]. It is a [job.Planner].
type Graph struct {
	root       *node // the graph's own job
	nodes      []*node
	names      map[string]*node
	workers    map[any]*node // by the pointer that was added
	wires      []wire        // in the order of Connect and Export
	wired      map[link]bool
	problems   []problem
	within     []*Graph // those that the graph is nested in, the outermost first
	retain     time.Duration
	sequential string        // key of its trees
	unique     *job.UniqueBy // nil for none
	priority   *int
}

var _ job.Planner = (*Graph)(nil)

// node is one call of Add, or the root.
type node struct {
	graph     *Graph
	name      string
	worker    any    // nil for the root, and for a graph added by Nest
	sub       *Graph // of a nested graph
	queue     string
	priority  *int
	options   job.RunOptions
	instances int
	policy    job.FailurePolicy
	labels    map[string]string
	ports     []port.Spec
	types     map[string]reflect.Type // of messages, by direction and name, as far as known
	constants map[string][]json.RawMessage
	unfit     bool // there are no jobs of this worker
	loose     bool // the worker's handles are not attached
}

// Composite is implemented by structs that are graphs: their port handles are the ports
// of the nested graph, their other exported fields its parameters. [Add] calls Build once
// with the nested graph, to which it adds workers; [BindInput] and [BindOutput] connect these to
// the struct's own ports.
type Composite interface {
	Build(g *Graph)
}

// New returns an empty graph. Its job and its worker type are both called name.
func New(name string) *Graph {
	g := &Graph{names: make(map[string]*node), workers: make(map[any]*node), wired: make(map[link]bool)}
	g.root = &node{graph: g, name: name, instances: 1}
	if err := job.CheckName("graph", name); err != nil {
		g.report(g.root.path(), didYouMean(err, name))
	}
	return g
}

// Retain says for how long the tree of the graph is kept after it has settled, see [job.Retain], which overrides it. A
// nested graph goes with the graph that it is nested in, whatever it says.
func (g *Graph) Retain(d time.Duration) {
	if err := job.CheckRetention(d); err != nil {
		g.report(g.root.path(), err)
		return
	}
	g.retain = d
}

// SequentialKey lets trees of the graph be active one after the other, with all others of that key: see [job.SequentialKey], which
// overrides it. That of a nested graph is not heard.
func (g *Graph) SequentialKey(key string) {
	if err := job.CheckSequentialKey(key); err != nil {
		g.report(g.root.path(), err)
		return
	}
	g.sequential = key
}

// Unique lets a tree of the graph be started unless one with the same unique key is there: see [job.Unique], which overrides it. That
// of a nested graph is not heard.
func (g *Graph) Unique(by job.UniqueBy) {
	if err := by.Validate(); err != nil {
		g.report(g.root.path(), err)
		return
	}
	g.unique = &by
}

// Priority gives those jobs of the graph, and of the graphs nested in it, a priority whose nodes, types and nested graphs name none:
// see the option of that name. It goes before [job.WithPriority].
func (g *Graph) Priority(n int) {
	if err := job.CheckPriority(n); err != nil {
		g.report(g.root.path(), err)
		return
	}
	g.priority = &n
}

// Option changes how the jobs of one worker are planned, see [Add].
type Option func(*node)

// Instances makes n jobs of the worker, called name_1 to name_n. A message for
// one of their ports goes to just one of them: by its key, or else in turn. With
// n = 1, which is the default, the job is called by its name alone. Which job has a key
// depends on n: a patch that changes n moves keys to other jobs, but not the state that the
// former jobs have of them.
func Instances(n int) Option {
	return func(node *node) { node.instances = n }
}

// Queue puts the jobs of the worker into the named queue; empty means
// [job.DefaultQueue].
func Queue(name string) Option {
	return func(node *node) { node.queue = name }
}

// Priority gives the jobs of the worker a priority, from 0 to [job.MaxPriority], in place of that of their type: of the ready
// jobs of a queue those of a higher one run first, see job.WithPriority. That of a nested graph is for the jobs in it that name none, in place of its own.
func Priority(n int) Option {
	return func(node *node) { node.priority = &n }
}

// Tries lets that many runs in a row of a job of the worker fail before the job does, in place of what its type says.
func Tries(n int) Option {
	return func(node *node) { node.options.Tries = n }
}

// Backoff waits before the second try of a job of the worker, in place of what its type says, and twice as long before each
// further one, up to most. With most equal to first the delay is always the same.
func Backoff(first, most time.Duration) Option {
	return func(node *node) { node.options.Backoff, node.options.MaxBackoff = first, most }
}

// Timeout ends the context of a run of the worker's jobs that takes longer, in place of what their type says.
func Timeout(d time.Duration) Option {
	return func(node *node) { node.options.Timeout = d }
}

// OnFailure says what becomes of the graph, and of the message, when a job of the worker
// has failed and has no tries left. Without it the graph fails, too.
//
// With [job.DeadLetter] the jobs get an Out port [job.ErrorsPort], unless the worker has
// one: what they cannot handle goes there, and they go on. See [Errors].
func OnFailure(p job.FailurePolicy) Option {
	return func(node *node) { node.policy = p }
}

// Label puts a label on the jobs of the worker, by which they are found again, see
// [job.Filter]. Patching a graph leaves the labels of jobs that stay.
func Label(key, value string) Option {
	return func(node *node) {
		if node.labels == nil {
			node.labels = make(map[string]string)
		}
		node.labels[key] = value
	}
}

// Add puts a worker, a struct with the method Run of worker.Worker, into the graph and
// returns w, whose port handles can now be passed to [Connect] and [Export]. The arguments
// of its jobs are the fields that w has when the graph is planned. A worker with ports can
// be added only once. If w is a [Composite] a graph is nested; what is neither is an error.
func Add[T any](g *Graph, name string, w *T, opts ...Option) *T {
	if w == nil {
		w = new(T)
		g.report(g.child(name), fmt.Errorf("the %T is nil: pass a pointer to a worker", w))
	}
	AddWorker(g, name, w, opts...)
	return w
}

// AddWorker is [Add] for a worker, a pointer to a struct, whose type is known only when the
// program runs. [Wire] connects it.
func AddWorker(g *Graph, name string, w any, opts ...Option) {
	n := g.add(name, opts)
	if t := reflect.TypeOf(w); t == nil || t.Kind() != reflect.Pointer || reflect.ValueOf(w).IsNil() {
		n.misfit(fmt.Errorf("got a %T: pass a pointer to a worker", w))
		n.worker = &struct{}{}
		return
	}
	n.worker = w
	n.attach()
	if c, ok := w.(Composite); ok && !n.unfit {
		n.nest(New(show(name)))
		n.sub.root.ports = slices.Clone(n.ports)
		c.Build(n.sub)
	}
}

// Nest puts a graph that was built by itself into g. Its Input and Export ports are its
// ports there; [Wire] connects them. It must not change any more.
func Nest(g *Graph, name string, sub *Graph, opts ...Option) {
	n := g.add(name, opts)
	if sub == nil || sub == g || slices.Contains(g.within, sub) {
		n.misfit(errors.New("a graph cannot contain itself or nothing: pass another graph"))
		return
	}
	n.ports = sub.root.ports
	n.types = sub.root.types
	n.nest(sub)
}

func (n *node) nest(sub *Graph) {
	if n.policy == job.Restart || n.policy == job.DeadLetter {
		n.graph.report(n.path(), fmt.Errorf("graph.OnFailure(%s): a graph has no runs that could be repeated and reads no messages: set it for the workers in it", n.policy))
	}
	if n.options != (job.RunOptions{}) {
		n.graph.report(n.path(), errors.New("graph.Tries, Backoff and Timeout are about runs, of which a graph has none: set them for the workers in it"))
	}
	n.sub = sub
	sub.within = append(slices.Clone(n.graph.within), n.graph)
}

// add makes a node of the graph.
func (g *Graph) add(name string, opts []Option) *node {
	n := &node{graph: g, name: name, instances: 1}
	for _, set := range opts {
		set(n)
	}
	n.checkName()
	n.checkOptions()
	g.nodes = append(g.nodes, n)
	return n
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
	if err := n.policy.Validate(); err != nil {
		n.graph.report(n.path(), err)
	}
	if err := job.CheckLabels(n.labels); err != nil {
		n.graph.report(n.path(), err)
	}
	if err := n.options.Validate(); err != nil {
		n.graph.report(n.path(), err)
	}
	if n.priority != nil {
		if err := job.CheckPriority(*n.priority); err != nil {
			n.graph.report(n.path(), err)
		}
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
	} else if err := checkWorker(typ); err != nil {
		n.misfit(err)
	}
	layout, err := port.Describe(typ)
	if err != nil {
		n.misfit(err)
		n.loose = isStruct
		return
	}
	n.ports = job.PortsOf(n.worker, layout)
	n.types = layout.Types()
	handles := len(n.types)
	n.letters()
	if handles == 0 {
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

// letters gives a worker with dead letters a port for them, unless it has one that takes them.
func (n *node) letters() {
	if n.policy != job.DeadLetter {
		return
	}
	letter := reflect.TypeFor[job.Letter]()
	if _, has := n.find(port.Output, job.ErrorsPort); !has {
		n.ports = append(n.ports, port.Spec{Name: job.ErrorsPort, Dir: port.Output, Type: letter.String()})
		n.types[port.TypeKey(port.Output, job.ErrorsPort)] = letter
		return
	}
	own := end{n, job.ErrorsPort}
	if typ := n.types[port.TypeKey(port.Output, job.ErrorsPort)]; typ != letter && own.kind(port.Output) != anything {
		n.graph.report(own.path(), fmt.Errorf("is of type %s, but what cannot be handled goes there as a %s: give it this type, or another name", typ, letter))
	}
}

func (n *node) misfit(err error) {
	n.unfit = true
	n.graph.report(n.path(), err)
}

// kind is the name of the worker's struct.
func (n *node) kind() string {
	if n.worker == nil {
		return "graph"
	}
	return reflect.TypeOf(n.worker).Elem().String()
}

// path tells people where n is.
func (n *node) path() string {
	if n == n.graph.root {
		return n.graph.path()
	}
	return n.graph.child(n.name)
}

// child is the path of a node of that name.
func (g *Graph) child(name string) string { return g.path() + "/" + show(name) }

// path tells people where the graph is: names from the outermost one down.
func (g *Graph) path() string {
	if len(g.within) == 0 {
		return show(g.root.name)
	}
	up := g.within[len(g.within)-1]
	for _, n := range up.nodes {
		if n.sub == g {
			return up.child(n.name)
		}
	}
	return show(g.root.name)
}
