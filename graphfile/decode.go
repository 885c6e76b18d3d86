package graphfile

import (
	"encoding/json"
	"strings"
)

// decoder makes a File of a value. What has the wrong type is skipped: the schema
// has reported it.
type decoder struct {
	problems *problems
}

// str is the text of a value, empty for others.
func str(v *value) string {
	if !v.is(text) {
		return ""
	}
	return v.text
}

// whole is the whole number of a value, 0 for others.
func whole(v *value) int {
	n, _ := v.integer()
	return n
}

// wholeOrNil is the whole number of a value, nil for others.
func wholeOrNil(v *value) *int {
	if n, ok := v.integer(); ok {
		return &n
	}
	return nil
}

func yes(v *value) bool { return v.is(boolean) && v.text == "true" }

// each calls f with each member of an object, and nothing for other values.
func each(v *value, f func(m member)) {
	if !v.is(object) {
		return
	}
	for _, m := range v.members {
		f(m)
	}
}

// texts is an object of texts as a map, nil for none.
func texts(v *value) map[string]string {
	var all map[string]string
	each(v, func(m member) {
		if all == nil {
			all = make(map[string]string)
		}
		all[m.key] = str(m.val)
	})
	return all
}

func unique(v *value) *Unique {
	if !v.is(object) {
		return nil
	}
	return &Unique{Key: str(v.get("key")), For: str(v.get("for")), Pos: v.pos}
}

func (d decoder) file(v *value, name, path string) File {
	f := File{
		Name:          name,
		Description:   str(v.get("description")),
		Retain:        str(v.get("retain")),
		SequentialKey: str(v.get("sequential_key")),
		Unique:        unique(v.get("unique")),
		Priority:      wholeOrNil(v.get("priority")),
		Params:        d.params(v.get("params"), under(path, "params")),
		Edges:         d.edges(v.get("edges"), under(path, "edges")),
		Inputs:        d.exports(v.get("inputs"), under(path, "inputs"), "to"),
		Outputs:       d.exports(v.get("outputs"), under(path, "outputs"), "from"),
		Graphs:        d.graphs(v.get("graphs"), under(path, "graphs")),
		Metadata:      v.get("metadata").rawObject(),
		Pos:           v.pos,
	}
	if v.get("edges") == nil && d.problems.about(path) {
		d.problems.blind = true // a key that is none is perhaps what they are called
	}
	each(v.get("nodes"), func(m member) {
		f.Nodes = append(f.Nodes, d.node(m, under(path, "nodes", show(m.key))))
	})
	return f
}

func (d decoder) graphs(v *value, path string) []File {
	var graphs []File
	each(v, func(m member) {
		g := d.file(m.val, m.key, under(path, show(m.key)))
		g.Pos = m.pos
		graphs = append(graphs, g)
	})
	return graphs
}

func (d decoder) params(v *value, path string) []Param {
	var params []Param
	each(v, func(m member) {
		p := Param{Name: m.key, Pos: m.pos}
		if m.val.kind == object {
			p.Type = str(m.val.get("type"))
			p.Description = str(m.val.get("description"))
			p.Default = m.val.get("default").raw()
		} else {
			p.Default = m.val.raw()
		}
		if m.val.get("type") == nil {
			if p.Default != nil {
				p.Type = typeOf(p.Default)
			} else if m.val.kind == object {
				d.problems.add(m.pos, under(path, show(m.key)), "%s", typeless)
			}
		}
		params = append(params, p)
	})
	return params
}

func (d decoder) node(m member, path string) Node {
	v := m.val
	if queue := v.get("queue"); queue.is(text) && queue.text == "" {
		d.problems.add(queue.pos, under(path, "queue"), "is empty: name a queue, or remove it")
	}
	return Node{
		Name:        m.key,
		Type:        str(v.get("type")),
		Description: str(v.get("description")),
		Args:        v.get("args").rawObject(),
		Queue:       str(v.get("queue")),
		Instances:   whole(v.get("instances")),
		Failure:     str(v.get("failure")),
		Priority:    wholeOrNil(v.get("priority")),
		Labels:      texts(v.get("labels")),
		Tries:       whole(v.get("tries")),
		Backoff:     str(v.get("backoff")),
		MaxBackoff:  str(v.get("max_backoff")),
		Timeout:     str(v.get("timeout")),
		In:          d.ins(v.get("in"), under(path, "in")),
		Metadata:    v.get("metadata").rawObject(),
		Pos:         m.pos,
	}
}

