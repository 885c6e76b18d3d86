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
		`{"level":"WARN","msg":""}`:         `WARN `,
		`{"level":3,"msg":"x"}`:             `{"level":3,"msg":"x"}`,
		`{"parked":"rate: it ran 2 times"}`: `{"parked":"rate: it ran 2 times"}`,
		`"loading"`:                         `"loading"`,
		`[1,2]`:                             `[1,2]`,
		`{"level":"INFO","msg":"m","empty":"","n":12345678901234567890}`: `INFO m empty="" n=12345678901234567890`,
	} {
		if got := explain.Note(json.RawMessage(raw)); got != want {
			t.Errorf("%s\nis  %s\nnot %s", raw, got, want)
		}
	}
}
