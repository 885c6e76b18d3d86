package component_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/weirworks/weir/component"
)

// FuzzRecords: a file gives the same records however often reading begins anew, all of
// them messages.
func FuzzRecords(f *testing.F) {
	f.Add("a,b\n1,\"x\ny\"\n\n2,3", uint8(0), uint8(1))
	f.Add("{\"a\":1}\n\n[2]\r\n3", uint8(1), uint8(2))
	f.Add("one\r\ntwo\n\nthree", uint8(2), uint8(1))
	f.Add("\"a\"\"\",b\n", uint8(3), uint8(1))
	f.Fuzz(func(t *testing.T, text string, kind, every uint8) {
		whole, failed := ReadAll(text, int(kind)%4, 0)
		for _, raw := range whole {
			if !json.Valid(raw) {
				t.Fatalf("%q is not JSON", raw)
			}
		}
		parts, failedToo := ReadAll(text, int(kind)%4, 1+int(every)%5)
		if failed != failedToo || join(whole) != join(parts) {
			t.Errorf("at once %s (failed: %v), in parts %s (failed: %v)", join(whole), failed, join(parts), failedToo)
		}
	})
}

func join(items []json.RawMessage) string {
	var b strings.Builder
	for _, raw := range items {
		b.Write(raw)
		b.WriteByte('\n')
	}
	return b.String()
}

// FuzzCSV: what WriteFile writes as CSV, ReadFile reads back.
func FuzzCSV(f *testing.F) {
	f.Add("a", "b", "x,y", "\"q\"\n")
	f.Add("", "\"", " ", "\\")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		fields := []string{a, b, c, d}
		for n := 1; n <= len(fields); n++ {
			raw, err := json.Marshal(fields[:n])
			if err != nil {
				t.Fatal(err)
			}
			text, err := WriteCSV(raw)
			if err != nil {
				continue // not UTF-8, say
			}
			got, failed := ReadAll(text, 3, 0)
			want := strings.ReplaceAll(join([]json.RawMessage{raw}), `\r\n`, `\n`) // as encoding/csv does
			if failed || len(got) != 1 || decoded(t, join(got)) != decoded(t, want) {
				t.Errorf("%s became %q and %s", raw, text, join(got))
			}
		}
	})
}

func decoded(t *testing.T, text string) string {
	var v []string
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return strings.Join(v, "\x00")
}
