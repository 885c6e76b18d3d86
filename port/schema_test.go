package port_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/port"
)

type chain struct {
	Next *chain
	Tags []string `json:"tags,omitempty"`
}

type base struct{ Unit string }

type sized struct {
	base
	Width  int            `json:"width"`
	Quoted int            `json:",string"`
	When   *time.Time     `json:"when"`
	Any    any            `json:"any"`
	Raw    []byte         `json:"raw"`
	Left   string         `json:"-"`
	Count  map[string]int `json:"count"`
	Chain  chain          `json:"chain"`
	hidden int
}

func TestSchemaOf(t *testing.T) {
	t.Parallel()
	_ = sized{hidden: 1}
	for _, c := range []struct {
		of   reflect.Type
		want string
	}{
		{reflect.TypeFor[int8](), `{"type":"integer","format":"int8"}`},
		{reflect.TypeFor[any](), `{}`},
		{reflect.TypeFor[[]*float64](), `{"type":"array","items":{"type":"number","format":"double"}}`},
		{reflect.TypeFor[time.Time](), `{"type":"string","format":"date-time"}`},
		{reflect.TypeFor[map[uint8]string](), `{"type":"object","additionalProperties":{"type":"string"},"propertyNames":{"type":"string","format":"uint8"}}`},
		{reflect.TypeFor[sized](), `{"type":"object","properties":{"Quoted":{"type":"string","format":"int64"},"Unit":{"type":"string"},"any":{},` +
			`"chain":{"type":"object","properties":{"Next":{"type":"object"},"tags":{"type":"array","items":{"type":"string"}}}},` +
			`"count":{"type":"object","additionalProperties":{"type":"integer","format":"int64"}},"raw":{},"when":{"type":"string","format":"date-time"},` +
			`"width":{"type":"integer","format":"int64"}}}`},
	} {
		raw, err := json.Marshal(port.SchemaOf(c.of))
		if err != nil || string(raw) != c.want {
			t.Errorf("%v: %s, %v\nwant %s", c.of, raw, err, c.want)
		}
	}
}

// What encoding/json decodes into a type fits its schema, and what does not fit it is refused.
func TestSchemasRefuseNothingThatDecodes(t *testing.T) {
	t.Parallel()
	schema := port.SchemaOf(reflect.TypeFor[sized]())
	value := rapid.SampledFrom([]string{
		"null", "1", "1.5", `"x"`, "true", "[]", "{}", `["a"]`, "[1]", `{"a":1}`, `{"a":"b"}`, `"2026-01-02T03:04:05Z"`,
		`{"tags":["a"]}`, `{"tags":[1]}`, `{"Next":{"Next":null}}`, `{"Next":3}`,
	})
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		var fields []string
		for _, name := range []string{"Unit", "width", "Quoted", "when", "any", "raw", "count", "chain", "other", "WIDTH"} {
			if rapid.Bool().Draw(t, name) {
				fields = append(fields, fmt.Sprintf("%q:%s", name, value.Draw(t, "value")))
			}
		}
		raw := "{" + strings.Join(fields, ",") + "}"
		bad := schema.Check(json.RawMessage(raw))
		if len(bad) > 0 {
			refused++
		}
		if err := json.Unmarshal([]byte(raw), new(sized)); err == nil && len(bad) > 0 {
			t.Fatalf("%s decodes, and is refused: %v", raw, bad)
		}
	})
	if refused == 0 {
		t.Error("nothing is refused")
	}
}

// Of numbers those are refused that encoding/json does not take for the Go type, and no others.
func TestSchemasOfNumbers(t *testing.T) {
	t.Parallel()
	texts := []string{"0", "-0", "-1", "1.0", "1e2", "1e39", "-1e39", "1e400", "1e-400", "3.4028235e38", "3.4028236e38", "123456789012345678901234567890"}
	for _, bits := range []uint{7, 8, 15, 16, 31, 32, 63, 64} {
		limit := new(big.Int).Lsh(big.NewInt(1), bits)
		below := new(big.Int).Sub(limit, big.NewInt(1))
		texts = append(texts, limit.String(), below.String(), "-"+limit.String(), "-"+below.String(), "-"+new(big.Int).Add(limit, big.NewInt(1)).String())
	}
	for _, of := range []reflect.Type{
		reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[time.Duration](),
		reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[uintptr](),
		reflect.TypeFor[float32](), reflect.TypeFor[float64](),
	} {
		schema := port.SchemaOf(of)
		for _, text := range texts {
			bad, err := schema.Check(json.RawMessage(text)), json.Unmarshal([]byte(text), reflect.New(of).Interface())
			if (len(bad) > 0) != (err != nil) {
				t.Errorf("%s as %s: refused with %q, decoded with %v", text, of, bad, err)
			}
		}
	}
	if bad := port.SchemaOf(reflect.TypeFor[int16]()).Check(json.RawMessage("40000")); len(bad) != 1 || bad[0] != "40000 is out of range: use -32768 to 32767" {
		t.Errorf("refused with %q", bad)
	}
}

// quoting has fields in quotes, and others with that option, to which it does not apply.
//
//nolint:staticcheck // SA5008 warns of just that
type quoting struct {
	Int   int8        `json:",string"`
	Uint  *uint16     `json:",string"`
	Float float32     `json:",string"`
	Bool  bool        `json:",string"`
	List  []int       `json:",string"`
	Far   **int       `json:",string"`
	JSON  json.Number `json:",string"`
	Time  time.Time   `json:",string"`
	Keys  map[int8]int
	Uints map[uint16]int
	Times map[time.Time]int
}

