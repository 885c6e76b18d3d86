package graphfile_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/graphfile"
)

func schema(t *testing.T) (doc map[string]any, compiled *jsonschema.Schema) {
	t.Helper()
	if err := json.Unmarshal(graphfile.Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weir.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("weir.json") // checks the schema against draft 2020-12
	if err != nil {
		t.Fatal(err)
	}
	return doc, compiled
}

// TestSchemaDescribes makes sure that editors have something to show for every key.
func TestSchemaDescribes(t *testing.T) {
	t.Parallel()
	doc, _ := schema(t)
	defs, _ := doc["$defs"].(map[string]any)
	var walk func(path string, at any)
	walk = func(path string, at any) {
		node, _ := at.(map[string]any)
		properties, _ := node["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			property, _ := properties[key].(map[string]any)
			ref, _ := property["$ref"].(string)
			def, _ := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
			if property["description"] == nil && def["description"] == nil {
				t.Errorf("%s.%s has no description", path, key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if key != "properties" {
				walk(path+"."+key, node[key])
			}
		}
		for key, property := range properties {
			walk(path+"."+key, property)
		}
	}
	walk("", doc)
	for name, def := range defs {
		if def.(map[string]any)["description"] == nil {
			t.Errorf("$defs.%s has no description", name)
		}
	}
}

// TestSchemaFits checks that the schema accepts what is parsed, and what is written.
func TestSchemaFits(t *testing.T) {
	t.Parallel()
	_, compiled := schema(t)
	for _, path := range files(t, "good/*.yaml", "good/*.json", "good/*.fbp") {
		f := mustParse(t, path, read(t, path))
		data, err := f.JSON()
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err == nil {
			err = compiled.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSchemaRefuses checks that what the schema refuses by a rule that parsing leaves
// to File.Check is refused there: a bad name, a bad end, nothing where something must be.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	_, compiled := schema(t)
	graph := `{"weir":1,"nodes":{"a":{"type":"t"}},%s}`
	for _, bad := range []string{
		`{"weir":1,"nodes":{}}`, `{"weir":1,"name":"a b","nodes":{"a":{"type":"t"}}}`, `{"weir":1,"nodes":{"a b":{"type":"t"}}}`,
		`{"weir":1,"nodes":{"a":{"type":"-"}}}`, `{"weir":1,"nodes":{"a":{"type":"t","queue":""}}}`,
		`{"weir":1,"nodes":{"a":{"type":"t","in":{"":{}}}}}`, `{"weir":1,"nodes":{"a":{"type":"t","in":{"a":{"values":[]}}}}}`,
		fmt.Sprintf(graph, `"edges":["a"]`), fmt.Sprintf(graph, `"edges":["a.b->c"]`), fmt.Sprintf(graph, `"edges":["a.b.c->a.d"]`),
		fmt.Sprintf(graph, `"edges":[{"from":"a","to":"a.b"}]`), fmt.Sprintf(graph, `"inputs":{"a":[]}`), fmt.Sprintf(graph, `"inputs":{"a":"a"}`),
		fmt.Sprintf(graph, `"outputs":{"a":{"from":[]}}`), fmt.Sprintf(graph, `"outputs":{"a b":"a.b"}`), fmt.Sprintf(graph, `"outputs":{"a":["a.b.c"]}`),
		fmt.Sprintf(graph, `"params":{"a-b":1}`), fmt.Sprintf(graph, `"graphs":{"a b":{"nodes":{"a":{"type":"t"}}}}`),
		fmt.Sprintf(graph, `"graphs":{"b":{}}`),
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		if compiled.Validate(v) == nil {
			t.Errorf("the schema accepts %s", bad)
		}
		if f, err := graphfile.ParseJSON("", []byte(bad)); err == nil {
			t.Errorf("%s was accepted:\n%s", bad, dump(f))
		}
	}
}
