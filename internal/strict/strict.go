// Package strict reads JSON that people write: it refuses keys that nobody knows, and says what is wrong without words of Go.
package strict

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		if name, t := inexact(raw, reflect.TypeOf(v)); name != "" { // encoding/json takes any case
			return unknown(name, t)
		}
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON: %w, at byte %d", syntax, syntax.Offset)
	case errors.Is(err, io.EOF):
		return errors.New("it is empty: give JSON")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it is not JSON: it ends too early, behind byte %d", len(raw))
	case errors.As(err, &moment):
		return fmt.Errorf("%.40q is not a moment: use RFC 3339, such as 2026-03-12T07:00:00Z", strings.Trim(moment.Value, `"`))
	case errors.As(err, &typ):
		value, _, _ := strings.Cut(typ.Value, " ") // a number comes with its digits
		return fmt.Errorf("%s is %s: use %s", cmp.Or(typ.Field, "it"), article(value), kindName(typ.Type))
	}
	if _, quoted, ok := strings.Cut(err.Error(), "unknown field "); ok {
		name := strings.Trim(quoted, `"`)
		t, _ := lacking(raw, reflect.TypeOf(v), name)
		return unknown(name, t)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if key := refused(raw, reflect.TypeOf(v)); key != "" {
		text = key + ": " + text
	}
	return errors.New(text)
}

// refused returns the key, with those of the objects that it is in, of the first value that its type does not take as a text.
func refused(raw []byte, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var object map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(raw, &object) != nil {
		return ""
	}
	for _, f := range reflect.VisibleFields(t) {
		value := object[keyOf(f)]
		if value == nil || json.Unmarshal(value, reflect.New(f.Type).Interface()) == nil {
			continue
		}
		if inner := refused(value, f.Type); inner != "" {
			return keyOf(f) + "." + inner
		}
		return keyOf(f)
	}
	return ""
}

// unknown says that an object of a type has no such key.
func unknown(name string, t reflect.Type) error {
	return fmt.Errorf("unknown key %.80q: %s", name, port.Suggest(name, keysOf(t)))
}

// inexact finds a key that is another one in upper or lower case, and the type of the object that has it.
func inexact(raw []byte, t reflect.Type) (name string, in reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "", nil
	}
	switch t.Kind() {
	case reflect.Slice:
		var all []json.RawMessage
		if elem := t.Elem(); elem.Kind() != reflect.Struct && elem.Kind() != reflect.Pointer || json.Unmarshal(raw, &all) != nil {
			break
		}
		for _, one := range all {
			if name, in := inexact(one, t.Elem()); name != "" {
				return name, in
			}
		}
	case reflect.Struct:
		var object map[string]json.RawMessage
		if json.Unmarshal(raw, &object) != nil {
			break
		}
		known := keysOf(t)
		for key := range object {
			if !slices.Contains(known, key) {
				return key, t
			}
		}
		for _, f := range reflect.VisibleFields(t) {
			if value := object[keyOf(f)]; value != nil {
				if name, in := inexact(value, f.Type); name != "" {
					return name, in
				}
			}
		}
	}
	return "", nil
}

// keyOf is the key of a field; empty: it has none.
func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	switch {
	case name == "-" || name == "" && (f.Anonymous || !f.IsExported()):
		return ""
	case name == "":
		return f.Name
	}
	return name
}

// Check refuses what is not JSON, and what programs would read differently: no object may have a key twice, and no number is larger than
// they can hold, or so small that they take it for 0. The error goes on behind what was read, as in "the body".
func Check(raw []byte) error {
	if err := port.Check(raw); err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return checkValue(d)
}

// checkValue does so with the next value.
func checkValue(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Number:
		switch f, err := v.Float64(); {
		case err != nil:
			return fmt.Errorf("has the number %.40s, which is too large: use one up to 1.7e308, or a string", v)
		case f == 0 && !zero(v):
			return fmt.Errorf("has the number %.40s, which is too small and would be read as 0: use 0, one from 5e-324, or a string", v)
		}
	case json.Delim:
		keys := map[string]bool{}
		for d.More() {
			if v == '{' {
				key, err := d.Token()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				if keys[name] {
					return fmt.Errorf("has the key %.80q twice in one object, at byte %d", name, d.InputOffset())
				}
				keys[name] = true
			}
			if err := checkValue(d); err != nil {
				return err
			}
		}
		_, err = d.Token() // its end
		return err
	}
	return nil
}

// zero tells whether a number is written as zero.
func zero(n json.Number) bool {
	digits, _, _ := strings.Cut(strings.ToLower(string(n)), "e")
	return !strings.ContainsAny(digits, "123456789")
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
		if name := keyOf(f); name != "" {
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
