package graphfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/weirworks/weir/port"
)

// maxExpanded bounds the values of a graph after parameters are put in.
const maxExpanded = 16 << 20

// typeOf is the type of parameter that a default gives.
func typeOf(raw json.RawMessage) string {
	for _, typ := range []string{TypeString, TypeInt, TypeNumber, TypeBool} {
		if misfit(typ, raw) == "" {
			return typ
		}
	}
	return TypeJSON
}

// misfit says why JSON is no value of a type of parameter; empty if it is one.
func misfit(typ string, raw json.RawMessage) string {
	v := strings.TrimSpace(string(raw))
	if v == "" {
		return "is not valid JSON"
	}
	digit := strings.ContainsRune("-0123456789", rune(v[0]))
	var ok bool
	var want string
	switch typ {
	case TypeString:
		ok, want = v[0] == '"', "a text"
	case TypeInt:
		ok, want = digit && !strings.ContainsAny(v, ".eE"), "a whole number"
	case TypeNumber:
		ok, want = digit, "a number"
	case TypeBool:
		ok, want = v[0] == 't' || v[0] == 'f', "true or false"
	default:
		ok = true
	}
	if ok {
		return ""
	}
	if r := []rune(v); len(r) > 40 {
		v = string(r[:40]) + "…"
	}
	return "is " + v + ", use " + want
}

// Expand returns the graph with its parameters replaced by values: those of params,
// which are JSON, and defaults for the others. The result has no parameters and is
// Literal: a ${ in its values is text, as it came from the values or from $${. Graphs
// in it are left as they are; their parameters come from the nodes that use them.
//
// The error tells all problems of f and params, as [Problem]: a parameter that is not
// declared, has the wrong type or is missing, and results above 16 MiB.
func (f *File) Expand(params map[string]json.RawMessage) (*File, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	p := newProblems(f.Source)
	values := f.arguments(p, f.Pos, "params", params, nil)
	f.strange(p, f.Pos, "params", params)
	if err := p.err(); err != nil {
		return nil, err
	}
	out := f.filled(p, f.Pos, "params", values)
	if err := p.err(); err != nil {
		return nil, err
	}
	return out, nil
}

// filled is the graph with the values of its parameters in place. References without one, and values that are not valid JSON, are
// left as they are.
func (f *File) filled(p *problems, pos Pos, path string, values map[string]*value) *File {
	out := f.clone()
	out.Params, out.Literal = nil, true
	if f.Literal {
		return out
	}
	if cost := f.expandedSize(values); cost > maxExpanded {
		p.add(pos, path, "the values of the graph would take more than %d bytes", maxExpanded)
		clear(values)
		return out
	}
	out.mapValues(func(v *value) *value {
		return v.mapTexts(func(s string) *value { return fill(s, values) })
	})
	return out
}

// open tells whether the value of something is not known: it has references to parameters without value, or is not valid JSON.
func (f *File) open(raw json.RawMessage, values map[string]*value) bool {
	if raw == nil {
		return false
	}
	v, err := parseRaw(raw)
	if err != nil || f.Literal {
		return err != nil
	}
	found := false
	v.eachText(func(_ Pos, s string) {
		parts, wrong := pieces(s)
		found = found || wrong != "" || slices.ContainsFunc(parts, func(p piece) bool { return p.ref && values[p.text] == nil })
	})
	return found
}

// arguments returns the value of each parameter. open names those that are given,
// but by text that is not known yet.
func (f *File) arguments(p *problems, pos Pos, path string, given map[string]json.RawMessage, open map[string]bool) map[string]*value {
	values := make(map[string]*value)
	for _, param := range f.Params {
		here := under(path, show(param.Name))
		raw, ok := given[param.Name]
		switch {
		case open[param.Name]:
			continue
		case !ok && param.Default == nil:
			p.add(pos, here, "missing: it has no default, give a value of type %s", param.Type)
			continue
		case !ok:
			raw = param.Default
		}
		v, err := parseRaw(raw)
		text := misfit(param.Type, raw)
		switch {
		case err == nil && text == "":
			values[param.Name] = v
		case !ok: // it has been told of the default
		case err != nil:
			p.add(pos, here, "%v", err)
		default:
			p.add(pos, here, "%s", text)
		}
	}
	return values
}

// strange reports those of the given values of which there is no parameter.
func (f *File) strange(p *problems, pos Pos, path string, given map[string]json.RawMessage) {
	declared := make(map[string]bool)
	for _, param := range f.Params {
		declared[param.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !declared[name] {
			p.add(pos, under(path, show(name)), "unknown parameter%s", p.hint(name, maps.Keys(declared)))
		}
	}
}

// expandedSize is about the size of all values with these in place.
func (f *File) expandedSize(values map[string]*value) int {
	total := 0
	if f.Literal {
		return total
	}
	f.eachValue(func(_ Pos, _ string, raw json.RawMessage) {
		total += len(raw)
		for rest := string(raw); ; {
			_, after, found := strings.Cut(rest, "${")
			if !found {
				return
			}
			name, _, _ := strings.Cut(after[:min(len(after), port.MaxName+1)], "}")
			if v := values[name]; v != nil {
				total += 2 * v.size
			}
			rest = after
		}
	})
	return total
}

// eachValue calls do with every value in which references count, and its path.
func (f *File) eachValue(do func(pos Pos, path string, raw json.RawMessage)) {
	for _, n := range f.Nodes {
		path := under("nodes", show(n.Name))
		if n.Args != nil {
			do(n.Pos, under(path, "args"), n.Args)
		}
		for _, in := range n.In {
			here := under(path, "in", show(in.Port))
			for _, raw := range in.Values {
				do(in.Pos, under(here, "value"), raw)
			}
			if in.Default != nil {
				do(in.Pos, under(here, "default"), in.Default)
			}
		}
	}
}

// mapValues replaces every value in which references count. f must be a clone.
func (f *File) mapValues(replace func(*value) *value) {
	do := func(raw *json.RawMessage) {
		if *raw == nil {
			return
		}
		if v, err := parseRaw(*raw); err == nil {
			*raw = replace(v).raw()
		}
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		do(&n.Args)
		for j := range n.In {
			for k := range n.In[j].Values {
				do(&n.In[j].Values[k])
			}
			do(&n.In[j].Default)
		}
	}
}

// clone returns a copy that shares no slices which mapValues changes.
func (f *File) clone() *File {
	c := *f
	c.Nodes = slices.Clone(f.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.In = slices.Clone(n.In)
		for j := range n.In {
			n.In[j].Values = slices.Clone(n.In[j].Values)
		}
	}
	return &c
}
