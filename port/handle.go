package port

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"unicode/utf8"
)

// handle is what a [Layout] needs of a field. Only *In[T] and *Out[T] have it.
type handle interface {
	// elem is the type of the messages.
	elem() reflect.Type
	dir() Dir
	attach(name string, node any)
	bind(name string, b Binder) error
}

// In is the handle of an input port whose messages are of type T, a field of a
// worker's struct. It may be copied; copies share the queue. Its zero value is
// unbound: reading from it returns [ErrUnbound]. It is as safe for concurrent
// use as the [Reader] it is bound to.
type In[T any] struct {
	s *source
}

// source is replaced, never changed, when a handle is bound or attached, so
// copies made before keep what they had.
type source struct {
	name string
	node any
	r    Reader
}

// Read takes the next message. ok is false when there is nothing to read now;
// [In.Done] tells whether that is for good. A message that is not a T is taken
// nevertheless, and the error wraps [ErrEncoding]: a worker that continues, as a loop over [In.All]
// may, skips it; one that returns the error fails and finds it again. A json.RawMessage is handed
// out as it is stored.
func (in In[T]) Read() (v T, ok bool, err error) {
	if !in.bound() {
		return v, false, in.unbound()
	}
	raw, ok, err := in.s.r.Read()
	return open[T](in.s.name, raw, ok, err)
}

// Peek returns what [In.Read] would, and leaves the message in place.
func (in In[T]) Peek() (v T, ok bool, err error) {
	if !in.bound() {
		return v, false, in.unbound()
	}
	raw, ok, err := in.s.r.Peek()
	return open[T](in.s.name, raw, ok, err)
}

// All reads messages until the port is empty, or the run has written so much that its commit
// is full enough: a run that then returns nil goes on in another one with the rest. A port's
// default is not among them. A message that is not a T is yielded as an error that wraps [ErrEncoding], and the
// loop may go on with the next: it skips that one. Any other error is the last element.
func (in In[T]) All() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if !in.bound() {
			var zero T
			yield(zero, in.unbound())
			return
		}
		for in.s.r.Len() > 0 {
			raw, ok, err := in.s.r.Read()
			if err == nil && !ok {
				return
			}
			v, _, unfit := open[T](in.s.name, raw, ok, err)
			if !yield(v, unfit) || err != nil || full(in.s.r) {
				return
			}
		}
	}
}

// full tells whether the run behind a queue has written about as much as one commit should.
func full(r Reader) bool {
	run, ok := r.(interface{ Full() bool })
	return ok && run.Full()
}

// Len is the number of messages that wait to be read; 0 when unbound.
func (in In[T]) Len() int {
	if !in.bound() {
		return 0
	}
	return in.s.r.Len()
}

// Done reports that the port is drained and all its sources are closed: nothing
// will ever come. It is false when unbound.
func (in In[T]) Done() bool {
	return in.bound() && in.s.r.Done()
}

// Name is the port's name, empty for a handle that was neither bound nor
// attached.
func (in In[T]) Name() string {
	if in.s == nil {
		return ""
	}
	return in.s.name
}

// Ref returns the node the handle was attached to by [Layout.Attach], nil for
// none, and the port's name.
func (in In[T]) Ref() (node any, name string) {
	if in.s == nil {
		return nil, ""
	}
	return in.s.node, in.s.name
}

func (in In[T]) bound() bool { return in.s != nil && in.s.r != nil }

func (in In[T]) unbound() error {
	return unbound(reflect.TypeFor[In[T]](), in.Name())
}

func (in *In[T]) elem() reflect.Type { return reflect.TypeFor[T]() }
func (in *In[T]) dir() Dir           { return Input }

func (in *In[T]) attach(name string, node any) {
	in.s = &source{name: name, node: node}
}

