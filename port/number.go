package port

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// number is what Go numbers of a format may be.
type number struct {
	kind     reflect.Kind // Int, Uint or Float64
	bits     int
	min, max any
}

// numbers are the formats of a Schema that tell which numbers encoding/json takes for a Go type, called as in OpenAPI.
var numbers = map[string]number{
	"int8":   {reflect.Int, 8, math.MinInt8, math.MaxInt8},
	"int16":  {reflect.Int, 16, math.MinInt16, math.MaxInt16},
	"int32":  {reflect.Int, 32, math.MinInt32, math.MaxInt32},
	"int64":  {reflect.Int, 64, int64(math.MinInt64), int64(math.MaxInt64)},
	"uint8":  {reflect.Uint, 8, 0, math.MaxUint8},
	"uint16": {reflect.Uint, 16, 0, math.MaxUint16},
	"uint32": {reflect.Uint, 32, 0, uint32(math.MaxUint32)},
	"uint64": {reflect.Uint, 64, 0, uint64(math.MaxUint64)},
	"float":  {reflect.Float64, 32, float32(-math.MaxFloat32), float32(math.MaxFloat32)},
	"double": {reflect.Float64, 64, -math.MaxFloat64, math.MaxFloat64},
}

// formatOf is the format of numbers of a kind, "" if there is none. An int has 64 bits: where it has fewer, none is refused that decodes.
func formatOf(k reflect.Kind) string {
	switch k {
	case reflect.Int:
		return "int64"
	case reflect.Uint, reflect.Uintptr:
		return "uint64"
	case reflect.Float32:
		return "float"
	case reflect.Float64:
		return "double"
	}
	if _, known := numbers[k.String()]; known {
		return k.String()
	}
	return ""
}

// parse tells what is wrong with a number in decimal digits: strconv.ErrRange, or strconv.ErrSyntax.
func (n number) parse(text string) (err error) {
	switch {
	case n.kind == reflect.Int:
		_, err = strconv.ParseInt(text, 10, n.bits)
	case n.kind == reflect.Uint && strings.HasPrefix(text, "-"):
		err = strconv.ErrRange
	case n.kind == reflect.Uint:
		_, err = strconv.ParseUint(text, 10, n.bits)
	default:
		_, err = strconv.ParseFloat(text, n.bits)
	}
	return err
}

// outOfRange says what numbers may be.
func (n number) outOfRange() string {
	return fmt.Sprintf("is out of range: use %v to %v", n.min, n.max)
}

// notOfFormat says why a JSON value does not fit a format; "" if it does. Numbers in quotes are those of fields with the option string.
func notOfFormat(raw json.RawMessage, format string) string {
	n, known := numbers[format]
	switch {
	case !known:
		return ""
	case raw[0] == '"':
		var text string
		if json.Unmarshal(raw, &text) != nil || text == "null" {
			return ""
		}
		why := n.notText(text)
		if !digitFirst(text) || why == n.notNumber() {
			return n.notNumber() + " in quotes"
		}
		return why
	case !digitFirst(string(raw)): // what is no number its type tells
		return ""
	case errors.Is(n.parse(string(raw)), strconv.ErrRange):
		return n.outOfRange()
	}
	return ""
}

func digitFirst(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9')
}

// notText says why a text is no number of the format; "" if it is one.
func (n number) notText(text string) string {
	switch err := n.parse(text); {
	case errors.Is(err, strconv.ErrRange):
		return n.outOfRange()
	case err != nil:
		return n.notNumber()
	}
	return ""
}

func (n number) notNumber() string {
	if n.kind == reflect.Float64 {
		return "is not a number"
	}
	return "is not a whole number"
}

// notName says why the name of a property does not fit the schema of names; "" if it does.
func (s *Schema) notName(name string) string {
	if s == nil {
		return ""
	}
	n, known := numbers[s.Format]
	if !known {
		return ""
	}
	return n.notText(name)
}

// quoted returns the type of a field that is to be in quotes, as encoding/json has it: of scalars alone, and pointers to them.
func quoted(f reflect.StructField) (reflect.Type, bool) {
	t := f.Type
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	scalar := t.Kind() == reflect.String || t.Kind() == reflect.Bool || formatOf(t.Kind()) != ""
	return t, scalar && slices.Contains(strings.Split(f.Tag.Get("json"), ",")[1:], "string")
}

// quotedSchema is what is known of a value of that type in quotes.
func quotedSchema(t reflect.Type) *Schema {
	p := reflect.PointerTo(t)
	switch {
	case p.Implements(ownJSON) || p.Implements(ownText) || t == reflect.TypeFor[json.Number]():
		return &Schema{}
	case t.Kind() == reflect.Bool:
		return &Schema{Type: KindString, Enum: []json.RawMessage{[]byte(`"true"`), []byte(`"false"`), []byte(`"null"`)}}
	}
	return &Schema{Type: KindString, Format: formatOf(t.Kind())}
}
