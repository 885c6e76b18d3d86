package graphfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// JSON returns f in Weir's format as JSON. It ends with a line break. What [Parse]
// makes of it equals f, except for Source and positions; JSON in f is made compact, and an
// empty object in Args or Metadata is none. A file that [File.Check] or the limits
// of the package refuse is not written.
func (f *File) JSON() ([]byte, error) {
	v, err := f.encode()
	if err != nil {
		return nil, err
	}
	return indented(v)
}

// YAML returns f in Weir's format as YAML, under the same conditions as [File.JSON].
// What is short is written in one line.
func (f *File) YAML() (string, error) {
	v, err := f.encode()
	if err != nil {
		return "", err
	}
	return writeYAML(v)
}

// indented is a value as JSON for people.
func indented(v *value) ([]byte, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, v.raw(), "", "  "); err != nil {
		return nil, fmt.Errorf("indenting JSON: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), fit(b.Len(), v)
}

// fit refuses to write what could not be read again.
func fit(size int, v *value) error {
	if size > MaxSize {
		return &Problem{Text: fmt.Sprintf("the file would have %d bytes, at most %d are allowed", size, MaxSize)}
	}
	if v.depth > MaxDepth {
		return &Problem{Text: fmt.Sprintf("the file would be nested too deep: at most %d levels are allowed", MaxDepth)}
	}
	return nil
}

// encode makes a value of a whole file.
func (f *File) encode() (*value, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	v := &value{kind: object}
	v.put("weir", intValue(Version))
	v.put("name", optional(f.Name))
	var e encoder
	e.graph(v, f)
	return v, e.failed
}

// encoder makes values of the parts of a File that has been checked.
type encoder struct {
	literal bool // ${ must be escaped
	failed  error
}

// graph puts the parts of a graph into v.
func (e *encoder) graph(v *value, f *File) {
	outer := e.literal
	e.literal = f.Literal
	v.put("description", optional(f.Description))
	v.put("retain", optional(f.Retain))
	v.put("sequential_key", optional(f.SequentialKey))
	v.put("unique", uniqueValue(f.Unique))
	v.put("priority", chosen(f.Priority))
	v.put("params", e.params(f.Params))
	nodes := &value{kind: object}
	for i := range f.Nodes {
		nodes.put(f.Nodes[i].Name, e.node(&f.Nodes[i]))
	}
	v.put("nodes", nodes)
	var edges []*value
	for _, edge := range f.Edges {
		edges = append(edges, e.edge(edge))
	}
	if edges != nil {
		v.put("edges", listValue(edges...))
	}
	v.put("inputs", e.exports(f.Inputs, "to"))
	v.put("outputs", e.exports(f.Outputs, "from"))
	v.put("graphs", e.graphs(f.Graphs))
	v.put("metadata", e.object(f.Metadata))
	e.literal = outer
}

func (e *encoder) graphs(graphs []File) *value {
	v := &value{}
	for i := range graphs {
		g := &value{kind: object}
		e.graph(g, &graphs[i])
		v.put(graphs[i].Name, g)
	}
	return some(v)
}

// some is v, nil if nothing has been put into it.
func some(v *value) *value {
	if len(v.members) == 0 {
		return nil
	}
	return v
}

func optional(s string) *value {
	if s == "" {
		return nil
	}
	return textValue(s)
}

func uniqueValue(u *Unique) *value {
	if u == nil {
		return nil
	}
	v := &value{kind: object}
	v.put("key", optional(u.Key))
	v.put("for", optional(u.For))
	return v
}

// textsValue is an object of texts in the order of their keys, nil for none.
func textsValue(all map[string]string) *value {
	v := &value{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		v.put(key, textValue(all[key]))
	}
	return some(v)
}

func chosen(n *int) *value {
	if n == nil {
		return nil
	}
	return intValue(*n)
}

func positive(n int) *value {
	if n == 0 {
		return nil
	}
	return intValue(n)
}

// raw is the value of JSON, nil for none.
func (e *encoder) raw(raw json.RawMessage) *value {
	if raw == nil {
		return nil
	}
	v, err := parseRaw(raw)
	if err != nil {
		e.failed = err
		return nil
	}
	return v
}

// object is raw for objects, of which an empty one is none.
func (e *encoder) object(raw json.RawMessage) *value {
	if v := e.raw(raw); v.is(object) && len(v.members) > 0 {
		return v
	}
	return nil
}

// template is v, with what looks like references escaped if they are none.
func (e *encoder) template(v *value) *value {
	if v == nil || !e.literal {
		return v
	}
	return v.mapTexts(func(s string) *value { return textValue(escape(s)) })
}

func (e *encoder) params(params []Param) *value {
	v := &value{}
	for _, p := range params {
		def := e.raw(p.Default)
		short := def != nil && def.kind != null && def.kind != object && p.Description == "" && typeOf(p.Default) == p.Type
		if short {
			v.put(p.Name, def)
			continue
		}
		full := &value{}
		full.put("type", textValue(p.Type))
		full.put("default", def)
		full.put("description", optional(p.Description))
		v.put(p.Name, full)
	}
	return some(v)
}

func (e *encoder) node(n *Node) *value {
	v := &value{}
	v.put("type", textValue(n.Type))
	e.options(v, n)
	in := &value{}
	for i := range n.In {
		in.put(n.In[i].Port, e.in(&n.In[i], true))
	}
	v.put("in", some(in))
	v.put("metadata", e.object(n.Metadata))
	return v
}

// options puts what NoFlo has no place for, except for the ports.
func (e *encoder) options(v *value, n *Node) {
	v.put("description", optional(n.Description))
	v.put("args", e.template(e.object(n.Args)))
	v.put("queue", optional(n.Queue))
	v.put("instances", positive(n.Instances))
	v.put("failure", optional(n.Failure))
	v.put("priority", chosen(n.Priority))
	v.put("labels", textsValue(n.Labels))
	v.put("tries", positive(n.Tries))
	v.put("backoff", optional(n.Backoff))
	v.put("max_backoff", optional(n.MaxBackoff))
	v.put("timeout", optional(n.Timeout))
}

// in is what there is to say about a port, with its values and the metadata of them or not.
func (e *encoder) in(in *In, values bool) *value {
	v := &value{kind: object, depth: 1, size: 2}
	if values && len(in.Values) == 1 {
		v.put("value", e.template(e.raw(in.Values[0])))
	} else if values && len(in.Values) > 1 {
		all := make([]*value, len(in.Values))
		for i, raw := range in.Values {
			all[i] = e.template(e.raw(raw))
		}
		v.put("values", listValue(all...))
	}
	v.put("default", e.template(e.raw(in.Default)))
	v.put("limit", positive(in.Limit))
	if values || len(in.Values) == 0 {
		v.put("metadata", e.object(in.Metadata))
	}
	return v
}

func (e *encoder) edge(edge Edge) *value {
	metadata := e.object(edge.Metadata)
	if edge.Limit == 0 && !edge.Feedback && metadata == nil {
		return textValue(edge.From.String() + " -> " + edge.To.String())
	}
	v := &value{}
	v.put("from", textValue(edge.From.String()))
	v.put("to", textValue(edge.To.String()))
	e.edgeOptions(v, edge)
	v.put("metadata", metadata)
	return v
}

// edgeOptions puts what NoFlo has no place for.
func (e *encoder) edgeOptions(v *value, edge Edge) {
	v.put("limit", positive(edge.Limit))
	if edge.Feedback {
		v.put("feedback", boolValue(true))
	}
}

// exports is inputs or outputs; key is what their ends are called in a map.
func (e *encoder) exports(exports []Export, key string) *value {
	v := &value{}
	for _, x := range exports {
		ends := endList(x.Ends)
		if len(x.Ends) == 1 {
			ends = ends.items[0]
		}
		if metadata := e.object(x.Metadata); metadata != nil {
			full := &value{}
			full.put(key, ends)
			full.put("metadata", metadata)
			ends = full
		}
		v.put(x.Name, ends)
	}
	return some(v)
}

func endList(ends []End) *value {
	all := make([]*value, len(ends))
	for i, end := range ends {
		all[i] = textValue(end.String())
	}
	return listValue(all...)
}
