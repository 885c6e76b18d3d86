package port

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxSchema is how many bytes the JSON Schema of an argument or a port may have.
const MaxSchema = 16 << 10

// schemaNodes is how many values of a type are described, of fields in fields and so on; others may be anything.
const schemaNodes = 200

// dateTime is the format of times.
const dateTime = "date-time"

// Schema is the part of JSON Schema that tells what encoding/json takes for a Go type, and that arguments of new jobs are checked
// against. What is zero fits everything, and null fits every Schema, as it does in Go.
type Schema struct {
	Type       string             `json:"type,omitempty"`
	Format     string             `json:"format,omitempty"`
	Enum       []json.RawMessage  `json:"enum,omitempty"`
	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	// AdditionalProperties is for properties that Properties does not have; nil: they may be anything.
	AdditionalProperties *Schema `json:"additionalProperties,omitempty"`
	// PropertyNames is for the names of all properties: those of a format of numbers are checked.
	PropertyNames *Schema `json:"propertyNames,omitempty"`
	Items         *Schema `json:"items,omitempty"`
	none          bool    // nothing fits it: the schema false
}

// UnmarshalJSON implements json.Unmarshaler: it takes any JSON Schema, and leaves out what is not checked.
func (s *Schema) UnmarshalJSON(raw []byte) error {
	type plain Schema
	var known struct {
		plain
		Type any `json:"type"`
		Ref  any `json:"$ref"`
	}
	switch text := string(raw); {
	case text == "true" || text == "false":
		*s = Schema{none: text == "false"}
		return nil
	case len(raw) == 0 || raw[0] != '{':
		return fmt.Errorf("%w: %s is not a JSON Schema: use an object", ErrEncoding, excerpt(raw))
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return err
	}
	if *s = (Schema{}); known.Ref == nil { // else it is described elsewhere
		*s = Schema(known.plain)
		s.Type, _ = known.Type.(string) // else it is one of several
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (s *Schema) MarshalJSON() ([]byte, error) {
	type plain Schema
	if s.none {
		return []byte("false"), nil
	}
	return json.Marshal((*plain)(s))
}

// SchemaOf describes what encoding/json takes for a type.
func SchemaOf(t reflect.Type) *Schema {
	d := schemer{left: schemaNodes}
	return d.schema(t)
}

// schemer makes a schema.
type schemer struct {
	left  int
	above []reflect.Type // those that what is described is in
}

func (d *schemer) schema(t reflect.Type) *Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[time.Time]() {
		return &Schema{Type: KindString, Format: dateTime}
	}
	s := &Schema{Type: kindOfType(t)}
	if s.Type == KindInteger || s.Type == KindNumber {
		s.Format = formatOf(t.Kind())
	}
	if d.left--; d.left < 0 || s.Type == KindAny || s.Type == KindString || slices.Contains(d.above, t) {
		return s
	}
	d.above = append(d.above, t)
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		s.Items = d.schema(t.Elem())
	case reflect.Map:
		s.AdditionalProperties = d.schema(t.Elem())
		if format := formatOf(t.Key().Kind()); format != "" && !reflect.PointerTo(t.Key()).Implements(ownText) {
			s.PropertyNames = &Schema{Type: KindString, Format: format}
		}
	case reflect.Struct:
		s.Properties = map[string]*Schema{}
		d.fields(s, t)
	default: // it has no parts
	}
	d.above = d.above[:len(d.above)-1]
	return s
}

// fields describes those of a struct. encoding/json takes objects with others, and without these, so none is required and none refused.
func (d *schemer) fields(s *Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			d.fields(s, inner)
		case f.IsExported():
			if name == "" {
				name = f.Name
			}
			if s.Properties[name] != nil { // of two of one name the one that lies less deep counts: neither is described
				s.Properties[name] = &Schema{}
				continue
			}
			s.Properties[name] = d.field(f)
		}
	}
}

// field describes one of a struct, or an argument.
func (d *schemer) field(f reflect.StructField) *Schema {
	if of, ok := quoted(f); ok {
		d.left--
		return quotedSchema(of)
	}
	if s := d.schema(f.Type); s.Type != KindAny {
		return s
	}
	return &Schema{}
}

// more is the schema as it is stored besides a kind; nil if it says no more than that.
func (s *Schema) more() json.RawMessage {
	if s.Format == "" && len(s.Enum) == 0 && len(s.Properties) == 0 && s.Items == nil && s.AdditionalProperties == nil {
		return nil
	}
	raw, err := json.Marshal(s)
	if err != nil || len(raw) > MaxSchema {
		return nil
	}
	return raw
}

// SchemaText is the JSON Schema of an argument or of the messages of a port, of which a kind is known and perhaps more.
func SchemaText(kind string, more json.RawMessage) json.RawMessage {
	if len(more) > 0 {
		return more
	}
	raw, _ := json.Marshal(&Schema{Type: kind}) // which always can be
	return raw
}

