package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirworks/weir/docs"
	"github.com/weirworks/weir/internal/golden"
	"github.com/weirworks/weir/internal/term"
)

var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	moment = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	clock  = regexp.MustCompile(`(?m)^((?:\x1b\[2m)?)\d\d:\d\d:\d\d\.\d\d\d`)
)

// still replaces IDs, in the order in which they come, by others of their length, and times.
func still(text string) string {
	ids := map[string]string{}
	text = uuids.ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("019e1f0e-0000-7000-8000-%012d", len(ids)+1)
		}
		return ids[id]
	})
	text = moment.ReplaceAllString(text, "2026-01-02T15:04:05Z")
	text = strings.ReplaceAll(text, "removed in 29d23h", "removed in 30d0h") // the test took a second longer
	return clock.ReplaceAllString(text, "${1}15:04:05.000")
}

// reading are the commands that read and change nothing, by the names of their golden files.
var reading = map[string]string{
	"show": "show one", "show_graph": "show album", "tree": "tree album", "tree_one": "tree one", "jobs": "jobs", "ports": "ports album", "ports_one": "ports one",
	"peek": "peek one in", "log": "log album", "log_one": "log one", "trace": "trace one in 1", "types": "types", "state": "state get one", "why": "why album",
	"why_join": "why %7", "why_list": "why %1", "why_locked": "why %5", "why_lonely": "why %8", "why_long": "why %6", "why_scheduled": "why %4", "why_nasty": "why %11", "show_nasty": "show %11",
}

// line is a command line of reading.
func (w *world) line(command string, more ...string) []string {
	words := append([]string{"--redis", w.url}, strings.Fields(command)...)
	for i := range words {
		if number, ok := strings.CutPrefix(words[i], "%"); ok {
			words[i] = string(w.album.ID()) + "." + number
		}
	}
	return append(words, more...)
}

func (w *world) output(words []string) string {
	w.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(w.Context(), words, &stdout, &stderr); code != 0 {
		w.Fatalf("weir %q: exit code %d, %s", words, code, stderr.String())
	}
	return stdout.String()
}

// TestTables: what commands print for people, in 80 columns, with and without colours and
// Unicode, and as wide as it gets. Nothing is wider than the terminal but commands to copy,
// messages and values of the state, and nothing of a job's name reaches the terminal that it would obey.
func TestTables(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"NO_COLOR", "CLICOLOR_FORCE", "TERM", "LC_ALL", "LC_CTYPE", "LANG"} {
		t.Setenv(name, "")
	}
	styles := []struct {
		name, columns string
		flags         []string
	}{
		{"80 columns", "80", nil},
		{"80 columns, colours", "80", []string{"--color", "always"}},
		{"80 columns, ASCII", "80", []string{"--ascii"}},
		{"80 columns, iso", "80", []string{"--time", "iso"}},
		{"any width", "", nil},
	}
	for name, command := range reading {
		var all strings.Builder
		for _, s := range styles {
			t.Setenv("COLUMNS", s.columns)
			got := still(w.output(w.line(command, s.flags...)))
			fmt.Fprintf(&all, "== %s\n%s\n", s.name, got)
			for line := range strings.Lines(got) {
				line = strings.TrimSuffix(line, "\n")
				copied := name == "peek" || name == "state" || strings.Contains(line, "$ weir")
				if n := term.Width(line); s.columns != "" && !copied && n > 80 {
					t.Errorf("%s, %s: %d columns: %s", name, s.name, n, line)
				}
				plain := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(line, "")
				if strings.ContainsAny(plain, "\x1b\a\u202e\r") {
					t.Errorf("%s, %s: the terminal would obey %q", name, s.name, line)
				}
			}
		}
		golden.Check(t, filepath.Join("testdata", "golden", name+".txt"), all.String())
	}
}

