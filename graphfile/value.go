package graphfile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// kind is the kind of a JSON value.
type kind byte

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// value is a JSON value and where it stands in a file. Values are shared and not
// changed once they are made.
type value struct {
	kind    kind
	text    string // of a text; else the JSON of a number, true or false
	items   []*value
	members []member
	pos     Pos
	depth   int // of the lists and maps, 0 for other values
	size    int // about the bytes that it takes with everything in it
}

// member is one entry of an object.
type member struct {
	key string
	pos Pos // of the key
	val *value
}

func textValue(s string) *value { return &value{kind: text, text: s, size: len(s) + 1} }

func intValue(n int) *value {
	s := strconv.Itoa(n)
	return &value{kind: number, text: s, size: len(s)}
}

func boolValue(b bool) *value { return &value{kind: boolean, text: strconv.FormatBool(b), size: 4} }

func listValue(items ...*value) *value {
	v := &value{kind: list, items: items}
	v.measure()
	return v
}

// measure sets depth and size from what is inside.
func (v *value) measure() {
	v.depth, v.size = 1, 2
	for _, item := range v.items {
		v.depth = max(v.depth, item.depth+1)
		v.size += item.size + 1
	}
	for _, m := range v.members {
		v.depth = max(v.depth, m.val.depth+1)
		v.size += m.val.size + len(m.key) + 3
	}
}

// put appends a member to an object under construction; nil is not put.
func (v *value) put(key string, val *value) {
	if val == nil {
		return
	}
	v.kind = object
	v.members = append(v.members, member{key: key, val: val})
	v.depth = max(v.depth, val.depth+1)
	v.size += val.size + len(key) + 3
}

// get returns the value of a key, nil if there is none or v is no object.
func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for _, m := range v.members {
		if m.key == key {
			return m.val
		}
	}
	return nil
}

// without returns the object without some keys, nil if nothing is left.
func (v *value) without(keys ...string) *value {
	if v == nil {
		return nil
	}
	left := &value{kind: object, pos: v.pos}
	for _, m := range v.members {
		if !slices.Contains(keys, m.key) {
			left.members = append(left.members, m)
		}
	}
	if len(left.members) == 0 {
		return nil
	}
	left.measure()
	return left
}

func (v *value) is(k kind) bool { return v != nil && v.kind == k }

// raw is the value as compact JSON; nil for a value that is not there.
func (v *value) raw() json.RawMessage {
	if v == nil {
		return nil
	}
	return v.append(make([]byte, 0, v.size))
}

// rawObject is raw for objects, of which an empty one is none.
func (v *value) rawObject() json.RawMessage {
	if !v.is(object) || len(v.members) == 0 {
		return nil
	}
	return v.raw()
}

func (v *value) append(b []byte) []byte {
	switch v.kind {
	case null:
		return append(b, "null"...)
	case text:
		return append(b, quote(v.text)...)
	case list:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.append(b)
		}
		return append(b, ']')
	case object:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, quote(m.key)...), ':')
			b = m.val.append(b)
		}
		return append(b, '}')
	default:
		return append(b, v.text...)
	}
}

// quote is a text as JSON.
func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return []byte(`""`) // texts always encode
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
	for odd, escaped := range map[string]string{"\x7f": `\u007f`, "\ufeff": `\ufeff`} { // refused in YAML
		out = bytes.ReplaceAll(out, []byte(odd), []byte(escaped))
	}
	return out
}

// mapTexts returns the value with each text, but no key, replaced.
func (v *value) mapTexts(replace func(string) *value) *value {
	switch v.kind {
	case text:
		w := replace(v.text)
		if w.pos == (Pos{}) {
			moved := *w
			moved.pos = v.pos
			return &moved
		}
		return w
	case list:
		w := &value{kind: list, pos: v.pos, items: make([]*value, len(v.items))}
		for i, item := range v.items {
			w.items[i] = item.mapTexts(replace)
		}
		w.measure()
		return w
	case object:
		w := &value{kind: object, pos: v.pos, members: slices.Clone(v.members)}
		for i, m := range v.members {
			w.members[i].val = m.val.mapTexts(replace)
		}
		w.measure()
		return w
	default:
		return v
	}
}

// eachText calls f with each text inside of v, but no key.
func (v *value) eachText(f func(pos Pos, s string)) {
	switch v.kind {
	case text:
		f(v.pos, v.text)
	case list:
		for _, item := range v.items {
			item.eachText(f)
		}
	case object:
		for _, m := range v.members {
			m.val.eachText(f)
		}
	default:
	}
}

// plain is the value as encoding/json would give it, for the validator. Numbers
// with a fraction or many digits are rounded: the validator sees no arguments,
// and would expand 1e999999999 to its digits.
func (v *value) plain() any {
	switch v.kind {
	case boolean:
		return v.text == "true"
	case number:
		if len(v.text) < 18 && !strings.ContainsAny(v.text, ".eE") {
			return json.Number(v.text)
		}
		f, _ := strconv.ParseFloat(v.text, 64)
		return max(-maxFloat, min(maxFloat, f))
	case text:
		return v.text
	case list:
		items := make([]any, len(v.items))
		for i, item := range v.items {
			items[i] = item.plain()
		}
		return items
	case object:
		members := make(map[string]any, len(v.members))
		for _, m := range v.members {
			members[m.key] = m.val.plain()
		}
		return members
	default:
		return nil
	}
}

// maxFloat bounds what the validator has to calculate with.
const maxFloat = 1e18

// integer returns a number as int; ok is false if it is not a whole one that fits.
func (v *value) integer() (n int, ok bool) {
	if !v.is(number) {
		return 0, false
	}
	if n, err := strconv.Atoi(v.text); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || f != float64(int(f)) || f > maxInt || f < -maxInt {
		return 0, false
	}
	return int(f), true
}

// maxInt is the greatest limit and the greatest number of instances.
const maxInt = 1<<31 - 1
