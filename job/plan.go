package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
)

// Limits of a plan. A larger tree must be grown by its jobs.
const (
	MaxNodes = 20_000 // jobs of one plan
	MaxDepth = 1_000  // graphs within graphs; other jobs may have children to any depth
	// MaxFanOut is how many ports one port of a plan may feed, those included that it feeds through ports of graphs. Of
	// ports that share the messages of one edge, as those of instances do, two count as one.
	MaxFanOut = 500
	MaxName   = port.MaxName
)

// DefaultQueue is the queue of a job that names none.
const DefaultQueue = "default"

// Priorities: of the ready jobs of a queue those of a higher one run first, see WithPriority.
const (
	DefaultPriority = 500 // of a job that has none
	MaxPriority     = 1000
)

// A Planner says which jobs to create. Graphs are planners, and Single makes one of a
// lone worker.
type Planner interface {
	Plan() (*Plan, error)
}

// Plan is a tree of jobs to be created in one step, or not at all. Nodes[0] is its
// root; every other node comes after its parent.
type Plan struct {
	Nodes  []Node
	Parent ID // of Nodes[0]; empty: it is the root of a tree of its own
	// Retain is for how long the jobs are kept after Nodes[0] has settled, see the function Retain; zero: as the namespace
	// says, or as long as the tree that Nodes[0] grows. It is no part of what a graph is.
	Retain time.Duration
	// Release deletes the jobs, of a plan with a Parent, when the parent was told of the end of Nodes[0].
	Release bool
	// Trace is what the jobs belong to; zero: nothing. It is no part of what a graph is.
	Trace Trace
	// TellEnd is the In port that is told when Nodes[0] has settled, see the function TellEnd; nil for none. It is no part of
	// what a graph is.
	TellEnd *PortRef
	// Repeat says when the only job of the plan runs again, see the function Repeat; nil: it does not.
	Repeat *Repeats
	// SequentialKey lets the tree be active only after those that have the same key and were created before, see the function
	// SequentialKey; empty for none. It is no part of what a graph is.
	SequentialKey string
	// Unique has the tree created unless one with the same unique key is there, see the function Unique; nil: it has no such key. It
	// is no part of what a graph is.
	Unique *UniqueBy
}

// Plan implements Planner: a plan is one of itself.
func (p *Plan) Plan() (*Plan, error) { return p, nil }

// Node is one job of a plan.
type Node struct {
	Name   string // unique under its parent; may be empty for a root
	Parent int    // index of the parent node; ignored for Nodes[0]
	Type   string // worker type, or the graph's name
	Queue  string // empty means DefaultQueue
	// Priority is from 0 to MaxPriority; nil means DefaultPriority.
	Priority *int
	// Options are about the runs of a job that is no graph.
	Options RunOptions      `json:",omitzero"`
	Graph   bool            // the job is a graph: it has no worker, its children are its work
	Args    json.RawMessage // parameters of the worker, nil for none
	// TypeVersion is the version of the type that Args are of, see Versioned; 0 is 1.
	TypeVersion int
	Ports       []Port
	At          time.Time // not to run before; zero or past means now; its year is at most 9999
	Silent      bool      // its statuses are not published, nor are those of jobs below it
	// InTime lets the job run in the order of time: of the ready jobs of a queue, priority and shard the one that was due first is
	// the first, and of two that were due at one time the one with the lesser ID. Otherwise trees have their turns. Jobs of both kinds
	// do not belong into one queue. Such a job has no Shutdown: it is terminated at once, and a run of it that goes on loses it. It is no
	// part of what a graph is.
	InTime bool `json:"-" cbor:"InTime"`
	// Memo is JSON for whoever looks at the job, see the function Memo; nil: none. It is no part of what a graph is.
	Memo json.RawMessage `json:"-" cbor:"Memo"`
	// Labels find the job again. They are no part of what a graph is: plans that differ in
	// them alone are the same, and Patch leaves those of jobs that stay.
	Labels map[string]string `json:"-" cbor:"Labels"`
	// InstanceOf names the node of a graph of which the job is one of several instances, for
	// pictures; empty if it is alone. It is no part of what a graph is, as Labels.
	InstanceOf string `json:"-" cbor:"InstanceOf"`

	OnFailure FailurePolicy // what its failure means for its graph; empty means FailGraph
	Loop      bool          // it is in a graph with feedback
}

