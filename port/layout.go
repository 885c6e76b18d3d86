package port

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Layout is what [Describe] found out about a worker's struct. It does not
// change and is safe for concurrent use; its methods are as safe as the structs
// and nodes they are given.
type Layout struct {
	typ     reflect.Type
	handles []handleField
	types   map[string]reflect.Type // of the messages of each handle, by TypeKey
	params  params
}

// layouts are the layouts of the types that were described: a type has but one, whatever
// the fields of its values hold.
var layouts sync.Map // reflect.Type to *Layout

// handleField is a handle and the way to it from the worker's struct.
type handleField struct {
	index []int
	spec  Spec
}

// Describe finds the port handles and the arguments of a worker, given its
// struct type or a pointer to it. Handles are exported fields of type [In] or
// [Out], also of structs embedded by value; their options are in a tag:
//
//	`port:"name,limit=100,default=JSON"`
//
// An empty name is the field's name in snake case. The options are limit=N, channel=/NAME,
// which may be given several times, required, keep (see [Spec]) and default=JSON, which comes
// last and takes the rest of the tag. All other exported fields are arguments, see
// [Layout.Params]. The error lists everything that is wrong with the struct.
func Describe(t reflect.Type) (*Layout, error) {
	worker := t
	if t != nil && t.Kind() == reflect.Pointer {
		worker = t.Elem()
	}
	if worker == nil || worker.Kind() != reflect.Struct {
		return nil, fmt.Errorf("describing %v: a worker is a struct or a pointer to one", t)
	}
	if known, ok := layouts.Load(worker); ok {
		return known.(*Layout), nil
	}
	d := describer{layout: &Layout{typ: worker, types: make(map[string]reflect.Type)}, taken: make(map[string]string)}
	d.fields(worker, nil, "", false)
	if err := errors.Join(d.errs...); err != nil {
		return nil, fmt.Errorf("describing worker %s: %w", structName(worker), err)
	}
	d.layout.params.seal()
	layouts.Store(worker, d.layout)
	return d.layout, nil
}

// structName keeps a type without a name from filling an error message.
func structName(t reflect.Type) string { return shorten(t.String()) }

// describer collects a Layout and everything that is wrong.
type describer struct {
	layout *Layout
	taken  map[string]string // what a port or argument is called, to its field
	errs   []error
}

// fields visits a struct: the worker's or one embedded in it at index. The
// arguments of a hidden struct are left out.
func (d *describer) fields(t reflect.Type, index []int, prefix string, hidden bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		f.Index = append(slices.Clone(index), i)
		path := prefix + f.Name
		if err := d.field(f, path, hidden); err != nil {
			d.errs = append(d.errs, fmt.Errorf("field %s: %w", path, err))
		}
	}
}

func (d *describer) field(f reflect.StructField, path string, hidden bool) error {
	if isHandle(f.Type) {
		return d.handle(f, path)
	}
	if _, tagged := f.Tag.Lookup("port"); tagged {
		return fmt.Errorf("it has a port tag but its type is %s: make it a port.In or port.Out, or remove the tag",
			structName(f.Type))
	}
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	hidden = hidden || f.Tag.Get("json") == "-"
	if f.Anonymous && f.Type.Kind() == reflect.Struct && (hidden || name == "" && !encodesItself(f.Type)) {
		d.fields(f.Type, f.Index, path+".", hidden)
		return nil
	}
	if f.Anonymous && f.Type.Kind() == reflect.Pointer && holdsHandle(f.Type) {
		return errors.New("it is embedded as a pointer and has port handles: embed the struct itself")
	}
	if !f.IsExported() || hidden {
		return nil
	}
	if isHandleLike(f.Type) {
		return fmt.Errorf("type %v is a copy of a port handle without its methods: use port.In or port.Out itself, "+
			"or an alias (type A = port.In[T])", f.Type)
	}
	if holdsHandle(f.Type) {
		return errors.New("it holds port handles that cannot be bound: make them fields of the worker, " +
			"or embed their struct by value")
	}
	return d.param(f, path, name, options)
}