// schemaOf returns the schema of what commands print, which allows no more than it names.
func schemaOf(t *testing.T) func(name string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(docs.CLISchema()))
	if err != nil {
		t.Fatal(err)
	}
	defs, _ := doc.(map[string]any)["$defs"].(map[string]any)
	for _, def := range defs {
		def, _ := def.(map[string]any)
		if def["properties"] == nil || def["allOf"] != nil {
			continue
		}
		def["additionalProperties"] = false
	}
	// Those that stand on others: what neither names is too much.
	job, _ := defs["job"].(map[string]any)
	delete(job, "additionalProperties")
	for _, name := range []string{"show", "tree"} {
		def, _ := defs[name].(map[string]any)
		def["unevaluatedProperties"] = false
	}
	jobs, _ := defs["jobs"].(map[string]any)
	jobs["items"] = map[string]any{"$ref": "#/$defs/job", "unevaluatedProperties": false}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("weir.json", doc); err != nil {
		t.Fatal(err)
	}
	return func(name string) *jsonschema.Schema {
		s, err := c.Compile("weir.json#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// TestJSON: what commands print with -o json is what docs/cli.schema.json says, and stays as
// it is.
func TestJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schema := schemaOf(t)
	check := func(name, command string) {
		t.Helper()
		def, _, _ := strings.Cut(name, "_")
		got := w.output(w.line(command, "-o", "json"))
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(got))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := schema(def).Validate(v); err != nil {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		golden.Check(t, filepath.Join("testdata", "golden", name+".json"), still(got))
	}
	for name, command := range reading {
		check(name, command)
	}
	for _, command := range []string{"jobs", "log album", "peek one in"} {
		def := map[string]string{"jobs": "job", "log album": "entry", "peek one in": "message"}[command]
		lines := strings.Split(strings.TrimSpace(w.output(w.line(command, "-o", "jsonl"))), "\n")
		for _, line := range lines {
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
			if err != nil {
				t.Errorf("%s: %v", command, err)
			} else if err := schema(def).Validate(v); err != nil {
				t.Errorf("%s: %v\n%s", command, err, line)
			}
		}
	}
	check("read", "read one in -n 2") // it takes the messages
	out := weir(t, "", "run", "testdata/sum.yaml", "--in", "n=2", "-o", "json")
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil || schema("run").Validate(v) != nil {
		t.Errorf("run: %v, %v\n%s", err, schema("run").Validate(v), out)
	}
	var stdout, stderr bytes.Buffer // on a Redis, where the job stays
	run(t.Context(), []string{"run", "testdata/sum.yaml", "--in", `n="a"`, "-o", "json", "--redis", w.url, "--namespace", "other"}, &stdout, &stderr)
	v, err = jsonschema.UnmarshalJSON(&stdout)
	if err != nil || schema("run").Validate(v) != nil || !strings.Contains(fmt.Sprint(v), "weir retry ") {
		t.Errorf("run of a graph that fails: %v, %v\n%v\n%s", err, schema("run").Validate(v), v, &stderr)
	}
	v, err = jsonschema.UnmarshalJSON(&stderr) // which is the error alone
	if err != nil || schema("failure").Validate(v) != nil {
		t.Errorf("errors of run: %v, %v\n%v", err, schema("failure").Validate(v), v)
	}
	out = weir(t, w.url, "wait", "album", "--for", "failed", "-o", "json")
	v, err = jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil || schema("wait").Validate(v) != nil {
		t.Errorf("wait: %v, %v\n%s", err, schema("wait").Validate(v), out)
	}
	var wrong bytes.Buffer
	if code := run(t.Context(), []string{"check", "../../graphfile/testdata/wrong/all.yaml", "-o", "json"}, &wrong, io.Discard); code != exitUsage {
		t.Errorf("check: exit code %d", code)
	}
	v, err = jsonschema.UnmarshalJSON(&wrong)
	if err != nil || schema("check").Validate(v) != nil {
		t.Errorf("check: %v, %v", err, schema("check").Validate(v))
	}
	for _, args := range [][]string{{"next", "@daily"}, {"version"}} {
		out = weir(t, "", append(args, "-o", "json")...)
		v, err = jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err != nil || schema(args[0]).Validate(v) != nil {
			t.Errorf("%s: %v, %v\n%s", args[0], err, schema(args[0]).Validate(v), out)
		}
	}
	weir(t, w.url, "create", "--graph", "testdata/sum.yaml", "--alias", "sum", "--namespace", "other")
	out = weir(t, w.url, "patch", "sum", "testdata/endless.yaml", "--dry-run", "-o", "json", "--namespace", "other")
	v, err = jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil || schema("patch").Validate(v) != nil || !strings.Contains(out, `"path"`) {
		t.Errorf("patch: %v, %v\n%s", err, schema("patch").Validate(v), out)
	}
	if got := weir(t, "", "schema"); got != string(docs.CLISchema()) {
		t.Error("weir schema prints another schema")
	}
}

// The schema refuses what is wrong.
func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	schema := schemaOf(t)
	raw, err := os.ReadFile(filepath.Join("testdata", "golden", "show.json"))
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(v map[string]any){
		"":                   func(map[string]any) {},
		"a status":           func(v map[string]any) { v["status"] = "asleep" },
		"no state":           func(v map[string]any) { delete(v, "state") },
		"no reason":          func(v map[string]any) { delete(v, "reason") },
		"an unknown key":     func(v map[string]any) { v["more"] = 1 },
		"a local time":       func(v map[string]any) { v["created_at"] = "2026-01-02T15:04:05+01:00" },
		"aliases not read":   func(v map[string]any) { v["aliases"] = nil },
		"a port without end": func(v map[string]any) { v["in"] = map[string]any{"in": map[string]any{"size": 1}} },
		"labels":             func(v map[string]any) { v["labels"] = map[string]any{"a": 1} },
	} {
		var v map[string]any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		change(v)
		if err := schema("show").Validate(any(v)); (err != nil) != (what != "") {
			t.Errorf("%q: %v", what, err)
		}
	}
}