func (d decoder) ins(v *value, path string) []In {
	var ins []In
	each(v, func(m member) {
		in := In{
			Port:     m.key,
			Default:  m.val.get("default").raw(),
			Limit:    whole(m.val.get("limit")),
			Metadata: m.val.get("metadata").rawObject(),
			Pos:      m.pos,
		}
		one, several := m.val.get("value"), m.val.get("values")
		if one != nil && several != nil {
			d.problems.add(m.pos, under(path, show(m.key)), "has both value and values: put all of them into values")
		}
		if one != nil {
			in.Values = []json.RawMessage{one.raw()}
		} else if several.is(list) {
			for _, item := range several.items {
				in.Values = append(in.Values, item.raw())
			}
			if len(several.items) == 0 {
				d.problems.add(m.pos, under(path, show(m.key)), "values is empty: put a value in, or remove it")
			}
		}
		ins = append(ins, in)
	})
	return ins
}

func (d decoder) edges(v *value, path string) []Edge {
	if !v.is(list) {
		return nil
	}
	var edges []Edge
	for i, item := range v.items {
		switch item.kind {
		case text:
			some := d.chain(item, at(path, i))
			d.problems.blind = d.problems.blind || some == nil
			edges = append(edges, some...)
		case object:
			from, fromOK := d.end(item.get("from"), at(path, i)+".from")
			to, toOK := d.end(item.get("to"), at(path, i)+".to")
			if !fromOK || !toOK {
				d.problems.blind = true
				continue
			}
			edges = append(edges, Edge{
				From:     from,
				To:       to,
				Limit:    whole(item.get("limit")),
				Feedback: yes(item.get("feedback")),
				Metadata: item.get("metadata").rawObject(),
				Pos:      item.pos,
			})
		default:
			d.problems.blind = true
		}
	}
	return edges
}

// end reads "node.port"; what is no text has been reported by the schema.
func (d decoder) end(v *value, path string) (End, bool) {
	if !v.is(text) {
		return End{}, false
	}
	node, port, ok := strings.Cut(v.text, ".")
	if !ok || strings.Contains(port, ".") {
		d.problems.add(v.pos, path, "is %.60q, write \"node.port\"", v.text)
		return End{}, false
	}
	return End{node, port}, true
}

// chain reads "node.port -> node.in.out -> node.port".
func (d decoder) chain(v *value, path string) []Edge {
	var edges []Edge
	var from End
	stops := strings.Split(v.text, "->")
	for i, stop := range stops {
		stop = strings.TrimSpace(stop)
		words := strings.Split(stop, ".")
		switch last := i == len(stops)-1; {
		case len(stops) == 1:
			d.problems.add(v.pos, path, "is %.60q, write \"node.port -> node.port\"", v.text)
			return nil
		case len(words) != 2 && (i == 0 || last):
			d.problems.add(v.pos, path, "%.60q is at an end of the chain, write \"node.port\"", stop)
			return nil
		case len(words) != 3 && i > 0 && !last:
			d.problems.add(v.pos, path, "%.60q is in the middle of the chain, write \"node.in.out\" with the ports it enters and leaves by", stop)
			return nil
		}
		if i > 0 {
			edges = append(edges, Edge{From: from, To: End{words[0], words[1]}, Pos: v.pos})
		}
		from = End{words[0], words[len(words)-1]}
	}
	return edges
}

// exports reads inputs or outputs; key is what their ends are called in a map.
func (d decoder) exports(v *value, path, key string) []Export {
	var exports []Export
	each(v, func(m member) {
		x := Export{Name: m.key, Pos: m.pos}
		here, ends := under(path, show(m.key)), m.val
		if ends.kind == object {
			x.Metadata = ends.get("metadata").rawObject()
			ends, here = ends.get(key), under(here, key)
			if ends == nil {
				return // reported by the schema
			}
		}
		items, complete := []*value{ends}, true
		if ends.kind == list {
			items = ends.items
		}
		for i, item := range items {
			where := here
			if ends.kind == list {
				where = at(here, i)
			}
			end, ok := d.end(item, where)
			if ok {
				x.Ends = append(x.Ends, end)
			}
			complete = complete && ok
			d.problems.blind = d.problems.blind || !ok
		}
		if complete || len(x.Ends) > 0 {
			exports = append(exports, x)
		}
	})
	return exports
}