func (d *describer) handle(f reflect.StructField, path string) error {
	if !f.IsExported() {
		return errors.New("a port handle must be exported to be bound: begin its name with a capital letter")
	}
	spec, err := fieldSpec(f)
	if err != nil {
		return err
	}
	if err := d.take(fmt.Sprintf("%v port %q", spec.Dir, spec.Name), path); err != nil {
		return err
	}
	d.layout.handles = append(d.layout.handles, handleField{index: f.Index, spec: spec})
	d.layout.types[TypeKey(spec.Dir, spec.Name)] = newHandle(f.Type).elem()
	return nil
}

func (d *describer) param(f reflect.StructField, path, name, options string) error {
	switch f.Type.Kind() {
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf(`a %v cannot be an argument: tag it json:"-" or begin its name with a small letter`, f.Type)
	}
	if f.Anonymous && f.Type.Kind() == reflect.Pointer && name == "" {
		return errors.New(`it is embedded as a pointer: embed the struct itself, or tag it json:"-"`)
	}
	if name == "" {
		name = f.Name
	}
	if err := checkParamName(name); err != nil {
		return err
	}
	if err := d.take(fmt.Sprintf("argument %q", name), path); err != nil {
		return err
	}
	d.layout.params.add(f, name, options)
	return nil
}

// take refuses what another field has taken.
func (d *describer) take(what, path string) error {
	if other, taken := d.taken[what]; taken {
		return fmt.Errorf("%s is already the field %s: give one of them another name", what, other)
	}
	d.taken[what] = path
	return nil
}

// Specs returns the specs of the handles in the order of the struct's fields.
func (l *Layout) Specs() []Spec {
	specs := make([]Spec, len(l.handles))
	for i, h := range l.handles {
		specs[i] = h.spec
		specs[i].Default = slices.Clone(h.spec.Default)
	}
	return specs
}

// TypeKey is how [Layout.Types] names a port.
func TypeKey(dir Dir, name string) string { return dir.String() + " " + name }

// Types returns the Go type of each handle's messages by [TypeKey].
func (l *Layout) Types() map[string]reflect.Type { return maps.Clone(l.types) }

// Type is the worker's struct type.
func (l *Layout) Type() reflect.Type { return l.typ }

// New returns a pointer to a new zero struct of [Layout.Type].
func (l *Layout) New() any { return reflect.New(l.typ).Interface() }

// Copy returns a pointer to a shallow copy of a worker, which is a struct of
// [Layout.Type] or a pointer to one. A nil pointer is copied as the zero value.
func (l *Layout) Copy(worker any) any {
	c := reflect.New(l.typ)
	if v := reflect.Indirect(reflect.ValueOf(worker)); v.IsValid() {
		c.Elem().Set(v)
	}
	return c.Interface()
}

// Bind connects every handle of the struct ptr points to with the queues of a
// run. It replaces what the handles were bound or attached to; copies made
// before keep it. After an error some handles may be bound.
func (l *Layout) Bind(ptr any, b Binder) error {
	v, err := l.value(ptr)
	if err != nil {
		return fmt.Errorf("binding ports: %w", err)
	}
	if b == nil {
		return fmt.Errorf("binding ports of %v: the binder is nil", l.typ)
	}
	for i := range l.handles {
		h := &l.handles[i]
		if err := v.FieldByIndex(h.index).Addr().Interface().(handle).bind(h.spec.Name, b); err != nil {
			return err
		}
	}
	return nil
}

// Attach makes every handle of the struct ptr points to name its port of node,
// for [In.Ref] and [Out.Ref]. It replaces what the handles were bound or
// attached to; copies made before keep it.
func (l *Layout) Attach(ptr, node any) error {
	v, err := l.value(ptr)
	if err != nil {
		return fmt.Errorf("attaching ports: %w", err)
	}
	for i := range l.handles {
		h := &l.handles[i]
		v.FieldByIndex(h.index).Addr().Interface().(handle).attach(h.spec.Name, node)
	}
	return nil
}

// value returns the struct ptr points to, if it is the layout's.
func (l *Layout) value(ptr any) (reflect.Value, error) {
	v := reflect.ValueOf(ptr)
	if !v.IsValid() || v.Kind() != reflect.Pointer || v.Type().Elem() != l.typ {
		return reflect.Value{}, fmt.Errorf("got a %T: pass a *%v", ptr, l.typ)
	}
	if v.IsNil() {
		return reflect.Value{}, fmt.Errorf("got a nil %T: pass a pointer to a struct", ptr)
	}
	return v.Elem(), nil
}
