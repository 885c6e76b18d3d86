package graph

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// problem is one thing that is wrong, and where.
type problem struct {
	path string
	err  error
	// near describes the port that a handle should have been; nil when none is
	// missing. Its hint is looked up late, when all workers are known.
	near *port.Spec
}

func (g *Graph) report(path string, err error) {
	g.problems = append(g.problems, problem{path: path, err: err})
}

// stray reports that the other end of a wire belongs to no worker of a graph.
func (g *Graph) stray(path string, dir port.Dir, typ string) {
	feeds, handle := "is fed by", "Out"
	if dir == port.Input {
		feeds, handle = "leads to", "In"
	}
	err := fmt.Errorf("%s a port.%s[%s] that belongs to no job: Add its worker first, then use the handle of what Add returned",
		feeds, handle, typ)
	g.problems = append(g.problems, problem{path: path, err: err, near: &port.Spec{Dir: dir, Type: typ}})
}

// Err returns what [New], [Add], [Connect], [Export] and [Input] found wrong so
// far, one problem a line, or nil. What only the whole graph can tell is left to
// [Graph.Plan].
func (g *Graph) Err() error { return g.join(g.problems) }

// join makes one error of all problems: each is a line.
func (g *Graph) join(problems []problem) error {
	var errs []error
	for _, p := range problems {
		hint := ""
		if p.near != nil {
			hint = g.nearest(*p.near)
		}
		for _, err := range split(p.err) {
			errs = append(errs, fmt.Errorf("%s: %w%s", p.path, err, hint))
		}
	}
	return errors.Join(errs...)
}

// split takes apart an error that has several lines, as those of port do: each
// part keeps what was said before the first.
func split(err error) []error {
	text := err.Error()
	if !strings.Contains(text, "\n") {
		return []error{err}
	}
	var joined interface {
		error
		Unwrap() []error
	}
	if !errors.As(err, &joined) || !strings.HasSuffix(text, joined.Error()) ||
		joined.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{&oneLine{err}}
	}
	var parts []error
	for _, part := range joined.Unwrap() {
		for _, line := range split(part) {
			parts = append(parts, fmt.Errorf("%s%w", strings.TrimSuffix(text, joined.Error()), line))
		}
	}
	return parts
}

// oneLine shows an error without line breaks.
type oneLine struct{ error }

func (e *oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", " ") }
func (e *oneLine) Unwrap() error { return e.error }

// maxHints is how many ports a hint names before it says too little.
const maxHints = 3

// nearest names the ports of the graph that a stray handle may be meant to be, or
// the workers whose handles could not be attached.
func (g *Graph) nearest(want port.Spec) string {
	var ports, loose []string
	for _, n := range g.nodes {
		if n.loose {
			loose = append(loose, n.path())
		}
		for _, s := range n.ports {
			if s.Dir == want.Dir && s.Type == want.Type {
				ports = append(ports, end{n, s.Name}.path())
			}
		}
	}
	switch {
	case len(loose) > 0:
		return "; if it is one of " + strings.Join(loose, " or ") + ", fix that first"
	case len(ports) > 0 && len(ports) <= maxHints:
		return "; did you mean " + strings.Join(ports, " or ") + "?"
	default:
		return ""
	}
}

// show is a name as it appears in a path: quoted and cut if it is no name.
func show(name string) string {
	if job.CheckName("", name) == nil || port.CheckName(name) == nil {
		return name
	}
	return fmt.Sprintf("%.40q", name)
}

// didYouMean adds to the error about a wrong name one that would have been right.
func didYouMean(err error, name string) error {
	tidy := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf {
			return r
		}
		return '_'
	}, name)
	tidy = strings.Trim(tidy, "_")
	if tidy == name || port.CheckName(tidy) != nil {
		return err
	}
	return fmt.Errorf("%w; did you mean %q?", err, tidy)
}
