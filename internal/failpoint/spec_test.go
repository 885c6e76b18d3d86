package failpoint_test

import (
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/failpoint"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const text = "afterBegin:kill:3,midUser:sleep=200ms:1/50,commitSentReplyLost:fail:1"
	orders, err := failpoint.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var back []string
	for _, o := range orders {
		back = append(back, o.String())
	}
	if got := strings.Join(back, ","); got != text {
		t.Errorf("it reads %q as %q", text, got)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nowhere:kill:1":           `no point "nowhere"`,
		"afterBegin:vanish:1":      `no action "vanish"`,
		"afterBegin:kill":          "point:action:when",
		"afterBegin:kill:0":        "number of a hit",
		"afterBegin:kill:1/x":      "number of a hit",
		"afterBegin:sleep:1":       "no duration",
		"afterBegin:kill=200ms:1":  "only sleep",
		"afterBegin:sleep=-20ms:1": "no duration",
	} {
		if _, err := failpoint.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}
