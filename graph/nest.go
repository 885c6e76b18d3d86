package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// BindInput leads what arrives at an In port of a [Composite] to a worker inside it. It is to
// be called in Build.
func BindInput[T any](from, to port.In[T], opts ...WireOption) {
	crossing(endOf(from.Ref()), endOf(to.Ref()), true, opts)
}

// BindOutput leads what a worker inside a [Composite] writes to an Out port of the composite. It
// is to be called in Build.
func BindOutput[T any](from, to port.Out[T]) {
	crossing(endOf(to.Ref()), endOf(from.Ref()), false, nil)
}

// crossing links a port of a composite to one of a worker inside.
func crossing(own, inner end, enters bool, opts []WireOption) {
	switch {
	case own.node == nil && inner.node == nil:
	case own.node == nil:
		inner.node.graph.report(inner.path(), errors.New("is linked to a port that belongs to no composite: use a handle of the struct that Build was called on"))
	case own.node.sub == nil:
		own.node.graph.report(own.path(), errors.New("is a port of a worker: BindInput and BindOutput are for composites, in Build; use Connect"))
	case inner.node == nil:
		own.node.graph.report(own.path(), errors.New("is linked to a handle that belongs to no job: Add its worker first, then use the handle of what Add returned"))
	case inner.node.graph != own.node.sub:
		own.node.graph.report(own.path(), fmt.Errorf("is linked to %s, which is not inside it", inner.path()))
	case enters:
		own.node.sub.link(end{own.node.sub.root, own.port}, inner, opts)
	default:
		own.node.sub.link(inner, end{own.node.sub.root, own.port}, opts)
	}
}

// Initial puts messages into an In port when the graph is started, before any others. A port
// that nothing else feeds is then closed. With [Instances] each of the jobs gets all of them.
func Initial[T any](to port.In[T], values ...T) {
	e := endOf(to.Ref())
	if e.node == nil {
		return // there is nobody to tell
	}
	for _, v := range values {
		raw, err := port.Encode(v)
		if err != nil {
			e.node.graph.report(e.path(), fmt.Errorf("graph.Initial: %w", err))
			return
		}
		if n := port.VersionOf(v); n > 1 {
			raw = port.SealVersion(raw, n)
		}
		e.node.constant(e.port, raw)
	}
}

func (n *node) constant(name string, raw []byte) {
	if n.constants == nil {
		n.constants = make(map[string][]json.RawMessage)
	}
	n.constants[name] = append(n.constants[name], raw)
}

// Errors returns the Out port to which a worker with the policy [job.DeadLetter] sends what
// it cannot handle.
func Errors(g *Graph, w any) port.Out[job.Letter] {
	n := g.workers[w]
	if n == nil || n.policy != job.DeadLetter {
		g.report(g.path(), fmt.Errorf("graph.Errors: a %T with graph.OnFailure(job.DeadLetter) was not added", w))
		return port.Out[job.Letter]{}
	}
	return outlet[job.Letter](g, &end{n, job.ErrorsPort})
}

// outlet makes a handle that Connect can lead from.
func outlet[T any](g *Graph, e *end) port.Out[T] {
	var o struct{ Out port.Out[T] }
	layout, err := port.Describe(reflect.TypeOf(o))
	if err == nil {
		err = layout.Attach(&o, e)
	}
	if err != nil {
		g.report(e.path(), err)
	}
	return o.Out
}
