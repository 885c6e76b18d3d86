// Package strict reads JSON that people write: it refuses keys that nobody knows, and says what is wrong without words of Go.
package strict

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weirworks/weir/port"
)

// Decode reads JSON into the value that v points to. All keys of its objects must be known. The error says in plain words what is wrong, and where.
func Decode(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var typ *json.UnmarshalTypeError
	var moment *time.ParseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &moment):
		return fmt.Errorf("%.40q is not a moment: use RFC 3339, such as 2026-03-12T07:00:00Z", strings.Trim(moment.Value, `"`))
	case errors.As(err, &typ):
		value, _, _ := strings.Cut(typ.Value, " ") // a number comes with its digits
		return fmt.Errorf("%s is %s: use %s", cmp.Or(typ.Field, "it"), article(value), kindName(typ.Type))
	}
	if _, quoted, ok := strings.Cut(err.Error(), "unknown field "); ok {
		name := strings.Trim(quoted, `"`)
		t, _ := lacking(raw, reflect.TypeOf(v), name)
		return fmt.Errorf("unknown key %.80q: %s", name, port.Suggest(name, keysOf(t)))
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// lacking finds the type of the object in a body of type t that has a key which is unknown there; else it is t.
func lacking(raw []byte, t reflect.Type, name string) (in reflect.Type, found bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) == nil {
			for _, one := range all {
				if in, found := lacking(one, t.Elem(), name); found {
					return in, true
				}
			}
		}
	case reflect.Struct:
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			break
		}
		if _, has := object[name]; has && !slices.Contains(keysOf(t), name) {
			return t, true
		}
		for _, f := range reflect.VisibleFields(t) {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if in, found := lacking(object[key], f.Type, name); found {
				return in, true
			}
		}
	}
	return t, false
}

// keysOf are the keys that an object of a type can have.
func keysOf(t reflect.Type) (keys []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) { // with those of embedded structs
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			keys = append(keys, name)
		}
	}
	return keys
}

// kindName is what a value of a Go type is in JSON.
func kindName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Int64 && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return `a duration in quotes, like "30s"`
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "a string"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	}
	return "a number"
}

func article(word string) string {
	if strings.HasPrefix(word, "a") || strings.HasPrefix(word, "o") {
		return "an " + word
	}
	if word == "bool" {
		word = "boolean"
	}
	return "a " + word
}
