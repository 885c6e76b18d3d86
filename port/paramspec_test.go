package port_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/weirworks/weir/port"
)

type every struct {
	S     string
	P     *string `json:"p,omitempty"`
	I     int
	F     float64
	B     bool
	L     []string
	A     [2]int
	O     struct{ X int }
	M     map[string]int
	Bytes []byte
	Any   any
	Raw   json.RawMessage
	Time  time.Time
	D     time.Duration
	N     json.Number
	Q     int `json:"q,string"`
	Skip  int `json:"-"`
	In    port.In[string]
}

// Arguments are known by name and kind; what their specs allow encoding/json takes, and what it refuses by its kind
// they refuse.
func TestCheckParams(t *testing.T) {
	t.Parallel()
	layout, err := port.Describe(reflect.TypeFor[*every]())
	if err != nil {
		t.Fatal(err)
	}
	specs := layout.ParamSpecs()
	if len(specs) != 16 || !reflect.DeepEqual(specs[1], port.Param{Name: "p", Kind: port.KindString}) {
		t.Errorf("specs are %v", specs)
	}
	values := []string{`"x"`, `"2026-11-23T00:00:00Z"`, `"5"`, `1`, `1.5`, `1e3`, `true`, `[]`, `["x"]`, `[1,2]`, `{}`, `{"X":1}`, `null`}
	for _, spec := range specs {
		for _, value := range values {
			raw := json.RawMessage(fmt.Sprintf(`{%q: %s}`, spec.Name, value))
			refused, fails := port.CheckParams(specs, raw), layout.SetParams(&every{}, raw)
			if refused != nil && (fails == nil || !errors.Is(refused, port.ErrParams)) {
				t.Errorf("%s is refused, %v, and set, %v", raw, refused, fails)
			}
			if spec.Kind != port.KindAny && refused == nil && fails != nil && value[0] != '[' && value[0] != '{' {
				t.Errorf("%s is not refused, and not set: %v", raw, fails)
			}
		}
	}
	wantError(t, port.CheckParams(specs, json.RawMessage(`{"Tme": 1, "I": "x", "F": true}`)),
		`argument F is true, use a number; argument I is "x", use a whole number; there is no argument "Tme": did you mean "Time"?`)
	wantError(t, port.CheckParams([]port.Param{}, json.RawMessage(`{"a": 1}`)), `there is no argument "a": there are none`)
	many := make(map[string]int, 4000)
	for i := range 4000 {
		many[fmt.Sprintf("no%04d", i)] = i
	}
	raw, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	err = port.CheckParams(specs, raw)
	if wantError(t, err, "; and 3980 more"); len(err.Error()) > 4096 {
		t.Errorf("the error of 4,000 unknown arguments has %d bytes", len(err.Error()))
	}
	wantError(t, port.CheckParams(specs, json.RawMessage(`[1]`)), "an object of arguments")
	if err := port.CheckParams(specs, nil); err != nil {
		t.Error(err)
	}
}

// What differs by two characters that changed places is near, and so is what goes on behind the word.
func TestSuggestNear(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"mpa": "map", "ete": "tee", "ba": "batch", "b": "", "xyz": ""} {
		got := port.Suggest(word, []string{"map", "tee", "batch"})
		if want != "" && got != fmt.Sprintf("did you mean %q?", want) || want == "" && got != "use one of: map, tee, batch" {
			t.Errorf("for %s: %s", word, got)
		}
	}
	for word, want := range map[string]string{"queus": "queues", "queu": "queue", "ueues": "queues", "qeue": "queue"} { // of two as near the one that is more like it
		if got := port.Suggest(word, []string{"queue", "queues"}); got != fmt.Sprintf("did you mean %q?", want) {
			t.Errorf("for %s: %s", word, got)
		}
	}
}
