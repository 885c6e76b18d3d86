package graphfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/weirworks/weir/port"
)

// Keys of metadata that are not what other programs put there.
const (
	weirKey  = "weir"  // in NoFlo's JSON: what only Weir has
	nofloKey = "noflo" // in a File: what only NoFlo has
)

// importer makes a File of a graph of NoFlo's kind, whose names differ from Weir's.
type importer struct {
	problems *problems
	file     *File
	lower    bool               // names of ports are converted to lower case
	nodes    map[string]int     // by NoFlo's ids
	ids      map[string]string  // by Weir's names
	ports    map[foreign]string // how NoFlo spells each port
	ins      map[End]*inlet     // the In ports about which there is something to say
}

// foreign is a port of a node under Weir's names; dir is "In" or "Out".
type foreign struct {
	end End
	dir string
}

// inlet is an In port of a node.
type inlet struct {
	index int             // in Node.In
	sent  bool            // it has values
	with  json.RawMessage // their metadata
}

func newImporter(p *problems, lower bool) *importer {
	return &importer{
		problems: p, file: &File{}, lower: lower, nodes: make(map[string]int), ids: make(map[string]string),
		ports: make(map[foreign]string), ins: make(map[End]*inlet),
	}
}

// addNode adds a node of that id; it returns nil if its name is taken.
func (m *importer) addNode(id string, metadata *value, pos Pos, path string) *Node {
	name := tidy(id)
	if other, taken := m.ids[name]; taken {
		m.problems.add(pos, path, "%q and %q would both be called %s: rename one of them", other, id, name)
		return nil
	}
	if port.CheckName(name) != nil {
		m.problems.add(pos, path, "%s", wrongName(id))
		return nil
	}
	m.ids[name] = id
	m.nodes[id] = len(m.file.Nodes)
	m.file.Nodes = append(m.file.Nodes, Node{Name: name, Metadata: m.metadata(metadata, ownID(id), pos, path), Pos: pos})
	return &m.file.Nodes[len(m.file.Nodes)-1]
}

// ownID is what Weir keeps of an id that is none of its names.
func ownID(id string) *value {
	own := &value{}
	if tidy(id) != id {
		own.put("id", textValue(id))
	}
	return own
}

// metadata is NoFlo's metadata with what Weir keeps in it.
func (m *importer) metadata(v, own *value, pos Pos, path string) json.RawMessage {
	if v.get(nofloKey) != nil {
		m.problems.add(pos, path, "the key %q of metadata is Weir's own: rename it", nofloKey)
	}
	rest := v.without(weirKey, nofloKey)
	if len(own.members) > 0 {
		if rest == nil {
			rest = &value{}
		}
		rest.put(nofloKey, own)
	}
	return rest.rawObject()
}

// stop is a port in NoFlo's words; index is -1 if it is no element of an array.
type stop struct {
	node, port string
	index      int
	pos        Pos
}

// end returns Weir's name of a port; ok is false after a problem.
func (m *importer) end(s stop, dir, path string) (e End, ok bool) {
	i, known := m.nodes[s.node]
	if !known {
		m.problems.add(s.pos, path, "there is no node %q%s", s.node, m.problems.hint(s.node, maps.Keys(m.nodes)))
		return End{}, false
	}
	e = End{m.file.Nodes[i].Name, m.portName(s.port)}
	spelled := e.Port
	if s.index >= 0 && e.Port != "" { // an empty name stays wrong
		spelled = fmt.Sprintf("%s[%d]", e.Port, s.index)
		e.Port = fmt.Sprintf("%s_%d", e.Port, s.index)
	}
	if text := wrongName(e.Port); text != "" {
		m.problems.add(s.pos, path, "%s", text)
		return End{}, false
	}
	if first, seen := m.ports[foreign{e, dir}]; seen && first != spelled {
		m.problems.add(s.pos, path, "%s and %s of node %s would be the same port: rename one of them", first, spelled, s.node)
		return End{}, false
	}
	m.ports[foreign{e, dir}] = spelled
	return e, true
}

func (m *importer) portName(name string) string {
	if m.lower {
		return strings.ToLower(name)
	}
	return name
}

// edge adds an edge.
func (m *importer) edge(from, to stop, metadata *value, pos Pos, path string) *Edge {
	src, okFrom := m.end(from, "Out", path)
	tgt, okTo := m.end(to, "In", path)
	if !okFrom || !okTo {
		return nil
	}
	own := &value{}
	if from.index >= 0 {
		own.put("src_index", intValue(from.index))
	}
	if to.index >= 0 {
		own.put("tgt_index", intValue(to.index))
	}
	m.file.Edges = append(m.file.Edges, Edge{From: src, To: tgt, Metadata: m.metadata(metadata, own, pos, path), Pos: pos})
	return &m.file.Edges[len(m.file.Edges)-1]
}

// send adds an initial value of a port.
func (m *importer) send(to stop, data, metadata *value, pos Pos, path string) {
	e, ok := m.end(to, "In", path)
	if !ok {
		return
	}
	own := &value{}
	if to.index >= 0 {
		own.put("index", intValue(to.index))
	}
	raw := m.metadata(metadata, own, pos, path)
	n := &m.file.Nodes[m.nodes[to.node]]
	port := m.ins[e]
	if port == nil {
		n.In = append(n.In, In{Port: e.Port, Pos: pos})
		port = m.inlet(e, len(n.In)-1)
	}
	in := &n.In[port.index]
	if port.sent && string(port.with) != string(raw) ||
		!port.sent && in.Metadata != nil && raw != nil && string(in.Metadata) != string(raw) {
		m.problems.add(pos, path, "all values of the port %s must have the same metadata", e)
		return
	}
	port.sent, port.with = true, raw
	if raw != nil {
		in.Metadata = raw
	}
	in.Values = append(in.Values, data.raw())
}

// inlet remembers where an In port is.
func (m *importer) inlet(e End, index int) *inlet {
	m.ins[e] = &inlet{index: index}
	return m.ins[e]
}

// export adds an input or output of the graph.
func (m *importer) export(list *[]Export, dir, name string, to stop, metadata *value, path string) *Export {
	e, ok := m.end(to, dir, path)
	if !ok {
		return nil
	}
	*list = append(*list, Export{
		Name: m.portName(name), Ends: []End{e}, Metadata: m.metadata(metadata, &value{}, to.pos, path), Pos: to.pos,
	})
	return &(*list)[len(*list)-1]
}

// name gives the file its name, or leaves it in the metadata if it is none in Weir.
func (m *importer) name(v *value) (rest *value) {
	name := v.get("name")
	if port.CheckName(str(name)) == nil {
		m.file.Name = name.text
		return v.without("name")
	}
	if str(name) == "" {
		return v.without("name")
	}
	return v
}

// finish makes plain text of what looks like references, if there is nothing to refer to.
func (m *importer) finish() *File {
	if len(m.file.Params) > 0 {
		return m.file
	}
	m.file.mapValues(func(v *value) *value {
		return v.mapTexts(func(s string) *value { return textValue(escape(s)) })
	})
	return m.file
}