// words are the types in the words of components.
var words = map[string]string{KindString: "text", KindBool: "bool", KindNumber: KindNumber, KindInteger: KindInteger, KindArray: "list", KindObject: KindObject}

// Words is the Schema in a few words, with fields by their names: {id: integer, at: time, lines: [text]}.
func (s *Schema) Words() string {
	switch {
	case s == nil:
		return "any"
	case s.none:
		return "nothing"
	case s.Format == dateTime && s.Type == KindString:
		return "time"
	case s.Type == KindArray && s.Items != nil:
		return "[" + s.Items.Words() + "]"
	case s.Type == KindObject && len(s.Properties) > 0:
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			fields = append(fields, name+": "+s.Properties[name].Words())
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case s.Type == KindObject && s.AdditionalProperties != nil:
		return "{any: " + s.AdditionalProperties.Words() + "}"
	}
	return cmp.Or(words[s.Type], "any")
}

// mismatches is how many faults of one value are told.
const mismatches = 5

// Check tells what of a value does not fit, each with a JSON pointer to it unless it is the whole value.
func (s *Schema) Check(raw json.RawMessage) []string {
	var bad []string
	s.check(raw, &bad)
	for i := range bad {
		bad[i] = strings.TrimPrefix(bad[i], ": ")
	}
	return bad
}

// check adds what does not fit: a JSON pointer, which is empty for the value itself, a colon, and why.
func (s *Schema) check(raw json.RawMessage, bad *[]string) {
	if s == nil || len(*bad) >= mismatches || len(raw) == 0 {
		return
	}
	refuse := func(format string, args ...any) { *bad = append(*bad, ": "+fmt.Sprintf(format, args...)) }
	switch {
	case s.none:
		refuse("it is not allowed")
		return
	case !fits(raw, s.Type) && kindWords[s.Type] != "":
		refuse("%s is not %s", excerpt(raw), kindWords[s.Type])
		return
	case len(s.Enum) > 0 && raw[0] != 'n' && !slices.ContainsFunc(s.Enum, func(one json.RawMessage) bool { return equalJSON(one, raw) }):
		refuse("%s is not one of %s", excerpt(raw), excerpt(joined(s.Enum)))
		return
	}
	if why := notOfFormat(raw, s.Format); why != "" {
		refuse("%s %s", excerpt(raw), why)
	}
	switch raw[0] {
	case '{':
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return
		}
		for _, name := range s.Required {
			if _, ok := object[name]; !ok {
				refuse("%q is missing", shorten(name))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			one, known := s.Properties[name]
			if !known {
				one = s.AdditionalProperties
			}
			if why := s.PropertyNames.notName(name); why != "" && len(*bad) < mismatches {
				refuse("the name %q %s", shorten(name), why)
			}
			one.within(object[name], name, bad)
		}
	case '[':
		var list []json.RawMessage
		if s.Items == nil || json.Unmarshal(raw, &list) != nil {
			return
		}
		for n, one := range list {
			s.Items.within(one, strconv.Itoa(n), bad)
		}
	}
}

// UnknownFields finds fields of objects that the struct of a Go type does not have, whose schema this is, and which encoding/json passes
// over: by JSON pointer, each with the nearest that there is, or all.
func (s *Schema) UnknownFields(raw json.RawMessage) map[string]string {
	found := map[string]string{}
	s.unknown(raw, "", found)
	return found
}

func (s *Schema) unknown(raw json.RawMessage, at string, found map[string]string) {
	if s == nil || len(raw) == 0 {
		return
	}
	switch raw[0] {
	case '{':
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			return
		}
		known := slices.Sorted(maps.Keys(s.Properties))
		for name, part := range object {
			one := s.AdditionalProperties
			for _, field := range known {
				if strings.EqualFold(field, name) { // as encoding/json finds them
					one = s.Properties[field]
				}
			}
			pointer := at + pointerTo(name)
			if one == nil && len(known) > 0 {
				found[pointer] = Suggest(name, known)
			}
			one.unknown(part, pointer, found)
		}
	case '[':
		var list []json.RawMessage
		if s.Items == nil || json.Unmarshal(raw, &list) != nil {
			return
		}
		for n, one := range list {
			s.Items.unknown(one, at+"/"+strconv.Itoa(n), found)
		}
	}
}

// pointerTo is a step of a JSON pointer.
func pointerTo(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(shorten(name))
}

// within checks a part of a value, and spells where it is only if it does not fit.
func (s *Schema) within(part json.RawMessage, name string, bad *[]string) {
	before := len(*bad)
	s.check(part, bad)
	for i := before; i < len(*bad); i++ {
		(*bad)[i] = pointerTo(name) + (*bad)[i]
	}
}

func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func joined(all []json.RawMessage) json.RawMessage {
	var texts []string
	for _, one := range all {
		texts = append(texts, string(one))
	}
	return json.RawMessage(strings.Join(texts, ", "))
}
