package graphfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/internal/golden"
)

// TestProblems compares all that is said about each bad file.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, path := range files(t, "problems/*.yaml", "problems/*.json", "problems/*.fbp", "problems/*.txt") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			name := filepath.Base(path)
			f, err := graphfile.Parse(name, read(t, path))
			if err == nil || f != nil {
				t.Fatalf("got %v, %v", f, err)
			}
			golden.Check(t, path+".golden", err.Error()+"\n")
			problems := graphfile.Problems(err)
			if len(problems) != strings.Count(err.Error(), "\n")+1 {
				t.Errorf("%d problems in\n%v", len(problems), err)
			}
			for i, p := range problems {
				if p.File != name || strings.Contains(p.Error(), "\n") {
					t.Errorf("problem %d is %#v", i, p)
				}
			}
		})
	}
}

func TestProblem(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]graphfile.Problem{
		"a.yaml:1:2: x.y: bad": {File: "a.yaml", Line: 1, Column: 2, Path: "x.y", Text: "bad"},
		"a.yaml: bad":          {File: "a.yaml", Text: "bad"},
		"3:4: bad":             {Line: 3, Column: 4, Text: "bad"},
		"x: bad":               {Path: "x", Text: "bad"},
		"bad":                  {Text: "bad"},
	} {
		if got := p.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		wrapped := fmt.Errorf("reading: %w", &p)
		if got := graphfile.Problems(errors.Join(wrapped, errors.New("other"))); len(got) != 1 || got[0].Text != "bad" {
			t.Errorf("of %v got %v", wrapped, got)
		}
	}
	if got := graphfile.Problems(errors.New("other")); got != nil {
		t.Errorf("got %v", got)
	}
	if got := graphfile.Problems(nil); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestCheck has what only Files made in Go can have.
func TestCheck(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	a := graphfile.Node{Name: "a", Type: "t"}
	cyclic := graphfile.File{Name: "g", Nodes: []graphfile.Node{a}, Graphs: make([]graphfile.File, 1)}
	cyclic.Graphs[0] = graphfile.File{Name: "h", Nodes: cyclic.Nodes, Graphs: cyclic.Graphs}
	tests := map[string]struct {
		file graphfile.File
		want []string
	}{
		"nothing": {graphfile.File{}, []string{"the graph has no nodes"}},
		"twins": {
			graphfile.File{
				Nodes:  []graphfile.Node{a, a, {Name: "b", Type: "t", In: []graphfile.In{{Port: "x"}, {Port: "x"}}}},
				Params: []graphfile.Param{{Name: "p", Type: "int", Default: raw("1")}, {Name: "p", Type: "int"}},
				Inputs: []graphfile.Export{{Name: "i"}, {Name: "i"}},
				Graphs: []graphfile.File{{Name: "g", Nodes: []graphfile.Node{a}}, {Name: "g", Nodes: []graphfile.Node{a}}, {Nodes: []graphfile.Node{a}}},
			},
			[]string{
				"graphs.g: there is another graph of this name",
				"params.p: there is another parameter of this name",
				"nodes.a: there is another node of this name",
				"nodes.b.in.x: the port is there already: put all values into one list",
				"inputs.i: leads to nothing",
				"inputs.i: there is another one of this name",
				"params.p: is not used: write ${p} somewhere, or remove it",
				`graphs."": a name cannot be empty`,
			},
		},
		"no JSON": {
			graphfile.File{
				Nodes: []graphfile.Node{{
					Name: "a", Type: "t", Args: raw("[]"), Metadata: raw("{"), Priority: new(-1), Instances: -2, Failure: "x",
					In: []graphfile.In{{Port: "x", Values: []json.RawMessage{nil, raw("1 2")}, Default: raw(""), Limit: -1, Metadata: raw("1")}},
				}},
				Metadata: raw(`{"a":1,"a":2}`),
				Params:   []graphfile.Param{{Name: "p"}, {Name: "q", Type: "x"}, {Name: "r", Type: "json", Default: raw("x")}},
			},
			[]string{
				`metadata: duplicate key "a": it is on line 1 already; rename or remove one`,
				"params.p: has neither a type nor a default",
				`params.q.type: is "x", use string, int, number, bool or json`,
				"params.r.default: wrong encoding: invalid character 'x' looking for beginning of value at byte 1 of x",
				"nodes.a.instances: is -2, use at least 1",
				`nodes.a.failure: is "x", use fail, restart, ignore or dead_letter`,
				"nodes.a.priority: is -1, use 0 (last) to 1000 (first)",
				"nodes.a.metadata: wrong encoding: unexpected end of JSON input at byte 1 of {",
				"nodes.a.args: is [], use a map",
				"nodes.a.in.x.limit: is -1, use at least 1",
				"nodes.a.in.x.metadata: is 1, use a map",
				"nodes.a.in.x.value: wrong encoding: unexpected end of JSON input at byte 0 of (empty)",
				"nodes.a.in.x.value: wrong encoding: invalid character '2' after top-level value at byte 3 of 1 2",
				"nodes.a.in.x.default: wrong encoding: unexpected end of JSON input at byte 0 of (empty)",
				"params.p: is not used: write ${p} somewhere, or remove it",
				"params.q: is not used: write ${q} somewhere, or remove it",
				"params.r: is not used: write ${r} somewhere, or remove it",
			},
		},
		"literal": {
			graphfile.File{
				Literal: true, Params: []graphfile.Param{{Name: "p", Type: "int"}},
				Nodes: []graphfile.Node{{Name: "a", Type: "t", Args: raw(`{"x":"${y}"}`)}},
			},
			[]string{"params.p: a literal graph has no parameters", "params.p: is not used: write ${p} somewhere, or remove it"},
		},
		"graph in itself": {cyclic, []string{"graphs.h.graphs.h: nested too deep: at most 100 levels are allowed"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.file.Check()
			var got []string
			for _, p := range graphfile.Problems(err) {
				got = append(got, p.Error())
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			for _, format := range []string{"yaml", "json", "noflo", "fbp"} {
				if _, printed, ok := again(t, &test.file, format); ok {
					t.Errorf("%s was written:\n%s", format, printed)
				}
			}
		})
	}
}