func (in *In[T]) bind(name string, b Binder) error {
	r := b.BindIn(name)
	if r == nil {
		return fmt.Errorf("binding input port %q: the binder %T has no reader for it", name, b)
	}
	if v, ok := r.(VersionedReader); ok {
		v.Reads(FormatOf((*T)(nil)))
	}
	in.s = &source{name: name, r: r}
	return nil
}

// Out is the handle of an output port whose messages are of type T, a field of
// a worker's struct. It may be copied; copies share the queue. Its zero value is
// unbound: writing to it returns [ErrUnbound]. It is as safe for concurrent use
// as the [Writer] it is bound to.
type Out[T any] struct {
	s *sink
}

// sink is replaced, never changed, as source is.
type sink struct {
	name string
	node any
	w    Writer
}

// Write appends a message. The error wraps [ErrEncoding] when v cannot be one.
func (out Out[T]) Write(v T) error {
	if !out.bound() {
		return out.unbound()
	}
	raw, err := Encode(v)
	if err == nil {
		err = out.s.w.Write(raw)
	}
	return out.wrap("writing to", err)
}

// WriteKey appends a message that goes to the same one of several consumers as
// all messages of that key.
func (out Out[T]) WriteKey(key string, v T) error {
	if !out.bound() {
		return out.unbound()
	}
	if !utf8.ValidString(key) {
		return out.wrap("writing to", fmt.Errorf("%w: key %q is not valid UTF-8", ErrEncoding, shorten(key)))
	}
	raw, err := Encode(v)
	if err == nil {
		err = out.s.w.WriteKey(key, raw)
	}
	return out.wrap("writing to", err)
}

// Close says that no message follows.
func (out Out[T]) Close() error {
	if !out.bound() {
		return out.unbound()
	}
	return out.wrap("closing", out.s.w.Close())
}

// Name is the port's name, empty for a handle that was neither bound nor
// attached.
func (out Out[T]) Name() string {
	if out.s == nil {
		return ""
	}
	return out.s.name
}

// Ref returns the node the handle was attached to by [Layout.Attach], nil for
// none, and the port's name.
func (out Out[T]) Ref() (node any, name string) {
	if out.s == nil {
		return nil, ""
	}
	return out.s.node, out.s.name
}

func (out Out[T]) bound() bool { return out.s != nil && out.s.w != nil }

func (out Out[T]) unbound() error {
	return unbound(reflect.TypeFor[Out[T]](), out.Name())
}

func (out Out[T]) wrap(doing string, err error) error {
	if err != nil {
		return fmt.Errorf("%s port %q: %w", doing, out.s.name, err)
	}
	return nil
}

func (out *Out[T]) elem() reflect.Type { return reflect.TypeFor[T]() }
func (out *Out[T]) dir() Dir           { return Output }

func (out *Out[T]) attach(name string, node any) {
	out.s = &sink{name: name, node: node}
}

func (out *Out[T]) bind(name string, b Binder) error {
	w := b.BindOut(name)
	if w == nil {
		return fmt.Errorf("binding output port %q: the binder %T has no writer for it", name, b)
	}
	if f := FormatOf((*T)(nil)); f.Version > 1 {
		if v, ok := w.(VersionedWriter); ok {
			w = v.At(f.Version)
		}
	}
	out.s = &sink{name: name, w: w}
	return nil
}

// open turns what a Reader returned into a T.
func open[T any](name string, raw json.RawMessage, ok bool, err error) (T, bool, error) {
	var v, zero T
	if err == nil && ok {
		if p, isRaw := any(&v).(*json.RawMessage); isRaw {
			*p = raw
		} else {
			err = Decode(raw, &v)
		}
	}
	if err != nil {
		return zero, false, fmt.Errorf("reading from port %q: %w", name, err)
	}
	return v, ok, nil
}

func unbound(t reflect.Type, name string) error {
	if name == "" {
		return fmt.Errorf("%v: %w", t, ErrUnbound)
	}
	return fmt.Errorf("port %q: %w", name, ErrUnbound)
}
