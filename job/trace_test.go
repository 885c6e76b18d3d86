package job_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirworks/weir/job"
	"github.com/weirworks/weir/port"
)

const aTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestParseTrace(t *testing.T) {
	t.Parallel()
	for parent, ok := range map[string]bool{
		aTrace:                               true,
		aTrace[:53] + "00":                   true,
		"cc" + aTrace[2:] + "-more":          true, // of a later version
		"":                                   false,
		aTrace[:54]:                          false,
		aTrace + "-more":                     false,
		"ff" + aTrace[2:]:                    false,
		strings.ToUpper(aTrace):              false,
		strings.Replace(aTrace, "-", "_", 1): false,
		"00-" + strings.Repeat("0", 32) + aTrace[35:]:              false,
		aTrace[:36] + strings.Repeat("0", 16) + aTrace[52:]:        false,
		"00-0af7651916cd43dd8448eb211c80319\"-b7ad6b7169203331-01": false,
	} {
		got, valid := job.ParseTrace(parent, "")
		if valid != ok || valid && got.Sampled() != strings.HasSuffix(got.Parent, "1") {
			t.Errorf("%q: %+v, %v, want %v", parent, got, valid, ok)
		}
	}
	got, _ := job.ParseTrace(aTrace, "vendor=a b,other=\"c\"")
	if got.State == "" || job.StoredTrace(got.String()) != got || got.TraceID() != aTrace[3:35] {
		t.Errorf("%+v does not come back: %+v", got, job.StoredTrace(got.String()))
	}
	if long, ok := job.ParseTrace(aTrace, strings.Repeat("x", 600)); !ok || long.State != "" {
		t.Errorf("a long state: %+v, %v", long, ok)
	}
}

// TestTraceOfMessages: what is sealed into a message comes out of it, and nothing else does.
func TestTraceOfMessages(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"", `vendor="x"`} {
		for _, kind := range []string{"job:", `"`} {
			sealed, err := port.SealTraced(json.RawMessage("1"), kind, "x", aTrace, state)
			if err != nil {
				t.Fatal(err)
			}
			_, c := port.Split(sealed)
			if parent, got := port.TraceOf(c); parent != aTrace || got != state {
				t.Errorf("%s: parent %q, state %q", c, parent, got)
			}
		}
	}
	quoted, err := port.Seal(json.RawMessage("1"), port.Context{"text": `"traceparent":"` + aTrace + `"`})
	if err != nil {
		t.Fatal(err)
	}
	_, c := port.Split(quoted)
	if parent, _ := port.TraceOf(c); parent != "" {
		t.Errorf("%s: parent %q, want none", c, parent)
	}
}
