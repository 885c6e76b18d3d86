package graphfile_test

import (
	"encoding/json"
	"fmt"

	"github.com/weirworks/weir/graphfile"
)

const logs = `
weir: 1
name: logs
params:
  file: {type: string, description: the log}
  top: 10
nodes:
  read: {type: lines_in, args: {path: "${file}"}}
  parse: {type: map, args: {expr: 'split(it, " ")[8]'}, instances: 4}
  count: {type: reduce, args: {top: "${top}"}}
edges:
  - read.out -> parse.in.out -> count.in
outputs:
  result: count.out
`

func ExampleParse() {
	f, err := graphfile.Parse("logs.yaml", []byte(logs))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range f.Nodes {
		fmt.Printf("line %d: %s is a %s\n", n.Pos.Line, n.Name, n.Type)
	}
	for _, e := range f.Edges {
		fmt.Println(e.From, "to", e.To)
	}
	// Output:
	// line 8: read is a lines_in
	// line 9: parse is a map
	// line 10: count is a reduce
	// read.out to parse.in
	// parse.out to count.in
}

func ExampleParse_problems() {
	_, err := graphfile.Parse("logs.yaml", []byte(`
weir: 1
nodes:
  read: {type: lines_in, instanses: 4}
  parse: {type: map, failure: retry}
edges:
  - raed.out -> parse.in
`))
	fmt.Println(err)
	// Output:
	// logs.yaml:4:26: nodes.read: unknown key "instanses"; did you mean "instances"?
	// logs.yaml:5:31: nodes.parse.failure: is "retry", use fail, restart, ignore or dead_letter
	// logs.yaml:7:5: edges[raed.out -> parse.in]: raed.out: there is no node "raed"; did you mean "read"?
}

func ExampleFile_Expand() {
	f, err := graphfile.ParseYAML("logs.yaml", []byte(logs))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := f.Expand(map[string]json.RawMessage{"file": json.RawMessage(`"access.log"`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n%s\n", out.Nodes[0].Args, out.Nodes[2].Args)

	_, err = f.Expand(map[string]json.RawMessage{"flie": json.RawMessage(`"access.log"`)})
	fmt.Println(err)
	// Output:
	// {"path":"access.log"}
	// {"top":10}
	// logs.yaml:2:1: params.file: missing: it has no default, give a value of type string
	// logs.yaml:2:1: params.flie: unknown parameter; did you mean "file"?
}

func ExampleParseFBP() {
	f, err := graphfile.ParseFBP("count.fbp", []byte(`
'go.mod' -> SOURCE Read(ReadFile) OUT -> IN Split(SplitStr)
Split OUT -> IN Count(Counter) COUNT -> IN Display(Output)
Read ERROR -> IN Display
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := f.YAML()
	fmt.Print(text, err)
	// Output:
	// weir: 1
	// nodes:
	//   Read: {type: ReadFile, in: {source: {value: go.mod}}}
	//   Split: {type: SplitStr}
	//   Count: {type: Counter}
	//   Display: {type: Output}
	// edges:
	//   - Read.out -> Split.in
	//   - Split.out -> Count.in
	//   - Count.count -> Display.in
	//   - Read.error -> Display.in
	// <nil>
}

func ExampleFile_FBP() {
	f, err := graphfile.ParseYAML("small.yaml", []byte(`
weir: 1
nodes:
  read: {type: ReadFile, in: {source: {value: go.mod}}}
  show: {type: Output, instances: 2}
edges:
  - {from: read.out, to: show.in, limit: 5}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = f.FBP()
	fmt.Println(err)

	f.Nodes[1].Instances, f.Edges[0].Limit = 0, 0
	text, err := f.FBP()
	fmt.Print(text, err)
	// Output:
	// small.yaml:5:3: nodes.show.instances: cannot be said in .fbp: remove it, or use another format
	// small.yaml:7:5: edges[read.out -> show.in].limit: cannot be said in .fbp: remove it, or use another format
	// read(ReadFile)
	// show(Output)
	// 'go.mod' -> SOURCE read
	// read OUT -> IN show
	// <nil>
}