// Port is a port of a planned job and its wires.
type Port struct {
	port.Spec
	// Edges: every edge gets a copy of each message. A port with edges keeps no data itself.
	Edges []Edge
	// Sources is the number of edge ends that feed this port, without feedback: the port
	// is at its end when that many closes have arrived. Zero means fed from outside only.
	Sources int
	// Loops is the number of feedback edge ends that feed the port. Its end then waits
	// until nothing in the graph moves.
	Loops int
	// Initial are messages that are there from the beginning. Only a port without Edges
	// can have some.
	Initial []json.RawMessage
	// Closed: no message will come besides the initial ones.
	Closed bool
}

// Edge leads to one target, or to several of which each message goes to just one:
// by its key when it has one, else in turn.
type Edge []Target

// Target is one end of an edge: a port of a job of the same plan.
type Target struct {
	Node     int
	Dir      port.Dir
	Port     string
	Feedback bool
}

// String is like 3.in; a feedback has a ~ behind it.
func (t Target) String() string {
	back := ""
	if t.Feedback {
		back = "~"
	}
	return fmt.Sprintf("%d.%s%s", t.Node, t.Port, back)
}

// Wired tells whether any In port of the node is fed by an edge.
func (n *Node) Wired() bool {
	for i := range n.Ports {
		if n.Ports[i].Dir == port.Input && n.Ports[i].Sources > 0 {
			return true
		}
	}
	return false
}

// Validate reports the first thing in the plan that no store could create.
func (p *Plan) Validate() error {
	if len(p.Nodes) == 0 {
		return fmt.Errorf("plan has no jobs")
	}
	if p.Retain != 0 {
		if err := CheckRetention(p.Retain); err != nil {
			return err
		}
	}
	if p.Repeat != nil && p.SequentialKey != "" {
		return fmt.Errorf("%w: a job that repeats cannot have the sequential key %.80q, which it would never let go of: use one of them", ErrValue, p.SequentialKey)
	}
	if p.Repeat != nil && (p.Parent != "" || len(p.Nodes) > 1 || p.Nodes[0].Graph) {
		return fmt.Errorf("%w: repeat is for a root job that is no graph, and has no children when it is started: have a trigger start this tree again and again", ErrValue)
	}
	if p.SequentialKey != "" {
		if err := CheckSequentialKey(p.SequentialKey); err != nil {
			return err
		}
		if p.Parent != "" {
			return errKeyedChild(p.SequentialKey)
		}
	}
	if p.Unique != nil {
		if err := p.Unique.Validate(); err != nil {
			return err
		}
		if p.Parent != "" {
			return errUniqueChild()
		}
	}
	if p.TellEnd != nil {
		if _, err := ParseID(string(p.TellEnd.Job)); err != nil {
			return fmt.Errorf("who is told of the end: %w", err)
		}
		if err := port.CheckName(p.TellEnd.Port); err != nil {
			return fmt.Errorf("who is told of the end: %w", err)
		}
	}
	if len(p.Nodes) > MaxNodes {
		return fmt.Errorf("%w: plan has %d jobs, at most %d are allowed; let a job spawn the rest", ErrTooLarge, len(p.Nodes), MaxNodes)
	}
	type place struct {
		parent int
		name   string
	}
	names := make(map[place]bool, len(p.Nodes))
	depth := make([]int, len(p.Nodes)) // graphs that a job is within
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if err := p.checkNode(i, n); err != nil {
			return fmt.Errorf("%s: %w", p.which(i), err)
		}
		if up := n.Parent; i > 0 && p.Nodes[up].Graph {
			depth[i] = depth[up] + 1
		}
		if depth[i] > MaxDepth {
			return fmt.Errorf("%w: %s is within more than %d graphs", ErrTooLarge, p.which(i), MaxDepth)
		}
		key := place{n.Parent, n.Name}
		if i > 0 && names[key] {
			return fmt.Errorf("%w: two jobs of the plan are named %q under one parent", ErrExists, n.Name)
		}
		names[key] = i > 0
	}
	return p.checkFanOut()
}

