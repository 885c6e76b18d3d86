package port

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

var (
	marshalerType = reflect.TypeFor[json.Marshaler]()
	textType      = reflect.TypeFor[encoding.TextMarshaler]()
	handleType    = reflect.TypeFor[handle]()
	sourceType    = reflect.TypeFor[*source]()
	sinkType      = reflect.TypeFor[*sink]()
)

// reaches reports whether a value of type t can hold one of a type that match
// accepts, following pointers, elements and those fields that enter accepts.
func reaches(t reflect.Type, match func(reflect.Type) bool, enter func(reflect.StructField) bool) bool {
	seen := make(map[reflect.Type]bool)
	var visit func(reflect.Type) bool
	visit = func(t reflect.Type) bool {
		if seen[t] {
			return false
		}
		seen[t] = true
		if match(t) {
			return true
		}
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			return visit(t.Elem())
		case reflect.Struct:
			for i := range t.NumField() {
				if f := t.Field(i); enter(f) && visit(f.Type) {
					return true
				}
			}
		}
		return false
	}
	return visit(t)
}

// anyHolders remembers the answers of holdsAny.
var anyHolders sync.Map // reflect.Type to bool

// holdsAny reports whether decoding into a t can meet an interface, where the
// decoder chooses the type.
func holdsAny(t reflect.Type) bool {
	if known, ok := anyHolders.Load(t); ok {
		return known.(bool)
	}
	holds := reaches(t,
		func(t reflect.Type) bool { return t.Kind() == reflect.Interface },
		func(f reflect.StructField) bool { return f.IsExported() || f.Anonymous })
	anyHolders.Store(t, holds)
	return holds
}

// holdsHandle reports whether a value of type t can hold a port handle where a
// user could reach it.
func holdsHandle(t reflect.Type) bool {
	return reaches(t,
		isHandleLike,
		func(f reflect.StructField) bool { return f.IsExported() || f.Anonymous })
}

// isHandle reports whether t is an In or an Out. A struct that embeds one has its
// methods too, but not its only field.
func isHandle(t reflect.Type) bool {
	return isHandleLike(t) && reflect.PointerTo(t).Implements(handleType)
}

// isHandleLike also accepts a type defined as a handle, which has no methods.
func isHandleLike(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t.NumField() != 1 {
		return false
	}
	only := t.Field(0).Type
	return only == sourceType || only == sinkType
}

// newHandle returns a handle of type t, of which isHandle is true.
func newHandle(t reflect.Type) handle {
	return reflect.New(t).Interface().(handle)
}

// invalidText finds a string that encoding/json wrote although it is not valid
// UTF-8. It visits what the library visits; it is called after an encoding that
// succeeded, so there are no cycles. The path begins with a dot or a bracket.
func invalidText(v reflect.Value) (path, text string, found bool) {
	if !v.IsValid() {
		return "", "", false
	}
	if v.Kind() == reflect.Interface {
		return invalidText(v.Elem())
	}
	if text, custom := customText(v); custom {
		return "", text, !utf8.ValidString(text)
	}
	switch v.Kind() {
	case reflect.String:
		return "", v.String(), !utf8.ValidString(v.String())
	case reflect.Pointer:
		return invalidText(v.Elem())
	case reflect.Struct:
		return invalidField(v)
	case reflect.Map:
		return invalidEntry(v)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if path, text, found = invalidText(v.Index(i)); found {
				return fmt.Sprintf("[%d]%s", i, path), text, true
			}
		}
	}
	return "", "", false
}

func invalidField(v reflect.Value) (path, text string, found bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag := f.Tag.Get("json")
		if !f.IsExported() && !f.Anonymous || tag == "-" {
			continue
		}
		if path, text, found = invalidText(v.Field(i)); found {
			name, _, _ := strings.Cut(tag, ",")
			switch {
			case name != "":
				path = "." + name + path
			case !f.Anonymous:
				path = "." + f.Name + path
			}
			return path, text, true
		}
	}
	return "", "", false
}

func invalidEntry(v reflect.Value) (path, text string, found bool) {
	for entries := v.MapRange(); entries.Next(); {
		key := entries.Key()
		name := key.String()
		if key.Kind() != reflect.String {
			if name, found = customText(key); !found {
				name = fmt.Sprint(key)
			}
		}
		if !utf8.ValidString(name) {
			return "[key]", name, true
		}
		if path, text, found = invalidText(entries.Value()); found {
			return fmt.Sprintf("[%q]%s", shorten(name), path), text, true
		}
	}
	return "", "", false
}

// encodesItself reports whether t, or a pointer to one, is a json.Marshaler.
func encodesItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(marshalerType)
}

// customText reports whether v encodes itself, and the text it gives if it gives
// text. What MarshalJSON gives is judged by its result: it is not called again.
func customText(v reflect.Value) (text string, custom bool) {
	if v.Kind() == reflect.Pointer && v.IsNil() || !v.CanInterface() {
		return "", false
	}
	if v.Kind() != reflect.Pointer && v.CanAddr() {
		v = v.Addr()
	}
	switch t := v.Type(); {
	case t.Implements(marshalerType):
		return "", true
	case t.Implements(textType):
		b, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		return string(b), err == nil
	default:
		return "", false
	}
}

// at turns a path of invalidText into the beginning of a sentence.
func at(path string) string {
	if path == "" {
		return ""
	}
	return "at " + strings.TrimPrefix(path, ".") + ": "
}
