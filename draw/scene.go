package draw

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirworks/weir/internal/term"
)

// scene is a picture whose names are resolved. Frames come before what is in them.
type scene struct {
	title string
	nodes []*node
	edges []*edge
}

// node is a Node with what the edges make of it.
type node struct {
	Node
	index    int
	parent   int // -1 for the top level
	children int
	wires    []int  // for each In port the number of wires that end there apart, at least one
	leaving  []bool // which Out ports edges begin at
	insideTo []int  // of a frame, for each Out port: the same as wires, inside
}

// frame tells whether others are in a node.
func (n *node) frame() bool { return n.children > 0 }

// firstPin is the number of the first pin of an In port.
func firstPin(wires []int, port int) int {
	sum := 0
	for _, n := range wires[:port] {
		sum += n
	}
	return sum
}

func total(wires []int) int { return firstPin(wires, len(wires)) }

// edge is an Edge between places in a scene.
type edge struct {
	Edge
	from, to             *node
	fromPort, toPort     int
	fromInside, toInside bool // at the inner side of a frame
	pin                  int  // among the wires of its port that end apart
	shared               bool // drawn to its end together with the one before
}

// stage resolves the names of a picture. Its error lists all that is wrong with it.
func stage(p Picture) (*scene, error) {
	s := &scene{title: p.Title}
	var problems []error
	byID := make(map[string]*node, len(p.Nodes))
	for _, n := range p.Nodes {
		if byID[n.ID] != nil {
			problems = append(problems, fmt.Errorf("two nodes are called %q", n.ID))
			continue
		}
		m := &node{Node: n, parent: -1}
		m.complete()
		problems = append(problems, m.check()...)
		byID[n.ID] = m
	}
	problems = append(problems, s.order(p.Nodes, byID)...)
	for i, e := range p.Edges {
		resolved, err := s.resolve(e, byID)
		if err != nil {
			problems = append(problems, fmt.Errorf("edge %d from %q of %q to %q of %q: %w", i, e.FromPort, e.From, e.ToPort, e.To, err))
			continue
		}
		s.edges = append(s.edges, resolved)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("drawing %q: %w", p.Title, errors.Join(problems...))
	}
	s.pins()
	return s, nil
}

// complete gives a node what its zero values stand for.
func (n *node) complete() {
	n.Label = cmp.Or(n.Label, n.ID)
	if n.Kind == Input && len(n.Out) == 0 {
		n.Out = []Port{{Name: n.Label}}
	}
	if n.Kind == Output && len(n.In) == 0 {
		n.In = []Port{{Name: n.Label}}
	}
}

func (n *node) check() []error {
	var problems []error
	if n.ID == "" {
		problems = append(problems, errors.New("a node has no ID"))
	}
	for _, ports := range [2][]Port{n.In, n.Out} {
		seen := make(map[string]bool, len(ports))
		for _, p := range ports {
			if p.Name == "" {
				problems = append(problems, fmt.Errorf("a port of %q has no name", n.ID))
			} else if seen[p.Name] {
				problems = append(problems, fmt.Errorf("two ports of %q are called %q", n.ID, p.Name))
			}
			seen[p.Name] = true
		}
	}
	switch n.Kind {
	case Job, Group:
	case Input, Output:
		if n.Kind == Input && (len(n.In) > 0 || len(n.Out) > 1) || n.Kind == Output && (len(n.Out) > 0 || len(n.In) > 1) {
			problems = append(problems, fmt.Errorf("%q must have one port, since it is an input or output of the graph", n.ID))
		}
	default:
		problems = append(problems, fmt.Errorf("%q is of unknown kind %d", n.ID, n.Kind))
	}
	return problems
}

// order fills the scene's nodes, groups before what is in them.
func (s *scene) order(nodes []Node, byID map[string]*node) []error {
	var problems []error
	members := make(map[string][]*node)
	seen := make(map[string]bool)
	for _, n := range nodes {
		if seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		members[n.Group] = append(members[n.Group], byID[n.ID])
		if g := byID[n.Group]; n.Group != "" && (g == nil || g.Kind != Group) {
			problems = append(problems, fmt.Errorf("%q is in %q, which is no group", n.ID, n.Group))
		}
	}
	add := func(m *node, parent int) {
		m.index, m.parent = len(s.nodes), parent
		s.nodes = append(s.nodes, m)
	}
	for _, m := range members[""] {
		add(m, -1)
	}
	for i := 0; i < len(s.nodes); i++ {
		g := s.nodes[i]
		if g.ID == "" {
			continue // a mistake, found elsewhere; the nodes of no group are not in it
		}
		for _, m := range members[g.ID] {
			add(m, i)
			g.children++
		}
	}
	if len(s.nodes) < len(byID) && len(problems) == 0 {
		problems = append(problems, errors.New("groups are in each other"))
	}
	return problems
}

