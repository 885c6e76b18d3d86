package graphfile

// NoFlo returns f in the JSON of NoFlo and fbp-graph, under the conditions of
// [File.JSON]. What only Weir has goes into metadata, see the package comment; a node
// or edge whose metadata has the key "weir" is refused.
func (f *File) NoFlo() ([]byte, error) {
	x, err := newExporter(f)
	if err != nil {
		return nil, err
	}
	v := x.noflo()
	if err := x.problems.err(); err != nil {
		return nil, err
	}
	if x.failed != nil {
		return nil, x.failed
	}
	return indented(v)
}

func (x *exporter) noflo() *value {
	f := x.file
	rest, own := x.metadata(f.Metadata, f.Pos, "", "groups")
	x.names(rest)
	properties := &value{kind: object}
	properties.put("name", optional(f.Name))
	properties.put("description", optional(f.Description))
	each(rest, func(m member) { properties.put(m.key, m.val) })
	weir := &value{}
	weir.put("retain", optional(f.Retain))
	weir.put("sequential_key", optional(f.SequentialKey))
	weir.put("unique", uniqueValue(f.Unique))
	weir.put("priority", chosen(f.Priority))
	weir.put("params", x.params(f.Params))
	weir.put("graphs", x.graphs(f.Graphs))
	properties.put(weirKey, some(weir))

	processes, connections := &value{kind: object}, &value{kind: list}
	for i := range f.Nodes {
		x.process(processes, connections, &f.Nodes[i])
	}
	for _, e := range f.Edges {
		connections.items = append(connections.items, x.connection(e))
	}
	connections.measure()
	groups := own.get("groups")
	if groups == nil {
		groups = listValue()
	} else if groups.kind != list || len(groups.items) == 0 {
		x.problems.add(f.Pos, "metadata.noflo.groups", "is %s, use a list with something in it", brief(groups))
	} else {
		for _, g := range groups.items {
			if g.kind != object {
				x.problems.add(f.Pos, "metadata.noflo.groups", "%s is no map", brief(g))
			}
		}
	}
	v := &value{}
	v.put("caseSensitive", boolValue(x.capitals()))
	v.put("properties", properties)
	v.put("inports", x.inports(f.Inputs, "inputs", "In"))
	v.put("outports", x.inports(f.Outputs, "outputs", "Out"))
	v.put("groups", groups)
	v.put("processes", processes)
	v.put("connections", connections)
	return v
}

// process puts a node, and its initial values.
func (x *exporter) process(processes, connections *value, n *Node) {
	path := under("nodes", show(n.Name))
	metadata, own := x.metadata(n.Metadata, n.Pos, path, "id")
	id := x.id(n, own)
	weir := &value{}
	x.options(weir, n)
	weir.put("in", x.remarks(n))
	v := &value{}
	v.put("component", textValue(n.Type))
	v.put("metadata", with(metadata, weir))
	processes.put(id, v)
	for i := range n.In {
		in := &n.In[i]
		if len(in.Values) == 0 {
			continue
		}
		here := under(path, "in", show(in.Port))
		metadata, own := x.metadata(in.Metadata, in.Pos, here, "index")
		tgt := stopValue(x.stop(End{n.Name, in.Port}, "In", own.get("index"), in.Pos, here))
		for _, raw := range in.Values {
			c := &value{}
			c.put("data", x.raw(raw))
			c.put("tgt", tgt)
			c.put("metadata", metadata)
			connections.items = append(connections.items, c)
		}
	}
}

// remarks is what there is to say about the ports of a node besides their values. If
// there is something about one, all are mentioned, so that their order is kept.
func (x *exporter) remarks(n *Node) *value {
	v, any := &value{}, false
	for i := range n.In {
		in := x.in(&n.In[i], false)
		any = any || len(in.members) > 0 || len(n.In[i].Values) == 0
		v.put(n.In[i].Port, in)
	}
	if !any {
		return nil
	}
	return v
}

// with is metadata with Weir's part; nil if both are empty.
func with(metadata, weir *value) *value {
	if len(weir.members) == 0 {
		return metadata
	}
	v := &value{}
	each(metadata, func(m member) { v.put(m.key, m.val) })
	v.put(weirKey, weir)
	return v
}

func stopValue(s stop) *value {
	v := &value{}
	v.put("process", textValue(s.node))
	v.put("port", textValue(s.port))
	if s.index >= 0 {
		v.put("index", intValue(s.index))
	}
	return v
}

func (x *exporter) connection(e Edge) *value {
	path := "edges[" + e.From.String() + " -> " + e.To.String() + "]"
	metadata, own := x.metadata(e.Metadata, e.Pos, path, "src_index", "tgt_index")
	weir := &value{}
	x.edgeOptions(weir, e)
	v := &value{}
	v.put("src", stopValue(x.stop(e.From, "Out", own.get("src_index"), e.Pos, path)))
	v.put("tgt", stopValue(x.stop(e.To, "In", own.get("tgt_index"), e.Pos, path)))
	v.put("metadata", with(metadata, weir))
	return v
}

// inports writes inputs or outputs.
func (x *exporter) inports(exports []Export, what, dir string) *value {
	v := &value{kind: object}
	for _, export := range exports {
		path := under(what, show(export.Name))
		metadata, _ := x.metadata(export.Metadata, export.Pos, path)
		first := stopValue(x.stop(export.Ends[0], dir, nil, export.Pos, path))
		weir := &value{}
		if len(export.Ends) > 1 {
			weir.put("more", endList(export.Ends[1:]))
		}
		first.put("metadata", with(metadata, weir))
		v.put(export.Name, first)
	}
	return v
}
