package graphfile_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirworks/weir/graphfile"
	"github.com/weirworks/weir/port"
	"github.com/weirworks/weir/weirtest"
	"github.com/weirworks/weir/worker"
)

// times multiplies numbers.
type times struct {
	By  int           `json:"by"`
	In  port.In[int]  `port:"in,required"`
	Out port.Out[int] `port:"out"`
}

func (*times) JobType() string { return "times" }

func (w *times) Run(context.Context, *worker.Run) error {
	for n, err := range w.In.All() {
		if err == nil {
			err = w.Out.Write(n * w.By)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shout needs texts.
type shout struct {
	In  port.In[string]  `port:"in"`
	Out port.Out[string] `port:"out"`
}

func (*shout) JobType() string { return "shout" }

func (w *shout) Run(context.Context, *worker.Run) error { return nil }

const nested = `weir: 1
name: six
params:
  by: 3
nodes:
  start: {type: times, args: {by: 1}, in: {in: {values: [1, 2], limit: 5}}}
  twice: {type: double}
  thrice: {type: times, args: {by: "${by}"}}
edges:
  - start.out -> twice.in
  - twice.out -> thrice.in
inputs: {more: start.in}
outputs: {out: thrice.out}
graphs:
  double:
    nodes:
      x: {type: times, args: {by: 2}, instances: 2}
    inputs: {in: x.in}
    outputs: {out: x.out}
`

func TestBuild(t *testing.T) {
	t.Parallel()
	f, err := graphfile.Parse("six.yaml", []byte(nested))
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Build([]any{&times{}}, map[string]json.RawMessage{"by": json.RawMessage("5")})
	if err != nil {
		t.Fatal(err)
	}
	e := weirtest.New(t, &times{})
	h := e.Start(g)
	e.Feed(h, "more", 3)
	e.CloseIn(h, "more")
	e.RunUntilIdle()
	sum := 0
	for _, n := range weirtest.Drain[int](e, h, "out") {
		sum += n
	}
	if info := e.Info(h); sum != 60 || info.Status != "completed" {
		t.Errorf("the sum is %d, the graph is %s; want 60 and completed", sum, info.Status)
	}
}

// Jobs have the priority of their node, else that of the graph that they are in, or of one around that.
func TestBuildPriorities(t *testing.T) {
	t.Parallel()
	const file = `weir: 1
name: g
priority: 0
nodes:
  start: {type: times, args: {by: 1}, priority: 1000}
  last: {type: times, args: {by: 1}}
  twice: {type: double}
  again: {type: double, priority: 800}
edges:
  - start.out -> last.in
  - start.out -> twice.in
  - start.out -> again.in
inputs: {more: start.in}
outputs: {out: [last.out, twice.out, again.out]}
graphs:
  double:
    priority: 700
    nodes:
      x: {type: times, args: {by: 2}, instances: 2}
    inputs: {in: x.in}
    outputs: {out: x.out}
`
	f, err := graphfile.Parse("g.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Build([]any{&times{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := weirtest.New(t, &times{})
	h := e.Start(g)
	for path, want := range map[string]int{"start": 1000, "last": 0, "twice/x_1": 700, "twice/x_2": 700, "again/x_1": 800} {
		at := h
		for _, name := range strings.Split(path, "/") {
			at = e.Child(at, name)
		}
		if got := e.Info(at).Priority; got == nil || *got != want {
			t.Errorf("priority of %s: %v, want %d", path, got, want)
		}
	}
}

func TestBuildProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"everything": {`weir: 1
name: bad
nodes:
  a: {type: tmes}
  b: {type: times, args: {bi: 1}}
  c: {type: times, args: {by: x}}
`, `
f.yaml:4:3: nodes.a.type: there is no type "tmes": did you mean "times"?
f.yaml:5:3: nodes.b.args.bi: worker graphfile_test.times has no argument "bi": did you mean "by"?
f.yaml:5:3: bad/b.in: this port must be fed: connect it, or give it a value
f.yaml:6:3: nodes.c.args.by: is a text, use a whole number
f.yaml:6:3: bad/c.in: this port must be fed: connect it, or give it a value
`},
		"wires": {`weir: 1
name: bad
nodes:
  d: {type: times, args: {by: 1}}
  e: {type: shout}
  f: {type: inner, args: {n: 1}}
  g: {type: times, in: {in: {value: text}, inn: {limit: 3}}}
edges:
  - d.ouch -> e.in
  - d.out -> e.in
  - f.out -> e.in
outputs: {out: e.oot}
graphs:
  inner:
    params: {n: {type: int}}
    nodes:
      x: {type: times, args: {by: "${n}"}}
      y: {type: shout}
    edges: [x.out -> y.in]
    outputs: {out: x.out}
`, `
f.yaml:4:3: bad/d.in: this port must be fed: connect it, or give it a value
f.yaml:7:25: bad/g.in: the constant does not fit: decoding message "text" as int: wrong encoding: json: cannot unmarshal string into Go value of type int
f.yaml:7:44: bad/g.inn: port: there is no such in port: did you mean "in"?
f.yaml:9:5: bad/d.ouch: port: there is no such out port: use one of: out
f.yaml:10:5: bad/d.out: its messages are of type int, those of bad/e.in of type string: put a worker that converts them in between
f.yaml:11:5: bad/f.out: its messages are of type int, those of bad/e.in of type string: put a worker that converts them in between
f.yaml:12:11: bad/e.oot: port: there is no such out port: did you mean "out"?
f.yaml:17:7: bad/f/x.in: this port must be fed: connect it, or give it a value
f.yaml:19:13: inner/x.out: its messages are of type int, those of inner/y.in of type string: put a worker that converts them in between
`},
		"whole": {`weir: 1
name: bad
nodes:
  a: {type: times}
  b: {type: times}
  c: {type: inner}
edges:
  - a.out -> b.in
  - b.out -> a.in
graphs:
  inner:
    nodes:
      x: {type: times}
    outputs: {out: x.out}
`, `
f.yaml:4:3: bad/a: the cycle a -> b -> a would feed its own input: remove one of these wires, or declare the one that leads back as feedback
f.yaml:13:7: bad/c/x.in: this port must be fed: connect it, or give it a value
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := graphfile.Parse("f.yaml", []byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Build([]any{&times{}, &shout{}}, nil)
			if err == nil {
				t.Fatal("no problem found")
			}
			if got := "\n" + strings.TrimSpace(err.Error()) + "\n"; got != c.want {
				t.Errorf("got%swant%s", got, c.want)
			}
		})
	}
}
