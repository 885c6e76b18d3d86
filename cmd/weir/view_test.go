package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzSpread: JSON is laid out as encoding/json does it.
func FuzzSpread(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `[[],{}]`, `{"a":[1,2,{"b":"x, y: {\"z\"} \\"}],"":null}`, `"text"`, `-1.5e9`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var compact, want bytes.Buffer
		if json.Compact(&compact, []byte(s)) != nil {
			return
		}
		if err := json.Indent(&want, compact.Bytes(), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := spread(compact.Bytes(), "  "); string(got) != want.String() {
			t.Errorf("got %s, want %s", got, want.String())
		}
	})
}
