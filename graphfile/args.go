package graphfile

import (
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

// worker makes a worker of a prototype with the args of a node, unless these are open, and tells whether it could. If it could not,
// it tells the problems, of which each arg has its own, and returns a worker with the same ports, or nil if args decide about them.
func (b *builder) worker(n *Node, prototype any, path string, open bool) (w any, fits bool) {
	if r, ok := prototype.(*job.Registered); ok {
		w, err := r.With(n.Args)
		if err == nil && !open {
			return w, true
		} else if err != nil && !open {
			b.p.add(n.Pos, path+".args", "%v", err)
		}
		return r, false
	}
	layout, err := port.Describe(reflect.TypeOf(prototype))
	if err != nil {
		b.p.add(n.Pos, path+".type", "%v", err)
		return nil, false
	}
	if open {
		return bare(prototype, layout, n), false
	}
	path += ".args"
	w = layout.Copy(prototype)
	if err := layout.SetParams(w, n.Args); err != nil {
		if !b.wrongArgs(n, path, layout) {
			b.p.add(n.Pos, path, "%s", argText(err, nil))
		}
		return bare(prototype, layout, n), false
	}
	if v, ok := w.(Validator); ok {
		if err := v.Validate(); err != nil {
			b.p.add(n.Pos, path, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
			return bare(prototype, layout, n), false
		}
	}
	return w, true
}

// bare is a worker without args, of which a plan knows the ports; nil if args decide about them.
func bare(prototype any, layout *port.Layout, n *Node) any {
	w := layout.Copy(prototype)
	_, declares := w.(job.PortDeclarer)
	_, nests := w.(graph.Composite)
	if _, err := job.NodeOf(w, n.Name, ""); declares || nests || err != nil {
		return nil
	}
	return w
}

// wrongArgs tries the args one by one, and tells whether one of them is wrong by itself.
func (b *builder) wrongArgs(n *Node, path string, layout *port.Layout) bool {
	var args map[string]json.RawMessage
	if json.Unmarshal(n.Args, &args) != nil {
		return false
	}
	found := false
	for _, name := range slices.Sorted(maps.Keys(args)) {
		one, err := json.Marshal(map[string]json.RawMessage{name: args[name]})
		if err == nil {
			err = layout.SetParams(layout.New(), one)
		}
		if err != nil {
			found = true
			b.p.add(n.Pos, path+"."+show(name), "%s", argText(err, args[name]))
		}
	}
	return found
}

// argText says what is wrong with an arg in the words of those who write files.
func argText(err error, raw json.RawMessage) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		kind, literal, isNumber := strings.Cut(wrong.Value, " ")
		got := words(kind)
		if isNumber {
			got = literal
		}
		if t, ok := reflect.New(wrong.Type).Interface().(encoding.TextUnmarshaler); ok {
			text := "is " + got + ", use a text"
			if err := t.UnmarshalText(raw); err != nil {
				text += ": " + err.Error() // it may say how
			}
			return text
		}
		return "is " + got + ", use " + kindWords(wrong.Type.Kind())
	}
	text := err.Error()
	if errors.Is(err, port.ErrEncoding) {
		_, text, _ = strings.Cut(text, port.ErrEncoding.Error()+": ")
	}
	return strings.ReplaceAll(strings.TrimPrefix(text, "setting arguments: "), "\n", "; ")
}

// kindWords names a Go type as the file's writers would.
func kindWords(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return words("string")
	case reflect.Bool:
		return words("boolean")
	case reflect.Float32, reflect.Float64:
		return words("number")
	case reflect.Slice, reflect.Array:
		return words("array")
	case reflect.Map, reflect.Struct:
		return words("object")
	default:
		return words("integer")
	}
}
