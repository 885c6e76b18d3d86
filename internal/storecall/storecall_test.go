package storecall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/internal/store"
	"github.com/weirworks/weir/internal/storecall"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/schedule"
)

// private are types with fields that only the side which made them needs: the function that made Converted, and what an engine
// remembers of a repetition.
var private = []reflect.Type{reflect.TypeFor[store.Retyped](), reflect.TypeFor[job.Repeats]()}

// withheld are the fields that stay beside the store: with the token of a run whoever may run jobs could end one of others,
// and what an engine counts is in nothing that the store answers.
var withheld = []string{"Info.Token", "EngineInfo.Activity"}

// fill puts something into each field of a value, so that what is left out on the way is missed.
func fill(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 3, 10, 13, 45, 30, 123456789, time.UTC)))
			return
		}
		if v.Type() == reflect.TypeFor[schedule.Schedule]() {
			s, err := schedule.Parse(schedule.Cron, "0 30 4 * * 1-5", "", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			v.Set(reflect.ValueOf(s))
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("cbor") == "-" {
				if !slices.Contains(withheld, v.Type().Name()+"."+f.Name) {
					t.Errorf("%s has the field %s, which is not sent", v.Type(), f.Name)
				}
			} else if f.IsExported() {
				fill(t, v.Field(i), depth)
			} else if !slices.Contains(private, v.Type()) {
				t.Errorf("%s has the field %s, which cannot be sent", v.Type(), f.Name)
			}
		}
	case reflect.Pointer:
		if depth < 3 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte("\x01{\"by\":\"<&>\"}\n{\"a\": 1}"))
		} else if depth < 3 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(t, v.Index(0), depth+1)
			fill(t, v.Index(1), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth+1)
		}
	case reflect.Map:
		if depth < 3 {
			v.Set(reflect.MakeMap(v.Type()))
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(t, key, depth+1)
			fill(t, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]any{"n": json.Number("12345678901234567890.5"), "s": "x", "l": []any{true, nil}}))
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(-1 << 40)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint(111)
	case reflect.Float64:
		v.SetFloat(0.1)
	default:
		t.Errorf("a %s cannot be sent", v.Type())
	}
}

// Whatever a call asks and answers comes out as it went in.
func TestNothingIsLostOnTheWay(t *testing.T) {
	t.Parallel()
	for _, c := range storecall.All() {
		for _, typ := range []reflect.Type{c.In, c.Out} {
			in, out := reflect.New(typ), reflect.New(typ)
			fill(t, in.Elem(), 0)
			raw, err := storecall.Encode(in.Interface())
			if err == nil {
				err = storecall.Decode(raw, out.Interface())
			}
			if err != nil {
				t.Errorf("%s: %s: %v", c.Name, typ, err)
			} else if !reflect.DeepEqual(in.Interface(), out.Interface()) {
				t.Errorf("%s: %s was\n%+v\nis\n%+v", c.Name, typ, in.Elem(), out.Elem())
			}
			zero := reflect.New(typ)
			raw, err = storecall.Encode(reflect.Zero(typ).Interface())
			if err == nil {
				err = storecall.Decode(raw, zero.Interface())
			}
			if err != nil || !zero.Elem().IsZero() {
				t.Errorf("%s: the zero of %s comes out as %+v, %v", c.Name, typ, zero.Elem(), err)
			}
		}
	}
}

// Errors keep what they say, and what they wrap.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, of := range []error{job.ErrNotFound, job.ErrClosed, job.ErrHotLoop, job.ErrFull, port.ErrEncoding, job.ErrConfig, job.ErrForbidden} {
		err := fmt.Errorf("writing to port %q: %w", "in", of)
		var sent storecall.Refusal
		raw, encoding := json.Marshal(storecall.RefusalOf(err))
		if encoding = errors.Join(encoding, json.Unmarshal(raw, &sent)); encoding != nil {
			t.Fatal(encoding)
		}
		if sent.Error() != err.Error() || !errors.Is(&sent, of) || errors.Is(&sent, job.ErrRefused) {
			t.Errorf("%v became %v", err, &sent)
		}
	}
	closed := storecall.RefusalOf(job.ErrClosed)
	if !errors.Is(closed, job.ErrPort) {
		t.Error("a port that is closed is no longer one of ErrPort")
	}
	var same *job.DuplicateError
	if !errors.As(storecall.RefusalOf(&job.DuplicateError{ID: "x"}), &same) || same.ID != "x" || !errors.Is(same, job.ErrExists) {
		t.Errorf("a duplicate became %v", same)
	}
	if storecall.RefusalOf(nil) != nil || storecall.Errors([]*storecall.Refusal{nil, closed})[0] != nil {
		t.Error("no error became one")
	}
	if n := storecall.LetterOf(storecall.RefusalOf(fmt.Errorf("x: %w", &storecall.RefusedLetter{Letter: 2, Err: job.ErrFull}))); n != 2 {
		t.Errorf("letter 2 became %d", n)
	}
	if n := storecall.LetterOf(job.ErrFull); n != -1 {
		t.Errorf("no letter became %d", n)
	}
}

