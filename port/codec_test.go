package port_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/weirworks/weir/port"
)

type image struct {
	Path  string            `json:"path"`
	Tags  []string          `json:"tags,omitempty"`
	Extra map[string]string `json:"extra,omitempty"`
	Next  *image            `json:"next,omitempty"`
	Skip  string            `json:"-"`
	Data  []byte            `json:"data,omitempty"`
	Any   any               `json:"any,omitempty"`
}

// rawJSON and text encode themselves as whatever they hold.
type (
	rawJSON string
	text    string
	textPtr struct{ s string }
)

func (r rawJSON) MarshalJSON() ([]byte, error)  { return []byte(r), nil }
func (s text) MarshalText() ([]byte, error)     { return []byte(s), nil }
func (s *textPtr) MarshalText() ([]byte, error) { return []byte(s.s), nil }

type embeds struct {
	image
	Count int `json:"count,string"`
}

func TestEncode(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		v    any
		want string
	}{
		"nil":                {nil, `null`},
		"no HTML escapes":    {"<a href='b'>&</a>", `"<a href='b'>&</a>"`},
		"slice":              {[]string{"a", "b"}, `["a","b"]`},
		"map":                {map[string]int{"b": 2, "a": 1}, `{"a":1,"b":2}`},
		"struct":             {image{Path: "p", Data: []byte{0xff}}, `{"path":"p","data":"/w=="}`},
		"raw":                {json.RawMessage(" { \"a\" : 12345678901234567890.50 } "), `{"a":12345678901234567890.50}`},
		"raw keeps escapes":  {json.RawMessage(`"\u003c\ufffd\ud83d\ude00"`), `"\u003c\ufffd\ud83d\ude00"`},
		"number":             {json.Number("9007199254740993"), `9007199254740993`},
		"big":                {new(big.Int).Lsh(big.NewInt(1), 90), `1237940039285380274899124224`},
		"uint64":             {uint64(math.MaxUint64), `18446744073709551615`},
		"replacement rune":   {"a\ufffdb", "\"a\ufffdb\""},
		"replacement nested": {image{Path: "\ufffd", Skip: "\xff"}, "{\"path\":\"\ufffd\"}"},
		"replacement escape": {rawJSON(`"\ufffd"`), `"\ufffd"`},
		"escape as text":     {`\ufffd \ud800`, `"\\ufffd \\ud800"`},
		"text marshaler":     {text("\ufffd"), "\"\ufffd\""},
		"text key":           {map[text]int{"\ufffd": 1}, "{\"\ufffd\":1}"},
		"int key":            {map[int]string{3: "\ufffd"}, "{\"3\":\"\ufffd\"}"},
		"nil pointers":       {[]any{(*textPtr)(nil), (*image)(nil), "\ufffd"}, "[null,null,\"\ufffd\"]"},
		"embedded":           {embeds{Count: 1, image: image{Path: "\ufffd"}}, "{\"path\":\"\ufffd\",\"count\":\"1\"}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := port.Encode(test.v)
			if err != nil || string(got) != test.want {
				t.Fatalf("Encode = %s, %v, want %s", got, err, test.want)
			}
			if err := port.Check(got); err != nil {
				t.Errorf("Check of the result: %v", err)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	loop := map[string]any{}
	loop["self"] = loop
	tests := map[string]struct {
		v    any
		want []string
	}{
		"NaN":              {map[string]any{"x": math.NaN()}, []string{"NaN", "null"}},
		"infinity":         {math.Inf(-1), []string{"-Inf"}},
		"channel":          {make(chan int), []string{"chan int"}},
		"function":         {struct{ F func() }{}, []string{"func()", `json:"-"`}},
		"cycle":            {loop, []string{"cycle"}},
		"string":           {"a\xffb", []string{`"a\xffb"`, "UTF-8", "[]byte"}},
		"slice":            {[]string{"", "\xff"}, []string{"at [1]:"}},
		"array":            {[2]string{"", "\xff"}, []string{"at [1]:"}},
		"field":            {image{Path: "\xff"}, []string{"at path:"}},
		"pointer":          {&image{Next: &image{Tags: []string{"\xc0"}}}, []string{"at next.tags[0]:"}},
		"value":            {map[string]any{"k": []any{1, "\xff"}}, []string{`at ["k"][1]:`}},
		"any":              {image{Any: image{Path: "\xff"}}, []string{"at any.path:"}},
		"key":              {image{Extra: map[string]string{"\xff": ""}}, []string{"at extra[key]:"}},
		"embedded":         {embeds{image: image{Path: "\xff"}}, []string{"at path:"}},
		"go name":          {struct{ A struct{ B text } }{struct{ B text }{"\xff"}}, []string{"at A.B:"}},
		"surrogate bytes":  {"\xed\xa0\x80", []string{"UTF-8"}},
		"custom output":    {rawJSON("\"\xff\""), []string{"UTF-8", "rawJSON"}},
		"custom surrogate": {[]any{rawJSON(`"\ud800"`)}, []string{`\ud800`}},
		"custom garbage":   {rawJSON("{"), []string{"JSON"}},
		"text":             {text("\xff"), []string{"UTF-8"}},
		"text pointer":     {&textPtr{"\xff"}, []string{"UTF-8"}},
		"text addressed":   {[]textPtr{{"\xff"}}, []string{"at [0]:"}},
		"text key":         {map[struct{ text }]int{{"\xff"}: 1}, []string{"at [key]:"}},
		"quoted": {struct {
			S string `json:",string"`
		}{"\xff"}, []string{"at S:"}},
		"raw garbage":   {json.RawMessage(`{"a":}`), []string{"byte 6", `{"a":}`}},
		"raw empty":     {json.RawMessage(nil), []string{"(empty)"}},
		"raw bytes":     {json.RawMessage("\"\xff\""), []string{"byte 1, 0xff"}},
		"raw surrogate": {json.RawMessage(`["\udc00"]`), []string{`byte 2, the escape \udc00`}},
		"nested raw":    {map[string]json.RawMessage{"a": json.RawMessage("\"\xff\"")}, []string{"UTF-8"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := port.Encode(test.v)
			if got != nil || !errors.Is(err, port.ErrEncoding) {
				t.Errorf("Encode = %s, %v, want nil and ErrEncoding", got, err)
			}
			wantError(t, err, test.want...)
		})
	}
}

func TestEncodeResultIsItsOwn(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage(`[1]`)
	first, _ := port.Encode(raw)
	second, _ := port.Encode([]int{2})
	third, _ := port.Encode([]int{3})
	raw[1] = 'x'
	if got := string(first) + string(second) + string(third); got != `[1][2][3]` {
		t.Errorf("results changed each other: %s", got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`0`, ` null `, `{"a":[1,"\ud83d\ude00\\ud800"]}`, `"\uD83D\uDE00"`, `"` + "\ufffd" + `"`} {
		if err := port.Check([]byte(raw)); err != nil {
			t.Errorf("Check(%s) = %v", raw, err)
		}
	}
	for _, raw := range []string{
		``, ` `, `1 2`, `{]`, `NaN`, `'a'`, "\"\n\"", "\"\xff\"", `"\ud800"`, `"\udc00"`, `"\ud800\ud800\udc00"`,
		`"\ud800\\udc00"`, `"\ud800x"`, `"\u12"`, `{"\ud800":1}`,
	} {
		if err := port.Check([]byte(raw)); !errors.Is(err, port.ErrEncoding) {
			t.Errorf("Check(%s) = %v, want ErrEncoding", raw, err)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const big = "12345678901234567890123"
	var untyped any
	if err := port.Decode([]byte(" ["+big+"]\n"), &untyped); err != nil {
		t.Fatal(err)
	}
	if want := any([]any{json.Number(big)}); !reflect.DeepEqual(untyped, want) {
		t.Errorf("any = %#v, want %#v", untyped, want)
	}
	var nested struct{ M map[string]any }
	if err := port.Decode([]byte(`{"M":{"a":`+big+`}}`), &nested); err != nil || nested.M["a"] != json.Number(big) {
		t.Errorf("any in a struct = %#v, %v", nested, err)
	}
	var raw json.RawMessage
	if err := port.Decode([]byte(`{"a":`+big+`}`), &raw); err != nil || string(raw) != `{"a":`+big+`}` {
		t.Errorf("raw = %s, %v", raw, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		raw  string
		v    any
		want []string
	}{
		"type":           {`{"path":3}`, new(image), []string{"port_test.image", `{"path":3}`, "number", ".path"}},
		"overflow":       {`300`, new(int8), []string{"int8", "300"}},
		"empty":          {``, new(int), []string{"(empty)", "unexpected end"}},
		"empty any":      {``, new(any), []string{"(empty)", "unexpected end"}},
		"cut any":        {`[1`, new(any), []string{"[1", "unexpected end"}},
		"trailing":       {`1 2`, new(int), []string{"1 2", "after top-level value"}},
		"trailing any":   {`1 2`, new(any), []string{"1 2", "more follows"}},
		"trailing brace": {`{}}`, new(any), []string{"{}}", "more follows"}},
		"UTF-8":          {"\"\xff\"", new(string), []string{"UTF-8", "string"}},
		"surrogate":      {`"\ud800"`, new(string), []string{`\ud800`}},
		"cut escape":     {`"\u`, new(string), []string{"string"}},
		"long":           {`"` + strings.Repeat("é", 90) + `"`, new(int), []string{"éé…"}},
		"unprintable":    {"\x00", new(int), []string{`"\x00"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := port.Decode([]byte(test.raw), test.v)
			if !errors.Is(err, port.ErrEncoding) {
				t.Errorf("Decode = %v, want ErrEncoding", err)
			}
			wantError(t, err, test.want...)
			if err != nil && !utf8.ValidString(err.Error()) {
				t.Errorf("the error is not valid UTF-8: %q", err)
			}
		})
	}
	for _, target := range []any{nil, 3, (*int)(nil)} {
		wantError(t, port.Decode([]byte(`1`), target), "pointer")
	}
}

// value draws what JSON can hold, numbers as json.Number.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch kind := rapid.IntRange(0, 6).Draw(t, "kind"); {
		case kind == 0:
			return nil
		case kind == 1:
			return rapid.Bool().Draw(t, "bool")
		case kind == 2:
			return json.Number(rapid.StringMatching(`-?[1-9][0-9]{0,40}`).Draw(t, "number"))
		case kind == 5 && depth > 0:
			return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
		case kind == 6 && depth > 0:
			return rapid.MapOfN(rapid.String(), value(depth-1), 0, 4).Draw(t, "object")
		default:
			return rapid.String().Draw(t, "string")
		}
	})
}

func TestRoundTripAny(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := value(3).Draw(t, "value")
		raw, err := port.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := port.Check(raw); err != nil {
			t.Fatal(err)
		}
		var got any
		if err := port.Decode(raw, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s came back as %#v, was %#v", raw, got, want)
		}
		again, err := port.Encode(raw)
		if err != nil || string(again) != string(raw) {
			t.Fatalf("as raw: %s, %v, want %s", again, err, raw)
		}
	})
}

func TestRoundTripTyped(t *testing.T) {
	t.Parallel()
	type message struct {
		S string
		I int64
		U uint64
		F float64
		B []byte
		M map[string]int64
	}
	rapid.Check(t, func(t *rapid.T) {
		want := message{
			S: rapid.String().Draw(t, "S"),
			I: rapid.Int64().Draw(t, "I"),
			U: rapid.Uint64().Draw(t, "U"),
			F: rapid.Float64().Draw(t, "F"),
			B: rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "B"),
			M: rapid.MapOf(rapid.String(), rapid.Int64()).Draw(t, "M"),
		}
		raw, err := port.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		var got message
		if err := port.Decode(raw, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s came back as %#v, %v, was %#v", raw, got, err, want)
		}
	})
}

func TestInvalidTextIsAlwaysRefused(t *testing.T) {
	t.Parallel()
	wraps := map[string]func(string) any{
		"value":    func(s string) any { return s },
		"map key":  func(s string) any { return map[string]int{"a": 1, s: 2} },
		"map":      func(s string) any { return map[int]any{1: s} },
		"slice":    func(s string) any { return []string{"a", s} },
		"pointer":  func(s string) any { return []*string{nil, &s} },
		"nested":   func(s string) any { return image{Next: &image{Any: []image{{Path: s}}}} },
		"text":     func(s string) any { return text(s) },
		"text key": func(s string) any { return map[struct{ text }]bool{{text(s)}: true} },
		"custom": func(s string) any {
			return rawJSON(`"` + s + `"`)
		},
		"raw": func(s string) any { return json.RawMessage(`"` + s + `"`) },
	}
	for name, wrap := range wraps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				letters := rapid.StringMatching(`[a-z` + "\ufffd" + `é]{0,9}`)
				bad := rapid.SampledFrom([]string{"\xff", "\xc3", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\x80"}).Draw(t, "bad")
				before, after := letters.Draw(t, "before"), letters.Draw(t, "after")
				if _, err := port.Encode(wrap(before + after)); err != nil {
					t.Fatalf("valid text refused: %v", err)
				}
				s := before + bad + after
				if got, err := port.Encode(wrap(s)); !errors.Is(err, port.ErrEncoding) {
					t.Fatalf("Encode of %q = %s, %v, want ErrEncoding", s, got, err)
				}
			})
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	lines := make([]string, 1000)
	counts := make(map[string]int, len(lines))
	for i := range lines {
		lines[i] = "a line of text, the number is " + strconv.Itoa(i)
		counts[strconv.Itoa(i)] = i
	}
	for name, v := range map[string]any{"strings": lines, "counts": counts} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := port.Encode(v); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"-stdlib", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := json.Marshal(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
