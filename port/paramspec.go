package port

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Kinds of JSON values that a [Param] or a port takes, called as in JSON Schema; null fits all of them.
const (
	KindAny     = ""
	KindString  = "string"
	KindNumber  = "number"
	KindInteger = "integer"
	KindBool    = "boolean"
	KindArray   = "array"
	KindObject  = "object"
)

// kindWords are the kinds in errors.
var kindWords = map[string]string{
	KindString: "a string", KindNumber: "a number", KindInteger: "a whole number", KindBool: "true or false", KindArray: "an array", KindObject: "an object",
}

// ErrParams is wrapped by the errors of [CheckParams].
var ErrParams = errors.New("wrong arguments")

// Param describes an argument of a worker, for who creates its jobs without linking it.
type Param struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
	// Schema is the JSON Schema of the argument; empty if there is no more to say than Kind does.
	Schema json.RawMessage `json:"schema,omitempty"`
}

// ParamSpecs returns the arguments that [Layout.SetParams] takes, in the order of the fields. It is not nil.
func (l *Layout) ParamSpecs() []Param {
	specs := make([]Param, 0, len(l.params.names))
	for i, f := range l.params.fields {
		d := schemer{left: schemaNodes}
		specs = append(specs, Param{Name: l.params.names[i], Kind: kindOf(f), Schema: d.field(f).more()})
	}
	return specs
}

var (
	ownJSON = reflect.TypeFor[json.Unmarshaler]()
	ownText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Kinds returns what kind of JSON value the messages of each handle are by [TypeKey], without those
// of [KindAny].
func (l *Layout) Kinds() map[string]string {
	kinds := make(map[string]string)
	for key, t := range l.Types() {
		if kind := kindOfType(t); kind != KindAny {
			kinds[key] = kind
		}
	}
	return kinds
}

// Schemas returns the JSON Schemas of the messages of each handle by [TypeKey], of which there is more to say than Kinds does.
func (l *Layout) Schemas() map[string]json.RawMessage {
	schemas := make(map[string]json.RawMessage)
	for key, t := range l.Types() {
		if more := SchemaOf(t).more(); more != nil {
			schemas[key] = more
		}
	}
	return schemas
}

// CheckKind returns an error that wraps [ErrEncoding] if a JSON value is of another kind. One that
// has passed may still not decode, but none is refused that would.
func CheckKind(raw json.RawMessage, kind string) error {
	if fits(raw, kind) {
		return nil
	}
	return fmt.Errorf("%w: %s is not %s", ErrEncoding, excerpt(raw), kindWords[kind])
}

// kindOf is the kind of JSON that encoding/json takes for a field.
func kindOf(f reflect.StructField) string {
	if of, ok := quoted(f); ok {
		return quotedSchema(of).Type
	}
	return kindOfType(f.Type)
}

// kindOfType is the kind of JSON that encoding/json takes for a type.
func kindOfType(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch p := reflect.PointerTo(t); {
	case p.Implements(ownJSON):
		return KindAny
	case p.Implements(ownText):
		return KindString
	}
	switch t.Kind() {
	case reflect.String:
		if t == reflect.TypeFor[json.Number]() {
			return KindAny
		}
		return KindString
	case reflect.Bool:
		return KindBool
	case reflect.Struct, reflect.Map:
		return KindObject
	case reflect.Array:
		return KindArray
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return KindAny // bytes are a text, or an array
		}
		return KindArray
	case reflect.Float32, reflect.Float64:
		return KindNumber
	case reflect.Interface:
		return KindAny
	}
	return KindInteger
}

// badParams is how many wrong arguments an error names.
const badParams = 20

// CheckParams tells what is wrong with the arguments of a job, as a JSON object, as far as their specs say:
// names that are unknown, values of another kind, and with a JSON pointer what does not fit their schemas; the first 20 of them. The error wraps [ErrParams].
func CheckParams(specs []Param, raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	if err := decode(raw, &given, "an object of arguments"); err != nil {
		return fmt.Errorf("%w: %w", ErrParams, err)
	}
	names := make([]string, len(specs))
	for i, p := range specs {
		names[i] = p.Name
	}
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		switch i := slices.Index(names, name); {
		case i < 0:
			bad = append(bad, fmt.Sprintf("there is no argument %q: %s", shorten(name), Suggest(name, names)))
		case !fits(value, specs[i].Kind):
			bad = append(bad, fmt.Sprintf("argument %s is %s, use %s", name, excerpt(value), kindWords[specs[i].Kind]))
		case len(specs[i].Schema) > 0:
			var s Schema
			if json.Unmarshal(specs[i].Schema, &s) != nil {
				continue // which says nothing that could be checked
			}
			var within []string
			s.within(value, name, &within)
			bad = append(bad, within...)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	if more := len(bad) - badParams; more > 0 {
		bad = append(bad[:badParams], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s", ErrParams, strings.Join(bad, "; "))
}

// fits tells whether a JSON value is of a kind.
func fits(raw json.RawMessage, kind string) bool {
	if kind == KindAny || raw[0] == 'n' {
		return true
	}
	switch raw[0] {
	case '"':
		return kind == KindString
	case '{':
		return kind == KindObject
	case '[':
		return kind == KindArray
	case 't', 'f':
		return kind == KindBool
	}
	return kind == KindNumber || kind == KindInteger && !bytes.ContainsAny(raw, ".eE")
}
