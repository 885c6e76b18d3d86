package store_test

import (
	"encoding/json"
	"testing"

	"github.com/weirworks/weir/internal/store"
)

// The examples of RFC 7396, appendix A, and numbers that no float holds.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{``, `{"b":1,"a":null}`, `{"b":1}`},
		{`{"n":12345678901234567890.50}`, `{"m":1e400}`, `{"m":1e400,"n":12345678901234567890.50}`},
	} {
		got, err := store.MergePatch(json.RawMessage(c[0]), json.RawMessage(c[1]))
		if err != nil || string(got) != c[2] {
			t.Errorf("%s with %s is %s, %v; want %s", c[0], c[1], got, err, c[2])
		}
	}
	for _, bad := range [][2]string{{`{`, `{}`}, {`{}`, `{"a":}`}, {`{}`, ``}} {
		if got, err := store.MergePatch(json.RawMessage(bad[0]), json.RawMessage(bad[1])); err == nil {
			t.Errorf("%s with %s is %s", bad[0], bad[1], got)
		}
	}
}
