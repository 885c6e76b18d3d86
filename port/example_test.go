package port_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"

	"github.com/weirworks/weir/port"
)

type Greet struct {
	Names port.In[string] `port:"names,limit=100"`
	Tone  port.In[string] `port:",default=\"Hello\""`
	Cards port.Out[string]

	Mark string `json:"mark"` // not a handle: an argument of the job
}

func ExampleDescribe() {
	layout, err := port.Describe(reflect.TypeFor[*Greet]())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, spec := range layout.Specs() {
		fmt.Printf("%v %s %s, limit %d, default %q\n", spec.Dir, spec.Name, spec.Type, spec.Limit, spec.Default)
	}
	params, _ := layout.Params(&Greet{Mark: "!"})
	fmt.Println(string(params))
	// Output:
	// in names string, limit 100, default ""
	// in tone string, limit 0, default "\"Hello\""
	// out cards string, limit 0, default ""
	// {"mark":"!"}
}

func ExampleDescribe_mistake() {
	type Mistaken struct {
		Width port.In[int] `port:"width,limt=3"`
	}
	_, err := port.Describe(reflect.TypeFor[Mistaken]())
	fmt.Println(err)
	// Output:
	// describing worker port_test.Mistaken: field Width: port tag: unknown option "limt": did you mean "limit"?
}

func ExampleEncode() {
	for _, v := range []any{
		map[string]int{"<b>": 2, "a": 1},
		json.RawMessage(`{ "id": 12345678901234567890 }`),
		math.NaN(),
		[]string{"fine", "caf\xe9"},
	} {
		raw, err := port.Encode(v)
		fmt.Println(string(raw), err)
	}
	// Output:
	// {"<b>":2,"a":1} <nil>
	// {"id":12345678901234567890} <nil>
	//  encoding float64: wrong encoding: json: unsupported value: NaN; JSON has finite numbers and no cycles, send null instead
	//  encoding []string: wrong encoding: at [1]: the text "caf\xe9" is not valid UTF-8, send bytes as []byte
}

func ExampleDecode() {
	var id any
	fmt.Println(port.Decode([]byte(`12345678901234567890`), &id), id)
	var width int
	fmt.Println(port.Decode([]byte(`"wide"`), &width))
	// Output:
	// <nil> 12345678901234567890
	// decoding message "wide" as int: wrong encoding: json: cannot unmarshal string into Go value of type int
}

// Run shows how a worker uses its handles.
func (g *Greet) Run() error {
	tone, _, err := g.Tone.Read()
	if err != nil {
		return err
	}
	for name, err := range g.Names.All() {
		if err != nil {
			return err
		}
		if err := g.Cards.Write(tone + " " + name + g.Mark); err != nil {
			return err
		}
	}
	return g.Cards.Close()
}

func ExampleLayout_Bind() {
	layout, err := port.Describe(reflect.TypeFor[Greet]())
	if err != nil {
		fmt.Println(err)
		return
	}
	// queues is a toy Binder: queues in memory, by name.
	b := queues{
		"names": {messages: []json.RawMessage{[]byte(`"Ada"`), []byte(`"Grace"`)}},
		"tone":  {fallback: json.RawMessage(`"Hello"`)},
	}
	g := &Greet{Mark: "!"}
	fmt.Println("before:", g.Run())
	if err := layout.Bind(g, b); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("after:", g.Run())
	for _, card := range b["cards"].messages {
		fmt.Println(string(card))
	}
	// Output:
	// before: port.In[string]: the port handle is not bound to a run: use it inside Run, on the worker that Run was called on
	// after: <nil>
	// "Hello Ada!"
	// "Hello Grace!"
}
