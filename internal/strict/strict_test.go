package strict_test

import (
	"testing"
	"time"

	"github.com/weirworks/weir/internal/strict"
)

type span time.Duration

func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = span(d)
	return err
}

// What is wrong with JSON is said without words of Go, and unknown keys get a hint.
func TestDecode(t *testing.T) {
	t.Parallel()
	type inner struct {
		Key  string `json:"key"`
		Size int    `json:"size"`
		For  span   `json:"for"`
	}
	type outer struct {
		Inner *inner     `json:"inner"`
		All   []inner    `json:"all"`
		On    bool       `json:"on"`
		In    *span      `json:"in"`
		At    *time.Time `json:"at"`
		Share float64    `json:"share"`
	}
	for text, want := range map[string]string{
		`{"inner":{"key":"a","size":1,"for":"1h"},"on":true}`: "",
		`{"iner":{}}`:              `unknown key "iner": did you mean "inner"?`,
		`{"Inner":{}}`:             `unknown key "Inner": did you mean "inner"?`,
		`{"inner":{"KEY":"a"}}`:    `unknown key "KEY": did you mean "key"?`,
		`{"all":[{},{"Size":1}]}`:  `unknown key "Size": did you mean "size"?`,
		`{"inner":{"kye":"a"}}`:    `unknown key "kye": did you mean "key"?`,
		`{"all":[{},{"sice":1}]}`:  `unknown key "sice": did you mean "size"?`,
		`{"inner":{"key":1}}`:      "inner.key is a number: use a string",
		`{"inner":{"size":1.5}}`:   "inner.size is a number: use a whole number",
		`{"inner":{"for":3600}}`:   `inner.for is a number: use a duration in quotes, like "30s"`,
		`{"in":3600}`:              `in is a number: use a duration in quotes, like "30s"`,
		`{"at":"tomorrow"}`:        `"tomorrow" is not a moment: use RFC 3339, such as 2026-03-12T07:00:00Z`,
		`{"on":"yes"}`:             "on is a string: use true or false",
		`{"share":"x"}`:            "share is a string: use a number",
		`{"all":{}}`:               "all is an object: use an array",
		`{"inner":{"for":"soon"}}`: `inner.for: time: invalid duration "soon"`,
		`{"in":"soon"}`:            `in: time: invalid duration "soon"`,
		`{"on":tru}`:               "it is not JSON: invalid character '}' in literal true (expecting 'e'), at byte 10",
		`{"on":true`:               "it is not JSON: it ends too early, behind byte 10",
		``:                         "it is empty: give JSON",
		`[]`:                       "it is an array: use an object",
	} {
		var v outer
		got := ""
		if err := strict.Decode([]byte(text), &v); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Programs read what passes Check alike.
func TestCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":[1,{"a":2}],"b":{"a":null}}`:    "",
		`1.7e308`:                             "",
		`{"a":1,"b":{"c":2,"c":3}}`:           `has the key "c" twice in one object, at byte 21`,
		`[{"a":1e400}]`:                       "has the number 1e400, which is too large: use one up to 1.7e308, or a string",
		`[{"a":-0.1e-400}]`:                   "has the number -0.1e-400, which is too small and would be read as 0: use 0, one from 5e-324, or a string",
		`[0,-0,0.00,0e-400,-0.0E+400,5e-324]`: "",
	} {
		got := ""
		if err := strict.Check([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if strict.Check([]byte(`{"a":`)) == nil {
		t.Error("half an object passes")
	}
}
