package graphfile

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	wrong "github.com/santhosh-tekuri/jsonschema/v6/kind"
)

//go:embed schema.json
var schemaJSON []byte

//go:embed noflo.schema.json
var nofloJSON []byte

// Schema returns the JSON Schema (draft 2020-12) of Weir's format, which fits
// both its YAML and its JSON. Editors can use it; parsing does.
func Schema() []byte { return slices.Clone(schemaJSON) }

// Where the schemas claim to be. Nothing is fetched from there.
const (
	schemaURL = "https://github.com/weirworks/weir/graphfile/schema.json"
	nofloURL  = "https://github.com/weirworks/weir/graphfile/noflo.schema.json"
)

// format is a compiled schema.
type format struct {
	schema *jsonschema.Schema
	docs   map[string]any // the schemas by their URL
}

var (
	weirFormat  = sync.OnceValues(func() (*format, error) { return compile(schemaURL) })
	nofloFormat = sync.OnceValues(func() (*format, error) { return compile(nofloURL) })
)

func compile(at string) (*format, error) {
	f := &format{docs: make(map[string]any)}
	c := jsonschema.NewCompiler()
	for name, data := range map[string][]byte{schemaURL: schemaJSON, nofloURL: nofloJSON} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err == nil {
			err = c.AddResource(name, doc)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the schema %s: %w", name, err)
		}
		f.docs[name] = doc
	}
	schema, err := c.Compile(at)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema %s: %w", at, err)
	}
	f.schema = schema
	return f, nil
}

// validate reports how v differs from the schema. What [File.Check] tells in better
// words is left to it.
func validate(p *problems, load func() (*format, error), v *value) {
	f, err := load()
	if err != nil {
		p.add(Pos{}, "", "%v", err)
		return
	}
	var invalid *jsonschema.ValidationError
	if err := f.schema.Validate(v.plain()); errors.As(err, &invalid) {
		r := reporter{f, p, v, make(map[*value]map[string]*member)}
		r.report(invalid)
	}
}

// reporter tells what the validator found.
type reporter struct {
	*format
	problems *problems
	root     *value
	members  map[*value]map[string]*member // of the objects that were looked into
}

func (r *reporter) report(e *jsonschema.ValidationError) {
	if len(e.Causes) > 0 {
		if _, name := e.ErrorKind.(*wrong.PropertyNames); !name {
			for _, cause := range e.Causes {
				r.report(cause)
			}
		}
		return
	}
	p := r.problems
	v, pos, path := r.locate(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *wrong.AdditionalProperties:
		slices.SortFunc(k.Properties, func(a, b string) int {
			return r.find(v, a).pos.compare(r.find(v, b).pos)
		})
		for _, key := range k.Properties {
			p.add(r.find(v, key).pos, path, "unknown key %q%s", key, p.hint(key, r.keys(e.SchemaURL)))
		}
	case *wrong.Required:
		for _, key := range k.Missing {
			if key == "weir" {
				p.add(pos, path, "missing key \"weir\": begin the file with weir: %d", Version)
			} else if key != "nodes" { // which Check misses, too
				p.add(pos, path, "missing key %q", key)
			}
		}
	case *wrong.Type:
		p.add(pos, path, "is %s, use %s", words(k.Got), orWords(k.Want))
	case *wrong.Const:
		p.add(pos, path, "the version %s is not known here, use %d", brief(v), Version)
	case *wrong.Enum:
		p.add(pos, path, "%s", wrongChoice(p, v, k.Want))
	case *wrong.Minimum:
		p.add(pos, path, "is %s, use at least %s", brief(v), k.Want.RatString())
	case *wrong.Maximum:
		p.add(pos, path, "is %s, use at most %s", brief(v), k.Want.RatString())
	case *wrong.MinLength: // of 1 everywhere
		p.add(pos, path, "is empty: give a text, or remove it")
	case *wrong.Pattern, *wrong.PropertyNames, *wrong.MinProperties, *wrong.MinItems:
		if p.left == nil {
			p.left = &Problem{File: p.file, Line: pos.Line, Column: pos.Column, Path: path, Text: "is not as the schema wants it"}
		}
	default:
		p.add(pos, path, "is not as the schema wants it (%s)", strings.Join(k.KeywordPath(), "/"))
	}
}

// locate walks to the value that an error is about.
func (r *reporter) locate(location []string) (v *value, pos Pos, path string) {
	v, pos = r.root, r.root.pos
	for _, step := range location {
		if i, err := strconv.Atoi(step); v.kind == list && err == nil && i >= 0 && i < len(v.items) {
			v, path = v.items[i], at(path, i)
			pos = v.pos
			continue
		}
		m := r.find(v, step)
		if m.val == nil {
			break
		}
		v, path, pos = m.val, under(path, show(step)), m.val.pos
		if v.kind == object || v.kind == list {
			pos = m.pos
		}
	}
	return v, pos, path
}

// find returns the member of an object, and one without a value if there is none.
func (r *reporter) find(v *value, key string) *member {
	if r.members[v] == nil {
		r.members[v] = make(map[string]*member, len(v.members))
		for i := range v.members {
			r.members[v][v.members[i].key] = &v.members[i]
		}
	}
	if m := r.members[v][key]; m != nil {
		return m
	}
	return &member{pos: v.pos}
}

// keys are the keys that the schema at a URL knows.
func (f *format) keys(location string) iter.Seq[string] {
	name, pointer, _ := strings.Cut(location, "#")
	at := f.docs[name]
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		if doc, ok := at.(map[string]any); ok && step != "" {
			at = doc[step]
		}
	}
	doc, _ := at.(map[string]any)
	properties, _ := doc["properties"].(map[string]any)
	return maps.Keys(properties)
}

// brief is the beginning of a value.
func brief(v *value) string {
	s := []rune(string(v.raw()))
	if len(s) > 40 {
		return string(s[:40]) + "…"
	}
	return string(s)
}

// words names a JSON type as the file's writers would.
func words(kind string) string {
	switch kind {
	case "object":
		return "a map"
	case "array":
		return "a list"
	case "string":
		return "a text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean", "bool": // as encoding/json says
		return "true or false"
	default:
		return "null"
	}
}

func orWords(kinds []string) string {
	all := make([]string, len(kinds))
	for i, k := range kinds {
		all[i] = words(k)
	}
	return orList(all)
}

// orList is "a, b or c".
func orList(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

func wrongChoice(p *problems, v *value, want []any) string {
	choices := make([]string, len(want))
	for i, w := range want {
		choices[i] = fmt.Sprint(w)
	}
	if v.kind != text {
		return fmt.Sprintf("is %s, use %s", brief(v), orList(choices))
	}
	return notOneOf(p, v.text, choices)
}

// notOneOf is said of a text that is none of the choices.
func notOneOf(p *problems, got string, choices []string) string {
	return fmt.Sprintf("is %q, use %s%s", got, orList(choices), p.hint(got, slices.Values(choices)))
}
