package graphfile

// fromNoFlo makes a File of the JSON of NoFlo.
func fromNoFlo(p *problems, v *value) *File {
	validate(p, nofloFormat, v)
	m := newImporter(p, !yes(v.get("caseSensitive")))
	m.file.Pos = v.pos
	m.properties(v)
	d := decoder{p}
	each(v.get("processes"), func(mem member) { m.process(d, mem) })
	m.exports(d, v, "inports", "In", &m.file.Inputs)
	m.exports(d, v, "outports", "Out", &m.file.Outputs)
	if connections := v.get("connections"); connections.is(list) {
		for i, c := range connections.items {
			m.connection(c, at("connections", i))
		}
	}
	p.blind = len(p.list) > 0
	return m.finish()
}

func (m *importer) properties(v *value) {
	properties := v.get("properties")
	weir := properties.get(weirKey)
	d := decoder{m.problems}
	m.file.Retain = str(weir.get("retain"))
	m.file.SequentialKey = str(weir.get("sequential_key"))
	m.file.Unique = unique(weir.get("unique"))
	m.file.Priority = wholeOrNil(weir.get("priority"))
	m.file.Params = d.params(weir.get("params"), "properties.weir.params")
	m.file.Graphs = d.graphs(weir.get("graphs"), "graphs")
	own := &value{}
	if groups := v.get("groups"); groups.is(list) && len(groups.items) > 0 {
		own.put("groups", groups)
	}
	m.file.Description = str(properties.get("description"))
	rest := m.name(properties).without("description")
	m.file.Metadata = m.metadata(rest, own, v.pos, "properties")
}

func (m *importer) process(d decoder, mem member) {
	path := under("processes", show(mem.key))
	metadata := mem.val.get("metadata")
	n := m.addNode(mem.key, metadata, mem.pos, path)
	if n == nil {
		return
	}
	if !mem.val.get("component").is(text) {
		m.problems.leave(under("nodes", n.Name, "type")) // reported by the schema
	}
	weir := metadata.get(weirKey)
	kept := d.node(member{mem.key, mem.pos, weir}, under(path, "metadata", weirKey))
	kept.Name, kept.Type, kept.Metadata = n.Name, str(mem.val.get("component")), n.Metadata
	*n = kept
	for i, in := range n.In {
		m.inlet(End{n.Name, in.Port}, i)
	}
}

// stopOf reads an end of a connection.
func stopOf(v *value) stop {
	s := stop{node: str(v.get("process")), port: str(v.get("port")), index: -1, pos: v.pos}
	if n, ok := v.get("index").integer(); ok {
		s.index = n
	}
	return s
}

func (m *importer) connection(c *value, path string) {
	src, data, metadata := c.get("src"), c.get("data"), c.get("metadata")
	weir := metadata.get(weirKey)
	tgt := c.get("tgt")
	switch {
	case !tgt.is(object) || src != nil && !src.is(object): // reported by the schema
	case (src == nil) == (data == nil):
		m.problems.add(c.pos, path, "needs either src or data")
	case data != nil:
		if weir != nil {
			m.problems.add(weir.pos, path, "initial data has no limit and is no feedback: remove %q from its metadata", weirKey)
		}
		m.send(stopOf(tgt), data, metadata, c.pos, path)
	default:
		if e := m.edge(stopOf(src), stopOf(tgt), metadata, c.pos, path); e != nil {
			e.Limit, e.Feedback = whole(weir.get("limit")), yes(weir.get("feedback"))
		}
	}
}

// exports reads the inports or outports.
func (m *importer) exports(d decoder, v *value, key, dir string, list *[]Export) {
	each(v.get(key), func(mem member) {
		to := stopOf(mem.val)
		if to.node == "" {
			return // reported by the schema
		}
		to.pos = mem.pos
		metadata := mem.val.get("metadata")
		path := under(key, show(mem.key))
		x := m.export(list, dir, mem.key, to, metadata, path)
		more := metadata.get(weirKey).get("more")
		if x == nil || more == nil {
			return
		}
		for i, item := range more.items {
			if e, ok := d.end(item, at(under(path, "metadata", weirKey, "more"), i)); ok {
				x.Ends = append(x.Ends, e)
			}
		}
	})
}
