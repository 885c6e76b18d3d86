package graphfile

import (
	"fmt"
	"strings"
)

// FBP returns f in the language of flowbased/fbp, under the conditions of
// [File.JSON]. The error names everything that the language has no words for: parameters,
// nested graphs, arguments, queues, instances, failure policies, descriptions of
// nodes, defaults, limits, feedback, exports of several ports, and metadata other than
// short texts of nodes.
func (f *File) FBP() (string, error) {
	x, err := newExporter(f)
	if err != nil {
		return "", err
	}
	w := &fbpWriter{exporter: x, capitals: x.capitals()}
	w.annotations()
	w.graph()
	if err := x.problems.err(); err != nil {
		return "", err
	}
	return w.String(), fit(w.Len(), &value{})
}

type fbpWriter struct {
	strings.Builder
	*exporter
	capitals bool // some port has a capital letter, so all are written as they are
}

// lacks reports what the language has no words for.
func (w *fbpWriter) lacks(pos Pos, path string, has bool) {
	if has {
		w.problems.add(pos, path, "cannot be said in .fbp: remove it, or use another format")
	}
}

func (w *fbpWriter) annotation(path, key, text string) {
	if !fbpRemark.MatchString(text) {
		w.problems.add(w.file.Pos, path, "%.40q cannot be said in .fbp: use letters, digits, spaces and - _ . only", text)
	}
	fmt.Fprintf(w, "# @%s %s\n", key, text)
}

func (w *fbpWriter) annotations() {
	f := w.file
	rest, own := w.metadata(f.Metadata, f.Pos, "", "groups")
	w.names(rest)
	w.lacks(f.Pos, "metadata.noflo.groups", own.get("groups") != nil)
	if f.Name != "" {
		w.annotation("name", "name", f.Name)
	}
	if f.Description != "" {
		w.annotation("description", "description", f.Description)
	}
	each(rest, func(m member) {
		path := under("metadata", show(m.key))
		switch {
		case m.key == "environment" && m.val.get("type").is(text) && len(m.val.members) == 1:
			w.annotation(path, "runtime", str(m.val.get("type")))
		case m.val.kind != text || !fbpAnnotation.MatchString("# @"+m.key+" x"),
			m.key == "runtime", m.key == "environment", m.key == "caseSensitive":
			w.lacks(f.Pos, path, true)
		default:
			w.annotation(path, m.key, m.val.text)
		}
	})
	if w.capitals {
		w.annotation("caseSensitive", "caseSensitive", "true")
	}
}

func (w *fbpWriter) graph() {
	f := w.file
	w.lacks(f.Pos, "retain", f.Retain != "")
	w.lacks(f.Pos, "sequential_key", f.SequentialKey != "")
	w.lacks(f.Pos, "unique", f.Unique != nil)
	w.lacks(f.Pos, "priority", f.Priority != nil)
	w.lacks(f.Pos, "params", len(f.Params) > 0)
	w.lacks(f.Pos, "graphs", len(f.Graphs) > 0)
	var nodes, data strings.Builder
	for i := range f.Nodes {
		w.node(&nodes, &f.Nodes[i])
	}
	for i := range f.Nodes {
		w.data(&data, &f.Nodes[i])
	}
	w.exports("INPORT", "inputs", "In", f.Inputs)
	w.exports("OUTPORT", "outputs", "Out", f.Outputs)
	w.WriteString(nodes.String() + data.String())
	for _, e := range f.Edges {
		w.connection(e)
	}
}

