package graphfile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weirworks/weir/component"
	"github.com/weirworks/weir/graphfile"
)

// numbered joins n texts in which # is the number.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return b.String()
}

// bomb is YAML whose aliases stand for 10^n values.
func bomb(n int) string {
	b := "weir: 1\nnodes:\n  a:\n    type: b\n    args:\n      l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range n {
		b += fmt.Sprintf("      l%d: &l%d [%s*l%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*l%d, ", i), 9), i)
	}
	return b
}

// TestLimits has files that are too large, too deep or made to take long. It would
// take minutes and gigabytes if one of them got through.
func TestLimits(t *testing.T) {
	t.Parallel()
	const n = 1 << 17
	tests := map[string]struct{ name, data, want string }{
		"size":             {"a.yaml", strings.Repeat("#", graphfile.MaxSize+1), "the file has 4194305 bytes, at most 4194304 are allowed"},
		"yaml brackets":    {"a.yaml", strings.Repeat("[", 16*n), "nested too deep"},
		"yaml maps":        {"a.yaml", strings.Repeat("{a: ", n), "nested too deep"},
		"yaml dashes":      {"a.yaml", strings.Repeat("- ", n), "nested too deep"},
		"yaml indents":     {"a.yaml", deepBlock(200), "nested too deep"},
		"yaml aliases":     {"a.yaml", bomb(8), "aliases repeat more than"},
		"yaml deep alias":  {"a.yaml", deepAlias(200), "nested too deep"},
		"yaml empty keys":  {"a.yaml", strings.Repeat("a:\n", n), "more than 20000 entries"},
		"yaml keys":        {"a.yaml", numbered(n/5, "a#: b\n"), "more than 20000 entries"},
		"yaml questions":   {"a.yaml", strings.Repeat("? a\n", n/4), "more problems are not shown"},
		"yaml colons":      {"a.yaml", strings.Repeat("a: ", n), "nested too deep"},
		"yaml flow":        {"a.yaml", "{" + numbered(n/10, "a#: b, ") + "}", "unknown key"},
		"yaml bang":        {"a.yaml", "!!!", "tags are not read here"},
		"json brackets":    {"a.json", strings.Repeat("[", 16*n), "no JSON"},
		"json depth":       {"a.json", strings.Repeat("[", 101) + strings.Repeat("]", 101), "nested too deep"},
		"json deep":        {"a.json", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "nested too deep"},
		"json keys":        {"a.json", "{" + numbered(n/20, `"k#":1,`) + `"weir":1}`, "more problems are not shown"},
		"json exponent":    {"a.json", `{"weir":1e999999999,"nodes":{"a":{"type":"b","instances":1e999999999}}}`, "is 1e999999999, use at most 2147483647"},
		"json bad edges":   {"a.json", `{"weir":1,"nodes":{` + numbered(n/40, `"n#":{"type":"t"},`) + `"a":{"type":"t"}},"edges":[` + numbered(n/40, `"x#.out->y#.in",`) + `"x.y->z.z"]}`, "there is no node"},
		"json bad refs":    {"a.json", `{"weir":1,"params":{` + numbered(n/40, `"p#":1,`) + `"p":1},"nodes":{"a":{"type":"t","args":{` + numbered(n/40, `"a#":"${q#}",`) + `"a":"${q}"}}}}`, "there is no such parameter"},
		"noflo depth":      {"a.json", `{"processes":{"a":{"component":"b","metadata":` + strings.Repeat(`{"a":`, 98) + "1" + strings.Repeat("}", 98) + `}}}`, "nested too deep"},
		"fbp commas":       {"a.fbp", strings.Repeat("INPORT=a.B:C,", n/13), "there is no node"},
		"fbp quotes":       {"a.fbp", strings.Repeat("'\n", n/2), "more problems are not shown"},
		"fbp brackets":     {"a.fbp", strings.Repeat("[\n", n/2), "the data is not valid JSON"},
		"fbp arrows":       {"a.fbp", strings.Repeat("a->", n/3), "is neither a node"},
		"fbp chain":        {"a.fbp", "a(A)" + strings.Repeat("->a", n/3), "the edge is there already"},
		"fbp parentheses":  {"a.fbp", strings.Repeat("INPORT=a((", n/10), "write INPORT="},
		"fbp metadata":     {"a.fbp", "a(A:" + numbered(n/20, "k#=#,") + "x=y)\n", "x must be a number"},
		"fbp data":         {"a.fbp", numbered(n/20, "# -> IN# a\n") + "a()", "is missing: write a(Component) once"},
		"fbp words":        {"a.fbp", strings.Repeat("a ", n/2), "this leads nowhere"},
		"fbp long numbers": {"a.fbp", strings.Repeat("a[99999999999999999999999] ", n/32), "the index of a is too great"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := graphfile.Parse(test.name, []byte(test.data))
			if err == nil {
				t.Fatalf("got %d nodes", len(f.Nodes))
			}
			if text := err.Error(); !strings.Contains(text, test.want) {
				t.Errorf("got %.2000s\nwant %s", text, test.want)
			}
		})
	}
}