func (s *scene) resolve(e Edge, byID map[string]*node) (*edge, error) {
	r := &edge{Edge: e, from: byID[e.From], to: byID[e.To]}
	if r.from == nil {
		return nil, fmt.Errorf("there is no node %q", e.From)
	}
	if r.to == nil {
		return nil, fmt.Errorf("there is no node %q", e.To)
	}
	out, outOK := portOf(r.from.Out, e.FromPort, r.from.Kind == Input)
	in, inOK := portOf(r.to.In, e.ToPort, r.to.Kind == Output)
	through := r.from == r.to && r.from.frame() && (!outOK || !inOK)
	if r.from.frame() && (through || s.within(r.to, r.from)) {
		r.fromInside = true
		out, outOK = portOf(r.from.In, e.FromPort, false)
	}
	if r.to.frame() && (through || s.within(r.from, r.to)) {
		r.toInside = true
		in, inOK = portOf(r.to.Out, e.ToPort, false)
	}
	if !outOK {
		return nil, fmt.Errorf("%q has no such port", e.From)
	}
	if !inOK {
		return nil, fmt.Errorf("%q has no such port", e.To)
	}
	r.fromPort, r.toPort = out, in
	return r, nil
}

// within tells whether n is somewhere in g.
func (s *scene) within(n, g *node) bool {
	for n.parent >= 0 {
		if n = s.nodes[n.parent]; n == g {
			return true
		}
	}
	return false
}

func portOf(ports []Port, name string, only bool) (index int, ok bool) {
	if only && name == "" && len(ports) == 1 {
		return 0, true
	}
	i := slices.IndexFunc(ports, func(p Port) bool { return p.Name == name })
	return i, i >= 0
}

// place is where an edge begins or ends.
type place struct {
	node, port int
	inside     bool
}

func (e *edge) beginning() place { return place{e.from.index, e.fromPort, e.fromInside} }
func (e *edge) ending() place    { return place{e.to.index, e.toPort, e.toInside} }

// pins decides which wires end together: those whose beginning feeds nothing else.
func (s *scene) pins() {
	for _, n := range s.nodes {
		n.wires = make([]int, len(n.In))
		n.leaving = make([]bool, len(n.Out))
		n.insideTo = make([]int, len(n.Out))
	}
	fed := make(map[place]int)
	for _, e := range s.edges {
		fed[e.beginning()]++
	}
	joined := make(map[place]int) // pin of the wires that join, plus one
	for _, e := range s.edges {
		wires := e.to.wires
		if e.toInside {
			wires = e.to.insideTo
		}
		if !e.fromInside {
			e.from.leaving[e.fromPort] = true
		}
		alone := fed[e.beginning()] == 1
		if at := joined[e.ending()]; alone && at > 0 {
			e.pin, e.shared = at-1, true
			continue
		}
		e.pin = wires[e.toPort]
		wires[e.toPort]++
		if alone {
			joined[e.ending()] = e.pin + 1
		}
	}
	for _, n := range s.nodes {
		for _, wires := range [2][]int{n.wires, n.insideTo} {
			for i := range wires {
				wires[i] = max(1, wires[i])
			}
		}
	}
}

// fill is how full a queue is.
type fill int

const (
	unknown fill = iota
	empty
	some
	half
	full
)

func (e *edge) fill() fill {
	switch {
	case e.Size < 0:
		return unknown
	case e.Size == 0:
		return empty
	case e.Limit > 0 && e.Size >= e.Limit:
		return full
	case e.Limit > 0 && 2*e.Size > e.Limit:
		return half
	}
	return some
}

// queue is what waits at the end of an edge, in words: 3, 3/100, or ≤100 if only the
// limit is known.
func (e *edge) queue() string {
	switch {
	case e.Size >= 0 && e.Limit > 0:
		return term.Number(int64(e.Size)) + "/" + term.Number(int64(e.Limit))
	case e.Size >= 0:
		return term.Number(int64(e.Size))
	case e.Limit > 0:
		return "≤" + term.Number(int64(e.Limit))
	}
	return ""
}

// badge is the number on a wire, or on several that end together.
type badge struct {
	edge   *edge // the first
	text   string
	fill   fill
	share  float64 // of the limit, -1 if there is none
	closed bool    // nothing will pass any more, on any of the wires
}

// badges has the badge of each edge that is not drawn to its end with one before.
func (s *scene) badges() map[*edge]*badge {
	type key struct {
		place
		pin int
	}
	first := make(map[key]*badge)
	out := make(map[*edge]*badge)
	for _, e := range s.edges {
		k := key{e.ending(), e.pin}
		b := first[k]
		if b == nil {
			b = &badge{edge: e, share: -1, closed: true}
			first[k], out[e] = b, b
		}
		if q := e.queue(); q != "" && !slices.Contains(strings.Split(b.text, "+"), q) {
			b.text = strings.TrimPrefix(b.text+"+"+q, "+")
		}
		b.fill = max(b.fill, e.fill())
		b.closed = b.closed && e.Closed
		if e.Size >= 0 && e.Limit > 0 {
			b.share = max(b.share, min(1, float64(e.Size)/float64(e.Limit)))
		}
	}
	return out
}

// name is how a port is written: with its constant, if it has one, or what waits in it.
func (p Port) name() string {
	switch {
	case p.Constant != "":
		return p.Name + "=" + p.Constant
	case p.Waiting > 0:
		return p.Name + " " + strconv.Itoa(p.Waiting)
	}
	return p.Name
}