// What is no request changes nothing: it does not come to the store.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	id, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	good, err := storecall.Encode(job.PortRef{Job: id, Dir: port.Input, Port: "in"})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{
		"a direction":    job.PortRef{Job: id, Dir: 'x', Port: "in"},
		"a port":         job.PortRef{Job: id, Dir: port.Input, Port: "in:d"},
		"an ID":          job.PortRef{Job: "x}:y", Dir: port.Input, Port: "in"},
		"another type":   []int{1},
		"an unknown key": map[string]any{"job": id, "dir": 105, "port": "in", "more": 1},
	} {
		raw, err := storecall.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		err = serve(t, "close-port", raw)
		if err == nil {
			t.Errorf("%s: it is served", name)
		}
	}
	for i := range good {
		_ = serve(t, "close-port", good[:i]) // it breaks off
	}
	for _, bad := range []struct {
		call string
		in   any
	}{
		{"apply", storecall.Firing{Job: id, Event: "begin"}},
		{"apply", storecall.Firing{Job: id, Event: "key_free"}},
		{"jobs-page", storecall.FilterPage{Limit: -1}},
		{"patch", storecall.Patching{Job: id, Patch: &store.Patch{Nodes: []job.Node{{Type: "A"}}}}},
		{"patch", storecall.Patching{Job: id}},
		{"settle", storecall.Settling{From: job.PortRef{Job: id, Dir: port.Input, Port: "in"}}},
		{"page", storecall.Excerpt{From: job.PortRef{Job: id, Dir: port.Input, Port: "in"}, Offset: math.MaxInt}},
		{"run-at", storecall.Timing{Job: id, Delay: math.MinInt64}},
		{"lock", storecall.Locking{Job: id, TTL: -1}},
		{"once", storecall.JobText{Job: id, Text: strings.Repeat("x", 100_000)}},
		{"locked", make([]job.ID, 100_000)},
		{"set-ports", storecall.JobPorts{Job: id, Ports: make([]port.Spec, 20_000)}},
		{"create", storecall.NewTree{Job: id, Plan: &job.Plan{Nodes: []job.Node{{Type: "A", Args: []byte("{bad")}}}}},
		{"create", storecall.NewTree{Job: id, Plan: &job.Plan{Nodes: []job.Node{{Type: "A", TypeVersion: -7}}}}},
		{"create", storecall.NewTree{Job: id, Plan: &job.Plan{Nodes: []job.Node{{Type: "A", Ports: []job.Port{{Spec: port.Spec{Name: "in", Dir: port.Input}, Sources: -5}}}}}}},
	} {
		raw, err := storecall.Encode(bad.in)
		if err != nil {
			t.Fatal(err)
		}
		if err := serve(t, bad.call, raw); err == nil || len(storecall.RefusalOf(err).Wraps) == 0 {
			t.Errorf("%s %+v: %v", bad.call, bad.in, err)
		}
	}
	for name, v := range map[string]any{
		"plan":    storecall.NewTree{Job: id},
		"nodes":   storecall.NewTree{Job: id, Plan: &job.Plan{}},
		"parents": storecall.NewTree{Job: id, Plan: &job.Plan{Nodes: []job.Node{{Type: "A"}, {Type: "B", Name: "b", Parent: 7}}}},
	} {
		raw, err := storecall.Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := serve(t, "create", raw); err == nil {
			t.Errorf("%s: it is served", name)
		}
	}
}

// serve makes a call without a store: it panics if the call comes to it.
func serve(t *testing.T, name string, request []byte) error {
	t.Helper()
	for _, c := range storecall.All() {
		if c.Name == name {
			return c.Serve(t.Context(), nil, "", request, func([]byte) error { return nil })
		}
	}
	t.Fatalf("there is no call %s", name)
	return nil
}

// FuzzServe gives calls what is no request: none may panic before it comes to the store, which is told by its answer.
func FuzzServe(f *testing.F) {
	calls := storecall.All()
	for i, c := range calls {
		in := reflect.New(c.In)
		raw, err := storecall.Encode(in.Interface())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, raw)
	}
	f.Fuzz(func(t *testing.T, n int, request []byte) {
		c := calls[((n%len(calls))+len(calls))%len(calls)]
		in := reflect.New(c.In)
		if err := storecall.Decode(request, in.Interface()); err != nil {
			return
		}
		raw, err := storecall.Encode(in.Interface())
		if err != nil {
			t.Fatalf("%s: what was read cannot be sent: %v", c.Name, err)
		}
		again := reflect.New(c.In)
		if err := storecall.Decode(raw, again.Interface()); err != nil {
			t.Fatalf("%s: what was sent cannot be read: %v", c.Name, err)
		}
	})
}