func deepBlock(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func deepAlias(n int) string {
	b := "weir: 1\nnodes:\n  a:\n    type: b\n    args:\n      l0: &l0 [x]\n"
	for i := range n {
		b += fmt.Sprintf("      l%d: &l%d [*l%d]\n", i+1, i+1, i)
	}
	return b
}

// TestAsLargeAsAllowed has what lies just inside of the limits.
func TestAsLargeAsAllowed(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"a.yaml": "weir: 1\nnodes:\n" + numbered(1_500, "  n#: {type: t, args: {a: 1, b: [x, 'y', \"z\"]}}\n") +
			"edges:\n" + numbered(1_500, "  - n#.out -> n#.in\n"),
		"b.json": `{"weir":1,"nodes":{` + numbered(2_000, `"n#":{"type":"t"},`) + `"a":{"type":"t"}},"edges":[` +
			numbered(2_000, `"n#.out->a.in",`) + `"a.out->n1.in"]}`,
		"c.json": `{"weir":1,"nodes":{"a":{"type":"t","args":{"a":` + strings.Repeat("[", 96) + strings.Repeat("]", 96) + `}}}}`,
		"d.yaml": bomb(3),
		"e.fbp":  numbered(2_000, "n#(T) OUT -> IN m(T)\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := mustParse(t, name, []byte(data))
			stable(t, f, "json")
		})
	}
}

// TestNotWritten has Files that could not be read again.
func TestNotWritten(t *testing.T) {
	t.Parallel()
	node := func(args string) *graphfile.File {
		return &graphfile.File{Nodes: []graphfile.Node{{Name: "a", Type: "t", Args: json.RawMessage(args)}}}
	}
	large := node(`{"a":"` + strings.Repeat("x", graphfile.MaxSize) + `"}`)
	deep := node(`{"a":` + strings.Repeat("[", 98) + strings.Repeat("]", 98) + `}`)
	many := &graphfile.File{}
	for i := range 20_001 {
		many.Nodes = append(many.Nodes, graphfile.Node{Name: fmt.Sprint("n", i), Type: "t"})
	}
	for want, write := range map[string]func() ([]byte, error){
		"would have 41944":    large.JSON,
		"nested too deep":     deep.JSON,
		"nested too deep ":    deep.NoFlo,
		"more than 20000":     func() ([]byte, error) { s, err := many.YAML(); return []byte(s), err },
		"at most 4194304 are": func() ([]byte, error) { s, err := large.YAML(); return []byte(s), err },
	} {
		if out, err := write(); err == nil || !strings.Contains(err.Error()+" ", strings.TrimSpace(want)) || len(graphfile.Problems(err)) != 1 {
			t.Errorf("got %d bytes, %v; want %s", len(out), err, want)
		}
	}
}

// Graphs that double with each level are refused before they are built: thirty levels would be 2³⁰ jobs, and twelve with a large
// text in each 1.6 GB.
func TestDoublingGraphs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		levels, text int
		want         string
	}{
		"jobs":   {30, 1, "more than 20000 jobs"},
		"values": {12, 400_000, "more than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			b.WriteString("weir: 1\nname: top\nnodes:\n  a: {type: g0}\ngraphs:\n")
			for i := range test.levels {
				fmt.Fprintf(&b, "  g%d: {nodes: {x: {type: g%d}, y: {type: g%d}}}\n", i, i+1, i+1)
			}
			fmt.Fprintf(&b, "  g%d: {params: {t: {default: %s}}, nodes: {x: {type: emit, args: {items: [\"${t}\"]}}}}\n",
				test.levels, strings.Repeat("x", test.text))
			f, err := graphfile.Parse("doubling.yaml", []byte(b.String()))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = f.Build([]any{&component.Emit{}}, nil); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%.300v", err)
			}
		})
	}
}
