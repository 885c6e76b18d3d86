package port

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
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

// beyond returns the range of a format if a JSON number is beyond it, else "".
func beyond(raw json.RawMessage, format string) string {
	n, known := numbers[format]
	if !known || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return ""
	}
	var err error
	switch text := string(raw); n.kind {
	case reflect.Int:
		_, err = strconv.ParseInt(text, 10, n.bits)
	case reflect.Uint:
		if _, err = strconv.ParseUint(text, 10, n.bits); raw[0] == '-' {
			err = strconv.ErrRange
		}
	default:
		_, err = strconv.ParseFloat(text, n.bits)
	}
	if !errors.Is(err, strconv.ErrRange) { // what is no number of that kind its type tells
		return ""
	}
	return fmt.Sprintf("%v to %v", n.min, n.max)
}
