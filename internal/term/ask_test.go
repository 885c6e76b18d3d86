package term_test

import (
	"os"
	"strings"
	"testing"

	"github.com/weirworks/weir/internal/term"
)

func TestCanAsk(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if term.CanAsk(null) || term.CanAsk(strings.NewReader("yes\n")) {
		t.Error("a file or a text passes for somebody at a terminal")
	}
}
