package graphfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirworks/weir/port"
)

// exporter writes a File as a graph of NoFlo's kind. It collects what cannot be said.
type exporter struct {
	encoder
	problems *problems
	file     *File
	template bool               // ${ in values refers to parameters
	ids      map[string]string  // NoFlo's ids by Weir's names
	taken    map[string]string  // Weir's names by NoFlo's ids
	ports    map[foreign]string // how NoFlo spells each port
}

// newExporter checks f and writes its values as they are if it has no parameters.
func newExporter(f *File) (*exporter, error) {
	x := &exporter{
		problems: newProblems(f.Source), file: f, template: len(f.Params) > 0,
		ids: make(map[string]string), taken: make(map[string]string), ports: make(map[foreign]string),
	}
	if !x.template {
		var err error
		if x.file, err = f.Expand(nil); err != nil {
			return nil, err
		}
		return x, nil
	}
	return x, f.Check()
}

// metadata takes apart metadata: what NoFlo gets as it is, and what Weir kept of NoFlo's.
func (x *exporter) metadata(raw []byte, pos Pos, path string, known ...string) (rest, own *value) {
	v := x.object(raw)
	if v.get(weirKey) != nil {
		x.problems.add(pos, under(path, "metadata", weirKey), "the key is needed for what only Weir has: rename it")
	}
	own = v.get(nofloKey)
	if own == nil {
		return v.without(weirKey), nil
	}
	here := under(path, "metadata", nofloKey)
	if left := own.without(known...); own.kind != object || left != nil || len(own.members) == 0 {
		x.problems.add(pos, here, "is %s, and can only be a map with %s", brief(own), orNothing(known))
		return v.without(weirKey, nofloKey), nil
	}
	return v.without(weirKey, nofloKey), own
}

func orNothing(known []string) string {
	if len(known) == 0 {
		return "nothing in it"
	}
	return strings.Join(known, " and ")
}

// id returns the id of a node.
func (x *exporter) id(n *Node, own *value) string {
	path := under("nodes", show(n.Name))
	id := n.Name
	if v := own.get("id"); v != nil {
		if v.kind != text || tidy(v.text) != n.Name || v.text == n.Name {
			x.problems.add(n.Pos, under(path, "metadata", nofloKey, "id"),
				"is %s, which does not become the name of the node when it is read: remove it", brief(v))
		} else {
			id = v.text
		}
	}
	if other, taken := x.taken[id]; taken {
		x.problems.add(n.Pos, path, "would have the same id as %s", other)
	}
	x.ids[n.Name], x.taken[id] = id, n.Name
	return id
}

// stop returns a port in NoFlo's words. index is what metadata says about it, or nil.
func (x *exporter) stop(e End, dir string, index *value, pos Pos, path string) stop {
	s := stop{node: x.ids[e.Node], port: e.Port, index: -1, pos: pos}
	spelled := e.Port
	if index != nil {
		n, err := strconv.Atoi(index.text)
		name, found := strings.CutSuffix(e.Port, "_"+index.text)
		if index.kind != number || err != nil || n < 0 || n > maxInt || !found || name == "" || strconv.Itoa(n) != index.text {
			x.problems.add(pos, path, "the index %s is not what the name of the port %s ends with: remove it from metadata.%s",
				brief(index), e, nofloKey)
			return s
		}
		s.port, s.index = name, n
		spelled = fmt.Sprintf("%s[%d]", name, n)
	}
	if first, seen := x.ports[foreign{e, dir}]; seen && first != spelled {
		x.problems.add(pos, path, "the port %s is %s elsewhere and %s here: give all of them the same metadata.%s",
			e, first, spelled, nofloKey)
	}
	x.ports[foreign{e, dir}] = spelled
	return s
}

// capitals reports whether a name of a port has a capital letter.
func (x *exporter) capitals() bool {
	odd := func(s string) bool { return strings.ToLower(s) != s }
	for _, e := range x.file.Edges {
		if odd(e.From.Port) || odd(e.To.Port) {
			return true
		}
	}
	for _, n := range x.file.Nodes {
		for _, in := range n.In {
			if odd(in.Port) {
				return true
			}
		}
	}
	for _, list := range [][]Export{x.file.Inputs, x.file.Outputs} {
		for _, export := range list {
			if odd(export.Name) || len(export.Ends) > 0 && odd(export.Ends[0].Port) {
				return true
			}
		}
	}
	return false
}

// names checks what metadata says under keys that are also fields of a File.
func (x *exporter) names(rest *value) {
	if name := rest.get("name"); name != nil {
		switch {
		case x.file.Name != "":
			x.problems.add(x.file.Pos, "metadata.name", "the graph has a name: remove it")
		case name.kind != text || name.text == "" || port.CheckName(name.text) == nil:
			x.problems.add(x.file.Pos, "metadata.name", "would become the name of the graph: remove it")
		}
	}
	if rest.get("description") != nil {
		x.problems.add(x.file.Pos, "metadata.description", "would become the description of the graph: remove it")
	}
}
