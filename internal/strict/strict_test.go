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
		`{"iner":{}}`:             `unknown key "iner": did you mean "inner"?`,
		`{"inner":{"kye":"a"}}`:   `unknown key "kye": did you mean "key"?`,
		`{"all":[{},{"sice":1}]}`: `unknown key "sice": did you mean "size"?`,
		`{"inner":{"key":1}}`:     "inner.key is a number: use a string",
		`{"inner":{"size":1.5}}`:  "inner.size is a number: use a whole number",
		`{"inner":{"for":3600}}`:  `inner.for is a number: use a duration in quotes, like "30s"`,
		`{"in":3600}`:             `in is a number: use a duration in quotes, like "30s"`,
		`{"at":"tomorrow"}`:       `"tomorrow" is not a moment: use RFC 3339, such as 2026-03-12T07:00:00Z`,
		`{"on":"yes"}`:            "on is a string: use true or false",
		`{"share":"x"}`:           "share is a string: use a number",
		`{"all":{}}`:              "all is an object: use an array",
		`[]`:                      "it is an array: use an object",
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
