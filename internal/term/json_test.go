package term_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/term"
)

// FuzzSpread: JSON is laid out as encoding/json does it, but for what is nested deep.
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
		got := term.Spread(compact.Bytes(), "  ")
		if deep := strings.Repeat("  ", 41); !strings.Contains(want.String(), deep) && string(got) != want.String() {
			t.Errorf("got %s, want %s", got, want.String())
		}
		var again bytes.Buffer
		if err := json.Compact(&again, got); err != nil || again.String() != compact.String() {
			t.Errorf("%s is not %s: %v", got, compact.String(), err)
		}
	})
}

// What is nested deep is not laid out: the white space would be many times as large.
func TestSpreadDeep(t *testing.T) {
	t.Parallel()
	const depth = 9_999
	raw := `{"a":[1,{"b":2}],"data":` + strings.Repeat("[", depth) + "1,2" + strings.Repeat("]", depth) + `,"z":3}`
	got := string(term.Spread([]byte(raw), "  "))
	if len(got) > 2*len(raw) {
		t.Errorf("%d bytes are %d", len(raw), len(got))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(got)); err != nil || compact.String() != raw {
		t.Errorf("it is other JSON now: %v", err)
	}
	if !strings.HasPrefix(got, "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n") || !strings.HasSuffix(got, "]\n    ]\n  ],\n  \"z\": 3\n}") {
		t.Errorf("got %.120q … %.40q", got, got[len(got)-40:])
	}
}