// Numbers in quotes, and names that are numbers, are refused if encoding/json does not take them, and no others.
func TestSchemasOfQuotedNumbers(t *testing.T) {
	t.Parallel()
	schema := port.SchemaOf(reflect.TypeFor[quoting]())
	texts := []string{"", "x", "null", "nul", "true", "false", "tru", "0", "-0", "-1", "+1", "012", "127", "128", "-128", "-129", "65535", "65536", "1.5", "1e2", "1e39", "1e400", "inf", "-inf", "0x1", " 1", "1 "}
	for _, field := range []string{"Int", "Uint", "Float", "Bool", "List", "Far", "JSON", "Time"} {
		for _, text := range texts {
			for _, value := range []string{fmt.Sprintf("%q", text), text} {
				raw := json.RawMessage(fmt.Sprintf("{%q:%s}", field, value))
				if !json.Valid(raw) {
					continue
				}
				bad, err := schema.Check(raw), json.Unmarshal(raw, new(quoting))
				if checked := field != "JSON" && field != "Time"; len(bad) > 0 && err == nil || checked && len(bad) == 0 && err != nil {
					t.Errorf("%s: refused with %q, decoded with %v", raw, bad, err)
				}
			}
		}
	}
	for _, field := range []string{"Keys", "Uints"} {
		for _, text := range texts {
			raw := json.RawMessage(fmt.Sprintf("{%q:{%q:1}}", field, text))
			bad, err := schema.Check(raw), json.Unmarshal(raw, new(quoting))
			if (len(bad) > 0) != (err != nil) {
				t.Errorf("%s: refused with %q, decoded with %v", raw, bad, err)
			}
		}
	}
	for value, want := range map[string]string{
		`{"Int":"x"}`:        `/Int: "x" is not a whole number in quotes`,
		`{"Int":"128"}`:      `/Int: "128" is out of range: use -128 to 127`,
		`{"Int":1}`:          `/Int: 1 is not a string`,
		`{"Float":"x"}`:      `/Float: "x" is not a number in quotes`,
		`{"Bool":"yes"}`:     `/Bool: "yes" is not one of "true", "false", "null"`,
		`{"Keys":{"a":1}}`:   `/Keys: the name "a" is not a whole number`,
		`{"Uints":{"-1":1}}`: `/Uints: the name "-1" is out of range: use 0 to 65535`,
	} {
		if got := strings.Join(schema.Check(json.RawMessage(value)), "; "); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// A schema from elsewhere is checked as far as its words are known; others refuse nothing.
func TestSchemasFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, value, want string }{
		{`{"type":"object","required":["a/b"]}`, `{}`, `"a/b" is missing`},
		{`{"properties":{"a/b":{"type":"integer"}}}`, `{"a/b":"x"}`, `/a~1b: "x" is not a whole number`},
		{`{"properties":{"a":{"enum":["x", {"y": 1}]}}}`, `{"a":"z"}`, `/a: "z" is not one of "x", {"y": 1}`},
		{`{"properties":{"a":{"enum":["x", {"y": 1}]}}}`, `{"a":{"y":1.0}}`, ``},
		{`{"additionalProperties":false}`, `{"a":1}`, `/a: it is not allowed`},
		{`{"items":{"type":"string"}}`, `["a",1]`, `/1: 1 is not a string`},
		{`{"type":["string","null"],"minimum":3,"anyOf":[{"type":"string"}]}`, `1`, ``},
		{`{"$ref":"#/$defs/a","type":"string","$defs":{"a":{"type":"integer"}}}`, `1`, ``},
		{`{"properties":{"a":true}}`, `{"a":1}`, ``},
		{`{"type":"string"}`, `null`, ``},
		{`{"type":"number","format":"int32"}`, `1.5`, ``},
		{`{"propertyNames":{"pattern":"^a"}}`, `{"b":1}`, ``},
		{`{"type":"integer","format":"bigint"}`, `99999999999999999999`, ``},
	} {
		var s port.Schema
		if err := json.Unmarshal([]byte(c.schema), &s); err != nil {
			t.Errorf("%s: %v", c.schema, err)
		}
		if got := strings.Join(s.Check(json.RawMessage(c.value)), "; "); got != c.want {
			t.Errorf("%s with %s: %s, want %s", c.value, c.schema, got, c.want)
		}
	}
	for _, bad := range []string{`3`, `"x"`, `{"properties":3}`, `{"items":[1]}`, `{"enum":1}`} {
		if err := json.Unmarshal([]byte(bad), new(port.Schema)); err == nil {
			t.Errorf("%s is a schema", bad)
		}
	}
}

// Words are the types as components tell theirs.
func TestWords(t *testing.T) {
	t.Parallel()
	type order struct {
		ID    int       `json:"id"`
		At    time.Time `json:"at"`
		Lines []struct {
			Name string  `json:"name"`
			Cost float64 `json:"cost"`
			Gift bool    `json:"gift"`
		} `json:"lines"`
		Notes map[string][]string `json:"notes"`
		More  any                 `json:"more"`
	}
	for want, v := range map[string]any{
		"text": "", "integer": 1, "number": 1.5, "bool": true, "[[integer]]": [][]int{}, "{any: text}": map[string]string{}, "time": time.Time{}, "object": struct{}{},
		"{at: time, id: integer, lines: [{cost: number, gift: bool, name: text}], more: any, notes: {any: [text]}}": order{},
	} {
		if got := port.SchemaOf(reflect.TypeOf(v)).Words(); got != want {
			t.Errorf("%T is %s, want %s", v, got, want)
		}
	}
	for text, want := range map[string]string{"true": "any", "false": "nothing", `{"type":["string","null"]}`: "any", `{"type":"array"}`: "list", `{"enum":[1,2]}`: "any"} {
		var s port.Schema
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.Words() != want {
			t.Errorf("%s is %s, want %s (%v)", text, s.Words(), want, err)
		}
	}
}
