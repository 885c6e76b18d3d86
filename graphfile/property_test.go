package graphfile_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/graphfile"
)

// maker draws Files that Check accepts.
type maker struct {
	*rapid.T
	foreign bool // what NoFlo leaves behind, and nothing that .fbp lacks
}

func (m maker) chance(label string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(m.T, label) < percent
}

func (m maker) oneOf(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(m.T, label)
}

var reference = regexp.MustCompile(`(\$+)\{`)

var odd = []string{
	"", "a", "no", "true", "null", "~", "1", "1e3", "0644", "-", "- a", "a: b", "a #b", "#", "${", "$${", "$", "${x", "a\nb", "a\nb\n", "\n", "a\n\nb\n\n",
	" a", "a ", "'", `"`, `\`, "{", "[", "&a", "*a", "!a", "%a", "@a", "`", "|", ">", "?", "? a", ":", "::", ",", "a,b", "ä", "😀", "\x00", "\x07", "\x7f", "\u0085",
	"\u2028", "\ufeff", "\ufffd", "\t", "a\tb", "a\rb", "\r\n", "<<", "=", "---", "...", "2020-01-01", "12:30:45", "0x1f", ".inf", "<b>&", "a -> b", "'a' b", "  a\n b", "x\n  y\nz", "a\n b ",
}

func (m maker) text(label string) string {
	if m.chance("odd "+label, 50) {
		return m.oneOf(label, odd...) + m.oneOf(label, odd...)
	}
	return strings.ToValidUTF8(rapid.String().Draw(m.T, label), "?")
}

// value draws JSON. A text with ${ in it is escaped, or has a reference.
func (m maker) value(label string, depth int, params []string) string {
	switch k := rapid.IntRange(0, 9).Draw(m.T, label); {
	case k == 0 && depth < 4:
		return "[" + m.values(label, depth, params) + "]"
	case k <= 2 && depth < 4:
		return m.object(label, depth, params)
	case k == 3:
		return m.oneOf(label, "null", "true", "false")
	case k <= 5:
		return m.oneOf(label, "0", "-0", "12345678901234567890123", "1.50", "1E+3", "-7", "0.1e-9", "1e400")
	case k == 6 && len(params) > 0:
		return quote(m.oneOf(label, "", "a ", "$$") + "${" + m.oneOf(label, params...) + "}" + m.oneOf(label, "", " b"))
	default:
		return quote(reference.ReplaceAllString(m.text(label), "$1$1{"))
	}
}

func (m maker) values(label string, depth int, params []string) string {
	items := make([]string, rapid.IntRange(0, 3).Draw(m.T, label))
	for i := range items {
		items[i] = m.value(label, depth+1, params)
	}
	return strings.Join(items, ",")
}

