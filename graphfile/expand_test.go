package graphfile_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weirworks/weir/graphfile"
)

const expandable = `
weir: 1
params:
  s: text
  i: 12345678901234567890123
  n: {type: number}
  b: true
  j: {type: json, default: null}
nodes:
  a:
    type: t
    args:
      whole: ["${s}", "${i}", "${n}", "${b}", "${j}"]
      parts: "<${s}|${i}|${n}|${b}|${j}>"
      joined: "${s}${s}"
      escaped: ["$${s}", "$$${s}", "$$$${s}", "$", "$s", "{s}", "$$"]
      "${s}": key
    in:
      p: {value: "${j}", default: "${n}"}
      q: {values: ["${b}", 1]}
    description: ${s}
    metadata: {x: "${s}"}
`

func TestExpand(t *testing.T) {
	t.Parallel()
	f := mustParse(t, "a.yaml", []byte(expandable))
	before := dump(f)
	out, err := f.Expand(map[string]json.RawMessage{"n": json.RawMessage("1.50"), "j": json.RawMessage(` {"a": "${s}", "b": [1 ]} `)})
	if err != nil {
		t.Fatal(err)
	}
	if dump(f) != before {
		t.Errorf("the graph changed into\n%s", dump(f))
	}
	want := `{"whole":["text",12345678901234567890123,1.50,true,{"a":"${s}","b":[1]}],` +
		`"parts":"<text|12345678901234567890123|1.50|true|{\"a\":\"${s}\",\"b\":[1]}>","joined":"texttext",` +
		`"escaped":["${s}","$text","$${s}","$","$s","{s}","$$"],"${s}":"key"}`
	n := out.Nodes[0]
	if string(n.Args) != want {
		t.Errorf("got\n%s\nwant\n%s", n.Args, want)
	}
	if p, q := n.In[0], n.In[1]; string(p.Values[0]) != `{"a":"${s}","b":[1]}` || string(p.Default) != "1.50" || string(q.Values[0]) != "true" {
		t.Errorf("got %s, %s and %s", p.Values, p.Default, q.Values)
	}
	if n.Description != "${s}" || string(n.Metadata) != `{"x":"${s}"}` || out.Params != nil || !out.Literal {
		t.Errorf("got\n%s", dump(out))
	}
	stable(t, out, "yaml", "json", "noflo")
	again, err := out.Expand(nil)
	if err != nil || !reflect.DeepEqual(again, out) {
		t.Errorf("%v: a second time changed\n%s\ninto\n%s", err, dump(out), dump(again))
	}
}

func TestExpandProblems(t *testing.T) {
	t.Parallel()
	f := mustParse(t, "dir/a.yaml", []byte(expandable))
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	_, err := f.Expand(map[string]json.RawMessage{
		"s": raw("1"), "i": raw("1.0"), "b": raw(`"true"`), "j": raw("{"), "nn": raw("1"), "other": nil,
	})
	want := []string{
		`dir/a.yaml:2:1: params.s: is 1, use a text`,
		`dir/a.yaml:2:1: params.i: is 1.0, use a whole number`,
		`dir/a.yaml:2:1: params.n: missing: it has no default, give a value of type number`,
		`dir/a.yaml:2:1: params.b: is "true", use true or false`,
		`dir/a.yaml:2:1: params.j: wrong encoding: unexpected end of JSON input at byte 1 of {`,
		`dir/a.yaml:2:1: params.nn: unknown parameter; did you mean "n"?`,
		`dir/a.yaml:2:1: params.other: unknown parameter`,
	}
	if err == nil || err.Error() != strings.Join(want, "\n") {
		t.Errorf("got\n%v\nwant\n%s", err, strings.Join(want, "\n"))
	}
	if _, err := (&graphfile.File{}).Expand(nil); err == nil {
		t.Error("a graph without nodes was expanded")
	}
	literal := &graphfile.File{Literal: true, Nodes: []graphfile.Node{{Name: "a", Type: "t"}}}
	if _, err := literal.Expand(map[string]json.RawMessage{"x": raw("1")}); err == nil {
		t.Error("a parameter of a literal graph was accepted")
	}
}

// TestExpandBomb has values that would take a terabyte.
func TestExpandBomb(t *testing.T) {
	t.Parallel()
	args, err := json.Marshal(map[string]string{"x": strings.Repeat("${p}", 1<<18)})
	if err != nil {
		t.Fatal(err)
	}
	f := &graphfile.File{
		Params: []graphfile.Param{{Name: "p", Type: "string"}},
		Nodes:  []graphfile.Node{{Name: "a", Type: "t", Args: args}},
	}
	value, err := json.Marshal(strings.Repeat("x", 1<<22))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Expand(map[string]json.RawMessage{"p": value}); err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") {
		t.Errorf("got %v", err)
	}
}
