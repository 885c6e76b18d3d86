package graph

import (
	"errors"

	"github.com/weirworks/weir/port"
)

// What a graph says of a draft: a description in which something is wrong already, of which everything else is to be told, too.
var (
	// ErrUnknown is in the error about a worker of AddUnknown.
	ErrUnknown = errors.New("what runs here is not known")
	// ErrUnfed is in the error about a port to which nothing leads, or from which nothing leads on.
	ErrUnfed = errors.New("nothing leads there")
	// ErrEmpty is the error about a graph without jobs.
	ErrEmpty = errors.New("the graph has no jobs: Add a worker")
)

// AddUnknown adds a worker of which nothing is known but its name: it has whatever ports [Wire] and the others name. The graph can
// be checked, and cannot be planned: the error wraps [ErrUnknown].
func AddUnknown(g *Graph, name string, opts ...Option) {
	n := g.add(name, opts)
	n.ports = []port.Spec{{Name: port.Any, Dir: port.Input}, {Name: port.Any, Dir: port.Output}}
	g.report(n.path(), ErrUnknown)
}

// CheckPort reports a port written as "worker.port" that is not there. It is [Wire] for an edge whose other end is not known.
func CheckPort(g *Graph, dir port.Dir, at string) { g.named(at, dir) }

// UnknownPort gives the graph a port that takes any message and leads nowhere, if it has none of that name: those who use the graph
// can be checked.
func UnknownPort(g *Graph, dir port.Dir, name string) {
	if _, has := g.root.find(dir, name); !has && port.CheckName(name) == nil {
		g.own(port.Spec{Name: name, Dir: dir}, nil)
	}
}

// unfed is an error of that text that wraps ErrUnfed.
type unfed string

func (e unfed) Error() string   { return string(e) }
func (e unfed) Is(t error) bool { return t == ErrUnfed }
