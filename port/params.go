package port

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// params are the arguments of a worker: its exported fields without the handles.
// They are encoded as a struct of their own, made of those fields alone, so that
// encoding/json applies the options of their tags.
type params struct {
	index  [][]int // from the worker's struct, in the order of shadow's fields
	names  []string
	fields []reflect.StructField
	shadow reflect.Type // nil when there are none
	omit   []bool       // of each argument: it is left out when it is empty
	texts  bool         // all are strings that encoding/json writes as they are, if their values are plain
}

// checkParamName refuses names that encoding/json would replace in silence.
func checkParamName(name string) error {
	bad := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
	}
	if strings.ContainsFunc(name, bad) {
		return fmt.Errorf("json tag: %q cannot be the name of an argument: use letters, digits and _", shorten(name))
	}
	return nil
}

func (p *params) add(f reflect.StructField, name, options string) {
	tag := name
	if options != "" || name == "-" {
		tag += "," + options
	}
	isText := f.Type == reflect.TypeFor[string]() && plain(name) && (options == "" || options == "omitempty")
	p.texts = isText && (p.texts || len(p.names) == 0)
	p.omit = append(p.omit, options == "omitempty")
	p.index = append(p.index, f.Index)
	p.names = append(p.names, name)
	p.fields = append(p.fields, reflect.StructField{
		Name: "F" + strconv.Itoa(len(p.fields)),
		Type: f.Type,
		Tag:  reflect.StructTag("json:" + strconv.Quote(tag)),
	})
}

// seal builds the shadow once all fields are added.
func (p *params) seal() {
	if len(p.fields) > 0 {
		p.shadow = reflect.StructOf(p.fields)
	}
}

// Params returns the arguments of a job: the exported fields, without the
// handles, of the struct ptr points to, as a JSON object. They are named and
// left out as encoding/json does by their json tags. It is nil when the worker
// has none.
func (l *Layout) Params(ptr any) (json.RawMessage, error) {
	v, err := l.value(ptr)
	if err != nil {
		return nil, fmt.Errorf("encoding arguments: %w", err)
	}
	p := &l.params
	if p.shadow == nil {
		return nil, nil
	}
	if raw := p.encodeTexts(v); raw != nil {
		return raw, nil
	}
	shadow := reflect.New(p.shadow).Elem()
	for i, index := range p.index {
		shadow.Field(i).Set(v.FieldByIndex(index))
	}
	raw, err := encode(shadow.Addr().Interface(), l.typ.String())
	if err != nil {
		return nil, fmt.Errorf("encoding arguments: %w", err)
	}
	return raw, nil
}

// encodeTexts is what encoding/json returns for the arguments of a struct, nil if they are
// not all plain strings.
func (p *params) encodeTexts(v reflect.Value) json.RawMessage {
	if !p.texts {
		return nil
	}
	out := append(make([]byte, 0, 128), '{')
	for i, index := range p.index {
		text := v.FieldByIndex(index).String()
		if !plain(text) {
			return nil
		}
		if text == "" && p.omit[i] {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), p.names[i]...), `":"`...)
		out = append(append(out, text...), '"')
	}
	return append(out, '}')
}

// setTexts sets arguments from what encodeTexts returns. It sets none and returns false for
// anything else.
func (p *params) setTexts(v reflect.Value, raw []byte) bool {
	if !p.texts {
		return false
	}
	values := make([][]byte, len(p.names))
	before := byte('{')
	for len(raw) > 1 && raw[0] == before {
		var name []byte
		name, raw = cutQuoted(raw[1:])
		i := slices.Index(p.names, string(name))
		if i < 0 || len(raw) == 0 || raw[0] != ':' {
			return false
		}
		values[i], raw = cutQuoted(raw[1:])
		before = ','
	}
	if before == '{' || string(raw) != "}" {
		return false
	}
	for i, value := range values {
		if value != nil {
			v.FieldByIndex(p.index[i]).SetString(string(value))
		}
	}
	return true
}

// cutQuoted cuts a plain string in quotes from the beginning of a JSON text; text is nil for none.
func cutQuoted(raw []byte) (text, rest []byte) {
	if len(raw) == 0 || raw[0] != '"' {
		return nil, nil
	}
	text, rest, ok := bytes.Cut(raw[1:], []byte{'"'})
	if !ok || !plain(text) {
		return nil, nil
	}
	return text, rest
}

// wrongParam is an error that wraps ErrParams and says the rest itself.
type wrongParam string

// Error implements error.
func (w wrongParam) Error() string { return string(w) }

// Unwrap returns ErrParams.
func (wrongParam) Unwrap() error { return ErrParams }

// SetParams sets the fields of the struct ptr points to from what
// [Layout.Params] returned. Fields that raw does not name keep their value; nil
// and null name none. Names must match exactly, unknown ones are an error that wraps [ErrParams]. After
// an error the struct is as before.
func (l *Layout) SetParams(ptr any, raw json.RawMessage) error {
	v, err := l.value(ptr)
	if err != nil {
		return fmt.Errorf("setting arguments: %w", err)
	}
	if len(raw) == 0 {
		return nil
	}
	if l.params.setTexts(v, raw) {
		return nil
	}
	var given map[string]json.RawMessage
	if err := decode(raw, &given, "an object of arguments of "+l.typ.String()); err != nil {
		return fmt.Errorf("setting arguments: %w", err)
	}
	p := &l.params
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(p.names, name) {
			return wrongParam(fmt.Sprintf("setting arguments: worker %v has no argument %q: %s", l.typ, shorten(name), Suggest(name, p.names)))
		}
	}
	if p.shadow == nil {
		return nil
	}
	shadow := reflect.New(p.shadow)
	if err := decode(raw, shadow.Interface(), l.typ.String()); err != nil {
		return fmt.Errorf("setting arguments: %w", err)
	}
	for i, index := range p.index {
		if _, ok := given[p.names[i]]; ok {
			v.FieldByIndex(index).Set(shadow.Elem().Field(i))
		}
	}
	return nil
}
