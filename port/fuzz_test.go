package port_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/weirworks/weir/port"
)

var seeds = []string{
	``, `null`, `{"a":[1,2.5e3,"x"]}`, `"\ud83d\ude00"`, `"\ud800"`, `"\\ud800"`, `"\\\ud800"`, `"\udc00\ud800"`,
	"\"\xff\"", "\"\ufffd\"", `1 2`, `[1`, `{"a":12345678901234567890}`, `"\u`, "\x00", `"\uD83D\uDE00"`,
}

// isMessage says the slow way what Check says.
func isMessage(raw []byte) bool {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return false
	}
	high := false // the previous escape is the first half of a character
	for s := string(raw); s != ""; {
		size, unit := 1, rune(0)
		if strings.HasPrefix(s, `\u`) {
			n, err := strconv.ParseUint(s[2:6], 16, 16)
			if err != nil {
				return false
			}
			size, unit = 6, rune(n)
		} else if s[0] == '\\' {
			size = 2
		}
		low := utf16.IsSurrogate(unit) && unit >= 0xdc00
		if high != low {
			return false
		}
		high = utf16.IsSurrogate(unit) && !low
		s = s[size:]
	}
	return !high
}

func FuzzCheck(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := port.Check(raw)
		if want := isMessage(raw); (err == nil) != want {
			t.Fatalf("Check(%q) = %v, the oracle says %v", raw, err, want)
		}
		if err != nil && !errors.Is(err, port.ErrEncoding) {
			t.Fatalf("Check(%q) = %v, want ErrEncoding", raw, err)
		}
		encoded, encodeErr := port.Encode(json.RawMessage(raw))
		if (encodeErr == nil) != (err == nil) {
			t.Fatalf("Encode(%q) = %s, %v, Check = %v", raw, encoded, encodeErr, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v any
		err := port.Decode(raw, &v)
		if valid := port.Check(raw) == nil; (err == nil) != valid {
			t.Fatalf("Decode(%q) = %v, Check says %v", raw, err, valid)
		}
		for _, target := range []any{new(string), new(image), new(float64), new(map[string]any), new(json.RawMessage)} {
			if typed := port.Decode(raw, target); typed == nil && err != nil {
				t.Fatalf("Decode(%q) into %T passes, into any: %v", raw, target, err)
			}
		}
		var text, want string
		if port.Decode(raw, &text) == nil && (json.Unmarshal(raw, &want) != nil || text != want) {
			t.Fatalf("Decode(%q) into a string gives %q, want %q", raw, text, want)
		}
		if err != nil {
			if !errors.Is(err, port.ErrEncoding) || !utf8.ValidString(err.Error()) {
				t.Fatalf("Decode(%q): error %q", raw, err)
			}
			return
		}
		encoded, err := port.Encode(v)
		if err != nil {
			t.Fatalf("Encode of the decoded %q: %v", raw, err)
		}
		var again any
		if err := port.Decode(encoded, &again); err != nil || !reflect.DeepEqual(v, again) {
			t.Fatalf("%q came back as %s: %v", raw, encoded, err)
		}
	})
}

func FuzzTag(f *testing.F) {
	for _, tag := range []string{
		"", "a", "*", "a,limit=3", ",limit=3,default={\"a\":[1,2]}", "a,default=", "a,limit", "a,,", ",", "a b", "\xff",
	} {
		f.Add(tag)
	}
	handles := []reflect.Type{reflect.TypeFor[port.In[int]](), reflect.TypeFor[port.In[any]](), reflect.TypeFor[port.Out[any]]()}
	f.Fuzz(func(t *testing.T, tag string) {
		for _, handle := range handles {
			worker := reflect.StructOf([]reflect.StructField{{
				Name: "TheField", Type: handle, Tag: reflect.StructTag("port:" + strconv.Quote(tag)),
			}})
			layout, err := port.Describe(worker)
			if err != nil {
				if !strings.Contains(err.Error(), "field TheField") {
					t.Fatalf("tag %q: error %q does not name the field", tag, err)
				}
				continue
			}
			specs := layout.Specs()
			if len(specs) != 1 {
				t.Fatalf("tag %q: specs %v", tag, specs)
			}
			if err := specs[0].Validate(); err != nil || specs[0].Name == port.Any {
				t.Fatalf("tag %q: spec %v: %v", tag, specs[0], err)
			}
		}
	})
}

// slowText is a string that is never encoded and decoded without encoding/json.
type slowText string

type (
	texts struct {
		A     string
		B     string `json:"b,omitempty"`
		Angle string `json:"<&>"`
	}
	viaJSON struct {
		A     slowText
		B     slowText `json:"b,omitempty"`
		Angle slowText `json:"<&>"`
	}
)

// FuzzTextParams compares arguments that are all strings with those of encoding/json.
func FuzzTextParams(f *testing.F) {
	for _, raw := range append(seeds,
		`{"A":"x"}`, `{"b":"","A":"y","<&>":"z"}`, `{"A":"x","A":"y"}`, `{}`, `{`, `}`, `{"A":"x"`, `{"A":"x",}`, `{"A":"x"}}`, `{"A":"x"}{`,
		`{"a":"x"}`, `{"A":null}`, `{"A":1}`, `{"A" :"x"}`, `{"A":"\"}`, `{"A":"x""b":"y"}`, `{"A":"x","b"}`, `,"A":"x"}`, `{"A":"x","c":"y"}`, "{\"A\":\"\x7f\"}",
	) {
		f.Add([]byte(raw), "a", "<b>\u2028", "\\")
	}
	fast, slow := describe[texts](f), describe[viaJSON](f)
	f.Fuzz(func(t *testing.T, raw []byte, a, b, angle string) {
		got, want := &texts{a, b, angle}, &viaJSON{slowText(a), slowText(b), slowText(angle)}
		encoded, err := fast.Params(got)
		other, otherErr := slow.Params(want)
		if string(encoded) != string(other) || (err == nil) != (otherErr == nil) {
			t.Fatalf("Params(%q) = %s, %v, encoding/json says %s, %v", got, encoded, err, other, otherErr)
		}
		err, otherErr = fast.SetParams(got, raw), slow.SetParams(want, raw)
		if (err == nil) != (otherErr == nil) || *got != (texts{string(want.A), string(want.B), string(want.Angle)}) {
			t.Fatalf("SetParams(%q): %q, %v, encoding/json says %q, %v", raw, *got, err, *want, otherErr)
		}
		if encoded, err = fast.Params(got); err != nil {
			return // invalid UTF-8, as above
		}
		if again := new(texts); fast.SetParams(again, encoded) != nil || *again != *got {
			t.Fatalf("%q came back as %q by %s", *got, *again, encoded)
		}
	})
}
