package explain_test

import (
	"encoding/json"
	"testing"

	"github.com/weirworks/weir/internal/explain"
)

// What a job logged reads as a line of a log; other notes stay as they are.
func TestNote(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"time":"2026-11-27T10:00:00Z","level":"INFO","msg":"page done","page":3,"url":"https://a.b/c","who":"ann lee","at":{"x":1}}`: `INFO page done page=3 url=https://a.b/c who="ann lee" at={"x":1}`,
		`{"level":"WARN","msg":""}`:            `WARN `,
		`{"level":3,"msg":"x"}`:                `{"level":3,"msg":"x"}`,
		`{"seen":{"of":12}}`:                   `{"seen":{"of":12}}`,
		`"loading"`:                            `"loading"`,
		`{"state":"by hand (anna): set a, b"}`: `state by hand (anna): set a, b`,
		`{"lost":"a run ended"}`:               `lost: a run ended`,
		`{"state":"by hand","b":"c"}`:          `{"state":"by hand","b":"c"}`,
		`[1,2]`:                                `[1,2]`,
		`{"level":"INFO","msg":"m","empty":"","n":12345678901234567890}`: `INFO m empty="" n=12345678901234567890`,
	} {
		if got := explain.Note(json.RawMessage(raw)); got != want {
			t.Errorf("%s\nis  %s\nnot %s", raw, got, want)
		}
	}
}

// FuzzNote: no note makes it fail, and what is no entry of a log stays as it is.
func FuzzNote(f *testing.F) {
	for _, raw := range []string{`{"level":"INFO","msg":"m","a":[1,{"b":null}]}`, `{"msg":1}`, `"x"`, `{`, ``} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got := explain.Note(json.RawMessage(raw))
		if !json.Valid([]byte(raw)) && got != raw {
			t.Errorf("%q became %q", raw, got)
		}
	})
}
