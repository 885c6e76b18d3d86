package graphfile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/weirworks/weir/graphfile"
)

// bare is f without what only says where things are, and with nil for empty slices.
func bare(f *graphfile.File) *graphfile.File {
	c := *f
	c.Source, c.Pos = "", graphfile.Pos{}
	if c.Unique != nil {
		by := *c.Unique
		by.Pos = graphfile.Pos{}
		c.Unique = &by
	}
	c.Params = slices.Clone(c.Params)
	for i := range c.Params {
		c.Params[i].Pos = graphfile.Pos{}
	}
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Pos = graphfile.Pos{}
		n.In = slices.Clone(n.In)
		for j := range n.In {
			n.In[j].Pos = graphfile.Pos{}
		}
	}
	c.Edges = slices.Clone(c.Edges)
	for i := range c.Edges {
		c.Edges[i].Pos = graphfile.Pos{}
	}
	for _, list := range []*[]graphfile.Export{&c.Inputs, &c.Outputs} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Pos = graphfile.Pos{}
		}
	}
	c.Graphs = slices.Clone(c.Graphs)
	for i := range c.Graphs {
		c.Graphs[i] = *bare(&c.Graphs[i])
	}
	return &c
}

func same(a, b *graphfile.File) bool { return reflect.DeepEqual(bare(a), bare(b)) }

// dump shows a File in failures.
func dump(f *graphfile.File) string {
	out, err := json.MarshalIndent(bare(f), "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// unordered is bare with the keys of all metadata sorted: NoFlo's and Weir's own parts
// of it come last after a journey through the other's format.
func unordered(f *graphfile.File) *graphfile.File {
	c := bare(f)
	sorted := func(raw *json.RawMessage) {
		if *raw == nil {
			return
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(*raw))
		d.UseNumber()
		if d.Decode(&v) == nil {
			*raw, _ = json.Marshal(v)
		}
	}
	sorted(&c.Metadata)
	for i := range c.Nodes {
		sorted(&c.Nodes[i].Metadata)
		for j := range c.Nodes[i].In {
			sorted(&c.Nodes[i].In[j].Metadata)
		}
	}
	for i := range c.Edges {
		sorted(&c.Edges[i].Metadata)
	}
	for _, list := range [][]graphfile.Export{c.Inputs, c.Outputs} {
		for i := range list {
			sorted(&list[i].Metadata)
		}
	}
	return c
}

func files(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("testdata/%s: %v, %d files", pattern, err, len(found))
		}
		all = append(all, found...)
	}
	return all
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func mustParse(t testing.TB, name string, data []byte) *graphfile.File {
	t.Helper()
	f, err := graphfile.Parse(name, data)
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, data)
	}
	return f
}
