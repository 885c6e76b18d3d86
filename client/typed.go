package client

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// Send is Handle.Write for messages of one Go type. If engines have registered another type for the port, or for one
// that the port of a graph leads to, the error wraps port.ErrEncoding and nothing is written.
func Send[T any](ctx context.Context, h *Handle, in string, messages ...T) error {
	if err := h.checkType(ctx, job.PortRef{Job: h.id, Dir: port.Input, Port: in}, reflect.TypeFor[T]()); err != nil {
		return fmt.Errorf("sending to port %q of job %s: %w", in, h.id, err)
	}
	all := make([]any, len(messages))
	for i, m := range messages {
		all[i] = m
	}
	return h.Write(ctx, in, all...)
}

// Receive removes the oldest message of an Out port, as Handle.Read does: when the port is empty it returns its default, and ok
// is false if it has none. If engines have registered another type for the port the error wraps port.ErrEncoding and the message stays. Of an Out port of
// a graph it is not known which types come there: what is received is decoded as T, whatever it was.
func Receive[T any](ctx context.Context, h *Handle, out string) (v T, ok bool, err error) {
	if err := h.checkType(ctx, job.PortRef{Job: h.id, Dir: port.Output, Port: out}, reflect.TypeFor[T]()); err != nil {
		return v, false, fmt.Errorf("receiving from port %q of job %s: %w", out, h.id, err)
	}
	ok, err = h.Read(ctx, out, &v)
	return v, ok, err
}

// checkType refuses a Go type that a port was not registered with. What the handle knows may be old, so it refuses nothing without
// asking again.
func (h *Handle) checkType(ctx context.Context, ref job.PortRef, typ reflect.Type) error {
	for _, fresh := range []bool{false, true} {
		takers, err := h.takers(ctx, ref, fresh)
		if err != nil {
			return err
		}
		wrong := ""
		for _, t := range takers {
			if wrong == "" && !t.any && !sameType(typ, t.typ) {
				wrong = t.typ
			}
		}
		switch {
		case wrong == "":
			return nil
		case fresh:
			return fmt.Errorf("%w: the port has messages of type %s, not of %s", port.ErrEncoding, wrong, typ)
		}
	}
	return nil
}

// sameType tells whether a type is what a port was registered with. Types of different packages may have one name, as a program that
// does not link the worker has a type of its own; types without a name, and those that hold any JSON, are taken as they are.
func sameType(typ reflect.Type, registered string) bool {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	registered = strings.TrimLeft(registered, "*")
	base := func(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
	anything := typ.Kind() == reflect.Interface || typ.String() == "json.RawMessage" || typ.Name() == ""
	open := registered == "" || registered == "json.RawMessage" || strings.ContainsAny(registered, "[{ ") || registered == "any"
	return anything || open || base(typ.String()) == base(registered)
}
