package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/client"
	"github.com/weirworks/weir/graph"
	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// Own decodes itself, from anything.
type Own struct{ Text string }

// UnmarshalJSON implements json.Unmarshaler.
func (o *Own) UnmarshalJSON(raw []byte) error { o.Text = string(raw); return nil }

// Taker has a port of each kind.
type Taker struct {
	Int    port.In[int]
	Float  port.In[float64]
	Text   port.In[string]
	Flag   port.In[*bool]
	List   port.In[[]Image]
	Bytes  port.In[[]byte]
	Object port.In[Image]
	Table  port.In[map[string]int]
	Time   port.In[time.Time]
	Own    port.In[Own]
	Any    port.In[any]
	Raw    port.In[json.RawMessage]
	Out    port.Out[int]
}

func (*Taker) Run(context.Context, *worker.Run) error { return worker.ErrSuspend }

// A message that does not fit the Go type of a port is refused before anything is written; none is
// that the worker could decode.
func TestWriteRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Taker{})
	h := e.StartWorker(&Taker{})
	values := map[string]any{
		"int": 3, "float": 1.5, "text": "a", "flag": true, "list": []int{1}, "object": map[string]int{"Name": 1}, "null": nil,
		"image": map[string]string{"Name": "a"}, "images": []map[string]string{{"Name": "a"}, {"Other": "b"}},
	}
	takes := map[string][]string{
		"int": {"int"}, "float": {"int", "float"}, "text": {"text"}, "flag": {"flag"}, "list": {"images"}, "bytes": {"int", "float", "text", "flag", "list", "object", "image", "images"},
		"object": {"image"}, "table": {"object"},
	}
	for _, p := range []string{"int", "float", "text", "flag", "list", "bytes", "object", "table", "time", "own", "any", "raw"} {
		for name, v := range values {
			err := h.Write(t.Context(), p, v)
			fits := takes[p] == nil || name == "null" || slices.Contains(takes[p], name)
			if fits && err != nil || !fits && !errors.Is(err, port.ErrEncoding) {
				t.Errorf("%v into port %s: %v", v, p, err)
			}
		}
	}
	err := h.Write(t.Context(), "int", 1, 2, "three")
	for _, text := range []string{`port "int"`, string(h.ID()), "message 3", `"three"`, "whole number", "type int"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v lacks %s", err, text)
		}
	}
	if p, _ := e.Info(h).Port(port.Input, "int"); p.Waiting != 2 { // 3 and null
		t.Errorf("%d messages were written", p.Waiting)
	}
	if err := h.WriteOut(t.Context(), "out", "text"); !errors.Is(err, port.ErrEncoding) {
		t.Errorf("a text into an Out port of int: %v", err)
	}
	if err := h.Write(t.Context(), "nowhere", 1); !errors.Is(err, job.ErrPort) {
		t.Errorf("no such port: %v", err)
	}
	if err := e.Client().At(h.ID()+"0").Write(t.Context(), "int", 1); err == nil {
		t.Error("no such job")
	}
}

// A message that somebody types may have no field that no port knows where it arrives.
func TestWriteRefusesUnknownFields(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Taker{})
	h := e.StartWorker(&Taker{})
	known := client.WithKnownFields(t.Context())
	for _, c := range []struct{ in, message, want string }{
		{"object", `{"Naame":"a"}`, `/Naame: did you mean "Name"?`},
		{"list", `[{"name":"a"},{"Naame":"b"}]`, `/1/Naame: did you mean "Name"?`},
		{"object", `{"NAME":"a"}`, ""},
		{"table", `{"Naame":1}`, ""},
		{"any", `{"Naame":1}`, ""},
		{"own", `{"Naame":1}`, ""},
	} {
		err := h.Write(known, c.in, json.RawMessage(c.message))
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, port.ErrEncoding) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s into port %s: %v", c.message, c.in, err)
		}
		if err := h.Write(t.Context(), c.in, json.RawMessage(c.message)); err != nil {
			t.Errorf("a program: %s into port %s: %v", c.message, c.in, err)
		}
	}
	g := graph.New("two")
	to := graph.Input[any](g, "in")
	taker := graph.Add(g, "a", &Taker{})
	graph.Connect(to, taker.Any)
	graph.WireInput(g, "in", "a.object")
	if err := e.Start(g).Write(known, "in", json.RawMessage(`{"Naame":1}`)); err != nil {
		t.Errorf("one of two ports takes anything: %v", err)
	}
}

// What is to be written in place of a message in a dead letter is checked as what is written.
func TestCheckDeadLetter(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Taker{})
	h := e.StartWorker(&Taker{})
	l := &client.StoredLetter{Letter: job.Letter{Job: h.ID(), Messages: map[string]json.RawMessage{"int": json.RawMessage(`"a"`), "object": json.RawMessage(`{"Naame":"a"}`)}}}
	for _, c := range []struct {
		ctx   context.Context
		ports []string
		want  string
	}{
		{t.Context(), nil, `port "int" of job ` + string(h.ID()) + `: message 1: `},
		{t.Context(), []string{"object"}, ""},
		{client.WithKnownFields(t.Context()), []string{"object"}, `/Naame: did you mean "Name"?`},
	} {
		err := e.Client().CheckDeadLetter(c.ctx, l, c.ports...)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, port.ErrEncoding) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("ports %v: %v, want %q", c.ports, err, c.want)
		}
	}
}

// The port of a graph takes what the ports take that it leads to.
func TestWriteToGraphRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	e := weirtest.New(t, &Step{})
	g := graph.New("outer")
	graph.Connect(graph.Input[int](g, "in"), graph.Add(g, "twice", &Twice{By: 2}).In)
	h := e.Start(g)
	err := h.Write(t.Context(), "in", "text")
	if !errors.Is(err, port.ErrEncoding) || !strings.Contains(err.Error(), `leads to port "in" of job`) {
		t.Errorf("got %v", err)
	}
	e.Feed(h, "in", 1)
	if err := h.Write(t.Context(), "in", 1.5); !errors.Is(err, port.ErrEncoding) {
		t.Errorf("got %v", err)
	}
}