func (w *fbpWriter) node(b *strings.Builder, n *Node) {
	path := under("nodes", show(n.Name))
	w.lacks(n.Pos, under(path, "description"), n.Description != "")
	w.lacks(n.Pos, under(path, "args"), w.object(n.Args) != nil)
	w.lacks(n.Pos, under(path, "queue"), n.Queue != "")
	w.lacks(n.Pos, under(path, "instances"), n.Instances != 0)
	w.lacks(n.Pos, under(path, "failure"), n.Failure != "")
	w.lacks(n.Pos, under(path, "priority"), n.Priority != nil)
	w.lacks(n.Pos, under(path, "labels"), len(n.Labels) > 0)
	w.lacks(n.Pos, under(path, "tries"), n.Tries != 0)
	w.lacks(n.Pos, under(path, "backoff"), n.Backoff != "")
	w.lacks(n.Pos, under(path, "max_backoff"), n.MaxBackoff != "")
	w.lacks(n.Pos, under(path, "timeout"), n.Timeout != "")
	rest, own := w.metadata(n.Metadata, n.Pos, path, "id")
	id := w.id(n, own)
	if !fbpNode.MatchString(id) {
		w.problems.add(n.Pos, path, "a node cannot be called %s in .fbp: begin with a letter or _ and use letters, digits, _ and -", id)
	}
	if !fbpType.MatchString(n.Type) {
		w.problems.add(n.Pos, under(path, "type"), "%q cannot be said in .fbp: use letters, digits and _ - / only", n.Type)
	}
	var meta []string
	each(rest, func(m member) {
		key, val := m.key, m.val
		place := key == "x" || key == "y"
		digits := strings.Trim(val.text, "0123456789") == "" && strings.TrimLeft(val.text, "0") != ""
		ok := key != "" && fbpMeta.MatchString(key) && fbpMeta.MatchString(val.text) &&
			(!place && val.kind == text || place && val.kind == number && (digits && val.text[0] != '0' || val.text == "0"))
		w.lacks(n.Pos, under(path, "metadata", show(key)), !ok)
		meta = append(meta, key+"="+val.text)
	})
	component := n.Type
	if len(meta) > 0 {
		component += ":" + strings.Join(meta, ",")
	}
	fmt.Fprintf(b, "%s(%s)\n", id, component)
}

// data writes what waits in the ports of a node.
func (w *fbpWriter) data(b *strings.Builder, n *Node) {
	for i := range n.In {
		in := &n.In[i]
		path := under("nodes", show(n.Name), "in", show(in.Port))
		w.lacks(in.Pos, path, len(in.Values) == 0)
		w.lacks(in.Pos, under(path, "default"), in.Default != nil)
		w.lacks(in.Pos, under(path, "limit"), in.Limit != 0)
		rest, own := w.metadata(in.Metadata, in.Pos, path, "index")
		w.lacks(in.Pos, under(path, "metadata"), rest != nil)
		to := w.port(w.stop(End{n.Name, in.Port}, "In", own.get("index"), in.Pos, path), path)
		for _, raw := range in.Values {
			v := w.raw(raw)
			if v.is(null) || v.is(boolean) {
				w.problems.add(in.Pos, path, "%s would be the name of a node in .fbp: use another value, or another format", brief(v))
				continue
			}
			fmt.Fprintf(b, "%s -> %s %s\n", fbpData(v), to, w.ids[n.Name])
		}
	}
}

// fbpData is an initial value.
func fbpData(v *value) string {
	if v == nil {
		return ""
	}
	if v.kind == text && printable(v.text) && !strings.Contains(v.text, `\`) {
		return "'" + strings.ReplaceAll(v.text, "'", `\'`) + "'"
	}
	return escapeOdd(string(v.raw()))
}

// port is a port as the language writes it.
func (w *fbpWriter) port(s stop, path string) string {
	name := s.port
	if !fbpPort.MatchString(name) {
		w.problems.add(s.pos, path, "a port cannot be called %s in .fbp: begin with a letter or _", name)
	}
	if !w.capitals {
		name = strings.ToUpper(name)
	}
	if s.index >= 0 {
		name = fmt.Sprintf("%s[%d]", name, s.index)
	}
	return name
}

func (w *fbpWriter) exports(key, what, dir string, exports []Export) {
	for _, e := range exports {
		path := under(what, show(e.Name))
		rest, _ := w.metadata(e.Metadata, e.Pos, path)
		w.lacks(e.Pos, under(path, "metadata"), rest != nil)
		if len(e.Ends) > 1 {
			w.problems.add(e.Pos, path, "several ports cannot be said in .fbp: leave one, or use another format")
		}
		inner := w.port(w.stop(e.Ends[0], dir, nil, e.Pos, path), path)
		outer := w.port(stop{port: e.Name, index: -1, pos: e.Pos}, path)
		fmt.Fprintf(w, "%s=%s.%s:%s\n", key, w.ids[e.Ends[0].Node], inner, outer)
	}
}

func (w *fbpWriter) connection(e Edge) {
	path := "edges[" + e.From.String() + " -> " + e.To.String() + "]"
	w.lacks(e.Pos, path+".limit", e.Limit != 0)
	w.lacks(e.Pos, path+".feedback", e.Feedback)
	rest, own := w.metadata(e.Metadata, e.Pos, path, "src_index", "tgt_index")
	w.lacks(e.Pos, path+".metadata", rest != nil)
	from := w.port(w.stop(e.From, "Out", own.get("src_index"), e.Pos, path), path)
	to := w.port(w.stop(e.To, "In", own.get("tgt_index"), e.Pos, path), path)
	fmt.Fprintf(w, "%s %s -> %s %s\n", w.ids[e.From.Node], from, to, w.ids[e.To.Node])
}
