package port_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirworks/weir/port"
)

// Base and hidden are embedded in resize.
type Base struct {
	Stop port.In[bool]
	Note string `json:"note,omitempty"`
}

type hidden struct {
	Log  port.Out[any] `port:",limit=5"`
	Deps chan int
}

type resize struct {
	In     port.In[image]
	Width  port.In[int]      `port:"width,limit=100,default=640"`
	Sizes  port.In[[]string] `port:",default=[\"a,b\", \"c=d\"]"`
	Thumb  port.Out[image]   `json:"ignored"`
	ID     int
	Format string        `json:"format"`
	Every  time.Duration `json:"every,omitempty"`
	Count  int64         `json:"count,string"`
	Cache  chan int      `json:"-"`
	Base
	hidden `json:"-"`

	private map[string]int
}

func (*resize) Run(context.Context) error { return nil }

func describe[T any](t testing.TB) *port.Layout {
	t.Helper()
	layout, err := port.Describe(reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	want := []port.Spec{
		{Name: "in", Dir: port.Input, Type: "port_test.image"},
		{Name: "width", Dir: port.Input, Type: "int", Limit: 100, Default: json.RawMessage(`640`)},
		{Name: "sizes", Dir: port.Input, Type: "[]string", Default: json.RawMessage(`["a,b","c=d"]`)},
		{Name: "thumb", Dir: port.Output, Type: "port_test.image"},
		{Name: "stop", Dir: port.Input, Type: "bool"},
		{Name: "log", Dir: port.Output, Type: "interface {}", Limit: 5},
	}
	byPointer := describe[*resize](t)
	for _, layout := range []*port.Layout{byPointer, describe[resize](t)} {
		if got := layout.Specs(); !reflect.DeepEqual(got, want) {
			t.Errorf("Specs =\n%v\nwant\n%v", got, want)
		}
		if layout.Type() != reflect.TypeFor[resize]() {
			t.Errorf("Type = %v", layout.Type())
		}
		for _, spec := range layout.Specs() {
			wantError(t, spec.Validate())
		}
	}
	byPointer.Specs()[1].Default[0] = 'x'
	byPointer.Types()["in in"] = nil
	if byPointer.Types()["in in"] != reflect.TypeFor[image]() {
		t.Error("a caller changed the types of the layout")
	}
	if got := byPointer.Specs(); !reflect.DeepEqual(got, want) {
		t.Errorf("a caller changed the layout: %v", got)
	}
}

// A type is described once, by its pointers and its values; types that differ in their tags alone
// have layouts of their own.
func TestDescribeOnce(t *testing.T) {
	t.Parallel()
	layout := describe[resize](t)
	if describe[*resize](t) != layout || describe[resize](t) != layout {
		t.Error("the type was described again")
	}
	type small struct {
		In   port.In[int] `port:"a,limit=1"`
		Size string       `json:"s"`
	}
	type large struct {
		In   port.In[int] `port:"b,limit=2"`
		Size string       `json:"l"`
	}
	for want, l := range map[string]*port.Layout{"a 1 s": describe[small](t), "b 2 l": describe[large](t)} {
		spec := l.Specs()[0]
		if got := fmt.Sprintf("%s %d %s", spec.Name, spec.Limit, l.ParamSpecs()[0].Name); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	type wrong struct {
		In port.In[int] `port:"*"`
	}
	for range 2 {
		if l, err := port.Describe(reflect.TypeFor[wrong]()); l != nil || err == nil {
			t.Errorf("got %v, %v, want an error each time", l, err)
		}
	}
}

func TestDescribeNames(t *testing.T) {
	t.Parallel()
	layout := describe[struct {
		ID, InBox, HTTPServer, URLs, ServerHTTP, A, AB, Thumb2X, With_Score port.In[int]
	}](t)
	var got []string
	for _, spec := range layout.Specs() {
		got = append(got, spec.Name)
	}
	want := "id in_box http_server urls server_http a ab thumb2_x with_score"
	if strings.Join(got, " ") != want {
		t.Errorf("names %q, want %q", got, want)
	}
}

func TestDescribeSameNameBothWays(t *testing.T) {
	t.Parallel()
	if got := len(describe[pipe[int]](t).Specs()); got != 2 {
		t.Errorf("%d ports, want 2", got)
	}
}

func TestDescribeEmbeddedHandle(t *testing.T) {
	t.Parallel()
	type wrapped struct{ port.In[int] }
	if specs := describe[wrapped](t).Specs(); len(specs) != 1 || specs[0].Name != "in" {
		t.Errorf("specs %v", specs)
	}
	type worker struct{ wrapped }
	layout, w := describe[worker](t), new(worker)
	wantError(t, layout.Bind(w, queues{}))
	if w.Name() != "in" {
		t.Errorf("name %q", w.Name())
	}
}

type holder struct{ Inner port.In[int] }

// deep has a handle behind an embedded pointer, which looks like a handle.
type deep struct{ *holder }

func TestDescribeRefuses(t *testing.T) {
	t.Parallel()
	type in = port.In[int]
	type out = port.Out[int]
	type double struct {
		A in `port:"x"`
		B in `port:"x"`
	}
	tests := map[string]struct {
		worker any
		want   []string
	}{
		"nil":                 {nil, []string{"struct"}},
		"not a struct":        {3, []string{"int", "struct"}},
		"pointer to pointer":  {new(*holder), []string{"struct"}},
		"unexported":          {struct{ in in }{}, []string{"field in", "exported", "capital"}},
		"unexported embedded": {struct{ in }{}, []string{"exported"}},
		"duplicate":           {double{}, []string{"port_test.double", "field B", "field A", `in port "x"`}},
		"duplicate embedded": {struct {
			Inner in
			holder
		}{}, []string{"holder.Inner", `"inner"`}},
		"not a handle": {struct {
			A int `port:"a"`
		}{}, []string{"field A", "port tag", "int"}},
		"embedded tag": {struct {
			Base `port:"a"`
		}{}, []string{"field Base", "port tag"}},
		"pointer": {struct{ A *in }{}, []string{"field A", "holds port handles"}},
		"slice":   {struct{ A []out }{}, []string{"field A", "holds port handles"}},
		"map":     {struct{ A map[string]out }{}, []string{"field A", "holds port handles"}},
		"nested":  {struct{ A holder }{}, []string{"field A", "embed"}},
		"named embedded": {struct {
			holder `json:"h"`
			Base   `json:"b"`
		}{}, []string{"field Base", "embed"}},
		"embedded pointer": {struct{ *holder }{}, []string{"field holder", "embed the struct"}},
		"deep":             {struct{ A deep }{}, []string{"field A"}},
		"function":         {struct{ F func() }{}, []string{"field F", "func()", `json:"-"`}},
		"channel":          {struct{ C chan int }{}, []string{"field C", "chan int"}},
		"pointer argument": {struct{ *Plain }{}, []string{"field Plain", "embed the struct"}},
		"argument name": {struct {
			A int `json:"a'b"` //nolint:staticcheck // the tag is wrong on purpose
		}{}, []string{"field A", `a'b`}},
		"argument twice": {struct {
			A int
			B int `json:"A"`
		}{}, []string{"field B", "field A", `argument "A"`}},
		"several at once": {struct {
			A int `port:"a"`
			b in
		}{}, []string{"field A", "field b"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuse(t, test.worker, test.want)
		})
	}
}

func refuse(t *testing.T, worker any, want []string) {
	t.Helper()
	layout, err := port.Describe(reflect.TypeOf(worker))
	if layout != nil {
		t.Errorf("got a layout: %v", layout.Specs())
	}
	wantError(t, err, want...)
}

func TestDescribeRefusesTag(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string][]string{
		`a,limt=1`:                     {"field A", `"limt"`, `did you mean "limit"?`},
		`a,x`:                          {"field A", `"x"`, "limit, channel, default"},
		`a,Limit=1`:                    {`did you mean "limit"?`},
		`a, limit=1`:                   {`did you mean "limit"?`},
		`a,limit=0`:                    {"field A", "limit", `"0"`, "positive"},
		`a,limit=-1`:                   {`"-1"`},
		`a,limit=many`:                 {`"many"`},
		`a,limit=`:                     {`""`},
		`a,limit`:                      {"limit needs a value"},
		`a,limit=99999999999999999999`: {"positive"},
		`a,limit=1,limit=1`:            {"twice"},
		`a,default`:                    {"default needs a value"},
		`a,default=`:                   {"default"},
		`a,default={`:                  {"field A", "default", "{"},
		`a,default="x"`:                {"field A", "default", "int", `"x"`},
		`a,default=1,limit=1`:          {"field A", "default", "1,limit=1"},
		`*`:                            {"field A", `"*"`, "name of its own"},
		`a b`:                          {"field A", `"a b"`},
		`a,`:                           {"field A", "comma"},
		`a,limit=1,`:                   {"field A", "comma"},
	} {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			worker := reflect.StructOf([]reflect.StructField{{
				Name: "A", Type: reflect.TypeFor[port.In[int]](), Tag: reflect.StructTag("port:" + strconv.Quote(tag)),
			}})
			refuse(t, reflect.Zero(worker).Interface(), append(want, "field A"))
		})
	}
}