func (p *Plan) checkNode(i int, n *Node) error {
	if err := CheckName("type", n.Type); err != nil {
		return err
	}
	if n.Priority != nil {
		if err := CheckPriority(*n.Priority); err != nil {
			return err
		}
	}
	if err := n.Options.Validate(); err != nil {
		return err
	}
	if n.Queue != "" {
		if err := CheckName("queue", n.Queue); err != nil {
			return err
		}
	}
	if i > 0 || n.Name != "" {
		if err := CheckName("job name", n.Name); err != nil {
			return err
		}
	}
	if err := n.OnFailure.Validate(); err != nil {
		return err
	}
	if err := CheckLabels(n.Labels); err != nil {
		return err
	}
	if i > 0 && (n.Parent < 0 || n.Parent >= i) {
		return fmt.Errorf("parent %d must come before it in the plan", n.Parent)
	}
	if err := errors.Join(CheckSize("args", len(n.Args)), CheckSize("a memo", len(n.Memo)), CheckTime(n.At)); err != nil {
		return err
	}
	if len(n.Memo) > 0 {
		if err := port.Check(n.Memo); err != nil {
			return fmt.Errorf("memo: %w", err)
		}
	}
	if p.Nodes[0].Graph && len(n.Args) > 0 { // those of a lone job are for its run to refuse
		if err := port.Check(n.Args); err != nil {
			return fmt.Errorf("args: %w", err)
		}
	}
	for j := range n.Ports {
		pt := &n.Ports[j]
		if err := CheckSize("default of port "+pt.Name, len(pt.Default)); err != nil {
			return err
		}
		if err := pt.Validate(); err != nil {
			return err
		}
		for _, m := range pt.Initial {
			data, _ := port.Split(m)
			if err := errors.Join(port.Check(data), CheckSize("an initial message of port "+pt.Name, len(m))); err != nil {
				return err
			}
		}
		for _, e := range pt.Edges {
			for _, t := range e {
				if t.Node < 0 || t.Node >= len(p.Nodes) || !p.Nodes[t.Node].has(t) {
					return fmt.Errorf("%w %q: edge to job %d leads to no %s port %q", ErrPort, pt.Name, t.Node, t.Dir, t.Port)
				}
			}
		}
	}
	return nil
}

func (n *Node) has(t Target) bool {
	for i := range n.Ports {
		if n.Ports[i].Dir == t.Dir && n.Ports[i].Name == t.Port {
			return true
		}
	}
	return false
}

// which names a job of the plan to people.
func (p *Plan) which(i int) string {
	switch n := &p.Nodes[i]; {
	case n.Name != "":
		return fmt.Sprintf("job %.80q of the plan", n.Name)
	case i == 0 && n.Type != "":
		return fmt.Sprintf("root job of type %.80q", n.Type)
	case i == 0:
		return "root job"
	}
	return fmt.Sprintf("job %d of the plan", i)
}

// CheckName reports whether a name of the given kind ("type", "queue", "job name",
// "alias") may be used: 1 to MaxName of letters, digits, '_', '-', '.', ':' and '/',
// beginning with a letter or digit; an alias begins with a letter. The error wraps ErrName.
func CheckName(kind, name string) error {
	if name == "" {
		return fmt.Errorf("%w: %s is empty", ErrName, kind)
	}
	if len(name) > MaxName {
		return fmt.Errorf("%w: %s %.40q… has %d bytes, at most %d are allowed", ErrName, kind, name, len(name), MaxName)
	}
	first := "a letter or digit"
	if kind == "alias" { // so that it is never taken for an ID
		first = "a letter"
	}
	for i := range len(name) {
		c := name[i]
		digit := c >= '0' && c <= '9'
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		other := c == '_' || c == '-' || c == '.' || c == ':' || c == '/'
		if !letter && (!digit || i == 0 && kind == "alias") && (!other || i == 0) {
			return fmt.Errorf("%w: %s %q: use letters, digits and _ - . : /, beginning with %s", ErrName, kind, name, first)
		}
	}
	return nil
}

// Limits of what is stored.
const (
	MaxMessage = 1 << 20 // bytes of one message, state value, default or set of args
	MaxCommit  = 7 << 20 // bytes of all that one commit, or one call from outside, writes
	MaxPeek    = 8 << 20 // bytes of messages that one call from outside reads
	// MaxWrites is how many values one commit, or one call from outside, writes. A message, or entry of the log, is one,
	// and each copy of a message for another port is a quarter of one; each 512 bytes of them is one more. Each port
	// besides the first that messages come to is PortWrites, and a key of the state is two.
	MaxWrites = 16_000
	// PortWrites is for how many values a port counts that messages come to: its job has to be woken.
	PortWrites = 14
	// MaxTimers is at how many times that are to come one job has asked for runs, by worker.Run.WakeAfter, client.Handle.RunAt and the like.
	MaxTimers = 1000
	// MaxAliases is how many aliases one job has that it was given by client.Handle.AddAlias or client.Client.Start. Runs give one at most, to a child
	// that they create: more are given from outside only.
	MaxAliases = 100
	// MaxTypes is how many types of jobs the engines and other workers of a namespace have registered, each of which is counted once
	// for each queue that it is in.
	MaxTypes = 5000
)

// Values is for how many values that many messages, or entries of the log, count, which have that many bytes together and go to
// one port each: see MaxWrites.
func Values(n, bytes int) int { return n + bytes/512 }

