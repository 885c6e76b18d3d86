package port

import (
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

// SetParams sets the fields of the struct ptr points to from what
// [Layout.Params] returned. Fields that raw does not name keep their value; nil
// and null name none. Names must match exactly, unknown ones are an error. After
// an error the struct is as before.
func (l *Layout) SetParams(ptr any, raw json.RawMessage) error {
	v, err := l.value(ptr)
	if err != nil {
		return fmt.Errorf("setting arguments: %w", err)
	}
	if len(raw) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	if err := decode(raw, &given, "an object of arguments of "+l.typ.String()); err != nil {
		return fmt.Errorf("setting arguments: %w", err)
	}
	p := &l.params
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(p.names, name) {
			return fmt.Errorf("setting arguments: worker %v has no argument %q: %s",
				l.typ, shorten(name), Suggest(name, p.names))
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