func (m maker) object(label string, depth int, params []string) string {
	var members []string
	known := make(map[string]bool)
	for range rapid.IntRange(0, 3).Draw(m.T, label) {
		if key := m.text(label); !known[key] && key != "weir" && key != "noflo" {
			known[key] = true
			members = append(members, quote(key)+":"+m.value(label, depth+1, params))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

func quote(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(out)
}

// raw is JSON as this package writes it, nil for an empty object.
func raw(s string) json.RawMessage {
	if s == "{}" {
		return nil
	}
	f, err := graphfile.ParseJSON("", []byte(`{"weir":1,"nodes":{"a":{"type":"a"}},"metadata":{"v":`+s+`}}`))
	if err != nil {
		return json.RawMessage(err.Error())
	}
	return json.RawMessage(strings.TrimSuffix(strings.TrimPrefix(string(f.Metadata), `{"v":`), "}"))
}

func (m maker) metadata(label string) json.RawMessage {
	if m.foreign || m.chance("has "+label, 70) {
		return nil
	}
	return raw(m.object(label, 2, nil))
}

func (m maker) name(label string, i int) string {
	begin := "n"
	if !m.foreign {
		begin = m.oneOf(label, "n", "_", "9", "N", "true")
	}
	return fmt.Sprintf("%s%d%s", begin, i, m.oneOf(label, "", "_x", "Ab"))
}

func (m maker) port(label string) string {
	if m.foreign {
		return m.oneOf(label, "in", "out", "err", "a_1", "x2")
	}
	return m.oneOf(label, "in", "out", "Err", "1", "null", "a_0")
}

func (m maker) file(depth int) graphfile.File {
	f := graphfile.File{Metadata: m.metadata("metadata")}
	if m.foreign {
		f.Name = m.oneOf("name", "", "Graph_1")
		f.Description = m.oneOf("description", "", "a b-c.d_e")
	} else {
		f.Description = m.text("description")
		f.Priority = rapid.SampledFrom([]*int{nil, new(0), new(1000)}).Draw(m.T, "priority")
		if depth == 0 {
			f.Name = m.oneOf("name", "", "g", "9", "null")
			f.Unique = rapid.SampledFrom([]*graphfile.Unique{nil, {}, {Key: "k", For: "1h"}}).Draw(m.T, "unique")
		}
	}
	var params []string
	if !m.foreign {
		for i := range rapid.IntRange(0, 3).Draw(m.T, "params") {
			f.Params = append(f.Params, m.param(m.name("param", i)))
			params = append(params, f.Params[i].Name)
		}
	}
	for i := range rapid.IntRange(1, 5).Draw(m.T, "nodes") {
		f.Nodes = append(f.Nodes, m.node(m.name("node", i), params))
	}
	if len(params) > 0 { // all must be used
		f.Nodes[0].Args = json.RawMessage(`{"all":` + quote("${"+strings.Join(params, "} ${")+"}") + `}`)
	}
	m.edges(&f)
	f.Inputs, f.Outputs = m.exports("input", &f), m.exports("output", &f)
	for i := range rapid.IntRange(0, 2-depth).Draw(m.T, "graphs") {
		if !m.foreign {
			g := m.file(depth + 1)
			g.Name = fmt.Sprintf("graph%d", i)
			f.Graphs = append(f.Graphs, g)
		}
	}
	return f
}

func (m maker) param(name string) graphfile.Param {
	p := graphfile.Param{Name: name, Type: m.oneOf("type", "string", "int", "number", "bool", "json")}
	if m.chance("required", 70) {
		p.Default = map[string]json.RawMessage{
			"string": raw(quote(m.text("default"))), "int": json.RawMessage("-12345678901234567890"), "number": json.RawMessage("0.5"),
			"bool": json.RawMessage("true"), "json": json.RawMessage(m.oneOf("default", "null", "{}", `{"a":[1]}`, "[2]", "7", `"x"`)),
		}[p.Type]
	}
	if m.chance("described", 30) {
		p.Description = m.text("description")
	}
	return p
}

func (m maker) node(name string, params []string) graphfile.Node {
	n := graphfile.Node{Name: name, Type: m.oneOf("type", "a", "core/B-2", "9", "null"), Metadata: m.metadata("metadata")}
	if m.foreign {
		if m.chance("id", 30) {
			n.Name += "_y"
			n.Metadata = json.RawMessage(m.oneOf("metadata", `{"noflo":{"id":"`+name+`-y"}}`, `{"x":12,"route":"a/b","noflo":{"id":"`+name+`-y"}}`))
		}
	} else {
		n.Description = m.oneOf("description", "", "x: y\nz")
		n.Args = raw(m.object("args", 0, params))
		n.Queue = m.oneOf("queue", "", "q-1:x")
		n.Instances = rapid.IntRange(0, 2).Draw(m.T, "instances")
		n.Failure = m.oneOf("failure", "", "fail", "restart", "ignore", "dead_letter")
		if m.chance("priority", 30) {
			n.Priority = new(rapid.SampledFrom([]int{0, 1000}).Draw(m.T, "priority"))
		}
		if m.chance("labels", 30) {
			n.Labels = map[string]string{"team": m.oneOf("label", "", "x: y")}
		}
		n.Tries = rapid.IntRange(0, 2).Draw(m.T, "tries")
		n.Timeout = m.oneOf("timeout", "", "30s")
		if n.Backoff = m.oneOf("backoff", "", "1s", "1m30s"); n.Backoff != "" {
			n.MaxBackoff = m.oneOf("max_backoff", "", "1h")
		}
	}
	known := make(map[string]bool)
	for range rapid.IntRange(0, 3).Draw(m.T, "in") {
		in := graphfile.In{Port: m.port("port"), Metadata: m.metadata("metadata")}
		if known[in.Port] {
			continue
		}
		known[in.Port] = true
		for range rapid.IntRange(0, 3).Draw(m.T, "values") {
			in.Values = append(in.Values, m.message("value", params))
		}
		if !m.foreign && m.chance("default", 30) {
			in.Default = m.message("default", params)
		}
		if !m.foreign && m.chance("limit", 30) {
			in.Limit = 1<<31 - 1
		}
		if m.foreign && in.Values == nil {
			continue
		}
		if m.foreign && in.Port == "a_1" {
			in.Metadata = json.RawMessage(`{"noflo":{"index":1}}`)
		}
		n.In = append(n.In, in)
	}
	return n
}

func (m maker) message(label string, params []string) json.RawMessage {
	v := m.value(label, 1, params)
	if v == "{}" || m.foreign && (v == "null" || v == "true" || v == "false") {
		v = "[{}]"
	}
	return raw(v)
}

func (m maker) end(label string, f *graphfile.File) graphfile.End {
	return graphfile.End{Node: f.Nodes[rapid.IntRange(0, len(f.Nodes)-1).Draw(m.T, label)].Name, Port: m.port(label)}
}

func (m maker) edges(f *graphfile.File) {
	known := make(map[[2]graphfile.End]bool)
	for range rapid.IntRange(0, 5).Draw(m.T, "edges") {
		e := graphfile.Edge{From: m.end("from", f), To: m.end("to", f), Metadata: m.metadata("metadata")}
		if known[[2]graphfile.End{e.From, e.To}] {
			continue
		}
		known[[2]graphfile.End{e.From, e.To}] = true
		if !m.foreign {
			e.Limit = rapid.IntRange(0, 2).Draw(m.T, "limit")
			e.Feedback = m.chance("feedback", 20)
		} else if e.To.Port == "a_1" {
			e.Metadata = json.RawMessage(`{"noflo":{"tgt_index":1}}`)
		}
		f.Edges = append(f.Edges, e)
	}
}

func (m maker) exports(label string, f *graphfile.File) []graphfile.Export {
	var exports []graphfile.Export
	for i := range rapid.IntRange(0, 2).Draw(m.T, label) {
		x := graphfile.Export{Name: m.name(label, i), Metadata: m.metadata("metadata")}
		if m.foreign {
			x.Name = strings.ToLower(x.Name)
		}
		known := make(map[graphfile.End]bool)
		for range rapid.IntRange(1, 3).Draw(m.T, "ends") {
			e := m.end("end", f)
			tooMuch := m.foreign && (len(x.Ends) > 0 || e.Port == "a_1")
			if !known[e] && !tooMuch {
				known[e] = true
				x.Ends = append(x.Ends, e)
			}
		}
		if x.Ends != nil {
			exports = append(exports, x)
		}
	}
	return exports
}

// TestRoundTrip writes random Files in every format that can carry them.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := maker{T: t}.file(0)
		if err := f.Check(); err != nil {
			t.Fatalf("%v in\n%s", err, dump(&f))
		}
		stable(t, &f, "yaml", "json", "noflo")
	})
}

// TestForeignRoundTrip does so with those that NoFlo and .fbp can carry.
func TestForeignRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := maker{T: t, foreign: true}.file(0)
		stable(t, &f, "yaml", "json", "noflo", "fbp")
	})
}
