package graphfile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirworks/weir/graphfile"
)

// seed adds the files in testdata that have one of some extensions.
func seed(f *testing.F, extensions ...string) {
	f.Helper()
	for _, dir := range []string{"good", "problems"} {
		entries, err := os.ReadDir(filepath.Join("testdata", dir))
		if err != nil {
			f.Fatal(err)
		}
		for _, entry := range entries {
			for _, ext := range extensions {
				if strings.HasSuffix(entry.Name(), ext) {
					f.Add(read(f, filepath.Join("testdata", dir, entry.Name())))
				}
			}
		}
	}
}

// fuzz checks that what can be read can be written, and is the same when read again.
func fuzz(t *testing.T, parse func(string, []byte) (*graphfile.File, error), data []byte, must ...string) {
	t.Helper()
	f, err := parse("f", data)
	if err != nil {
		if len(graphfile.Problems(err)) == 0 {
			t.Errorf("no problems in %v", err)
		}
		return
	}
	stable(t, f, must...)
}

func FuzzYAML(f *testing.F) {
	seed(f, ".yaml", ".golden")
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, graphfile.ParseYAML, data, "yaml", "json") })
}

func FuzzJSON(f *testing.F) {
	seed(f, ".json")
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, graphfile.ParseJSON, data, "yaml", "json") })
}

func FuzzFBP(f *testing.F) {
	seed(f, ".fbp")
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, graphfile.ParseFBP, data, "yaml", "json", "noflo", "fbp") })
}

func FuzzNoFlo(f *testing.F) {
	seed(f, ".json", ".noflo.golden")
	f.Fuzz(func(t *testing.T, data []byte) { fuzz(t, graphfile.ParseNoFlo, data, "yaml", "json", "noflo") })
}

// FuzzExpand puts a value into a text with references, and writes what comes of it.
func FuzzExpand(f *testing.F) {
	for _, text := range []string{"${p}", "a ${p} b", "$${p}", "$$${p}${q}", "${", "${p", "{${q}}", "$"} {
		f.Add(text, []byte(`"x"`))
		f.Add(text, []byte(`{"a":[1,"${p}"]}`))
	}
	f.Fuzz(func(t *testing.T, text string, value []byte) {
		quoted, err := json.Marshal(map[string]any{"weir": 1, "params": map[string]any{
			"p": map[string]any{"type": "json"}, "q": "$${q}",
		}, "nodes": map[string]any{"a": map[string]any{"type": "t", "args": map[string]any{"x": text, "y": "${p}${q}"}}}})
		if err != nil {
			t.Fatal(err)
		}
		file, err := graphfile.ParseJSON("f", quoted)
		if err != nil {
			return
		}
		out, err := file.Expand(map[string]json.RawMessage{"p": value})
		if err != nil {
			if len(graphfile.Problems(err)) == 0 {
				t.Errorf("no problems in %v", err)
			}
			return
		}
		if err := out.Check(); err != nil {
			t.Fatalf("%v in\n%s", err, dump(out))
		}
		back := template(t, out)
		twice, err := back.Expand(nil)
		if err != nil || !same(twice, out) {
			t.Fatalf("%v: from\n%s\ngot\n%s", err, dump(out), dump(twice))
		}
		stable(t, out)
	})
}