func TestDescribeRefusesField(t *testing.T) {
	t.Parallel()
	type outDefault struct {
		A port.Out[int] `port:"a,default=\"x\""`
	}
	type foreignName struct{ É port.In[int] }
	refuse(t, outDefault{}, []string{"outDefault", "field A", "default", "int"})
	refuse(t, foreignName{}, []string{"foreignName", "field É", "tag"})
}

// Plain is a struct of arguments.
type Plain struct{ A int }

func TestDescribeMalformedTag(t *testing.T) {
	t.Parallel()
	worker := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[port.In[int]](), Tag: `port:a`}})
	_, err := port.Describe(worker)
	wantError(t, err, "field A", "malformed tag")
	worker = reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[port.In[int]](), Tag: `json:"-" port: "a"`}})
	_, err = port.Describe(worker)
	wantError(t, err, "field A", "malformed tag")
}

func TestDescribeMisspelledTagKey(t *testing.T) {
	t.Parallel()
	field := func(tag reflect.StructTag) error {
		worker := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[port.In[int]](), Tag: tag}})
		_, err := port.Describe(worker)
		return err
	}
	for _, tag := range []reflect.StructTag{
		`ports:"in,required"`, `Port:"in"`, `PORT:"in"`, `prot:"in"`, `por:"in"`, `pport:"in"`, `json:"-" ports:"in"`,
		`json:"a \" b" opt:"x" Port:"in"`, `ports:in`,
	} {
		wantError(t, field(tag), "field A", "did you mean port")
	}
	for _, tag := range []reflect.StructTag{
		``, `json:"port"`, `json:"a,ports:x"`, `yaml:"in" doc:"the ports:\"in\" key"`, `port:"in" ports:"more"`,
	} {
		wantError(t, field(tag))
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	layout, b := describe[resize](t), queues{}
	w := layout.New().(*resize)
	before := w.In
	wantError(t, layout.Bind(w, b))
	names := []string{w.In.Name(), w.Width.Name(), w.Sizes.Name(), w.Thumb.Name(), w.Stop.Name(), w.Log.Name()}
	if got := strings.Join(names, " "); got != "in width sizes thumb stop log" || len(b) != 6 {
		t.Errorf("bound %q", got)
	}
	if before.Name() != "" {
		t.Error("a copy made before is bound")
	}
	if node, name := w.In.Ref(); node != nil || name != "in" {
		t.Errorf("Ref = %v, %q", node, name)
	}
	b.get("width").messages = []json.RawMessage{[]byte(`3`)}
	if v, ok, err := w.Width.Read(); v != 3 || !ok || err != nil {
		t.Errorf("Read = %v, %v, %v", v, ok, err)
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	layout, w := describe[*resize](t), new(resize)
	wantError(t, layout.Attach(w, "first"))
	first := *w
	wantError(t, layout.Attach(w, "second"))
	for want, w := range map[string]*resize{"first": &first, "second": w} {
		if node, name := w.Width.Ref(); node != want || name != "width" {
			t.Errorf("Ref = %v, %q, want %s, width", node, name, want)
		}
		if node, name := w.Log.Ref(); node != want || name != "log" {
			t.Errorf("Ref = %v, %q, want %s, log", node, name, want)
		}
	}
	var zero resize
	if node, name := zero.In.Ref(); node != nil || name != "" {
		t.Errorf("Ref of a zero handle = %v, %q", node, name)
	}
	if node, name := zero.Thumb.Ref(); node != nil || name != "" || zero.Thumb.Name() != "" {
		t.Errorf("Ref of a zero handle = %v, %q", node, name)
	}
}

// noQueues is a binder without ports.
type noQueues struct{}

func (noQueues) BindIn(string) port.Reader  { return nil }
func (noQueues) BindOut(string) port.Writer { return nil }

func TestWrongStruct(t *testing.T) {
	t.Parallel()
	layout := describe[resize](t)
	for _, ptr := range []any{nil, resize{}, (*resize)(nil), new(holder), new(*resize), 3} {
		_, params := layout.Params(ptr)
		for _, err := range []error{
			layout.Bind(ptr, queues{}), layout.Attach(ptr, 1), params, layout.SetParams(ptr, nil),
		} {
			wantError(t, err, "pass a")
		}
	}
	wantError(t, layout.Bind(new(resize), nil), "binder is nil")
	wantError(t, layout.Bind(new(resize), noQueues{}), `input port "in"`, "noQueues", "no reader")
	wantError(t, describe[struct{ O port.Out[int] }](t).Bind(new(struct{ O port.Out[int] }), noQueues{}), "no writer")
}
