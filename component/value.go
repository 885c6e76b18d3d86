package component

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/weirworks/weir/port"
)

// decode opens a message for expressions. Integers become int, other numbers float64.
// An integer that an int cannot hold stays the json.Number that it was: it goes on
// unharmed, and arithmetic with it is an error instead of rounding.
func decode(raw json.RawMessage) (any, error) {
	var v any
	if err := port.Decode(raw, &v); err != nil {
		return nil, err
	}
	return exact(v)
}

// exact replaces the numbers in a decoded value.
func exact(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		for i := range v {
			if v[i], err = exact(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = exact(v[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func number(n json.Number) (any, error) {
	if i, err := strconv.Atoi(string(n)); err == nil {
		return i, nil
	}
	if !strings.ContainsAny(string(n), ".eE") {
		return n, nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil, fmt.Errorf("the number %.40s is too large: expressions have 64-bit floating point", n)
	}
	return f, nil
}

// maxResult bounds what an expression makes: values and bytes of text together.
const maxResult = 4 << 20

var errResult = errors.New("the result of the expression is too large")

// encode turns what an expression made into a message.
func encode(v any) (json.RawMessage, error) {
	left := maxResult
	v, err := plain(v, &left)
	if err != nil {
		return nil, err
	}
	return port.Encode(v)
}

// plain returns v as JSON can have it: objects have texts for keys. What expressions
// build may hold one value many times over, so its size is counted on the way.
func plain(v any, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, errResult
	}
	switch v := v.(type) {
	case nil, bool, int:
		return v, nil
	case string:
		if *left -= len(v); *left < 0 {
			return nil, errResult
		}
		return v, nil
	case float64:
		// Written without exponent it would be read as an integer too large for an int.
		if v == math.Trunc(v) && math.Abs(v) >= 1<<63 && !math.IsInf(v, 0) {
			return json.Number(strconv.FormatFloat(v, 'e', -1, 64)), nil
		}
		return v, nil
	}
	switch rv := reflect.ValueOf(v); rv.Kind() {
	case reflect.Slice, reflect.Array:
		return plainList(rv, left)
	case reflect.Map:
		return plainMap(rv, left)
	}
	return v, nil // a time or a number; or a function, which port.Encode refuses
}

func plainList(v reflect.Value, left *int) (any, error) {
	list := make([]any, v.Len())
	for i := range list {
		var err error
		if list[i], err = plain(v.Index(i).Interface(), left); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func plainMap(v reflect.Value, left *int) (any, error) {
	m := make(map[string]any, v.Len())
	for entries := v.MapRange(); entries.Next(); {
		key := fmt.Sprint(entries.Key().Interface())
		if *left -= len(key); *left < 0 {
			return nil, errResult
		}
		var err error
		if m[key], err = plain(entries.Value().Interface(), left); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// settle returns v as it is after a way through JSON, and that JSON, so that a value kept
// in a variable and one read from the state do not differ.
func settle(v any) (any, json.RawMessage, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, nil, err
	}
	switch v := v.(type) {
	case nil, bool, int, string:
		return v, raw, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int(v), raw, nil
		}
		return v, raw, nil
	}
	v, err = decode(raw)
	return v, raw, err
}

// maxKey is the longest key that is its own name in the state.
const maxKey = 64

// keyOf returns a text that is the same for equal values and differs for others.
func keyOf(v any) (string, error) {
	raw, err := encode(v)
	if err != nil {
		return "", err
	}
	if len(raw) <= maxKey {
		return string(raw), nil
	}
	sum := sha256.Sum256(raw)
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:]), nil // no JSON begins with #
}

// compare orders two numbers or two texts.
func compare(a, b any) (int, error) {
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			return strings.Compare(s, t), nil
		}
	}
	if m, ok := a.(int); ok {
		if n, ok := b.(int); ok {
			return cmp.Compare(m, n), nil
		}
	}
	x, y := rational(a), rational(b)
	if x == nil || y == nil {
		return 0, fmt.Errorf("cannot order %s and %s: keys must be all numbers or all texts", kindOf(a), kindOf(b))
	}
	return x.Cmp(y), nil
}

// rational returns a number without rounding it, or nil.
func rational(v any) *big.Rat {
	switch v := v.(type) {
	case int:
		return new(big.Rat).SetInt64(int64(v))
	case float64:
		return new(big.Rat).SetFloat64(v) // nil if it is not finite
	case json.Number:
		if i, ok := new(big.Int).SetString(string(v), 10); ok {
			return new(big.Rat).SetInt(i)
		}
	}
	return nil
}

// kindOf is what people call the type of a decoded value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case int, float64, json.Number:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return fmt.Sprintf("a %T", v)
}