// CheckSize returns an error that wraps ErrTooLarge if a value has more than MaxMessage bytes.
func CheckSize(what string, n int) error {
	if n > MaxMessage {
		return fmt.Errorf("%w: %s has %d bytes, at most %d are allowed", ErrTooLarge, what, n, MaxMessage)
	}
	return nil
}

// CheckTime returns an error that wraps ErrTooLarge unless a time can be stored, and shown as RFC 3339 text: its year has
// at most four digits. Milliseconds since 1970 of a later one may not fit, and then it would seem to be past.
func CheckTime(at time.Time) error {
	if year := at.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("%w: the time is in the year %d, the years from 0 to 9999 are allowed", ErrTooLarge, year)
	}
	return nil
}

// CheckStateKey returns an error that wraps [port.ErrEncoding] unless a key of a job's state is valid UTF-8:
// it could not be shown, or sent as JSON, as what it is.
func CheckStateKey(key string) error {
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: the key of state %.80q is not valid UTF-8: encode bytes as text, as with hex.EncodeToString", port.ErrEncoding, key)
	}
	return nil
}

// TypeNamer is implemented by worker structs whose type name is not the name of the struct.
type TypeNamer interface {
	JobType() string
}

// TypeOf returns the worker type name of a worker struct: what JobType says, else
// the name of the struct.
func TypeOf(w any) (string, error) {
	if t, ok := w.(TypeNamer); ok {
		return t.JobType(), CheckName("type", t.JobType())
	}
	t := reflect.TypeOf(w)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || t.Name() == "" {
		return "", fmt.Errorf("%w: a worker must be a pointer to a named struct, not %T", ErrName, w)
	}
	return t.Name(), nil
}

// NodeOf describes the job of one worker struct: its type, its parameters and its ports.
func NodeOf(w any, name, queue string) (Node, error) {
	typ, err := TypeOf(w)
	if err != nil {
		return Node{}, err
	}
	layout, err := port.Describe(reflect.TypeOf(w))
	if err != nil {
		return Node{}, err
	}
	args, err := layout.Params(w)
	if err != nil {
		return Node{}, err
	}
	version, err := VersionOf(w)
	if err != nil {
		return Node{}, err
	}
	n := Node{Name: name, Type: typ, Queue: queue, Args: args, Silent: SilentOf(w)}
	if r, ok := w.(*Registered); ok {
		n.Args, n.Priority, version = r.args, r.info.Priority, max(version, r.info.TypeVersion)
	}
	if version > 1 {
		n.TypeVersion = version
	}
	if p, ok := w.(Prioritizer); ok {
		n.Priority = new(p.RunPriority())
	}
	for _, s := range PortsOf(w, layout) {
		n.Ports = append(n.Ports, Port{Spec: s})
	}
	return n, nil
}

// PortDeclarer is implemented by worker structs that have ports beyond their handles, such as
// port.Any. Their messages are reached by name, through the run.
type PortDeclarer interface {
	Ports() []port.Spec
}

// Prioritizer is implemented by worker structs whose jobs have another priority than DefaultPriority, unless their node
// or their tree says otherwise.
type Prioritizer interface {
	RunPriority() int
}

// CheckPriority returns an error that wraps ErrValue unless a priority is from 0 to MaxPriority.
func CheckPriority(n int) error {
	if n < 0 || n > MaxPriority {
		return fmt.Errorf("%w: priority %d: use 0 (last) to %d (first); %d is the default", ErrValue, n, MaxPriority, DefaultPriority)
	}
	return nil
}

// StatusHider is implemented by worker structs of which the statuses need not be published, nor those of jobs below theirs.
type StatusHider interface {
	SilentStatus() bool
}

// SilentOf tells whether the statuses of a worker struct's jobs are not published.
func SilentOf(w any) bool {
	s, ok := w.(StatusHider)
	return ok && s.SilentStatus()
}

// PortsOf returns all ports of a worker struct: those of its handles, and what its
// Ports method adds.
func PortsOf(w any, layout *port.Layout) []port.Spec {
	specs := layout.Specs()
	if p, ok := w.(PortDeclarer); ok {
		return MergePorts(specs, p.Ports())
	}
	return specs
}

// Single plans one job without children: the worker w in the given queue (empty
// means DefaultQueue).
func Single(w any, queue string) Planner { return single{w, queue} }

type single struct {
	w     any
	queue string
}

// Plan implements Planner.
func (s single) Plan() (*Plan, error) {
	n, err := NodeOf(s.w, "", s.queue)
	if err != nil {
		return nil, err
	}
	return &Plan{Nodes: []Node{n}}, nil
}
